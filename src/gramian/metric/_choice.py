"""Held-out evidence for a choice between metric learners, all judged on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common import clock
from gramian.common.html import pyplot, shown_once
from gramian.common.storage import storable
from gramian.estimators.path import (
    CLOSE_IN_STANDARD_ERRORS,
    GAIN_IN_STANDARD_ERRORS,
    NEIGHBOUR_ERROR,
    EvidencePath,
    difference,
)
from gramian.metric._base import principal_columns
from gramian.metric._evidence import (
    FEWEST,
    Candidates,
    Split,
    judged,
    of_neighbours,
    outvoting,
    per_sample,
    sample_keys,
    splits,
)
from gramian.metric._local import ridge_for
from gramian.metric._selection import PATH
from gramian.metric._shrinkage import FOLDS, PLAIN, SHARES, ShrunkLearner, _folds
from gramian.metric.kta import KTA

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

PREFERENCE = ("LMNN", "KTA", "LMNNEig", "DMLEig")
"""The order of learners; the first within a standard error of the best is taken. Mean ranks
on 28 sets, 75 and 56 fits to 240 samples, plain and with 30 features of noise: 2.82 and 2.57, where
the best learner alone has 3.00 and 2.82; with KTA first 2.89 and 2.46 against 2.96 and 2.86; the
least error 3.14 and 2.66 against 2.95 and 2.75."""

VOTES, MOST_REPEATS = 200, 3
"""Folds are made again until so many samples were held out, so often at most."""

PARTS = 10
"""Parts of the held-out samples for the nested estimate."""

ROUNDED = 1e-12
"""Differences of mean errors that are rounding."""


@storable
@dataclass(frozen=True)
class CandidatePath(EvidencePath):
    """The learners that were tried, their held-out errors, and the one taken.

    `values` number the candidates; the first is Euclid's metric.

    Attributes
    ----------
    names : tuple of str
        The learners.
    settings : array
        The shrinkage of each learner that was chosen; for KTA λ in units of 1/ḡ², ḡ the mean
        nonzero eigenvalue of XᵀX.
    standard_errors : array
        Standard errors of the differences from Euclid's error.
    seconds : array
        The time that the evidence for each learner took; 0 where it was not measured.
    nested_error : float
        An estimate of the error of the fitted metric that accounts for the choice: each part of
        the samples is classified by the candidate that the other parts choose.
    """

    names: tuple[str, ...] = ()
    settings: Array = ()  # type: ignore[assignment]
    standard_errors: Array = ()  # type: ignore[assignment]
    seconds: Array = ()  # type: ignore[assignment]
    nested_error: float = float("nan")

    @property
    def name(self) -> str:
        """The learner taken."""
        return self.names[self.chosen]

    def __str__(self) -> str:
        best = int(np.argmin(self.errors))
        told = f"{self.measure} {{:.4g}} of {self.held_out} held out"
        if self.gained:
            first = (
                f"{self.name} was taken: {told.format(self.errors[self.chosen])}, "
                f"{self.nested_error:.4g} with the choice repeated, where {self.nothing} has "
                f"{self.errors[0]:.4g}"
            )
        else:
            first = (
                f"nothing is gained by {self.by}: {self.nothing} is kept "
                f"({told.format(self.errors[0])}, at best {self.errors[best]:.4g} with "
                f"{self.names[best]})"
            )
        return "\n".join([first, *self._rows()])

    def _rows(self) -> list[str]:
        """A line for each candidate: error, its difference from Euclid's, seconds."""
        width = max(map(len, self.names))
        return [
            f"  {name:{width}}  {error:7.4f}  ({error - self.errors[0]:+.4f} ± {doubt:.4f})"
            + (f"  {taken:6.2f} s" if np.any(self.seconds) else "")
            for name, error, doubt, taken in zip(
                self.names, self.errors, self.standard_errors, self.seconds, strict=True
            )
        ]

    def plot(self) -> Any:
        """A figure of the held-out errors with their standard errors."""
        figure, axes = pyplot().subplots(layout="constrained")
        places = np.arange(len(self.names))
        axes.errorbar(self.errors, places, xerr=self.standard_errors, fmt="o", capsize=3)
        axes.axvline(self.errors[0], color="0.7", zorder=0)
        axes.set_yticks(places, self.names)
        axes.set(xlabel=f"{self.measure}, held out")
        return shown_once(figure)


@dataclass
class _Rows:
    """The losses of one learner: a row for Euclid's metric and one for every setting."""

    name: str
    settings: tuple[float, ...]
    losses: Array
    seconds: float

    def best(self, columns: Any) -> int:
        """The row that some of the samples speak for."""
        losses = self.losses[:, columns]
        if self.name == KTA.__name__:  # each λ is a model of its own
            return outvoting([losses])
        errors = losses[1:].mean(axis=1)  # mixtures of one model with Euclid's metric
        return 1 + int(np.flatnonzero(errors <= errors.min() + ROUNDED)[-1])


def choose_learner(
    samples: Array, classes: Indices, aligned: KTA, others: Sequence[ShrunkLearner], plain: bool
) -> CandidatePath | None:
    """The learner that the 3 nearest neighbours of held-out samples speak for.

    Every learner is fitted roughly to each part; mixtures of its metric with Euclid's are
    candidates as well. `plain` says whether Euclid's metric can be the answer. None where there
    are too few samples to hold out, or no time.
    """
    kept = np.flatnonzero(np.bincount(classes)[classes] >= 2 * FOLDS)
    named = np.unique(classes[kept], return_inverse=True)[1]
    if kept.size < FEWEST or named.max() == 0:
        return None
    trial = _Trial(samples[kept], named, samples.T @ samples)
    first = trial.alignment(aligned)
    if first is None:
        return None
    rows = [first]
    for learner in others:
        found = None if clock.interrupted() else trial.mixtures(learner, samples)
        rows += [] if found is None else [found]
    rows.sort(key=lambda one: PREFERENCE.index(one.name))
    return _path(rows, plain)


class _Trial:
    """Samples in parts, to which all learners are fitted in turn."""

    def __init__(self, points: Array, classes: Indices, gram: Array) -> None:
        self.points, self.classes, self.gram = points, classes, gram
        keys, count = sample_keys(points), classes.size
        repeats = min(MOST_REPEATS, -(-VOTES // count))
        self.folds = splits(keys, classes, _folds(count), points.shape[1], repeats)
        self.units: list[float] = []

    def alignment(self, learner: KTA) -> _Rows | None:
        """Euclid's metric, and KTA's by the λ of its path."""

        def losses(split: Split) -> list[Array]:
            factors = [learner._fit(*self._part(split), units=u).components_.T for u in PATH]
            return self._votes(
                split, Candidates([self._plain(learner), *factors], np.eye(1 + len(PATH)))
            )

        found = self._judged(KTA.__name__, PATH, losses)
        if found is not None:
            self.units = [self._weight(found, split) for split in self.folds]
        return found

    def _plain(self, learner: KTA) -> Array | None:
        """A factor of Euclid's metric, or its leading directions where few are asked for."""
        if learner.n_components is None:
            return None
        identity = np.eye(len(self.gram))
        return principal_columns(identity, self.gram)[:, : learner.n_components]

    def _weight(self, found: _Rows, split: Split) -> float:
        """KTA's λ that the samples outside of a held-out part choose; all where none are."""
        judged_samples = np.unique(np.concatenate([one.held for one in self.folds]))
        outside = ~np.isin(judged_samples, split.held)
        row = found.best(outside if outside.any() else slice(None))
        return 0.0 if row == 0 else found.settings[row - 1]

    def mixtures(self, learner: ShrunkLearner, samples: Array) -> _Rows | None:
        """The mixtures of a learner's metric with Euclid's, Euclid's itself first."""
        fixed = {"time_limit": None, **_amounts(learner, samples)}
        units = iter(self.units)

        def losses(split: Split) -> list[Array]:
            part = self._part(split)
            near = min(learner.n_neighbors, int(np.bincount(part[1]).min()) - 1)
            fit = learner._rough(
                lambda inner: inner.set_params(n_neighbors=near).fit(*part), fixed, next(units)
            )
            return self._votes(split, learner._candidates(fit, self.gram))

        found = self._judged(type(learner).__name__, SHARES[1:], losses)
        if found is not None and learner.rank is not None:  # a mixture would have full rank
            return replace(found, settings=SHARES[-1:], losses=found.losses[[0, -1]])
        return found

    def _part(self, split: Split) -> tuple[Array, Indices]:
        return self.points[split.kept], self.classes[split.kept]

    def _votes(self, split: Split, candidates: Candidates) -> list[Array]:
        if clock.interrupted():
            raise KeyboardInterrupt
        return of_neighbours(self.points, self.classes, split, candidates)

    def _judged(
        self, name: str, settings: tuple[float, ...], losses: Callable[[Split], list[Array]]
    ) -> _Rows | None:
        """The losses on all parts; None where the time ended before, or a part was refused."""
        started = clock.now()
        clock.phase(f"held-out neighbours for {name}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = judged(self.folds, losses)
        except ValueError:  # a part may lack what the learner needs: no pair, no spread
            return None
        if found is None or found[0].shape[1] < sum(split.held.size for split in self.folds):
            return None
        votes = per_sample(found[0], self.folds)
        return _Rows(name, settings, votes, clock.elapsed(started))


def _amounts(learner: Any, samples: Array) -> dict[str, float]:
    """The ridge and the floor for all samples, which parts of them are to have as well."""
    if hasattr(learner, "_amounts"):
        found: dict[str, float] = learner._amounts(samples)
        return found
    return {"ridge": ridge_for(learner.ridge, samples)}


def _path(rows: list[_Rows], plain: bool) -> CandidatePath:
    """The table of the learners, each with its best setting, and the choice."""
    table, places = _table(rows, slice(None))
    settings = [r.settings[k - 1] if k > 0 else 0.0 for r, k in zip(rows, places, strict=True)]
    size = table.shape[1]
    return CandidatePath(
        "learner",
        np.arange(len(table), dtype=float),
        table.mean(axis=1),
        _taken(table, plain),
        NEIGHBOUR_ERROR,
        size,
        PLAIN,
        names=(PLAIN, *(found.name for found in rows)),
        settings=np.array([np.nan, *settings]),
        standard_errors=(table - table[0]).std(axis=1) / np.sqrt(size),
        seconds=np.array([0.0, *(found.seconds for found in rows)]),
        nested_error=nested_error(
            size, lambda columns: _table(rows, columns)[0], lambda losses: _taken(losses, plain)
        ),
    )


def _table(rows: list[_Rows], columns: Any) -> tuple[Array, list[int]]:
    """The losses of Euclid's metric and of each learner at the setting that some samples choose,
    and the rows of those settings."""
    places = [found.best(columns) for found in rows]
    best = [found.losses[place] for found, place in zip(rows, places, strict=True)]
    return np.array([rows[0].losses[0], *best]), places


def nested_error(
    size: int, table_of: Callable[[Any], Array], choose: Callable[[Array], int]
) -> float:
    """The error of a choice: each part of the samples is judged by the row that the others choose.

    `table_of` gives the losses of the candidates, a row each, with settings chosen by some samples.
    """
    lost = np.empty(size)
    for part in range(PARTS):
        inside = np.arange(size) % PARTS == part
        table = table_of(~inside)
        lost[inside] = table[choose(table[:, ~inside])][inside]
    return float(lost.mean())


def _taken(losses: Array, plain: bool) -> int:
    """The first learner that is nearly as good as the best, if that is better than Euclid's metric.

    Where Euclid's metric is no answer (`plain` is False) it is not compared with.
    """
    best = 1 + int(np.argmin(losses[1:].mean(axis=1)))
    gain, error = difference([losses], 0, best)
    if plain and gain <= GAIN_IN_STANDARD_ERRORS * error:
        return 0
    for place in range(1, best):
        behind, error = difference([losses], place, best)
        if behind <= CLOSE_IN_STANDARD_ERRORS * error:
            return place
    return best
