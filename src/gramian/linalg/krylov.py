"""The leading eigenpair of a symmetric operator, by ARPACK unless another method is given.

Small orders use LAPACK.
"""

from contextlib import suppress
from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gramian.arrays.places import beside, column_squares, eye, host, namespace
from gramian.linalg._lanczos import (
    PRODUCTS_PER_CHECK,
    Array,
    CountedOperator,
    EigenPair,
    LanczosBasis,
    Operator,
    Probe,
    RandomState,
    probe,
    starting_vector,
)
from gramian.linalg.newton_eigen import newton_cg, newton_lanczos

DENSE_ORDER = 64
"""Order up to which all eigenvalues are computed at once."""

LONGEST_BASIS, BASIS_ELEMENTS, MOST_BASES = 300, 2**27, 20
"""Vectors and elements of a basis on a device, and the number of bases."""


def krylov(operator: CountedOperator, start: Array, tol: float, max_iter: int | None) -> EigenPair:
    """Find the leading eigenpair by ARPACK, from the Ritz vector of a short probe.

    ARPACK measures its residual relative to |λ| and does not stop for λ = 0, as for −∇F at an
    optimum; values below an absolute threshold it treats as zero. A is therefore shifted and
    scaled so that λ is about 1.
    """
    if operator.size <= DENSE_ORDER:
        values, vectors, _ = dense_pairs(operator, 1)
        return operator.pair(vectors[:, 0], tol, abs(float(values[0])))
    found = probe(operator, start)
    vector = found.vector
    if found.residual > tol * found.norm:
        # ARPACK returns nothing on failure: the probe's vector is the best known.
        with suppress(ArpackNoConvergence):
            vector = _arpack(operator, found, tol, max_iter)
    return operator.pair(vector, tol, found.norm)


def _arpack(operator: CountedOperator, found: Probe, tol: float, max_iter: int | None) -> Array:
    """Return an eigenvector of the leading eigenvalue of A, from that of (A + σI)/‖A‖."""
    n, norm = found.vector.size, found.norm
    lift = norm - found.high
    shifted = LinearOperator(
        (n, n), matvec=lambda v: (operator(v.ravel()) + lift * v.ravel()) / norm, dtype=np.float64
    )
    _, vectors = eigsh(shifted, k=1, which="LA", v0=found.vector, tol=tol, maxiter=max_iter)
    return np.asarray(vectors)[:, 0]


def restarted(
    operator: CountedOperator, start: Array, tol: float, max_iter: int | None
) -> EigenPair:
    """Find the leading eigenpair by Lanczos with long bases, restarted from the Ritz vector."""
    n, vector = operator.size, start
    longest = min(n, max(PRODUCTS_PER_CHECK, min(LONGEST_BASIS, BASIS_ELEMENTS // n)))
    for _ in range(max_iter or MOST_BASES):
        basis = LanczosBasis.of(operator, vector, longest)
        near = False
        while not (near or basis.full):
            basis.grow(operator)
            if basis.size % PRODUCTS_PER_CHECK == 0 or basis.full:
                value, y = basis.top()
                reach = max(abs(value), basis.reach)
                near = basis.residual(y) <= tol * reach
        vector = basis.combine(y)
        pair = operator.pair(vector, tol, reach)
        if pair.converged:
            break
    return pair


def dense_pairs(operator: CountedOperator, k: int) -> tuple[Array, Array, Array]:
    """The k leading Ritz pairs and residual norms by a dense eigenvalue decomposition."""
    matrix = host(operator(eye(operator.size, operator.place)))
    _, vectors = largest_pairs((matrix + matrix.T) / 2, k)
    return rayleigh_ritz(vectors, matrix @ vectors)


def largest_pairs(matrix: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues (descending) of a dense symmetric array, and eigenvectors."""
    n = matrix.shape[0]
    values, vectors = eigh(
        matrix.T, subset_by_index=[n - k, n - 1], check_finite=False, driver="evr"
    )
    if values.size < k:
        # With many equal eigenvalues LAPACK's bisection can miss some.
        values, vectors = (part[..., -k:] for part in np.linalg.eigh(matrix))
    return values[::-1], vectors[:, ::-1]


def rayleigh_ritz(vectors: Array, images: Array) -> tuple[Array, Array, Array]:
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


Method = Literal["krylov", "newton-lanczos", "newton-cg"]

METHODS = {
    "krylov": krylov,
    "newton-lanczos": newton_lanczos,
    "newton-cg": newton_cg,
}


def leading_eigenpair(
    operator: Operator,
    *,
    method: Method = "krylov",
    v0: Array | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    random_state: RandomState = None,
) -> EigenPair:
    """Return the eigenpair of the largest (algebraic) eigenvalue of a symmetric operator.

    Parameters
    ----------
    operator : anything with ``shape == (n, n)`` and ``@`` on (n,) and (n, k) arrays.
    method : "krylov" (ARPACK), "newton-lanczos" or "newton-cg" (BILGO, Algorithm 2). For an
        operator on a device it is always Lanczos, which runs there.
    v0 : an approximate eigenvector, to which a small random part is added.
    tol : the residual relative to max(|λ|, an estimate of ‖A‖). It is raised to the precision of
        the products, 4 √n ε.
    max_iter : limit on outer iterations (restarts for "krylov").
    random_state : seed or generator of the random start.

    Raises
    ------
    FloatingPointError
        If a product is not finite.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    counted = CountedOperator(operator)
    tol = max(tol, counted.precision)
    start = starting_vector(counted.size, v0, tol, random_state, counted.place)
    find = METHODS[method] if counted.place.is_host else restarted
    return find(counted, start, tol, max_iter)
