"""What a solver is: a generator of steps, and a declaration of what it can take.

A solver yields one `Step` an iteration and returns a `Status` when it has nothing left to do.
Stopping at the tolerance, limits, callbacks, history, interruption and divergence are the business
of `minimize`, so a solver's file holds its algorithm and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.backends.arrays import beside, contiguous, host, inner, norm, place_of
from gramian.backends.dense import eigh
from gramian.certificate import ZERO, Certificate
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.result import Status
from gramian.search import bilateral

Array = NDArray[np.floating]


ENDLESS = 1e6
"""A fall this many times as large as the values at the start, or as the last one that was looked
at, is worth a look for a ray."""

RESIDUALS = 4
"""Certificates running that must show small residuals, where no bound on the gap is known."""

CUT_NOISE = 0.01
"""Size of the noise that is added to a factor cut to a lower rank, relative to the factor."""

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

    @cached_property
    def factor(self) -> Array:
        return self.source() if callable(self.source) else self.source

    @property
    def rank(self) -> int:
        return int(self.trace["rank"]) if "rank" in self.trace else self.factor.shape[1]


Run = Generator[Step, None, Status]


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
    route: list[str] = field(default_factory=list)
    """The methods that the run has gone through, in their order."""

    sweeps: Sweeps = field(default_factory=lambda: Sweeps())

    def enters(self, method: str) -> None:
        """Tell which method goes on from here."""
        if not self.route or self.route[-1] != method:
            self.route.append(method)

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


def is_optimal(certificate: Certificate, tol: float) -> bool:
    """Whether the certified relative gap is within tol.

    Without a bound on the gap, both optimality conditions have to hold to the tolerance: ⟨∇F, M⟩,
    and what −λ_min could win on a matrix of this trace.
    """
    if certificate.relative_gap is not None:
        return certificate.relative_gap <= tol
    if certificate.lambda_min < 0 and certificate.trace == 0:
        return False
    size = max(abs(certificate.value), ZERO * certificate.scale)
    below = -certificate.lambda_min * certificate.trace
    return abs(certificate.complementarity) <= tol * size and below <= tol * size


def slack_norm(factor: Array, gradient_factor: Array) -> float:
    """γ_slack = ‖∇F(M)M‖_F of BILGO §2, from 2∇F(M)L and small Gram products."""
    residual = 0.5 * gradient_factor
    square = inner(residual.T @ residual, factor.T @ factor)
    return float(np.sqrt(max(square, 0.0)))


def compress(factor: Array, rank: int) -> Array:
    """The closest factor of at most `rank` columns, without columns that carry nothing."""
    values, vectors = columns_by_size(factor)
    kept = values > 1e-14 * max(values[0], 0.0) if values.size else values > 0
    return contiguous(factor @ beside(factor, vectors[:, kept][:, :rank]))


def cut(factor: Array, settings: Settings) -> Array:
    """The closest factor of the rank allowed, plus noise of a hundredth of its size.

    A factor cut from an optimum keeps its symmetries (zero blocks, invariant subspaces), which no
    gradient leaves: without noise, descent from it may end at a saddle point.
    """
    closest = compress(factor, settings.rank or factor.shape[0])
    if settings.expired():
        return closest
    noise = place_of(closest).normal(settings.rng, closest.shape)
    spread: Array = CUT_NOISE * norm(closest) / max(norm(noise), 1.0) * noise
    return closest + spread


def for_steps(objective: Objective, settings: Settings) -> Objective:
    """What a descent computes with: the quicker form of F, or F where it sweeps in float32."""
    return objective if settings.sweeps.single else objective.for_steps


def columns_by_size(factor: Array) -> tuple[Array, Array]:
    """The eigenvalues of LᵀL, the largest first, and the rotation that they belong to."""
    values, vectors = eigh(host(factor.T @ factor))
    return values[::-1], vectors[:, ::-1]


def starting_factor(problem: Problem, settings: Settings) -> Array:
    """A random factor of the rank allowed, scaled so that F is least along its ray.

    Where M = 0 is the best of the ray, the factor is small: at 0 itself the gradient vanishes.
    """
    objective = problem.objective
    columns = settings.rank or objective.rank_bound()
    L = objective.place.normal(settings.rng, (problem.order, columns))
    L = L / float(np.sqrt(problem.order))
    zero = objective.image(L[:, :0])
    blend = objective.blend(objective.image(L), zero)
    alpha, _, value = bilateral(blend.restriction)
    return L * float(np.sqrt(alpha if np.isfinite(value) and alpha > 0 else 1e-2))


def at_rest(problem: Problem, settings: Settings) -> Status:
    """What it means when a local method finds no step: the best of a limited rank, or a stall."""
    limited = settings.rank is not None and settings.rank < problem.order
    return Status.LOCAL if limited else Status.STALLED


def falls_for_ever(objective: Objective, image: Any) -> bool:
    """Whether F(αM) has no minimum in α ≥ 0."""
    zero = objective.image(image.factor[:, :0])
    return bilateral(objective.blend(image, zero).restriction)[2] == -np.inf
