"""Manifold unfolding: (coloured) MVU, BILGO §5.2, and RegMVU in a smooth basis, SQLP §3.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix, check_size, real_numbers, refuse_masked
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.linear_constraints import Constraint
from gramian.losses import Squared
from gramian.maps import PairDistances
from gramian.maps.base import check_order, index_columns, refuse_rows
from gramian.objectives import Composite, Linear, LowRankPlusIdentity
from gramian.objectives.matrices import MatrixSum, Sparse, SymmetricMatrix
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem
from gramian.reductions.waves import Waves

SAME_DISTANCE = 1e-6
"""Relative tolerance of distances of duplicate edges, which may be rounded differently."""


@under_own_errstate
def mvu(
    edges: ArrayLike,
    sq_distances: ArrayLike,
    n: int,
    nu: float,
    target: Any = None,
    *,
    mass: ArrayLike | None = None,
) -> Problem:
    """min Σ_e (d_M(e) − D_e)² − ν tr(WM) over M ⪰ 0, BILGO eq. (11) with each edge once.

    d_M(e) = M_ii + M_jj − 2M_ij. The paper's W = I has no minimum, since a translation of all
    points changes no distance: W is H = I − 11ᵀ/n, or HKH for the coloured variant. There is no
    minimum either if the edges do not connect the points.

    Parameters
    ----------
    edges : pairs of point indices, shape (p, 2); duplicates count once.
    sq_distances : the squared lengths D_e of the edges.
    target : K of the coloured variant, n × n: an array, a sparse matrix, a LinearOperator, or
        ``LowRankPlusIdentity(n, 0.0, Y)`` for the label kernel K = YYᵀ, which is not formed.
    mass : number of samples at each point, m of shape (n,): W = diag(m) − mmᵀ/Σm, their
        variance. Not available with a target.
    """
    n = check_order(n)
    nu = positive(nu, "nu")
    pairs, D = _edges_once(edges, sq_distances, n)
    if mass is not None:
        if target is not None:
            raise ValueError("mass needs target=None: sum the rows of Y of K = YYᵀ instead")
        return Problem(
            Composite(PairDistances(pairs, n), Squared(D), _negative_spread(masses(mass, n), nu)),
            name="mvu",
            formula="Σ_e (d_M(e) − D_e)² − ν tr((diag(m) − mmᵀ/Σm)M)",
        )
    check_matrix(target, "target")
    K = as_symmetric(1.0 if target is None else target, "target", n)
    return Problem(
        Composite(PairDistances(pairs, n), Squared(D), _negative_centred(K, nu)),
        name="mvu",
        formula=f"Σ_e (d_M(e) − D_e)² − ν tr({'H' if target is None else 'HKH'}M)",
    )


def exact_mvu(
    edges: ArrayLike, sq_distances: ArrayLike, n: int, side: Array | None = None
) -> Problem:
    """min −tr(WM) + 1ᵀM1/n subject to d_M(e) = D_e, M ⪰ 0: MVU with exact edges.

    (Weinberger and Saul 2004.) W is H, or HKH for K = YYᵀ with Y = `side`. The second term centres
    the points without changing the optimum. Violations are relative to the lengths; for a length
    of 0, relative to their mean.
    """
    n = check_order(n)
    pairs, D = _edges_once(edges, sq_distances, n)
    K = LowRankPlusIdentity(n, 1.0) if side is None else LowRankPlusIdentity(n, 0.0, side)
    W = _negative_centred(K, 1.0)
    weights = np.append(W.weights[:-1], W.weights[-1] + 1.0)
    unit = np.where(D > 0, D, D.mean())
    return Problem(
        Linear(LowRankPlusIdentity(n, W.scale, W.factor, weights)),
        name="exact_mvu",
        formula=f"−tr({'H' if side is None else 'HKH'}M) + 1ᵀM1/n",
        constraints=(Constraint.equal(PairDistances(pairs, n), D, unit),),
        conditions="d_M(e) = D_e",
    )


@under_own_errstate
def reg_mvu(basis: Any, edges: ArrayLike, sq_distances: ArrayLike, nu: float) -> Problem:
    """min ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, SQLP eq. (3.11) with its lost tail.

    Q is n × m, the smoothest eigenvectors of the graph Laplacian without the constant one, with
    which there is no minimum. The edges are those of `mvu`.
    """
    Q = as_basis(basis)
    nu = positive(nu, "nu")
    pairs, D = _edges_once(edges, sq_distances, Q.shape[0])
    map = Waves(Q).map(PairDistances(pairs, Q.shape[0]))
    return Problem(
        Composite(map, Squared(D, weight=nu), -1.0),
        name="reg_mvu",
        formula="ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y",
        variable="Y",
    )


def masses(mass: ArrayLike, n: int) -> Array:
    """Validated numbers of samples at each point."""
    m = real_numbers(mass, "mass")
    if m.shape != (n,):
        raise ValueError(f"mass must hold one number for each of {n} points, got shape {m.shape}")
    refuse_rows(m, ~(np.isfinite(m) & (m > 0)), "mass", "is not a positive number")
    return m


def as_basis(basis: Any) -> Any:
    """Validated Q with a row for each point, dense or CSR, in double precision."""
    from sklearn.utils.validation import check_array

    refuse_masked(basis, "basis")
    Q = check_array(basis, accept_sparse="csr", dtype=np.float64, input_name="basis")
    check_size(Q, "basis")
    return Q


def _edges_once(edges: ArrayLike, sq_distances: ArrayLike, n: int) -> tuple[NDArray[Any], Array]:
    """Validated edges as pairs i < j without duplicates, and their squared lengths."""
    refuse_masked(edges, "edges")
    pairs = np.column_stack(index_columns(edges, n, 2, "edges"))
    refuse_rows(pairs, pairs[:, 0] == pairs[:, 1], "edges", "joins a point to itself")
    D = real_numbers(sq_distances, "sq_distances")
    if D.shape != (len(pairs),):
        raise ValueError(
            f"sq_distances must hold one number for each of {len(pairs)} edges, got shape {D.shape}"
        )
    refuse_rows(D, ~np.isfinite(D), "sq_distances", "is not finite")
    refuse_rows(D, D < 0, "sq_distances", "is negative")
    check_size(D, "sq_distances")
    once, first, copy_of = np.unique(
        np.sort(pairs, axis=1), axis=0, return_index=True, return_inverse=True
    )
    kept = D[first]
    other = np.abs(D - kept[copy_of.ravel()]) > SAME_DISTANCE * D
    refuse_rows(pairs, other, "edges", "is given twice, with different distances")
    return once, kept


def _negative_centred(K: SymmetricMatrix, nu: float) -> Any:
    """−νHKH, as a low-rank matrix plus a multiple of I if K has this form."""
    if not isinstance(K, LowRankPlusIdentity):
        return _NegativeCentred(K, nu)
    ones = np.full((K.order, 1), K.order**-0.5)
    factor = np.hstack([_centred(K.factor), ones])
    weights = nu * np.append(-K.weights, K.scale)
    return LowRankPlusIdentity(K.order, -nu * K.scale, factor, weights)


def _negative_spread(m: Array, nu: float) -> MatrixSum:
    """−ν(diag(m) − mmᵀ/Σm)."""
    whole = (m / np.sqrt(m.sum()))[:, None]
    shared = LowRankPlusIdentity(m.size, 0.0, whole, np.array([nu]))
    return MatrixSum(Sparse(sp.diags_array(-nu * m)), shared, lower=-np.inf)


class _NegativeCentred:
    """−νHKH by products with K."""

    lower = -np.inf
    """It is at most 0 (H1 = 0), and only a positive bound would be useful."""

    def __init__(self, K: SymmetricMatrix, nu: float) -> None:
        self.K, self.nu, self.order = K, nu, K.order

    def __matmul__(self, V: Array) -> Array:
        return -self.nu * _centred(self.K @ _centred(V))

    def dense(self) -> Array:
        return -self.nu * _centred(_centred(self.K.dense()).T)


def _centred(V: Array) -> Array:
    """HV."""
    return V - V.mean(axis=0)
