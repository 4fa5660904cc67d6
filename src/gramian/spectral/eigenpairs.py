"""The k largest eigenvalues of a symmetric matrix and their eigenvectors."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from gramian.arrays.dense import row_signs
from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.places import host, place
from gramian.arrays.threads import blas_threads_for
from gramian.common.random_state import generator
from gramian.common.warnings import warn
from gramian.linalg.block_lanczos import block_lanczos
from gramian.linalg.krylov import largest_pairs
from gramian.objectives.matrices import Scaled
from gramian.spectral._inputs import Given, given
from gramian.spectral._lro import lro_subspace

Array = NDArray[np.float64]
Method = Literal["auto", "lanczos", "lapack", "lro"]

METHODS = ("auto", "lanczos", "lapack", "lro")

_LAPACK_ORDER = 300
_LAPACK_SHARE = 4
_LANCZOS_PAIRS = 7e-6
"""Lanczos is faster than LAPACK on a dense random K if k is at most this many times n², measured at
n = 1000 and 2000. Random matrices are hard for Lanczos, most others easier."""

_DEVICE_BLOCK = 8
"""Vectors of a block on a device, where a product with a few costs as much as with one."""


class TopEigen(NamedTuple):
    """Eigenpairs, largest first, with error bounds."""

    values: Array
    """λ₁ ≥ … ≥ λ_k."""
    vectors: Array
    """(n, k), orthonormal columns."""
    residuals: Array
    """‖Kv − λv‖ of each pair: K has an eigenvalue within this distance of λ."""


@under_own_errstate
def top_eigen(
    K: Any,
    k: int,
    *,
    method: Method = "auto",
    tol: float = 1e-10,
    max_products: int | None = None,
    random_state: Any = None,
    device: Any = None,
) -> TopEigen:
    """Return the k algebraically largest eigenvalues of a symmetric K and their eigenvectors.

    Parameters
    ----------
    K : array, scipy sparse matrix, LinearOperator or matrix of `gramian.objectives`
        Symmetric, possibly indefinite.
    k : int
        Between 1 and n.
    method : {"auto", "lanczos", "lapack", "lro"}
        "lanczos" is block Lanczos with two random vectors, "lapack" the dense decomposition,
        "auto" the one expected to be faster. "lro" minimises ‖LLᵀ − K‖² over n × k factors, LRO
        eq. (3), by conjugate gradients with exact quartic steps, and computes the eigenvectors from
        L, eq. (4); it is slower and provided for comparison with the paper.
    tol : float
        Residuals relative to ‖K‖. The attainable value is limited by float64 products; Lanczos
        always continues to 1e-5, to separate multiple from close eigenvalues.
    max_products : int, optional
        Largest number of products of K with a vector. A ConvergenceWarning is issued if they do
        not suffice.
    random_state : int, RandomState, Generator or None
        Seeds the random start; None means seed 0, so that results are reproducible.
    device : None, "cpu", "cuda" or similar
        Device of the computation, by block Lanczos; K may be a tensor on that device.

    Returns
    -------
    TopEigen(values, vectors, residuals)
        The entry of largest absolute value of each vector is positive. Each residual bounds the
        distance to an eigenvalue. That no larger eigenvalue was missed is proved for "lapack" only,
        and holds otherwise with probability one, up to eigenvalues that coincide within the
        tolerance (see `gramian.linalg.block_lanczos`).
    """
    there = place(getattr(K, "device", None) if device is None else device)
    matrix = given(K, there)
    _check_arguments(k, matrix.order, method, tol, max_products)
    if (unit := matrix.unit) != 1.0:
        operator = matrix.matrix
        scaled = matrix.operator / unit if operator is None else Scaled(operator, 1.0 / unit)
        found = top_eigen(
            scaled, k, method=method, tol=tol, max_products=max_products,
            random_state=random_state, device=device,
        )  # fmt: skip
        return found._replace(values=unit * found.values, residuals=unit * found.residuals)
    k, seed = int(k), generator(random_state)
    with blas_threads_for(matrix.order**2):
        if method == "auto" or not there.is_host:
            method = "lapack" if _lapack_is_faster(matrix, k) else "lanczos"
        if method == "lapack":
            found = _lapack(matrix, k)
        elif method == "lanczos":
            block = min(k, 2 if there.is_host else _DEVICE_BLOCK)
            parts = block_lanczos(
                matrix, k, block=block, tol=tol, max_products=max_products, random_state=seed
            )
            found = TopEigen(*map(host, parts))
        else:
            subspace = lro_subspace(matrix, k, tol, max_products, seed)
            found = rayleigh_ritz(matrix, subspace, k)
    if method != "lapack":
        _warn_if_far(found, matrix, tol)
    return found._replace(vectors=found.vectors * row_signs(found.vectors.T))


def rayleigh_ritz(operator: Any, subspace: Array, k: int) -> TopEigen:
    """The k leading Ritz pairs of the span of an (n, r) array, r ≥ k."""
    basis = np.linalg.qr(subspace)[0]
    images = np.asarray(operator @ basis)
    small = basis.T @ images
    values, y = np.linalg.eigh((small + small.T) / 2)
    values, y = values[::-1][:k].copy(), y[:, ::-1][:, :k]
    vectors, images = basis @ y, images @ y
    return TopEigen(values, vectors, np.linalg.norm(images - vectors * values, axis=0))


def _lapack_is_faster(matrix: Given, k: int) -> bool:
    n = matrix.order
    if not matrix.place.is_host:
        return False
    if n <= _LAPACK_ORDER or _LAPACK_SHARE * k >= n:
        return True
    return matrix.dense is not None and k > _LANCZOS_PAIRS * n * n


def _lapack(matrix: Given, k: int) -> TopEigen:
    dense = matrix.dense
    if dense is None:
        dense = np.asarray(matrix @ np.eye(matrix.order))
    return rayleigh_ritz(matrix, largest_pairs(dense, k)[1], k)


def _warn_if_far(found: TopEigen, matrix: Given, tol: float) -> None:
    """Warn if residuals exceed the tolerance, with a margin for the estimate of ‖K‖."""
    norm = max(float(np.max(np.abs(found.values))), matrix.norm)
    shown = 4 * np.finfo(float).eps * np.sqrt(matrix.order)
    worst = float(np.max(found.residuals))
    if worst > 2 * max(tol, shown) * norm:
        warn(
            f"top_eigen stopped at a residual of {worst / norm:.2g} ‖K‖, above tol={tol:g}; "
            "increase tol or max_products, or use method='lapack'",
            ConvergenceWarning,
        )


def _check_arguments(k: Any, n: int, method: Any, tol: Any, max_products: Any) -> None:
    if not isinstance(k, int | np.integer) or isinstance(k, bool):
        raise ValueError(f"k must be an integer, got {k!r}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the order of K, {n}, got {k}")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if not isinstance(tol, int | float | np.floating) or not 0 <= tol < 1:
        raise ValueError(f"tol must be a number in [0, 1), got {tol!r}")
    if max_products is not None and not (isinstance(max_products, int) and max_products > 0):
        raise ValueError(f"max_products must be a positive integer, got {max_products!r}")
