"""BiS, Fig. 1 and Table III in small: the two rules for γ, extrapolation, and the rivals, on a1a.

Nonparametric kernel learning on the real a1a (n = 1605), and for Fig. 1 on a9a too, the set of the
paper (n = 32,561), in fewer iterations: tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over 0.6 n must-link pairs,
0.6 n cannot-link pairs and the diagonal, λ = 1, L the normalised Laplacian of a symmetric
10-nearest-neighbour graph with Gaussian weights. Measured by iteration: the objective,
γ_k and ‖X_k − Y_k‖² of BiS under both rules, with and without extrapolation. Measured by method:
iterations and seconds until the objective that Frank–Wolfe has when its relative change falls
below 1e-4, which is the paper's protocol, and until 1e-3 above the optimum.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks._models import LINK_SHARE, links, normalised_laplacian
from benchmarks.harness.context import Context
from benchmarks.harness.data import Dataset
from benchmarks.harness.report import Report, Table, Versus
from gramian.losses import Squared
from gramian.objectives import Composite

TITLE = "BiS on nonparametric kernel learning: γ rules, extrapolation, and the rivals' times"
PAPER = "BiS (Hu and Kwok 2019), Section IV-A, Fig. 1 and Table III"
SMALL, LARGE = "a1a", "a9a"
NEEDS_DATA = (SMALL, LARGE)

LAM = 1.0
SMALL_RANK = 15
ITERATIONS, ITERATIONS_QUICK = 500, 60
LARGE_ITERATIONS, LARGE_TOL = 100, 1e-6
PAPER_LIMIT = 2000
SECONDS, SECONDS_QUICK = 20.0, 3.0
FW_CHANGE = 1e-4
LEVEL = 1e-3
NEVER = 10**9

RULES: dict[str, dict[str, Any]] = {
    "rule 1": {"rule": 1},
    "rule 2": {"rule": 2},
    "rule 1, no extrapolation": {"rule": 1, "extrapolate": False},
    "rule 2, no extrapolation": {"rule": 2, "extrapolate": False},
}
METHODS: dict[str, tuple[str, dict[str, Any], float | None]] = {
    "GD": ("gd", {"check": NEVER}, 35.8),
    "AGD": ("agd", {"check": NEVER}, 7.8),
    "ADMM": ("admm", {"check": NEVER}, 142.8),
    "ADMM, ρ = 1": ("admm", {"check": NEVER, "penalty": 1.0}, None),
    "BiS, no extrapolation": ("bis", {"check": NEVER, "extrapolate": False}, 24.3),
    "BiS": ("bis", {"check": NEVER}, 3.5),
    "L-BFGS": ("lbfgs", {"chunk": 20}, None),
    "LRO": ("lro", {"check": NEVER}, None),
    "BILGO-LS": ("bilgo", {}, None),
}
"""Solver, options, and the paper's seconds on a1a."""
PAPER_FW = 16.2
UNRANKED = ("BILGO-LS",)
"""Greedy: it finds its rank itself."""

NOTES = (
    "The rank is the paper's: the largest r with r(r + 1) ≤ m, m the number of linked pairs; the "
    f"second table repeats it with rank {SMALL_RANK}. BILGO and Frank–Wolfe choose their own.",
    "FW is Laue's hybrid, a local search after every atom. It needs a bound on the trace, which "
    "the library does not see in the diagonal's squared loss; it is handed the same F with "
    "(z − 1)² on the diagonal written as (z − 1 − s)² + 2s(z − 1) − s²: the linear part is one.",
    "Certificates are off while the clock runs, except for L-BFGS (every 20 iterations) and BILGO "
    "and FW (every 5 atoms); the gap in the table is that of the last point, certified afterwards.",
    "The paper's graph, bandwidth and λ are not printed: ours is the mean neighbour distance, and "
    "λ = 1; its machine and language differ, so compare ratios. One draw of the pairs.",
    "Verdicts are computed from the figures beside them; a dash where neither side got there.",
)


@dataclass
class Trace:
    """One run: curves by iteration, and the certificate of its last point."""

    curves: dict[str, np.ndarray]
    status: str
    rank: int
    size: float
    """tr Z = ‖Y‖² at the end, the measure of ‖X − Y‖²."""
    relative_gap: float | None

    def reach(self, target: float) -> tuple[int | None, float | None]:
        """Iterations and seconds to an objective of at most `target`, None where never."""
        reached = np.flatnonzero(self.curves["value"] <= target)
        if not reached.size:
            return None, None
        return int(reached[0]), float(self.curves["time"][reached[0]])


@dataclass
class Rules:
    """Fig. 1 of a set: the reference optimum and the four settings of BiS."""

    name: str
    optimum: float
    optimum_gap: float
    optimum_rank: int
    traces: dict[str, Trace]


@dataclass
class Outcome:
    """Everything found on the small set: the settings of BiS, FW, the methods by rank."""

    fig1: Rules
    frank_wolfe: Trace
    methods: dict[int, dict[str, list[Trace]]]

    @property
    def optimum(self) -> float:
        return self.fig1.optimum

    @property
    def target(self) -> float:
        """Where FW stopped."""
        return float(np.min(self.frank_wolfe.curves["value"]))


def npkl(data: Dataset, shift: float = 0.0, seed: int = 0) -> gm.Problem:
    """The problem; `shift` moves part of the diagonal's loss to the linear term, F unchanged."""
    problem = gm.problems.npkl(normalised_laplacian(data.X), *links(data.y, seed), LAM)
    F, n = problem.objective, problem.order
    target = F.loss.centre + shift * (F.map.rows == F.map.cols)
    C = F.C.matrix + LAM * shift * sp.eye_array(n)
    constant = -LAM * n * (shift * (1 + shift) - 0.5 * shift**2)
    objective = Composite(F.map, Squared(target, weight=0.5 * LAM), C=C, constant=constant)
    return replace(problem, objective=objective)


def paper_rank(m: int) -> int:
    """The largest r with r(r + 1) ≤ m."""
    return int((np.sqrt(1 + 4 * m) - 1) / 2)


def run(ctx: Context) -> Report:
    """Trace everything in a process with one thread; draw Fig. 1, tabulate Table III, judge."""
    kwargs = {"data": ctx.load(SMALL), "quick": ctx.quick, "starts": ctx.repeat}
    outcome: Outcome = _child(ctx, "measure", kwargs)
    drawn = [outcome.fig1]
    if not ctx.quick:
        drawn.append(_child(ctx, "measure_large", {"data": ctx.load(LARGE)}))
    for fig1 in drawn:
        _draw_rules(ctx, fig1)
    _draw_methods(ctx, outcome)
    tables = [*map(_rules, drawn), *(_times(outcome, rank) for rank in outcome.methods)]
    limit = SECONDS_QUICK if ctx.quick else SECONDS
    note = f"A run ends after {limit:g} s or the paper's {PAPER_LIMIT} iterations."
    return ctx.report([*tables, _verdicts(outcome)], (*NOTES, note))


def _child(ctx: Context, function: str, kwargs: dict[str, Any]) -> Any:
    child = ctx.in_child(f"benchmarks.bis_gamma:{function}", kwargs, threads=1)
    if not child.ok:
        raise RuntimeError(child.error)
    return child.value


def measure_large(data: Dataset) -> Rules:
    """Fig. 1 on the set of the paper."""
    problem = npkl(data)
    best = gm.minimize(problem, tol=LARGE_TOL)
    return rules_of(LARGE, problem, best, LARGE_ITERATIONS)


def rules_of(name: str, problem: gm.Problem, best: gm.Result, iterations: int) -> Rules:
    """BiS in its four settings at the paper's rank."""
    rank = paper_rank(2 * round(LINK_SHARE * problem.order))
    traces = {
        label: trace(problem, "bis", None, rank=rank, max_iter=iterations, check=NEVER, **options)
        for label, options in RULES.items()
    }
    gap = best.certificate.relative_gap
    return Rules(name, best.value, np.inf if gap is None else gap, best.rank, traces)


def measure(data: Dataset, quick: bool, starts: int) -> Outcome:
    """Find the optimum and FW's stopping point, then trace BiS and its rivals towards it."""
    problem = npkl(data)
    seconds = SECONDS_QUICK if quick else SECONDS
    best = gm.minimize(problem, tol=1e-9, time_limit=3 * seconds)
    shift = np.sqrt(2 * problem.value(np.zeros((problem.order, 0))) / (LAM * problem.order))
    fw = trace(npkl(data, float(shift)), "frank-wolfe", _until_small_change(), local_every=1)
    target = float(np.min(fw.curves["value"]))
    rank = paper_rank(2 * round(LINK_SHARE * problem.order))
    iterations = ITERATIONS_QUICK if quick else ITERATIONS
    fig1 = rules_of(SMALL, problem, best, iterations)
    methods = {
        r: _race(problem, target, r, seconds, starts if r == rank else 1)
        for r in (rank, SMALL_RANK)
    }
    return Outcome(fig1, fw, methods)


def _race(
    problem: gm.Problem, target: float, rank: int, seconds: float, starts: int
) -> dict[str, list[Trace]]:
    """Every method from every start until the target, the paper's limit or the time limit."""

    def reached(state: gm.State) -> bool:
        return state.value <= target

    return {
        label: [
            trace(
                problem,
                solver,
                reached,
                rank=None if label in UNRANKED else rank,
                max_iter=PAPER_LIMIT,
                time_limit=seconds,
                random_state=start,
                **options,
            )
            for start in range(starts)
        ]
        for label, (solver, options, _) in METHODS.items()
    }


def _until_small_change() -> Any:
    """FW's stopping rule: a relative change of the objective below 1e-4 between iterations."""
    last = [np.inf]

    def small(state: gm.State) -> bool:
        previous, last[0] = last[0], state.value
        return abs(previous - state.value) < FW_CHANGE * abs(previous)

    return small


def trace(problem: gm.Problem, solver: str, callback: Any, **options: Any) -> Trace:
    """Run a solver without stopping at a certified gap; certify its last point afterwards."""
    result = gm.minimize(problem, solver, tol=0.0, callback=callback, **options)
    columns = [c for c in ("time", "value", "gamma", "difference") if c in result.history.columns]
    gap = gm.certify(problem, result.factor).relative_gap
    curves = {column: result.history[column] for column in columns}
    size = float(np.sum(result.factor**2))
    return Trace(curves, result.status.name, result.rank, size, gap)


def _rules(fig1: Rules) -> Table:
    """The ends of the curves of Fig. 1."""
    some = next(iter(fig1.traces.values()))
    table = Table(
        f"Fig. 1 in figures: BiS on {fig1.name}, rank {some.rank}; F* = {fig1.optimum:.10g}, rank "
        f"{fig1.optimum_rank} (certified relative gap {fig1.optimum_gap:.1e})",
        ["setting", "iterations", "last F/F* − 1", f"iterations to {LEVEL:g}", "median γ",
         "largest γ", "largest ‖X−Y‖²", "last ‖X−Y‖²", "steps that raise F", "certified gap"],
    )  # fmt: skip
    for label, t in fig1.traces.items():
        value, gamma, apart = (t.curves[c] for c in ("value", "gamma", "difference"))
        table.add(
            label,
            value.size - 1,
            value[-1] / fig1.optimum - 1,
            t.reach((1 + LEVEL) * fig1.optimum)[0],
            float(np.median(gamma[1:])),
            float(np.max(gamma)),
            float(np.max(apart)),
            float(apart[-1]),
            int(np.sum(np.diff(value) > 1e-12 * value[1:])),
            t.relative_gap,
        )
    return table


def _times(outcome: Outcome, rank: int) -> Table:
    """Table III on a1a: ours, the paper's, and both relative to BiS."""
    runs = outcome.methods[rank]
    target, level = outcome.target, (1 + LEVEL) * outcome.optimum
    table = Table(
        f"Table III on a1a, rank {rank}, mean of {len(runs['BiS'])} start(s): until F = "
        f"{target:.8g}, where FW stops (F/F* − 1 = {target / outcome.optimum - 1:.1e})",
        ["method", "seconds", "seconds ÷ BiS", "iterations", f"seconds to {LEVEL:g}",
         "best F/F* − 1", "rank", "certified gap", "status"],
    )  # fmt: skip
    base = _mean([t.reach(target)[1] for t in runs["BiS"]])

    def add(label: str, traces: list[Trace], paper: float | None) -> None:
        steps, seconds = (_mean([t.reach(target)[k] for t in traces]) for k in (0, 1))
        gaps = [t.relative_gap for t in traces if t.relative_gap is not None]
        table.add(
            label,
            Versus(seconds, paper),
            Versus(_ratio(seconds, base), _ratio(paper, METHODS["BiS"][2])),
            steps,
            _mean([t.reach(level)[1] for t in traces]),
            float(np.mean([np.min(t.curves["value"]) for t in traces]) / outcome.optimum - 1),
            traces[0].rank,
            max(gaps) if gaps else None,
            traces[0].status,
        )

    add("FW", [outcome.frank_wolfe], PAPER_FW)
    for label, traces in runs.items():
        add(label, traces, METHODS[label][2])
    return table


def _mean(numbers: list[Any]) -> float | None:
    """The mean, None where one is missing."""
    return None if any(x is None for x in numbers) else float(np.mean(numbers))


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


def _verdicts(outcome: Outcome) -> Table:
    """The statements of Section IV-A, each beside a measured quantity and a stated criterion."""
    table = Table(
        "What the paper's text says, and what we see",
        ["the paper", "measured", "value", "criterion", "holds"],
    )
    rules, level = outcome.fig1.traces, (1 + LEVEL) * outcome.optimum
    first, second = rules["rule 1"], rules["rule 2"]

    def judge(claim: str, measured: str, value: float, limit: float, *, most: bool) -> None:
        sign = "≤" if most else "≥"
        holds = None if np.isnan(value) else bool(value <= limit if most else value >= limit)
        table.add(claim, measured, value, f"{sign} {limit:g}", holds)

    def steps(t: Trace) -> float:
        found = t.reach(level)[0]
        return np.inf if found is None else float(found)

    for label, t in (("rule 1", first), ("rule 2", second)):
        judge(
            "both rules converge",
            f"{label}: last F/F* − 1",
            t.curves["value"][-1] / outcome.optimum - 1,
            LEVEL,
            most=True,
        )
    faster = f"iterations to {LEVEL:g} above F*, rule 2 ÷ rule 1"
    judge("rule 1 is faster", faster, _safe(steps(second), steps(first)), 1.0, most=False)
    plain = [rules[f"rule {k}, no extrapolation"] for k in (1, 2)]
    judge(
        "rule 1 is faster",
        f"{faster}, no extrapolation",
        _safe(steps(plain[1]), steps(plain[0])),
        1.0,
        most=False,
    )
    medians = [float(np.median(t.curves["gamma"][1:])) for t in (first, second)]
    judge("γ of rule 2 is much larger", "medians, 2 ÷ 1", medians[1] / medians[0], 2.0, most=False)
    falls = int(np.sum(np.diff(second.curves["gamma"]) < 0))
    judge("γ of rule 2 never falls", "iterations where it does", falls, 0, most=True)
    for label, t in rules.items():
        share = float(t.curves["difference"][-1]) / t.size
        judge("‖X−Y‖² → 0", f"{label}: last, as a share of tr Z", share, 1e-6, most=True)
    for k, t in enumerate((first, second)):
        judge(
            "extrapolation helps",
            f"rule {k + 1}: iterations to {LEVEL:g}, without ÷ with",
            _safe(steps(plain[k]), steps(t)),
            1.0,
            most=False,
        )
    _judge_times(outcome, judge)
    return table


def _judge_times(outcome: Outcome, judge: Any) -> None:
    """Table III's ordering at the paper's rank: BiS against each rival, to both objectives."""
    runs = next(iter(outcome.methods.values()))
    rivals = {"FW": [outcome.frank_wolfe], **runs}
    claims = dict.fromkeys(("FW", "GD", "AGD", "ADMM"), "BiS is the fastest")
    claims["BiS, no extrapolation"] = "extrapolation helps"
    claims |= dict.fromkeys(
        ("ADMM, ρ = 1", "L-BFGS", "LRO", "BILGO-LS"), "(rivals not in the paper)"
    )
    goals = {
        "FW's objective": outcome.target,
        f"{LEVEL:g} above F*": (1 + LEVEL) * outcome.optimum,
    }
    for label, claim in claims.items():
        for goal, value in goals.items():
            theirs, bis = (_seconds(traces, value) for traces in (rivals[label], runs["BiS"]))
            measured = f"seconds to {goal}, {label} ÷ BiS"
            judge(claim, measured, _safe(theirs, bis), 1.0, most=False)


def _seconds(traces: list[Trace], target: float) -> float:
    """Mean seconds to an objective, infinite where a run does not get there."""
    mean = _mean([t.reach(target)[1] for t in traces])
    return np.inf if mean is None else mean


def _safe(a: float, b: float) -> float:
    """a/b; NaN where neither got there, which decides nothing."""
    return float("nan") if np.isinf(a) and np.isinf(b) else a / b


def _draw_rules(ctx: Context, fig1: Rules) -> None:
    caption = (
        f"{fig1.name}: BiS by iteration under both rules for γ, with (solid) and without "
        "extrapolation"
    )
    with ctx.figure(f"rules_{fig1.name}", caption, nrows=1, ncols=3, figsize=(14, 4.6)) as (
        fig,
        axes,
    ):
        for k, (label, t) in enumerate(fig1.traces.items()):
            style = {"color": f"C{k % 2}", "linewidth": 1.8, "zorder": 3}
            if k >= 2:  # these jump from step to step: thin, and below the others
                style |= {"linestyle": "--", "linewidth": 0.7, "alpha": 0.6, "zorder": 2}
            excess = t.curves["value"] / fig1.optimum - 1
            axes[0].plot(np.maximum(excess, 1e-12), label=label, **style)
            axes[1].plot(np.maximum(t.curves["gamma"], 1e-4)[1:], **style)
            axes[2].plot(np.maximum(t.curves["difference"], 1e-16)[1:], **style)
        for ax, name in zip(axes, ("F/F* − 1", "γ_k (at least 1e-4)", "‖X_k − Y_k‖²"), strict=True):
            ax.set(xlabel="iteration k", ylabel=name, yscale="log")
            ax.grid(alpha=0.3)
        fig.legend(loc="outside upper center", ncols=4)


def _draw_methods(ctx: Context, outcome: Outcome) -> None:
    rank, runs = next(iter(outcome.methods.items()))
    caption = (
        f"a1a, rank {rank}: F against time and steps; dotted: where FW stops (ADMM leaves upwards)"
    )
    lines = {"FW": outcome.frank_wolfe, **{label: traces[0] for label, traces in runs.items()}}
    with ctx.figure("methods", caption, nrows=1, ncols=2, figsize=(12, 5)) as (fig, axes):
        for k, (label, t) in enumerate(lines.items()):
            excess = np.maximum(t.curves["value"] / outcome.optimum - 1, 1e-10)
            style = {"color": f"C{k}", "linewidth": 1.3}
            if excess.size < 60:
                style |= {"marker": "o", "markersize": 3}
            axes[0].plot(t.curves["time"], excess, label=label, **style)
            axes[1].plot(np.arange(excess.size) + 1, excess, **style)
        for ax, name in zip(axes, ("seconds", "steps yielded"), strict=True):
            ax.axhline(outcome.target / outcome.optimum - 1, color="black", linestyle=":")
            ax.set(xlabel=name, ylabel="F/F* − 1", xscale="log", yscale="log", ylim=(1e-8, 1e2))
            ax.grid(alpha=0.3)
        fig.legend(loc="outside upper center", ncols=5)
