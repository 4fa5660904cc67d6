"""Kernels from must-link and cannot-link pairs: NPKL, BiS eq. (4), and RegPCP, SQLP eq. (3.12)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix, refuse_masked
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.linear_constraints import Constraint
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.maps.base import index_columns, refuse_rows
from gramian.objectives import Composite, Linear
from gramian.objectives.matrices import Dense, Sparse, SymmetricMatrix
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem
from gramian.problems.manifold import as_basis
from gramian.proofs import gershgorin
from gramian.reductions.waves import Waves

Pairs = NDArray[np.integer]


@under_own_errstate
def npkl(laplacian: Any, must_link: ArrayLike, cannot_link: ArrayLike, lam: float) -> Problem:
    """min tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over Z ⪰ 0, BiS eq. (4).

    The sum contains each linked pair once and the diagonal: T_ij = 1 for must-link pairs and i = j,
    0 for cannot-link pairs. Either list may be empty; duplicate pairs count once.
    """
    L = _laplacian(laplacian)
    entries, T = _targets(must_link, cannot_link, L.order)
    return npkl_to(L, entries, T, 0.5 * positive(lam, "lam"))


def npkl_to(laplacian: Any, entries: Pairs, targets: Array, weights: Array | float) -> Problem:
    """min tr(ZL) + Σ ω_e (Z_e − T_e)² over Z ⪰ 0: `npkl` with weights, for entries i ≤ j."""
    L = _laplacian(laplacian)
    return Problem(
        Composite(Entries(entries, L.order), Squared(targets, weight=weights), L),
        name="npkl",
        formula="tr(ZL) + λ/2 Σ (Z_ij − T_ij)²",
        variable="Z",
    )


def pcp_to(laplacian: Any, entries: Pairs, targets: Array) -> Problem:
    """min tr(ZL) subject to Z_e = T_e, Z ⪰ 0 (thesis eqs. 3.5–3.9), for entries i ≤ j."""
    L = _laplacian(laplacian)
    return Problem(
        Linear(L),
        name="pcp",
        formula="tr(ZL)",
        variable="Z",
        constraints=(Constraint.equal(Entries(entries, L.order), targets),),
        conditions="Z_ij = T_ij",
    )


@under_own_errstate
def reg_pcp(basis: Any, must_link: ArrayLike, cannot_link: ArrayLike) -> Problem:
    """min Σ_S ((QYQᵀ)_ij − t_ij)² over Y ⪰ 0, SQLP eq. (3.12).

    S and t are the pairs and targets of `npkl`, including the diagonal of all n points. Q is
    n × m, the smoothest eigenvectors of the normalised Laplacian.
    """
    Q = as_basis(basis)
    entries, t = _targets(must_link, cannot_link, Q.shape[0])
    return reg_pcp_to(Q, entries, t)


def reg_pcp_to(
    basis: Any,
    entries: Pairs,
    targets: Array,
    weights: Array | float = 1.0,
    *,
    roughness: Array | None = None,
) -> Problem:
    """min Σ ω_e ((QYQᵀ)_e − t_e)² over Y ⪰ 0: `reg_pcp` with weights, for entries i ≤ j.

    `roughness`, one number ϑ per eigenvector, adds Σ ϑ_w Y_ww.
    """
    Q = as_basis(basis)
    C = None
    if roughness is not None and np.any(roughness):
        C = Dense(np.diag(np.ravel(roughness)), floor=0.0)
    return Problem(
        Composite(Waves(Q).map(Entries(entries, Q.shape[0])), Squared(targets, weight=weights), C),
        name="reg_pcp",
        formula="Σ_S ((QYQᵀ)_ij − t_ij)²" if C is None else "η tr(ΛY) + Σ_S ω((QYQᵀ)_ij − t_ij)²",
        variable="Y",
    )


def _laplacian(laplacian: Any) -> SymmetricMatrix:
    check_matrix(laplacian, "laplacian")
    L = as_symmetric(laplacian, "laplacian")
    if isinstance(L, _SparseLaplacian):
        return L
    return _SparseLaplacian(L.matrix) if isinstance(L, Sparse) else L


class _SparseLaplacian(Sparse):
    """A sparse matrix whose smallest eigenvalue is known to be close to 0.

    A certificate only benefits from a positive bound, and NPKL has a better one in its diagonal.
    """

    @cached_property
    def lower(self) -> float:
        """Gershgorin's bound, exact for D − W up to rounding."""
        return gershgorin(self.matrix)


def _targets(must_link: ArrayLike, cannot_link: ArrayLike, n: int) -> tuple[Pairs, Array]:
    """The linked pairs and the diagonal, and their target values."""
    must, cannot = _links(must_link, n, "must_link"), _links(cannot_link, n, "cannot_link")
    if not len(must) + len(cannot):
        raise ValueError("must_link and cannot_link are both empty: there is nothing to learn from")
    _refuse_contradictions(must, cannot, n)
    diagonal = np.column_stack([np.arange(n)] * 2)
    targets = np.repeat([1.0, 0.0, 1.0], [len(must), len(cannot), n])
    return np.vstack([must, cannot, diagonal]), targets


def _links(pairs: ArrayLike, n: int, name: str) -> Pairs:
    """Validated pairs i < j without duplicates."""
    refuse_masked(pairs, name)
    if np.size(pairs) == 0:
        return np.empty((0, 2), dtype=np.intp)
    table = np.column_stack(index_columns(pairs, n, 2, name))
    own = table[:, 0] == table[:, 1]
    refuse_rows(table, own, name, "links a point to itself; the diagonal is always included")
    return np.unique(np.sort(table, axis=1), axis=0)


def _refuse_contradictions(must: Pairs, cannot: Pairs, n: int) -> None:
    """Raise ValueError if a pair is in both lists."""
    both = np.isin(_keys(must, n), _keys(cannot, n))
    if both.any():
        pair = must[both][0].tolist()
        raise ValueError(f"the pair {pair} is in both must_link and cannot_link")


def _keys(pairs: Pairs, n: int) -> Pairs:
    """One integer per pair."""
    return pairs[:, 0].astype(np.int64) * n + pairs[:, 1]
