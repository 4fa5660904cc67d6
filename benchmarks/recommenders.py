"""The defaults of completion and other recommenders: ratings, and clicks.

Ratings: a random tenth of them is the test set, three times. Clicks: ratings of four stars and
more, the last of each user left out; the lists of ten contain items that the user had not clicked.
Every method has a process of its own on one thread, one after another.
"""

import statistics
from itertools import product
from typing import Any

import numpy as np

from benchmarks.bis_tables456 import rmse
from benchmarks.harness.context import Context
from benchmarks.harness.learn import fitted
from benchmarks.harness.report import Report, Table
from gramian.completion import ImplicitCompletion, NuclearCompletion, leave_last_out

TITLE = "Recommenders: ratings and clicks of MovieLens, by the defaults"
PAPER = "Hu, Koren and Volinsky (2008) for clicks; none for ratings"
NEEDS_DATA = ("movielens_100k", "movielens_1m")

SETS, SPLITS = (NEEDS_DATA, NEEDS_DATA[:1]), (3, 1)
TESTED, STARS, TOP = 0.1, 4, 10
PEER_LIMIT = 600.0
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Surprise SVD": ("surprise_svd", {}),
    "Surprise SVD, tuned": (
        "surprise_svd", {"n_factors": 50, "n_epochs": 30, "lr_all": 0.008, "reg_all": 0.06},
    ),
}  # fmt: skip
GRID = {"alpha": (1.0, 5.0, 10.0), "regularization": (0.01, 10.0, 50.0)}
FACTORS = 64

NOTES = (
    "NuclearCompletion() selects λ within its time limit and stops by the held-out error; its gap "
    "is certified. Surprise's tuned settings come from a search beforehand, on such a split.",
    "implicit's ALS is tuned in the same run: every setting of the grid is fitted to the clicks "
    "without the last but one of each user and evaluated on those, and the best is fitted again. "
    "ImplicitCompletion() has its defaults. Seconds are those of one fit, ours with its path of λ.",
)


def run(ctx: Context) -> Report:
    """Two tables for each set."""
    tables: list[Table] = []
    for name in ctx.pick(*SETS):
        arrays = ctx.arrays(name)
        tables += [_ratings(ctx, name, arrays), _clicks(ctx, name, arrays)]
    return ctx.report(tables, NOTES)


# --- ratings ----------------------------------------------------------------------------


def _ratings(ctx: Context, name: str, arrays: dict[str, np.ndarray]) -> Table:
    rows = np.column_stack([arrays["user"], arrays["item"], arrays["rating"]]).astype(float)
    splits = []
    for seed in range(ctx.pick(*SPLITS)):
        held = np.random.default_rng(seed).random(len(rows)) < TESTED
        splits.append({"train": rows[~held], "test": rows[held]})
    ours = [ctx.child(fit_ratings, **s) for s in splits]
    found = {"NuclearCompletion()": (ours, [max(c.value["gap"] for c in ours)])}
    for label, (peer, options) in PEERS.items():
        runs = [ctx.peer(peer, {**s, **options}, PEER_LIMIT, threads=1) for s in splits]
        found[label] = runs, [None]
    first = statistics.median(c.value["fit_seconds"] for c in ours)
    return Table(
        f"{name}: ratings, {len(splits)} split(s)",
        ["method", "RMSE", "deviation", "seconds", "÷ ours", "certified gap", "note"],
        [_line(label, runs, splits, first, gap) for label, (runs, gap) in found.items()],
    )


def _line(
    label: str, runs: list[Any], splits: list[Any], first: float, gap: list[Any]
) -> list[Any]:
    bad = next((str(child.error)[:120] for child in runs if not child.ok), None)
    if bad is not None:
        return [label, *[None] * 5, bad]
    errors = [rmse(c.value["values"], s["test"]) for c, s in zip(runs, splits, strict=True)]
    seconds = statistics.median(c.value["fit_seconds"] for c in runs)
    return [label, statistics.mean(errors), np.std(errors), seconds, seconds / first, *gap, ""]


def fit_ratings(train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """One fit by the defaults, after kernels are loaded: in a child process."""
    NuclearCompletion(lam=10.0, time_limit=1.0, rank=8).fit(tuple(train.T))
    model, seconds = fitted(NuclearCompletion(random_state=0), tuple(train.T))
    gap = float(model.certificate_.relative_gap)
    return {"values": model.predict(test[:, :2]), "fit_seconds": seconds, "gap": gap}


# --- clicks -----------------------------------------------------------------------------


def _clicks(ctx: Context, name: str, arrays: dict[str, np.ndarray]) -> Table:
    liked = arrays["rating"] >= STARS
    pairs = np.column_stack([arrays["user"], arrays["item"]])[liked].astype(int)
    times = arrays["timestamp"][liked]
    held = leave_last_out(pairs[:, 0], times)
    train, test = pairs[~held], pairs[held]
    last = leave_last_out(train[:, 0], times[~held])
    shape = tuple(int(size) + 1 for size in pairs.max(axis=0))
    ours = ctx.call(fit_clicks, train=train, test=test)
    spent = ours["fit_seconds"]
    table = Table(
        f"{name}: clicks, the last of {len(test)} users held out",
        ["method", f"nDCG@{TOP}", f"recall@{TOP}", "seconds", "÷ ours", "certified gap", "note"],
    )
    table.add("ImplicitCompletion()", *ours["scores"], spent, 1.0, ours["gap"], "")
    options, why = _tuned(ctx, train[~last], train[last], shape)
    for label, chosen in (("implicit ALS", {}), ("implicit ALS, tuned", options)):
        child = None if chosen is None else _als(ctx, train, test, shape, chosen)
        if child is None or not child.ok:
            table.add(label, *[None] * 5, why if child is None else str(child.error)[:120])
            continue
        seconds = child.value["fit_seconds"]
        note = ", ".join(f"{key} {value:g}" for key, value in chosen.items())
        scores = _found(child.value["items"], test)
        table.add(label, *scores, seconds, seconds / spent, None, note)
    return table


def _als(ctx: Context, train: np.ndarray, test: np.ndarray, shape: Any, options: Any) -> Any:
    kwargs = {"train": train, "users": test[:, 0], "shape": shape, "top": TOP, **options}
    return ctx.peer("implicit_als", kwargs, PEER_LIMIT, threads=1)


def _tuned(
    ctx: Context, train: np.ndarray, test: np.ndarray, shape: Any
) -> tuple[dict[str, float] | None, str]:
    """The setting of the grid with the highest nDCG on the held-out clicks, or the error."""
    best, chosen, why = -1.0, None, ""
    for values in product(*GRID.values()):
        options = {"factors": FACTORS, **dict(zip(GRID, values, strict=True))}
        child = _als(ctx, train, test, shape, options)
        if not child.ok:
            return None, str(child.error)[:120]
        score = _found(child.value["items"], test)[0]
        if score > best:
            best, chosen = score, options
    return chosen, why


def _found(items: np.ndarray, test: np.ndarray) -> tuple[float, float]:
    """nDCG and recall if each user has one held-out item."""
    hits = items == test[:, 1][:, None]
    discount = 1.0 / np.log2(np.arange(2, items.shape[1] + 2))
    return float(np.mean(hits @ discount)), float(np.mean(hits.any(axis=1)))


def fit_clicks(train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """One fit by the defaults, after kernels are loaded: in a child process."""
    given = train[:, 0], train[:, 1], np.ones(len(train))
    ImplicitCompletion(lam=10.0, time_limit=1.0, rank=8).fit(given)
    model, seconds = fitted(ImplicitCompletion(random_state=0), given)
    items = model.recommend(test[:, 0], TOP)[0]
    gap = float(model.certificate_.relative_gap)
    return {"scores": _found(items, test), "fit_seconds": seconds, "gap": gap}
