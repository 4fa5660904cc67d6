"""Leading eigenpairs by implicitly restarted Lanczos (ARPACK), or densely at small order."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gramian.backends.arrays import beside, column_squares, host, namespace
from gramian.eigen._base import Array, CountedOperator, EigenPair, Probe, probe

Product = Callable[[Array], Array]

_DENSE_LIMIT = 64
_DENSE_SHARE = 3


def krylov(operator: CountedOperator, start: Array, tol: float, max_iter: int | None) -> EigenPair:
    """Find the leading eigenpair by ARPACK, from the Ritz vector of a short probe.

    ARPACK measures its residual against |λ| alone and never stops where λ = 0, as it is for
    −∇F at an optimum; below an absolute threshold it takes everything for zero. A is therefore
    shifted and scaled until λ is about 1.
    """
    if operator.size <= _DENSE_LIMIT:
        values, vectors, _ = _dense(operator, 1)
        return operator.pair(vectors[:, 0], tol, abs(float(values[0])))
    found = probe(operator, start)
    vector = found.vector
    if found.residual > tol * found.norm:
        # With k = 1 ARPACK gives nothing back on failure: the probe's vector is the best known.
        with suppress(ArpackNoConvergence):
            vector = _arpack(operator, found, 1, tol, max_iter)[:, 0]
    return operator.pair(vector, tol, found.norm)


def krylov_several(
    operator: CountedOperator,
    k: int,
    start: Array,
    tol: float,
    max_iter: int | None,
    complete: bool,
) -> tuple[Array, Array, Array]:
    """Return the k leading eigenvalues (descending), eigenvectors (n, k) and residual norms.

    A Krylov space of one vector holds one copy of a multiple eigenvalue. With `complete`,
    ARPACK searches again beside the pairs found until nothing larger is left.
    Raises scipy's ArpackNoConvergence if ARPACK does not find all that it is asked for.
    """
    if operator.size <= _DENSE_LIMIT or _DENSE_SHARE * k >= operator.size:
        return _dense(operator, k)
    found = probe(operator, start)
    vectors = _arpack(operator, found, k, tol, max_iter)
    values, vectors, residuals = _rayleigh_ritz(vectors, operator(vectors))
    while complete:
        beside = _arpack(_deflated(operator, values, vectors, found), found, 1, tol, max_iter)
        together = np.column_stack((vectors, beside))
        more, vectors, residuals = (
            part[..., :k] for part in _rayleigh_ritz(together, operator(together))
        )
        complete = bool(np.any(more > values + tol * found.norm))
        values = more
    return values, vectors, residuals


def _deflated(product: Product, values: Array, vectors: Array, found: Probe) -> Product:
    """Return A − V diag(λ − low) Vᵀ: the pairs found are moved to the bottom of the spectrum."""
    return lambda v: product(v) - vectors @ ((values - found.low) * (vectors.T @ v))


def _arpack(product: Product, found: Probe, k: int, tol: float, max_iter: int | None) -> Array:
    """Return eigenvectors of the k leading eigenvalues of A, from those of (A + σI)/‖A‖."""
    n, norm = found.vector.size, found.norm
    lift = norm - found.high
    shifted = LinearOperator(
        (n, n), matvec=lambda v: (product(v.ravel()) + lift * v.ravel()) / norm, dtype=np.float64
    )
    _, vectors = eigsh(shifted, k=k, which="LA", v0=found.vector, tol=tol, maxiter=max_iter)
    return np.asarray(vectors)


def _dense(operator: CountedOperator, k: int) -> tuple[Array, Array, Array]:
    n = operator.size
    matrix = operator(np.eye(n))
    symmetric = (matrix + matrix.T) / 2
    _, vectors = eigh(symmetric, subset_by_index=[n - k, n - 1])
    if vectors.shape[1] < k:  # LAPACK's subset can lose copies of an eigenvalue
        vectors = np.linalg.eigh(symmetric)[1][:, n - k :]
    return _rayleigh_ritz(vectors, matrix @ vectors)


def _rayleigh_ritz(vectors: Array, images: Array) -> tuple[Array, Array, Array]:
    """Return the Ritz pairs of span(vectors), largest first, with their residual norms."""
    basis, triangle = namespace(vectors).linalg.qr(vectors)
    if isinstance(vectors, np.ndarray):
        images = np.linalg.solve(triangle.T, images.T).T
    else:
        images = images @ beside(images, np.linalg.inv(host(triangle)))
    small = host(basis.T @ images)
    values, y = np.linalg.eigh((small + small.T) / 2)
    values, y = values[::-1].copy(), beside(basis, y[:, ::-1])
    vectors, images = basis @ y, images @ y
    lost = images - vectors * beside(basis, values)
    return values, vectors, np.sqrt(host(column_squares(lost)))
