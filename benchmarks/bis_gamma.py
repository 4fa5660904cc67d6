"""BiS, Fig. 1 and Table III in small: the two rules for γ, extrapolation, and the rivals, on a1a.

Nonparametric kernel learning on a1a (n = 1605), and for Fig. 1 also on a9a (n = 32,561), the set of
the paper: tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over 0.6 n must-link pairs, 0.6 n cannot-link pairs and
the diagonal, λ = 1, L the normalised Laplacian of a symmetric 10-nearest-neighbour graph with
Gaussian weights. Methods are timed to the objective at which the relative change of Frank–Wolfe
falls below 1e-4, the paper's protocol, and to 1e-3 above the optimum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._models import NEVER, adult_model, paper_rank, until_small_change, with_trace
from benchmarks.harness.context import Context
from benchmarks.harness.data import Dataset
from benchmarks.harness.learn import Run, first_at_most, mean_of_all, ratio
from benchmarks.harness.plots import Panel
from benchmarks.harness.report import Report, Table, Versus

TITLE = "BiS on nonparametric kernel learning: γ rules, extrapolation, and the rivals' times"
PAPER = "BiS (Hu and Kwok 2019), Section IV-A, Fig. 1 and Table III"
SMALL, LARGE = "a1a", "a9a"
NEEDS_DATA = (SMALL, LARGE)

LAM, SMALL_RANK = 1.0, 15
ITERATIONS, SECONDS = (500, 60), (20.0, 3.0)
LARGE_ITERATIONS, LARGE_TOL = 100, 1e-6
PAPER_LIMIT, FW_CHANGE, LEVEL = 2000, 1e-4, 1e-3

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
"""Greedy: it determines its rank."""
CLAIMS = {
    **dict.fromkeys(("FW", "GD", "AGD", "ADMM"), "BiS is the fastest"),
    "BiS, no extrapolation": "extrapolation helps",
    **dict.fromkeys(("ADMM, ρ = 1", "L-BFGS", "LRO", "BILGO-LS"), "(rivals not in the paper)"),
}

NOTES = (
    "Rank: the paper's, the largest r with r(r + 1) ≤ m, m the number of linked pairs; the second "
    f"table of times has rank {SMALL_RANK}. BILGO and Frank–Wolfe determine their own.",
    "FW is Laue's hybrid, with a local search after every atom. It requires a bound on the trace, "
    "so it minimises the same F with (z − 1)² on the diagonal written as "
    "(z − 1 − s)² + 2s(z − 1) − s², whose linear part is a trace.",
    "No certificates while the clock runs, except for L-BFGS (every 20 iterations), BILGO and FW "
    "(every 5 atoms); the gap in the table is that of the last point.",
    "The paper prints neither graph, bandwidth nor λ: ours are the mean neighbour distance and "
    "λ = 1. Machine and language differ, so compare ratios. One draw of the pairs.",
    f"A run ends after {SECONDS[0]:g} s ({SECONDS[1]:g} s in a quick run) or the paper's "
    f"{PAPER_LIMIT} iterations. A dash: neither method reached the objective.",
)


@dataclass(frozen=True)
class Trace(Run):
    """A run with tr Z = ‖Y‖² at its end, the scale of ‖X − Y‖²."""

    size: float = 0.0


@dataclass
class Rules:
    """Fig. 1 of a set: the optimum and the four settings of BiS."""

    name: str
    optimum: float
    optimum_gap: float
    optimum_rank: int
    traces: dict[str, Trace]


def run(ctx: Context) -> Report:
    """All runs in processes with one thread."""
    kwargs = {"data": ctx.load(SMALL), "starts": ctx.repeat}
    limits = {"seconds": ctx.pick(*SECONDS), "iterations": ctx.pick(*ITERATIONS)}
    fig1, methods = ctx.call(measure, **kwargs, **limits)
    drawn = [fig1] if ctx.quick else [fig1, ctx.call(measure_large, data=ctx.load(LARGE))]
    for rules in drawn:
        _draw_rules(ctx, rules)
    _draw_methods(ctx, fig1.optimum, methods)
    times = [_times(fig1.optimum, rank, traces) for rank, traces in methods.items()]
    verdicts = _verdicts(fig1, next(iter(methods.values())))
    return ctx.report([*map(_rules, drawn), *times, verdicts], NOTES)


# --- in processes of their own -------------------------------------------------------


def measure_large(data: Dataset) -> Rules:
    """Fig. 1 on the set of the paper."""
    problem = adult_model(data.X, data.y).problem(LAM)
    return rules_of(LARGE, problem, gm.minimize(problem, tol=LARGE_TOL), LARGE_ITERATIONS)


def rules_of(name: str, problem: gm.Problem, best: gm.Result, iterations: int) -> Rules:
    """BiS in its four settings at the paper's rank."""
    rank = paper_rank(2 * round(0.6 * problem.order))
    traces = {
        label: trace(problem, "bis", None, rank=rank, max_iter=iterations, check=NEVER, **options)
        for label, options in RULES.items()
    }
    gap = best.certificate.relative_gap
    return Rules(name, best.value, np.inf if gap is None else gap, best.rank, traces)


def measure(
    data: Dataset, starts: int, seconds: float, iterations: int
) -> tuple[Rules, dict[int, dict[str, list[Trace]]]]:
    """The optimum and Fig. 1; by rank, the runs of FW and of every method to FW's objective."""
    model = adult_model(data.X, data.y)
    problem = model.problem(LAM)
    best = gm.minimize(problem, tol=1e-9, time_limit=3 * seconds)
    change = until_small_change(FW_CHANGE)
    fw = trace(with_trace(problem, LAM), "frank-wolfe", change, local_every=1)
    target = fw.best

    def runs(label: str, rank: int) -> list[Trace]:
        solver, options, _ = METHODS[label]
        options = {**options, "rank": None if label in UNRANKED else rank, "time_limit": seconds}
        return [
            trace(problem, solver, lambda state: state.value <= target, max_iter=PAPER_LIMIT,
                  random_state=start, **options)
            for start in range(starts if rank == model.rank else 1)
        ]  # fmt: skip

    methods = {
        rank: {"FW": [fw], **{label: runs(label, rank) for label in METHODS}}
        for rank in (model.rank, SMALL_RANK)
    }
    return rules_of(SMALL, problem, best, iterations), methods


def trace(problem: gm.Problem, solver: str, callback: Any, **options: Any) -> Trace:
    """Run a solver without a tolerance; certify its last point afterwards."""
    result = gm.minimize(problem, solver, tol=0.0, callback=callback, **options)
    columns = [c for c in ("gamma", "difference") if c in result.history.columns]
    found = Run.of(result, gm.certify(problem, result.factor), columns)
    return Trace(**vars(found), size=float(np.sum(result.factor**2)))


# --- tables and pictures -------------------------------------------------------------


def _rules(fig1: Rules) -> Table:
    """The ends of the curves of Fig. 1."""

    def curve(row: tuple[str, Trace], column: str) -> np.ndarray:
        return curve_of(row[1], column)

    some = next(iter(fig1.traces.values()))
    return Table.of(
        f"Fig. 1 in figures: BiS on {fig1.name}, rank {some.rank}; F* = {fig1.optimum:.10g}, rank "
        f"{fig1.optimum_rank} (certified relative gap {fig1.optimum_gap:.1e})",
        fig1.traces.items(),
        {
            "setting": lambda row: row[0],
            "iterations": lambda row: curve(row, "value").size - 1,
            "last F/F* − 1": lambda row: curve(row, "value")[-1] / fig1.optimum - 1,
            f"iterations to {LEVEL:g}": lambda row: steps_to(row[1], (1 + LEVEL) * fig1.optimum),
            "median γ": lambda row: float(np.median(curve(row, "gamma")[1:])),
            "largest γ": lambda row: float(np.max(curve(row, "gamma"))),
            "largest ‖X−Y‖²": lambda row: float(np.max(curve(row, "difference"))),
            "last ‖X−Y‖²": lambda row: float(curve(row, "difference")[-1]),
            "steps that raise F": lambda row: rises(curve(row, "value")),
            "certified gap": lambda row: row[1].gap,
        },
    )


def curve_of(run: Run, column: str) -> np.ndarray:
    return run.values if column == "value" else run.curves[column]


def steps_to(run: Run, target: float) -> int | None:
    return first_at_most(run.values, target)


def rises(values: np.ndarray) -> int:
    return int(np.sum(np.diff(values) > 1e-12 * values[1:]))


def _times(optimum: float, rank: int, runs: dict[str, list[Trace]]) -> Table:
    """Table III on a1a: ours, the paper's, and both relative to BiS."""
    target, level = fw_target(runs), (1 + LEVEL) * optimum
    base = mean_of_all([t.reach(target) for t in runs["BiS"]])
    table = Table(
        f"Table III on a1a, rank {rank}, mean of {len(runs['BiS'])} start(s): until F = "
        f"{target:.8g}, where FW stops (F/F* − 1 = {target / optimum - 1:.1e})",
        ["method", "seconds", "seconds ÷ BiS", "iterations", f"seconds to {LEVEL:g}",
         "best F/F* − 1", "rank", "certified gap", "status"],
    )  # fmt: skip
    for label, traces in runs.items():
        paper = PAPER_FW if label == "FW" else METHODS[label][2]
        seconds = mean_of_all([t.reach(target) for t in traces])
        gaps = [t.gap for t in traces if t.gap is not None]
        table.add(
            label, Versus(seconds, paper),
            Versus(ratio(seconds, base), ratio(paper, METHODS["BiS"][2])),
            mean_of_all([steps_to(t, target) for t in traces]),
            mean_of_all([t.reach(level) for t in traces]),
            float(np.mean([t.best for t in traces]) / optimum - 1),
            traces[0].rank, max(gaps, default=None), traces[0].status,
        )  # fmt: skip
    return table


def fw_target(runs: dict[str, list[Trace]]) -> float:
    """The objective at which FW stopped."""
    return runs["FW"][0].best


def _verdicts(fig1: Rules, runs: dict[str, list[Trace]]) -> Table:
    """The statements of Section IV-A, each with a measured quantity and a criterion."""
    table = Table(
        "What the paper's text says, and what we see",
        ["the paper", "measured", "value", "criterion", "holds"],
    )
    rules, level = fig1.traces, (1 + LEVEL) * fig1.optimum
    first, second, *plain = rules.values()

    def compare(claim: str, measured: str, a: float | None, b: float | None) -> None:
        """Judge a/b ≥ 1, with None for a target that was not reached."""
        unreached = np.nan if a is None else 0.0
        value = (
            np.inf if a is None and b is not None else unreached if b is None else a / max(b, 1e-9)
        )
        table.judge(claim, measured, value=value, limit=1.0, least=True)

    for label, t in (("rule 1", first), ("rule 2", second)):
        excess = t.values[-1] / fig1.optimum - 1
        table.judge("both rules converge", f"{label}: last F/F* − 1", value=excess, limit=LEVEL)
    faster = f"iterations to {LEVEL:g} above F*, rule 2 ÷ rule 1"
    compare("rule 1 is faster", faster, steps_to(second, level), steps_to(first, level))
    compare("rule 1 is faster", f"{faster}, no extrapolation", steps_to(plain[1], level),
            steps_to(plain[0], level))  # fmt: skip
    medians = [float(np.median(t.curves["gamma"][1:])) for t in (first, second)]
    table.judge("γ of rule 2 is much larger", "medians, 2 ÷ 1", value=medians[1] / medians[0],
                limit=2.0, least=True)  # fmt: skip
    falls = int(np.sum(np.diff(second.curves["gamma"]) < 0))
    table.judge("γ of rule 2 never falls", "iterations where it does", value=falls, limit=0)
    for label, t in rules.items():
        share = float(t.curves["difference"][-1]) / t.size
        table.judge("‖X−Y‖² → 0", f"{label}: last, as a share of tr Z", value=share, limit=1e-6)
    for k, t in enumerate((first, second)):
        measured = f"rule {k + 1}: iterations to {LEVEL:g}, without ÷ with"
        compare("extrapolation helps", measured, steps_to(plain[k], level), steps_to(t, level))
    for label, claim in CLAIMS.items():
        for goal, value in (("FW's objective", fw_target(runs)), (f"{LEVEL:g} above F*", level)):
            theirs, bis = (
                mean_of_all([t.reach(value) for t in runs[who]]) for who in (label, "BiS")
            )
            compare(claim, f"seconds to {goal}, {label} ÷ BiS", theirs, bis)
    return table


def _draw_rules(ctx: Context, fig1: Rules) -> None:
    def panel(column: str, ylabel: str, floor: float, unit: float = 1.0, less: float = 0) -> Panel:
        curves = {
            label: (np.arange(t.values.size)[1:], curve_of(t, column)[1:] / unit - less)
            for label, t in fig1.traces.items()
        }
        return Panel(curves, "iteration k", ylabel, logy=True, floor=floor, marker="",
                     dashed=[label for label in curves if "no" in label])  # fmt: skip

    caption = f"{fig1.name}: BiS by iteration under both rules for γ; dashed: no extrapolation"
    ctx.panels(
        f"rules_{fig1.name}", caption,
        panel("value", "F/F* − 1", 1e-12, fig1.optimum, 1), panel("gamma", "γ_k", 1e-4),
        panel("difference", "‖X_k − Y_k‖²", 1e-16), columns=3,
    )  # fmt: skip


def _draw_methods(ctx: Context, optimum: float, methods: dict[int, dict[str, list[Trace]]]) -> None:
    rank, runs = next(iter(methods.items()))
    excess = {label: t[0].values / optimum - 1 for label, t in runs.items()}
    times = {label: (runs[label][0].times, y) for label, y in excess.items()}
    steps = {label: (np.arange(y.size) + 1, y) for label, y in excess.items()}
    style = {"logx": True, "logy": True, "floor": 1e-10, "marker": "",
             "hline": fw_target(runs) / optimum - 1}  # fmt: skip
    ctx.panels(
        "methods", f"a1a, rank {rank}: F against time and steps; dotted: where FW stops",
        Panel(times, "seconds", "F/F* − 1", **style),
        Panel(steps, "steps", "F/F* − 1", **style),
    )  # fmt: skip
