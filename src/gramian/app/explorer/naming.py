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
from gramian.app.explorer.tables import (
    fitting_within,
    next_view,
    proof,
    sample_number,
    sample_numbers,
    table,
    unit_square,
)
from gramian.app.models import save
from gramian.app.report.families import two_directions
from gramian.common import clock
from gramian.common.parameters import positive
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
    """Whether the metric predicted it before it was given; None where there was no metric yet."""
    by_euclid: bool | None
    """Whether k-NN by Euclidean distance did."""


@dataclass(frozen=True)
class Learned:
    """A state of the session."""

    named: tuple[Named, ...]
    fitted: Any
    """The metric; None until two classes have samples."""
    view: Array
    """The samples in two dimensions as the metric sees them."""


@dataclass
class MetricSession(SampleSession):
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
        Where a change has no metric to show after `patience`.
    """

    X: Any
    model: Any = None
    names: list[str] | None = None
    n_neighbors: int = NEIGHBOURS
    patience: float = 1.0
    frame: Any = None

    template = "page.html"
    files = ("labels.csv", "model.gramian")

    def __post_init__(self) -> None:
        self._blank = KTA() if self.model is None else self.model
        self._place(self.X)
        self._begin(Learned((), None, self.places))

    @property
    def named(self) -> tuple[Named, ...]:
        named: tuple[Named, ...] = self._now.named
        return named

    @property
    def fitted(self) -> Any:
        return self._now.fitted

    # --- changes -----------------------------------------------------------------------

    def mark(self, i: Any, name: str) -> None:
        """Give a class to a sample, and learn again."""
        self.mark_all([(i, name)])

    def mark_all(self, given: list[tuple[Any, str]], time_limit: float | None = None) -> None:
        """Give classes to several samples in one change, of `patience` seconds by default."""
        if not given:
            return
        with self.lock:
            started = clock.now()
            new = self._new(given)
            named = (*self.named, *new)
            limit = self.patience if time_limit is None else positive(time_limit, "time_limit")
            fitted = self._refit(named, limit)
            view = next_view(self._projected(fitted), self._now.view)
            self._commit(in_words(new, self._called), Learned(named, fitted, view), started)

    def _new(self, given: list[tuple[Any, str]]) -> list[Named]:
        """The samples with their classes, checked, and what was predicted of them before."""
        known = {one.i for one in self.named}
        rows, names = [], []
        for i, name in given:
            i, name = sample_number(i, self.size), str(name).strip()
            if not name:
                raise ValueError("a class must have a name: write it first")
            if i in known:
                raise ValueError(f"{self._called(i)} has a class already: undo that first")
            known.add(i)
            rows.append(i)
            names.append(name)
        learned, plain = self._predicted(rows)
        return [
            Named(i, name, *(None if said is None else bool(said == name) for said in guesses))
            for i, name, *guesses in zip(rows, names, learned, plain, strict=True)
        ]

    def _actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        def named(given: dict[str, Any]) -> None:
            name, known = str(given.get("name", "")), {one.i for one in self.named}
            rows = sample_numbers(given.get("rows"), self.size)
            free = [i for i in rows if i not in known]
            self.mark_all([(i, name) for i in free or rows])

        return {"mark": named}

    def _refit(self, named: tuple[Named, ...], limit: float) -> Any:
        if len({one.name for one in named}) < 2:
            return None
        rows = np.array([one.i for one in named])
        model = clone(self._blank)
        with fitting_within(limit, type(model).__name__):
            model.fit(self.X[rows], np.array([one.name for one in named]))
        return model

    # --- what a page shows --------------------------------------------------------------

    def classifier(self, mapped: Any) -> KNeighborsClassifier:
        """k-NN among the samples that have a class, in the space of `mapped`."""
        rows = np.array([one.i for one in self.named])
        classes = np.array([one.name for one in self.named])
        return KNeighborsClassifier(min(self.n_neighbors, len(rows))).fit(mapped[rows], classes)

    def said(self) -> NDArray[Any]:
        """The class of every sample, given or predicted; "" while there is no metric."""
        with self.lock:
            classes = np.full(self.size, "", dtype=object)
            for one in self.named:
                classes[one.i] = one.name
            others = np.flatnonzero(classes == "")
            if self.fitted is not None and others.size:
                mapped = self._mapped(self.fitted)
                classes[others] = self.classifier(mapped).predict(mapped[others])
            return classes

    def fixed(self) -> dict[str, Any]:
        """The part of a page that does not change."""
        return {"kind": "metric", "places": self.places.round(4).tolist(), "names": self.names}

    def state(self) -> dict[str, Any]:
        """The rest of a page, in plain values."""
        with self.lock:
            classes = sorted({one.name for one in self.named})
            place = {name: code for code, name in enumerate(classes)}
            return {
                **self._told(),
                "classes": classes,
                "labels": [place.get(name, -1) for name in self.said().tolist()],
                "learned": self._now.view.round(4).tolist(),
                "links": [],
                "marks": {str(one.i): one.name for one in self.named},
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
            return {"rows": [int(doubt.argmax())]}

    def download(self, name: str) -> bytes | None:
        """A table to download; None for the model, which `save` writes."""
        if name != "labels.csv":
            return None
        names = self.names or [str(k) for k in range(self.size)]
        given = {one.i for one in self.named}
        rows = [
            [name, said, "given" if k in given else "predicted"]
            for k, (name, said) in enumerate(zip(names, self.said(), strict=True))
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
        """The samples in two dimensions; a metric of rank 1 is drawn against a plain direction."""
        if fitted is None:
            return self.places
        mapped = self._mapped(fitted)
        if mapped.shape[1] > 1:
            return unit_square(two_directions(mapped))
        return np.column_stack([unit_square(mapped)[:, 0], 0.5 * self.places[:, 1]])


def in_words(new: list[Named], called: Callable[[int], str]) -> str:
    """A change as a line of the history."""
    classes = sorted({one.name for one in new})
    who = called(new[0].i) if len(new) == 1 else f"{len(new):,} samples"
    return f"{who}: {', '.join(classes)}"
