"""Selection of a metric learner on held-out samples, with the same folds for all learners."""

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
    PLAIN,
    Candidates,
    Split,
    Trial,
    outvoting,
)
from gramian.metric._selection import PATH
from gramian.metric._shrinkage import FOLDS, SHARES, ShrunkLearner, _folds
from gramian.metric.kta import KTA

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

PREFERENCE = ("LMNN", "KTA", "LMNNEig", "DMLEig")
"""The order of learners; the first within a standard error of the best is chosen. Mean ranks on 28
data sets, 75 and 56 fits to 240 samples, original and with 30 noise features: 2.82 and 2.57, where
the best single learner has 3.00 and 2.82; with KTA first 2.89 and 2.46 against 2.96 and 2.86; with
the smallest error 3.14 and 2.66 against 2.95 and 2.75."""

VOTES, MOST_REPEATS = 200, 3
"""Folds are repeated until this number of samples was held out, at most this often."""

PARTS = 10
"""Parts of the held-out samples for the nested estimate."""

ROUNDED = 1e-12
"""Differences of mean errors that are rounding."""


@storable
@dataclass(frozen=True)
class CandidatePath(EvidencePath):
    """The candidate learners, their held-out errors, and the chosen one.

    `values` are the numbers of the candidates; the first is the Euclidean metric.

    Attributes
    ----------
    names : tuple of str
        The learners.
    settings : array
        The selected shrinkage of each learner; for KTA λ in units of 1/ḡ², ḡ the mean nonzero
        eigenvalue of XᵀX.
    standard_errors : array
        Standard errors of the differences from Euclid's error.
    seconds : array
        The time of the evaluation of each learner; 0 if it was not measured.
    nested_error : float
        An estimate of the error of the fitted metric that includes the selection: each part of the
        samples is classified by the candidate selected on the other parts.
    """

    names: tuple[str, ...] = ()
    settings: Array = ()  # type: ignore[assignment]
    standard_errors: Array = ()  # type: ignore[assignment]
    seconds: Array = ()  # type: ignore[assignment]
    nested_error: float = float("nan")

    @property
    def name(self) -> str:
        """The chosen learner."""
        return self.names[self.chosen]

    def __str__(self) -> str:
        best = int(np.argmin(self.errors))
        held = f"{self.measure} {{:.4g}} of {self.held_out} held out"
        if self.gained:
            first = (
                f"{self.name} was taken: {held.format(self.errors[self.chosen])}, "
                f"{self.nested_error:.4g} with the choice repeated, where {self.nothing} has "
                f"{self.errors[0]:.4g}"
            )
        else:
            first = (
                f"nothing is gained by {self.by}: {self.nothing} is kept "
                f"({held.format(self.errors[0])}, at best {self.errors[best]:.4g} with "
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
        """The row that some of the samples select."""
        losses = self.losses[:, columns]
        if self.name == KTA.__name__:  # each λ is a separate model
            return outvoting([losses])
        errors = losses[1:].mean(axis=1)  # mixtures of one model with Euclid's metric
        return 1 + int(np.flatnonzero(errors <= errors.min() + ROUNDED)[-1])


def choose_learner(
    samples: Array, classes: Indices, aligned: KTA, others: Sequence[ShrunkLearner], plain: bool
) -> CandidatePath | None:
    """The learner selected by the 3 nearest neighbours of held-out samples.

    Every learner is fitted roughly to each part; mixtures of its metric with Euclid's are
    candidates as well. `plain` if Euclid's metric is allowed. None if there are too few samples to
    hold out, or no time.
    """
    trial = Trial.of(samples, classes, 2 * FOLDS, _folds, repeats_of_choice)
    first = None if trial is None else _alignment(trial, aligned, samples)
    if trial is None or first is None:
        return None
    units = [_weight(first, trial, split) for split in trial.folds]
    rows = [first]
    for learner in others:
        found = None if clock.interrupted() else _mixtures(trial, learner, samples, units)
        rows += [] if found is None else [found]
    rows.sort(key=lambda one: PREFERENCE.index(one.name))
    return _path(rows, plain)


def repeats_of_choice(count: int) -> int:
    """How often the folds of this number of samples are repeated."""
    return min(MOST_REPEATS, -(-VOTES // count))


def _alignment(trial: Trial, learner: KTA, samples: Array) -> _Rows | None:
    """The Euclidean metric, or its leading directions, and KTA's for the λ of its path."""
    plain, k = None, learner.n_components
    if k is not None:
        plain = principal_columns(np.eye(samples.shape[1]), samples.T @ samples)[:, :k]

    def metrics(split: Split) -> Candidates:
        factors = [learner._fit(*trial.part(split), units=u).components_.T for u in PATH]
        return Candidates([plain, *factors], np.eye(1 + len(PATH)))

    return _judged(trial, KTA.__name__, PATH, metrics)


def _weight(found: _Rows, trial: Trial, split: Split) -> float:
    """KTA's λ selected by the samples outside of a held-out part, or by all if there are none."""
    judged_samples = np.unique(np.concatenate([one.held for one in trial.folds]))
    outside = ~np.isin(judged_samples, split.held)
    row = found.best(outside if outside.any() else slice(None))
    return 0.0 if row == 0 else found.settings[row - 1]


def _mixtures(
    trial: Trial, learner: ShrunkLearner, samples: Array, units: list[float]
) -> _Rows | None:
    """Euclid's metric, and the mixtures of a learner's metric with it."""
    fixed, gram, weights = learner._amounts(samples), samples.T @ samples, iter(units)

    def metrics(split: Split) -> Candidates:
        part = trial.part(split)
        near = min(learner.n_neighbors, int(np.bincount(part[1]).min()) - 1)
        factor = learner._rough(
            lambda inner: inner.set_params(n_neighbors=near).fit(*part), fixed, next(weights)
        )
        return learner._candidates(factor, gram)

    found = _judged(trial, type(learner).__name__, SHARES[1:], metrics)
    if found is not None and learner.rank is not None:  # a mixture would have full rank
        return replace(found, settings=SHARES[-1:], losses=found.losses[[0, -1]])
    return found


def _judged(
    trial: Trial, name: str, settings: tuple[float, ...], metrics: Callable[[Split], Candidates]
) -> _Rows | None:
    """The losses on all parts; None if the time ended before, or a part is invalid."""
    started = clock.now()
    clock.phase(f"held-out neighbours for {name}")

    def uninterrupted(split: Split) -> Candidates:
        found = metrics(split)
        if clock.interrupted():
            raise KeyboardInterrupt
        return found

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses = trial.votes(uninterrupted, complete=True)
    except ValueError:  # a part may lack what the learner needs: no pair, no variance
        return None
    return None if losses is None else _Rows(name, settings, losses, clock.elapsed(started))


def _path(rows: list[_Rows], plain: bool) -> CandidatePath:
    """The table of the learners, each with its best setting, and the choice."""
    table, places = _table(rows, slice(None))
    settings = [r.settings[k - 1] if k > 0 else 0.0 for r, k in zip(rows, places, strict=True)]
    return candidate_path(
        "learner",
        table,
        lambda losses: _taken(losses, plain),
        NEIGHBOUR_ERROR,
        names=tuple(found.name for found in rows),
        settings=[np.nan, *settings],
        seconds=[found.seconds for found in rows],
        table_of=lambda columns: _table(rows, columns)[0],
    )


def candidate_path(
    parameter: str,
    table: Array,
    choose: Callable[[Array], int],
    measure: str,
    *,
    names: tuple[str, ...],
    settings: Sequence[float],
    seconds: Sequence[float] | None = None,
    table_of: Callable[[Any], Array] | None = None,
) -> CandidatePath:
    """The path of a table of losses, whose first row is Euclid's metric and the others are named.

    `table_of` gives the table with settings selected by some of the samples.
    """
    size = table.shape[1]
    return CandidatePath(
        parameter,
        np.arange(len(table), dtype=float),
        table.mean(axis=1),
        choose(table),
        measure,
        size,
        PLAIN,
        names=(PLAIN, *names),
        settings=np.array(settings),
        standard_errors=(table - table[0]).std(axis=1) / np.sqrt(size),
        seconds=np.array([0.0, *(np.zeros(len(names)) if seconds is None else seconds)]),
        nested_error=nested_error(size, table_of or (lambda _: table), choose),
    )


def _table(rows: list[_Rows], columns: Any) -> tuple[Array, list[int]]:
    """The losses of Euclid's metric and of each learner at the setting selected by some samples,
    and the rows of those settings."""
    places = [found.best(columns) for found in rows]
    best = [found.losses[place] for found, place in zip(rows, places, strict=True)]
    return np.array([rows[0].losses[0], *best]), places


def nested_error(
    size: int, table_of: Callable[[Any], Array], choose: Callable[[Array], int]
) -> float:
    """The error of a choice: each part of the samples uses the row selected by the others."""
    lost = np.empty(size)
    for part in range(PARTS):
        inside = np.arange(size) % PARTS == part
        table = table_of(~inside)
        lost[inside] = table[choose(table[:, ~inside])][inside]
    return float(lost.mean())


def _taken(losses: Array, plain: bool) -> int:
    """The first learner nearly as good as the best, if that is better than Euclid's metric.

    There is no comparison with Euclid's metric if it is not allowed (`plain` is False).
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
