"""Predictions of a fitted completion: entries, recommendations, similar rows, and their quality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import cpu
from gramian.arrays.errstate import OwnErrstate
from gramian.common import clock
from gramian.common.parameters import whole_number
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.completion._items import Blend
from gramian.completion._ratings import other_kind
from gramian.completion._reading import are_names, gather, is_table, pair_columns, plain
from gramian.completion._stored import StoredRows

BLOCK_NUMBERS = 4_000_000
"""Number of predictions that are computed at a time."""


@dataclass(frozen=True)
class Offsets:
    """μ, b and c; for ordered levels also the thresholds between them."""

    mean: float
    rows: Array
    cols: Array
    thresholds: Array | None = None


@dataclass(frozen=True)
class Factorization:
    """The matrix μ + b_i + c_j + p_i·q_j, cut off at the bounds."""

    row_factors: Array
    col_factors: Array
    offsets: Offsets
    bounds: tuple[float, float] | None = None
    blend: Blend | None = None

    def entries(self, rows: Any) -> Array:
        """All entries of some rows."""
        P, b, offsets = self.row_factors[rows], self.offsets.rows[rows], self.offsets
        entries = np.asarray(P @ self.col_factors.T)
        entries += offsets.cols
        entries += offsets.mean + b[:, None]
        return entries if self.blend is None else self.blend.mixed(rows, entries)

    def values(self, i: Indices, j: Indices) -> Array:
        """Entries by the indices of row and column; −1 stands for an unknown row or column."""
        known, offsets = (i >= 0) & (j >= 0), self.offsets
        if self.blend is not None:
            values = np.full(len(i), offsets.mean)
            values[known] = self._blended(i[known], j[known])
            return self.cut(values)
        values = np.full(len(i), offsets.mean)
        values += np.where(i >= 0, offsets.rows[i], 0.0)
        values += np.where(j >= 0, offsets.cols[j], 0.0)
        (P, rows), (Q, cols) = (
            _in_memory(self.row_factors, i[known]),
            _in_memory(self.col_factors, j[known]),
        )
        values[known] += cpu.gather_products(P, Q, cpu.index_array(rows), cpu.index_array(cols))
        return self.cut(values)

    def _blended(self, i: Indices, j: Indices) -> Array:
        """Entries by the indices of known rows and columns, from all entries of those rows."""
        rows, place = np.unique(i, return_inverse=True)
        found = np.empty(i.size)
        for part in _parts(rows.size, len(self.offsets.cols)):
            own = (place >= part.start) & (place < part.stop)
            found[own] = self.entries(rows[part])[place[own] - part.start, j[own]]
        return found

    def best(self, rows: Any, n: int, known: Any = None) -> tuple[Indices, Array]:
        """Columns and values of the n largest entries of some rows, −inf where none is left.

        Entries of the sparse matrix `known`, which has those rows, are left out.
        """
        rows, count = np.arange(self.offsets.rows.size)[rows], len(self.offsets.cols)
        n = min(n, count)
        best, values = np.empty((rows.size, n), dtype=np.int64), np.empty((rows.size, n))
        for part in _parts(rows.size, count):
            entries = self.entries(rows[part])
            if known is not None:
                own = known[part]
                lines = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
                entries[lines, own.indices] = -np.inf
            best[part], values[part] = _leading(entries, n)
        return best, values

    def cut(self, values: Array) -> Array:
        """Values within the bounds; −inf, which stands for no recommendation, is NaN."""
        values = np.where(values == -np.inf, np.nan, values)
        return values if self.bounds is None else np.clip(values, *self.bounds)


class Ranking:
    """The first k columns of every row that has a relevant one, and which of them are relevant.

    nDCG@k = Σ_h hit_h / log₂(h + 1) over the largest value of this sum for the row, h = 1 … k
    (Järvelin and Kekäläinen 2002, gains 0 and 1). Relevant columns that the model does not know
    count as not found.

    Parameters
    ----------
    rows, cols : index arrays
        The row and column of each test rating in the model, −1 for an unknown one.
    good : array of bool
        Whether each of them is relevant.
    k : int
    """

    def __init__(self, rows: Indices, cols: Indices, good: NDArray[np.bool_], k: int) -> None:
        kept = good & (rows >= 0)
        self.asked, place, self.relevant = np.unique(
            rows[kept], return_inverse=True, return_counts=True
        )  # the rows that get recommendations
        self.k, self.width = k, int(cols.max(initial=0)) + 1
        known = cols[kept] >= 0
        self.keys = np.sort(place[known].astype(np.int64) * self.width + cols[kept][known])
        self.hits = np.zeros((self.asked.size, k), dtype=bool)
        self.recommended: set[int] = set()

    def add(self, part: slice, best: Indices) -> None:
        """Add the columns recommended to some of `asked`."""
        lines = np.arange(part.start, part.stop, dtype=np.int64)[:, None]
        found = np.isin(lines * self.width + best, self.keys) & (best < self.width)
        self.hits[part, : best.shape[1]] = found
        self.recommended.update(np.unique(best).tolist())

    def gains(self) -> Array:
        """nDCG@k of each row of `asked`."""
        discount = 1.0 / np.log2(np.arange(2, self.k + 2))
        most = np.cumsum(discount)[np.minimum(self.relevant, self.k) - 1]
        return self.hits @ discount / most

    def scores(self, columns: int) -> dict[str, float]:
        """The scores that `evaluate` returns, NaN where no row has a relevant column."""
        count = self.asked.size
        if count == 0:
            nothing = dict.fromkeys(("precision", "recall", "ndcg", "coverage"), float("nan"))
            return {**nothing, "rows": 0}
        hits = self.hits.sum(axis=1)
        return {
            "precision": float(np.mean(hits / self.k)),
            "recall": float(np.mean(hits / self.relevant)),
            "ndcg": float(np.mean(self.gains())),
            "coverage": len(self.recommended) / columns,
            "rows": count,
        }


class Recommender(OwnErrstate):
    """Predictions by row_factors_, col_factors_, offsets and ids of a completion."""

    row_factors_: Array
    col_factors_: Array
    row_biases_: Array
    col_biases_: Array
    mean_: float
    bounds_: tuple[float, float] | None
    row_ids_: NDArray[Any]
    col_ids_: NDArray[Any]
    result_: Any
    _rows: Any
    _cols: Any
    _known: Any
    _expected: Any
    """Factors of rows and of columns that their features predict; None without features."""

    @property
    def _factorization(self) -> Factorization:
        offsets = Offsets(self.mean_, self.row_biases_, self.col_biases_)
        return Factorization(
            self.row_factors_, self.col_factors_, offsets, self.bounds_, self._blend(self._known)
        )

    def _blend(self, known: Any) -> Blend | None:
        """What else predicts the entries of rows with these known entries."""
        return None

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """Predict the entries of pairs of a row and a column.

        For an unknown row or column the prediction is the mean plus the offset of the other. Warns
        if all rows and columns are unknown, unless `return_known` is true.

        Parameters
        ----------
        pairs : array of shape (k, 2), a frame, or (rows, cols)
            A frame is read by the names in `columns_`; their order and other columns do not
            matter. If the fit had no names, a frame has two columns, row and column.
        return_known : bool
            Also return whether the row and the column of each pair were both in the fit.
        """
        check_is_fitted(self)
        rows, cols = pair_columns(self._named(pairs, 2))
        i, j = self._rows.find(rows), self._cols.find(cols)
        values = self._factorization.values(i, j)
        if return_known:
            return values, (i >= 0) & (j >= 0)
        if i.size and max(i.max(), j.max()) < 0 and not other_kind(self._cols.names, cols):
            first, second = np.asarray(rows).tolist()[0], np.asarray(cols).tolist()[0]
            warn(
                f"no row or column of the pairs is in the fit, the first are {first!r} and "
                f"{second!r}: the prediction is the same for all pairs"
            )
        return values

    def recommend(
        self, row: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], Array]:
        """The columns of the largest predicted entries of a row, and those entries.

        Parameters
        ----------
        row : an id, or a list or array of ids
            For several rows both results have a line for each of them. If fewer than n columns are
            left for a row, the values of the others are NaN: they are no recommendations.
        n : int
        exclude_seen : bool
            Leave out the columns whose entries in that row are known.
        """
        check_is_fitted(self)
        many = isinstance(row, list | np.ndarray) or hasattr(row, "to_numpy")
        asked = np.asarray(row) if many else _one(row)
        i = self._rows.find(asked)
        if np.any(i < 0):
            unknown = asked[[int(np.argmax(i < 0))]].tolist()[0]
            raise ValueError(f"row {unknown!r} is not in the fit: fold it in with transform")
        best, values = self._best(i, whole_number(n, "n"), exclude_seen)
        if many:
            return self.col_ids_[best], self._factorization.cut(values)
        left = np.isfinite(values[0])
        return self.col_ids_[best[0, left]], self._factorization.cut(values[0, left])

    def similar_items(self, col: Any, n: int = 10) -> tuple[NDArray[Any], Array]:
        """The columns with the largest cosine similarity of their factors, and the cosines."""
        check_is_fitted(self)
        return self._similar(self._cols, self.col_factors_, col, "column", n)

    def similar_users(self, row: Any, n: int = 10) -> tuple[NDArray[Any], Array]:
        """The rows with the largest cosine similarity of their factors, and the cosines."""
        check_is_fitted(self)
        return self._similar(self._rows, self.row_factors_, row, "row", n)

    def evaluate(self, X: Any, *, k: int = 10, relevant: float | None = None) -> dict[str, float]:
        """Errors of predictions and quality of recommendations for ratings not in the fit.

        Parameters
        ----------
        X : ratings, as in `fit`
        k : int
            Number of columns recommended to each row, without those known to the fit.
        relevant : float, optional
            Ratings of at least this value are worth recommending; default their mean.

        Returns
        -------
        dict
            "rmse" and "mae" of the ratings; "precision", "recall" and "ndcg" of the first k
            columns, means over the rows with a relevant rating; "coverage", the share of all
            columns that is recommended to at least one of them; "rows", the number of those rows.
        """
        check_is_fitted(self)
        ratings = gather(self._named(X, 3), duplicates="last")
        i = self._rows.find(ratings.row_ids.names)[ratings.rows]
        j = self._cols.find(ratings.col_ids.names)[ratings.cols]
        predicted, k = self._rated(i, j), whole_number(k, "k")
        good = ratings.values >= (self._relevant(ratings.values) if relevant is None else relevant)
        errors = predicted - ratings.values
        return {
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "mae": float(np.mean(np.abs(errors))),
            **self._lists(i, j, good, k).scores(len(self.col_ids_)),
        }

    def _list_gains(self, rows: Any, cols: Any) -> Array:
        """nDCG@10 for each row of these entries that is known to the fit."""
        i, j = self._rows.find(np.asarray(rows)), self._cols.find(np.asarray(cols))
        return self._lists(i, j, np.ones(i.size, dtype=bool), 10).gains()

    def _lists(self, i: Indices, j: Indices, good: NDArray[np.bool_], k: int) -> Ranking:
        """Recommendations for the rows of entries given by index, −1 for an unknown one."""
        ranking = Ranking(i, j, good, k)
        for rows in _parts(ranking.asked.size, len(self.col_ids_)):
            clock.check()
            ranking.add(rows, self._best(ranking.asked[rows], k, True)[0])
        return ranking

    def _rated(self, i: Indices, j: Indices) -> Array:
        """Predicted ratings by index, −1 for an unknown row or column."""
        return self._factorization.values(i, j)

    def _relevant(self, values: Array) -> float:
        """The least rating of a column that is worth recommending."""
        return float(np.mean(values))

    def _best(self, i: Indices, n: int, exclude_seen: bool) -> tuple[Indices, Array]:
        """Columns and values of the n largest entries of some rows, −inf where none is left."""
        return self._factorization.best(i, n, self._known[i] if exclude_seen else None)

    def _similar(
        self, ids: Any, factors: Array, given: Any, kind: str, n: int
    ) -> tuple[NDArray[Any], Array]:
        """The ids of the other lines with the largest cosine similarity to one."""
        place = int(ids.find(_one(given))[0])
        if place < 0:
            raise ValueError(f"{kind} {given!r} is not in the fit")
        count = min(whole_number(n, "n"), len(factors) - 1)
        lengths = np.linalg.norm(factors, axis=1)
        cosines = factors @ factors[place] / np.maximum(lengths * lengths[place], 1e-300)
        cosines[place] = -np.inf
        if count < 1:
            return ids.names[:0], np.empty(0)
        order, found = _leading(cosines[None], count)
        return ids.names[order[0]], found[0]

    def _named(self, X: Any, count: int) -> Any:
        """The first `count` columns of the fit, found in a frame by name; other X unchanged."""
        X = plain(X)
        columns: Any = getattr(self, "columns_", None)  # not in older model files
        if not is_table(X) or not are_names(columns):
            return X
        wanted, there = list(columns[:count]), list(X.columns)
        lacking = [name for name in wanted if name not in there]
        if lacking:
            raise ValueError(
                f"the frame has no column {' or '.join(map(repr, lacking))}, by which the model "
                "was fitted: rename its columns, or pass arrays"
            )
        twice = [name for name in wanted if there.count(name) > 1]
        if twice:
            raise ValueError(f"the frame has two columns named {twice[0]!r}: rename one")
        return X[wanted]


def _in_memory(factors: Any, places: Indices) -> tuple[Array, Indices]:
    """An array that contains the rows at some indices, and the indices of those rows in it."""
    if not isinstance(factors, StoredRows):
        return factors, places
    few, where = np.unique(places, return_inverse=True)
    return factors[few], where.ravel()


def _one(given: Any) -> NDArray[Any]:
    """An array of one id, which may be a tuple."""
    if not isinstance(given, tuple):
        asked = np.asarray([given])
        if asked.size != 1:
            raise ValueError(f"one id is needed, or a list of several for recommend: got {given!r}")
        return asked
    alone = np.empty(1, dtype=object)
    alone[0] = given
    return alone


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of lines with about `BLOCK_NUMBERS` numbers each."""
    step = max(1, BLOCK_NUMBERS // max(1, width))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _leading(entries: Array, n: int) -> tuple[Indices, Array]:
    """Indices and values of the n largest numbers of each line, largest first."""
    lines = np.arange(entries.shape[0])[:, None]
    some = np.argpartition(-entries, n - 1, axis=1)[:, :n]
    order = np.argsort(-entries[lines, some], axis=1, kind="stable")
    best = some[lines, order]
    return best, entries[lines, best]
