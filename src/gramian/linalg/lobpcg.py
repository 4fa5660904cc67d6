"""The leading eigenpair by LOBPCG (locally optimal block preconditioned CG), through SciPy."""

import warnings

import numpy as np
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import lobpcg as scipy_lobpcg

from gramian.linalg._base import OUTER_ITERATIONS, Array, CountedOperator, EigenPair, probe

_LEAST_ORDER = 6
"""Order below which SciPy's LOBPCG does not run."""


def lobpcg(operator: CountedOperator, start: Array, tol: float, max_iter: int | None) -> EigenPair:
    """Find the leading eigenpair by LOBPCG with one vector and no preconditioner."""
    found = probe(operator, start)
    vector = found.vector
    if found.residual > tol * found.norm and operator.size >= _LEAST_ORDER:
        vector = _iterate(operator, vector, tol * found.norm, max_iter or OUTER_ITERATIONS)
    return operator.pair(vector, tol, found.norm)


def _iterate(operator: CountedOperator, vector: Array, goal: float, max_iter: int) -> Array:
    wrapped = LinearOperator(
        (operator.size, operator.size), matvec=operator, matmat=operator, dtype=np.float64
    )
    with warnings.catch_warnings():
        # SciPy warns if the tolerance is missed; the pair's `converged` reports it instead.
        warnings.simplefilter("ignore", UserWarning)
        _, vectors = scipy_lobpcg(
            wrapped, vector[:, None], largest=True, tol=goal, maxiter=max_iter
        )
    return np.asarray(vectors)[:, 0]
