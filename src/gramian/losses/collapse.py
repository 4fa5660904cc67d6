"""Log-sum-exp losses of distances with one term per anchor, which collapse classes to points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import as_double, batches_of, namespace
from gramian.losses.base import Array, Loss, PerImage
from gramian.losses.functions import entropy

ON_SIMPLEX = 1e-9
"""Largest deviation of a row of probabilities from a sum of 1 that may be rounding."""

SMALLEST_LOGARITHM = math.log(1e-30)
"""Shares are computed as at least 1e-30 of the largest: subnormal numbers in float32 make a product
with them 30 times slower."""


class Collapse(Loss):
    """g(z) = Σ_i [Σ_k q_ik z_ik + ln Σ_{k≠i} exp(−z_ik)], Globerson and Roweis (2005).

    z has the squared distances of all pairs of a batch (`BatchDistances`). Row i of the `targets` q
    is a distribution over the other points of its batch, and with p_ik ∝ exp(−z_ik) its term is
    the Kullback–Leibler divergence of p_i from q_i plus the entropy of q_i, the infimum of g. A
    point whose row of q is zero is no anchor: it has no term of its own.
    """

    smoothness = 0.5
    size: int | None

    def __init__(self, targets: Any, sizes: Sequence[int]) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.targets = np.asarray(targets, dtype=float).reshape(-1)
        self.size = sum(size * size for size in self.sizes)
        if self.targets.size != self.size:
            raise ValueError(f"expected {self.size} targets, got {self.targets.size}")
        self.anchors = np.concatenate([_checked(q) for q in self._each(self.targets)])
        self.infimum = -float(np.sum(entropy(self.targets)))
        self._found: PerImage[tuple[float, Array]] = PerImage()

    def _each(self, z: Array) -> Iterator[Array]:
        return batches_of(z, self.sizes)

    def _rows(self, z: Array) -> Iterator[tuple[Array, Array]]:
        """The matrix of each batch, and a mask of its anchor rows (1 or 0)."""
        first = 0
        for size, block in zip(self.sizes, self._each(z), strict=True):
            yield block, self.anchors[first : first + size]
            first += size

    def _solved(self, z: Array) -> tuple[float, Array]:
        """Σ_i ln Σ_k exp(−z_ik) over the anchors, and p."""
        xp, total, shares = namespace(z), 0.0, []
        for block, anchors in self._rows(z):
            sums, p = log_sums(block)
            total += float(xp.sum(as_double(sums) * anchors))
            if not bool(xp.all(anchors > 0)):
                p *= xp.astype(anchors, p.dtype)[:, None]
            shares.append(xp.reshape(p, (-1,)))
        return total, xp.concat(shares) if len(shares) > 1 else shares[0]

    def value(self, z: Array) -> float:
        return self._found.get(z, self._solved)[0] + float(self.targets @ z)

    def gradient(self, z: Array) -> Array:
        return self.targets - self._found.get(z, self._solved)[1]

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ (diag(p_i) − p_i p_iᵀ) d_i for every anchor."""
        p = self._found.get(z, self._solved)[1]

        def product(d: Array) -> Array:
            xp, found = namespace(d), []
            for share, along in zip(self._each(p), self._each(d), strict=True):
                mean = xp.sum(share * along, axis=1)
                found.append(xp.reshape(share * (along - mean[:, None]), (-1,)))
            return xp.concat(found)

        return product

    def recession(self, z: Array, noise: Array) -> float:
        """Σ_i [Σ_k q_ik z_ik − min_k z_ik]."""
        xp = namespace(z)
        live = xp.where(xp.abs(z) > noise, z, xp.zeros_like(z))
        found = float(self.targets @ live)
        for block, anchors in self._rows(live):
            others = xp.asarray(block, copy=True)
            _set_diagonal(others, np.inf)
            found -= float(xp.sum(xp.min(others, axis=1) * anchors))
        return found

    def conjugate(self, w: Array) -> float:
        """Σ p ln p where p = q − w has the rows of distributions; infinite elsewhere."""
        xp, p = namespace(w), self.targets - w
        if bool(xp.any(p < -ON_SIMPLEX)):
            return np.inf
        for block, anchors in self._rows(p):
            own = xp.linalg.diagonal(block)
            off = xp.abs(xp.sum(block, axis=1) - anchors)
            if float(xp.max(off)) > ON_SIMPLEX or float(xp.max(xp.abs(own))) > ON_SIMPLEX:
                return np.inf
        return float(xp.sum(entropy(p)))


class SoftCollapse(Collapse):
    """g(z) = Σ_i [ln Σ_{k≠i} exp(−z_ik) − ln Σ_{j≠i of the class of i} exp(−z_ij)].

    The negative log-probability that a neighbour drawn by p_ik ∝ exp(−z_ik) is of the class of i.
    It is not convex and has no conjugate. With the `soft_targets` q_ij ∝ exp(−z_ij) of a point z
    the convex `Collapse` lies above it, up to a constant, and touches it there. The points of a
    batch are sorted by their `classes`.
    """

    infimum = 0.0

    def __init__(self, classes: NDArray[np.integer], sizes: Sequence[int]) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.size = sum(size * size for size in self.sizes)
        self.runs = tuple(_runs(part) for part in np.split(classes, np.cumsum(self.sizes)[:-1]))
        lengths = [run.stop - run.start for runs in self.runs for run in runs]
        self.anchors = np.repeat(np.array(lengths) > 1, lengths).astype(float)
        self._found: PerImage[tuple[float, Array]] = PerImage()
        self._soft: PerImage[tuple[float, Array]] = PerImage()

    def _within(self, z: Array) -> tuple[float, Array]:
        """Σ_i ln Σ_j exp(−z_ij) over the classes of the anchors, and q."""
        xp, total, q = namespace(z), 0.0, namespace(z).zeros_like(z)
        for block, into, runs in zip(self._each(z), self._each(q), self.runs, strict=True):
            for run in runs:
                if run.stop - run.start > 1:
                    sums, into[run, run] = log_sums(block[run, run])
                    total += float(xp.sum(as_double(sums)))
        return total, q

    def value(self, z: Array) -> float:
        return self._found.get(z, self._solved)[0] - self._soft.get(z, self._within)[0]

    def gradient(self, z: Array) -> Array:
        return self.soft_targets(z) - self._found.get(z, self._solved)[1]

    def soft_targets(self, z: Array) -> Array:
        """q_ij ∝ exp(−z_ij) over the class of i."""
        return self._soft.get(z, self._within)[1]

    def conjugate(self, w: Array) -> float:
        raise NotImplementedError("a loss that is not convex bounds nothing by its conjugate")


def uniform_targets(classes: NDArray[np.integer], sizes: Sequence[int]) -> Array:
    """q_ij = 1/(n_c − 1) for the other points j of the class of i in its batch, which has n_c."""
    found = []
    for part in np.split(classes, np.cumsum(sizes)[:-1]):
        same = (part[:, None] == part).astype(float)
        np.fill_diagonal(same, 0.0)
        found.append((same / np.maximum(same.sum(axis=1, keepdims=True), 1.0)).reshape(-1))
    return np.concatenate(found)


def log_sums(block: Array) -> tuple[Array, Array]:
    """ln Σ_{k≠i} exp(−z_ik) of every row, and the share of each term; the diagonal is left out."""
    xp = namespace(block)
    shares = -block
    _set_diagonal(shares, -np.inf)
    top = xp.max(shares, axis=1)
    shares -= top[:, None]
    if xp is np:
        shares = np.exp(np.maximum(shares, SMALLEST_LOGARITHM, out=shares), out=shares)
    else:
        shares = xp.exp(xp.clip(shares, SMALLEST_LOGARITHM, None))
    _set_diagonal(shares, 0.0)
    sums = xp.sum(shares, axis=1)
    shares /= sums[:, None]
    return top + xp.log(sums), shares


def _set_diagonal(block: Array, value: float) -> None:
    """Set the diagonal, to 0 where it is all there is."""
    size = block.shape[0]
    namespace(block).reshape(block, (-1,))[:: size + 1] = value if size > 1 else 0.0


def _runs(classes: NDArray[np.integer]) -> tuple[slice, ...]:
    """The runs of equal classes; raises ValueError if a class has two runs."""
    changes = np.flatnonzero(np.diff(classes)) + 1
    if changes.size + 1 != np.unique(classes).size:
        raise ValueError("the points of a batch must be sorted by class")
    ends = [0, *changes.tolist(), classes.size]
    return tuple(slice(first, last) for first, last in pairwise(ends))


def _checked(q: Array) -> Array:
    """1 for rows of a batch that are distributions, 0 for zero rows; ValueError for others."""
    sums = q.sum(axis=1)
    anchors = sums > 0
    wrong = np.any(q < 0) or np.any(q.diagonal() != 0) or not np.all(np.isfinite(q))
    if wrong or np.any(np.abs(sums[anchors] - 1.0) > ON_SIMPLEX):
        raise ValueError(
            "targets must be distributions over the other points of a batch, or rows of zeros"
        )
    return anchors.astype(float)
