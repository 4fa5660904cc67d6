"""Samples that are given classes on a page, and the metric learned from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from gramian.app.explorer.samples import SampleSession
from gramian.app.explorer.tables import fitting_within, next_view, proof, table, unit_square
from gramian.app.models import save
from gramian.app.report.families import two_directions
from gramian.common import clock
from gramian.common.types import Array
from gramian.estimators.path import NEIGHBOURS
from gramian.metric import KTA

Codes = NDArray[np.integer]


@dataclass(frozen=True)
class Named:
    """A sample that was given a class."""

    i: int
    name: str
    foreseen: bool | None
    """Whether the metric predicted the class before it was given; None if there was no metric."""
    by_euclid: bool | None
    """Whether k-NN with the Euclidean distance predicted it."""


def _rows_and_classes(named: tuple[Named, ...]) -> tuple[Codes, NDArray[Any]]:
    return np.array([one.i for one in named]), np.array([one.name for one in named])


@dataclass(frozen=True)
class Learned:
    """A state of the session."""

    named: tuple[Named, ...]
    fitted: Any
    """The metric; None until two classes have samples."""
    view: Array
    """The samples mapped by the metric, in two dimensions."""


@dataclass
class MetricSession(SampleSession[Learned]):
    """Samples, the classes of some, and a metric that is learned again after every change.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    model : a metric learner, optional
        Not fitted; default KTA.
    names : list of str, optional
        Names of the samples.
    n_neighbors : int
        Neighbours of the k-NN classifier that predicts the other samples.
    patience : float
        Time limit of a change, in seconds.
    frame : frame or array, optional
        The columns of a sample that a page shows under the pointer; default X.

    Raises
    ------
    TimeoutError
        If no metric is available after `patience` seconds.
    """

    X: Any
    model: Any = None
    names: list[str] | None = None
    n_neighbors: int = NEIGHBOURS
    patience: float = 1.0
    frame: Any = None

    kind = "metric"
    files = ("labels.csv", "model.gramian")

    def __post_init__(self) -> None:
        self._blank = KTA() if self.model is None else self.model
        self._place(self.X)
        self._begin(Learned((), None, self.places))

    @property
    def named(self) -> tuple[Named, ...]:
        return self._now.named

    @property
    def marks(self) -> dict[int, str]:
        return {one.i: one.name for one in self.named}

    @property
    def fitted(self) -> Any:
        return self._now.fitted

    # --- changes -----------------------------------------------------------------------

    def mark_all(self, given: list[tuple[Any, str]], time_limit: float | None = None) -> None:
        if not given:
            return
        with self.lock:
            started = clock.now()
            new = self._checked(given)
            learned, plain = self._predicted(list(new))
            named = (
                *self.named,
                *(
                    Named(i, name, *(None if said is None else said == name for said in guesses))
                    for (i, name), *guesses in zip(new.items(), learned, plain, strict=True)
                ),
            )
            fitted = self._refit(named, self._limit(time_limit))
            view = next_view(self._projected(fitted), self._now.view)
            self._commit(self._in_words(new), Learned(named, fitted, view), started)

    def _actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        return {"mark": self._mark_rows}

    def _refit(self, named: tuple[Named, ...], limit: float) -> Any:
        if len({one.name for one in named}) < 2:
            return None
        rows, classes = _rows_and_classes(named)
        model = clone(self._blank)
        with fitting_within(limit, type(model).__name__):
            model.fit(self.X[rows], classes)
        return model

    # --- what a page shows --------------------------------------------------------------

    def classifier(self, mapped: Any) -> KNeighborsClassifier:
        """k-NN among the samples that have a class, in the space of `mapped`."""
        rows, classes = _rows_and_classes(self.named)
        return KNeighborsClassifier(min(self.n_neighbors, len(rows))).fit(mapped[rows], classes)

    def said(self) -> NDArray[Any]:
        """The class of every sample, given or predicted; "" while there is no metric."""
        with self.lock:
            classes = np.full(self.size, "", dtype=object)
            classes[list(self.marks)] = list(self.marks.values())
            others = np.flatnonzero(classes == "")
            if self.fitted is not None and others.size:
                mapped = self._mapped(self.fitted)
                classes[others] = self.classifier(mapped).predict(mapped[others])
            return classes

    def state(self) -> dict[str, Any]:
        """The rest of a page, in plain values."""
        with self.lock:
            classes = sorted({one.name for one in self.named})
            place = {name: code for code, name in enumerate(classes)}
            return {
                **self._state(),
                "classes": classes,
                "labels": [place.get(name, -1) for name in self.said().tolist()],
                "learned": self._now.view.round(4).tolist(),
                "links": [],
                "marks": {str(i): name for i, name in self.marks.items()},
                "reasons": {},
                "verdict": self.verdict(),
                **proof(self.fitted, "Nothing is solved yet: name samples of two classes."),
            }

    def verdict(self) -> str:
        """Whether the metric helps: each sample is a test before its class is given."""
        if len({one.name for one in self.named}) < 2:
            return "Write the name of a class and click on samples of it; then of another class."
        tested = [one for one in self.named if one.foreseen is not None]
        if not tested:
            return "Name more samples: each one tests what was learned before it."
        kept = str(getattr(self.fitted, "path_", "")).startswith("nothing is gained")
        right = sum(bool(one.foreseen) for one in tested)
        plain = sum(bool(one.by_euclid) for one in tested)
        return (
            f"The metric predicted {right} of {len(tested)} classes before they were given; "
            f"Euclidean distance predicted {plain}."
            + (" No learned metric is better yet, so Euclidean distance is used." if kept else "")
        )

    def question(self) -> dict[str, Any]:
        """The least certain sample: the distances to its nearest two classes differ least."""
        with self.lock:
            if self.fitted is None:
                raise ValueError("name samples of two classes first")
            mapped = self._mapped(self.fitted)
            rows, classes = _rows_and_classes(self.named)
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
            return {"rows": [int(doubt.argmax())]}

    def download(self, name: str) -> bytes | None:
        """A table to download; None for the model, which `save` writes."""
        if name != "labels.csv":
            return None
        rows = [
            [name, said, "given" if k in self.marks else "predicted"]
            for k, (name, said) in enumerate(zip(self._sample_names(), self.said(), strict=True))
        ]
        return table(["sample", "class", "by"], rows)

    def save(self, path: Path, before: Any = None) -> None:
        """Save the metric with its k-NN classifier, after the steps of a pipeline if any."""
        if self.fitted is None:
            raise ValueError("there is no model yet: name samples of two classes")
        steps = [] if before is None else list(before.steps)
        mapped = self._mapped(self.fitted)
        ends = [("metric", self.fitted), ("neighbours", self.classifier(mapped))]
        save(Pipeline([*steps, *ends]), path)

    def _mapped(self, fitted: Any) -> Array:
        return np.asarray(fitted.transform(self.X))

    def _predicted(self, rows: list[int]) -> tuple[list[Any], list[Any]]:
        """What the metric, and Euclidean distance, predict for samples without a class."""
        if self.fitted is None:
            return [None] * len(rows), [None] * len(rows)
        learned, plain = (
            self.classifier(Z).predict(Z[rows]).tolist()
            for Z in (self._mapped(self.fitted), self.X)
        )
        return learned, plain

    def _projected(self, fitted: Any) -> Array:
        """The samples in two dimensions; a metric of rank 1 is drawn against the second principal
        direction of the samples.
        """
        if fitted is None:
            return self.places
        mapped = self._mapped(fitted)
        if mapped.shape[1] > 1:
            return unit_square(two_directions(mapped))
        return np.column_stack([unit_square(mapped)[:, 0], 0.5 * self.places[:, 1]])
