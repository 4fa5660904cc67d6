"""The default: the method that the structure of the problem allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.certificate import certify_image
from gramian.objectives import Composite, GramQuadratic
from gramian.objectives.quadratic_form import triangle_size
from gramian.problem import Problem
from gramian.result import Status
from gramian.solvers import central_path as central
from gramian.solvers import eigenbasis as split
from gramian.solvers import interior as inside
from gramian.solvers import primal_dual as written
from gramian.solvers import whitened as white
from gramian.solvers.alternating import alternating
from gramian.solvers.base import Run, Settings, Step, compress, cut
from gramian.solvers.bilgo import bilgo
from gramian.solvers.cone_search import COLUMNS
from gramian.solvers.growing import PAIRS, growing, with_falling
from gramian.solvers.lbfgs import descend, lbfgs
from gramian.solvers.lowest_eigenpairs import EXACT_ORDER
from gramian.solvers.projected_gradient import projected_gradient
from gramian.solvers.square import square, suits
from gramian.solvers.staircase import staircase
from gramian.solvers.sweeping import sweeping

Array = NDArray[np.floating]

LARGE = 10_000
WIDE = 500
"""Rows and columns together beyond which a matrix is completed by L-BFGS with many columns."""

UNFOLDED = 20
"""Points beyond which a graph is unfolded in whitened coordinates."""

FEW_EDGES = 700
"""Edges up to which the path of the dual begins at once. 150 flowers (608 edges) to 1e-3: 1.7 s, by
L-BFGS 26 s; 300 points of a Swiss roll (1,074) to 1e-4: 6.4 s, by L-BFGS 3.0 s."""

WRITTEN = 70
"""The order up to which squares in a basis are written out. RegMVU by 60 waves: 2.4 s, by the
staircase 3.9 s; by 80 11.8 s and 5.3 s."""

TINY = 30
"""The order up to which squares of any map are: distances of 20 points 21 ms, by the staircase 55;
of 30 63 and 151; 40 entries of fixed trace 27 and 55; all 210 entries 19 and 14."""

MOST_SPLITS = 300
"""Steps of the split at most; some dozens are usual."""

SPLIT_STEPS, CUT_AT, CUT_STEPS = 100, 1e-2, 500
"""The answer to be cut need not be exact; what is left is refined in so many steps."""

PATIENCE = 0.25
"""Part of the time that is left after which the central path takes over at the latest."""

PATH_STEPS, PATH_SPEED, PATH_STEP = 40, 2e10, 0.003
"""What a central path takes, about: Newton steps, multiplications a second if all terms bend (a
tenth of them do, as a rule), and seconds of a step however small. Problems of `benchmarks.ends`
take 15 to 45 steps."""

PROJECTED_STEPS, FAST = 60, 0.2
"""Steps of projected gradient at most, and the fall of its gap to go on at, every ten of them."""


def auto(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The eigenbasis split, projected gradient, or the staircase, by the problem's structure.

    Where A and B commute the split needs a few eigenvalue decompositions. Other Gram quadratics of
    moderate order start by projected gradient, which high ranks do not slow down, and continue with
    the staircase where that is not enough. Graphs are unfolded in whitened coordinates, small ones
    and hard ones along the path of their dual, and large matrices completed by alternating sweeps
    where the loss is squared, by L-BFGS with a doubling number of columns elsewhere. Squares of a
    small M, and of a larger one in a basis, are written out for an interior-point method. Losses of
    very many terms over a small M continue from their start by a square factor. Everything else
    climbs the staircase; small problems that do not end there soon follow their central path. Under
    a rank limit the split's answer is cut to that rank and refined there, and a start that is
    given, or the leading eigenvectors of −∇F(0) where the order is large, is filled up to it;
    otherwise it is BILGO. With a fixed trace the staircase's answer is cut.
    """
    limited = settings.rank is not None and settings.rank < problem.order
    if limited and problem.domain.bounded:
        return _cut_the_slice(problem, factor, settings)
    if split.refusal(problem, replace(settings, rank=None)) is None:
        if not limited:
            return _split_or_climb(problem, factor, settings)
        return _cut_and_refine(problem, factor, settings)
    if limited and (factor.shape[1] > 0 or problem.order > LARGE):
        return _at_the_rank(problem, factor, settings, settings.rank or problem.order)
    if limited:
        return bilgo(problem, factor, settings)
    if problem.order > UNFOLDED and white.refusal(problem, settings) is None:
        return _climb_or_follow(_unfold, problem, factor, settings)
    if problem.objective.wide and problem.order > WIDE and not problem.domain.bounded:
        swept = problem.objective.halves() is not None
        return (sweeping if swept else growing)(problem, factor, settings)
    if isinstance(problem.objective, GramQuadratic) and COLUMNS < problem.order <= EXACT_ORDER:
        return _project_and_climb(problem, factor, settings)
    if _is_written_out(problem, factor, settings):
        return _write_out(problem, factor, settings)
    climb = square if suits(problem, factor) else staircase
    return _climb_or_follow(climb, problem, factor, settings)


def _climb_or_follow(
    climb: Callable[..., Run], problem: Problem, factor: Array, settings: Settings
) -> Run:
    """A run on the factor, and the central path of a small problem that it does not end soon.

    The factor is the quicker way to most optima. Where units, conditioning or corners of the loss
    keep it from ending, the path takes over after as long as it will take itself.
    """
    if central.refusal(problem, settings) is not None:
        return (yield from climb(problem, factor, settings))
    now, short = clock.now(), settings
    if not problem.objective.quadratic:  # squares have no corners: a run on the factor ends
        patience = min(_path_seconds(problem), PATIENCE * (settings.deadline - now))
        short = replace(settings, deadline=now + patience)
    best = (problem.value(factor), factor)
    for step in (run := _Returning(climb(problem, factor, short))):
        yield step
        if step.value <= best[0]:
            best = (step.value, step.factor)
        if short.expired():
            break
    if run.status not in (None, Status.STALLED):
        return run.status
    for step in central.central_path(problem, best[1], settings):
        yield step
        if step.value <= best[0]:
            best = (step.value, step.factor)
    return (yield from climb(problem, best[1], settings))


class _Returning:
    """The steps of a run, and the status that it returns after the last."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.status: Status | None = None

    def __iter__(self) -> Iterator[Step]:
        self.status = yield from self.run


def _path_seconds(problem: Problem) -> float:
    return PATH_STEPS * (central.step_work(problem) / PATH_SPEED + PATH_STEP)


def _split_or_climb(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The split, and the staircase where it does not end: data of very different sizes."""
    best = factor
    for step in islice(split.eigenbasis(problem, factor, settings), MOST_SPLITS):
        yield step
        best = step.factor
    return (yield from staircase(problem, best, settings))


def _unfold(problem: Problem, factor: Array, settings: Settings) -> Run:
    """L-BFGS in whitened coordinates, and the path of the dual where it is the quicker end."""
    if inside.refusal(problem, settings) is not None:
        return (yield from white.whitened(problem, factor, settings))
    if (problem.objective.sees or 0) > FEW_EDGES:
        factor = yield from white.descents(problem, factor, settings)
    return (yield from inside.interior(problem, factor, settings))


def _is_written_out(problem: Problem, factor: Array, settings: Settings) -> bool:
    """Many squares of a small M, without a start that is worth more than the centre.

    With fewer squares than M has entries the optimum is flat, and the staircase finds no end: there
    a larger order is worth its time.
    """
    objective, entries = problem.objective, triangle_size(problem.order)
    started = factor.shape[1] > (1 if problem.domain.bounded else 0)  # 0 may lack the trace
    if not isinstance(objective, Composite) or started:
        return False
    squares = objective.sees or 0
    fits = problem.order <= TINY
    if objective.dense_numbers and squares >= entries // 2:
        fits = problem.order <= WRITTEN or squares < entries
    return fits and written.refusal(problem, settings) is None


def _write_out(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Interior points of F written out, and other ways where rounding ends them too early."""
    best = (problem.value(factor), factor)
    for step in written.primal_dual(problem, factor, settings):
        if step.value <= best[0]:
            yield step
            best = (step.value, step.factor)
    if central.refusal(problem, settings) is None:
        yield from central.central_path(problem, best[1], settings)
    return (yield from staircase(problem, best[1], settings))


def _project_and_climb(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Projected gradient while it converges fast, then the staircase from there."""
    best, gap = factor, np.inf
    for step in islice(projected_gradient(problem, factor, settings), PROJECTED_STEPS):
        yield step
        best = step.factor
        if step.certificate is not None and step.certificate.gap is not None:
            if step.certificate.gap > FAST * gap:
                break
            gap = step.certificate.gap
    return (yield from staircase(problem, best, settings))


def _at_the_rank(problem: Problem, factor: Array, settings: Settings, rank: int) -> Run:
    """Sweeps or L-BFGS with all the columns allowed, those that are missing along −∇F."""
    start = compress(factor, rank)
    if start.shape[1] < rank:
        start = with_falling(problem, start, settings, rank - start.shape[1])
    if problem.objective.halves() is not None:
        return (yield from alternating(problem, start, settings))
    return (yield from lbfgs(problem, start, settings, memory=PAIRS))


def _cut_and_refine(problem: Problem, factor: Array, settings: Settings) -> Run:
    step = None
    for step in islice(split.eigenbasis(problem, factor, settings), SPLIT_STEPS):
        assert step.certificate is not None and step.certificate.relative_gap is not None
        if step.certificate.relative_gap <= settings.tol or settings.expired():
            break
    assert step is not None
    return (yield from lbfgs(problem, cut(step.factor, settings), settings))


def _cut_the_slice(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The staircase's answer at the rank and trace asked for, refined there."""
    free = replace(settings, rank=None)
    for step in staircase(problem, factor, free):
        gap = None if step.certificate is None else step.certificate.relative_gap
        if (gap is not None and gap <= CUT_AT) or settings.expired():
            break
    objective, domain = problem.objective, problem.domain
    L = domain.rescale(cut(step.factor, settings))
    L = descend(objective, L, settings, iterations=CUT_STEPS, tol=1e-8, domain=domain)
    image = objective.image(L)
    yield Step(L, objective.value(image), certify_image(problem, image))
    return Status.LOCAL
