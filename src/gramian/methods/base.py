"""The interface of solvers: a generator of steps, and a function that rejects problems.

A solver yields one `Step` per iteration and returns a `Status` at the end. `minimize` handles the
tolerance, limits, callbacks, history, interruption and divergence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np

from gramian.arrays.places import inner
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg import bilateral
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.result import Status

RAY_SEARCH_DECREASE = 1e6
"""Decrease of F, in units of its magnitude at the start or at the last test, after which a ray is
searched along which F is unbounded."""

MIN_SMALL_RESIDUALS = 4
"""Consecutive certificates that must have small residuals if no bound on the gap is known."""

MIN_PROOF_SECONDS = 10.0
"""Minimum time limit of a proof, in seconds."""


@dataclass
class RunState:
    """What the steps, the descents and the proofs of one run leave for each other."""

    direction: Array | None = None
    """A direction of decrease that a proof found and the solver did not."""
    latest: tuple[Any, Array] | None = None
    """The objective and the last iterate of a descent, used if the descent is interrupted."""
    single: bool = False
    """Whether first-order steps use float32; False once its precision is insufficient."""


@dataclass(frozen=True)
class Step:
    """One iterate and its certificate."""

    source: Array | Callable[[], Array]
    """The factor, or a function that returns it if that is expensive."""
    value: float
    certificate: Certificate | None = None
    trace: dict[str, float] = field(default_factory=dict)
    """Further columns of the history: rank (if not the factor's), lambda_max, alpha, beta, …"""
    dual: Array | None = None
    """The dual vector of the certificate, if it is not that of the factor."""
    method: str = ""
    """The name of the method."""

    @cached_property
    def factor(self) -> Array:
        return self.source() if callable(self.source) else self.source

    @property
    def rank(self) -> int:
        return int(self.trace["rank"]) if "rank" in self.trace else self.factor.shape[1]


Run = Generator[Step, None, Status]


def entering(method: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that sets the method's name in the steps of a solver that have none."""

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
class Settings:
    """The arguments of every solver, and the state of the run."""

    rank: int | None
    tol: float
    rng: np.random.Generator
    deadline: float = np.inf
    started: float = field(default_factory=clock.now)
    state: RunState = field(default_factory=RunState)

    def expired(self) -> bool:
        """Whether the time is up; also tested in inner loops."""
        return clock.passed(self.deadline)

    def last_deadline(self) -> float:
        """Deadline of the final certificate."""
        return clock.last_deadline(self.started, self.deadline)

    def proof_seconds(self) -> float:
        """Time limit of a proof: as long as the run so far, at least `MIN_PROOF_SECONDS`, and at
        most the time left for the final certificate.
        """
        now = clock.now()
        return float(min(self.last_deadline() - now, max(MIN_PROOF_SECONDS, now - self.started)))


@dataclass(frozen=True)
class Solver:
    """An algorithm with its name and the problems it accepts."""

    name: str
    run: Callable[..., Run]
    summary: str
    accepts: str
    refusal: Callable[[Problem, Settings], str | None]
    """The reason why the solver does not accept a problem; None if it accepts it."""
    max_iter: int = 1000
    """Default maximum number of iterations."""
    on_host: bool = False
    """Whether the solver computes on the host only."""

    @cached_property
    def options(self) -> list[str]:
        """The keyword options of this solver."""
        parameters = inspect.signature(self.run).parameters.values()
        return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def needs_cone(problem: Problem, settings: Settings) -> str | None:
    """The refusal of solvers whose steps do not keep a fixed trace."""
    if problem.domain.bounded:
        return f"it works over the whole cone M ⪰ 0, and this problem has {problem.domain}"
    return None


def accepts_all(problem: Problem, settings: Settings) -> None:
    """Accept every problem."""


def no_rank_limit(problem: Problem, settings: Settings) -> str | None:
    """The refusal of solvers that determine the rank of the optimum themselves."""
    if settings.rank is not None and settings.rank < problem.order:
        return "it finds the rank of the optimum, but a smaller rank was requested"
    return None


def slack_norm(factor: Array, gradient_factor: Array) -> float:
    """γ_slack = ‖∇F(M)M‖_F of BILGO §2, from 2∇F(M)L and small Gram products."""
    residual = 0.5 * gradient_factor
    square = inner(residual.T @ residual, factor.T @ factor)
    return float(np.sqrt(max(square, 0.0)))


def at_rest(problem: Problem, settings: Settings) -> Status:
    """The status if a local method finds no step: LOCAL at a limited rank, otherwise STALLED."""
    limited = settings.rank is not None and settings.rank < problem.order
    return Status.LOCAL if limited else Status.STALLED


def is_unbounded_on_ray(objective: Objective, image: Any) -> bool:
    """Whether F(αM) has no minimum over α ≥ 0."""

    zero = objective.image(image.factor[:, :0])
    return bilateral(objective.blend(image, zero).restriction)[2] == -np.inf
