"""The default: the method that the structure of the problem allows."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gramian.problem import Problem
from gramian.solvers import eigenbasis as split
from gramian.solvers.base import Run, Settings, compress
from gramian.solvers.bilgo import bilgo
from gramian.solvers.frank_wolfe import frank_wolfe
from gramian.solvers.frank_wolfe import refusal as atoms_refusal
from gramian.solvers.lbfgs import lbfgs

Array = NDArray[np.floating]

LARGE = 10_000
SPLIT_STEPS = 100
"""The answer to be cut need not be exact."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Nothing is refused but a rank limit together with a fixed trace."""
    return None if problem.domain.trace is None else atoms_refusal(problem, settings)


def auto(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The eigenbasis split where A and B commute, else BILGO-LS over the cone.

    Under a rank limit the split's answer is cut to that rank and refined there. A slice of fixed
    trace goes to Frank–Wolfe with local search.
    """
    if split.refusal(problem, replace(settings, rank=None)) is None:
        if settings.rank is None or settings.rank >= problem.order:
            return split.eigenbasis(problem, factor, settings)
        return _cut_and_refine(problem, factor, settings, settings.rank)
    if problem.domain.trace is not None:
        return frank_wolfe(problem, factor, settings)
    # L-BFGS keeps two dozen copies of the factor; conjugate gradient keeps three.
    return bilgo(problem, factor, settings, local="cg" if problem.order > LARGE else "lbfgs")


def _cut_and_refine(problem: Problem, factor: Array, settings: Settings, rank: int) -> Run:
    step = None
    for step in islice(split.eigenbasis(problem, factor, settings), SPLIT_STEPS):
        assert step.certificate is not None and step.certificate.relative_gap is not None
        if step.certificate.relative_gap <= settings.tol or settings.expired():
            break
    assert step is not None
    return (yield from lbfgs(problem, compress(step.factor, rank), settings))
