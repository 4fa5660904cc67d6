"""BiS, Tables IV–VI and Fig. 3: nuclear-norm completion of MovieLens, and other recommenders.

Four fifths of each user's ratings train, the rest test. First the paper's model, the plain nuclear
norm of the ratings less their mean, by its solvers and `auto`, each to the objective at which
Frank–Wolfe stops. Then `NuclearCompletion` with its defaults (weighted trace norm, offsets, λ from
held-out ratings) and the recommenders of other packages, on the same ratings.
"""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._peers import RECOMMENDERS
from benchmarks.harness.context import Context
from benchmarks.harness.learn import first_at_most, fitted
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table, Versus
from gramian.completion import NuclearCompletion
from gramian.problems import nuclear_completion

TITLE = "Completing MovieLens: the paper's solvers; the defaults and other recommenders"
PAPER = "BiS (Hu and Kwok 2019), Section IV-B, Tables IV-VI and Fig. 3"
NEEDS_DATA = ("movielens_100k", "movielens_1m")

SETS = NEEDS_DATA, NEEDS_DATA[:1]
REPETITIONS = 3, 1
THREADS = 2
"""Of the defaults and of the peers."""
DEFAULTS = {"NuclearCompletion()": "auto", "NuclearCompletion(tol=1e-4)": 1e-4}
LIMIT, LIMIT_QUICK = {"movielens_100k": 20.0, "movielens_1m": 45.0}, 5.0
DEFAULT_LIMITS, PEER_LIMIT = (150.0, 20.0), 900.0
TRAINING = 0.8
CHANGE = 1e-4
"""Frank–Wolfe stops at this relative change of F."""
LAM = {"movielens_100k": 12.0, "movielens_1m": 26.0}
MOST_RANK = 100
BEST = {"movielens_100k": 0.908, "movielens_1m": 0.850}
"""Target of the RMSE of the defaults."""
SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {"rank": MOST_RANK}) for name in ("gd", "agd", "admm")},
    "bis, no extrapolation": ("bis", {"rank": MOST_RANK, "extrapolate": False}),
    "bis": ("bis", {"rank": MOST_RANK}),
    "auto": ("auto", {}),
}
PRINTED = {("movielens_100k", "bis"): (0.936, 31.5), ("movielens_1m", "bis"): (0.868, 111.0)}
"""RMSE and seconds of BiS in the paper."""

NOTES = (
    "The paper prints no λ; ours is in the captions. Its rank is the largest r with r(r + 1) at "
    f"most the number of ratings, 282 and 894; here {MOST_RANK} for the solvers of fixed rank; "
    "auto determines its own.",
    "Seconds of the solvers: to the first point with an objective of at most Frank-Wolfe's, whose "
    "own are those of its whole run; a dash: the limit came first. One thread. The RMSE is that of "
    "the last point.",
    "The defaults select λ by held-out ratings, in their seconds; the settings of 'tuned' peers "
    "were selected beforehand on such a split. Peers run in separate processes; defaults and peers "
    f"have {THREADS} threads, and the seconds are those of the fit alone.",
)


@dataclass(frozen=True)
class Split:
    """Training and test ratings as (user, item, rating) rows, and how many users and items."""

    train: np.ndarray
    test: np.ndarray
    shape: tuple[int, int]


def split(ratings: dict[str, np.ndarray], seed: int) -> Split:
    """Four fifths of each user's ratings, and the others."""
    rows = np.column_stack([ratings["user"], ratings["item"], ratings["rating"]]).astype(float)
    users = rows[:, 0].astype(int)
    counts = np.bincount(users)
    order = np.lexsort((np.random.default_rng(seed).random(len(rows)), users))
    place = np.empty(len(rows), dtype=int)
    place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    training = place < np.ceil(TRAINING * counts[users])
    shape = (int(users.max()) + 1, int(rows[:, 1].max()) + 1)
    return Split(rows[training], rows[~training], shape)


def rmse(values: np.ndarray, test: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.clip(values, 1, 5) - test[:, 2]) ** 2)))


def run(ctx: Context) -> Report:
    """The paper's model by every solver, then the defaults and the peers."""
    tables: list[Table] = []
    for name in ctx.pick(*SETS):
        ratings = ctx.arrays(name)
        tables += [_solvers(ctx, name, split(ratings, 0)), _recommenders(ctx, name, ratings)]
    return ctx.report(tables, NOTES)


# --- the paper's model ------------------------------------------------------------------


def _solvers(ctx: Context, name: str, data: Split) -> Table:
    limit = ctx.pick(LIMIT[name], LIMIT_QUICK)
    found = ctx.call(solve_all, data=data, lam=LAM[name], limit=limit)
    lowest = min(row["values"].min() for row in found.values())
    excess = {label: (np.maximum(row["times"], 1e-2), row["values"] / lowest - 1 + 1e-8)
              for label, row in found.items()}  # fmt: skip
    ctx.plot(f"{name}_objective", excess, "seconds", "F over the least F found, less 1",
             logx=True, logy=True, marker="", title=name)  # fmt: skip
    columns = ["solver", "seconds", "F at the end", "RMSE", "certified gap", "rank"]
    table = Table(
        f"{name}: plain nuclear norm, λ = {LAM[name]:g}, to the objective of Frank-Wolfe", columns
    )
    for label, row in found.items():
        error, seconds = PRINTED.get((name, label), (None, None))
        table.add(label, Versus(row["reached"], seconds), row["value"], Versus(row["rmse"], error),
                  row["relative_gap"], row["rank"])  # fmt: skip
    return table


def solve_all(data: Split, lam: float, limit: float) -> dict[str, dict[str, Any]]:
    """Frank-Wolfe until it stops, the others to its objective: in a child process."""
    mean = data.train[:, 2].mean()
    order = np.lexsort((data.train[:, 1], data.train[:, 0]))
    users, items = data.train[order, :2].astype(int).T
    problem = nuclear_completion(users, items, data.train[order, 2] - mean, data.shape, lam)
    found = {"frank-wolfe": _trace(problem, "frank-wolfe", limit, None)}
    target = found["frank-wolfe"]["values"].min()
    for label, (solver, options) in SOLVERS.items():
        try:
            found[label] = _trace(problem, solver, limit, target, **options)
        except ValueError:  # the solver does not accept the problem
            continue
    users, items = data.test[:, :2].astype(int).T
    for row in found.values():
        P, Q = np.split(row.pop("factor"), [data.shape[0]])
        row["rmse"] = rmse(mean + np.einsum("er,er->e", P[users], Q[items]), data.test)
    return found


def _trace(
    problem: gm.Problem, solver: str, limit: float, target: float | None, **options: Any
) -> dict[str, Any]:
    """One run: its curve, when it reached the target, and its last point."""
    times, values = [], []
    start = time.perf_counter()

    def watch(state: gm.State) -> bool:
        times.append(time.perf_counter() - start)
        values.append(state.value)
        if target is not None:
            return state.value <= target
        return len(values) > 1 and abs(values[-2] - values[-1]) <= CHANGE * abs(values[-1])

    result = gm.minimize(
        problem, solver, tol=1e-4, time_limit=limit, max_iter=10**6, callback=watch,
        random_state=0, **options,
    )  # fmt: skip
    if not values:  # the limit ended the first step
        times, values = [result.seconds], [result.value]
    at = len(values) - 1 if target is None else first_at_most(np.array(values), target)
    return {
        "times": np.array(times), "values": np.array(values),
        "reached": None if at is None else times[at], "value": result.value,
        "relative_gap": result.certificate.relative_gap, "rank": result.rank,
        "factor": result.factor,
    }  # fmt: skip


# --- the defaults and the peers -----------------------------------------------------------


def _recommenders(ctx: Context, name: str, ratings: dict[str, np.ndarray]) -> Table:
    splits = [split(ratings, seed) for seed in range(ctx.pick(*REPETITIONS))]
    table = Table(
        f"{name}: the defaults beside other recommenders, {len(splits)} split(s)",
        ["method", "RMSE", "deviation", "seconds", "certified gap", "rank", "peak MB", "note"],
    )
    limit = ctx.pick(*DEFAULT_LIMITS)
    for label, tol in DEFAULTS.items():
        settings = {"limit": limit, "tol": tol}
        answers = [ctx.in_child(fit_default, {"data": data, **settings}, threads=THREADS)
                   for data in splits]  # fmt: skip
        table.add(label, *_cells(answers, splits, BEST[name]))
    for label, (peer, options) in RECOMMENDERS.items():
        table.add(label, *_cells([
            ctx.peer(peer, {"train": s.train, "test": s.test, **options}, PEER_LIMIT,
                     threads=THREADS)
            for s in splits
        ], splits))  # fmt: skip
    return table


def _cells(answers: list[ChildResult], splits: list[Split], best: float | None = None) -> list[Any]:
    failures = [answer.error for answer in answers if not answer.ok]
    if failures:
        return [*[None] * 6, str(failures[0])[:120]]
    found = [answer.value for answer in answers]
    errors = [rmse(row["values"], s.test) for row, s in zip(found, splits, strict=True)]
    mean, seconds = statistics.mean(errors), statistics.median(row["fit_seconds"] for row in found)
    if best is None:
        return [mean, np.std(errors), seconds, None, None, answers[-1].peak_mb, ""]
    return [
        mean, np.std(errors), seconds, max(row["gap"] for row in found),
        statistics.median(row["rank"] for row in found), max(answer.peak_mb for answer in answers),
        f"{best:g} {'reached' if mean <= best else 'missed'}",
    ]  # fmt: skip


def fit_default(data: Split, limit: float, tol: float | str) -> dict[str, Any]:
    """One fit: in a child process."""
    model = NuclearCompletion(random_state=0, time_limit=limit, tol=tol)
    model, spent = fitted(model, tuple(data.train.T))
    return {
        "values": model.predict(data.test[:, :2]), "fit_seconds": spent,
        "gap": float(model.certificate_.relative_gap), "rank": int(model.col_factors_.shape[1]),
    }  # fmt: skip
