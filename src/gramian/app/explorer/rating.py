"""Items that are rated on a page, and the recommendations that follow."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.app.explorer.history import History
from gramian.app.explorer.tables import proof, sample_number, table
from gramian.app.report.drawing import round_values
from gramian.common import clock
from gramian.common.types import Array
from gramian.completion import NuclearCompletion

YOU = "you"
"""The id of the new user, if no user of the model has it."""

TOP, CLOSE = 10, 200
"""Number of recommended items, and number of the most rated items among which the page asks for
one."""

MOST_STEPS = 12
"""Number of distinct ratings up to which a page offers all of them: half stars have 10."""


def scale_of(ratings: Array) -> list[float]:
    """The ratings that a page offers: those found in the data, or round ones if there are many."""
    found = np.unique(ratings)
    if found.size > MOST_STEPS:
        inner = round_values(found[0], found[-1])
        found = np.unique([found[0], *inner, found[-1]])
    return [float(value) for value in found]


def free_name(name: str, taken: set[str]) -> str:
    """The name, followed by a number if it is already taken."""
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


@dataclass(frozen=True)
class Rated:
    """An item, how it was rated, and what was predicted before."""

    item: int
    value: float
    predicted: float
    mean: float
    """The prediction by the mean of the item's ratings, shrunk to the mean of all ratings."""


@dataclass
class RatingSession(History[tuple[Rated, ...]]):
    """A fitted completion, and the ratings of a new user, from which items are recommended.

    Parameters
    ----------
    model : NuclearCompletion, fitted
    top : int
        Items recommended.
    """

    model: Any
    top: int = TOP

    template = "ratings.html"
    files = ("ratings.csv", "recommended.csv")

    def __post_init__(self) -> None:
        if not isinstance(self.model, NuclearCompletion):
            raise ValueError(
                "a page for ratings needs a model that accepts ratings of new users, a "
                f"NuclearCompletion, got {type(self.model).__name__}"
            )
        check_is_fitted(self.model)
        self._begin(())
        users = self.model.row_ids_
        self.you = free_name(YOU, {str(user) for user in users.tolist()})
        self._id = users.max() + 1 if users.dtype.kind in "iuf" else self.you
        self.items = [str(item) for item in self.model.col_ids_.tolist()]
        known_titles = getattr(self.model, "titles_", None)  # ids and titles, in two columns
        titles = {} if known_titles is None else dict(known_titles.tolist())
        self.titles = [str(titles.get(item, item)) for item in self.items]
        known = self.model._known.tocsc()
        counts = np.diff(known.indptr)
        self._often = np.argsort(-counts, kind="stable")[:CLOSE]
        mean = float(known.data.mean())
        self._means = (np.asarray(known.sum(axis=0)).ravel() + 5 * mean) / (counts + 5)
        self.low, self.high = float(known.data.min()), float(known.data.max())
        self.scale = scale_of(known.data)

    @property
    def rated(self) -> tuple[Rated, ...]:
        return self._now

    # --- changes -----------------------------------------------------------------------

    def rate(self, item: Any, value: Any) -> None:
        """Rate an item; replaces an earlier rating."""
        with self.lock:
            item = sample_number(item, len(self.items), "item")
            real = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not real or not self.low <= value <= self.high:
                raise ValueError(f"a rating is between {self.low:g} and {self.high:g}")
            started = clock.now()
            others = tuple(one for one in self.rated if one.item != item)
            predicted = float(self._predicted(others)[item])
            new = Rated(item, float(value), predicted, float(self._means[item]))
            self._commit(f"{self.titles[item]}: {value:g}", (*others, new), started)

    def _actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        return {"rate": lambda given: self.rate(given.get("item"), given.get("value"))}

    # --- what a page shows --------------------------------------------------------------

    def fixed(self) -> dict[str, Any]:
        """The part of a page that does not change."""
        return {
            "kind": "recommend",
            "items": self.titles,
            "often": self._often.tolist(),
            "steps": self.scale,
        }

    def state(self) -> dict[str, Any]:
        """The rest of a page, in plain values."""
        with self.lock:
            values = self._predicted(self.rated)
            rated = {one.item for one in self.rated}
            best = [int(k) for k in np.argsort(-values, kind="stable") if int(k) not in rated]
            return {
                **self._state(),
                "rated": [
                    {"item": one.item, "value": one.value, "predicted": round(one.predicted, 3)}
                    for one in self.rated
                ],
                "best": [
                    {"item": k, "predicted": round(float(values[k]), 3)} for k in best[: self.top]
                ],
                "verdict": self.verdict(),
                **proof(self.model, ""),
            }

    def verdict(self) -> str:
        """Whether it helps: each rating was predicted before it was given."""
        if not self.rated:
            return "Rate a few items that you know; the recommendations follow."
        learned = float(np.mean([abs(one.value - one.predicted) for one in self.rated]))
        plain = float(np.mean([abs(one.value - one.mean) for one in self.rated]))
        count = len(self.rated)
        return (
            f"Your {'rating was' if count == 1 else f'{count} ratings were'} predicted with a mean "
            f"error of {learned:.2f}; the means of the items have {plain:.2f}."
        )

    def question(self) -> dict[str, Any]:
        """The most informative item: the least certain prediction among those often rated.

        With Q the factors of the items rated so far and q that of an item, its prediction is as
        uncertain as qᵀ(QᵀQ + λI)⁻¹q.
        """
        with self.lock:
            Q = np.asarray(self.model.col_factors_)
            rated = [one.item for one in self.rated]
            free = np.setdiff1d(self._often, rated)
            if free.size == 0:
                raise ValueError("everything that is often rated has a rating of yours")
            scale = float(np.mean(np.sum(Q * Q, axis=1))) or 1.0
            inner = Q[rated].T @ Q[rated] + 0.1 * scale * np.eye(Q.shape[1])
            doubt = np.einsum("ir,ri->i", Q[free], np.linalg.solve(inner, Q[free].T))
            return {"rows": [int(free[doubt.argmax()])]}

    def download(self, name: str) -> bytes | None:
        """A table to download."""
        if name == "ratings.csv":
            rows = [[self.you, self.items[one.item], one.value] for one in self.rated]
            return table(["user", "item", "rating"], rows)
        best = self.state()["best"]
        rows = [[self.you, self.items[one["item"]], one["predicted"]] for one in best]
        return table(["user", "item", "prediction"], rows)

    def _predicted(self, rated: tuple[Rated, ...]) -> Array:
        """Predictions for every item: of the items alone until something is rated."""
        model = self.model
        ids = model.col_ids_
        if not rated:
            nobody = np.full(len(ids), self._id)
            return np.asarray(model.predict((nobody, ids)), dtype=float)
        places = np.array([one.item for one in rated])
        given = (np.full(len(rated), self._id), ids[places], np.array([one.value for one in rated]))
        _, items, values = model.recommend_new(given, len(ids), exclude_seen=False)
        place = {item: k for k, item in enumerate(ids.tolist())}
        found = np.empty(len(ids))
        found[[place[item] for item in items[0].tolist()]] = values[0]
        return found
