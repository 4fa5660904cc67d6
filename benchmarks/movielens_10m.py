"""A synthetic set of the shape of MovieLens 10M: time of a pass, whole fits, and memory.

The real set cannot be had here. Its numbers of users, items and ratings are kept; how active users
and how popular items are comes from MovieLens 1M; the ratings are drawn from a model of low rank.
First the time of one pass over the ratings (value and gradient of the factored objective) beside
what the memory's bandwidth allows, then `NuclearCompletion` on nine tenths of the ratings.
"""

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.machine import cores
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table, Versus
from gramian.completion import NuclearCompletion
from gramian.problems import nuclear_completion

TITLE = "Ten million ratings: a synthetic set of the shape of MovieLens 10M"
PAPER = "BiS (Hu and Kwok 2019), Section IV-B, Tables IV-VI, column 10M"
NEEDS_DATA = ("movielens_1m",)

SHAPE, SIZE = (69_878, 10_677), 10_000_054
TENTH = 0.1
"""Of the ratings and of the users; of the items its root."""
LEAST_RATINGS = 20
"""Every user of MovieLens rated so many."""
HELD_OUT = 0.1

MEAN, TRUE_RANK = 3.5, 10
DEVIATIONS = {"users": 0.4, "items": 0.45, "products": 0.5, "noise": 0.75}
SCALE = (0.5, 5.0)

PASS_RANKS = (16, 64)
STREAM_ELEMENTS = 40_000_000
"""320 MB an array: no cache holds it."""
DEFAULT_CACHE = 32 * 2**20
CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
TARGET_RATIO = 2.5
MEMORY_FACTOR, MEMORY_LIMIT_MB = 3.0, 2000.0
RATING_BYTES = 16
"""Two int32 and a float64."""

LAM = 27.0
LIMIT, LIMIT_TENTH = 300.0, 60.0
CASES = (("λ given", 1e-2), ("auto", "auto"))
"""Which λ, and the tolerance: an optimum proved to so much, and all defaults."""
PRINTED_SECONDS = 786.0
"""BiS in the paper, on the real set."""

NOTES = (
    "SYNTHETIC: MovieLens 10M was not to be had. Its users, items and ratings are counted as in "
    "the real set; the quantiles of the ratings of a user and of an item are those of MovieLens "
    "1M, stretched over more of them (the most popular item of the real set has more than three "
    "times as many ratings). No RMSE here compares with one on the real set.",
    f"A rating is {MEAN:g} + offsets + a product of {TRUE_RANK} normal factors whose columns fall "
    f"like 1/√k + noise, of deviations {DEVIATIONS['users']:g} (users), {DEVIATIONS['items']:g} "
    f"(items), {DEVIATIONS['products']:g} (products) and {DEVIATIONS['noise']:g} (noise), rounded "
    "to half stars from 0.5 to 5. 'RMSE of the true means' is what the noise and the rounding "
    "leave to whoever knows the model.",
    "A pass is the value and the gradient at a factor of the rank given, in seconds of the core it "
    "runs on (others used the machine, and share its caches and memory). Bytes to be moved: the "
    "index arrays, values and weights of every entry once, the factors in and the gradient out, "
    "and, for a block of factors larger than the last cache, one of its rows an entry. The bound "
    "is those bytes over the faster of copy and sum, measured in the same process. It leaves out "
    "what the caches, the arithmetic and, with offsets, the inner conjugate gradients take; the "
    "last two columns count every gathered row as coming from memory, cached or not.",
    f"λ = {LAM:g} is about where optima on a tenth of the set predict held-out ratings best, in "
    "proportion to √ratings per user + √ratings per item; a smaller one, as sweeps that end early "
    "choose, has optima of several hundred columns of noise. The rows of 'auto' are of all "
    "defaults: they end where the held-out error does, whatever the gap.",
    "The certified gap is to the optimum of any rank. Memory: 'growth' is the peak less what the "
    "process held before the fit, its modules and the ratings as passed (two int32 and a "
    "float64 each); the limit of 2 GB is on the whole process.",
    "The paper's seconds are of BiS on the real set and another machine.",
)


@dataclass(frozen=True)
class Synthetic:
    """Ratings, sorted by user and item, and the means they were drawn around."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    means: np.ndarray
    shape: tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A set, the folder it is in, and the held-out RMSE of the means it was drawn around."""

    data: Synthetic
    folder: str
    floor: float


def run(ctx: Context) -> Report:
    """The time of a pass, then whole fits in processes of their own."""
    real = ctx.arrays("movielens_1m")
    fits = _empty_fits()
    tables: list[Table] = []
    if not ctx.quick:
        with drawn(real, 1.0) as case:
            tables += [_about(case), _passes(ctx, case)]
            _add_fits(ctx, fits, case, LAM, LIMIT)
    with drawn(real, TENTH) as case:
        if ctx.quick:
            tables += [_about(case), _passes(ctx, case)]
        fewer = _lam_scale(case.data.values.size, case.data.shape) / _lam_scale(SIZE, SHAPE)
        _add_fits(ctx, fits, case, LAM * fewer, LIMIT_TENTH)
    return ctx.report([*tables, fits], NOTES)


@contextmanager
def drawn(real: dict[str, np.ndarray], share: float) -> Iterator[Case]:
    """A set in files of its own, for children to read without a copy on the way."""
    data = draw(real, share)
    held = np.random.default_rng(1).random(data.values.size) < HELD_OUT
    with tempfile.TemporaryDirectory() as name:
        for part, kept in {"all": slice(None), "train": ~held, "test": held}.items():
            users, items, values = data.users[kept], data.items[kept], data.values[kept]
            np.savez(Path(name, f"{part}.npz"), users=users, items=items, values=values)
        yield Case(data, name, rmse(data.means[held], data.values[held]))


def load(folder: str, part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items and values of all ratings, or of those to train or to test with."""
    with np.load(Path(folder, f"{part}.npz")) as stored:
        return stored["users"], stored["items"], stored["values"]


def _lam_scale(size: int, shape: tuple[int, int]) -> float:
    """√ratings per user + √ratings per item: noise of one size needs a λ in proportion to it."""
    return float(np.sqrt(size / shape[0]) + np.sqrt(size / shape[1]))


# --- the set --------------------------------------------------------------------------


def draw(real: dict[str, np.ndarray], share: float) -> Synthetic:
    """Distinct pairs with the real skew, and ratings around a model of low rank."""
    m, n = int(SHAPE[0] * share), int(SHAPE[1] * share**0.5)
    size = int(SIZE * share)
    rng = np.random.default_rng(0)
    activity = _activity(_quantiles(np.bincount(real["user"]), m, rng), size)
    popularity = _quantiles(np.bincount(real["item"]), n, rng)
    users, items = np.divmod(_pairs(activity, popularity, rng), n)
    users, items = users.astype(np.int32), items.astype(np.int32)
    means = _means(users, items, (m, n), rng)
    noisy = means + DEVIATIONS["noise"] * rng.standard_normal(size)
    values = np.clip(np.round(2 * noisy) / 2, *SCALE)
    return Synthetic(users, items, values, np.clip(means, *SCALE), (m, n))


def _quantiles(counts: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` numbers with the quantiles of the counts, in any order."""
    counts = counts[counts > 0]
    return rng.permutation(np.quantile(counts, (np.arange(size) + 0.5) / size))


def _activity(weights: np.ndarray, size: int) -> np.ndarray:
    """How many ratings each user gives: in proportion to the weights, `size` in all."""
    low, high = 0.0, size / weights.mean()
    for _ in range(100):
        middle = 0.5 * (low + high)
        enough = _counts(weights * middle).sum() > size
        low, high = (low, middle) if enough else (middle, high)
    counts = _counts(weights * low)
    counts[np.argsort(-weights)[: size - counts.sum()]] += 1
    return counts


def _counts(weights: np.ndarray) -> np.ndarray:
    return np.maximum(weights, LEAST_RATINGS).astype(int)


def _pairs(activity: np.ndarray, popularity: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sorted keys user·n + item, each user's items drawn by popularity without replacement.

    Every item has one rating at least; a pair that came before is drawn again.
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
    data = case.data
    activity, popularity = np.bincount(data.users), np.bincount(data.items)
    row = [
        *data.shape, data.values.size, float(np.median(activity)), int(activity.max()),
        float(np.median(popularity)), int(popularity.max()), float(data.values.std()), case.floor,
    ]  # fmt: skip
    return Table(
        "The synthetic set (not MovieLens 10M)",
        ["users", "items", "ratings", "median of a user", "most of a user", "median of an item",
         "most of an item", "deviation", "RMSE of the true means"],
        [row],
    )  # fmt: skip


# --- one pass -------------------------------------------------------------------------


def _passes(ctx: Context, case: Case) -> Table:
    kwargs = {"folder": case.folder, "shape": case.data.shape, "repeat": max(3, ctx.repeat)}
    child = ctx.in_child("benchmarks.movielens_10m:time_passes", kwargs, threads=1)
    if not child.ok:
        raise RuntimeError(child.error)
    bandwidth, cache, rows = child.value
    columns = [
        "rank", "what", "seconds", "MB to be moved", "bound, s", "times the bound",
        f"within {TARGET_RATIO:g} ×", "bound with every row from memory, s", "times that",
    ]  # fmt: skip
    caption = (
        f"One pass, value and gradient, one thread; copy {bandwidth['copy'] / 1e9:.1f} GB/s, sum "
        f"{bandwidth['sum'] / 1e9:.1f} GB/s, last cache {cache / 2**20:.0f} MB"
    )
    return Table(caption, columns, rows)


def time_passes(
    folder: str, shape: tuple[int, int], repeat: int
) -> tuple[dict[str, float], int, list[list[Any]]]:
    """Bandwidth, size of the last cache, and rows of the table: what a child does."""
    bandwidth, cache = stream(repeat), last_cache()
    users, items, values = load(folder, "all")
    values -= values.mean()
    rows = []
    for name, ridge in (("no offsets", None), ("offsets", 5.0)):
        problem = nuclear_completion(users, items, values, shape, LAM, ridge=ridge)
        for rank in PASS_RANKS:
            for what, call in _calls(problem, rank).items():
                if ridge is not None and what == "map alone":
                    continue
                label = what if what == "map alone" else f"{what}, {name}"
                seconds = _median_seconds(call, repeat)
                rows.append(
                    _pass_row(
                        rank, label, seconds, values.size, shape, max(bandwidth.values()), cache
                    )
                )
    return bandwidth, cache, rows


def _calls(problem: gm.Problem, rank: int) -> dict[str, Callable[[], Any]]:
    objective: Any = problem.objective
    map = objective.map
    rng = np.random.default_rng(rank)
    base = rng.standard_normal((problem.order, rank)) * rank**-0.5
    weights = np.ones(map.size)

    def map_alone() -> None:
        map.bilinear(base, base)
        map.adjoint(weights, base)

    def whole() -> None:
        # Another point each time: offsets start from those of the last.
        L = base * rng.uniform(0.9, 1.1)
        image = objective.image(L)
        objective.value(image)
        objective.gradient_factor(image)

    return {"map alone": map_alone, "objective": whole}


def _median_seconds(call: Callable[[], Any], repeat: int) -> float:
    """Seconds of the processor: others that take turns with it do not count."""
    call()  # compiles, and builds the patterns
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def _pass_row(
    rank: int,
    label: str,
    seconds: float,
    size: int,
    shape: tuple[int, int],
    bandwidth: float,
    cache: int,
) -> list[Any]:
    least = pass_bytes(size, shape, rank, cache, loss=label != "map alone")
    most = pass_bytes(size, shape, rank, 0, loss=label != "map alone")
    bound, far = least / bandwidth, most / bandwidth
    return [
        rank, label, seconds, least / 1e6, bound, seconds / bound,
        seconds <= TARGET_RATIO * bound, far, seconds / far,
    ]  # fmt: skip


def pass_bytes(size: int, shape: tuple[int, int], rank: int, cache: int, *, loss: bool) -> float:
    """Bytes one pass must move between memory and the last cache.

    An entry of the image takes two indices and a value; of the loss four numbers (z, target,
    weight, derivative); of the two adjoint products two indices, two values and a place. [P; Q] is
    read twice and its gradient written once. A block of factors that the cache does not hold is
    fetched again for every entry: Q for the image and for G Q, P for Gᵀ P.
    """
    m, n = shape
    entries = (4 + 4 + 8) + (8 + 4) + (8 + 4 + 4) + (32 if loss else 0)
    factors = 3 * 8.0 * rank * (m + n)
    gathered = 8.0 * rank * size
    P_again = gathered if 8 * rank * m > cache else 0.0
    Q_again = 2 * gathered if 8 * rank * n > cache else 0.0
    return float(size * entries + factors + P_again + Q_again)


def stream(repeat: int) -> dict[str, float]:
    """Bytes a second of STREAM's copy a ← b and of its sum c ← a + b.

    As there, what a core fetches before it overwrites it is not counted.
    """
    a, b, c = (np.full(STREAM_ELEMENTS, float(k)) for k in range(3))
    return {
        "copy": 2 * a.nbytes / _median_seconds(lambda: np.copyto(a, b), repeat),
        "sum": 3 * a.nbytes / _median_seconds(lambda: np.add(a, b, out=c), repeat),
    }


def last_cache() -> int:
    """Bytes of the largest cache of a core, as Linux tells it."""
    found = [path.read_text().strip() for path in CACHE_FOLDER.glob("index*/size")]
    sizes = [int(text.removesuffix("K")) * 1024 for text in found if text.endswith("K")]
    return max(sizes, default=DEFAULT_CACHE)


# --- whole fits -----------------------------------------------------------------------


def _empty_fits() -> Table:
    return Table(
        "NuclearCompletion of whatever rank it finds, on nine tenths of the ratings, all cores",
        ["ratings", "λ", "tol", "limit, s", "seconds", "rank", "RMSE held out",
         "RMSE of the true means", "certified gap", "status", "peak MB", "MB before the fit",
         "3 × (ratings + factors), MB", "growth within that", "under 2 GB"],
    )  # fmt: skip


def _add_fits(ctx: Context, table: Table, case: Case, given: float, limit: float) -> None:
    for which, tol in CASES:
        _add_fit(ctx, table, case, "auto" if which == "auto" else given, tol, limit)


def _add_fit(
    ctx: Context, table: Table, case: Case, lam: float | str, tol: float | str, limit: float
) -> None:
    kwargs = {"folder": case.folder, "lam": lam, "tol": tol, "limit": limit}
    child = ctx.in_child("benchmarks.movielens_10m:fit", kwargs, threads=cores())
    size = case.data.values.size
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
    """One fit and its held-out error: what a child does."""
    train = load(folder, "train")
    before = peak_mb()
    model = NuclearCompletion(lam=lam, tol=tol, time_limit=limit, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status is reported
        model.fit(train)
    seconds = time.perf_counter() - start
    factors = model.row_factors_.nbytes + model.col_factors_.nbytes
    peak = peak_mb()
    users, items, values = load(folder, "test")
    return {
        "seconds": seconds,
        "rmse": rmse(model.predict((users, items)), values),
        "lam": model.lam_,
        "gap": float(model.certificate_.relative_gap),
        "rank": int(model.row_factors_.shape[1]),
        "status": model.result_.status.name,
        "peak_mb": peak,
        "before_mb": before,
        "needed_mb": (RATING_BYTES * train[2].size + factors) / 2**20,
    }
