"""The outer loop of the Hessian-free Newton methods (BILGO, Algorithm 2)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramian.arrays.places import norm
from gramian.linalg._base import OUTER_ITERATIONS, Array, CountedOperator, EigenPair, Probe, probe

_MAX_REFRESH = 5
"""Restarts from a new product after the updated images have drifted."""
_LOOSEST_FORCING = 0.1
"""Largest relative residual of an inner solve."""


@dataclass(frozen=True)
class Centred:
    """B = (A + σI)/s, whose spectrum is approximately centred in [−1, 1].

    f has a nonzero minimiser only if the leading eigenvalue is positive, as it is for B. Centring
    also makes the iterates invariant to the scale and shift of A.
    """

    operator: CountedOperator
    sigma: float
    scale: float

    @classmethod
    def around(cls, operator: CountedOperator, found: Probe) -> "Centred":
        """Centre the operator on the interval found by a probe."""
        return cls(operator, -(found.high + found.low) / 2, (found.high - found.low) / 2)

    def __call__(self, vector: Array) -> Array:
        return self.shift(vector, self.operator(vector))

    def shift(self, vector: Array, image: Array) -> Array:
        """Return B·vector, given the image A·vector."""
        return (image + self.sigma * vector) / self.scale


@dataclass(frozen=True)
class Iterate:
    """A unit vector u and Bu; Algorithm 2's v is √ρ u, the best multiple of u.

    f(tu) = ¼(t⁴ − 2t²ρ + ‖B‖²_F), ρ = uᵀBu, is least at t² = ρ; there ∇f = √ρ (ρu − Bu).
    """

    u: Array
    image: Array
    previous: tuple[Array, Array] | None = None
    """The last direction and its image under B, if a method stores them."""

    @cached_property
    def rho(self) -> float:
        """The Rayleigh quotient of B, in [about 1, λ_max(B)]."""
        return float(self.u @ self.image)

    @cached_property
    def residual(self) -> float:
        """‖Bu − ρu‖."""
        return norm(self.image - self.rho * self.u)


Advance = Callable[[Centred, Iterate, float], Iterate]
"""One Newton step: (B, iterate, relative accuracy of the inner solve) → next iterate."""


def minimise(
    operator: CountedOperator, start: Array, advance: Advance, tol: float, max_iter: int | None
) -> EigenPair:
    """Minimise f(v) = ¼‖vvᵀ − B‖²_F by Newton steps from the Ritz vector of a short probe."""
    found = probe(operator, start)
    reach = found.norm
    if found.residual <= tol * reach:
        return operator.pair(found.vector, tol, reach)
    centred = Centred.around(operator, found)
    iterate = Iterate(found.vector, centred.shift(found.vector, found.image))
    left = OUTER_ITERATIONS if max_iter is None else max_iter
    for _ in range(_MAX_REFRESH):
        while left > 0 and iterate.residual > _target(centred, iterate, tol, reach):
            goal = _target(centred, iterate, tol, reach) / iterate.residual
            forcing = max(min(_LOOSEST_FORCING, np.sqrt(iterate.residual)), goal / 2)
            iterate = advance(centred, iterate, forcing)
            left -= 1
        pair = operator.pair(iterate.u, tol, reach)
        if pair.converged or left == 0:
            break
        # The images are updated, not recomputed: a large residual means that they have drifted.
        iterate = Iterate(pair.vector, centred(pair.vector))
    return pair


def _target(centred: Centred, iterate: Iterate, tol: float, reach: float) -> float:
    value = centred.scale * iterate.rho - centred.sigma
    return tol * max(abs(value), reach) / centred.scale
