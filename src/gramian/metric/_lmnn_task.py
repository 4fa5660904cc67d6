"""LMNN over all triplets, of which only those that matter are ever written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.constraints import as_pairs, as_triplets, other_class_neighbors
from gramian.metric._impostors import violated_triplets
from gramian.problems.local_metric import lmnn_of_triplets

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

MOST = 30_000_000
"""Active triplets at most; of more, those of the largest margins are kept."""


@dataclass(frozen=True)
class Violated:
    """The triplets that a factor violates, as keys, and what they come to."""

    keys: NDArray[np.int64]
    count: int
    value: float
    """F, with all triplets of the anchors."""


@dataclass(frozen=True)
class LMNNTask:
    """LMNN in coordinates where the pull is tr M."""

    X: Array
    classes: Indices
    near: Indices
    lam: float
    quick: Array
    """A factor of the metric that the targets are nearest in."""

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def most(self) -> float:
        """F(0): what is small beside it is rounding."""
        sizes = np.bincount(self.classes)
        return self.lam * self.near.shape[1] * float(np.sum(sizes * (self.n - sizes)))

    @property
    def anchors(self) -> Indices:
        return np.arange(self.n)

    def start(self) -> Array:
        """The better of the whitening and the quick metric, each at its best scale."""
        few = np.linspace(0, self.n - 1, min(self.n, 200)).astype(np.intp)
        trials = [self._scaled(L, few) for L in (np.eye(self.X.shape[1]), self.quick)]
        return min(trials, key=lambda trial: trial[1])[0]

    def _scaled(self, factor: Array, few: Indices) -> tuple[Array, float]:
        """The best multiple of a factor for the triplets of a few anchors, and its F."""
        Z = self.X @ factor
        squares = np.sum(Z * Z, axis=1)
        far = squares[few][:, None] + squares - 2 * Z[few] @ Z.T
        close = np.sum((Z[few][:, None] - Z[self.near[few]]) ** 2, axis=2)
        across = self.classes[few][:, None] != self.classes
        margins = np.concatenate([(far - close[:, [j]])[across] for j in range(close.shape[1])])
        pull = float(np.sum(factor * factor)) * few.size / self.n
        typical = 1.0 / max(float(np.median(np.abs(margins))), 1e-300)
        scales = typical * np.logspace(-3, 3, 31)
        costs = [
            s * pull + self.lam * float(np.sum(np.square(np.maximum(0.0, 1 - s * margins))))
            for s in scales
        ]
        best = int(np.argmin(costs))
        return np.sqrt(scales[best]) * factor, costs[best]

    def violated(self, factor: Array, anchors: Indices, *, margin: float = 1.0) -> Violated:
        """Every violated triplet of the anchors; the strongest where they are too many.

        With a larger margin the keys are also those of triplets that are nearly violated.
        """
        Z, n, k = self.X @ factor, self.n, self.near.shape[1]
        keys, push, count = [np.empty(0, dtype=np.int64)], 0.0, 0
        blocks = violated_triplets(Z, self.classes, self.near, anchors, margin=margin)
        for triplets, margins in blocks:
            push += float(np.sum(np.square(np.maximum(margins, 0.0))))
            count += int(np.sum(margins > 0))
            most = max(k, MOST * np.unique(triplets[:, 0]).size // anchors.size)
            if margins.size > most:
                triplets = triplets[np.argpartition(-margins, most)[:most]]
            i, j, l = triplets.T.astype(np.int64)
            keys.append((i * n + j) * n + l)
        pull = float(np.sum(factor * factor))
        return Violated(np.concatenate(keys), count, pull + self.lam * push)

    def some(self, keys: NDArray[np.int64], factor: Array) -> NDArray[np.int64]:
        """The keys, with those of the nearest impostors where they are few."""
        if keys.size >= self.n:
            return keys
        far = other_class_neighbors(self.X @ factor, self.classes, 1)
        i, j, l = as_triplets(self.near, far).T.astype(np.int64)
        return np.union1d(keys, (i * self.n + j) * self.n + l)

    def problem(self, keys: NDArray[np.int64], *, share: float = 1.0) -> Any:
        """LMNN with the triplets of the keys alone; `share` of the pull."""
        n = self.n
        triplets = np.column_stack([keys // n // n, keys // n % n, keys % n])
        return lmnn_of_triplets(self.X, as_pairs(self.near), triplets, self.lam, pull=share)
