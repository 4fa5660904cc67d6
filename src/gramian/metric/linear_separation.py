"""Linear separation of pairs as a metric learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.dense import eigh
from gramian.common import clock
from gramian.common.memory import check_memory
from gramian.common.parameters import NOT_NEGATIVE, one_of, or_auto
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, earned
from gramian.linalg import leading_eigenpair
from gramian.metric._base import principal_columns
from gramian.metric._class_weight import CLASS_WEIGHT
from gramian.metric._evidence import (
    FEWEST,
    PAIR_ERROR,
    Candidates,
    Split,
    judged,
    of_neighbours,
    of_pairs,
    outvoting,
    per_sample,
    repeats_for,
    sample_keys,
    splits,
)
from gramian.metric._partial_fit import PartialSeparation
from gramian.metric._shrinkage import PLAIN, joined_pairs, pair_splits
from gramian.metric._view import varying_view
from gramian.objectives.matrices import Dense, Scaled, SymmetricMatrix
from gramian.problems.local_metric import pair_scatter
from gramian.problems.metric import linear_separation_from_scatter, signed_scatter
from gramian.problems.moments import column_means, gram_of
from gramian.reductions.span import MATRICES, Span

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

STEPS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""λ in units of 2/‖L_S‖, from doing nothing on."""

FOLDS = 5


@with_parameters
class LinearSeparation(PartialSeparation):
    """Learn the metric that draws pairs of a class together and pushes other pairs apart.

    Solves min ‖M − I‖² + λ⟨L_S, M⟩ over M ⪰ 0 (LRO eq. 6), where ⟨L_S, M⟩ is the sum of d_M over
    the pairs within a class less its sum over the pairs across. With fewer samples than features
    the problem is solved in their span, outside of which M = I; `components_` then holds the
    part within the span.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all. M itself, and the certificate, are those of the full metric.
    lam : float or "auto"
        The weight λ of the pairs; 0 is Euclid's metric. "auto" takes the best of a short path in
        units of 2/‖L_S‖ (where the direction that separates worst is just given up, or the one
        that separates best just doubled) by held-out neighbours, or pairs, and only what is
        clearly better than λ = 0. It is that unit where λ changes the scale alone
        ("frobenius"), where `rank` is given, where there is too little to hold out, and with
        more than 3000 features and samples.
    regularizer : {"identity", "frobenius"}
        ‖M − I‖² or ‖M‖². (With tr M this model is linear and has no minimum.)
    class_weight : "balanced" or dict, optional
        How often the samples of each class count, times `sample_weight`: "balanced" makes all
        classes count alike, n/(k n_c) for each of the n_c samples of one of k classes; a dict has
        weights by classes, 1 where it has none. Votes that choose lam="auto" count once.
    rank : int, optional
        The largest rank of M. F is minimised over factors with so many columns, from several
        starting maps (the optimum of any rank, cut; discriminants; principal directions), and the
        certificate compares with the optimum of any rank: it says what the limit can cost.
        With more than 3000 features and samples it is 40 by default.
    init : fitted metric learner, optional
        Start from its metric instead of from nothing.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples.
    lam_ : float
        The weight used.
    moments_ : dict
        The sums that `partial_fit` adds up, after it.
    path_ : EvidencePath
        The λ that were tried and their held-out errors, where lam="auto" found enough to hold
        out; `print` says what was chosen, and where nothing was gained.
    result_ : Result
    certificate_ : Certificate
        How far from the optimum M can be.
    classes_ : array
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.
    """

    lam: float | str = "auto"
    regularizer: str = "identity"
    class_weight: Any = None
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {
        "lam": or_auto(NOT_NEGATIVE),
        "regularizer": one_of("identity", "frobenius"),
        "class_weight": CLASS_WEIGHT,
    }

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LinearSeparation:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts: the optimum with weight 2 is that with the row twice, with
            weight 0 that without the row, for a given `lam`. What lam="auto" holds out counts once.
        """
        X, classes = self._labelled(X, y)
        X, classes, weights = self._weighed(X, classes, sample_weight)
        self._check(X.shape[0])
        X, classes, weights, _ = self._in_order(X, classes, weights)
        # The scatter of pairs does not change when the samples are shifted, so centring is free.
        view = varying_view(X, center=True)
        scatter = signed_scatter(view.X, classes, weights)
        unit = self._unit(scatter)
        steps = self._steps_by_labels(view, classes, weights)
        return self._fit_to(view, scatter, unit, steps, weights)

    def fit_pairs(self, pairs: Any, same: ArrayLike, *, X: Any = None) -> LinearSeparation:
        """Learn the metric from pairs that are the same or not, and the threshold of `predict`.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) indices of samples in X
        same : booleans or ±1 of shape (n_pairs,)
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        if self.class_weight is not None:
            raise ValueError("class_weight goes with classes: pairs have none")
        samples, similar, dissimilar, _ = self._paired(pairs, same, X)
        self._check(samples.shape[0])
        view = varying_view(samples, center=True)
        d = view.X.shape[1]
        check_memory(
            8 * MATRICES * d * d,
            f"LinearSeparation.fit_pairs works on {d} × {d} matrices",
            "reduce the features first, for example with sklearn.decomposition.TruncatedSVD",
        )
        both, alike = joined_pairs(similar, dissimilar)
        scatter = Dense(pair_scatter(view.X, both, weights=np.where(alike, 1.0, -1.0)))
        unit = self._unit(scatter)
        self._fit_to(view, scatter, unit, self._steps_by_pairs(view, both, alike))
        return self.calibrate(pairs, same, X=X)

    def _steps_by_labels(
        self, view: Span, classes: Indices, weights: Array | None
    ) -> EvidencePath | None:
        """λ in units of 2/‖L_S‖, by the neighbours of held-out samples."""
        if not self._may_choose(view) or classes.size < FEWEST:
            return None
        X = _dense(view.X)
        if not np.any(np.ptp(X, axis=0)):  # no direction to judge
            return None

        def losses(split: Split) -> list[Array]:
            part = np.unique(classes[split.kept], return_inverse=True)[1]
            counted = None if weights is None else weights[split.kept]
            scatter = signed_scatter(X[split.kept], part, counted).dense()
            return of_neighbours(X, classes, split, self._candidates(scatter, X))

        folds = splits(sample_keys(X), classes, FOLDS, X.shape[1], repeats_for(classes.size))
        found = judged(folds, losses)
        found = None if found is None else [per_sample(found[0], folds)]
        return self._chosen(found, NEIGHBOUR_ERROR, outvoting)

    def _steps_by_pairs(
        self, view: Span, pairs: Indices, alike: NDArray[np.bool_]
    ) -> EvidencePath | None:
        """λ in units of 2/‖L_S‖, by the order of the distances of held-out pairs."""
        if not self._may_choose(view) or min(alike.sum(), (~alike).sum()) < FEWEST:
            return None
        X, signs = _dense(view.X), np.where(alike, 1.0, -1.0)

        def losses(split: Split) -> list[Array]:
            kept, held = split.kept, split.held
            scatter = pair_scatter(X, pairs[kept], weights=signs[kept])
            return of_pairs(X, pairs[held], alike[held], self._candidates(scatter, X))

        folds = pair_splits(X, pairs, alike, FOLDS)
        return self._chosen(judged(folds, losses), PAIR_ERROR, earned)

    def _may_choose(self, view: Span) -> bool:
        self._forget("path_")
        free = self.lam == "auto" and self.regularizer == "identity" and self.rank is None
        return free and view.exact

    def _candidates(self, scatter: Array, X: Array) -> Candidates:
        """P₊(I − ½λL_S) for every λ, from one eigenbasis."""
        basis = eigh(scatter)
        unit = 2.0 / max(float(np.abs(basis[0]).max()), np.finfo(float).tiny)
        found = [_separating(basis, step * unit) for step in STEPS]
        if self.n_components is None:
            return Candidates.alone(found)
        gram = X.T @ X
        return Candidates.alone(
            [principal_columns(L, gram @ L)[:, : self.n_components] for L in found]
        )

    def _chosen(
        self, losses: list[Array] | None, measure: str, choose: Callable[[Sequence[Array]], int]
    ) -> EvidencePath | None:
        if losses is None:
            return None
        return chosen_by(
            losses,
            STEPS,
            parameter="lam",
            measure=measure,
            nothing=PLAIN,
            choose=choose,
        )

    def _fit_to(
        self,
        view: Span,
        scatter: SymmetricMatrix,
        unit: float,
        steps: EvidencePath | None,
        weights: Array | None = None,
    ) -> LinearSeparation:
        if steps is not None:
            self.path_ = replace(steps, values=unit * steps.values)
        self.lam_ = self._weight(unit)
        problem = linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
        mean = None if view.centered and weights is None else column_means(view.X, weights)
        first = _separating(eigh(scatter.dense()), self.lam_) if clock.interrupted() else None
        self._solve(problem, gram_of(view.X, mean, weights), view.matrix, first)
        return self

    def _weight(self, unit: float) -> float:
        if self.lam != "auto":
            return float(self.lam)
        return self.path_.value if hasattr(self, "path_") else unit

    def _unit(self, scatter: Any) -> float:
        if self.lam != "auto":
            return 1.0
        ends = (leading_eigenpair(Scaled(scatter, s), tol=1e-3, random_state=0) for s in (1, -1))
        norm = max(end.value for end in ends)
        return 2.0 / norm if norm > 0 else 1.0


def _separating(basis: tuple[Array, Array], lam: float) -> Array:
    """A factor of P₊(I − ½λL_S), given the eigenvalues and eigenvectors of L_S."""
    values, vectors = basis
    return vectors * np.sqrt(np.maximum(1.0 - 0.5 * lam * values, 0.0))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
