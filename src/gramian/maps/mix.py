"""Sparse linear combinations of the values of another map, in particular triplets."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.places import backend, namespace
from gramian.maps.base import (
    Floats,
    LinearMap,
    check_order,
    check_weights,
    index_columns,
    refuse_rows,
)
from gramian.maps.pairs import PairDistances

MIN_COMPILED_NUMBERS = 200_000
"""Number of distances times columns of the factor above which compiled code is used."""


class Mix(LinearMap):
    """𝒜(M) = W ℬ(M) for a map ℬ = `base` and a sparse (q × p) matrix W = `weights`.

    The adjoint is 𝒜*(w) = ℬ*(Wᵀ w).
    """

    def __init__(self, base: LinearMap, weights: Any) -> None:
        if not sparse.issparse(weights):
            raise ValueError(f"weights must be a scipy sparse matrix, got {type(weights).__name__}")
        if weights.shape[0] == 0 or weights.shape[1] != base.size:
            raise ValueError(
                f"weights must have shape (q, {base.size}) with q ≥ 1, got {weights.shape}"
            )
        self.base = base
        self.weights = sparse.csr_array(weights, dtype=np.float64)
        if not np.isfinite(self.weights.data).all():
            raise ValueError("weights must be finite")
        self.order = base.order
        self.size = self.weights.shape[0]

    @classmethod
    def of(cls, base: LinearMap, weights: Any) -> Mix:
        """Create the map on any device without validation of the weights."""
        made = cls.__new__(cls)
        made.base, made.weights, made.place = base, weights, base.place
        made.order, made.size = base.order, int(weights.shape[0])
        return made

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """W ℬ(½ (U Vᵀ + V Uᵀ))."""
        return self._mixed(self.base.bilinear(U, V))

    def columns(self, W: Floats) -> NDArray[np.float64]:
        """W times the columns of ℬ."""
        return self._mixed(self.base.columns(W))

    def seen(self, L: Floats) -> Any:
        """The value of `seen` of ℬ, which does not depend on W."""
        return self.base.seen(L)

    def of_seen(self, seen: Any, other: Any) -> NDArray[np.float64]:
        """W times the values of ℬ."""
        return self._mixed(self.base.of_seen(seen, other))

    def adjoint_of_seen(self, w: Floats, seen: Any) -> Floats:
        """ℬ*(Wᵀ w) L."""
        return self.base.adjoint_of_seen(self._shared(w), seen)

    def error_of_rows(self, off: Floats, L: Floats, z: Floats) -> NDArray[np.float64]:
        """The error bound of ℬ multiplied by |W|, plus that of the product with W."""
        inner = self.base.error_of_rows(off, L, self.base.bilinear(L, L))
        return self._by_sizes(inner) + self.error(L, z)

    def _by_sizes(self, base_values: Floats) -> NDArray[np.float64]:
        """|W| times values of ℬ."""
        return abs(self.weights) @ base_values

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """ℬ*(Wᵀ w) V."""
        check_weights(self.size, w)
        return self.base.adjoint(self._shared(w), V)

    def reach(self, w: Floats) -> tuple[Floats, float] | None:
        """The bounds of ℬ for |W|ᵀ|w|, with as many more terms as a column of W has entries."""
        columns, longest = self._absolute
        inner = self.base.reach(columns @ namespace(w).abs(w))
        return None if inner is None else (inner[0], inner[1] + longest)

    @cached_property
    def _turned(self) -> Any:
        """Wᵀ, cached because transposing costs as much as a small product."""
        return self.weights.T

    @cached_property
    def _absolute(self) -> tuple[Any, float]:
        """|W|ᵀ, and the largest number of entries of a column of W."""
        columns = abs(self.weights).T.tocsr()
        return columns, float((columns.indptr[1:] - columns.indptr[:-1]).max())

    def adjoint_matrix(self, w: Floats) -> Floats:
        """ℬ*(Wᵀ w) as a dense matrix."""
        check_weights(self.size, w)
        return self.base.adjoint_matrix(self._shared(w))

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """W ℬ(M)."""
        return self._mixed(self.base.of_matrix(M))

    def _mixed(self, base_values: Floats) -> NDArray[np.float64]:
        return self.weights @ base_values

    def _shared(self, w: Floats) -> NDArray[np.float64]:
        """Wᵀw."""
        return self._turned @ w


class Differences(Mix):
    """𝒜(M)_e = ℬ(M)_{p_e} − ℬ(M)_{q_e}, on the host: a Mix whose rows have one 1 and one −1.

    A row is stored as two 32-bit integers, a fifth of the memory of a sparse row. This matters
    because memory bandwidth limits products with hundreds of thousands of triplets.
    """

    def __init__(self, base: LinearMap, more: cpu.Indices, less: cpu.Indices) -> None:
        self.base, self.more, self.less = base, more, less
        self.order, self.size = base.order, int(more.size)

    @cached_property
    def weights(self) -> Any:
        """W as a sparse matrix, for methods that are rarely called."""
        places = np.stack([self.more, self.less], axis=1).ravel()
        signs = np.tile([1.0, -1.0], self.size)
        starts = cpu.index_array(2 * np.arange(self.size + 1))
        return cpu.csr(signs, places, starts, (self.size, self.base.size))

    def _mixed(self, base_values: Floats) -> NDArray[np.float64]:
        if base_values.ndim > 1:
            return super()._mixed(base_values)
        return cpu.differences(base_values, self.more, self.less)

    def _by_sizes(self, base_values: Floats) -> NDArray[np.float64]:
        return base_values[self.more] + base_values[self.less]

    def _shared(self, w: Floats) -> NDArray[np.float64]:
        return cpu.sums_of_differences(w, self.more, self.less, self.base.size)


def triplet_margins(triplets: ArrayLike, n: int) -> Mix:
    """d(i, l) − d(i, j) for the rows (i, j, l) = (anchor, same, other) of a (t, 3) integer array.

    d(i, j) = K_ii + K_jj − 2 K_ij. A distance that occurs in several triplets is computed once.
    """
    n = check_order(n)
    anchor, same, other = index_columns(triplets, n, 3, "triplets")
    repeats = (anchor == same) | (anchor == other) | (same == other)
    refuse_rows(np.asarray(triplets), repeats, "triplets", "does not name three different points")
    near, far = _pair_keys(anchor, same, n), _pair_keys(anchor, other, n)
    keys, pair_of = np.unique(np.concatenate([far, near]), return_inverse=True)
    distances = PairDistances(np.column_stack(np.divmod(keys, n)), n)
    count = anchor.size
    signs = np.repeat([1.0, -1.0], count)
    triplet = np.tile(np.arange(count), 2)
    weights = sparse.coo_array((signs, (triplet, pair_of)), shape=(count, keys.size))
    return Mix(distances, weights)


def anchored_margins(near: Any, keys: Any, *, columns: int = 1) -> Mix:
    """d(i, l) − d(i, j) of triplets given by ascending keys (i n + l) k + t, j = near[i, t].

    `near` (n × k) and the keys are not validated and must be on the same device. Triplets with
    equal i and l are adjacent, so they are not sorted. `columns` is the expected number of columns
    of the factors in later products.
    """
    xp, library, (n, k) = namespace(keys), backend(keys), near.shape
    pair = keys // k
    anchor = pair // n
    fresh = xp.concat([xp.ones_like(pair[:1], dtype=xp.bool), pair[1:] != pair[:-1]])
    far = pair[fresh]
    count, triplets = int(far.shape[0]), int(keys.shape[0])
    anchors = xp.repeat(xp.arange(n, device=keys.device), k)
    rows, cols = (
        xp.astype(xp.concat(parts), xp.int32)
        for parts in ((far // n, anchors), (far % n, xp.reshape(near, (-1,))))
    )
    distances = PairDistances.of(rows, cols, n).for_many_products(
        columns, least=MIN_COMPILED_NUMBERS
    )
    far_place = xp.cumulative_sum(xp.astype(fresh, xp.int64)) - 1
    near_place = count + anchor * k + keys % k
    if distances.place.is_host:
        return Differences(distances, cpu.index_array(far_place), cpu.index_array(near_place))
    places = xp.stack([far_place, near_place], axis=1)
    signs = xp.ones_like(places, dtype=xp.float64)
    signs[:, 1] = -1.0
    weights = library.csr(
        xp.reshape(signs, (-1,)),
        xp.astype(xp.reshape(places, (-1,)), xp.int32),
        2 * xp.arange(triplets + 1, device=keys.device),
        (triplets, count + n * k),
    )
    return Mix.of(distances, weights)


def _pair_keys(first: cpu.Indices, second: cpu.Indices, n: int) -> NDArray[np.int64]:
    """An integer that identifies each unordered pair."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return low.astype(np.int64) * n + high
