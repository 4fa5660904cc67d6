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
from gramian.common.parameters import one_of
from gramian.common.types import Array, Indices
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, earned, least
from gramian.linalg import leading_eigenpair
from gramian.metric._base import principal_columns
from gramian.metric._evidence import (
    FEWEST,
    PAIR_ERROR,
    PATH_FOLDS,
    PLAIN,
    Candidates,
    Split,
    Trial,
    joined_pairs,
    judged,
    of_pairs,
    outvoting,
    pair_splits,
    repeats_for,
    sample_keys,
    splits,
)
from gramian.metric._partial_fit import PartialFit
from gramian.metric._view import varying_view
from gramian.objectives.matrices import Dense, Scaled, SymmetricMatrix
from gramian.problem import Problem
from gramian.problems.local_metric import pair_scatter
from gramian.problems.metric import linear_separation_from_scatter, signed_scatter
from gramian.problems.moments import Moments, column_means, gram_of
from gramian.reductions.span import MATRICES, Span

STEPS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""λ in units of 2/‖L_S‖; 0 is the Euclidean metric."""


@with_parameters
class LinearSeparation(PartialFit):
    """Learn a metric that reduces distances within classes and increases those between classes.

    Solves min ‖M − I‖² + λ⟨L_S, M⟩ over M ⪰ 0 (LRO eq. 6), where ⟨L_S, M⟩ is the sum of d_M over
    the pairs within a class minus its sum over the pairs across classes. With fewer samples than
    features the problem is solved in their span, outside of which M = I; `components_` then
    contains the part within the span.

    Parameters
    ----------
    lam : float or "auto"
        The weight λ of the pairs; 0 gives the Euclidean metric. "auto" takes the best of a short
        path in units of 2/‖L_S‖ by held-out neighbours, or pairs, if it is significantly better
        than λ = 0; with a limited rank the best. (At one unit M is 0 along the direction that
        separates worst, or 2 along the one that separates best.) It is that unit if λ only changes
        the scale ("frobenius"), if there are too few samples to hold out, and with more than 3000
        features and samples.
    regularizer : {"identity", "frobenius"}
        ‖M − I‖² or ‖M‖². (With tr M this model is linear and has no minimum.)

    Attributes
    ----------
    lam_ : float
        The weight used.
    """

    _rules: ClassVar = {"regularizer": one_of("identity", "frobenius")}

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LinearSeparation:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        sample_weight : array of shape (n_samples,), optional
            Multiplicities: the optimum with weight 2 is that with the row twice, with weight 0 that
            without the row, for a given `lam`. Held-out samples of lam="auto" are not weighted.
        """
        X, classes, weights = self._weighed(X, y, sample_weight)
        self._check(X.shape[0])
        X, classes, weights, _ = self._in_order(X, classes, weights)
        # The scatter of pairs is invariant to translations, so centring does not change it.
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
            Strings are labels of the index of the frame X.
        same : booleans or ±1 of shape (n_pairs,)
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        if self.class_weight is not None:
            raise ValueError("class_weight requires classes: pairs have none")
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
        if not np.any(np.ptp(X, axis=0)):  # all samples are equal
            return None

        def metrics(split: Split) -> Candidates:
            part = np.unique(classes[split.kept], return_inverse=True)[1]
            counted = None if weights is None else weights[split.kept]
            return self._candidates(signed_scatter(X[split.kept], part, counted).dense(), X)

        folds = splits(sample_keys(X), classes, PATH_FOLDS, X.shape[1], repeats_for(classes.size))
        found = Trial(X, classes, folds, self.device).votes(metrics)
        choose = outvoting if self._limit(X.shape[1]) is None else least
        return self._chosen(None if found is None else [found], NEIGHBOUR_ERROR, choose)

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

        folds = pair_splits(X, pairs, alike, PATH_FOLDS)
        choose = earned if self._limit(X.shape[1]) is None else least
        return self._chosen(judged(folds, losses), PAIR_ERROR, choose)

    def _may_choose(self, view: Span) -> bool:
        self._forget("path_")
        return self.lam == "auto" and self.regularizer == "identity" and view.exact

    def _candidates(self, scatter: Array, X: Array) -> Candidates:
        """P₊(I − ½λL_S) for every λ, from one eigenbasis."""
        basis = eigh(scatter)
        unit = 2.0 / max(float(np.abs(basis[0]).max()), np.finfo(float).tiny)
        k = self._limit(X.shape[1])
        found = [_separating(basis, step * unit)[:, :k] for step in STEPS]
        if self.n_components is None and k is None:
            return Candidates.alone(found)
        gram = X.T @ X
        found[0] = np.eye(X.shape[1])  # λ = 0: the principal directions
        few = self.n_components or k
        return Candidates.alone([principal_columns(L, gram @ L)[:, :few] for L in found])

    def _chosen(
        self, losses: list[Array] | None, measure: str, choose: Callable[[Sequence[Array]], int]
    ) -> EvidencePath | None:
        if losses is None:
            return None
        return chosen_by(
            losses, STEPS, parameter="lam", measure=measure, nothing=PLAIN, choose=choose
        )

    def _fit_to(
        self,
        view: Span,
        scatter: SymmetricMatrix,
        unit: float,
        steps: EvidencePath | None,
        weights: Array | None = None,
    ) -> LinearSeparation:
        self.lam_ = unit if self.lam == "auto" else float(self.lam)
        if steps is not None:
            self.path_ = replace(steps, values=unit * steps.values)
            self.lam_ = self.path_.value
        problem = linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
        mean = None if view.centered and weights is None else column_means(view.X, weights)
        first = _separating(eigh(scatter.dense()), self.lam_) if clock.interrupted() else None

        def best(k: int) -> list[Array]:
            return [_separating(eigh(scatter.dense()), self.lam_)[:, :k]]

        self._solve(problem, gram_of(view.X, mean, weights), view.matrix, first, best)
        return self

    def _unit(self, scatter: Any) -> float:
        if self.lam != "auto":
            return 1.0
        ends = (leading_eigenpair(Scaled(scatter, s), tol=1e-3, random_state=0) for s in (1, -1))
        norm = max(end.value for end in ends)
        return 2.0 / norm if norm > 0 else 1.0

    def _problem_of(self, data: Moments, grams: Array) -> Problem:
        # L_S = Σ_c (2n_c − n) G_c − 2 Σ_c s_c s_cᵀ + ssᵀ, as in `signed_scatter`; s = 0 here
        weights = 2 * data.counts - data.counts.sum()
        signed = np.einsum("c,cij->ij", weights, grams) - 2 * data.sums @ data.sums.T
        scatter = Dense(0.5 * (signed + signed.T))
        self.lam_ = self._unit(scatter) if self.lam == "auto" else float(self.lam)
        return linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)


def _separating(basis: tuple[Array, Array], lam: float) -> Array:
    """A factor of P₊(I − ½λL_S), given the eigenvalues and eigenvectors of L_S.

    Its columns decrease, so that the leading ones are the optimum of a limited rank.
    """
    values, vectors = basis
    return vectors * np.sqrt(np.maximum(1.0 - 0.5 * lam * values, 0.0))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
