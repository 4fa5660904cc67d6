"""The defaults of DMLEig and KTA: what "auto" loses to the best of a grid chosen by test error.

On sets that were not used to design the defaults. DMLEig: the smoothing μ in units of the median
whitened distance of dissimilar pairs under S = I/d, times the floor ρ. KTA: λ in units of 1/ḡ², ḡ
the mean nonzero eigenvalue of XᵀX. The best of the grid is picked by the very test error it is
judged by, so it is a bound that no rule can be expected to reach.
"""

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.metric import KTA, DMLEig

TITLE = 'The defaults of DMLEig and KTA: "auto" against the best of a grid'
PAPER = "No table of a paper: evidence for mu, floor and lam (DML-eig §3.1, BILGO eq. 5)"
NEEDS_DATA = (
    "sonar", "glass", "ionosphere", "pendigits", "satimage", "splice", "letter", "isolet",
)  # fmt: skip

QUICK = ("sonar", "glass", "ionosphere", "splice")
SPLITS, SPLITS_QUICK = 3, 1
SMOOTHINGS = (0.03, 0.1, 0.3, 1.0, 3.0)
FLOORS = (0.0, 0.3, 0.5, 0.7, 0.9)
WEIGHTS = (1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
AUTO_SMOOTHING = 0.3
"""The multiple of the unit that mu="auto" is."""
LETTER, ISOLET_DIMENSIONS = 5_000, 100
NEIGHBOURS = 3
LIMIT = 60.0
CHILD_LIMIT = 7200.0

NOTES = (
    "Random stratified splits, 70 % for training, test parts joined; features standardised by the "
    f"training part; letter: {LETTER} samples; isolet: {ISOLET_DIMENSIONS} principal components "
    "of the training part.",
    "Errors of 3-NN in %, means over the splits; the best of a grid is one point for all splits "
    "of a set, picked by these errors themselves.",
    "Standard error: of the difference between auto and best, over the splits.",
)


@dataclass
class Grid:
    """Errors in % by split: of Euclid, of "auto", and of every point of a grid."""

    auto: list[float] = field(default_factory=list)
    points: dict[Any, list[float]] = field(default_factory=dict)
    chosen: list[float] = field(default_factory=list)
    """What "auto" chose, in units."""
    seconds: float = 0.0

    def add(self, point: Any, error: float) -> None:
        self.points.setdefault(point, []).append(error)

    def mean(self, point: Any) -> float:
        return float(np.mean(self.points[point]))

    @property
    def best(self) -> Any:
        return min(self.points, key=self.mean)

    @property
    def loss(self) -> np.ndarray:
        """Error of auto less that of the best point, by split."""
        return np.array(self.auto) - np.array(self.points[self.best])


@dataclass
class Outcome:
    """One set."""

    shape: tuple[int, int]
    euclid: list[float] = field(default_factory=list)
    dml: Grid = field(default_factory=Grid)
    kta: Grid = field(default_factory=Grid)


def run(ctx: Context) -> Report:
    """Every set in a process of its own, with one thread."""
    outcomes: dict[str, Outcome] = {}
    dropped = {}
    for name in QUICK if ctx.quick else NEEDS_DATA:
        X, y, dropped[name] = _samples(ctx, name)
        kwargs = {"X": X, "y": y, "name": name, "splits": SPLITS_QUICK if ctx.quick else SPLITS}
        answer = ctx.in_child("benchmarks.mu_auto:measure", kwargs, CHILD_LIMIT, threads=1)
        if not answer.ok:
            raise RuntimeError(f"{name}: {answer.error}")
        outcomes[name] = answer.value
    tables = [
        _table("DMLEig: (μ in units, floor)", {n: (o, o.dml) for n, o in outcomes.items()}),
        _table("KTA: λ in units of 1/ḡ²", {n: (o, o.kta) for n, o in outcomes.items()}),
        _surface(outcomes),
    ]
    verdicts = [
        _verdict("DMLEig", [o.dml for o in outcomes.values()]),
        _verdict("KTA", [o.kta for o in outcomes.values()]),
        _default_point(outcomes),
    ]
    named = ", ".join(f"{count} of {name}" for name, count in dropped.items() if count) or "none"
    left_out = f"Samples left out because they occur under two labels: {named}."
    return ctx.report(tables, (*NOTES, left_out, *verdicts))


def _samples(ctx: Context, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """The samples of a set, and how many were left out for having two labels."""
    data = ctx.load(name)
    X, y = data.X, data.y
    if data.X_test is not None and data.y_test is not None:
        X, y = np.vstack([X, data.X_test]), np.concatenate([y, data.y_test])
    if name == "letter":
        rows = np.random.default_rng(0).permutation(y.size)[:LETTER]
        X, y = X[rows], y[rows]
    X = X.toarray() if sp.issparse(X) else X
    kept = ~contradictory(X, y)
    return X[kept], y[kept], int(np.sum(~kept))


def contradictory(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which samples occur under more than one label: DMLEig refuses them."""
    _, same = np.unique(X, axis=0, return_inverse=True)
    same = same.ravel()
    low, high = np.full(same.max() + 1, y.max()), np.full(same.max() + 1, y.min())
    np.minimum.at(low, same, y)
    np.maximum.at(high, same, y)
    return low[same] != high[same]


def measure(X: np.ndarray, y: np.ndarray, name: str, splits: int) -> Outcome:
    """Both grids on every split of a set: what the child process does."""
    outcome = Outcome(X.shape)
    for seed in range(splits):
        parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
        scaler = StandardScaler().fit(parts[0])
        train, test = scaler.transform(parts[0]), scaler.transform(parts[1])
        if name == "isolet":
            pca = PCA(ISOLET_DIMENSIONS, random_state=seed).fit(train)
            train, test = pca.transform(train), pca.transform(test)
        split = (train, parts[2], test, parts[3])
        outcome.euclid.append(neighbour_error(*split))
        _dml_grid(outcome.dml, split)
        _kta_grid(outcome.kta, split)
    return outcome


def _dml_grid(grid: Grid, split: tuple[np.ndarray, ...]) -> None:
    start = time.perf_counter()
    auto = _fit(DMLEig(shrinkage=0.0, time_limit=LIMIT), split)
    grid.seconds += time.perf_counter() - start
    unit = auto.mu_ / AUTO_SMOOTHING
    grid.auto.append(_error(auto, split))
    grid.chosen.append(auto.mu_ / unit)
    for smoothing in SMOOTHINGS:
        for floor in FLOORS:
            model = DMLEig(mu=smoothing * unit, floor=floor, shrinkage=0.0, time_limit=LIMIT)
            grid.add((smoothing, floor), _error(_fit(model, split), split))


def _kta_grid(grid: Grid, split: tuple[np.ndarray, ...]) -> None:
    X = split[0] - split[0].mean(axis=0)
    unit = (np.linalg.matrix_rank(X) / np.sum(X**2)) ** 2
    start = time.perf_counter()
    auto = _fit(KTA(time_limit=LIMIT), split)
    grid.seconds += time.perf_counter() - start
    grid.auto.append(_error(auto, split))
    grid.chosen.append(auto.lam_ / unit)
    for weight in WEIGHTS:
        grid.add(weight, _error(_fit(KTA(lam=weight * unit, time_limit=LIMIT), split), split))


def _fit(model: Any, split: tuple[np.ndarray, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(split[0], split[1])


def _error(model: Any, split: tuple[np.ndarray, ...]) -> float:
    X, y, X_test, y_test = split
    return neighbour_error(model.transform(X), y, model.transform(X_test), y_test)


def neighbour_error(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    """Error % of 3 nearest neighbours."""
    neighbours = KNeighborsClassifier(NEIGHBOURS).fit(X, y)
    return 100 * (1 - float(neighbours.score(X_test, y_test)))


def _table(caption: str, grids: dict[str, tuple[Outcome, Grid]]) -> Table:
    columns = ("set", "n × d", "Euclid", "auto", "auto chose", "best of grid", "at", "auto − best",
               "standard error", "worst of grid", "seconds of auto")  # fmt: skip
    table = Table(caption, columns)
    for name, (outcome, grid) in grids.items():
        splits = len(grid.auto)
        error = np.std(grid.loss, ddof=1) / np.sqrt(splits) if splits > 1 else None
        table.add(
            name,
            f"{outcome.shape[0]} × {outcome.shape[1]}",
            float(np.mean(outcome.euclid)),
            float(np.mean(grid.auto)),
            ", ".join(f"{value:.3g}" for value in grid.chosen),
            grid.mean(grid.best),
            str(grid.best),
            float(np.mean(grid.loss)),
            error,
            max(map(grid.mean, grid.points)),
            grid.seconds / splits,
        )
    return table


def _over_sets(outcomes: dict[str, Outcome], point: tuple[float, float]) -> float:
    return float(np.mean([outcome.dml.mean(point) for outcome in outcomes.values()]))


def _surface(outcomes: dict[str, Outcome]) -> Table:
    columns = ("μ in units", *(f"floor {floor:g}" for floor in FLOORS))
    table = Table("DMLEig: error in % over the grid, mean over the sets", columns)
    for smoothing in SMOOTHINGS:
        table.add(smoothing, *(_over_sets(outcomes, (smoothing, floor)) for floor in FLOORS))
    return table


def _default_point(outcomes: dict[str, Outcome]) -> str:
    """Where the default stands among the points of the grid, by the mean over the sets."""
    points = [(smoothing, floor) for smoothing in SMOOTHINGS for floor in FLOORS]
    means = {point: _over_sets(outcomes, point) for point in points}
    best = min(means, key=means.__getitem__)
    auto = float(np.mean([np.mean(outcome.dml.auto) for outcome in outcomes.values()]))
    ahead = sum(mean < auto - 1e-9 for mean in means.values())
    return (
        f"DMLEig, mean over the sets: auto {auto:.2f} %, {ahead} of {len(points)} points of the "
        f"grid are better, the best one for all sets is {best} with {means[best]:.2f} %."
    )


def _verdict(name: str, grids: list[Grid]) -> str:
    losses = [float(np.mean(grid.loss)) for grid in grids]
    return (
        f"{name}: auto is {np.mean(losses):.2f} points above the best of the grid on average over "
        f"the sets, {max(losses):.2f} at most."
    )
