"""A few samples named by hand, and the metric that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from gramian.app.explorer.tables import (
    check_version,
    checked_names,
    fitting_within,
    sample_number,
    table,
    unit_square,
)
from gramian.app.report.families import two_directions
from gramian.common import clock
from gramian.common.parameters import positive
from gramian.estimators.persistence import save
from gramian.metric import KTA

Array = NDArray[np.floating]
Codes = NDArray[np.integer]

NEIGHBOURS = 3


@dataclass(frozen=True)
class Named:
    """A sample that was given a class."""

    i: int
    name: str
    foreseen: bool | None
    """Whether the metric so far said so before it was told; None where it said nothing yet."""
    by_euclid: bool | None
    """Whether k-NN in the samples as they are did."""


@dataclass(frozen=True)
class Moment:
    """All that a change replaces, for undo."""

    named: tuple[Named, ...]
    fitted: Any


@dataclass
class MetricSession:
    """Samples, the classes of some, and a metric learned from these after every change.

    Parameters
    ----------
    X : samples as the metric sees them: an array or a sparse matrix
    model : a metric learner, optional
        Not fitted; KTA unless given.
    names : what the samples are called, optional
    n_neighbors : int
        Of k-NN, which says what the others are.
    patience : float
        Seconds that a change may take.

    Raises
    ------
    TimeoutError
        Where a change has no metric to show after `patience`.
    """

    X: Any
    model: Any = None
    names: list[str] | None = None
    n_neighbors: int = NEIGHBOURS
    patience: float = 1.0
    named: tuple[Named, ...] = ()
    version: int = 0
    seconds: float = 0.0
    fitted: Any = None
    """The metric, None until there are two classes."""
    _past: list[Moment] = field(default_factory=list)

    template = "page.html"
    files = ("labels.csv", "model.gramian")

    def __post_init__(self) -> None:
        self.lock = RLock()
        self._blank = KTA() if self.model is None else self.model
        self.size = self.X.shape[0]
        self.names = checked_names(self.names, self.size)
        self.places = unit_square(two_directions(self.X))

    # --- changes -----------------------------------------------------------------------

    def mark(self, i: Any, name: str) -> None:
        """Say what class a sample is of, and learn again."""
        self.mark_all([(i, name)])

    def mark_all(self, given: list[tuple[Any, str]], time_limit: float | None = None) -> None:
        """Say of several samples at once what they are: one change, of `patience` by default."""
        with self.lock:
            started = clock.now()
            known = {one.i for one in self.named}
            new: list[Named] = []
            if not given:
                return
            for i, name in given:
                i, name = sample_number(i, self.size), str(name).strip()
                if not name:
                    raise ValueError("a class must have a name: write it first")
                if i in known:
                    raise ValueError(f"sample {i} has a class already: undo that first")
                known.add(i)
                new.append(Named(i, name, *(said and said == name for said in self._said(i))))
            named = (*self.named, *new)
            limit = self.patience if time_limit is None else positive(time_limit, "time_limit")
            fitted = self._refit(named, limit)
            self._past.append(Moment(self.named, self.fitted))
            self.named, self.fitted = named, fitted
            self.version += 1
            self.seconds = clock.elapsed(started)

    def undo(self) -> None:
        """Take the last change back."""
        with self.lock:
            if not self._past:
                raise ValueError("there is nothing to take back")
            last = self._past.pop()
            self.named, self.fitted = last.named, last.fitted
            self.version += 1

    def change(self, action: str, given: dict[str, Any]) -> None:
        """What a page asks for."""
        if action == "mark":
            self.mark(given.get("i"), str(given.get("name", "")))
        elif action == "undo":
            with self.lock:
                check_version(given.get("version"), self.version)
                self.undo()
        else:
            raise ValueError(f"there is nothing called {action!r} to do")

    def _refit(self, named: tuple[Named, ...], limit: float) -> Any:
        if len({one.name for one in named}) < 2:
            return None
        rows = np.array([one.i for one in named])
        model = clone(self._blank)
        with fitting_within(limit, type(model).__name__):
            model.fit(self.X[rows], np.array([one.name for one in named]))
        return model

    # --- what is told ------------------------------------------------------------------

    def classifier(self, mapped: Any) -> KNeighborsClassifier:
        """k-NN among the samples that have a class, in whatever they are mapped to."""
        rows = np.array([one.i for one in self.named])
        classes = np.array([one.name for one in self.named])
        return KNeighborsClassifier(min(self.n_neighbors, len(rows))).fit(mapped[rows], classes)

    def said(self) -> NDArray[Any]:
        """The class of every sample: as it was told, or as the metric says; "" for nothing yet."""
        with self.lock:
            classes = np.full(self.size, "", dtype=object)
            for one in self.named:
                classes[one.i] = one.name
            others = np.flatnonzero(classes == "")
            if self.fitted is not None and others.size:
                mapped = self._mapped()
                classes[others] = self.classifier(mapped).predict(mapped[others])
            return classes

    def fixed(self) -> dict[str, Any]:
        """What a page shows that does not change."""
        return {
            "kind": "metric",
            "places": self.places.round(4).tolist(),
            "names": self.names or [f"sample {k}" for k in range(self.size)],
        }

    def state(self) -> dict[str, Any]:
        """Everything else that a page shows, in plain values."""
        with self.lock:
            classes = sorted({one.name for one in self.named})
            place = {name: code for code, name in enumerate(classes)}
            said = self.said()
            certificate = None if self.fitted is None else str(self.fitted.certificate_)
            return {
                "version": self.version,
                "classes": classes,
                "labels": [place.get(name, -1) for name in said.tolist()],
                "learned": np.round(self._view(), 4).tolist(),
                "links": [],
                "marks": {str(one.i): one.name for one in self.named},
                "kept": 0,
                "verdict": self.verdict(),
                "certificate": certificate or "nothing is solved yet: name two classes",
                "seconds": round(self.seconds, 3),
                "can_undo": bool(self._past),
            }

    def verdict(self) -> str:
        """Whether the metric helps: each sample was a test before its class was told."""
        if len({one.name for one in self.named}) < 2:
            return "Write a class and click on samples of it; then those of another class."
        tested = [one for one in self.named if one.foreseen is not None]
        if not tested:
            return "Go on: the next sample that you name is a test of what was learned so far."
        kept = str(getattr(self.fitted, "path_", "")).startswith("nothing is gained")
        right = sum(bool(one.foreseen) for one in tested)
        plain = sum(bool(one.by_euclid) for one in tested)
        return (
            f"Of {len(tested)} samples the metric had {right} right before it was told; Euclid's "
            f"distance had {plain}."
            + (" It is kept: nothing better is earned yet." if kept else "")
        )

    def question(self) -> dict[str, int]:
        """The least certain sample: whose nearest two classes are as near as can be."""
        with self.lock:
            if self.fitted is None:
                raise ValueError("name samples of two classes first")
            mapped = self._mapped()
            classes = np.array([one.name for one in self.named])
            rows = np.array([one.i for one in self.named])
            nearest = np.sort(
                [
                    KNeighborsClassifier(1)
                    .fit(mapped[rows[of]], classes[of])
                    .kneighbors(mapped)[0][:, 0]
                    for of in (classes == name for name in np.unique(classes))
                ],
                axis=0,
            )
            doubt = nearest[0] / np.maximum(nearest[1], 1e-300)
            doubt[rows] = -1.0
            if doubt.max() < 0:
                raise ValueError("every sample has a class already")
            return {"i": int(doubt.argmax())}

    def download(self, name: str) -> bytes | None:
        """A table to keep; None for the model, which is saved by `save`."""
        if name != "labels.csv":
            return None
        names = self.names or [str(k) for k in range(self.size)]
        told = {one.i: one.name for one in self.named}
        rows = [
            [name, said, "told" if k in told else "said"]
            for k, (name, said) in enumerate(zip(names, self.said(), strict=True))
        ]
        return table(["sample", "class", "by"], rows)

    def save(self, path: Path, before: Any = None) -> None:
        """Save the metric with k-NN behind it, after the steps of a pipeline if there are any."""
        if self.fitted is None:
            raise ValueError("there is no model yet: name samples of two classes")
        steps = [] if before is None else list(before.steps)
        ends = [("metric", self.fitted), ("neighbours", self.classifier(self._mapped()))]
        save(Pipeline([*steps, *ends]), path)

    def _mapped(self) -> Array:
        return np.asarray(self.fitted.transform(self.X))

    def _said(self, i: int) -> tuple[Any, Any]:
        """What the metric, and Euclid's distance, say of a sample that has no class yet."""
        if self.fitted is None:
            return None, None
        learned, plain = (self.classifier(Z).predict(Z[[i]])[0] for Z in (self._mapped(), self.X))
        return learned, plain

    def _view(self) -> Array:
        """The samples as the metric sees them; a line gets the rest of the samples beside it."""
        if self.fitted is None:
            return self.places
        mapped = self._mapped()
        if mapped.shape[1] > 1:
            return unit_square(two_directions(mapped))
        return np.column_stack([unit_square(mapped)[:, 0], 0.5 * self.places[:, 1]])
