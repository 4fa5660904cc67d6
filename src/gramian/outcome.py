"""The end of a run: the checks of its outcome, and the `Result` made from it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian.bounds import CONTRADICTION, VALUE_ROUNDING, without_convexity
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.types import Array
from gramian.common.warnings import warn
from gramian.problem import Problem
from gramian.result import History, Result, Status


class InconsistentResultWarning(RuntimeWarning):
    """A result is inconsistent: a bug of the library, or of an objective or loss of the user."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run: its best point, on the host, and its certificate."""

    factor: Array
    certificate: Certificate
    status: Status
    dual: Array | None = None
    ray: Array | None = None
    dimacs: tuple[float, ...] | None = None
    hint: str = ""
    first_value: float = np.inf
    """F at the start, if that point is feasible."""


def result_of(
    problem: Problem | str,
    outcome: Outcome,
    *,
    tol: float,
    solver: str,
    route: tuple[str, ...],
    started: float,
    history: History | None = None,
) -> Result:
    """The result of a run, whose outcome is checked.

    `problem` is its name if the time is up before F can be evaluated again. Without a `history`,
    it has one record.
    """
    outcome = _consistent(problem, outcome, tol)
    value, seconds = outcome.certificate.value, clock.elapsed(started)
    if history is None:
        rank = float(outcome.factor.shape[1])
        history = History([{"iteration": 0.0, "time": seconds, "value": value, "rank": rank}])
    return Result(
        factor=outcome.factor,
        value=value,
        status=outcome.status,
        certificate=outcome.certificate,
        history=history,
        solver=solver,
        route=route or (solver,),
        problem=_name(problem),
        formula="" if isinstance(problem, str) else problem.displayed,
        seconds=seconds,
        dual=outcome.dual,
        ray=outcome.ray,
        dimacs=outcome.dimacs,
        hint=outcome.hint,
    )


def _name(problem: Problem | str) -> str:
    return problem if isinstance(problem, str) else problem.name


def _consistent(problem: Problem | str, outcome: Outcome, tol: float) -> Outcome:
    """Return the outcome; if it is inconsistent, warn and lower its status."""
    fault = _fault(problem, outcome, tol)
    if fault is None and not isinstance(problem, str) and isinstance(outcome.factor, np.ndarray):
        found = without_convexity(problem, outcome.factor, outcome.certificate)
        if found is not outcome.certificate:
            outcome = replace(outcome, certificate=found, dual=None)
            fault = f"{found.method.removeprefix('none: ')}, so no lower bound on F holds"
    if fault is None:
        return outcome
    warn(
        f"the result of {_name(problem)!r} is not consistent: {fault}. If its loss, map or "
        "objective is your own, test it with gramian.checks (check_conjugate, check_gradient, "
        "check_adjoint), and whether it is convex; otherwise please report a bug of gramian",
        InconsistentResultWarning,
    )
    broken = not np.isfinite(outcome.certificate.value)
    return replace(outcome, status=Status.DIVERGED if broken else Status.STALLED, ray=None)


def _is_ray(problem: Problem, ray: Array | None) -> bool:
    """Whether F is unbounded below along VVᵀ; with constraints the ray was proved before."""
    if ray is None or problem.constraints:
        return ray is not None
    objective = problem.objective
    slope, error = objective.recession(objective.image(objective.place.put(ray)))
    return slope < -error


def _is_finite(factor: Any) -> bool:
    """Whether the entries are finite; those of a factor on a cluster by the sum of squares."""
    if isinstance(factor, np.ndarray):
        return bool(np.isfinite(factor).all())
    return bool(np.isfinite(factor.square()))


def _fault(problem: Problem | str, outcome: Outcome, tol: float) -> str | None:
    """Describe the inconsistency of an outcome; None if it is consistent."""
    certificate, status, first = outcome.certificate, outcome.status, outcome.first_value
    value = certificate.value
    if not (_is_finite(outcome.factor) and np.isfinite(value)):
        return "its factor or its value is not finite"
    if certificate.method == CONTRADICTION:
        return "a lower bound is above F, so F is not convex or its conjugate is wrong"
    if isinstance(problem, str):
        return None
    size = max(problem.scale, abs(first) if np.isfinite(first) else 0.0)
    if value > first + VALUE_ROUNDING * size:
        return f"F = {value:.6g} is above its start, {first:.6g}"
    with suppress(clock.TimeUpError):  # if the time is up, only known bounds are compared
        if value < problem.objective.growth().least - VALUE_ROUNDING * max(size, abs(value)):
            return f"F = {value:.6g} is below its lower bound"
    bounded = certificate.gap is not None and certificate.proved
    if status is Status.UNBOUNDED and (bounded or not _is_ray(problem, outcome.ray)):
        return "its status is unbounded, but a bound is proved or the ray is missing"
    if status is Status.CONVERGED and not (
        certificate.within(tol) and certificate.violation <= tol
    ):
        return f"its status is converged, but its relative gap is {certificate.relative_gap}"
    return None
