"""Selection of a metric learner on held-out samples, with the same folds for all learners."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.estimators.candidates import CandidatePath, candidate_path
from gramian.estimators.path import GAIN_IN_STANDARD_ERRORS, difference
from gramian.metric._base import principal_columns
from gramian.metric._evidence import (
    NEIGHBOUR_SHARE,
    PLAIN,
    Candidates,
    Split,
    Trial,
    other_shares,
)
from gramian.metric._selection import PATH
from gramian.metric._shrinkage import SHARES, ShrunkLearner
from gramian.metric.class_collapse import RIDGES, ClassCollapse
from gramian.metric.kta import KTA

Learner = ShrunkLearner | ClassCollapse
Metrics = Callable[[Split], Candidates]

ROUNDED = 1e-12
"""Largest difference of mean errors that counts as rounding."""


@dataclass(frozen=True)
class _Judged:
    """The losses of the candidates of one learner: a row for each setting."""

    name: str
    settings: tuple[float, ...]
    losses: Array
    seconds: float = 0.0

    def best(self, columns: Any = slice(None)) -> int:
        """The row of the smallest error on some of the samples; of equals, the last."""
        return int(_least(self.losses[:, columns])[-1])


def choose_learner(
    samples: Array, classes: Indices, aligned: KTA, others: Sequence[Learner], plain: bool
) -> CandidatePath | None:
    """The learner selected by the neighbours of held-out samples.

    Every learner is fitted to each part with a large tolerance and several settings: δ of
    `ClassCollapse`, α of mixtures with the Euclidean metric, λ of `KTA`. `plain` states whether the
    Euclidean metric is a candidate. None if there are too few samples to hold out, or no time.
    """
    trial = Trial.of(samples, classes, device=aligned.device)
    if trial is None:
        return None
    first = _judged(trial, aligned, (0.0, *PATH), _alignments(trial, aligned, samples))
    if first is None:
        return None
    try:
        weights = _weights(aligned, samples, classes)
    except clock.TimeUpError:
        return None
    found = [
        _Judged(PLAIN, (np.nan,), first.losses[:1]),
        replace(
            first, settings=tuple(first.settings[w] for w in weights), losses=first.losses[weights]
        ),
    ]
    units = [_weight(first, trial, split) for split in trial.folds]
    for learner in others:
        if clock.interrupted():
            break
        if isinstance(learner, ClassCollapse):
            judged = _judged(trial, learner, RIDGES, _collapses(trial, learner, samples))
        else:
            shares = SHARES[1:] if learner.rank is None else SHARES[-1:]  # mixtures have any rank
            metrics = _mixtures(trial, learner, samples, units, len(shares))
            judged = _judged(trial, learner, shares, metrics)
        found += [] if judged is None else [judged]
    return _path(found, plain)


def _alignments(trial: Trial, learner: KTA, samples: Array) -> Metrics:
    """The Euclidean metric, or its leading directions, and KTA's for the λ of its path."""
    plain, k = None, learner.n_components
    if k is not None:
        plain = principal_columns(np.eye(samples.shape[1]), samples.T @ samples)[:, :k]

    def metrics(split: Split) -> Candidates:
        factors = [learner._fit(*trial.part(split), units=u).components_.T for u in PATH]
        return Candidates([plain, *factors], np.eye(1 + len(PATH)))

    return metrics


def _weights(learner: KTA, samples: Array, classes: Indices) -> list[int]:
    """The places in (0, *PATH) of the λ that are candidates.

    With about as many samples as features the smallest variances are much smaller for all samples
    than for the parts of a trial, and a large λ, which stretches these directions, seems better
    than it is: 36 samples of 34 features (dermatology) had 48 % wrong by λ = 1e6 and 10 % by λ = 0.
    With fewer than two samples for each feature the candidate is the λ that `KTA` selects itself,
    on finer folds.
    """
    n, d = samples.shape
    if n >= 2 * d:
        return list(range(1, 1 + len(PATH)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = learner._fit(samples, classes)
    return [int(np.argmin(np.abs(np.array([0.0, *PATH]) - fitted.lam_ / fitted._unit)))]


def _weight(found: _Judged, trial: Trial, split: Split) -> float:
    """KTA's λ selected by the samples outside of a held-out part, or by all if there are none."""
    judged_samples = np.unique(np.concatenate([one.held for one in trial.folds]))
    outside = ~np.isin(judged_samples, split.held)
    return found.settings[found.best(outside if outside.any() else slice(None))]


def _mixtures(
    trial: Trial, learner: ShrunkLearner, samples: Array, units: list[float], count: int
) -> Metrics:
    """The last `count` mixtures of a learner's metric with the Euclidean one."""
    fixed, gram, weights = learner._amounts(samples), samples.T @ samples, iter(units)

    def metrics(split: Split) -> Candidates:
        part = trial.part(split)
        near = min(learner.n_neighbors, int(np.bincount(part[1]).min()) - 1)
        factor = learner._rough(
            lambda inner: inner.set_params(n_neighbors=near).fit(*part), fixed, next(weights)
        )
        found = learner._candidates(factor, gram)
        return replace(found, weights=found.weights[-count:])

    return metrics


def _collapses(trial: Trial, learner: ClassCollapse, samples: Array) -> Metrics:
    """The metrics of `ClassCollapse` for its path of δ."""
    k = min(learner.n_components or samples.shape[1], samples.shape[1])

    def metrics(split: Split) -> Candidates:
        return Candidates.alone(learner._maps(trial.samples, trial.classes, split.kept, k))

    return metrics


def _judged(
    trial: Trial, learner: Learner | KTA, settings: tuple[float, ...], metrics: Metrics
) -> _Judged | None:
    """The losses on all parts; None if the time is up, or if a part cannot be fitted."""
    name, started = type(learner).__name__, clock.now()
    clock.phase(f"held-out neighbours for {name}")

    def uninterrupted(split: Split) -> Candidates:
        found = metrics(split)
        if clock.interrupted():
            raise clock.EndedError
        return found

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses = trial.votes(uninterrupted, complete=True, loss=other_shares)
    except ValueError:  # a part may lack what the learner needs: no pair, no variance
        return None
    return None if losses is None else _Judged(name, settings, losses, clock.elapsed(started))


def _path(found: list[_Judged], plain: bool) -> CandidatePath:
    """The table of the learners, each with its best setting, and the choice."""

    def table(columns: Any = slice(None)) -> Array:
        return np.array([one.losses[one.best(columns)] for one in found])

    return candidate_path(
        "learner",
        table(),
        lambda losses: _taken(losses, plain),
        NEIGHBOUR_SHARE,
        names=tuple(one.name for one in found),
        settings=[one.settings[one.best()] for one in found],
        seconds=[one.seconds for one in found],
        table_of=table,
    )


def _taken(losses: Array, plain: bool) -> int:
    """The learner of the smallest error, if that is better than the Euclidean metric.

    There is no comparison with the Euclidean metric if it is not allowed (`plain` is False).
    """
    best = 1 + int(_least(losses[1:])[0])
    gain, error = difference([losses], 0, best)
    return 0 if plain and gain <= GAIN_IN_STANDARD_ERRORS * error else best


def _least(losses: Array) -> Indices:
    """The rows of the smallest mean, up to rounding."""
    errors = losses.mean(axis=1)
    return np.flatnonzero(errors <= errors.min() + ROUNDED)
