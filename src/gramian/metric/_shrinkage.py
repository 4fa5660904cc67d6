"""Shrinkage of a learned metric towards the Euclidean one, selected on held-out data.

M = (1 − α) M̂ + α c I, where M̂ is the certified optimum of the learner's problem and c gives both
parts the same mean square over the samples. α = 0 is the learned metric, α = 1 the Euclidean one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gramian.arrays.dense import eigh
from gramian.common import clock
from gramian.common.parameters import SHARE, or_auto
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, least
from gramian.metric._base import MetricLearner, principal_columns
from gramian.metric._evidence import (
    FEWEST,
    MANY,
    PAIR_ERROR,
    TRIPLET_ERROR,
    Candidates,
    Split,
    judged,
    of_neighbours,
    of_pairs,
    of_triplets,
    per_sample,
    repeats_for,
    sample_keys,
    splits,
)
from gramian.metric._view import principal_view
from gramian.objectives.matrices import Dense
from gramian.reductions.base import Reduction, Substitution
from gramian.reductions.scatter_whitening import ScatterWhitening
from gramian.reductions.span import Span

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

Metrics = Callable[[Callable[[Any], Any]], Candidates]
"""From a fit of a rough metric to all candidates."""

SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
"""α, from the Euclidean to the learned metric."""

FOLDS, FEW_FOLDS, ENOUGH = 3, 2, 400
"""Number of folds with few samples, and with at least `ENOUGH`."""

ROUGH = 1e-2
"""The tolerance of metrics for selection only."""

JUDGED = 0.5
"""Fraction of the remaining time for the selection of α, and of that for the fit of a fold."""

PLAIN = "Euclid's metric"


def blended(factor: Array, plain: Array, gram: Any, share: float) -> Array:
    """A factor of (1 − α)LLᵀ + αcEEᵀ, E that of the Euclidean metric in the same coordinates."""
    if share == 0:
        return factor
    scale = _scale(factor, plain, gram)
    parts = (1 - share) * factor @ factor.T + share * scale * plain @ plain.T
    values, vectors = eigh(0.5 * (parts + parts.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _scale(factor: Array, plain: Array, gram: Any) -> float:
    """c such that c times the Euclidean metric has the same mean square over the samples."""
    size, own = (float(np.sum(F * (gram @ F))) for F in (factor, plain))
    return size / own if size > 0 and own > 0 else 1.0


class ShrunkLearner(MetricLearner):
    """A metric learner with the parameter `shrinkage`; sets `shrinkage_` and `path_`.

    Each `_shrink_by_…` selects α and returns a factor of a rough metric as a starting point, or
    None. `fixed` are parameters shared by subsets of the samples, such as λ of the alignment for
    the neighbour search, in its units.
    """

    _rules: ClassVar = {"shrinkage": or_auto(SHARE)}
    _rough_tol: ClassVar[float] = ROUGH

    aligned_by: float | None = None
    """That λ, if it was set for this subset."""

    def _arranged(self, X: Any, classes: Indices) -> tuple[Span, Indices, Indices]:
        """Samples in the coordinates of the learner, their classes, and their rows in X.

        They are sorted by `sample_keys`, which do not depend on the order of the rows or rotations
        of the features: evenly spaced subsets are then invariant, too.
        """
        X, classes, _, rows = self._in_order(X, classes)
        span = self._dense_view(X)
        if not span.exact:
            return span, classes, rows
        span, order = by_keys(span)
        return span, classes[order], rows[order]

    def _dense_view(self, X: Any) -> Span:
        """Dense samples along their principal axes."""
        return principal_view(X, type(self).__name__)

    def _shrink_by_labels(
        self, samples: Array, classes: Indices, *, units: float | None = None, **fixed: Any
    ) -> Array | None:
        """Select α by the neighbours of held-out samples."""
        # A class too small for every fold is only excluded from the evaluation.
        judged = np.flatnonzero(np.bincount(classes)[classes] >= 2 * FOLDS)
        named = np.unique(classes[judged], return_inverse=True)[1]
        if self._given_shrinkage() or judged.size < FEWEST or named.max() == 0:
            return None
        points = samples[judged]

        def losses(split: Split, metrics: Metrics) -> list[Array]:
            least = int(np.bincount(named[split.kept]).min())
            near = {"n_neighbors": min(self.n_neighbors, least - 1)}
            part = points[split.kept], named[split.kept]
            candidates = metrics(lambda inner: inner.set_params(**near).fit(*part))
            return of_neighbours(points, named, split, candidates)

        repeats = repeats_for(named.size)
        folds = splits(sample_keys(points), named, _folds(named.size), points.shape[1], repeats)
        # A λ selected on all samples would use information of the held-out ones.
        shared = units if named.size > MANY else None
        return self._judge(samples, folds, losses, NEIGHBOUR_ERROR, fixed, shared)

    def _shrink_by_pairs(
        self, samples: Array, similar: Indices, dissimilar: Indices, **fixed: Any
    ) -> Array | None:
        """Select α by the order of the distances of held-out pairs."""
        if self._given_shrinkage() or min(len(similar), len(dissimilar)) < FEWEST:
            return None
        pairs, alike = joined_pairs(similar, dissimilar)

        def losses(split: Split, metrics: Metrics) -> list[Array]:
            part, same = pairs[split.kept], alike[split.kept]
            candidates = metrics(lambda inner: inner.fit_pairs(part, same, X=samples))
            return of_pairs(samples, pairs[split.held], alike[split.held], candidates)

        folds = pair_splits(samples, pairs, alike, _folds(alike.size))
        return self._judge(samples, folds, losses, PAIR_ERROR, fixed)

    def _shrink_by_triplets(self, samples: Array, triplets: Indices, **fixed: Any) -> Array | None:
        """Select α by the triplets of held-out anchors."""
        anchors, place = np.unique(triplets[:, 0], return_inverse=True)
        if self._given_shrinkage() or anchors.size < 2 * FEWEST:
            return None

        def losses(split: Split, metrics: Metrics) -> list[Array]:
            used, left = (triplets[np.isin(place, part)] for part in (split.kept, split.held))
            candidates = metrics(lambda inner: inner.fit_triplets(used, X=samples))
            return of_triplets(samples, left, candidates)

        alone = np.zeros(anchors.size, dtype=np.intp)
        folds = splits(sample_keys(samples)[anchors], alone, _folds(anchors.size))
        return self._judge(samples, folds, losses, TRIPLET_ERROR, fixed)

    def _check_sizes(self, n_samples: int) -> None:
        super()._check_sizes(n_samples)
        if self.shrinkage != "auto":
            self._refuse_full_rank("shrinkage", float(self.shrinkage), n_samples)

    def _refuse_full_rank(self, name: str, amount: float, n_samples: int) -> None:
        """Raise ValueError for a combination with a full-rank metric if the rank is limited."""
        limited = self.rank is not None and self.rank < self._most_directions(n_samples)
        if amount > 0 and limited:
            raise ValueError(
                f"{name}={amount:g} makes a metric of full rank, and rank={self.rank} is asked "
                f"for: pass {name}=0, or n_components={self.rank} instead of the rank"
            )

    def _given_shrinkage(self) -> bool:
        """Whether α is given or cannot be selected any more; it is 0 until it is selected."""
        self._forget("path_")
        limited = self.shrinkage == "auto" and self.rank is not None
        self.shrinkage_ = 0.0 if self.shrinkage == "auto" else float(self.shrinkage)
        return limited or self.shrinkage != "auto" or clock.interrupted()

    def _judge(
        self,
        samples: Array,
        folds: list[Split],
        losses: Callable[[Split, Metrics], list[Array]],
        measure: str,
        fixed: dict[str, Any],
        units: float | None = None,
    ) -> Array | None:
        gram, rough = samples.T @ samples, []

        def metrics(fit: Callable[[Any], Any]) -> Candidates:
            with clock.share(JUDGED):  # the rest is for the evaluation and the other folds
                factor = self._rough(fit, {"time_limit": None, **fixed}, units)
            rough.append(factor)
            if clock.interrupted():
                raise KeyboardInterrupt
            return self._candidates(factor, gram)

        try:
            with clock.share(JUDGED):
                found = judged(folds, lambda split: losses(split, metrics))
        except ValueError:  # a subset may be invalid: no pair, no variance
            return None
        if found is not None:
            if measure == NEIGHBOUR_ERROR:
                found = [per_sample(part, folds) for part in found]
            self.path_: EvidencePath = chosen_by(
                found, SHARES, parameter="shrinkage", measure=measure, nothing=PLAIN, choose=least
            )
            self.shrinkage_ = self.path_.value
        return rough[-1] if rough and np.any(rough[-1]) else None  # 0 after a time limit

    def _rough(
        self, fit: Callable[[Any], Any], fixed: dict[str, Any], units: float | None
    ) -> Array:
        """A factor of the metric without shrinkage, to a rough tolerance."""
        plain = {"shrinkage": 0.0, "n_components": None, "init": None, "progress": False}
        loose = {"tol": max(self.tol, self._rough_tol)}
        kernel = {"kernel": None} if hasattr(self, "kernel") else {}
        inner = clone(self).set_params(**plain, **loose, **kernel, **fixed)
        inner.aligned_by = units
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            factor: Array = fit(inner).components_.T
        return factor

    def _candidates(self, factor: Array, gram: Array) -> Candidates:
        """The combinations with the Euclidean metric, or the leading directions of each if
        `n_components` is small."""
        plain = np.eye(len(gram))
        if self.n_components is None:
            shares = np.array(SHARES)
            weights = np.column_stack([1 - shares, shares * _scale(factor, plain, gram)])
            return Candidates([factor, None], weights)
        wholes = (blended(factor, plain, gram, share) for share in SHARES)
        return Candidates.alone(
            [principal_columns(whole, gram @ whole)[:, : self.n_components] for whole in wholes]
        )

    def _begin(self, span: Span, rough: Array | None, within: Reduction) -> Array | None:
        """A starting factor: that of `init`, or the rough one, in the coordinates of a reduction
        within the span."""
        given = self._start(span.matrix)
        start = rough if given is None else given
        return None if start is None else within.coordinates(start)

    def _mixed(self, factor: Array, plain: Array, gram: Any) -> Array:
        """The metric shrunk towards the Euclidean one, which is used if the optimum is M = 0."""
        if not np.any(factor) and self.shrinkage == "auto" and self.rank is None:
            self.shrinkage_ = 1.0
            if hasattr(self, "path_"):
                self.path_ = replace(self.path_, chosen=0)
        elif not np.any(factor) and self.shrinkage_ == 0:
            warnings.warn(
                "the optimum is M = 0, for no direction speaks for what was given, and transform "
                f'has a column of zeros: shrinkage="auto" without a rank would keep {PLAIN}',
                stacklevel=4,
            )
        return blended(factor, plain, gram, self.shrinkage_)

    def _shrunk(
        self, factor: Array, Z: Array, white: ScatterWhitening, span: Span
    ) -> tuple[Array, Dense, Array]:
        """The metric of whitened samples Z shrunk towards the Euclidean one, the scatter of Z, and
        the map back to the features."""
        gram = Dense(Z.T @ Z, lower=0.0)
        factor = self._mixed(factor, white.plain, gram)
        return factor, gram, Substitution(span.matrix).factor(white.matrix)


def by_keys(span: Span) -> tuple[Span, Indices]:
    """The samples sorted by their keys, and the order."""
    order = np.argsort(sample_keys(span.X), kind="stable")
    return replace(span, X=span.X[order]), order


def joined_pairs(similar: Indices, dissimilar: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """All pairs, and the mask of similar ones."""
    alike = np.repeat([True, False], [len(similar), len(dissimilar)])
    return np.vstack([similar, dissimilar]), alike


def pair_splits(
    samples: Array, pairs: Indices, alike: NDArray[np.bool_], folds: int
) -> list[Split]:
    """Splits of pairs, in an order determined by their samples."""
    keys = sample_keys(samples)[pairs].sum(axis=1)
    return splits(keys, alike.astype(np.intp), folds)


def _folds(count: int) -> int:
    return FOLDS if count < ENOUGH else FEW_FOLDS
