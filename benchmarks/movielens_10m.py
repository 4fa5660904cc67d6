"""A synthetic set of the shape of MovieLens 10M: time of a pass, whole fits, and memory.

It has the numbers of users, items and ratings of the real set, which is not available; the activity
of users and the popularity of items are those of MovieLens 1M; the ratings are drawn from a model
of low rank. First the time of one pass over the ratings (value and gradient of the factored
objective) against the memory bandwidth, then `NuclearCompletion` on nine tenths of the ratings.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.learn import fitted
from benchmarks.harness.machine import cores, last_cache
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table, Versus
from gramian.completion import NuclearCompletion
from gramian.problems import nuclear_completion

TITLE = "Ten million ratings: a synthetic set of the shape of MovieLens 10M"
PAPER = "BiS (Hu and Kwok 2019), Section IV-B, Tables IV-VI, column 10M"
NEEDS_DATA = ("movielens_1m",)

SHAPE, SIZE = (69_878, 10_677), 10_000_054
TENTH, QUICK = 0.1, 0.03
"""Shares of the ratings and of the users; of the items its root."""
LEAST_RATINGS = 20
"""Of every user of MovieLens."""
HELD_OUT = 0.1
MEAN, TRUE_RANK = 3.5, 10
DEVIATIONS = {"users": 0.4, "items": 0.45, "products": 0.5, "noise": 0.75}
SCALE = (0.5, 5.0)

PASS_RANKS = (16, 64)
STREAM_ELEMENTS = 40_000_000
"""320 MB an array, more than any cache."""
DEFAULT_CACHE = 32 * 2**20
TARGET_RATIO, MEMORY_FACTOR, MEMORY_LIMIT_MB = 2.5, 3.0, 2000.0
RATING_BYTES = 16
"""Two int32 and a float64."""
LAM, LIMITS = 27.0, {1.0: 300.0, TENTH: 60.0, QUICK: 5.0}
CASES = (("λ given", 1e-2), ("auto", "auto"))
"""λ and the tolerance: a proved optimum, and all defaults."""
PRINTED_SECONDS = 786.0
"""BiS in the paper, on the real set."""

NOTES = (
    "SYNTHETIC: users, items and ratings are counted as in MovieLens 10M; the quantiles of the "
    "ratings of a user and of an item are those of MovieLens 1M, stretched (the most popular item "
    "of the real set has more than three times as many ratings). No RMSE compares with the real "
    "set, and the paper's seconds are of BiS on the real set and another machine.",
    f"A rating is {MEAN:g} + offsets + a product of {TRUE_RANK} normal factors whose columns fall "
    f"like 1/√k + noise, of deviations {DEVIATIONS['users']:g} (users), {DEVIATIONS['items']:g} "
    f"(items), {DEVIATIONS['products']:g} (products) and {DEVIATIONS['noise']:g} (noise), rounded "
    "to half stars from 0.5 to 5. 'RMSE of the true means': the noise and the rounding alone.",
    "A pass is the value and the gradient at a factor of the rank given, in processor seconds. "
    "Bytes to be moved: the index arrays, values and weights of every entry once, the factors in "
    "and the gradient out, and, for a block of factors larger than the last cache, one of its rows "
    "an entry. The bound is those bytes over the faster of copy and sum, measured in the same "
    "process, without caches, arithmetic and, with offsets, the inner conjugate gradients; the "
    "last two columns count every gathered row as coming from memory.",
    f"λ = {LAM:g} is about where optima on a tenth of the set predict held-out ratings best, in "
    "proportion to √ratings per user + √ratings per item; a smaller one, as sweeps that end early "
    "choose, has optima of several hundred columns of noise. The rows of 'auto' are of all "
    "defaults, which stop at the least held-out error, with any gap.",
    "The certified gap is to the optimum of any rank. Memory: 'growth' is the peak less that of "
    "the process before the fit, with its modules and the ratings as passed (two int32 and a "
    "float64 each); the limit of 2 GB is on the whole process.",
)


@dataclass(frozen=True)
class Case:
    """Ratings sorted by user and item, the folder of their files, and the RMSE of the means."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    folder: str
    floor: float


def run(ctx: Context) -> Report:
    """The time of a pass, then whole fits in processes of their own."""
    real, tables = ctx.arrays("movielens_1m"), []
    fits = Table(
        "NuclearCompletion of whatever rank it finds, on nine tenths of the ratings, all cores",
        ["ratings", "λ", "tol", "limit, s", "seconds", "rank", "RMSE held out",
         "RMSE of the true means", "certified gap", "status", "peak MB", "MB before the fit",
         "3 × (ratings + factors), MB", "growth within that", "under 2 GB"],
    )  # fmt: skip
    for share in ctx.pick((1.0, TENTH), (QUICK,)):
        with drawn(real, share) as case:
            if not tables:
                tables = [_about(case), _passes(ctx, case)]
            for which, tol in CASES:
                lam = LAM * _lam_scale(case.values.size, case.shape) / _lam_scale(SIZE, SHAPE)
                _add_fit(ctx, fits, case, "auto" if which == "auto" else lam, tol, LIMITS[share])
    return ctx.report([*tables, fits], NOTES)


@contextmanager
def drawn(real: dict[str, np.ndarray], share: float) -> Iterator[Case]:
    """A set in files, which child processes read."""
    users, items, values, means, shape = draw(real, share)
    held = np.random.default_rng(1).random(values.size) < HELD_OUT
    with tempfile.TemporaryDirectory() as name:
        for part, kept in {"all": slice(None), "train": ~held, "test": held}.items():
            arrays = {"users": users[kept], "items": items[kept], "values": values[kept]}
            np.savez(Path(name, f"{part}.npz"), **arrays)
        yield Case(users, items, values, shape, name, rmse(means[held], values[held]))


def load(folder: str, part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items and values of all ratings, or of those to train or to test with."""
    with np.load(Path(folder, f"{part}.npz")) as stored:
        return stored["users"], stored["items"], stored["values"]


def _lam_scale(size: int, shape: tuple[int, int]) -> float:
    """√ratings per user + √ratings per item, to which λ is proportional for the same noise."""
    return float(np.sqrt(size / shape[0]) + np.sqrt(size / shape[1]))


# --- the set --------------------------------------------------------------------------


def draw(real: dict[str, np.ndarray], share: float) -> tuple[Any, ...]:
    """Users, items and values of distinct pairs, the means of the values, and the shape."""
    m, n = shape = int(SHAPE[0] * share), int(SHAPE[1] * share**0.5)
    size = int(SIZE * share)
    rng = np.random.default_rng(0)
    activity = _activity(_quantiles(np.bincount(real["user"]), m, rng), size)
    popularity = _quantiles(np.bincount(real["item"]), n, rng)
    users, items = np.divmod(_pairs(activity, popularity, rng), n)
    users, items = users.astype(np.int32), items.astype(np.int32)
    means = _means(users, items, shape, rng)
    noisy = means + DEVIATIONS["noise"] * rng.standard_normal(size)
    values = np.clip(np.round(2 * noisy) / 2, *SCALE)
    return users, items, values, np.clip(means, *SCALE), shape


def _quantiles(counts: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` numbers with the quantiles of the counts, in any order."""
    counts = counts[counts > 0]
    return rng.permutation(np.quantile(counts, (np.arange(size) + 0.5) / size))


def _activity(weights: np.ndarray, size: int) -> np.ndarray:
    """The number of ratings of each user: in proportion to the weights, `size` in all."""

    def counts(scale: float) -> np.ndarray:
        return np.maximum(weights * scale, LEAST_RATINGS).astype(int)

    low, high = 0.0, size / weights.mean()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if counts(middle).sum() > size else (middle, high)
    found = counts(low)
    found[np.argsort(-weights)[: size - found.sum()]] += 1
    return found


def _pairs(activity: np.ndarray, popularity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sorted keys user·n + item, each user's items drawn by popularity without replacement.

    Every item has at least one rating; repeated pairs are drawn again.
    """
    m, n = activity.size, popularity.size
    upto = np.cumsum(popularity) / popularity.sum()
    firsts = rng.choice(np.repeat(np.arange(m), activity), size=n, replace=False)
    keys = np.sort(firsts * n + np.arange(n))
    missing = activity - np.bincount(firsts, minlength=m)
    while missing.any():
        users = np.repeat(np.arange(m), missing)
        items = np.minimum(np.searchsorted(upto, rng.random(users.size)), n - 1)
        drawn = np.unique(users * n + items)
        places = np.searchsorted(keys, drawn)
        new = keys[np.minimum(places, keys.size - 1)] != drawn
        keys = np.insert(keys, places[new], drawn[new])
        missing -= np.bincount(drawn[new] // n, minlength=m)
    return keys


def _means(
    users: np.ndarray, items: np.ndarray, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Mean, offsets, and products of factors whose columns fall in size like k^-½."""
    columns = np.arange(1, TRUE_RANK + 1) ** -0.5
    columns *= DEVIATIONS["products"] / np.linalg.norm(columns)
    P = rng.standard_normal((shape[0], TRUE_RANK))
    Q = rng.standard_normal((shape[1], TRUE_RANK)) * columns
    means = MEAN + (DEVIATIONS["users"] * rng.standard_normal(shape[0]))[users]
    means += (DEVIATIONS["items"] * rng.standard_normal(shape[1]))[items]
    for k in range(TRUE_RANK):
        means += P[:, k][users] * Q[:, k][items]
    return means


def rmse(predicted: np.ndarray, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.clip(predicted, *SCALE) - values) ** 2)))


def _about(case: Case) -> Table:
    activity, popularity = np.bincount(case.users), np.bincount(case.items)
    counts = (f(x) for x in (activity, popularity) for f in (np.median, np.max))
    figures = dict(zip(
        ("median of a user", "most of a user", "median of an item", "most of an item"),
        counts, strict=True,
    ))  # fmt: skip
    row = {"users": case.shape[0], "items": case.shape[1], "ratings": case.values.size, **figures,
           "deviation": float(case.values.std()), "RMSE of the true means": case.floor}  # fmt: skip
    return Table("The synthetic set (not MovieLens 10M)", list(row), [tuple(row.values())])


# --- one pass -------------------------------------------------------------------------


def _passes(ctx: Context, case: Case) -> Table:
    given = {"folder": case.folder, "shape": case.shape, "repeat": max(3, ctx.repeat)}
    copy, add, cache, rows = ctx.call(time_passes, **given)
    columns = [
        "rank", "what", "seconds", "MB to be moved", "bound, s", "times the bound",
        f"within {TARGET_RATIO:g} ×", "bound with every row from memory, s", "times that",
    ]  # fmt: skip
    caption = (
        f"One pass, value and gradient, one thread; copy {copy / 1e9:.1f} GB/s, sum "
        f"{add / 1e9:.1f} GB/s, last cache {cache / 2**20:.0f} MB"
    )
    return Table(caption, columns, rows)


def time_passes(
    folder: str, shape: tuple[int, int], repeat: int
) -> tuple[float, float, int, list[tuple[Any, ...]]]:
    """Bytes a second of copy and sum, the last cache, rows of the table: in a child process."""
    copy, add = stream(repeat)
    cache = last_cache() or DEFAULT_CACHE
    users, items, values = load(folder, "all")
    values -= values.mean()
    rows, sizes = [], (cache, 0)
    for name, ridge in (("no offsets", None), ("offsets", 5.0)):
        problem = nuclear_completion(users, items, values, shape, LAM, ridge=ridge)
        for rank in PASS_RANKS:
            for label, call in _calls(problem, rank, name).items():
                if ridge is not None and label == "map alone":
                    continue
                seconds, loss = _median_seconds(call, repeat), label != "map alone"
                near, far = (pass_bytes(values.size, shape, rank, at, loss) for at in sizes)
                bound, bound_far = near / max(copy, add), far / max(copy, add)
                rows.append((
                    rank, label, seconds, near / 1e6, bound, seconds / bound,
                    seconds <= TARGET_RATIO * bound, bound_far, seconds / bound_far,
                ))  # fmt: skip
    return copy, add, cache, rows


def stream(repeat: int) -> tuple[float, float]:
    """Bytes a second of STREAM's copy a ← b and of its sum c ← a + b.

    As in STREAM, the bytes that a core fetches before it overwrites them are not counted.
    """
    a, b, c = (np.full(STREAM_ELEMENTS, float(k)) for k in range(3))
    copy = 2 * a.nbytes / _median_seconds(lambda: np.copyto(a, b), repeat)
    return copy, 3 * a.nbytes / _median_seconds(lambda: np.add(a, b, out=c), repeat)


def _calls(problem: gm.Problem, rank: int, name: str) -> dict[str, Callable[[], Any]]:
    objective: Any = problem.objective
    rng = np.random.default_rng(rank)
    base = rng.standard_normal((problem.order, rank)) * rank**-0.5
    weights = np.ones(objective.map.size)

    def map_alone() -> None:
        objective.map.bilinear(base, base)
        objective.map.adjoint(weights, base)

    def whole() -> None:
        # Another point each time: offsets start from those of the last.
        image = objective.image(base * rng.uniform(0.9, 1.1))
        objective.value(image)
        objective.gradient_factor(image)

    return {"map alone": map_alone, f"objective, {name}": whole}


def _median_seconds(call: Callable[[], Any], repeat: int) -> float:
    """Processor seconds, after a first call that compiles."""
    call()
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def pass_bytes(size: int, shape: tuple[int, int], rank: int, cache: int, loss: bool) -> float:
    """Bytes one pass must move between memory and the last cache.

    An entry of the image takes two indices and a value; of the loss four numbers (z, target,
    weight, derivative); of the two adjoint products two indices, two values and a place. [P; Q] is
    read twice and its gradient written once. A block of factors larger than the cache is fetched
    again for every entry: Q for the image and for G Q, P for Gᵀ P.
    """
    m, n = shape
    entries = (4 + 4 + 8) + (8 + 4) + (8 + 4 + 4) + (32 if loss else 0)
    factors = 3 * 8.0 * rank * (m + n)
    gathered = 8.0 * rank * size
    P_again = gathered if 8 * rank * m > cache else 0.0
    Q_again = 2 * gathered if 8 * rank * n > cache else 0.0
    return float(size * entries + factors + P_again + Q_again)


# --- whole fits -----------------------------------------------------------------------


def _add_fit(
    ctx: Context, table: Table, case: Case, lam: float | str, tol: float | str, limit: float
) -> None:
    kwargs = {"folder": case.folder, "lam": lam, "tol": tol, "limit": limit}
    child = ctx.in_child(fit, kwargs, threads=cores())
    size = case.values.size
    if not child.ok:
        table.add(size, str(lam), str(tol), limit, *[None] * 5, child.error, *[None] * 5)
        return
    found: dict[str, Any] = child.value
    allowed = MEMORY_FACTOR * found["needed_mb"]
    table.add(
        size, f"auto: {found['lam']:.3g}" if lam == "auto" else f"{lam:.3g}", str(tol), limit,
        Versus(found["seconds"], PRINTED_SECONDS if size == SIZE else None),
        found["rank"], found["rmse"], case.floor, found["gap"], found["status"],
        found["peak_mb"], found["before_mb"], allowed,
        found["peak_mb"] - found["before_mb"] <= allowed, found["peak_mb"] < MEMORY_LIMIT_MB,
    )  # fmt: skip


def fit(folder: str, lam: float | str, tol: float | str, limit: float) -> dict[str, Any]:
    """One fit and its held-out error: in a child process."""
    train, before = load(folder, "train"), peak_mb()
    model = NuclearCompletion(lam=lam, tol=tol, time_limit=limit, random_state=0)
    model, seconds = fitted(model, train)
    factors, peak = model.row_factors_.nbytes + model.col_factors_.nbytes, peak_mb()
    users, items, values = load(folder, "test")
    return {
        "seconds": seconds, "rmse": rmse(model.predict((users, items)), values), "lam": model.lam_,
        "gap": float(model.certificate_.relative_gap), "rank": int(model.row_factors_.shape[1]),
        "status": model.result_.status.name, "peak_mb": peak, "before_mb": before,
        "needed_mb": (RATING_BYTES * train[2].size + factors) / 2**20,
    }  # fmt: skip
