"""The leading eigenpair of a symmetric operator by one of several matrix-free methods."""

from typing import Literal

from gramian.linalg._base import (
    Array,
    CountedOperator,
    EigenPair,
    Operator,
    RandomState,
    starting_vector,
)
from gramian.linalg.krylov import krylov
from gramian.linalg.lobpcg import lobpcg
from gramian.linalg.newton_cg import newton_cg
from gramian.linalg.newton_lanczos import newton_lanczos

Method = Literal["krylov", "newton-lanczos", "newton-cg", "lobpcg"]

METHODS = {
    "krylov": krylov,
    "newton-lanczos": newton_lanczos,
    "newton-cg": newton_cg,
    "lobpcg": lobpcg,
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
    method : "krylov" (ARPACK), "newton-lanczos", "newton-cg" (BILGO, Algorithm 2) or "lobpcg". An
        operator on a device is always solved by "newton-lanczos", which runs there.
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
    if not counted.place.is_host:
        method = "newton-lanczos"
    return METHODS[method](counted, start, tol, max_iter)
