"""Quality of predictions and recommendations: errors of ratings, precision, recall and nDCG."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@dataclass
class Ranking:
    """The first k columns of every row that has a relevant one, and which of them are relevant.

    nDCG@k = Σ_h hit_h / log₂(h + 1) over the largest value of this sum for the row, h = 1 … k
    (Järvelin and Kekäläinen 2002, gains 0 and 1). Relevant columns that the model does not know
    count as not found.
    """

    rows: Indices
    """The row of each test rating by its index in the model, −1 for an unknown one."""
    cols: Indices
    good: NDArray[np.bool_]
    k: int
    asked: Indices = field(init=False)
    """The rows, by their index in the model, that get recommendations."""

    def __post_init__(self) -> None:
        kept = self.good & (self.rows >= 0)
        self.asked, place, counts = np.unique(
            self.rows[kept], return_inverse=True, return_counts=True
        )
        self.relevant = counts
        self.width = int(self.cols.max(initial=0)) + 1
        known = self.cols[kept] >= 0
        self.keys = np.sort(place[known].astype(np.int64) * self.width + self.cols[kept][known])
        self.hits = np.zeros((self.asked.size, self.k), dtype=bool)
        self.recommended: set[int] = set()

    def add(self, part: slice, best: Indices) -> None:
        """Add the columns recommended to some of `asked`."""
        lines = np.arange(part.start, part.stop, dtype=np.int64)[:, None]
        wanted = lines * self.width + best
        if self.keys.size:
            place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
            found = (self.keys[place] == wanted) & (best < self.width)
            self.hits[part, : best.shape[1]] = found
        self.recommended.update(np.unique(best).tolist())

    def gains(self) -> Array:
        """nDCG@k of each row of `asked`."""
        discount = 1.0 / np.log2(np.arange(2, self.k + 2))
        most = np.cumsum(discount)[np.minimum(self.relevant, self.k) - 1]
        found: Array = self.hits @ discount / most
        return found


def scores(errors: Array, ranking: Ranking, columns: int) -> dict[str, float]:
    """The scores that `evaluate` returns, NaN where no row has a relevant column."""
    found = {
        "rmse": float(np.sqrt(np.mean(errors**2))),
        "mae": float(np.mean(np.abs(errors))),
    }
    count, k = ranking.asked.size, ranking.k
    if count == 0:
        nothing = dict.fromkeys(("precision", "recall", "ndcg", "coverage"), float("nan"))
        return {**found, **nothing, "rows": 0}
    hits = ranking.hits.sum(axis=1)
    return {
        **found,
        "precision": float(np.mean(hits / k)),
        "recall": float(np.mean(hits / ranking.relevant)),
        "ndcg": float(np.mean(ranking.gains())),
        "coverage": len(ranking.recommended) / columns,
        "rows": count,
    }
