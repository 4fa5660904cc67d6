"""LMNN over all triplets, of which only the active ones are stored."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from gramian.arrays.places import Place, host, namespace, place_of
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.constraints import other_class_neighbors
from gramian.metric._impostors import Impostors, Standing
from gramian.problems.local_metric import lmnn_of_keys

MOST = 30_000_000
"""Maximum number of active triplets; of more, those with the largest violations are kept."""

FEW, OTHERS = 500, 1000
"""Numbers of anchors and of other samples for the selection of an initial scale."""

WIDEST, SCALED = 7.0, 0.02
"""Range of its logarithm around a typical one, and the tolerance."""


@dataclass(frozen=True)
class Violated:
    """The triplets that a factor violates, as ascending keys, and F."""

    keys: Any
    count: int
    value: float
    """F, with all triplets of the anchors."""


@dataclass(frozen=True)
class LMNNTask:
    """LMNN in coordinates where the pull is tr M; keys and samples are on one device."""

    X: Any
    classes: Indices
    near: Any
    """Targets (n × k)."""
    lam: float
    quick: Array
    """A factor of the metric of the search for targets."""
    standing: Standing = field(default_factory=Standing)
    """Stored results of searches for all anchors, on the host."""

    @classmethod
    def at(
        cls, place: Place, X: Array, classes: Indices, near: Indices, lam: float, quick: Array
    ) -> LMNNTask:
        return cls(place.put(X), classes, place.put(near.astype(np.int64)), lam, quick)

    @property
    def place(self) -> Place:
        return place_of(self.X)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def most(self) -> float:
        """F(0), the scale of rounding errors."""
        sizes = np.bincount(self.classes)
        return self.lam * self.near.shape[1] * float(np.sum(sizes * (self.n - sizes)))

    @property
    def anchors(self) -> Indices:
        return np.arange(self.n)

    @property
    def none(self) -> Any:
        """No triplets."""
        return self.place.put(np.empty(0, dtype=np.int64))

    def start(self, given: Array | None = None) -> Array:
        """The best of the whitening, the metric of the search and a given one, each at its best
        scale. A metric learned from a small part of the samples may be the worst of them.
        """
        known = [np.eye(self.X.shape[1]), self.quick, *([] if given is None else [given])]
        known = [L for L in known if np.any(L)]  # 0 after a time limit
        return min((self._scaled(L) for L in known), key=lambda trial: trial[1])[0]

    def _spread(self, count: int) -> Indices:
        """At most `count` samples, evenly spaced."""
        return np.linspace(0, self.n - 1, min(self.n, count)).astype(np.intp)

    def scaled(self, factor: Array) -> Array:
        """The best multiple of a factor, for the triplets of a few anchors."""
        return self._scaled(factor)[0]

    def _scaled(self, factor: Array) -> tuple[Array, float]:
        """The best multiple of a factor for the triplets of a few anchors, and its F."""
        few, some = self._spread(FEW), self._spread(OTHERS)
        put = self.place.put
        Z, near = self.X @ put(factor), host(self.near[put(few)])
        mine, beside, targets = (host(Z[put(rows)]) for rows in (few, some, near.ravel()))
        k, lengths = near.shape[1], np.sum(beside * beside, axis=1)
        far = np.sum(mine**2, axis=1)[:, None] + lengths - 2 * mine @ beside.T
        close = np.sum((mine[:, None] - targets.reshape(*near.shape, -1)) ** 2, axis=2)
        across = self.classes[few][:, None] != self.classes[some]
        # Each target with a k-th of the others; float32 suffices for a scale.
        each = [(far[:, j::k] - close[:, [j]])[across[:, j::k]] for j in range(k)]
        margins = np.sort(np.concatenate(each).astype(np.float32))
        sums, squares = (
            np.append(0.0, np.cumsum(powers, dtype=float)) for powers in (margins, margins**2)
        )
        pull = float(np.sum(factor * factor)) * few.size * some.size / (k * self.n**2)

        def cost(power: float) -> float:
            scale = float(np.exp(power))
            count = int(np.searchsorted(margins, np.float32(1.0 / scale)))
            push = count - 2 * scale * sums[count] + scale**2 * squares[count]
            return scale * pull + self.lam * push

        sizes = np.abs(margins[margins != 0])
        typical = -float(np.log(np.median(sizes))) if sizes.size else 0.0
        ends = typical - WIDEST, typical + WIDEST
        best = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": SCALED})
        return np.exp(0.5 * best.x) * factor, float(best.fun)

    def violated(self, factor: Array, anchors: Indices, *, margin: float = 1.0) -> Violated:
        """Every violated triplet of the anchors, or the strongest if they are too many.

        With a larger margin the keys include triplets that are nearly violated.
        """
        if anchors.size == self.n and margin == 1.0 and self.standing.answers(factor):
            return self.standing.answer
        clock.phase(f"the impostors of {anchors.size:,} samples")
        started, Z = clock.now(), self.X @ self.place.put(factor)
        asked = Impostors(Z, self.classes, self.near, anchors, margin, MOST / anchors.size)
        again = self.place.is_host and anchors.size == self.n
        with clock.grace() if self.standing.asked is None else nullcontext():
            blocks = self.standing.blocks(asked, self.X, factor) if again else asked.blocks()
        xp = namespace(Z)
        keys = xp.sort(xp.concat([self.none, *(found.keys for found in blocks)]))
        push = sum(found.push for found in blocks)
        pull = anchors.size / self.n * float(np.sum(factor * factor))
        found = Violated(keys, sum(found.count for found in blocks), pull + self.lam * push)
        if anchors.size == self.n:
            self.standing.remember(factor, found, clock.elapsed(started))
        return found

    def joined(self, keys: Any, others: Any) -> Any:
        """The union of the keys."""
        xp = namespace(keys)
        both = xp.sort(xp.concat([keys, others]))
        fresh = xp.concat([xp.ones_like(both[:1], dtype=xp.bool), both[1:] != both[:-1]])
        return both[fresh]

    def some(self, keys: Any, factor: Array) -> Any:
        """The keys, with those of the nearest impostors if they are few."""
        if keys.shape[0] >= self.n:
            return keys
        k, there = self.near.shape[1], self.place
        mapped = host(self.X @ there.put(factor))
        far = other_class_neighbors(mapped, self.classes, 1, device=there.device).ravel()
        nearest = ((self.anchors * self.n + far)[:, None] * k + np.arange(k)).ravel()
        return self.joined(keys, there.put(nearest))

    def problem(self, keys: Any, *, share: float = 1.0) -> Any:
        """LMNN with the triplets of the keys alone; `share` of the pull."""
        return lmnn_of_keys(self.X, self.near, keys, self.lam, share)

    def slope(self, keys: Any, factor: Array, share: float) -> Array:
        """The gradient by the factor of LMNN with the triplets of the keys alone."""
        objective = self.problem(keys, share=share).objective
        return host(objective.gradient_factor(objective.image(self.place.put(factor))))

    def unmet(self, problem: Any, factor: Array, slack: float) -> Any:
        """Which triplets of a problem are not satisfied with at least this slack."""
        return problem.objective.image(self.place.put(factor)).z < 1.0 + slack
