"""Instances, and the random numbers that determine them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._attack.formulas import Formula


@dataclass(frozen=True)
class Instance:
    """A problem, its formula, and the facts known by construction."""

    family: str
    problem: gm.Problem
    formula: Formula
    bounded: bool | None
    """Whether F has an infimum; None if that depends on the rounding of the data."""
    better: tuple[np.ndarray, ...] = ()
    """Feasible points that are optimal, better than the probes, or far along a ray."""
    probes: tuple[np.ndarray, ...] = ()
    """Further points to certify."""
    twists: tuple[str, ...] = ()


@dataclass
class Dice:
    """The random numbers of one instance, and the names of its special features (`twists`)."""

    rng: np.random.Generator
    twists: list[str] = field(default_factory=list)
    features: int = 15
    """Largest number of features of labelled samples."""
    most: int | None = None
    """Largest number of labelled samples; None leaves it to the family."""

    def twist(self, name: str, probability: float) -> bool:
        """Whether the instance has a special feature, with this probability; it is recorded."""
        came_up = self.chance(probability)
        if came_up:
            self.twists.append(name)
        return came_up

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choice(self, options: Iterable[Any]) -> Any:
        options = list(options)
        return options[self.rng.integers(len(options))]

    def whole(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def power(self, low: float, high: float, size: Any = None) -> Any:
        """10 to a power drawn uniformly from an interval."""
        drawn = 10.0 ** self.rng.uniform(low, high, size)
        return drawn if size is not None else float(drawn)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape)

    def order(self, least: int = 1) -> int:
        """Mostly up to 15, sometimes up to 60."""
        high = 60 if self.chance(0.08) else 15
        return max(least, int(np.exp(self.rng.uniform(0.0, np.log(high + 1)))))

    def scale(self) -> float:
        """1, or a very small or large number."""
        return self.power(-6, 6) if self.twist("scaled", 0.2) else 1.0

    def symmetric(self, n: int) -> np.ndarray:
        S = self.normal(n, n)
        return (S + S.T) / 2

    def rotation(self, n: int) -> np.ndarray:
        return np.linalg.qr(self.normal(n, n))[0]

    def definite(self, n: int) -> np.ndarray:
        """Positive definite, the eigenvalues spread over two decades, or over six."""
        spectrum = np.logspace(-2, 4, n) if self.twist("ill-scaled", 0.25) else self.power(-1, 1, n)
        U = self.rotation(n)
        S = (U * spectrum) @ U.T
        return (S + S.T) / 2

    def factor(self, n: int) -> np.ndarray:
        return self.normal(n, self.whole(1, min(n, 4)))

    def samples(self, count: int, d: int) -> np.ndarray:
        """Rows of data, perhaps degenerate, badly scaled or far from 0."""
        X = self.normal(count, d)
        if self.twist("rank-deficient", 0.1):
            rank = self.whole(1, max(1, d // 2))
            X = self.normal(count, rank) @ self.normal(rank, d)
        if self.twist("duplicates", 0.12):
            X = X[self.rng.integers(0, max(2, count // 2), count)]
        if self.twist("zero rows", 0.06):
            X[self.rng.random(count) < 0.3] = 0.0
        if self.twist("zero feature", 0.05):
            X[:, self.rng.integers(d)] = 0.0
        if self.twist("ill-scaled", 0.12):
            X = X * self.power(-3, 3, d)
        if self.twist("shifted", 0.08):
            X = X + self.choice([1e3, 1e6])
        return X * self.scale()
