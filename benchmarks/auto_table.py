"""`auto` against every other solver: seconds to a certified relative gap of 1e-6.

Each problem goes to `auto` first, and then to every other solver that accepts it, which may take
three times as long, and a second at least. What counts is the whole call of ``gm.minimize``, up to
a point whose certificate proves the gap: a good point without a proof is not an answer here.
"""

import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._models import links, normalised_laplacian, smooth_basis, swiss_roll
from benchmarks.convergence import CONIC, CONIC_ORDER, digits
from benchmarks.convergence import PROBLEMS as CONVERGENCE
from benchmarks.harness.context import Context
from benchmarks.harness.data import DataMissingError, Dataset
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, PairDistances, triplet_margins
from gramian.objectives import Composite, GramQuadratic, Sum
from gramian.solvers.registry import SOLVERS

TITLE = "auto against every other solver: seconds to a certified gap"
PAPER = "No table of a paper: the default solver beside all the others"

TOL = 1e-6
NEAR = 1.5
"""`auto` may take this many times the seconds of the fastest other solver."""

AUTO_LIMIT, AUTO_LIMIT_QUICK = 20.0, 10.0
PATIENCE, LEAST_LIMIT = 3.0, 1.0
"""Another solver gets so many times the seconds of `auto`, and so many seconds at least."""
WARM_UP = 0.2
LEAST_REPEAT, MOST_REPEAT, REPEAT_BELOW = 3, 15, 0.3
"""Calls of milliseconds are repeated up to so many times, while they take less than this."""
STARTUP, OVERRUNS = 60.0, 120.0
"""Seconds for a child's imports and data, and for solvers that outrun their limit."""
NEVER = 10**9

SIZES = (6, 20)


# --- the problems --------------------------------------------------------------------


def digit_triplets(count: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """The digits, and triplets (anchor, same class, other class) drawn at random."""
    X, y = digits()
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, y.size, (60 * count, 3))
    anchor, same, other = y[drawn].T
    fit = (anchor == same) & (anchor != other) & (drawn[:, 0] != drawn[:, 1])
    return X, drawn[fit][:count]


def smoothed_hinge_digits() -> gm.Problem:
    """Smoothed hinge of 2,000 triplets of the digits, and a trace term."""
    X, triplets = digit_triplets()
    margins = Congruence(triplet_margins(triplets, len(X)), X)
    return gm.Problem(Composite(margins, SmoothedHinge(mu=0.5), C=20.0), name="smoothed hinge")


def logistic_digits() -> gm.Problem:
    """Logistic loss of 2,000 distances of the digits: far for other classes, near for the same."""
    X, y = digits()
    pairs = np.random.default_rng(6).choice(y.size, (4000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]][:2000]
    signs = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], -1.0, 1.0)
    distances = Congruence(PairDistances(pairs, y.size), X)
    return gm.Problem(Composite(distances, Logistic(signs), C=1.0), name="logistic")


def sum_digits() -> gm.Problem:
    """Kernel-target alignment on the digits and the squared hinge of triplets, added."""
    X, triplets = digit_triplets()
    _, y = digits()
    alignment = gm.problems.kta(X, y, 1e-3).objective
    margins = Congruence(triplet_margins(triplets, len(X)), X)
    return gm.Problem(Sum([alignment, Composite(margins, SquaredHinge())]), name="sum")


def entries_of_fixed_trace(n: int, count: int) -> gm.Problem:
    """Squared loss of the diagonal and some entries of a noisy low-rank matrix, tr M fixed."""
    rng = np.random.default_rng(7)
    above = np.column_stack(np.triu_indices(n, 1))
    pairs = np.vstack([rng.permutation(above)[:count], np.column_stack([np.arange(n)] * 2)])
    P = rng.standard_normal((n, min(4, n // 2)))
    noisy = np.sum(P[pairs[:, 0]] * P[pairs[:, 1]], axis=1) + 0.1 * rng.standard_normal(len(pairs))
    objective = Composite(Entries(pairs, n), Squared(noisy))
    return gm.Problem(objective, gm.Spectrahedron(0.5 * np.sum(P * P)), name="entries")


def reg_mvu(m: int) -> gm.Problem:
    """RegMVU of the Swiss roll in its m smoothest eigenvectors, ν = 1e5."""
    roll = swiss_roll()
    _, Q = smooth_basis(roll.graph, m)
    return gm.problems.reg_mvu(Q, roll.edges, roll.sq_distances, 1e5)


def npkl(data: Dataset) -> gm.Problem:
    """Kernel learning on an adult set, λ = 1."""
    return gm.problems.npkl(normalised_laplacian(data.X.toarray()), *links(data.y), 1.0)


def small_quadratic(n: int) -> gm.Problem:
    """A and B ⪰ 0 that do not commute, C indefinite."""
    rng = np.random.default_rng(8)
    A, B, C = (rng.standard_normal((n, n)) for _ in range(3))
    return gm.problems.quadratic(A @ A.T / n, B @ B.T / n + 0.1 * np.eye(n), C + C.T)


def small_entries(n: int) -> gm.Problem:
    """Every entry of a symmetric matrix that is not PSD, and a trace term."""
    pairs = np.column_stack(np.triu_indices(n))
    target = np.random.default_rng(9).standard_normal(len(pairs)) + (pairs[:, 0] == pairs[:, 1])
    return gm.Problem(Composite(Entries(pairs, n), Squared(target), C=0.3), name="entries")


def small_distances(n: int) -> gm.Problem:
    """Every distance, to targets that no points have, and a trace term."""
    rng = np.random.default_rng(10)
    edges = _edges(n)
    lengths = Squared(rng.uniform(0.2, 2.0, len(edges)))
    return gm.Problem(Composite(PairDistances(edges, n), lengths, C=0.2), name="distances")


def small_triplets(n: int, loss: SquaredHinge | SmoothedHinge) -> gm.Problem:
    """4n triplets of the points themselves, and a trace term."""
    rng = np.random.default_rng(11)
    triplets = np.array([rng.choice(n, 3, replace=False) for _ in range(4 * n)])
    return gm.Problem(Composite(triplet_margins(triplets, n), loss, C=0.5), name="triplets")


def small_logistic(n: int) -> gm.Problem:
    """Logistic loss of every distance, and a trace term."""
    edges = _edges(n)
    signs = np.random.default_rng(12).uniform(0.5, 1.5, len(edges))
    return gm.Problem(Composite(PairDistances(edges, n), Logistic(signs), C=0.4), name="logistic")


def small_soft_min(n: int) -> gm.Problem:
    """Soft-min of a third of the distances, tr M = 1."""
    objective = Composite(PairDistances(_edges(n)[::3], n), SoftMin(mu=0.05))
    return gm.Problem(objective, gm.Spectrahedron(), name="soft-min")


def small_sum(n: int) -> gm.Problem:
    """The quadratic and a squared hinge of the entries, added."""
    pairs = np.column_stack(np.triu_indices(n))
    floor = np.random.default_rng(13).standard_normal(len(pairs))
    hinge = Composite(Entries(pairs, n), SquaredHinge(floor), C=0.1)
    return gm.Problem(Sum([small_quadratic(n).objective, hinge]), name="sum")


def _edges(n: int) -> np.ndarray:
    return np.array(list(combinations(range(n), 2)))


SMALL: dict[str, Callable[[int], gm.Problem]] = {
    "quadratic": small_quadratic,
    "entries": small_entries,
    "distances": small_distances,
    "squared_hinge": lambda n: small_triplets(n, SquaredHinge(weight=2.0)),
    "smoothed_hinge": lambda n: small_triplets(n, SmoothedHinge(mu=0.5)),
    "logistic": small_logistic,
    "soft_min": small_soft_min,
    "entries_fixed_trace": lambda n: entries_of_fixed_trace(n, n),
    "sum": small_sum,
}

PROBLEMS: dict[str, Callable[[], gm.Problem]] = {
    **CONVERGENCE,
    "smoothed_hinge": smoothed_hinge_digits,
    "logistic": logistic_digits,
    "sum": sum_digits,
    "entries_fixed_trace": lambda: entries_of_fixed_trace(150, 1500),
    "reg_mvu_30": lambda: reg_mvu(30),
    "reg_mvu_50": lambda: reg_mvu(50),
    **{
        f"{name}_{n}": lambda make=make, n=n: make(n) for n in SIZES for name, make in SMALL.items()
    },
}

FROM_DATA: dict[str, tuple[str, Callable[[Dataset], gm.Problem]]] = {"npkl_a1a": ("a1a", npkl)}
"""Problems that need a data set, and its name; left out where it is not there."""

QUICK = (
    "quadratic_commuting", "quadratic", "kta_trace", "entries", "triplets", "soft_min", "logistic",
    "sum", "entries_fixed_trace", "reg_mvu_30", "entries_6", "soft_min_6", "logistic_20",
    "squared_hinge_20", "sum_20",
)  # fmt: skip

LOSSES = {
    "Squared": "squared loss",
    "SquaredHinge": "squared hinge",
    "SmoothedHinge": "smoothed hinge",
    "Logistic": "logistic loss",
    "SoftMin": "soft-min",
}


def kind_of(problem: gm.Problem) -> str:
    """The kind of a problem in words, read off its structure."""
    objective = problem.objective
    if isinstance(objective, GramQuadratic):
        kind = "Gram quadratic, " + ("A and B commute" if commutes(problem) else "A, B any")
    elif isinstance(objective, Composite):
        loss = type(objective.loss).__name__
        kind = LOSSES.get(loss, loss) + (" in a basis" if _in_basis(objective) else "")
    else:
        kind = "sum of objectives" if isinstance(objective, Sum) else type(objective).__name__
    return kind + ("" if problem.domain.trace is None else ", fixed trace")


def _in_basis(objective: Composite) -> bool:
    return isinstance(objective.map, Congruence)


def commutes(problem: gm.Problem) -> bool:
    """Whether the solver made for commuting A and B takes it."""
    try:
        gm.minimize(problem, "eigenbasis", max_iter=0)
    except ValueError:
        return False
    return True


# --- one problem, in a process of its own --------------------------------------------


@dataclass(frozen=True)
class Time:
    """A solver on a problem: median seconds of its calls, infinite where it proved too little."""

    seconds: float
    limit: float
    status: str
    relative_gap: float | None
    rank: int

    @property
    def reached(self) -> bool:
        return bool(np.isfinite(self.seconds))

    @property
    def cell(self) -> float | str:
        """Seconds, or what happened instead."""
        if self.reached:
            return self.seconds
        ended = self.status not in ("CONVERGED", "TIME_LIMIT")
        return self.status.lower().replace("_", " ") if ended else f"> {self.limit:.3g}"


@dataclass(frozen=True)
class Outcome:
    """All solvers on one problem."""

    kind: str
    order: int
    auto: Time
    parts: tuple[str, ...]
    """The solvers that `auto` ran."""
    others: dict[str, Time]

    @property
    def reached(self) -> dict[str, float]:
        """Seconds of the other solvers that got there, fastest first."""
        done = ((time.seconds, name) for name, time in self.others.items() if time.reached)
        return {name: seconds for seconds, name in sorted(done)}

    @property
    def strangers(self) -> dict[str, float]:
        """Those of them that `auto` does not run itself."""
        return {name: s for name, s in self.reached.items() if name not in self.parts}


def measure(name: str, most: float, repeat: int, data: Dataset | None = None) -> Outcome:
    """`auto`, every other solver that accepts the problem, and `auto` again against drift."""
    problem = PROBLEMS[name]() if data is None else FROM_DATA[name][1](data)
    parts = parts_of_auto(problem, most)
    before = calls(problem, "auto", most, repeat - repeat // 2)
    limit = time_limit(median_seconds(before, most), most)
    others = {
        solver: summary(calls(problem, solver, limit, repeat), limit)
        for solver in contestants(problem)
        if warm_up(problem, solver)
    }
    after = calls(problem, "auto", most, repeat // 2) if proves(before[-1], most) else []
    auto = summary([*before, *after], most)
    return Outcome(kind_of(problem), problem.order, auto, parts, others)


def time_limit(auto_seconds: float, most: float) -> float:
    """Seconds for another solver; where `auto` fails, those that `auto` had."""
    return max(LEAST_LIMIT, PATIENCE * auto_seconds) if np.isfinite(auto_seconds) else most


def parts_of_auto(problem: gm.Problem, limit: float) -> tuple[str, ...]:
    """The registered solvers that `auto` enters on a problem; compiles its kernels on the way."""
    codes = {solver.run.__code__: name for name, solver in SOLVERS.items() if name != "auto"}
    entered: dict[str, None] = {}

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            entered[codes[frame.f_code]] = None

    sys.setprofile(watch)
    try:
        solve(problem, "auto", limit)
    finally:
        sys.setprofile(None)
    return tuple(entered)


def contestants(problem: gm.Problem) -> list[str]:
    """Every solver but `auto`; the conic ones overrun their limit at larger orders."""
    apart = ("auto", *(CONIC if problem.order > CONIC_ORDER else ()))
    return [name for name in gm.solvers.available() if name not in apart]


def warm_up(problem: gm.Problem, solver: str) -> bool:
    """Compile what the solver needs; whether it takes the problem at all."""
    try:
        gm.minimize(problem, solver, max_iter=2, time_limit=WARM_UP)
    except (ValueError, ImportError):
        return False
    return True


def solve(problem: gm.Problem, solver: str, limit: float) -> gm.Result:
    """One call within the time limit."""
    return gm.minimize(problem, solver, tol=TOL, max_iter=NEVER, time_limit=limit, random_state=0)


def calls(problem: gm.Problem, solver: str, limit: float, repeat: int) -> list[gm.Result]:
    """Repeated calls: more of short ones, none after a failure or once the limit is spent."""
    results: list[gm.Result] = []
    spent = 0.0
    while len(results) < repeat or (spent < REPEAT_BELOW and len(results) < MOST_REPEAT):
        results.append(solve(problem, solver, limit))
        spent += results[-1].seconds
        if not proves(results[-1], limit) or (solver != "auto" and spent > limit):
            break
    return results


def proves(result: gm.Result, limit: float) -> bool:
    """Whether the gap was certified within the limit."""
    converged = result.status is gm.Status.CONVERGED and result.certificate.gap is not None
    return converged and result.seconds <= limit


def median_seconds(results: list[gm.Result], limit: float) -> float:
    """A call that proves too little takes for ever."""
    return statistics.median(r.seconds if proves(r, limit) else np.inf for r in results)


def summary(results: list[gm.Result], limit: float) -> Time:
    """The median of the calls, and what the last one found."""
    last = results[-1]
    return Time(
        median_seconds(results, limit),
        limit,
        last.status.name,
        last.certificate.relative_gap,
        last.rank,
    )


# --- the run -------------------------------------------------------------------------


def run(ctx: Context) -> Report:
    """Every problem in a process of its own, then the tables."""
    repeat = ctx.repeat if ctx.quick else max(ctx.repeat, LEAST_REPEAT)
    most = AUTO_LIMIT_QUICK if ctx.quick else AUTO_LIMIT
    load_before = os.getloadavg()[0]
    outcomes: dict[str, Outcome] = {}
    notes = [_protocol(repeat, most)]
    requests = dict(_requests(ctx, notes))
    longest = sorted(requests, key=lambda name: name not in FROM_DATA)
    calls = [
        partial(_child, ctx, {"name": name, "most": most, "repeat": repeat, **requests[name]})
        for name in longest
    ]
    children = dict(zip(longest, ctx.at_once(calls), strict=True))
    for name in requests:
        child = children[name]
        if child.ok:
            outcomes[name] = child.value
        else:
            notes.append(f"{name}: no figures, {child.error}.")
    load = f"Load average of the machine: {load_before:.2f} before, {os.getloadavg()[0]:.2f} after."
    tables = [_verdicts(outcomes), _summary(outcomes), _times(outcomes), _not_fastest(outcomes)]
    return ctx.report(tables, (_verdict_line(outcomes), *notes, load))


def _child(ctx: Context, kwargs: dict[str, Any]) -> ChildResult:
    most, repeat = kwargs["most"], kwargs["repeat"]
    timeout = STARTUP + OVERRUNS + (PATIENCE * len(SOLVERS) + repeat) * most
    return ctx.in_child("benchmarks.auto_table:measure", kwargs, timeout, threads=1)


def _requests(ctx: Context, notes: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """What to hand to `measure` for each problem; a note for a data set that is not there."""
    requests: list[tuple[str, dict[str, Any]]] = [
        (name, {}) for name in PROBLEMS if not ctx.quick or name in QUICK
    ]
    for name, (data, _) in FROM_DATA.items():
        if ctx.quick:
            continue
        try:
            requests.append((name, {"data": ctx.load(data)}))
        except DataMissingError:
            # The error names a folder of this machine, which no report should carry.
            notes.append(f"{name}: left out, the data set {data!r} is not there.")
    return requests


def _protocol(repeat: int, most: float) -> str:
    return (
        f"Seconds are medians of whole calls of minimize(problem, solver, tol={TOL:g}) that ended "
        "in a certified gap, one thread, every problem in a process of its own after a warm-up "
        f"of every solver: {repeat} call(s), up to {MOST_REPEAT} of those that take milliseconds; "
        f"auto, which has {most:g} s, both before the others and after them. > t: not certified "
        f"in t seconds, which is {PATIENCE:g} times the time of auto, but {LEAST_LIMIT:g} s at "
        "least, and what auto had where it did not get there itself. A word instead: how "
        "the run ended before that. A dash: refused, not installed, or not tried (conic solvers "
        f"above order {CONIC_ORDER}, which do not keep to a time limit)."
    )


# --- tables --------------------------------------------------------------------------


def _ratio(outcome: Outcome, others: dict[str, float]) -> float | None:
    """Seconds of `auto` ÷ those of the fastest; None where nobody or not `auto` got there."""
    if not others or not outcome.auto.reached:
        return None
    return outcome.auto.seconds / next(iter(others.values()))


def _near(outcome: Outcome, others: dict[str, float]) -> bool:
    """Whether `auto` gets there, in `NEAR` times the seconds of the fastest other at most."""
    ratio = _ratio(outcome, others)
    return outcome.auto.reached and (ratio is None or ratio <= NEAR)


def _fastest(others: dict[str, float]) -> tuple[str | None, float | None]:
    return next(iter(others.items()), (None, None))


def _summary(outcomes: dict[str, Outcome]) -> Table:
    table = Table(
        f"Seconds to a certified relative gap of {TOL:g}",
        ["problem", "kind", "order", "auto s", "certified gap", "rank", "auto ran",
         "fastest other", "its s", "auto ÷ it", f"≤ {NEAR:g}",
         "fastest that auto does not run", "its s (not run)", "auto ÷ it (not run)",
         f"≤ {NEAR:g} (not run)", "others that got there", "others tried"],
    )  # fmt: skip
    for name, o in outcomes.items():
        groups = (o.reached, o.strangers)
        cells = [(*_fastest(g), _ratio(o, g), _near(o, g)) for g in groups]
        table.add(name, o.kind, o.order, o.auto.cell, o.auto.relative_gap, o.auto.rank,
                  " + ".join(o.parts), *cells[0], *cells[1], len(o.reached),
                  len(o.others))  # fmt: skip
    return table


def _times(outcomes: dict[str, Outcome]) -> Table:
    solvers = [name for name in gm.solvers.available() if name != "auto"]
    table = Table("Seconds of every solver", ["problem", "auto", *solvers])
    for name, o in outcomes.items():
        cells = (o.others[s].cell if s in o.others else None for s in solvers)
        table.add(name, o.auto.cell, *cells)
    return table


def _not_fastest(outcomes: dict[str, Outcome]) -> Table:
    table = Table("Where auto is not the fastest", ["problem", "auto s", "faster: its s"])
    for name, o in outcomes.items():
        faster = {s: t for s, t in o.reached.items() if t < o.auto.seconds}
        if faster:
            table.add(name, o.auto.cell, ", ".join(f"{s} {t:.3g}" for s, t in faster.items()))
    return table


def _counts(outcomes: dict[str, Outcome]) -> dict[str, int]:
    found = outcomes.values()
    return {
        f"auto certifies {TOL:g}": sum(o.auto.reached for o in found),
        f"auto takes at most {NEAR:g} times the fastest other": sum(
            _near(o, o.reached) for o in found
        ),
        f"auto takes at most {NEAR:g} times the fastest that it does not run": sum(
            _near(o, o.strangers) for o in found
        ),
        "auto is faster than all that it does not run": sum(
            o.auto.reached and (_ratio(o, o.strangers) or 0.0) <= 1.0 for o in found
        ),
    }


def _verdicts(outcomes: dict[str, Outcome]) -> Table:
    table = Table("Verdicts", ["claim", "problems", "of", "holds on all"])
    for claim, count in _counts(outcomes).items():
        table.add(claim, count, len(outcomes), count == len(outcomes))
    return table


def _verdict_line(outcomes: dict[str, Outcome]) -> str:
    counts = _counts(outcomes)
    slow = {n: _ratio(o, o.reached) for n, o in outcomes.items() if not _near(o, o.reached)}
    named = ", ".join(
        f"{n} {'not certified' if q is None else f'{q:.2f}'}" for n, q in slow.items()
    )
    counted = "; ".join(f"{claim}: {count}" for claim, count in counts.items())
    return (
        f"Of {len(outcomes)} problems, {counted}. "
        f"Above {NEAR:g} times the fastest other: {named or 'none'}."
    )
