"""Every solver on every kind of problem: F − F* against time.

Each problem is solved by every solver of ``gm.solvers.available()`` that accepts it, from its
default start, for the same few seconds. F* is the lowest value of any run, the best of them
continued; its certified gap, relative to the best lower bound of any run, is in the caption.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.learn import Run, time_to
from benchmarks.harness.report import Report, Table
from gramian.losses import SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, PairDistances, triplet_margins
from gramian.objectives import Composite

TITLE = "Convergence of every solver on every kind of problem"
PAPER = "Not from a paper: every solver on every problem that it accepts"

SECONDS = 3.0, 0.3
QUICK = ("quadratic_commuting", "top_eigen")
TOLERANCE = 1e-7
LEVELS = (1e-3, 1e-6)
FLOOR = 1e-12
"""The smallest relative F − F* that is drawn."""

CONIC, CONIC_ORDER = ("conic", "sqlp", "scsdp"), 50
"""Solvers that cannot be stopped between their iterations, and the largest order for them."""

FRANK_WOLFE: dict[str, dict[str, Any]] = {
    "frank-wolfe": {},
    "frank-wolfe, exact step": {"local": False},
    "frank-wolfe, away": {"step": "away", "local": False},
    "frank-wolfe, Hazan": {"step": "hazan", "local": False},
    "frank-wolfe, Hazan, μ falling": {"step": "hazan", "local": False, "smoothing": 1.0},
}
"""The variants for problems of fixed trace; for others only the first."""

NOTES = (
    "A solver keeps its own default start (M = 0 or a random factor) and options; none is given a "
    "rank. Times are those of one run on a noisy machine: read factors of two as equal.",
    f"Runs stop at a certified relative gap of {TOLERANCE:g}, at the time limit, or where the "
    "solver finds no step. A time is that of the first iterate yielded at the level: L-BFGS and "
    "BILGO yield once per batch of inner iterations, the conic solvers once at the end.",
    f"The conic solvers ({', '.join(CONIC)}) are left out above order {CONIC_ORDER}: they do not "
    "keep to a time limit of seconds there (their time limit acts "
    "between iterations only), and have a benchmark of their own.",
    "A dash under a level: not reached in the time given. A dash under the gap: nothing proved.",
    "Each problem ran in a process of its own with one thread; compilation of the numba kernels "
    "is kept out by a run of one second before the clock.",
)


@dataclass
class Outcome:
    """All solvers on one problem, and bounds of its optimum."""

    formula: str
    order: int
    traces: dict[str, Run]
    refused: dict[str, list[str]]
    """Reason to the solvers that gave it."""
    reference: Run
    """The best run, continued."""

    @property
    def optimum(self) -> float:
        """The lowest value any run reached."""
        return min(run.best for run in (*self.traces.values(), self.reference))

    @property
    def optimum_gap(self) -> float:
        """Upper bound on the distance of that value from the optimum, relative to it."""
        lower = max(t.bound for t in (*self.traces.values(), self.reference))
        return max(0.0, self.optimum - lower) / abs(self.optimum)

    def excess(self, trace: Run) -> np.ndarray:
        """(F − F*)/|F*| along a run."""
        return (trace.values - self.optimum) / abs(self.optimum)

    def time_to(self, trace: Run, level: float) -> float | None:
        """Seconds to a relative excess of `level`, None where the run does not get there."""
        return time_to(trace.times, self.excess(trace), level)


def quadratic(commuting: bool) -> gm.Problem:
    """tr((AM)² + BM² + 2CM) of order 100 with random A, B ⪰ 0 and an indefinite C."""
    rng = np.random.default_rng(0)
    n = 100
    bases = [np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2)]
    spectra = [rng.uniform(0.1, 1.0, n), rng.uniform(0.1, 1.0, n)]
    V, W = (bases[0], bases[0]) if commuting else bases
    A, B = (V * spectra[0]) @ V.T, (W * spectra[1]) @ W.T
    C = rng.standard_normal((n, n))
    return gm.problems.quadratic(_symmetric(A), _symmetric(B), _symmetric(C))


def top_eigen() -> gm.Problem:
    """‖M − K‖² for an indefinite K of order 200 with eigenvalues ±1/√i."""
    rng = np.random.default_rng(1)
    V = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    eigenvalues = rng.choice([-1.0, 1.0], 200) / np.sqrt(np.arange(1, 201))
    return gm.problems.top_eigen(_symmetric((V * eigenvalues) @ V.T))


def kta(regularizer: str) -> gm.Problem:
    """Kernel-target alignment on the digits, λ = 1e-3."""
    X, y = digits()
    return gm.problems.kta(X, y, 1e-3, regularizer=regularizer)


def linear_separation() -> gm.Problem:
    """Linear separation on the digits, λ = 1e-6 (a sum over all pairs)."""
    X, y = digits()
    return gm.problems.linear_separation(X, y, 1e-6)


def entries() -> gm.Problem:
    """Σ (M_ij − T_ij)² + 2 tr M: order 300, its diagonal and 2,700 more entries of a noisy T."""
    rng = np.random.default_rng(2)
    n, rank = 300, 5
    i, j = np.triu_indices(n, 1)
    chosen = rng.choice(i.size, 2700, replace=False)
    diagonal = np.column_stack([np.arange(n), np.arange(n)])
    pairs = np.vstack([np.column_stack([i[chosen], j[chosen]]), diagonal])
    P = rng.standard_normal((n, rank))
    target = np.sum(P[pairs[:, 0]] * P[pairs[:, 1]], axis=1) + 0.1 * rng.standard_normal(len(pairs))
    objective = Composite(Entries(pairs, n), Squared(target), C=2.0)
    return gm.Problem(objective, name="entries", formula="Σ (M_ij − T_ij)² + 2 tr M")


def hinge() -> gm.Problem:
    """Σ max(0, 1 − margin)² + 20 tr M over 2,000 random triplets of the digits."""
    X, y = digits()
    rng = np.random.default_rng(3)
    anchors = rng.choice(y.size, 2000)
    indices = np.arange(y.size)
    same = [rng.choice(indices[(y == y[a]) & (indices != a)]) for a in anchors]
    other = [rng.choice(indices[y != y[a]]) for a in anchors]
    triplets = np.column_stack([anchors, same, other])
    objective = Composite(Congruence(triplet_margins(triplets, y.size), X), SquaredHinge(), C=20.0)
    return gm.Problem(
        objective, name="triplets", formula="Σ max(0, 1 − d(i,l) + d(i,j))² + 20 tr M"
    )


def soft_min() -> gm.Problem:
    """μ ln Σ exp(−d_M/μ) over 2,000 dissimilar pairs of the digits, tr M = 1, μ = 0.1."""
    X, y = digits()
    rng = np.random.default_rng(4)
    pairs = rng.choice(y.size, (6000, 2))
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][:2000]
    objective = Composite(Congruence(PairDistances(pairs, y.size), X), SoftMin(mu=0.1))
    return gm.Problem(
        objective, gm.Spectrahedron(), name="soft-min", formula="μ ln Σ exp(−d_M(i,j)/μ)"
    )


PROBLEMS: dict[str, Callable[[], gm.Problem]] = {
    "quadratic_commuting": lambda: quadratic(commuting=True),
    "quadratic": lambda: quadratic(commuting=False),
    "top_eigen": top_eigen,
    "kta_identity": lambda: kta("identity"),
    "kta_frobenius": lambda: kta("frobenius"),
    "kta_trace": lambda: kta("trace"),
    "linear_separation": linear_separation,
    "entries": entries,
    "triplets": hinge,
    "soft_min": soft_min,
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The 1,797 digits of scikit-learn, standardised."""
    X, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def _symmetric(A: np.ndarray) -> np.ndarray:
    return 0.5 * (A + A.T)


def run(ctx: Context) -> Report:
    """One picture and one table for each problem, and one table of the first solvers."""
    seconds = ctx.pick(*SECONDS)
    calls = {name: partial(ctx.call, measure, name=name, seconds=seconds)
             for name in ctx.pick(PROBLEMS, QUICK)}  # fmt: skip
    outcomes: dict[str, Outcome] = ctx.each(calls)
    for name, outcome in outcomes.items():
        _draw(ctx, name, outcome)
    tables = [_summary(outcomes), *(_table(name, outcome) for name, outcome in outcomes.items())]
    return ctx.report(tables, (*NOTES, f"Time limit: {seconds:g} s a run."))


def measure(name: str, seconds: float) -> Outcome:
    """Run every solver that accepts a problem: in a child process."""
    problem = PROBLEMS[name]()
    gm.minimize(problem, time_limit=1.0)
    traces, refused = {}, {}
    best = None
    for label, solver, options in _contestants(problem):
        try:
            result = solve(problem, solver, options, seconds)
        except (ValueError, ImportError) as refusal:
            reason = str(refusal).partition(": ")[2].partition(". These can")[0]
            refused.setdefault(reason, []).append(label)
            continue
        traces[label] = Run.of(result)
        if best is None or result.value < best[0].value:
            best = result, solver, options
    assert best is not None
    # The best run continued for three times as long, or to a gap of 1e-10.
    result, solver, options = best
    options = {**options, "init": result.factor, "tol": 1e-10}
    reference = Run.of(solve(problem, solver, options, 3 * seconds))
    return Outcome(problem.formula, problem.order, traces, refused, reference)


def _contestants(problem: gm.Problem) -> list[tuple[str, str, dict[str, Any]]]:
    """(label, solver, options): every solver, and the variants of Frank–Wolfe on a fixed trace."""
    variants = FRANK_WOLFE if problem.domain.trace is not None else {"frank-wolfe": {}}
    apart = ("frank-wolfe", *(CONIC if problem.order > CONIC_ORDER else ()))
    named = [(name, name, {}) for name in gm.solvers.available() if name not in apart]
    return named + [(label, "frank-wolfe", options) for label, options in variants.items()]


def solve(problem: gm.Problem, solver: str, options: dict[str, Any], seconds: float) -> gm.Result:
    """One run within the time limit."""
    settings = {"tol": TOLERANCE, "max_iter": 10**9, "time_limit": seconds, "random_state": 0}
    return gm.minimize(problem, solver, **{**settings, **options})


def _table(name: str, outcome: Outcome) -> Table:
    refused = "".join(
        f" Refused by {', '.join(labels)}: {reason}." for reason, labels in outcome.refused.items()
    )
    table = Table(
        f"{name}: {outcome.formula}, order {outcome.order}, F* = {outcome.optimum:.12g} "
        f"(certified to {outcome.optimum_gap:.1e} of it).{refused}",
        ["solver", *(f"s to {level:g}" for level in LEVELS), "last (F − F*)/|F*|",
         "certified gap", "rank", "status", "s in all", "steps"],
    )  # fmt: skip
    for label, t in sorted(outcome.traces.items(), key=lambda item: _order(outcome, item[1])):
        times = [outcome.time_to(t, level) for level in LEVELS]
        last = float(np.min(outcome.excess(t))) if t.values.size else None
        steps = max(0, t.values.size - 1)
        table.add(label, *times, last, t.gap, t.rank, t.status, t.seconds, steps)
    return table


def _order(outcome: Outcome, t: Run) -> tuple[float, float, float]:
    """Sort key: time to the finest level, time to the coarse one, last excess."""
    times = [outcome.time_to(t, level) for level in reversed(LEVELS)]
    last = float(np.min(outcome.excess(t))) if t.values.size else np.inf
    fine, coarse = (np.inf if seconds is None else seconds for seconds in times)
    return fine, coarse, last


def _summary(outcomes: dict[str, Outcome]) -> Table:
    """The fastest solver to the finest level, and the time of `auto` relative to it."""
    level = LEVELS[-1]
    table = Table(
        f"First to a relative F − F* of {level:g}, and the default solver beside it",
        ["problem", "first", "s", "second", "s (second)", "auto s", "auto ÷ first",
         "reached by", "run", "F* certified to"],
    )  # fmt: skip
    for name, outcome in outcomes.items():
        times = {label: outcome.time_to(t, level) for label, t in outcome.traces.items()}
        done = sorted((s, label) for label, s in times.items() if s is not None and label != "auto")
        first, second = (*done, (None, None), (None, None))[:2]
        auto = times.get("auto")
        ratio = None if auto is None or first[0] is None else auto / first[0]
        reached = sum(s is not None for s in times.values())
        table.add(name, first[1], first[0], second[1], second[0], auto, ratio, reached,
                  len(times), outcome.optimum_gap)  # fmt: skip
    return table


def _draw(ctx: Context, name: str, outcome: Outcome) -> None:
    """Relative F − F* against time, both logarithmic, one line for each solver.

    Markers if the steps are few; `auto`, which runs another solver, is a broad black line.
    """
    caption = (
        f"{name}: {outcome.formula}, order {outcome.order}; "
        f"F* certified to {outcome.optimum_gap:.1e} (dotted)"
    )
    with ctx.figure(name, caption, figsize=(9, 5)) as (fig, ax):
        for k, (label, t) in enumerate(outcome.traces.items()):
            style = {"color": f"C{k % 10}", "linestyle": "-" if k < 10 else "--", "markersize": 4}
            if t.values.size <= 40:
                style |= {"marker": "os^vDPX"[k % 7]}
            if label == "auto":
                style |= {"color": "black", "linewidth": 4, "alpha": 0.4, "markersize": 10}
            if t.values.size:
                ax.plot(t.times, np.maximum(outcome.excess(t), FLOOR), label=label, **style)
        if outcome.optimum_gap > FLOOR:
            ax.axhline(outcome.optimum_gap, color="black", linestyle=":", linewidth=0.8)
        ax.set(xlabel="seconds", ylabel="(F − F*)/|F*|", xscale="log", yscale="log")
        ax.set_ylim(FLOOR / 2, min(1e4, ax.get_ylim()[1]))
        ax.grid(alpha=0.3)
        fig.legend(loc="outside right upper", fontsize="small")
