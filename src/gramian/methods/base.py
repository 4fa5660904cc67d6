"""What a solver is: a generator of steps, and a declaration of what it can take.

A solver yields one `Step` an iteration and returns a `Status` when it has nothing left to do.
Stopping at the tolerance, limits, callbacks, history, interruption and divergence are the business
of `minimize`, so a solver's file holds its algorithm and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.linalg import bilateral
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.reductions.variants import written_out
from gramian.result import Status

Array = NDArray[np.floating]


ENDLESS = 1e6
"""A fall this many times as large as the values at the start, or as the last one that was looked
at, is worth a look for a ray."""

RESIDUALS = 4
"""Certificates running that must show small residuals, where no bound on the gap is known."""

SHORTEST_PROOF = 10.0
"""Seconds that a proof may take at least, however quick the run was before it."""


@dataclass
class Hint:
    """What is known within a run, and not by who goes on with it."""

    vector: Array | None = None
    """A direction in which F falls, that the proofs found and the solver did not."""
    latest: tuple[Any, Array] | None = None
    """The last point of a descent that may be cut off before it is told, and its objective."""


@dataclass(frozen=True)
class Step:
    """One iterate and what the solver knows of it."""

    source: Array | Callable[[], Array]
    """The factor, or how to make it where that costs something and few will ask."""
    value: float
    certificate: Certificate | None = None
    trace: dict[str, float] = field(default_factory=dict)
    """What the solver tells of itself: rank (if not the factor's), lambda_max, alpha, beta, …"""
    dual: Array | None = None
    """The dual vector behind the certificate, where it is not that of the factor."""
    method: str = ""
    """The name of the method that found it."""

    @cached_property
    def factor(self) -> Array:
        return self.source() if callable(self.source) else self.source

    @property
    def rank(self) -> int:
        return int(self.trace["rank"]) if "rank" in self.trace else self.factor.shape[1]


Run = Generator[Step, None, Status]


def entering(method: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that names the method in the steps of a solver that have no name yet."""

    def decorate(run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def named(*given: Any, **options: Any) -> Any:
            steps = run(*given, **options)
            while True:
                try:
                    step = next(steps)
                except StopIteration as end:
                    return end.value
                yield step if step.method else replace(step, method=method)

        return named

    return decorate


@dataclass(frozen=True)
class Outcome:
    """The end of a run: its best point, on the host, and what is proved about it."""

    factor: Array
    certificate: Certificate
    status: Status
    dual: Array | None = None
    ray: Array | None = None
    dimacs: tuple[float, ...] | None = None
    first_value: float = np.inf
    """F at the start, where that point is feasible."""


@dataclass
class Sweeps:
    """Whether first-order steps are taken in float32, until its digits do no longer do."""

    single: bool = False


@dataclass(frozen=True)
class Settings:
    """What every solver is told."""

    rank: int | None
    tol: float
    rng: np.random.Generator
    deadline: float = np.inf
    started: float = field(default_factory=clock.now)
    hint: Hint = field(default_factory=Hint)
    sweeps: Sweeps = field(default_factory=lambda: Sweeps())

    def expired(self) -> bool:
        """Whether the time is up; inner loops ask too."""
        return clock.passed(self.deadline)

    def last_deadline(self) -> float:
        """When the last certificate must be there."""
        return clock.last_deadline(self.started, self.deadline)

    def proof_seconds(self) -> float:
        """What a proof may take: as long as the run so far, ten seconds at least, and no more than
        is left for the last certificate.
        """
        now = clock.now()
        return float(min(self.last_deadline() - now, max(SHORTEST_PROOF, now - self.started)))


@dataclass(frozen=True)
class Solver:
    """An algorithm with its name and what it accepts."""

    name: str
    run: Callable[..., Run]
    summary: str
    accepts: str
    refusal: Callable[[Problem, Settings], str | None]
    """Why it cannot take a problem, None where it can."""
    max_iter: int = 1000
    """Iterations at most, unless told."""
    on_host: bool = False
    """Whether it computes on the host alone."""

    @cached_property
    def options(self) -> list[str]:
        """The keyword options of this solver."""
        parameters = inspect.signature(self.run).parameters.values()
        return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def needs_cone(problem: Problem, settings: Settings) -> str | None:
    """The refusal of solvers whose steps leave a slice of fixed trace."""
    if problem.domain.bounded:
        return f"it works over the whole cone M ⪰ 0, and this problem has {problem.domain}"
    return None


def accepts_all(problem: Problem, settings: Settings) -> None:
    """Nothing is refused."""


def no_rank_limit(problem: Problem, settings: Settings) -> str | None:
    """The refusal of solvers that find the rank of the optimum themselves."""
    if settings.rank is not None and settings.rank < problem.order:
        return "it finds the rank of the optimum, and a smaller rank was asked for"
    return None


def slack_norm(factor: Array, gradient_factor: Array) -> float:
    """γ_slack = ‖∇F(M)M‖_F of BILGO §2, from 2∇F(M)L and small Gram products."""
    residual = 0.5 * gradient_factor
    square = inner(residual.T @ residual, factor.T @ factor)
    return float(np.sqrt(max(square, 0.0)))


def for_steps(objective: Objective, settings: Settings) -> Objective:
    """What a descent computes with: the quicker form of F, or F where it sweeps in float32."""
    return objective if settings.sweeps.single else written_out(objective)


def at_rest(problem: Problem, settings: Settings) -> Status:
    """What it means when a local method finds no step: the best of a limited rank, or a stall."""
    limited = settings.rank is not None and settings.rank < problem.order
    return Status.LOCAL if limited else Status.STALLED


def falls_for_ever(objective: Objective, image: Any) -> bool:
    """Whether F(αM) has no minimum in α ≥ 0."""
    zero = objective.image(image.factor[:, :0])
    return bilateral(objective.blend(image, zero).restriction)[2] == -np.inf
