"""Sweeps of a factor on the workers to a certified gap: what `alternating` does at home.

They keep to the columns that the factor has. Where sweeps of so many do no longer move, the point
is the best of this rank nearby, and its certificate says what that costs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from gramian.bounds import proved_certificate
from gramian.certificate import Certificate
from gramian.dask._spread import Spread
from gramian.methods.alternating import SWEEPS_PER_CERTIFICATE, certified
from gramian.methods.base import Settings
from gramian.methods.quick import Quick
from gramian.problem import Problem
from gramian.proofs import PATIENCE
from gramian.result import Status

MOST = 100
"""Certificates on the way, unless told."""


def to_a_gap(
    problem: Problem, factor: Spread, sweeps: Quick, tol: float, most: int | None
) -> tuple[Spread, Status]:
    """The factor whose certified relative gap is at most `tol`, or the last, and how it ended."""
    settings = Settings(rank=None, tol=tol, rng=sweeps.rng, deadline=sweeps.deadline)
    run = certified(problem, factor, settings, SWEEPS_PER_CERTIFICATE, partial(_proved, tol=tol))
    for _ in range(most or MOST):
        step = next(run, None)
        if step is None:
            return factor, Status.LOCAL
        there: Any = step.factor
        factor = there
        sweeps.tell(step, factor.shape[1])
        gap = None if step.certificate is None else step.certificate.relative_gap
        if gap is not None and gap <= tol:
            return factor, Status.CONVERGED
        if sweeps.expired():
            return factor, Status.TIME_LIMIT
    return factor, Status.MAX_ITER


def _proved(problem: Problem, image: Any, *, tol: float) -> Certificate:
    return proved_certificate(problem, image, tol=tol, seconds=PATIENCE)[0]
