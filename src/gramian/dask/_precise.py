"""Sweeps of a factor on the workers to a certified gap: what `alternating` does at home.

The number of columns does not change. Where the sweeps no longer lower F, the point is a local
minimum of this rank, and its certificate contains the cost of the rank.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from gramian.bounds import proved_certificate
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.dask._balance import balanced
from gramian.methods.alternating import SWEEPS_PER_CERTIFICATE, certified
from gramian.methods.base import Settings
from gramian.methods.quick import Quick
from gramian.problem import Problem
from gramian.proofs import PATIENCE
from gramian.result import Result, Status

CERTIFICATES = 100
"""Default number of certificates on the way."""


def to_a_gap(model: Any, problem: Problem, factor: Any) -> Result:
    """The result of sweeps from a factor until the certified relative gap is at most `tol`."""
    tol, started = model._tolerance, clock.now()
    bar = model._progress_bar(clock.left())
    sweeps = Quick(generator(model.random_state), started + clock.left(), started, watch=bar)
    try:
        factor, status = _swept(problem, factor, sweeps, tol, model.max_iter or CERTIFICATES)
    finally:
        if bar is not None:
            bar.close()
    factor = balanced(factor)
    result = sweeps.result(problem, factor, tol=tol, seconds=PATIENCE)
    return replace(result, status=status)


def _swept(
    problem: Problem, factor: Any, sweeps: Quick, tol: float, most: int
) -> tuple[Any, Status]:
    settings = Settings(rank=None, tol=tol, rng=sweeps.rng, deadline=sweeps.deadline)
    run = certified(problem, factor, settings, SWEEPS_PER_CERTIFICATE, partial(_proved, tol=tol))
    for _ in range(most):
        step = next(run, None)
        if step is None:
            return factor, Status.LOCAL
        factor = step.factor
        sweeps.tell(step, factor.shape[1])
        if step.certificate is not None and step.certificate.within(tol):
            return factor, Status.CONVERGED
        if sweeps.expired():
            return factor, Status.TIME_LIMIT
    return factor, Status.MAX_ITER


def _proved(problem: Problem, image: Any, *, tol: float) -> Certificate:
    return proved_certificate(problem, image, tol=tol, seconds=PATIENCE)[0]
