"""The default solver: a table that maps properties of a problem to a method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from gramian.bounds import certify_image
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg.svec import triangle_size
from gramian.methods import central_path as central
from gramian.methods import eigenbasis as split
from gramian.methods import interior as inside
from gramian.methods import primal_dual as written
from gramian.methods import whitened as white
from gramian.methods.alternating import alternating
from gramian.methods.base import Run, Settings, Step
from gramian.methods.columns import compress, cut, with_falling
from gramian.methods.cone_search import MAX_COLUMNS
from gramian.methods.growing import CORRECTION_PAIRS, growing
from gramian.methods.lbfgs import descend, lbfgs
from gramian.methods.square import square, suits
from gramian.methods.staircase import staircase
from gramian.methods.sweeping import sweeping
from gramian.objectives.halves import halves_of
from gramian.papers.bilgo import bilgo
from gramian.papers.projected_gradient import projected_gradient
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER
from gramian.result import Status

MIN_COMPLETION_ORDER = 500
"""Rows plus columns above which a completion uses sweeps or L-BFGS instead of the staircase."""

MIN_WHITENED_ORDER = 20
"""Points above which an unfolding uses whitened coordinates."""

EXPLICIT_ORDER = 10_000
"""Order above which a run of limited rank starts from leading eigenvectors of −∇F(0)."""

MAX_EDGES_DUAL_PATH = 700
"""Edges up to which an unfolding starts with the central path of its dual. 150 flowers (608 edges)
to 1e-3: 1.7 s, L-BFGS 26 s; 300 points of a Swiss roll (1,074) to 1e-4: 6.4 s, L-BFGS 3.0 s."""

MAX_BASIS_ORDER = 70
"""Order up to which `primal_dual` minimises squares in a basis. RegMVU in a basis of 60 functions:
2.4 s, the staircase 3.9 s; of 80: 11.8 s and 5.3 s."""

MAX_MAP_ORDER = 30
"""Order up to which `primal_dual` minimises squares of any other map. Distances of 20 points:
21 ms, 55 by `staircase`; of 30: 63 and 151 ms; 40 entries with fixed trace: 27 and 55 ms; all 210
entries: 19 and 14 ms."""

MAX_SPLITTING_STEPS = 300
"""Maximum number of steps of the eigenbasis splitting; some dozens are usual."""

SPLITTING_STEPS_BEFORE_CUT, GAP_BEFORE_CUT, REFINING_STEPS = 100, 1e-2, 500
"""Steps of the splitting, or the relative gap, after which the iterate is cut to the rank, and the
L-BFGS steps that refine it there."""

MAX_WAIT_FRACTION = 0.25
"""Fraction of a time limit after which the central path starts at the latest."""

PATH_NEWTON_STEPS, PATH_FLOPS, PATH_STEP_SECONDS, PATH_TERM_SECONDS = 200, 2e10, 0.003, 6e-6
"""Cost of a central path: Newton steps, multiplications per second if all terms have curvature
(usually a tenth of them do), seconds per step, and seconds per step and term of the loss.
Problems of `benchmarks.ends` take 15 to 45 steps; the triplets of 178 wines (1,602 terms, order 13)
take 200 and 2.3 s on one core, the staircase 0.2 s."""

ROUND_SECONDS, ROUND_ENTRY_SECONDS = 0.1, 3e-7
"""Cost of a round on the factor: seconds, and seconds per term of the loss and row of the factor.
It is not measured during the run, so that the result does not depend on the load of the machine."""

MAX_PROJECTED_STEPS, MAX_PROJECTED_GAP_RATIO = 60, 0.2
"""Maximum number of projected gradient steps, and the factor by which ten of them must reduce the
gap to continue."""


@dataclass(frozen=True)
class Request:
    """The arguments of `auto`: a problem, a start and the settings."""

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
        """Whether F is tr((AM)² + BM² + 2CM) over the cone with commuting A and B."""
        return split.refusal(self.problem, replace(self.settings, rank=None)) is None

    @property
    def graph(self) -> bool:
        """Whether the problem is an unfolding of a graph with whitened coordinates."""
        large = self.problem.order > MIN_WHITENED_ORDER
        return large and white.refusal(self.problem, self.settings) is None

    @property
    def completion(self) -> bool:
        large = self.problem.order > MIN_COMPLETION_ORDER and not self.bounded
        return large and self.problem.objective.facts.wide

    @property
    def quadratic(self) -> bool:
        """Whether F is tr((AM)² + BM² + 2CM) of moderate order."""
        moderate = MAX_COLUMNS < self.problem.order <= EXACT_ORDER
        return moderate and self.problem.objective.facts.matrix_quadratic


@dataclass(frozen=True)
class Row:
    """A row of the table: a condition on the problem, and the method."""

    problems: str
    applies: Callable[[Request], bool]
    method: Callable[[Problem, Array, Settings], Run]


def auto(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Run the method of the first row of `TABLE` that applies."""
    asked = Request(problem, factor, settings)
    row = next(row for row in TABLE if row.applies(asked))
    return row.method(problem, factor, settings)


def _climb_or_follow(
    climb: Callable[..., Run], problem: Problem, factor: Array, settings: Settings
) -> Run:
    """A run on the factor, followed by the central path if a small problem does not converge soon.

    The run on the factor is faster on most problems. If units, conditioning or kinks of the loss
    delay its convergence, the central path starts after the rounds that cost as much as it does.
    """
    if central.refusal(problem, settings) is not None:
        return (yield from climb(problem, factor, settings))
    rounds, short, facts = np.inf, settings, problem.objective.facts
    if not facts.quadratic:  # squares have no kinks: the factor run converges
        terms, work = facts.terms or 0, central.step_work(problem)
        step_seconds = work / PATH_FLOPS + PATH_STEP_SECONDS + PATH_TERM_SECONDS * terms
        round_seconds = ROUND_SECONDS + ROUND_ENTRY_SECONDS * terms * problem.order
        rounds, now = PATH_NEWTON_STEPS * step_seconds / round_seconds, clock.now()
        short = replace(settings, deadline=now + MAX_WAIT_FRACTION * (settings.deadline - now))
    best = (problem.value(factor), factor)
    for k, step in enumerate(run := _Returning(climb(problem, factor, short))):
        yield step
        if step.value <= best[0]:
            best = (step.value, step.factor)
        if k + 1 >= rounds or short.expired():
            break
    if run.status not in (None, Status.STALLED):
        return run.status
    for step in central.central_path(problem, best[1], settings):
        yield step
        if step.value <= best[0]:
            best = (step.value, step.factor)
    return (yield from climb(problem, best[1], settings))


class _Returning:
    """The steps of a run, and the status that it returns at the end."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.status: Status | None = None

    def __iter__(self) -> Iterator[Step]:
        self.status = yield from self.run


def _split_or_climb(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The splitting; the staircase if it does not converge (data of very different scales)."""
    best = factor
    for step in islice(split.eigenbasis(problem, factor, settings), MAX_SPLITTING_STEPS):
        yield step
        best = step.factor
    return (yield from staircase(problem, best, settings))


def _unfold(problem: Problem, factor: Array, settings: Settings) -> Run:
    """L-BFGS in whitened coordinates, and the central path of the dual if it is faster."""
    if inside.refusal(problem, settings) is not None:
        return (yield from white.whitened(problem, factor, settings))
    if (problem.objective.facts.terms or 0) > MAX_EDGES_DUAL_PATH:
        factor = yield from white.descents(problem, factor, settings)
    return (yield from inside.interior(problem, factor, settings))


def _is_written_out(asked: Request) -> bool:
    """Whether F consists of many squares of a small M and the start is not better than the centre.

    With fewer squares than M has entries, F is flat at the optimum and the staircase converges
    slowly; a larger order is then accepted.
    """
    problem, factor, settings = asked.problem, asked.factor, asked.settings
    facts, entries = problem.objective.facts, triangle_size(problem.order)
    started = factor.shape[1] > (1 if problem.domain.bounded else 0)  # M = 0 violates the trace
    if not facts.single_loss or started:
        return False
    squares = facts.terms or 0
    fits = problem.order <= MAX_MAP_ORDER
    if facts.dense_numbers and squares >= entries // 2:
        fits = problem.order <= MAX_BASIS_ORDER or squares < entries
    return fits and written.refusal(problem, settings) is None


def _write_out(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The primal-dual method, and other methods if rounding errors stop it early."""
    best = (problem.value(factor), factor)
    for step in written.primal_dual(problem, factor, settings):
        if step.value <= best[0]:
            yield step
            best = (step.value, step.factor)
    if central.refusal(problem, settings) is None:
        yield from central.central_path(problem, best[1], settings)
    return (yield from staircase(problem, best[1], settings))


def _project_and_climb(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Projected gradient while it converges fast, then the staircase from its iterate."""
    best, gap = factor, np.inf
    for step in islice(projected_gradient(problem, factor, settings), MAX_PROJECTED_STEPS):
        yield step
        best = step.factor
        if step.certificate is not None and step.certificate.gap is not None:
            if step.certificate.gap > MAX_PROJECTED_GAP_RATIO * gap:
                break
            gap = step.certificate.gap
    return (yield from staircase(problem, best, settings))


def _at_the_rank(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Sweeps or L-BFGS with the maximum rank; columns are added along eigenvectors of −∇F."""
    rank = settings.rank or problem.order
    start = compress(factor, rank)
    if start.shape[1] < rank:
        start = with_falling(problem, start, settings, rank - start.shape[1])
    if halves_of(problem.objective) is not None:
        return (yield from alternating(problem, start, settings))
    return (yield from lbfgs(problem, start, settings, memory=CORRECTION_PAIRS))


def _cut_and_refine(problem: Problem, factor: Array, settings: Settings) -> Run:
    step = None
    for step in islice(split.eigenbasis(problem, factor, settings), SPLITTING_STEPS_BEFORE_CUT):
        assert step.certificate is not None and step.certificate.relative_gap is not None
        if step.certificate.relative_gap <= settings.tol or settings.expired():
            break
    assert step is not None
    return (yield from lbfgs(problem, cut(step.factor, settings), settings))


def _cut_the_slice(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The iterate of the staircase, cut to the rank, scaled to the trace and refined."""
    free = replace(settings, rank=None)
    for step in staircase(problem, factor, free):
        gap = None if step.certificate is None else step.certificate.relative_gap
        if (gap is not None and gap <= GAP_BEFORE_CUT) or settings.expired():
            break
    objective, domain = problem.objective, problem.domain
    L = domain.rescale(cut(step.factor, settings))
    L = descend(objective, L, settings, iterations=REFINING_STEPS, tol=1e-8, domain=domain)
    image = objective.image(L)
    yield Step(L, objective.value(image), certify_image(problem, image))
    return Status.LOCAL


TABLE = (
    Row(
        "limited rank, fixed trace: the staircase, then its iterate cut to the rank and refined",
        lambda asked: asked.limited and asked.bounded,
        _cut_the_slice,
    ),
    Row(
        "commuting quadratic of limited rank: the splitting, cut to the rank and refined",
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
        "unfolding: L-BFGS in whitened coordinates, or the dual path (see MAX_EDGES_DUAL_PATH)",
        lambda asked: asked.graph,
        partial(_climb_or_follow, _unfold),
    ),
    Row(
        "completion with squares: row sweeps with spare columns",
        lambda asked: asked.completion and halves_of(asked.problem.objective) is not None,
        sweeping,
    ),
    Row("completion: L-BFGS with spare columns", lambda asked: asked.completion, growing),
    Row(
        # `quadratic` of auto_table: 62 ms, the staircase 278 ms.
        "quadratic of moderate order: projected gradient, whose cost does not depend on the rank",
        lambda asked: asked.quadratic,
        _project_and_climb,
    ),
    Row(
        # `reg_mvu_30` of auto_table: 0.11 s, the staircase 0.55 s.
        "squares of a small M: interior points (see MAX_BASIS_ORDER and MAX_MAP_ORDER)",
        _is_written_out,
        _write_out,
    ),
    Row(
        # LMNN of 4,000 digits in 50 dimensions: 2.8 s, the staircase 4.9 s.
        "very many terms of a small M, with a start: L-BFGS on a square factor (see `square`)",
        lambda asked: suits(asked.problem, asked.factor),
        partial(_climb_or_follow, square),
    ),
    Row("everything else: the staircase", lambda asked: True, partial(_climb_or_follow, staircase)),
)
"""Conditions on a problem and methods; the first row that applies is used. The constants and
modules named state the measurements, and `benchmarks.auto_table` compares all rows with the other
solvers. Rows that end in the staircase use the central path if the staircase is slow."""
