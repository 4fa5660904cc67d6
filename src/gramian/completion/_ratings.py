"""Entries of a matrix with the ids of its rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.cpu import index_array, taken
from gramian.arrays.entries import tallied
from gramian.arrays.places import PART
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.linalg.tolerances import ROUNDING

Held = NDArray[np.bool_]

TABLE_RATIO = 4
"""Integer ids are looked up in a table if its length is at most this multiple of their number."""

OFFSET_RIDGES = 1.0, 5.0
"""Range of the ridge κ of offsets. Held-out RMSE, five splits, less that with κ = 5: −11.3 ± 0.5 %
for strong offsets (estimate 0.7), −1.1 ± 0.1 % for Last.fm's plays (0.5; with κ = 0.48 it is
−0.6 ± 0.1 %), −0.03 ± 0.01 % for MovieLens 100K (3.5), −0.06 ± 0.01 % for 1,500 users of MovieLens
1M (3.5), 0 % for FilmTrust (5) and for weak offsets (15), where κ = 2 gives +0.6 ± 0.1 %."""

PRIOR_PAIRS = 10.0
"""Pairs of entries without correlation that an estimate of it includes."""

ORDERED_KINDS = {"i": "iuf", "u": "iuf", "f": "iuf", "U": "U"}
"""Kinds of dtypes whose values can be ordered together, for each kind."""


def other_kind(known: NDArray[Any], given: NDArray[Any]) -> str:
    """The difference between ids if one kind is text and the other numbers, otherwise empty."""
    kinds = [_kind(known), _kind(given)]
    if sorted(kinds) != ["numbers", "text"]:
        return ""
    one, other = known[:1].tolist()[0], given[:1].tolist()[0]
    return f"its ids are {kinds[0]} such as {one!r}, and these are {kinds[1]} such as {other!r}"


def _kind(ids: NDArray[Any]) -> str:
    if ids.dtype == object:
        words = {isinstance(one, str) for one in ids.tolist()}
        return "text" if words == {True} else "other"
    return "text" if ids.dtype.kind in "US" else "numbers" if ids.dtype.kind in "iuf" else "other"


@storable
@dataclass(frozen=True)
class Ids:
    """The ids of rows or columns, of any type that can be compared for equality."""

    names: NDArray[Any]

    @classmethod
    def of(cls, given: NDArray[Any]) -> tuple[Ids, Indices]:
        """The distinct ids, and the index of each given one among them."""
        whole = _whole(given) if given.size else None
        if whole is not None:
            first, last = int(whole.min()), int(whole.max())
            if last - first <= TABLE_RATIO * given.size and max(last, -first) < 2**62:
                return cls._of_dense(whole, first, last, given.dtype)
        try:
            names, place = np.unique(given, return_inverse=True)
        except TypeError:  # ids that cannot be ordered
            order: dict[Any, int] = {}
            place = np.fromiter((order.setdefault(g, len(order)) for g in given), int, len(given))
            names = np.empty(len(order), dtype=object)
            names[:] = list(order)
        return cls(names), place.ravel()

    @classmethod
    def _of_dense(
        cls, given: NDArray[Any], first: int, last: int, dtype: np.dtype[Any]
    ) -> tuple[Ids, Indices]:
        """The ids of integers with few gaps, by a table with an entry for each integer."""
        kind: Any = np.int32 if max(last, -first) < 2**30 else np.int64
        offsets: Any = given.astype(kind, copy=False)
        if first:
            offsets = offsets - kind(first)
        present = tallied(index_array(offsets), last - first + 1) > 0
        names = (np.flatnonzero(present) + first).astype(dtype)
        if present.all():
            return cls(names), offsets
        places = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return cls(names), taken(places, offsets)

    def find(self, given: ArrayLike) -> Indices:
        """The index of each id, −1 where it is unknown.

        A warning says if none is known because of text in place of numbers, or the reverse.
        """
        asked = np.asarray(given).ravel()
        if self.names.dtype.kind in ORDERED_KINDS.get(asked.dtype.kind, ""):
            place = np.minimum(np.searchsorted(self.names, asked), len(self) - 1)
            found = np.where(self.names[place] == asked, place, -1)
        else:
            places = (self._places.get(g, -1) for g in asked.tolist())
            found = np.fromiter(places, int, asked.size)
        if asked.size and np.all(found < 0) and (fault := other_kind(self.names, asked)):
            warn(f"none of the ids is in the fit: {fault}")
        return found

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: place for place, name in enumerate(self.names.tolist())}

    def __len__(self) -> int:
        return int(self.names.size)


def _whole(given: NDArray[Any]) -> NDArray[Any] | None:
    """The ids as integers, None if they are not whole numbers."""
    if given.dtype.kind != "f":
        return given if given.dtype.kind in "iu" else None
    if not np.max(np.abs(given), initial=0.0) < 2.0**62:  # or NaN
        return None
    whole = given.astype(np.int64)
    return whole if np.array_equal(whole, given) else None


@dataclass(frozen=True)
class Ratings:
    """Entries (i, j) of an m × n matrix, sorted by row and column, each once."""

    rows: Indices
    cols: Indices
    values: Array
    row_ids: Ids
    col_ids: Ids
    weights: Array | None = None
    """The weight of each entry, default 1."""
    features: tuple[Array | None, Array | None] = (None, None)
    """Standardized features of the rows and of the columns."""

    remote: ClassVar[bool] = False
    """Whether the entries are on the workers of a cluster."""

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(self.values.size)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest value."""
        return float(self.values.min()), float(self.values.max())

    @property
    def mean(self) -> float:
        """The weighted mean of the values."""
        return float(np.average(self.values, weights=self.weights))

    @property
    def mark(self) -> dict[str, Any]:
        """Names and values that differ for other entries."""
        features = (each for each in self.features if each is not None)
        arrays = [self.rows, self.cols, self.values, *features]
        arrays += [] if self.weights is None else [self.weights]
        check = 0
        for each in arrays:
            check = crc32(np.ascontiguousarray(each).data, check)
        return {"shape": list(self.shape), "ratings": check}

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_ids), len(self.col_ids)

    @property
    def flat(self) -> bool:
        """Whether all values are equal up to rounding, so that offsets alone describe them."""
        low, high = self.span
        return high - low <= ROUNDING * max(abs(low), abs(high))

    @property
    def featured(self) -> bool:
        return any(each is not None for each in self.features)

    def ids(self, side: int) -> Ids:
        """The ids of the rows (side 0) or of the columns (side 1)."""
        return (self.row_ids, self.col_ids)[side]

    def counts(self, side: int) -> Indices:
        """The number of entries of each row (side 0), or of each column (side 1)."""
        return self._counts[side]

    @cached_property
    def _counts(self) -> tuple[Indices, Indices]:
        of_cols = tallied(index_array(self.cols), self.shape[1])
        return np.diff(self.starts).astype(np.int64), of_cols.astype(np.int64)

    def parts(self, length: int | None = None) -> list[slice]:
        """Blocks of entries: sums over them need no temporary array of the length of all."""
        step = length or PART
        return [slice(start, start + step) for start in range(0, self.values.size, step)]

    def sums(self, side: int) -> Array:
        """The sum of the values of each row (side 0), or of each column (side 1)."""
        return tallied(index_array((self.rows, self.cols)[side]), self.shape[side], self.values)

    def mean_square(self, mean: float) -> float:
        """The mean of (v − μ)²."""
        squares = (np.sum(np.square(self.values[part] - mean)) for part in self.parts())
        return float(sum(squares)) / self.size

    def offset_ridge(self) -> float:
        """κ = 2σ²/(τ_b² + τ_c²), the ratio of the variances of values given offsets and of offsets.

        τ_b² is the mean product of two values of a row, less their mean, and τ_c² that of two of a
        column; σ² is the rest of the variance. Two digits are kept, so that rounding errors do not
        change κ.
        """
        counts, sums = ([of(side) for side in (0, 1)] for of in (self.counts, self.sums))
        mean = float(sums[0].sum()) / self.size
        unit, shared = float(np.sqrt(self.mean_square(mean))) or 1.0, 0.0
        for n, s in zip(counts, sums, strict=True):
            off = (s - mean * n) / unit
            products = float(off @ off) - self.size
            shared += max(products / (float(n @ (n - 1.0)) + PRIOR_PAIRS), 0.0)
        ratio = 2.0 * (1.0 - shared) / shared if shared > 0 else np.inf
        return float(f"{np.clip(ratio, *OFFSET_RIDGES):.2g}")

    def spread(self, ridge: float | None) -> float:
        """The root mean square of the values minus the shrunken means of columns, then of rows.

        Means shrink as if each column and row had `ridge` more entries equal to the overall mean;
        without a ridge no means are subtracted.
        """
        if ridge is None:
            return float(np.sqrt(self.mean_square(0.0)))
        values = self.values.copy()
        for side in (1, 0):
            index, counts, mean = (self.rows, self.cols)[side], self.counts(side), values.mean()
            sums = np.bincount(index, values, minlength=counts.size)
            values -= (mean + (sums - mean * counts) / (counts + ridge))[index]
        return float(np.sqrt(np.mean(np.square(values))))

    def split(self, rng: np.random.Generator, share: float) -> Held:
        """The held-out entries."""
        return rng.random(self.size) < share

    def folds(self, rng: np.random.Generator, folds: int, count: int) -> list[Held]:
        """Up to `count` disjoint splits, each of one in `folds` entries."""
        part = rng.integers(folds, size=self.size)
        held = [part == k for k in range(count)]
        return [each for each in held if each.any()]

    def mean_error(self, found: Any, error: Callable[[Array, Array], Array]) -> float:
        """The mean of error(prediction, value) over the entries."""
        total = 0.0
        for part in self.parts():
            predicted = found.values(self.rows[part], self.cols[part])
            total += float(np.sum(error(predicted, self.values[part])))
        return total / self.size

    def kept(self, state: Array) -> Any:
        """What a checkpoint stores of a state of the sweeps."""
        return state

    def restored(self, stored: Any) -> Array:
        """The state that a checkpoint has stored."""
        return np.array(stored)

    @cached_property
    def starts(self) -> Indices:
        """The index of the first entry of each row, and the number of entries."""
        return index_array(np.searchsorted(self.rows, np.arange(self.shape[0] + 1)))

    @cached_property
    def matrix(self) -> sp.csr_array:
        return sp.csr_array((self.values, self.cols, self.starts), shape=self.shape)

    def part(self, kept: NDArray[np.bool_]) -> Ratings:
        """Some of the entries, with the same rows and columns."""
        return replace(
            self,
            rows=self.rows[kept],
            cols=self.cols[kept],
            values=self.values[kept],
            weights=None if self.weights is None else self.weights[kept],
        )


def joined(known: Ids, new: Ids) -> tuple[Ids, Indices, Indices]:
    """The union of two sets of ids, and the indices of both in it; known ids keep their order."""
    if known.names.dtype == object or new.names.dtype == object:
        both = np.empty(len(known) + len(new), dtype=object)
        both[: len(known)], both[len(known) :] = known.names.tolist(), new.names.tolist()
    else:
        both = np.concatenate([known.names, new.names])
    ids, place = Ids.of(both)
    return ids, place[: len(known)], place[len(known) :]


@storable
@dataclass(frozen=True)
class Elsewhere:
    """Placeholder for the known entries of a fit if they are too many to store in the model."""

    nnz: int
    indptr: Indices
    shape: tuple[int, int]

    def __getitem__(self, rows: Any) -> Any:
        raise ValueError(
            "the ratings of this fit are on the cluster, so known ratings cannot be excluded: pass "
            "exclude_seen=False"
        )
