"""The default: a table of what a problem is and the method that takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from gramian.bounds import certify_image
from gramian.common import clock
from gramian.linalg.svec import triangle_size
from gramian.methods import central_path as central
from gramian.methods import eigenbasis as split
from gramian.methods import interior as inside
from gramian.methods import primal_dual as written
from gramian.methods import whitened as white
from gramian.methods.alternating import alternating
from gramian.methods.base import Run, Settings, Step
from gramian.methods.columns import compress, cut, with_falling
from gramian.methods.cone_search import COLUMNS
from gramian.methods.growing import PAIRS, growing
from gramian.methods.lbfgs import descend, lbfgs
from gramian.methods.lowest_eigenpairs import EXACT_ORDER
from gramian.methods.square import square, suits
from gramian.methods.staircase import staircase
from gramian.methods.sweeping import sweeping
from gramian.objectives.halves import halves_of
from gramian.papers.bilgo import bilgo
from gramian.papers.projected_gradient import projected_gradient
from gramian.problem import Problem
from gramian.result import Status

Array = NDArray[np.floating]

COMPLETED_ORDER = 500
"""Rows and columns together above which a completion is swept, or grown, instead of climbed."""

UNFOLDED_ORDER = 20
"""Points above which a graph is unfolded in whitened coordinates."""

EXPLICIT_ORDER = 10_000
"""Order above which a limited rank is filled with leading eigenvectors of −∇F(0)."""

FEW_EDGES = 700
"""Edges up to which an unfolding starts with the path of its dual. 150 flowers (608 edges) to 1e-3:
1.7 s, by L-BFGS 26 s; 300 points of a Swiss roll (1,074) to 1e-4: 6.4 s, by L-BFGS 3.0 s."""

BASIS_ORDER = 70
"""Order up to which squares in a basis are written out. RegMVU by 60 waves: 2.4 s, by the
staircase 3.9 s; by 80 11.8 s and 5.3 s."""

MAP_ORDER = 30
"""Order up to which squares of any map are. Distances of 20 points: 21 ms, by the staircase 55; of
30 63 and 151; 40 entries of fixed trace 27 and 55; all 210 entries 19 and 14."""

MOST_SPLITS = 300
"""Steps of the eigenbasis split at most; some dozens are usual."""

CUT_SPLITS, CUT_GAP, CUT_STEPS = 100, 1e-2, 500
"""Steps of the split, or the relative gap, after which its answer is cut to a rank, and the steps
of L-BFGS that refine it there."""

PATH_SHARE = 0.25
"""Share of the time left after which the central path takes over at the latest."""

PATH_STEPS, PATH_SPEED, PATH_STEP, PATH_TERM = 200, 2e10, 0.003, 6e-6
"""Cost of a central path: Newton steps, multiplications a second if all terms bend (usually a tenth
of them do), seconds of a step however small, and seconds of a step for each term of the loss.
Problems of `benchmarks.ends` take 15 to 45 steps; the triplets of 178 wines (1,602 terms, order 13)
take 200 and 2.3 s on one core, where the staircase takes 0.2 s."""

PROJECTED_STEPS, PROJECTED_FALL = 60, 0.2
"""Steps of projected gradient at most, and the fall of its gap, every ten of them, to continue."""


@dataclass(frozen=True)
class Asked:
    """What `auto` is asked: a problem, a start and the settings."""

    problem: Problem
    factor: Array
    settings: Settings

    @property
    def limited(self) -> bool:
        """Whether the rank is limited below the order."""
        return self.settings.rank is not None and self.settings.rank < self.problem.order

    @property
    def bounded(self) -> bool:
        return self.problem.domain.bounded

    @property
    def commuting(self) -> bool:
        """Whether it is tr((AM)² + BM² + 2CM) over the cone with commuting A and B."""
        return split.refusal(self.problem, replace(self.settings, rank=None)) is None

    @property
    def graph(self) -> bool:
        """Whether it unfolds a graph with whitened coordinates."""
        large = self.problem.order > UNFOLDED_ORDER
        return large and white.refusal(self.problem, self.settings) is None

    @property
    def completion(self) -> bool:
        large = self.problem.order > COMPLETED_ORDER and not self.bounded
        return large and self.problem.objective.facts.wide

    @property
    def quadratic(self) -> bool:
        """Whether it is tr((AM)² + BM² + 2CM) of moderate order."""
        moderate = COLUMNS < self.problem.order <= EXACT_ORDER
        return moderate and self.problem.objective.facts.matrix_quadratic


@dataclass(frozen=True)
class Row:
    """A row of the table: the problems that it is for, and the method that takes them."""

    problems: str
    applies: Callable[[Asked], bool]
    method: Callable[[Problem, Array, Settings], Run]


def auto(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The method of the first row of `TABLE` that is for this problem."""
    asked = Asked(problem, factor, settings)
    row = next(row for row in TABLE if row.applies(asked))
    return row.method(problem, factor, settings)


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
    if not problem.objective.facts.quadratic:  # squares have no corners: a run on the factor ends
        patience = min(_path_seconds(problem), PATH_SHARE * (settings.deadline - now))
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
    terms = problem.objective.facts.terms or 0
    step = central.step_work(problem) / PATH_SPEED + PATH_STEP + PATH_TERM * terms
    return PATH_STEPS * step


def _unfold_or_follow(problem: Problem, factor: Array, settings: Settings) -> Run:
    return _climb_or_follow(_unfold, problem, factor, settings)


def _square_or_follow(problem: Problem, factor: Array, settings: Settings) -> Run:
    return _climb_or_follow(square, problem, factor, settings)


def _staircase_or_follow(problem: Problem, factor: Array, settings: Settings) -> Run:
    return _climb_or_follow(staircase, problem, factor, settings)


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
    if (problem.objective.facts.terms or 0) > FEW_EDGES:
        factor = yield from white.descents(problem, factor, settings)
    return (yield from inside.interior(problem, factor, settings))


def _is_written_out(asked: Asked) -> bool:
    """Many squares of a small M, without a start that is worth more than the centre.

    With fewer squares than M has entries the optimum is flat, and the staircase finds no end: there
    a larger order is worth its time.
    """
    problem, factor, settings = asked.problem, asked.factor, asked.settings
    facts, entries = problem.objective.facts, triangle_size(problem.order)
    started = factor.shape[1] > (1 if problem.domain.bounded else 0)  # 0 may lack the trace
    if not facts.single_loss or started:
        return False
    squares = facts.terms or 0
    fits = problem.order <= MAP_ORDER
    if facts.dense_numbers and squares >= entries // 2:
        fits = problem.order <= BASIS_ORDER or squares < entries
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
            if step.certificate.gap > PROJECTED_FALL * gap:
                break
            gap = step.certificate.gap
    return (yield from staircase(problem, best, settings))


def _at_the_rank(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Sweeps or L-BFGS with all the columns allowed, those that are missing along −∇F."""
    rank = settings.rank or problem.order
    start = compress(factor, rank)
    if start.shape[1] < rank:
        start = with_falling(problem, start, settings, rank - start.shape[1])
    if halves_of(problem.objective) is not None:
        return (yield from alternating(problem, start, settings))
    return (yield from lbfgs(problem, start, settings, memory=PAIRS))


def _cut_and_refine(problem: Problem, factor: Array, settings: Settings) -> Run:
    step = None
    for step in islice(split.eigenbasis(problem, factor, settings), CUT_SPLITS):
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
        if (gap is not None and gap <= CUT_GAP) or settings.expired():
            break
    objective, domain = problem.objective, problem.domain
    L = domain.rescale(cut(step.factor, settings))
    L = descend(objective, L, settings, iterations=CUT_STEPS, tol=1e-8, domain=domain)
    image = objective.image(L)
    yield Step(L, objective.value(image), certify_image(problem, image))
    return Status.LOCAL


TABLE = (
    Row(
        "limited rank, fixed trace: the staircase's answer, cut and refined",
        lambda asked: asked.limited and asked.bounded,
        _cut_the_slice,
    ),
    Row(
        "commuting quadratic of limited rank: the split's answer, cut and refined",
        lambda asked: asked.limited and asked.commuting,
        _cut_and_refine,
    ),
    Row(
        "commuting quadratic: a division and a projection in the common eigenbasis",
        lambda asked: asked.commuting,
        _split_or_climb,
    ),
    Row(
        "limited rank with a start, or of large order: sweeps or L-BFGS at that rank",
        lambda asked: (
            asked.limited and (asked.factor.shape[1] > 0 or asked.problem.order > EXPLICIT_ORDER)
        ),
        _at_the_rank,
    ),
    Row("limited rank: greedy, with a local search", lambda asked: asked.limited, bilgo),
    Row(
        "unfolding: L-BFGS in whitened coordinates, or the path of its dual (see FEW_EDGES)",
        lambda asked: asked.graph,
        _unfold_or_follow,
    ),
    Row(
        "completion with squares: row sweeps with spare columns",
        lambda asked: asked.completion and halves_of(asked.problem.objective) is not None,
        sweeping,
    ),
    Row("completion: L-BFGS with spare columns", lambda asked: asked.completion, growing),
    Row(
        # `quadratic` of auto_table: 62 ms, by the staircase 278 ms.
        "quadratic of moderate order: projected gradient, which high ranks do not slow down",
        lambda asked: asked.quadratic,
        _project_and_climb,
    ),
    Row(
        # `reg_mvu_30` of auto_table: 0.11 s, by the staircase 0.55 s.
        "squares of a small M: interior points (see BASIS_ORDER and MAP_ORDER)",
        _is_written_out,
        _write_out,
    ),
    Row(
        # LMNN of 4,000 digits in 50 dimensions: 2.8 s, by the staircase 4.9 s.
        "very many terms of a small M, with a start: L-BFGS on a square factor (see `square`)",
        lambda asked: suits(asked.problem, asked.factor),
        _square_or_follow,
    ),
    Row("everything else: the staircase", lambda asked: True, _staircase_or_follow),
)
"""What a problem is ↦ its method; the first row that applies. The constants and modules named have
the measurement behind a row, and `benchmarks.auto_table` compares them all with the other
solvers. Rows that end in the staircase use the central path where that does not end soon."""
