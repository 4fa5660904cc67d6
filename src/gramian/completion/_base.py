"""What completions of ratings share: choosing λ, ids, predictions, recommendations."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian._random import generator
from gramian.completion._path import falling
from gramian.completion._ratings import (
    Ratings,
    gather,
    is_frame,
    rating_columns,
    refuse_text,
)
from gramian.constraints import whole_number
from gramian.fitting import settle, solve
from gramian.persistence import Kept
from gramian.problem import Problem
from gramian.problems.completion import trace_weighted
from gramian.problems.manifold import positive
from gramian.result import Result
from gramian.solvers.rough import rough

Array = NDArray[np.floating]

HELD_OUT, LEAST = 0.1, 50
"""The share of the ratings held out to choose λ, and how many it takes to do that."""

LAST = 1e-3
"""Seconds of a solve that has none left."""

PATH_RANK, PATH_SHARE = 24, 0.5
"""The path is solved roughly, at a rank that tells one λ from another, within a share of the time
that there is."""

ROLES = (
    ("user", "customer", "reader", "person", "reviewer"),
    ("item", "movie", "film", "product", "book", "song", "artist", "business"),
    ("rating", "stars", "score", "grade"),
)
"""What the columns of users, items and ratings are called."""


class Completion(Kept, BaseEstimator, ABC):
    """A matrix of low rank beside offsets, learned from some entries."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @abstractmethod
    def _problem(self, ratings: Ratings, lam: float) -> Problem:
        """The convex problem for one λ; sets `mean_`."""

    @abstractmethod
    def _guess(self, ratings: Ratings) -> float:
        """A λ of the right size."""

    @abstractmethod
    def _error(self, test: Ratings) -> float:
        """The error of the entries held out."""

    @abstractmethod
    def _set_biases(self, ratings: Ratings, problem: Problem, L: Array) -> None:
        """Set the offsets that belong to a factor."""

    @abstractmethod
    def _set_bounds(self, values: Array) -> None:
        """Set where predictions are cut off."""

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""
        if isinstance(self.lam, str):
            if self.lam != "auto":
                raise ValueError(f'lam must be a number above 0 or "auto", got {self.lam!r}')
        else:
            positive(self.lam, "lam")
        positive(self.bias_ridge, "bias_ridge")
        if self.time_limit is not None:
            positive(self.time_limit, "time_limit")
        power = self.weight_power
        if not (isinstance(power, Real) and 0 <= float(power) <= 1):
            raise ValueError(f"weight_power must be between 0 and 1, got {power!r}")

    def fit(self, X: Any, y: Any = None) -> Any:
        """Complete the matrix.

        Parameters
        ----------
        X : (rows, cols, values), a frame of three columns, a sparse matrix, or an array
            The known entries, rows and columns called whatever they are called; of a sparse
            matrix those that are stored, of an array those that are not NaN. What the columns of
            a frame are called is kept in `columns_`: frames to come are read by those names.
        y : ignored
        """
        self._check_parameters()
        ratings = self._ratings(X)
        self.__dict__.pop("path_", None)  # that of another fit
        started, start = time.perf_counter(), None
        if self.lam != "auto":
            self.lam_ = float(self.lam)
        elif ratings.values.size < LEAST:
            self.lam_ = self._guess(ratings)
        else:
            start = self._choose(ratings)
        problem = self._problem(ratings, self.lam_)
        self.result_ = self._minimize(problem, start, time.perf_counter() - started)
        self._finish(ratings, problem)
        return self

    def _ratings(self, X: Any) -> Ratings:
        self.columns_ = _names(X)
        if isinstance(X, tuple) or is_frame(X):
            return gather(X, duplicates=self.duplicates)
        refuse_text(X)
        X = validate_data(
            self, X, accept_sparse=("csr", "coo"), dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        return gather(X, duplicates=self.duplicates)

    def _scales(self, ratings: Ratings) -> tuple[Array, Array]:
        m, n = ratings.shape
        return (
            powers(np.bincount(ratings.rows, minlength=m), self.weight_power),
            powers(np.bincount(ratings.cols, minlength=n), self.weight_power),
        )

    def _choose(self, ratings: Ratings) -> Array:
        """Set λ by the path, and give the factor of its best solve to start from."""
        rng = generator(self.random_state)
        held = rng.random(ratings.values.size) < HELD_OUT
        train, test = ratings.part(~held), ratings.part(held)
        problem = self._problem(train, self._guess(train))
        rank = min(PATH_RANK, problem.order, self.rank or PATH_RANK)
        found: dict[float, Array] = {}
        last: Array | None = None

        def error_of(lam: float) -> float:
            nonlocal last
            of_lam = trace_weighted(problem, lam)
            found[lam] = last = rough(of_lam, last, rank=rank, random_state=self.random_state)
            self._unpack(train, of_lam, last)
            return self._error(test)

        self._set_bounds(ratings.values)
        started, limit = time.perf_counter(), self.time_limit
        until = np.inf if limit is None else started + PATH_SHARE * float(limit)
        self.path_ = falling(self._guess(train), error_of, lambda: time.perf_counter() >= until)
        self.lam_ = self.path_.best
        return found[self.lam_]

    def _minimize(self, problem: Problem, init: Array | None, spent: float) -> Result:
        """The best factor found in the time left; a last step is taken in any case."""
        limit = self.time_limit
        left = None if limit is None else max(limit - spent, LAST)
        return solve(self, problem, init, rank=self.rank, time_limit=left)

    def _finish(self, ratings: Ratings, problem: Problem) -> None:
        settle(self, self.result_)
        self._set_bounds(ratings.values)
        self._unpack(ratings, problem, self.result_.factor)
        self._rows, self._cols = ratings.row_ids, ratings.col_ids
        self.row_ids_, self.col_ids_ = ratings.row_ids.names, ratings.col_ids.names
        self._known = ratings.matrix
        self._n_features_out = self.col_factors_.shape[1]

    def _unpack(self, ratings: Ratings, problem: Problem, factor: Array) -> None:
        """Factors and offsets from M, in the units of the entries."""
        m, n = ratings.shape
        rows, cols = self._scales(ratings)
        L = balanced(factor, m)
        self.row_factors_ = L[:m] / np.sqrt(rows)[:, None]
        self.col_factors_ = L[m:] / np.sqrt(cols)[:, None]
        self.row_biases_: Array = np.zeros(m)
        self.col_biases_: Array = np.zeros(n)
        if self.biases:
            self._set_biases(ratings, problem, L)

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """The entries of pairs of a row and a column.

        An unknown row or column counts with the mean and the offset of the other.

        Parameters
        ----------
        pairs : array of shape (k, 2), a frame, or (rows, cols)
            A frame is read by the names in `columns_`, whatever their order and whatever else it
            has; where the fit had no names, a frame has two columns, row and column.
        return_known : bool
            Also return whether the row and the column of each pair were both in the fit.
        """
        check_is_fitted(self)
        rows, cols = _columns(self._named(pairs, 2))
        i, j = self._rows.find(rows), self._cols.find(cols)
        values = self._values(i, j)
        return (values, (i >= 0) & (j >= 0)) if return_known else values

    def recommend(
        self, row: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], Array]:
        """The columns of the largest predicted entries of a row, and those entries."""
        check_is_fitted(self)
        i = int(self._rows.find([row])[0])
        if i < 0:
            raise ValueError(f"row {row!r} is not in the fit: fold it in with transform")
        j = np.arange(len(self.col_ids_))
        values = self._values(np.full(j.size, i), j, cut=False)
        if exclude_seen:
            values[self._known[[i]].indices] = -np.inf
        order = _leading(values, whole_number(n, "n"))
        order = order[np.isfinite(values[order])]
        return self.col_ids_[order], self._cut(values[order])

    def similar_items(self, col: Any, n: int = 10) -> tuple[NDArray[Any], Array]:
        """The columns whose factors point the same way, and the cosines."""
        check_is_fitted(self)
        j = int(self._cols.find([col])[0])
        if j < 0:
            raise ValueError(f"column {col!r} is not in the fit")
        lengths = np.linalg.norm(self.col_factors_, axis=1)
        cosines = self.col_factors_ @ self.col_factors_[j]
        cosines = cosines / np.maximum(lengths * lengths[j], 1e-300)
        cosines[j] = -np.inf
        order = _leading(cosines, min(whole_number(n, "n"), cosines.size - 1))
        return self.col_ids_[order], cosines[order]

    def _named(self, X: Any, count: int) -> Any:
        """The first columns of the fit, found in a frame by name; all else as it is given."""
        columns: Any = getattr(self, "columns_", None)  # models of old do not have it
        if not hasattr(X, "iloc") or not are_names(columns):
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

    def _values(self, i: Any, j: Any, *, cut: bool = True) -> Array:
        """Predicted entries by index, −1 for what is not known."""
        known = (i >= 0) & (j >= 0)
        values = np.full(len(i), self.mean_)
        values += np.where(i >= 0, self.row_biases_[i], 0.0)
        values += np.where(j >= 0, self.col_biases_[j], 0.0)
        step = max(1, 4_000_000 // max(1, self.col_factors_.shape[1]))
        of = np.flatnonzero(known)
        for start in range(0, of.size, step):
            part = of[start : start + step]
            values[part] += np.einsum(
                "er,er->e", self.row_factors_[i[part]], self.col_factors_[j[part]]
            )
        return self._cut(values) if cut else values

    def _cut(self, values: Array) -> Array:
        return values if self.bounds_ is None else np.clip(values, *self.bounds_)


def powers(counts: NDArray[np.integer], power: float) -> Array:
    """(count/mean count)^α, an empty row or column counted as one entry."""
    return np.asarray((np.maximum(counts, 1) / max(float(counts.mean()), 1e-300)) ** power)


def balanced(factor: Array, m: int) -> Array:
    """[P; Q] turned so that the columns of P and of Q are orthogonal, falling and as long."""
    if factor.shape[1] == 0:
        return np.zeros((factor.shape[0], 1))
    left, S = np.linalg.qr(factor[:m])
    right, T = np.linalg.qr(factor[m:])
    U, values, Vt = np.linalg.svd(S @ T.T)
    kept = values > 1e-10 * max(float(values[0]), 1e-300)
    kept[0] = True
    root = np.sqrt(values[kept])
    return np.vstack([(left @ U)[:, : kept.size][:, kept] * root, (right @ Vt.T)[:, kept] * root])


def by_role(names: Sequence[str]) -> dict[int, str]:
    """The columns whose names say user, item or rating, by role: 0, 1, 2; each one only."""
    found = [[name for name in names if any(w in name.lower() for w in words)] for words in ROLES]
    alone = {role: some[0] for role, some in enumerate(found) if len(some) == 1}
    return alone if len(set(alone.values())) == len(alone) else {}


def _names(X: Any) -> tuple[str, ...] | None:
    """What row, column and value of a frame are called; None unless each has a name of its own."""
    places = rating_columns(X) if hasattr(X, "iloc") else None
    if places is None:
        return None
    names = tuple(X.columns[k] for k in places)
    return names if are_names(names) and len(set(names)) == len(names) else None


def are_names(columns: Any) -> bool:
    """Whether columns are called by names, not by places."""
    return columns is not None and all(isinstance(name, str) for name in columns)


def _columns(pairs: Any) -> tuple[Any, Any]:
    if hasattr(pairs, "iloc"):
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have two columns, row and column, got {pairs.shape[1]}")
        return pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy()
    if isinstance(pairs, tuple) and len(pairs) == 2:
        rows, cols = np.atleast_1d(np.asarray(pairs[0])), np.atleast_1d(np.asarray(pairs[1]))
        if rows.shape != cols.shape or rows.ndim != 1:
            raise ValueError(f"as many rows as columns are needed, got {rows.shape}, {cols.shape}")
        return rows, cols
    table = np.asarray(pairs)
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"pairs must have shape (k, 2), got {table.shape}")
    return table[:, 0], table[:, 1]


def _leading(values: Array, n: int) -> NDArray[np.integer]:
    """The places of the n largest, largest first."""
    n = min(n, values.size)
    some = np.argpartition(-values, n - 1)[:n]
    return some[np.argsort(-values[some], kind="stable")]
