"""A few items rated by hand, and what is recommended to whoever rates so."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.app.explorer.tables import check_version, table
from gramian.common import clock
from gramian.completion import NuclearCompletion

Array = NDArray[np.floating]

YOU = "you"
"""The id of the row that is rated by hand, where no user of the model has it."""

TOP, CLOSE, STEPS = 10, 200, 5
"""Items recommended; the most rated ones, of which one is asked for; ratings on a page."""


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number behind it where another has it."""
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


@dataclass(frozen=True)
class Rated:
    """An item, how it was rated, and what was predicted before."""

    item: int
    value: float
    predicted: float
    mean: float
    """What the mean of the item's ratings, and of all where it has few, predicts."""


@dataclass
class RatingSession:
    """A fitted completion, and one who is new to it: ratings fold in, and the list follows.

    Parameters
    ----------
    model : NuclearCompletion, fitted
    top : int
        Items recommended.
    """

    model: Any
    top: int = TOP
    rated: tuple[Rated, ...] = ()
    version: int = 0
    seconds: float = 0.0
    _past: list[tuple[Rated, ...]] = field(default_factory=list)

    template = "ratings.html"
    files = ("ratings.csv", "recommended.csv")

    def __post_init__(self) -> None:
        if not isinstance(self.model, NuclearCompletion):
            raise ValueError(
                f"a page to rate on needs a model that folds in new ratings, NuclearCompletion, "
                f"and this is {type(self.model).__name__}"
            )
        check_is_fitted(self.model)
        self.lock = RLock()
        self.you = free_name(YOU, {str(user) for user in self.model.row_ids_.tolist()})
        self.items = [str(item) for item in self.model.col_ids_.tolist()]
        known = self.model._known.tocsc()
        counts = np.diff(known.indptr)
        self.counts = counts
        mean = float(known.data.mean())
        self._means = (np.asarray(known.sum(axis=0)).ravel() + 5 * mean) / (counts + 5)
        self.low, self.high = float(known.data.min()), float(known.data.max())

    # --- changes -----------------------------------------------------------------------

    def rate(self, item: Any, value: Any) -> None:
        """Rate an item, anew where it was rated before."""
        with self.lock:
            if (
                isinstance(item, bool)
                or not isinstance(item, int)
                or not 0 <= item < len(self.items)
            ):
                raise ValueError(f"there is no item {item!r}: they are 0 to {len(self.items) - 1}")
            real = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not real or not self.low <= value <= self.high:
                raise ValueError(f"a rating is between {self.low:g} and {self.high:g}")
            started = clock.now()
            others = tuple(one for one in self.rated if one.item != item)
            predicted = float(self._predicted(others)[item])
            new = Rated(item, float(value), predicted, float(self._means[item]))
            self._past.append(self.rated)
            self.rated = (*others, new)
            self.version += 1
            self.seconds = clock.elapsed(started)

    def undo(self) -> None:
        """Take the last rating back."""
        with self.lock:
            if not self._past:
                raise ValueError("there is nothing to take back")
            self.rated = self._past.pop()
            self.version += 1

    def change(self, action: str, given: dict[str, Any]) -> None:
        """What a page asks for."""
        if action == "rate":
            self.rate(given.get("item"), given.get("value"))
        elif action == "undo":
            with self.lock:
                check_version(given.get("version"), self.version)
                self.undo()
        else:
            raise ValueError(f"there is nothing called {action!r} to do")

    # --- what is told ------------------------------------------------------------------

    def fixed(self) -> dict[str, Any]:
        """What a page shows that does not change."""
        steps = np.linspace(self.low, self.high, STEPS) if self.high > self.low else [self.high]
        return {
            "kind": "recommend",
            "items": self.items,
            "often": np.argsort(-self.counts, kind="stable")[:CLOSE].tolist(),
            "steps": [float(f"{step:.3g}") for step in steps],
        }

    def state(self) -> dict[str, Any]:
        """Everything else that a page shows, in plain values."""
        with self.lock:
            values = self._predicted(self.rated)
            rated = {one.item for one in self.rated}
            best = [int(k) for k in np.argsort(-values, kind="stable") if int(k) not in rated]
            return {
                "version": self.version,
                "rated": [
                    {"item": one.item, "value": one.value, "predicted": round(one.predicted, 3)}
                    for one in self.rated
                ],
                "best": [
                    {"item": k, "predicted": round(float(values[k]), 3)} for k in best[: self.top]
                ],
                "verdict": self.verdict(),
                "certificate": str(self.model.certificate_),
                "seconds": round(self.seconds, 3),
                "can_undo": bool(self._past),
            }

    def verdict(self) -> str:
        """Whether it helps: each rating was predicted before it was told."""
        if not self.rated:
            return "Rate a few items that you know: the list follows."
        learned = float(np.mean([abs(one.value - one.predicted) for one in self.rated]))
        plain = float(np.mean([abs(one.value - one.mean) for one in self.rated]))
        count = len(self.rated)
        return (
            f"Your {'rating was' if count == 1 else f'{count} ratings were'} predicted with an "
            f"error of {learned:.2f} on average before being told; the means of the items have "
            f"{plain:.2f}."
        )

    def question(self) -> dict[str, int]:
        """The item whose rating would tell most: the least certain of those often rated.

        With Q the factors of the items rated so far and q that of an item, its prediction is as
        uncertain as qᵀ(QᵀQ + λI)⁻¹q.
        """
        with self.lock:
            Q = np.asarray(self.model.col_factors_)
            rated = [one.item for one in self.rated]
            often = np.argsort(-self.counts, kind="stable")[:CLOSE]
            free = np.setdiff1d(often, rated, assume_unique=False)
            if free.size == 0:
                raise ValueError("everything that is often rated has a rating of yours")
            scale = float(np.mean(np.sum(Q * Q, axis=1))) or 1.0
            inner = Q[rated].T @ Q[rated] + 0.1 * scale * np.eye(Q.shape[1])
            doubt = np.einsum("ir,ri->i", Q[free], np.linalg.solve(inner, Q[free].T))
            return {"i": int(free[doubt.argmax()])}

    def download(self, name: str) -> bytes | None:
        """A table to keep."""
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
            nobody = np.full(len(ids), self.you, dtype=object)
            return np.asarray(model.predict((nobody, ids)), dtype=float)
        places = np.array([one.item for one in rated])
        given = (np.full(len(rated), self.you), ids[places], np.array([one.value for one in rated]))
        _, items, values = model.recommend_new(given, len(ids), exclude_seen=False)
        place = {item: k for k, item in enumerate(ids.tolist())}
        found = np.empty(len(ids))
        found[[place[item] for item in items[0].tolist()]] = values[0]
        return found
