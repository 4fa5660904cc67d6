"""Semidefinite programs in standard form: ⟨C, M⟩ under linear constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import real_numbers
from gramian.common.types import Array
from gramian.linear_constraints import Constraint
from gramian.maps import LinearMap, inner_products
from gramian.maps.matrices import rank_one
from gramian.objectives import Linear, LowRankPlusIdentity
from gramian.objectives.matrices import Dense, Sparse, SymmetricMatrix
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem

DENSE_SHARE, MAX_DENSE_ORDER = 0.5, 300
"""Density from which C is stored as a dense array, up to this order."""


@under_own_errstate
def sdp(
    C: Any,
    A: Any = None,
    b: ArrayLike | None = None,
    *,
    A_ub: Any = None,
    b_ub: ArrayLike | None = None,
    name: str = "sdp",
) -> Problem:
    """min ⟨C, M⟩ subject to ⟨A_k, M⟩ = b_k, ⟨B_k, M⟩ ≤ h_k and M ⪰ 0.

    Parameters
    ----------
    C : symmetric matrix, or a list of blocks
        Dense or sparse. With blocks M is block-diagonal; a block that is a vector stands for
        nonnegative scalar variables.
    A : list of the same, sparse (m × n²) matrix with rows vec(A_k), or LinearMap
        The matrices of the equalities.
    b : array of shape (m,)
    A_ub, b_ub : the same for inequalities, ≤.

    Returns
    -------
    Problem
        `res.dual` holds y for the equalities, followed by those of the inequalities, which are at
        most 0: C − Σ y_k A_k ⪰ 0, and Σ y_k b_k is the dual value.

    Examples
    --------
    >>> import numpy as np, gramian as gm
    >>> problem = gm.problems.sdp(np.diag([1.0, 2.0]), [np.eye(2)], [1.0])
    >>> round(gm.minimize(problem).value, 5)
    1.0
    """
    sizes = _sizes(C)
    n = sum(sizes)
    linear = _linear(_flat(C, sizes, "C"), n)
    constraints = []
    for matrices, right, which in ((A, b, "A"), (A_ub, b_ub, "A_ub")):
        if matrices is None:
            if right is not None:
                name = which.replace("A", "b")
                raise ValueError(f"{name} is given without {which}, the matrices it belongs to")
            continue
        map = _map(matrices, sizes, which)
        values = _vector(right, map.size, which.replace("A", "b"), "one number for each matrix")
        lower = values if which == "A" else -np.inf
        constraints.append(Constraint(map, lower, values))
    if not constraints:
        raise ValueError("a semidefinite program needs constraints: give A and b, or A_ub and b_ub")
    return Problem(
        Linear(linear),
        name=name,
        formula="⟨C, M⟩",
        constraints=tuple(constraints),
        conditions=", ".join(
            shown
            for shown, given in (("⟨A_k, M⟩ = b_k", A), ("⟨B_k, M⟩ ≤ h_k", A_ub))
            if given is not None
        ),
    )


def _sizes(C: Any) -> list[int]:
    """The orders of the blocks; a vector of length p gives p blocks of order 1."""
    if not isinstance(C, list | tuple) or _is_matrix(C):
        shape = C.shape if sp.issparse(C) or isinstance(C, np.ndarray) else np.shape(C)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"C must be a square matrix or a list of blocks, got shape {shape}")
        return [int(shape[0])]
    if not C:
        raise ValueError("C is an empty list: it needs at least one block")
    return [_size(block, f"C[{k}]") for k, block in enumerate(C)]


def _size(block: Any, name: str) -> int:
    """The order of a block."""
    try:
        shape = block.shape if sp.issparse(block) else np.shape(block)
    except ValueError:
        shape = ()
    if len(shape) not in (1, 2) or shape[0] == 0:
        raise ValueError(
            f"{name} must be a block: a symmetric matrix or a vector with at least one entry"
        )
    return int(shape[0])


def _is_matrix(C: Any) -> bool:
    """Whether a list contains the rows of one matrix instead of blocks."""
    return len(C) > 0 and all(np.ndim(row) == 1 and len(row) == len(C) for row in C)


def _map(matrices: Any, sizes: list[int], name: str) -> LinearMap:
    n = sum(sizes)
    if isinstance(matrices, LinearMap):
        if matrices.order != n:
            raise ValueError(f"{name} is a map of order {matrices.order}, but C has order {n}")
        return matrices
    if sp.issparse(matrices) and matrices.shape[1] == n * n:
        flat = sp.csr_array(matrices, dtype=float)
        _check_flat(flat, n, name)
        return inner_products(flat, n)
    if not isinstance(matrices, Sequence) and np.ndim(matrices) != 3:
        alone = getattr(matrices, "shape", None) == (n, n)
        raise ValueError(
            f"{name} must be a list of symmetric matrices or a sparse matrix with {n * n} columns"
            + (f"; pass a single matrix as [{name}]" if alone else "")
        )
    if len(matrices) == 0:
        raise ValueError(f"{name} is empty; omit it if there are no such constraints")
    rows = [_flat(matrix, sizes, f"{name}[{k}]") for k, matrix in enumerate(matrices)]
    return inner_products(sp.csr_array(sp.vstack(rows)), n)


def _flat(value: Any, sizes: list[int], name: str) -> sp.csr_array:
    """A matrix, or a block-diagonal matrix given by its blocks, as a sparse row vec(A)."""
    n = sum(sizes)
    if len(sizes) == 1:
        whole = _matrix(_only_block(value), n, name)
    else:
        if not isinstance(value, list | tuple) or len(value) != len(sizes):
            raise ValueError(f"{name} must be a list of {len(sizes)} blocks, as C is")
        parts = [
            _matrix(block, size, f"{name}[{k}]")
            for k, (block, size) in enumerate(zip(value, sizes, strict=True))
        ]
        whole = sp.block_diag(parts, format="csr")
    return sp.csr_array(sp.coo_array(whole).reshape(1, n * n))


def _only_block(value: Any) -> Any:
    """The block of a list of one; [[c]] is a matrix of one entry."""
    listed = isinstance(value, list | tuple) and len(value) == 1
    if listed and (sp.issparse(value[0]) or np.shape(value[0]) != (1,)):
        return value[0]
    return value


def _matrix(value: Any, size: int, name: str) -> sp.csr_array:
    if value is None:
        return sp.csr_array((size, size))
    if not sp.issparse(value) and np.ndim(value) == 1:
        return sp.csr_array(sp.diags_array(_vector(value, size, name, "as C has there")))
    checked = as_symmetric(value, name)
    if checked.order != size:
        raise ValueError(f"{name} has order {checked.order}, but C has {size} there")
    return checked.matrix if isinstance(checked, Sparse) else sp.csr_array(checked.dense())


def _check_flat(flat: sp.csr_array, n: int, name: str) -> None:
    """Raise ValueError for rows that are not vec of a finite symmetric matrix."""
    if not np.all(np.isfinite(flat.data)):
        k = int(np.searchsorted(flat.indptr, np.argmin(np.isfinite(flat.data)), side="right")) - 1
        raise ValueError(f"{name}[{k}] contains NaN or infinity")
    entries = sp.coo_array(flat)
    i, j = np.divmod(entries.coords[1].astype(np.int64), n)
    turned = sp.csr_array(
        sp.coo_array((entries.data, (entries.coords[0], j * n + i)), shape=flat.shape)
    )
    skew = sp.coo_array(abs(flat - turned))
    bad = skew.data > 1e-8 * np.max(np.abs(flat.data), initial=0.0)
    if np.any(bad):
        raise ValueError(f"{name}[{int(skew.coords[0][bad].min())}] is not symmetric")


def _linear(flat: sp.csr_array, n: int) -> SymmetricMatrix:
    """C in the form with the cheapest products."""
    dense = rank_one(flat, n)
    if dense is not None:
        return LowRankPlusIdentity(n, 0.0, dense.vector[:, None], np.array([dense.sign]))
    C = sp.csr_array(sp.coo_array(flat).reshape(n, n))
    return Dense(C.toarray()) if n <= MAX_DENSE_ORDER and C.nnz > DENSE_SHARE * n * n else Sparse(C)


def _vector(values: Any, size: int, name: str, length: str) -> Array:
    """Validated numbers of a vector; `length` says why it has this size."""
    if values is None:
        raise ValueError(f"{name} is missing: it needs {size} numbers, {length}")
    vector = real_numbers(values, name)
    if vector.shape != (size,):
        raise ValueError(
            f"{name} must be a vector of length {size}, {length}; got shape {vector.shape}"
        )
    if not np.all(np.isfinite(vector)):
        raise ValueError(f"{name}[{int(np.argmin(np.isfinite(vector)))}] is not finite")
    return vector
