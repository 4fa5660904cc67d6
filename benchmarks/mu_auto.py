"""The defaults of DMLEig and KTA: what "auto" loses to the best of a grid chosen by test error.

On sets that were not used to design the defaults. DMLEig: the smoothing μ in units of the median
whitened distance of dissimilar pairs under S = I/d, times the floor ρ. KTA: λ in units of 1/ḡ², ḡ
the mean nonzero eigenvalue of XᵀX. The best of the grid is selected by its own test error, so it
is a bound that no rule can be expected to reach.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from benchmarks.harness.context import Context
from benchmarks.harness.learn import Split, fitted, random_split
from benchmarks.harness.report import Report, Table
from gramian.metric import KTA, DMLEig

TITLE = 'The defaults of DMLEig and KTA: "auto" against the best of a grid'
PAPER = "Not from a paper: evidence for mu, floor and lam (DML-eig §3.1, BILGO eq. 5)"
NEEDS_DATA = (
    "sonar", "glass", "ionosphere", "pendigits", "satimage", "splice", "letter", "isolet",
)  # fmt: skip

QUICK = ("glass", "sonar")
SPLITS = 3, 1
SMOOTHINGS, FLOORS = (0.03, 0.1, 0.3, 1.0, 3.0), (0.0, 0.3, 0.5, 0.7, 0.9)
WEIGHTS = (1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
AUTO_SMOOTHING = 0.3
"""mu="auto" in units."""
LETTER, ISOLET_DIMENSIONS = 5_000, 100
LIMIT, CHILD_LIMIT = 60.0, 7200.0

NOTES = (
    "Random stratified splits, 70 % for training, test parts joined; features standardised by the "
    f"training part; letter: {LETTER} samples; isolet: {ISOLET_DIMENSIONS} principal components "
    "of the training part. Samples that occur under two labels are left out.",
    "Errors of 3-NN in %, means over the splits; the best of a grid is one point for all splits "
    "of a set, selected by these errors. Standard error: of auto − best, over the splits.",
)


@dataclass
class Grid:
    """Errors in % by split: of "auto" and of every point of a grid; the values of "auto"."""

    auto: list[float] = field(default_factory=list)
    points: dict[Any, list[float]] = field(default_factory=dict)
    chosen: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def fit(self, model: Any, split: Split, point: Any = None) -> Any:
        """Fit a model; its error is that of a point of the grid, or of "auto"."""
        model, seconds = fitted(model, split.X, split.y)
        error = split.error(model.transform)
        if point is None:
            self.auto.append(error)
            self.seconds += seconds
        else:
            self.points.setdefault(point, []).append(error)
        return model

    def mean(self, point: Any) -> float:
        return float(np.mean(self.points[point]))

    @property
    def best(self) -> Any:
        return min(self.points, key=self.mean)


Outcome = dict[str, Any]


def run(ctx: Context) -> Report:
    """Every set in its own process."""
    outcomes: dict[str, Outcome] = {}
    for name in ctx.pick(NEEDS_DATA, QUICK):
        X, y = _samples(ctx, name)
        kwargs = {"X": X, "y": y, "name": name, "splits": ctx.pick(*SPLITS)}
        outcomes[name] = ctx.call(measure, CHILD_LIMIT, **kwargs)
    tables = [
        _table("DMLEig: (μ in units, floor)", "dml", outcomes),
        _table("KTA: λ in units of 1/ḡ²", "kta", outcomes),
        _surface(outcomes),
    ]
    return ctx.report(tables, NOTES)


def _samples(ctx: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The samples of a set with one label each."""
    data = ctx.load(name)
    X, y = data.X, data.y
    if data.X_test is not None and data.y_test is not None:
        X, y = np.vstack([X, data.X_test]), np.concatenate([y, data.y_test])
    if name == "letter":
        rows = np.random.default_rng(0).permutation(y.size)[:LETTER]
        X, y = X[rows], y[rows]
    X = X.toarray() if sp.issparse(X) else X
    kept = ~contradictory(X, y)
    return X[kept], y[kept]


def contradictory(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether each sample occurs under more than one label, which DMLEig rejects."""
    _, same = np.unique(X, axis=0, return_inverse=True)
    same = same.ravel()
    low, high = np.full(same.max() + 1, y.max()), np.full(same.max() + 1, y.min())
    np.minimum.at(low, same, y)
    np.maximum.at(high, same, y)
    return low[same] != high[same]


def measure(X: np.ndarray, y: np.ndarray, name: str, splits: int) -> Outcome:
    """Both grids on every split of a set: in a child process."""
    dml, kta, euclid = Grid(), Grid(), []
    for seed in range(splits):
        split = random_split(X, y, seed).standardised()
        if name == "isolet":
            split = split.mapped(PCA(ISOLET_DIMENSIONS, random_state=seed).fit(split.X).transform)
        euclid.append(split.error())
        unit = dml.fit(DMLEig(shrinkage=0.0, time_limit=LIMIT), split).mu_ / AUTO_SMOOTHING
        dml.chosen.append(AUTO_SMOOTHING)
        for mu in SMOOTHINGS:
            for floor in FLOORS:
                model = DMLEig(mu=mu * unit, floor=floor, shrinkage=0.0, time_limit=LIMIT)
                dml.fit(model, split, (mu, floor))
        centred = split.X - split.X.mean(axis=0)
        unit = (np.linalg.matrix_rank(centred) / np.sum(centred**2)) ** 2
        kta.chosen.append(kta.fit(KTA(time_limit=LIMIT), split).lam_ / unit)
        for weight in WEIGHTS:
            kta.fit(KTA(lam=weight * unit, time_limit=LIMIT), split, weight)
    return {"shape": X.shape, "euclid": euclid, "dml": dml, "kta": kta}


def _table(caption: str, which: str, outcomes: dict[str, Outcome]) -> Table:
    columns = ("set", "n × d", "Euclid", "auto", "auto chose", "best of grid", "at", "auto − best",
               "standard error", "worst of grid", "seconds of auto")  # fmt: skip
    table = Table(caption, columns)
    for name, outcome in outcomes.items():
        grid, (n, d) = outcome[which], outcome["shape"]
        loss, splits = np.subtract(grid.auto, grid.points[grid.best]), len(grid.auto)
        table.add(
            name, f"{n} × {d}", float(np.mean(outcome["euclid"])), float(np.mean(grid.auto)),
            ", ".join(f"{value:.3g}" for value in grid.chosen), grid.mean(grid.best),
            str(grid.best), float(np.mean(loss)),
            np.std(loss, ddof=1) / np.sqrt(splits) if splits > 1 else None,
            max(map(grid.mean, grid.points)), grid.seconds / splits,
        )  # fmt: skip
    return table


def _surface(outcomes: dict[str, Outcome]) -> Table:
    columns = ("μ in units", *(f"floor {floor:g}" for floor in FLOORS))
    table = Table("DMLEig: error in % over the grid, mean over the sets", columns)
    for mu in SMOOTHINGS:
        means = ([o["dml"].mean((mu, floor)) for o in outcomes.values()] for floor in FLOORS)
        table.add(mu, *(float(np.mean(values)) for values in means))
    return table
