"""Shrinkage of a learned metric towards the Euclidean one, selected on held-out data.

M = (1 − α) M̂ + α c I, where M̂ is the certified optimum of the learner's problem and c gives both
parts the same mean square over the samples. α = 0 is the learned metric, α = 1 the Euclidean one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from gramian.arrays.dense import eigh
from gramian.common import clock
from gramian.common.parameters import SHARE, or_auto
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.constraints import check_class_sizes
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, least
from gramian.metric._base import principal_columns
from gramian.metric._evidence import (
    FEWEST,
    MANY,
    PAIR_ERROR,
    PLAIN,
    ROUGH,
    TIME_SHARE,
    TRIPLET_ERROR,
    Candidates,
    Split,
    Trial,
    folds_for,
    joined_pairs,
    judged,
    of_pairs,
    of_triplets,
    pair_splits,
    per_sample,
    sample_keys,
    splits,
)
from gramian.metric._input import check_triplets, in_content_order, touched
from gramian.metric._partial_fit import Update
from gramian.metric._view import by_keys, principal_view
from gramian.objectives.matrices import Dense
from gramian.reductions.base import Reduction, Substitution
from gramian.reductions.scatter_whitening import ScatterWhitening
from gramian.reductions.span import Span

SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
"""α, from the Euclidean to the learned metric."""


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


@with_parameters
class ShrunkLearner(Update):
    """A metric learner with the parameter `shrinkage`; sets `shrinkage_` and `path_`.

    Each `_shrink_by_…` selects α and returns a factor of a rough metric as a starting point, or
    None.

    Parameters
    ----------
    n_neighbors : int
        Number of target neighbours (of the same class) and of impostors (of other classes) of each
        sample.
    shrinkage : float in [0, 1] or "auto"
        α of M = (1 − α) M̂ + α c I, where M̂ is the optimum of the problem above and c I the multiple
        of the Euclidean metric with the same mean square over the samples: 0 is the model itself,
        1 the Euclidean metric. "auto" selects α by held-out neighbours, pairs or triplets; it is 0
        if there are too few samples to hold out. With a limited rank M̂ is the optimum of that rank,
        and M the directions of the mixture in which the mapped samples vary most (for α = 1 the
        principal directions).

    Attributes
    ----------
    shrinkage_ : float
        α. `result_` and `certificate_` are those of M̂.
    path_ : EvidencePath
        The candidates for α and their held-out errors, if shrinkage="auto" selected one; `print`
        shows the choice.
    """

    n_neighbors: int = 3
    shrinkage: float | str = "auto"
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {"shrinkage": or_auto(SHARE)}
    _rough_tol: ClassVar[float] = ROUGH

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        X, classes, _ = self._labelled(X, y)
        self._check(X.shape[0])
        check_class_sizes(classes, self.classes_, self.n_neighbors)
        X, classes, _, rows = self._in_order(X, classes)
        span = self._dense_view(X)
        if span.exact:
            span, order = by_keys(span)
            classes, rows = classes[order], rows[order]
        self._fit_labels(span, classes, rows)
        return self

    def _fit_labels(self, span: Span, classes: Indices, rows: Indices) -> None:
        """Fit to samples in the coordinates of the learner; `rows` are their rows in X.

        They are sorted by `sample_keys`, so that evenly spaced subsets do not depend on the order
        of the rows or rotations of the features.
        """
        raise NotImplementedError

    def _dense_view(self, X: Any) -> Span:
        """Dense samples along their principal axes."""
        return principal_view(X, type(self).__name__)

    def _amounts(self, samples: Array) -> dict[str, Any]:
        """Values of parameters for these samples that are also used for subsets."""
        return {"rank": self._limit(samples.shape[1])}

    def _shrink_by_labels(
        self, samples: Array, classes: Indices, units: float | None = None
    ) -> Array | None:
        """Select α by the neighbours of held-out samples; `units` is λ of the neighbour search."""
        if self._given_shrinkage():
            return None
        trial = Trial.of(samples, classes, device=self.device)
        if trial is None:
            return None
        named = trial.classes

        def fit(inner: Any, split: Split) -> Any:
            near = min(self.n_neighbors, int(np.bincount(named[split.kept]).min()) - 1)
            return inner.set_params(n_neighbors=near).fit(*trial.part(split))

        # A λ selected on all samples would use information of the held-out ones.
        shared = units if named.size > MANY else None
        return self._judge(samples, trial.folds, fit, trial.judge, NEIGHBOUR_ERROR, shared)

    def _shrink_by_pairs(
        self, samples: Array, similar: Indices, dissimilar: Indices
    ) -> Array | None:
        """Select α by the order of the distances of held-out pairs."""
        if self._given_shrinkage() or min(len(similar), len(dissimilar)) < FEWEST:
            return None
        pairs, alike = joined_pairs(similar, dissimilar)

        def fit(inner: Any, split: Split) -> Any:
            return inner.fit_pairs(pairs[split.kept], alike[split.kept], X=samples)

        def losses(split: Split, candidates: Candidates) -> list[Array]:
            return of_pairs(samples, pairs[split.held], alike[split.held], candidates)

        folds = pair_splits(samples, pairs, alike, folds_for(alike.size))
        return self._judge(samples, folds, fit, losses, PAIR_ERROR)

    def _shrink_by_triplets(self, samples: Array, triplets: Indices) -> Array | None:
        """Select α by the triplets of held-out anchors."""
        anchors, place = np.unique(triplets[:, 0], return_inverse=True)
        if self._given_shrinkage() or anchors.size < 2 * FEWEST:
            return None

        def fit(inner: Any, split: Split) -> Any:
            return inner.fit_triplets(triplets[np.isin(place, split.kept)], X=samples)

        def losses(split: Split, candidates: Candidates) -> list[Array]:
            return of_triplets(samples, triplets[np.isin(place, split.held)], candidates)

        alone = np.zeros(anchors.size, dtype=np.intp)
        folds = splits(sample_keys(samples)[anchors], alone, folds_for(anchors.size))
        return self._judge(samples, folds, fit, losses, TRIPLET_ERROR)

    def _given_shrinkage(self) -> bool:
        """Whether α is given or cannot be selected any more; it is 0 until it is selected."""
        self._forget("path_")
        self.shrinkage_ = 0.0 if self.shrinkage == "auto" else float(self.shrinkage)
        return self.shrinkage != "auto" or clock.interrupted()

    def _judge(
        self,
        samples: Array,
        folds: list[Split],
        fit: Callable[[Any, Split], Any],
        losses: Callable[[Split, Candidates], list[Array]],
        measure: str,
        units: float | None = None,
    ) -> Array | None:
        gram, rough, fixed = samples.T @ samples, list[Array](), self._amounts(samples)

        def judge(split: Split) -> list[Array]:
            with clock.share(TIME_SHARE):  # the rest is for the evaluation and the other folds
                rough.append(self._rough(lambda inner: fit(inner, split), fixed, units))
            if clock.interrupted():
                raise clock.EndedError
            return losses(split, self._candidates(rough[-1], gram))

        try:
            with clock.share(TIME_SHARE):
                found = judged(folds, judge)
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
        loose = {"tol": max(self.tol, self._rough_tol), "time_limit": None}
        kernel = {"kernel": None} if hasattr(self, "kernel") else {}
        inner = clone(self).set_params(**plain, **loose, **kernel, **fixed)
        inner._alignment_units = units
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            factor: Array = fit(inner).components_.T
        return factor

    def _candidates(self, factor: Array, gram: Array) -> Candidates:
        """The combinations with the Euclidean metric, or the leading directions of each if the
        rank is limited."""
        plain = np.eye(len(gram))
        k = self.n_components or self.rank
        if k is None or k >= len(gram):
            shares = np.array(SHARES)
            weights = np.column_stack([1 - shares, shares * _scale(factor, plain, gram)])
            return Candidates([factor, None], weights)
        wholes = (blended(factor, plain, gram, share) for share in SHARES)
        return Candidates.alone([principal_columns(whole, gram @ whole)[:, :k] for whole in wholes])

    def _begin(self, span: Span, rough: Array | None, within: Reduction) -> Array | None:
        """A starting factor: that of `init`, or the rough one, in the coordinates of a reduction
        within the span."""
        given = self._start(span.matrix)
        start = rough if given is None else given
        return None if start is None else within.coordinates(start)

    def _mixed(self, factor: Array, plain: Array, gram: Any) -> Array:
        """The metric shrunk towards the Euclidean one, which is used if the optimum is M = 0."""
        if not np.any(factor) and self.shrinkage == "auto":
            self.shrinkage_ = 1.0
            if hasattr(self, "path_"):
                self.path_ = replace(self.path_, chosen=0)
        elif not np.any(factor) and self.shrinkage_ == 0:
            warn(
                "the optimum is M = 0: no direction separates what was given, and transform "
                f'has a column of zeros: shrinkage="auto" would keep {PLAIN}',
            )
        return blended(factor, plain, gram, self.shrinkage_)

    def _shrunk(
        self, factor: Array, scatter: Array, white: ScatterWhitening, span: Span
    ) -> tuple[Array, Dense, Array]:
        """The metric of whitened samples Z shrunk towards the Euclidean one, their `scatter` ZᵀZ,
        and the map back to the features."""
        gram = Dense(scatter, lower=0.0)
        factor = self._mixed(factor, white.plain, gram)
        return factor, gram, Substitution(span.matrix).factor(white.matrix)


class TripletFits(ShrunkLearner):
    """A learner with `fit_triplets`."""

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> Self:
        """Learn the metric from triplets (anchor, same, other).

        Parameters
        ----------
        triplets : array of shape (n_triplets, 3, n_features), or (n_triplets, 3) indices in X
            Strings are labels of the index of the frame X.
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        samples, indices = self._tupled(triplets, X, 3)
        check_triplets(samples, indices)
        samples, indices = in_content_order(*touched(samples, indices))
        self._check(samples.shape[0])
        self._fit_triplets(self._dense_view(samples), indices[np.lexsort(indices.T[::-1])])
        return self

    def _fit_triplets(self, span: Span, triplets: Indices) -> None:
        """Fit to triplets of samples in the coordinates of the learner."""
        raise NotImplementedError
