"""L-BFGS in whitened coordinates: what unfolds thousands of points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramian.problem import Problem
from gramian.result import Status
from gramian.solvers.base import Run, Settings, Step, compress, no_rank_limit
from gramian.solvers.growing import descent
from gramian.solvers.staircase import staircase

Array = NDArray[np.floating]

STEPS = (100, 800)
"""Steps of L-BFGS between the first certificates, and between the last."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why the problem has no whitened coordinates, None where it has."""
    if problem.domain.trace is not None or problem.objective.whitened() is None:
        return (
            "it needs distances along the edges of a connected graph, over M ⪰ 0, and an "
            "objective that a shift of all points does not change"
        )
    return no_rank_limit(problem, settings)


def whitened(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F(RYYᵀRᵀ) over Y, R a root of the graph's inverse Laplacian.

    The Hessian of a sum over edges is near the square of their Laplacian, whose conditioning grows
    with the number of points; in the coordinates Y it is the identity. L-BFGS goes on between
    certificates while F falls, and the staircase ends what it leaves.
    """
    white = problem.objective.whitened()
    assert white is not None
    inner = Problem(white.objective, problem.domain, name=problem.name)
    Y = white.coordinates(factor)
    for step in descent(inner, Y, settings, STEPS):
        Y = step.factor
        yield _placed(step, white.factor(Y))
    run = staircase(inner, compress(Y, Y.shape[1]), settings)
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            status: Status = end.value
            return status
        yield _placed(step, white.factor(step.factor))


def _placed(step: Step, factor: Array) -> Step:
    """The step in the coordinates of the problem, where λ_min is not known."""
    certificate = step.certificate
    if certificate is not None:
        trace = float(np.sum(factor * factor))
        certificate = replace(certificate, lambda_min=float("nan"), trace=trace)
    return replace(step, source=factor, certificate=certificate)
