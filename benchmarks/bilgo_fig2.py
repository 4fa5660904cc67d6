"""BILGO, Fig. 2: how BILGO, Journée et al.'s rule and random conic pursuit converge on KTA.

Measured at every iteration k = 1 … 300 from M = 0 on the real sets w1a and a1a: the objective
F, λ_max(−∇F), the slack ‖∇F·M‖, α and β; every 25 iterations the accuracy of 3 nearest
neighbours. λ is the paper's choice, two-fold cross-validation over 10^−3 … 10^3, made with the
exact optimum for each λ. BILGO-LS, which the figure leaves out, stands beside.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.data import Dataset
from benchmarks.harness.report import Report, Table

TITLE = "Convergence of BILGO, Journée et al. and random conic pursuit on KTA"
PAPER = "BILGO (Hao, Yuan, Ghanem 2013), Section 6.1 and Fig. 2"
NEEDS_DATA = ("w1a", "a1a")

NEIGHBOURS = 3
WEIGHTS = tuple(10.0**p for p in range(-3, 4))
ITERATIONS, SNAPSHOT_EVERY = 300, 25
TEST_SAMPLES = 2000
SHOWN = (1, 50, 100, 200, 300)
LAST = 20
"""Iterations at the end whose median stands for the end: single iterates jump."""

BILGO, JOURNEE, RCP, LOCAL = "BILGO", "Journée et al.", "random conic pursuit", "BILGO-LS"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    BILGO: ("bilgo", {"local": None}),
    JOURNEE: ("journee", {}),
    RCP: ("random-conic-pursuit", {"chi": 0.5}),
    LOCAL: ("bilgo", {}),
}
COLORS = {BILGO: "tab:blue", JOURNEE: "tab:red", RCP: "tab:green", LOCAL: "tab:purple"}
RESIDUALS = {"lambda_max": "abs λ_max", "slack": "slack"}
CURVES = ("value", "lambda_max", "slack", "alpha", "beta", "rank")

NOTES = (
    "Training accuracy leaves the sample itself out of its neighbours (the paper does not say); "
    f"testing accuracy is that of a fixed random {TEST_SAMPLES} of the test samples.",
    "A run that ends before the last iteration because no step changes F keeps its last values.",
    "Each data set ran in a process with one BLAS thread: at these orders a second thread on a "
    "busy machine costs more than it gives.",
    "F* is the certified optimum by the solver 'auto'.",
    "Verdicts are computed from the figures beside them.",
)


@dataclass
class Trace:
    """One method on one data set: curves by iteration 0 … K, accuracies by snapshot."""

    curves: dict[str, np.ndarray]
    seconds: float
    status: str
    stopped: int
    accuracy: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Iteration to (training, testing)."""

    def at(self, column: str, k: int) -> float:
        """A curve's value at iteration k, its last one if the run ended before."""
        curve = self.curves[column]
        return float(curve[min(k, curve.size - 1)])

    def final(self, column: str) -> float:
        """A curve's last value."""
        return float(self.curves[column][-1])

    def end(self, column: str) -> float:
        """The median size over the last iterations."""
        return float(np.median(np.abs(self.curves[column][-LAST:])))

    def accuracies(self, k: int) -> tuple[float, float]:
        """The last accuracies measured up to iteration k."""
        return self.accuracy[max(i for i in self.accuracy if i <= k)]

    @property
    def last_accuracies(self) -> tuple[float, float]:
        return self.accuracy[max(self.accuracy)]


@dataclass
class Outcome:
    """Everything found on one data set."""

    lam: float
    errors: dict[float, float]
    optimum: float
    relative_gap: float
    majority: float
    traces: dict[str, Trace]


def run(ctx: Context) -> Report:
    """Run every method on both sets; draw one panel figure and two tables for each."""
    tables = []
    for name in NEEDS_DATA:
        outcome = _outcome(ctx, name)
        _draw(ctx, name, outcome)
        tables += [_choice(name, outcome), _values(name, outcome), _verdicts(name, outcome)]
    return ctx.report(tables, NOTES)


def _outcome(ctx: Context, name: str) -> Outcome:
    kwargs = {"data": ctx.load(name), "iterations": 50 if ctx.quick else ITERATIONS}
    child = ctx.in_child("benchmarks.bilgo_fig2:measure", kwargs, threads=1)
    if not child.ok:
        raise RuntimeError(f"{name}: {child.error}")
    return child.value


def measure(data: Dataset, iterations: int) -> Outcome:
    """Choose λ, find the optimum, and trace every method: what the child process does."""
    chosen = np.random.default_rng(0).permutation(data.X_test.shape[0])[:TEST_SAMPLES]
    X_test, y_test = data.X_test[chosen], data.y_test[chosen]
    errors = {lam: cross_validated_error(data.X, data.y, lam) for lam in WEIGHTS}
    lam = min(errors, key=lambda weight: errors[weight])
    problem = gm.problems.kta(data.X, data.y, lam)
    best = gm.minimize(problem, tol=1e-9)

    def accuracy(factor: np.ndarray) -> tuple[float, float]:
        return neighbour_accuracy(data.X @ factor, data.y, X_test @ factor, y_test)

    traces = {
        label: trace(problem, solver, options, iterations, accuracy)
        for label, (solver, options) in METHODS.items()
    }
    return Outcome(
        lam,
        errors,
        best.value,
        best.certificate.relative_gap,
        float(np.bincount(y_test).max() / y_test.size),
        traces,
    )


def cross_validated_error(X: Any, y: np.ndarray, lam: float) -> float:
    """Two-fold error of 3 nearest neighbours under the optimal metric for λ."""
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    errors = []
    for kept, held in folds.split(X, y):
        factor = gm.minimize(gm.problems.kta(X[kept], y[kept], lam), tol=1e-4).factor
        neighbours = KNeighborsClassifier(NEIGHBOURS, algorithm="brute")
        neighbours.fit(X[kept] @ factor, y[kept])
        errors.append(1 - neighbours.score(X[held] @ factor, y[held]))
    return float(np.mean(errors))


def neighbour_accuracy(
    train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray
) -> tuple[float, float]:
    """Accuracy of 3 nearest neighbours: on training samples without themselves, on test ones."""
    neighbours = KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(train, y)
    votes = y[neighbours.kneighbors(return_distance=False)]
    training = np.mean(np.round(votes.mean(axis=1)) == y)
    return float(training), float(neighbours.score(test, y_test))


def trace(
    problem: gm.Problem,
    solver: str,
    options: dict[str, Any],
    iterations: int,
    accuracy: Callable[[np.ndarray], tuple[float, float]],
) -> Trace:
    """Run a solver from M = 0 for all iterations, then measure its snapshots, out of its time."""
    snapshots: dict[int, np.ndarray] = {}

    def snapshot(state: Any) -> None:
        if state.iteration == 1 or (state.iteration and state.iteration % SNAPSHOT_EVERY == 0):
            snapshots[state.iteration] = state.factor.copy()

    result = gm.minimize(
        problem,
        solver,
        tol=0.0,
        max_iter=iterations,
        random_state=0,
        callback=snapshot,
        **options,
    )
    return Trace(
        {column: result.history[column] for column in CURVES},
        result.seconds,
        result.status.name,
        result.iterations,
        {k: accuracy(factor) for k, factor in snapshots.items()},
    )


def _choice(name: str, outcome: Outcome) -> Table:
    table = Table(
        f"{name}: two-fold error of 3-NN by λ; λ = {outcome.lam:g} is taken, "
        f"F* = {outcome.optimum:.10g} (certified relative gap {outcome.relative_gap:.1e})",
        ["λ", "error %"],
    )
    for lam, error in outcome.errors.items():
        table.add(f"{lam:g}", 100 * error)
    return table


def _values(name: str, outcome: Outcome) -> Table:
    columns = (
        "k", "method", "F", "F/F* − 1", "λ_max", "slack", "α", "β", "rank", "train %", "test %"
    )  # fmt: skip
    majority = f"always the larger class: test {100 * outcome.majority:.1f} %"
    ends = "; ".join(
        f"{label} {t.seconds:.1f} s for {t.stopped} iterations ({t.status})"
        for label, t in outcome.traces.items()
    )
    table = Table(f"{name}, λ = {outcome.lam:g}, along the way ({ends}; {majority})", columns)
    length = max(t.stopped for t in outcome.traces.values())
    for k in (shown for shown in SHOWN if shown <= length):
        for label, t in outcome.traces.items():
            value = t.at("value", k)
            training, testing = t.accuracies(k)
            table.add(
                k,
                label,
                f"{value:.8g}",
                value / outcome.optimum - 1,
                *(t.at(column, k) for column in ("lambda_max", "slack", "alpha", "beta")),
                int(t.at("rank", k)),
                f"{100 * training:.2f}",
                f"{100 * testing:.2f}",
            )
    return table


def _verdicts(name: str, outcome: Outcome) -> Table:
    """The statements of Section 6.1, each beside a measured quantity and a stated criterion."""
    table = Table(
        f"{name}: what the paper's text says, and what we see",
        ["the paper", "measured", "value", "criterion", "holds"],
    )
    bilgo, journee, rcp, local = (outcome.traces[label] for label in METHODS)

    def at_most(claim: str, measured: str, value: float, limit: float) -> None:
        table.add(claim, measured, value, f"≤ {limit:g}", bool(value <= limit))

    def at_least(claim: str, measured: str, value: float, limit: float) -> None:
        table.add(claim, measured, value, f"≥ {limit:g}", bool(value >= limit))

    def excess(t: Trace) -> float:
        return t.final("value") - outcome.optimum

    def share_left(claim: str, t: Trace, column: str, first: int) -> None:
        measured = f"{RESIDUALS[column]}, median of the last {LAST} ÷ first (k = {first})"
        at_most(claim, measured, t.end(column) / abs(t.at(column, first)), 1e-2)

    stuck = "Journée stuck where λ_max ≈ 0 and slack ≫ 0"
    share_left(stuck, journee, "lambda_max", 0)
    at_least(
        stuck, "its last slack ÷ BILGO's (medians)", journee.end("slack") / bilgo.end("slack"), 10
    )
    kkt = "BILGO satisfies the KKT conditions"
    share_left(kkt, bilgo, "lambda_max", 0)
    share_left(kkt, bilgo, "slack", 1)
    at_most(kkt, "F/F* − 1 at the end", excess(bilgo) / outcome.optimum, 1e-2)
    alpha, beta = bilgo.curves["alpha"], bilgo.curves["beta"]
    at_most("α → 1", f"median of 1 − α, last {LAST}", float(np.median(1 - alpha[-LAST:])), 0.01)
    at_most(
        "β → 0", f"median β of the last {LAST} ÷ largest", bilgo.end("beta") / np.nanmax(beta), 0.05
    )
    # Up to k = 1 there is no M for α to scale.
    for claim, t in (("α ≤ 1 always", bilgo), ("(α ≤ 1 always, for BILGO-LS)", local)):
        at_most(claim, "largest α − 1", float(np.max(t.curves["alpha"][2:])) - 1, 0)
    rises = np.diff(rcp.curves["value"]) > 1e-12 * np.abs(rcp.curves["value"][1:])
    at_most(
        "random pursuit decreases F iteratively", "iterations that raise F", int(rises.sum()), 0
    )
    share_left("random pursuit: both residuals fall to 0", rcp, "lambda_max", 0)
    share_left("random pursuit: both residuals fall to 0", rcp, "slack", 1)
    slower = "random pursuit much slower than BILGO"
    at_least(slower, "(F − F*) at the end ÷ BILGO's", excess(rcp) / excess(bilgo), 2)
    needed = _first_at_most(bilgo.curves["value"], rcp.final("value"))
    at_least(slower, "its iterations ÷ those BILGO needs for the same F", rcp.stopped / needed, 2)
    others = min(journee.final("value"), rcp.final("value"))
    at_most(
        "BILGO has the lowest F", "its last F ÷ the others' least", bilgo.final("value") / others, 1
    )
    for part, claim, winner in (
        (0, "BILGO has the best training accuracy", bilgo),
        (1, "Journée has the best testing accuracy", journee),
    ):
        rivals = [t.last_accuracies[part] for t in (bilgo, journee, rcp) if t is not winner]
        lead = 100 * (winner.last_accuracies[part] - max(rivals))
        at_least(claim, "points ahead of the best other at the end", lead, 0)
    return table


def _first_at_most(curve: np.ndarray, level: float) -> float:
    """The first iteration with a value of at most `level`, infinity if there is none."""
    reached = np.flatnonzero(curve <= level)
    return float(reached[0]) if reached.size else np.inf


def _draw(ctx: Context, name: str, outcome: Outcome) -> None:
    caption = (
        f"{name}, λ = {outcome.lam:g}: convergence from M = 0; dotted: accuracy of the larger class"
    )
    with ctx.figure(f"{name}", caption, nrows=3, ncols=2, figsize=(11, 11.5)) as (fig, axes):
        for label, t in outcome.traces.items():
            _draw_trace(axes, label, t, outcome.optimum)
        _label(axes, outcome)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=4)


def _draw_trace(axes: Any, label: str, t: Trace, optimum: float) -> None:
    style = {"color": COLORS[label], "linewidth": 1.2}
    k = np.arange(t.curves["value"].size)
    excess = t.curves["value"] / optimum - 1
    axes[0, 0].plot(k[1:], np.where(excess > 0, excess, np.nan)[1:], label=label, **style)
    axes[0, 1].plot(k[1:], np.abs(t.curves["lambda_max"][1:]), **style)
    axes[1, 0].plot(k[1:], t.curves["slack"][1:], **style)
    points = {"color": COLORS[label], "linestyle": "none", "marker": ".", "markersize": 3}
    axes[1, 1].plot(k[2:], t.curves["alpha"][2:], **points)
    axes[2, 0].plot(k[1:], np.where(t.curves["beta"] > 0, t.curves["beta"], np.nan)[1:], **points)
    at = sorted(t.accuracy)
    for part, line in ((0, "--"), (1, "-")):
        percent = [100 * t.accuracy[i][part] for i in at]
        axes[2, 1].plot(at, percent, line, marker="o", markersize=3, **style)


def _label(axes: Any, outcome: Outcome) -> None:
    names = (
        ("F/F* − 1", True),
        ("|λ_max(−∇F)|", True),
        ("slack ‖∇F·M‖", True),
        ("α", False),
        ("β (where positive)", True),
        ("3-NN accuracy % (dashed: training)", False),
    )
    for ax, (label, log) in zip(axes.ravel(), names, strict=True):
        ax.set(xlabel="iteration k", ylabel=label)
        if log:
            ax.set_yscale("log")
        ax.grid(alpha=0.3)
    axes[1, 1].axhline(1.0, color="black", linewidth=0.6)
    alphas = np.concatenate([t.curves["alpha"][2:] for t in outcome.traces.values()])
    axes[1, 1].set_ylim(max(0.0, np.percentile(alphas, 2) - 0.01), np.max(alphas) + 0.005)
    axes[2, 1].axhline(100 * outcome.majority, color="black", linewidth=0.6, linestyle=":")
