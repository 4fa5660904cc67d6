"""`auto` against every other solver: seconds to a certified relative gap of 1e-6.

Each problem is solved by `auto`, then by every other solver that accepts it, within three times the
seconds of `auto`, at least one. The time is that of the whole call of ``gm.minimize``; a run counts
only if its certificate proves the gap.
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
from benchmarks.harness.report import Report, Table
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, PairDistances, triplet_margins
from gramian.objectives import Composite, GramQuadratic, Sum
from gramian.solvers.registry import SOLVERS

TITLE = "auto compared with every other solver: seconds to a certified gap"
PAPER = "Not from a paper: the default solver compared with all others"

TOL = 1e-6
NEAR = 1.5
"""Allowed ratio of the seconds of `auto` to those of the fastest other solver."""

AUTO_LIMITS = 20.0, 10.0
PATIENCE, LEAST_LIMIT = 3.0, 1.0
"""Time limit of another solver: a multiple of the seconds of `auto`, and at least these seconds."""
WARM_UP = 0.2
LEAST_REPEAT, MOST_REPEAT, REPEAT_BELOW = 3, 15, 0.3
"""Smallest and largest number of calls; further calls are made while their sum is below these
seconds."""
STARTUP, OVERRUNS = 60.0, 120.0
"""Seconds for the imports and data of a process, and for solvers that exceed their limit."""
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

QUICK = ("quadratic_6", "entries_6", "soft_min_6")

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
        kind = LOSSES.get(loss, loss) + (
            " in a basis" if isinstance(objective.map, Congruence) else ""
        )
    else:
        kind = "sum of objectives" if isinstance(objective, Sum) else type(objective).__name__
    return kind + ("" if problem.domain.trace is None else ", fixed trace")


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
    """A solver on a problem: median seconds, infinite if it proved too little, and the last run."""

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
    """All solvers on one problem; `parts` are the solvers that `auto` ran."""

    kind: str
    order: int
    auto: Time
    parts: tuple[str, ...]
    others: dict[str, Time]

    def fastest(self, *, not_run: bool = False) -> tuple[str | None, float | None, float | None]:
        """The fastest other solver (that `auto` did not run), its seconds, and auto ÷ these."""
        done = sorted(
            (time.seconds, name)
            for name, time in self.others.items()
            if time.reached and not (not_run and name in self.parts)
        )
        if not done:
            return None, None, None
        seconds, name = done[0]
        return name, seconds, self.auto.seconds / seconds if self.auto.reached else None

    def near(self, *, not_run: bool = False, most: float = NEAR) -> bool:
        """Whether `auto` certifies the gap in at most `most` times the seconds of the fastest."""
        return self.auto.reached and (self.fastest(not_run=not_run)[2] or 0.0) <= most


def measure(name: str, most: float, repeat: int, data: Dataset | None = None) -> Outcome:
    """`auto`, every other solver that accepts the problem, and `auto` again to average drift."""
    problem = PROBLEMS[name]() if data is None else FROM_DATA[name][1](data)
    parts = parts_of_auto(problem, most)
    before = calls(problem, "auto", most, repeat - repeat // 2)
    seconds = median_seconds(before, most)
    limit = max(LEAST_LIMIT, PATIENCE * seconds) if np.isfinite(seconds) else most
    others = {
        solver: summary(calls(problem, solver, limit, repeat), limit)
        for solver in gm.solvers.available()
        if solver not in ("auto", *(CONIC if problem.order > CONIC_ORDER else ()))
        if warm_up(problem, solver)
    }
    after = calls(problem, "auto", most, repeat // 2) if proves(before[-1], most) else []
    auto = summary([*before, *after], most)
    return Outcome(kind_of(problem), problem.order, auto, parts, others)


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


def warm_up(problem: gm.Problem, solver: str) -> bool:
    """Compile what the solver needs; whether it accepts the problem."""
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
    """The time of a call that proves too little is infinite."""
    return statistics.median(r.seconds if proves(r, limit) else np.inf for r in results)


def summary(results: list[gm.Result], limit: float) -> Time:
    """The median of the calls, and the last one's certificate."""
    last, seconds = results[-1], median_seconds(results, limit)
    return Time(seconds, limit, last.status.name, last.certificate.relative_gap, last.rank)


# --- the run -------------------------------------------------------------------------


def run(ctx: Context) -> Report:
    """Every problem in a process of its own, then the tables."""
    repeat = ctx.repeat if ctx.quick else max(ctx.repeat, LEAST_REPEAT)
    most = ctx.pick(*AUTO_LIMITS)
    load_before = os.getloadavg()[0]
    notes = [_protocol(repeat, most)]
    requests: dict[str, dict[str, Any]] = {}
    for name, (data, _) in ctx.pick(FROM_DATA, {}).items():
        try:
            requests[name] = {"data": ctx.load(data)}
        except DataMissingError:  # the error names a local folder, which no report should contain
            notes.append(f"{name}: left out, the data set {data!r} is not available.")
    requests |= {name: {} for name in ctx.pick(PROBLEMS, QUICK)}
    timeout = STARTUP + OVERRUNS + (PATIENCE * len(SOLVERS) + repeat) * most
    child = partial(ctx.child, measure, timeout, most=most, repeat=repeat)
    found = ctx.each({name: partial(child, name=name, **given) for name, given in requests.items()})
    notes += [f"{name}: no figures, {c.error}." for name, c in found.items() if not c.ok]
    outcomes = {
        name: found[name].value
        for name in (*PROBLEMS, *FROM_DATA)
        if name in found and found[name].ok
    }
    load = f"Load average of the machine: {load_before:.2f} before, {os.getloadavg()[0]:.2f} after."
    return ctx.report(_tables(outcomes), (_verdict_line(outcomes), *notes, load))


def _protocol(repeat: int, most: float) -> str:
    return (
        f"Seconds are medians of whole calls of minimize(problem, solver, tol={TOL:g}) that ended "
        "in a certified gap, one thread, every problem in a process of its own after a warm-up "
        f"of every solver: {repeat} call(s), up to {MOST_REPEAT} of those that take milliseconds; "
        f"auto, with a limit of {most:g} s, both before and after the others. > t: not certified "
        f"in t seconds, which is {PATIENCE:g} times the time of auto, at least {LEAST_LIMIT:g} s, "
        "and the limit of auto where it did not certify the gap. A word instead: how the run ended "
        "before that. A dash: refused, not installed, or not tried (conic solvers above order "
        f"{CONIC_ORDER}, which do not keep to a time limit)."
    )


def _tables(outcomes: dict[str, Outcome]) -> list[Table]:
    solvers = [name for name in gm.solvers.available() if name != "auto"]
    verdicts = Table("Verdicts", ["claim", "problems", "of", "holds on all"])
    for claim, count in _counts(outcomes).items():
        verdicts.add(claim, count, len(outcomes), count == len(outcomes))
    main = Table(
        f"Seconds to a certified relative gap of {TOL:g}",
        ["problem", "kind", "order", "auto s", "certified gap", "rank", "auto ran",
         "fastest other", "its s", "auto ÷ it", f"≤ {NEAR:g}",
         "fastest that auto does not run", "its s (not run)", "auto ÷ it (not run)",
         f"≤ {NEAR:g} (not run)", "others that got there", "others tried"],
    )  # fmt: skip
    times = Table("Seconds of every solver", ["problem", "auto", *solvers])
    slower = Table("Where auto is not the fastest", ["problem", "auto s", "faster: its s"])
    for name, o in outcomes.items():
        cells = [cell for not_run in (False, True)
                 for cell in (*o.fastest(not_run=not_run), o.near(not_run=not_run))]  # fmt: skip
        reached = sum(time.reached for time in o.others.values())
        auto = o.auto.cell, o.auto.relative_gap, o.auto.rank
        main.add(name, o.kind, o.order, *auto, " + ".join(o.parts), *cells, reached, len(o.others))
        times.add(
            name, o.auto.cell, *(o.others[s].cell if s in o.others else None for s in solvers)
        )
        faster = sorted((t.seconds, s) for s, t in o.others.items() if t.seconds < o.auto.seconds)
        if faster:
            slower.add(name, o.auto.cell, ", ".join(f"{s} {t:.3g}" for t, s in faster))
    return [verdicts, main, times, slower]


def _counts(outcomes: dict[str, Outcome]) -> dict[str, int]:
    found = outcomes.values()
    at_most = f"auto takes at most {NEAR:g} times the fastest"
    return {
        f"auto certifies {TOL:g}": sum(o.auto.reached for o in found),
        f"{at_most} other": sum(o.near() for o in found),
        f"{at_most} that it does not run": sum(o.near(not_run=True) for o in found),
        "auto is faster than all that it does not run": sum(
            o.near(not_run=True, most=1.0) for o in found
        ),
    }


def _verdict_line(outcomes: dict[str, Outcome]) -> str:
    slow = {name: o.fastest()[2] for name, o in outcomes.items() if not o.near()}
    named = [f"{n} {'not certified' if q is None else f'{q:.2f}'}" for n, q in slow.items()]
    counted = "; ".join(f"{claim}: {count}" for claim, count in _counts(outcomes).items())
    return (
        f"Of {len(outcomes)} problems, {counted}. "
        f"Above {NEAR:g} times the fastest other: {', '.join(named) or 'none'}."
    )
