"""BILGO, Fig. 2: how BILGO, Journée et al.'s rule and random conic pursuit converge on KTA.

At every iteration k = 1 … 300 from M = 0 on w1a and a1a: the objective F, λ_max(−∇F), the slack
‖∇F·M‖, α and β; every 25 iterations the accuracy of 3 nearest neighbours. λ is chosen as in the
paper, by two-fold cross-validation over 10^−3 … 10^3, with the exact optimum for each λ. BILGO-LS,
which the figure omits, is included.
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
from benchmarks.harness.learn import Split, first_at_most
from benchmarks.harness.plots import Panel
from benchmarks.harness.report import Report, Table

TITLE = "Convergence of BILGO, Journée et al. and random conic pursuit on KTA"
PAPER = "BILGO (Hao, Yuan, Ghanem 2013), Section 6.1 and Fig. 2"
NEEDS_DATA = ("w1a", "a1a")

WEIGHTS, WEIGHTS_QUICK = tuple(10.0**p for p in range(-3, 4)), (1e-3, 1e-2)
ITERATIONS, SNAPSHOT_EVERY = (300, 50), 25
TEST_SAMPLES = 2000
SHOWN = (1, 50, 100, 200, 300)
LAST = 20
"""Iterations whose median stands for the end, because single iterates vary."""

BILGO, JOURNEE, RCP, LOCAL = "BILGO", "Journée et al.", "random conic pursuit", "BILGO-LS"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    BILGO: ("bilgo", {"local": None}),
    JOURNEE: ("journee", {}),
    RCP: ("random-conic-pursuit", {"chi": 0.5}),
    LOCAL: ("bilgo", {}),
}
CURVES = ("value", "lambda_max", "slack", "alpha", "beta", "rank")

NOTES = (
    "Training accuracy excludes the sample itself from its neighbours (the paper does not say); "
    f"testing accuracy is that of a fixed random {TEST_SAMPLES} of the test samples. One thread.",
    "A run that ends before the last iteration because no step changes F keeps its last values. F* "
    "is the certified optimum by the solver 'auto'.",
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
        """A curve's value at iteration k, or its last one."""
        curve = self.curves[column]
        return float(curve[min(k, curve.size - 1)])

    def end(self, column: str) -> float:
        """The median absolute value over the last iterations."""
        return float(np.median(np.abs(self.curves[column][-LAST:])))

    def accuracies(self, k: float = np.inf) -> tuple[float, float]:
        """The last accuracies up to iteration k."""
        return self.accuracy[max(i for i in self.accuracy if i <= k)]


@dataclass
class Outcome:
    """The results of one data set."""

    lam: float
    errors: dict[float, float]
    optimum: float
    relative_gap: float
    majority: float
    traces: dict[str, Trace]


def run(ctx: Context) -> Report:
    """Every method on both sets."""
    tables = []
    for name in NEEDS_DATA:
        weights, iterations = ctx.pick(WEIGHTS, WEIGHTS_QUICK), ctx.pick(*ITERATIONS)
        outcome = ctx.call(measure, data=ctx.load(name), iterations=iterations, weights=weights)
        _draw(ctx, name, outcome)
        tables += [_choice(name, outcome), _values(name, outcome), _verdicts(name, outcome)]
    return ctx.report(tables, NOTES)


def measure(data: Dataset, iterations: int, weights: tuple[float, ...]) -> Outcome:
    """Choose λ, find the optimum, and trace every method: in a child process."""
    chosen = np.random.default_rng(0).permutation(data.X_test.shape[0])[:TEST_SAMPLES]
    split = Split(data.X, data.y, data.X_test[chosen], data.y_test[chosen])
    errors = {lam: cross_validated_error(data.X, data.y, lam) for lam in weights}
    lam = min(errors, key=lambda weight: errors[weight])
    problem = gm.problems.kta(data.X, data.y, lam)
    best = gm.minimize(problem, tol=1e-9)

    def accuracy(factor: np.ndarray) -> tuple[float, float]:
        return neighbour_accuracy(split.mapped(lambda X: X @ factor))

    traces = {label: trace(problem, label, iterations, accuracy) for label in METHODS}
    majority = float(np.bincount(split.y_test).max() / split.y_test.size)
    gap = best.certificate.relative_gap
    return Outcome(lam, errors, best.value, gap, majority, traces)


def cross_validated_error(X: Any, y: np.ndarray, lam: float) -> float:
    """Two-fold error of 3 nearest neighbours with the optimal metric for λ."""
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    errors = []
    for kept, held in folds.split(X, y):
        factor = gm.minimize(gm.problems.kta(X[kept], y[kept], lam), tol=1e-4).factor
        split = Split(X[kept] @ factor, y[kept], X[held] @ factor, y[held])
        errors.append(split.error(algorithm="brute") / 100)
    return float(np.mean(errors))


def neighbour_accuracy(split: Split) -> tuple[float, float]:
    """Accuracy of 3 nearest neighbours: on training samples without themselves, on test ones."""
    neighbours = KNeighborsClassifier(3, algorithm="brute").fit(split.X, split.y)
    votes = split.y[neighbours.kneighbors(return_distance=False)]
    training = np.mean(np.round(votes.mean(axis=1)) == split.y)
    return float(training), float(neighbours.score(split.X_test, split.y_test))


def trace(
    problem: gm.Problem, label: str, iterations: int,
    accuracy: Callable[[np.ndarray], tuple[float, float]],
) -> Trace:  # fmt: skip
    """Run a solver from M = 0 for all iterations; evaluate its snapshots afterwards."""
    snapshots: dict[int, np.ndarray] = {}

    def snapshot(state: Any) -> None:
        if state.iteration == 1 or (state.iteration and state.iteration % SNAPSHOT_EVERY == 0):
            snapshots[state.iteration] = state.factor.copy()

    solver, options = METHODS[label]
    result = gm.minimize(
        problem, solver, tol=0.0, max_iter=iterations, random_state=0, callback=snapshot, **options
    )
    curves = {column: result.history[column] for column in CURVES}
    found = {k: accuracy(factor) for k, factor in snapshots.items()}
    return Trace(curves, result.seconds, result.status.name, result.iterations, found)


def _choice(name: str, outcome: Outcome) -> Table:
    caption = (
        f"{name}: two-fold error of 3-NN by λ; λ = {outcome.lam:g} is taken, "
        f"F* = {outcome.optimum:.10g} (certified relative gap {outcome.relative_gap:.1e})"
    )
    rows = [(f"{lam:g}", 100 * error) for lam, error in outcome.errors.items()]
    return Table(caption, ["λ", "error %"], rows)


def _values(name: str, outcome: Outcome) -> Table:
    columns = (
        "k", "method", "F", "F/F* − 1", "λ_max", "slack", "α", "β", "rank", "train %", "test %"
    )  # fmt: skip
    ends = "; ".join(
        f"{label} {t.seconds:.1f} s for {t.stopped} iterations ({t.status})"
        for label, t in outcome.traces.items()
    )
    majority = f"always the larger class: test {100 * outcome.majority:.1f} %"
    table = Table(f"{name}, λ = {outcome.lam:g}, along the way ({ends}; {majority})", columns)
    length = max(t.stopped for t in outcome.traces.values())
    for k in (shown for shown in SHOWN if shown <= length):
        for label, t in outcome.traces.items():
            value = t.at("value", k)
            figures = [t.at(column, k) for column in ("lambda_max", "slack", "alpha", "beta")]
            accuracies = [f"{100 * share:.2f}" for share in t.accuracies(k)]
            table.add(k, label, f"{value:.8g}", value / outcome.optimum - 1, *figures,
                      int(t.at("rank", k)), *accuracies)  # fmt: skip
    return table


def _verdicts(name: str, outcome: Outcome) -> Table:
    """The statements of Section 6.1, each with a measured quantity and a criterion."""
    table = Table(
        f"{name}: what the paper's text says, and what we see",
        ["the paper", "measured", "value", "criterion", "holds"],
    )
    bilgo, journee, rcp, local = (outcome.traces[label] for label in METHODS)
    residuals = {"lambda_max": "abs λ_max", "slack": "slack"}

    def judge(claim: str, measured: str, value: float, limit: float, least: bool = False) -> None:
        table.judge(claim, measured, value=value, limit=limit, least=least)

    def excess(t: Trace) -> float:
        return t.curves["value"][-1] - outcome.optimum

    def share_left(claim: str, t: Trace, column: str, first: int) -> None:
        measured = f"{residuals[column]}, median of the last {LAST} ÷ first (k = {first})"
        judge(claim, measured, t.end(column) / abs(t.at(column, first)), 1e-2)

    stuck = "Journée stuck where λ_max ≈ 0 and slack ≫ 0"
    share_left(stuck, journee, "lambda_max", 0)
    judge(stuck, "its last slack ÷ BILGO's (medians)", journee.end("slack") / bilgo.end("slack"),
          10, least=True)  # fmt: skip
    kkt = "BILGO satisfies the KKT conditions"
    share_left(kkt, bilgo, "lambda_max", 0)
    share_left(kkt, bilgo, "slack", 1)
    judge(kkt, "F/F* − 1 at the end", excess(bilgo) / outcome.optimum, 1e-2)
    alpha, beta = bilgo.curves["alpha"], bilgo.curves["beta"]
    judge("α → 1", f"median of 1 − α, last {LAST}", float(np.median(1 - alpha[-LAST:])), 0.01)
    judge("β → 0", f"median β of the last {LAST} ÷ largest", bilgo.end("beta") / np.nanmax(beta),
          0.05)  # fmt: skip
    # Up to k = 1 there is no M for α to scale.
    for claim, t in (("α ≤ 1 always", bilgo), ("(α ≤ 1 always, for BILGO-LS)", local)):
        judge(claim, "largest α − 1", float(np.max(t.curves["alpha"][2:])) - 1, 0)
    values = rcp.curves["value"]
    rises = int(np.sum(np.diff(values) > 1e-12 * np.abs(values[1:])))
    judge("random pursuit decreases F iteratively", "iterations that raise F", rises, 0)
    share_left("random pursuit: both residuals fall to 0", rcp, "lambda_max", 0)
    share_left("random pursuit: both residuals fall to 0", rcp, "slack", 1)
    slower = "random pursuit much slower than BILGO"
    judge(slower, "(F − F*) at the end ÷ BILGO's", excess(rcp) / excess(bilgo), 2, least=True)
    needed = first_at_most(bilgo.curves["value"], values[-1]) or np.inf
    judge(slower, "its iterations ÷ those BILGO needs for the same F", rcp.stopped / needed, 2,
          least=True)  # fmt: skip
    others = min(journee.curves["value"][-1], values[-1])
    judge("BILGO has the lowest F", "its last F ÷ the others' least",
          bilgo.curves["value"][-1] / others, 1)  # fmt: skip
    for part, claim, winner in (
        (0, "BILGO has the best training accuracy", bilgo),
        (1, "Journée has the best testing accuracy", journee),
    ):
        rivals = [t.accuracies()[part] for t in (bilgo, journee, rcp) if t is not winner]
        lead = 100 * (winner.accuracies()[part] - max(rivals))
        judge(claim, "points ahead of the best other at the end", lead, 0, least=True)
    return table


def _draw(ctx: Context, name: str, outcome: Outcome) -> None:
    def panel(column: str, ylabel: str, log: bool, first: int = 1, **style: Any) -> Panel:
        curves = {}
        for label, t in outcome.traces.items():
            y = t.curves[column][first:]
            y = y / outcome.optimum - 1 if column == "value" else np.abs(y)
            k = np.arange(first, first + y.size)
            curves[label] = (k, np.where(y > 0, y, np.nan) if log else y)
        return Panel(curves, "iteration k", ylabel, logy=log, marker="", **style)

    accuracies = {
        label: (sorted(t.accuracy), [100 * t.accuracy[k][1] for k in sorted(t.accuracy)])
        for label, t in outcome.traces.items()
    }
    caption = (
        f"{name}, λ = {outcome.lam:g}: convergence from M = 0; dotted: accuracy of the larger class"
    )
    ctx.panels(
        name, caption,
        panel("value", "F/F* − 1", True), panel("lambda_max", "|λ_max(−∇F)|", True),
        panel("slack", "slack ‖∇F·M‖", True), panel("alpha", "α", False, 2, hline=1.0),
        panel("beta", "β (where positive)", True),
        Panel(accuracies, "iteration k", "3-NN test accuracy %", hline=100 * outcome.majority),
    )  # fmt: skip
