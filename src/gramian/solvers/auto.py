"""The default: the method that the structure of the problem allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramian.problem import Problem
from gramian.solvers import eigenbasis as split
from gramian.solvers.base import Run, Settings, compress
from gramian.solvers.bilgo import bilgo
from gramian.solvers.lbfgs import lbfgs
from gramian.solvers.projected_gradient import projected_gradient

Array = NDArray[np.floating]

LARGE = 10_000


def auto(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The eigenbasis split where A and B commute, else BILGO-LS over the cone.

    Under a rank limit the split's answer is cut to that rank and refined there. A slice of fixed
    trace goes to projected gradient, the one method here that keeps the trace.
    """
    if split.refusal(problem, replace(settings, rank=None)) is None:
        if settings.rank is None or settings.rank >= problem.order:
            return split.eigenbasis(problem, factor, settings)
        return _cut_and_refine(problem, factor, settings, settings.rank)
    if problem.domain.trace is not None:
        return projected_gradient(problem, factor, settings)
    # L-BFGS keeps two dozen copies of the factor; conjugate gradient keeps three.
    return bilgo(problem, factor, settings, local="cg" if problem.order > LARGE else "lbfgs")


def _cut_and_refine(problem: Problem, factor: Array, settings: Settings, rank: int) -> Run:
    for step in split.eigenbasis(problem, factor, settings):
        assert step.certificate is not None and step.certificate.relative_gap is not None
        factor = step.factor
        if step.certificate.relative_gap <= settings.tol or settings.expired():
            break
    return (yield from lbfgs(problem, compress(factor, rank), settings))
