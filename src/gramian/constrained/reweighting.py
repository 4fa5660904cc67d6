"""Sums of concave functions of distances, minimised by convex majorants.

ln(1 + d) is at most its tangent, a multiple of d: with the weights ω_e = 1/(1 + d_e) of the last
iterate, a convex problem majorises the non-convex one, so that decreasing it decreases both
(majorise and minimise). Each round takes some steps with the weights of the previous iterate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramian.methods.base import Settings
from gramian.methods.lbfgs import descend
from gramian.problem import Problem

Array = NDArray[np.floating]

ROUND_STEPS, LAST_ROUND_STEPS = 20, 200
"""L-BFGS steps of a round, and of the last round. With 50 steps a round, layouts of 500 digits,
texts and images are no better, and take 1.6 times as long."""

LAST_GRADIENT, LBFGS_PAIRS = 1e-4, 10
"""Relative gradient at which the last round ends, and correction pairs of L-BFGS."""


def reweighted(
    problem_of: Callable[[Array], Problem],
    weights_of: Callable[[Array], Array],
    weights: Array,
    factor: Array,
    settings: Settings,
    *,
    rounds: int,
) -> tuple[Array, Array]:
    """The factor after `rounds` rounds, and the weights of the last problem."""

    for turn in range(rounds):
        last = turn == rounds - 1
        factor = descend(
            problem_of(weights).objective,
            factor,
            settings,
            iterations=LAST_ROUND_STEPS if last else ROUND_STEPS,
            tol=LAST_GRADIENT if last else 0.0,
            memory=LBFGS_PAIRS,
        )
        if last or settings.expired():
            break
        weights = weights_of(factor)
    return factor, weights
