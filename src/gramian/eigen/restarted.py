"""The leading eigenpair by Lanczos, restarted from its best vector: all of it where A is."""

from gramian.eigen._base import Array, CountedOperator, EigenPair
from gramian.eigen._lanczos import LanczosBasis

_LONGEST, _LOOK, _RESTARTS = 120, 20, 20
"""Vectors of a basis, products after which its Ritz pairs are looked at, and bases at most."""


def restarted_lanczos(operator: CountedOperator, start: Array, tol: float) -> EigenPair:
    """Find the leading eigenpair; only the small tridiagonal matrices come to the host."""
    vector, reach = start, 0.0
    for _ in range(_RESTARTS):
        basis = LanczosBasis(vector, min(_LONGEST, operator.size), operator.precision)
        while not basis.full:
            basis.extend(operator(basis.last))
            if basis.size % _LOOK == 0 and _small(basis, tol):
                break
        values, vectors = basis.ritz()
        reach = max(reach, abs(float(values[0])), abs(float(values[-1])))
        vector = basis.combine(vectors[:, -1])
        if basis.exhausted or _small(basis, tol):
            break
    return operator.pair(vector, tol, reach)


def _small(basis: LanczosBasis, tol: float) -> bool:
    values, vectors = basis.ritz()
    reach = max(abs(float(values[0])), abs(float(values[-1])))
    return basis.residual(vectors[:, -1]) <= tol * reach
