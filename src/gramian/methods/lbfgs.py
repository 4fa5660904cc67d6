"""L-BFGS on the factor: Burer and Monteiro's local method, alone or inside BILGO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramian.arrays.places import (
    as_double,
    as_single,
    beside,
    contiguous,
    host,
    largest,
    namespace,
    norm,
    read,
    recorded,
    scalars,
    size,
    unread,
)
from gramian.bounds import certify_image
from gramian.common import clock
from gramian.common.types import Array
from gramian.domains import Domain, PSDCone
from gramian.linalg import Point, quasi_newton
from gramian.linalg.quasi_newton import Pairs
from gramian.methods.base import Run, Settings, Step, at_rest, entering, is_unbounded_on_ray
from gramian.methods.columns import starting_factor
from gramian.methods.loop import Progress, rounds
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.reductions.variants import single_precision
from gramian.result import Status

CONE = PSDCone()
CORRECTION_PAIRS = 20
"""Correction pairs, as in LRO §5.4."""

MAX_RECORDED_NUMBERS = 2**23
"""Numbers of a factor and its image up to which an evaluation is recorded: a record keeps its
intermediate results. With MovieLens 1M an evaluation takes 5.1 ms without and 3.1 ms with it."""


@dataclass
class StoredPairs:
    """The correction pairs of a descent, for a later descent that continues it."""

    pairs: Pairs | None = None

    def at(self, start: Array, memory: int) -> Pairs:
        """The stored pairs, or new ones if the shape or the precision of the factor changed."""
        kept = self.pairs
        if kept is None or kept.block.shape[1] != size(start) or kept.block.dtype != start.dtype:
            self.pairs = kept = Pairs(start, memory)
        return kept


def descend(
    objective: Objective,
    factor: Array,
    settings: Settings,
    *,
    iterations: int,
    tol: float = 0.0,
    domain: Domain = CONE,
    memory: int = CORRECTION_PAIRS,
    watch: Callable[[Any], object] | None = None,
    going: StoredPairs | None = None,
    scales: Array | None = None,
) -> Array:
    """A local minimum of L ↦ F(LLᵀ) near `factor`, or the best point within the iterations.

    Stops when the gradient is `tol` times its first size. In a `domain` of trace τ the factor is
    L = √τ U/‖U‖, which keeps tr LLᵀ = τ for any U. `watch` is called with the image of every
    iterate, valid during the call, and ends the descent by returning True. With `scales` s the
    variable is Y in L = Y diag(s). `going` supplies the pairs of the last descent and keeps those
    of this one. If the run uses float32, its steps come first; when their precision is
    insufficient, float64 is used for the rest of the run.
    """
    if factor.shape[1] == 0:
        return factor
    rules: dict[str, Any] = {"tol": tol, "domain": domain, "memory": memory, "watch": watch}
    rules |= {"going": going or StoredPairs(), "scales": scales}
    rough = single_precision(objective) if settings.state.single else None
    if rough is not None:
        found, steps, met = _descended(rough, as_single(factor), settings, iterations, **rules)
        factor, iterations = as_double(found), iterations - steps
        if met or iterations == 0 or settings.expired():
            return factor
        settings.state.single = False
    return _descended(objective, factor, settings, iterations, **rules)[0]


def _descended(
    objective: Objective,
    factor: Array,
    settings: Settings,
    iterations: int,
    *,
    tol: float,
    domain: Domain,
    memory: int,
    watch: Callable[[Any], object] | None,
    going: StoredPairs,
    scales: Array | None,
) -> tuple[Array, int, bool]:
    """The end of an L-BFGS run, its number of steps, and whether it converged."""
    xp, steps, framed, seen = namespace(factor), 0, clock.on_frame(), False
    first: float | None = None
    widths = None if scales is None else xp.astype(beside(factor, scales), factor.dtype)

    def placed(x: Array) -> Array:
        L = xp.reshape(x, factor.shape)
        return domain.rescale(L if widths is None else L * widths)

    def sloped(x: Array) -> tuple[Array, Any]:
        L = placed(x)
        image = objective.image(L)
        slope = objective.gradient_factor(image)
        if domain.bounded:
            slope = (norm(L) / norm(x)) * domain.tangent(slope, L)
        return xp.reshape(slope if widths is None else slope * widths, (-1,)), image

    def summarised(x: Array) -> tuple[Array, Array, Any]:
        with unread():
            slope, image = sloped(x)
            return slope, scalars(slope, objective.value(image), largest(slope)), image

    quick = recorded(summarised, objective.place) if is_short(objective, factor) else None

    def evaluate(x: Array) -> Point:
        nonlocal first
        if quick is None:
            slope, image = sloped(x)
            point = Point(x, objective.value(image), slope, image)
        else:
            slope, summary, image = quick(x)
            value, size = host(summary).tolist()
            point = Point(x, value, slope, image, size)
        first = point.steepest if first is None else first
        return point

    def after(point: Point) -> bool:
        nonlocal steps, seen
        steps += 1
        settings.state.latest = objective, placed(point.x)
        if framed is not None:
            framed(lambda: host(getattr(point.image, "places", point.image.factor)))
        seen = watch is not None and watch(read(point.image)) is True
        return seen or settings.expired()

    start = xp.reshape(factor if widths is None else factor / widths, (-1,))
    found = quasi_newton(
        evaluate,
        start,
        iterations=iterations,
        memory=memory,
        tol=tol,
        after=after,
        pairs=going.at(start, memory),
    )
    met = seen or (first is not None and found.steepest <= tol * first)
    return contiguous(placed(found.x)), steps, met


def is_short(objective: Objective, factor: Array) -> bool:
    """Whether launching the kernels of an evaluation on a device takes longer than they do."""
    there, numbers = objective.place, size(factor) + (objective.facts.terms or 0)
    return not (there.is_host or there.apart) and numbers <= MAX_RECORDED_NUMBERS


@entering("lbfgs")
def lbfgs(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    chunk: int = 20,
    patience: int = 2,
    memory: int = CORRECTION_PAIRS,
) -> Run:
    """Minimise F(LLᵀ) over L of the given rank, certified every `chunk` iterations.

    Ends when `patience` consecutive chunks change F by less than a thousandth of the tolerance.
    `memory` is the number of correction pairs.
    """
    objective = problem.objective
    if factor.shape[1] == 0:
        factor = starting_factor(problem, settings)

    def advance(L: Array) -> Array:
        return descend(objective, L, settings, iterations=chunk, memory=memory)

    def look(L: Array, progress: Progress) -> Step:
        certificate = certify_image(problem, objective.image(L))
        return Step(L, certificate.value, certificate)

    # At a limited rank the gap need not converge to 0, so that only F decides.
    steps = rounds(factor, settings, advance, look, patience=patience, fall=1e-3, closer=0.0)
    for step in steps:
        yield step
        if is_unbounded_on_ray(objective, objective.image(step.factor)):
            return Status.UNBOUNDED
    return at_rest(problem, settings)
