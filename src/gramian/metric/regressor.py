"""k-nearest-neighbour regression in a metric aligned with numeric targets."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.arrays.samples import check_size, naming_text, refuse_masked
from gramian.common import clock
from gramian.common.parameters import COUNT, TOLERANCE, one_of
from gramian.common.types import Array
from gramian.estimators.candidates import candidate_path
from gramian.estimators.fitting import settle, solve
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.path import earned
from gramian.estimators.persistence import Kept
from gramian.metric._evidence import (
    FEWEST,
    PLAIN,
    ROUGH,
    TIME_SHARE,
    Split,
    folds_for,
    mean_losses,
    repeats_for,
    sample_keys,
    splits,
)
from gramian.metric._selection import PATH
from gramian.metric._view import by_keys, principal_view
from gramian.neighbours import nearest
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import Moments
from gramian.reductions.base import Substitution

TARGETS = ("linear", "rbf")

LANDMARKS = 12
"""Quantiles of the targets from which their RBF kernel is interpolated."""


@with_parameters
class MetricRegressor(
    SolverParameters,
    Kept,
    RegressorMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """k-nearest-neighbours regression in a metric learned from numeric targets.

    Solves min ‖M − I‖² + λ‖XMXᵀ − T‖² over M ⪰ 0 (`KTA`), X minus its mean at unit mean square and
    T a kernel of the targets: yyᵀ, or an RBF kernel of |y_i − y_j|. The kernel and λ are selected
    by the errors of the k nearest neighbours on held-out samples; the Euclidean metric is used if
    none is significantly better. Features of different units should be standardised.

    Parameters
    ----------
    n_neighbors : int
        k; all samples if there are fewer.
    weights : {"uniform", "distance"}
        Equal weights, or weights by inverse distance.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ of M = LLᵀ.
    path_ : CandidatePath
        The candidates, their held-out squared errors (in units of the variance of the targets, so
        that 1 − error is about R²) and the choice. Missing with fewer than 20 samples.
    result_, certificate_, n_iter_, n_features_in_, feature_names_in_ :
        As in the metric learners.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from gramian.metric import MetricRegressor
    >>> X, y = make_friedman1(300, random_state=0)
    >>> plain, learned = (
    ...     model.fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    ...     for model in (KNeighborsRegressor(), MetricRegressor())
    ... )
    >>> learned > plain + 0.05
    True
    """

    n_neighbors: int = 5
    weights: str = "uniform"

    _rules: ClassVar = {
        "n_neighbors": COUNT,
        "weights": one_of("uniform", "distance"),
        "tol": TOLERANCE,
    }

    def fit(self, X: Any, y: ArrayLike) -> MetricRegressor:
        """Learn the metric, and store the mapped samples.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : numbers of shape (n_samples,)
        """
        self._check_parameters()
        refuse_masked(X, "X")
        _refuse_names(y)
        with naming_text(X):
            X, numbers = validate_data(
                self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
            )
        check_size(X, "X")
        self.__dict__.pop("path_", None)
        order = np.lexsort((numbers, *X.T))  # the fit does not depend on the order
        X, targets = X[order], np.asarray(numbers, dtype=float)[order]
        span, keyed = by_keys(principal_view(X, type(self).__name__))
        size = float(np.sqrt(np.mean(span.X**2))) or 1.0
        scaled = targets[keyed] - targets.mean()
        scaled /= np.abs(scaled).max() or 1.0  # squares neither overflow nor vanish
        kind, units = self._chosen(span.X / size, scaled)
        problem = _problem(span.X / size, scaled, kind, units)
        result = solve(self, problem)
        settle(self, result)
        self.components_ = np.ascontiguousarray(
            Substitution(span.matrix).factor(result.factor).T / size
        )
        self._n_features_out = self.components_.shape[0]
        self.mapped_, self.targets_ = X @ self.components_.T, targets
        return self

    def transform(self, X: Any) -> Array:
        """Map samples to Lᵀx, where Euclidean distance is the learned metric."""
        check_is_fitted(self)
        refuse_masked(X, "X")
        with naming_text(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        check_size(X, "X", least=0.0)
        return np.asarray(X @ self.components_.T)

    def predict(self, X: Any) -> Array:
        """The mean target of the nearest samples."""
        mapped = np.asarray(self.transform(X))  # scikit-learn may be set to return frames
        k = min(self.n_neighbors, len(self.targets_))
        near = KNeighborsRegressor(k, weights=self.weights).fit(self.mapped_, self.targets_)
        return np.asarray(near.predict(mapped))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the coefficient of determination, of the predictions.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : numbers of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        return float(super().score(X, y, sample_weight))

    def get_mahalanobis_matrix(self) -> Array:
        """M = LLᵀ as a dense (n_features, n_features) array."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def _chosen(self, samples: Array, y: Array) -> tuple[str, float]:
        """The target kernel and λ in units of 1/n², selected by held-out neighbours.

        λ = 0, the Euclidean metric, if there are too few samples to hold out.
        """
        spread = float(y.std())
        if y.size < FEWEST or not spread > 0:
            return TARGETS[0], 0.0
        alone, repeats = np.zeros(y.size, dtype=np.intp), repeats_for(y.size)
        folds = splits(sample_keys(samples), alone, folds_for(y.size), samples.shape[1], repeats)
        candidates = [(kind, units) for kind in TARGETS for units in PATH]

        def losses(split: Split) -> list[Array]:
            return [np.array([
                self._squares(samples, y / spread, split, *one)
                for one in ((TARGETS[0], 0.0), *candidates)
            ])]  # fmt: skip

        with clock.share(TIME_SHARE):
            table = mean_losses(folds, losses, complete=True)
        if table is None:
            return TARGETS[0], 0.0
        self.path_ = candidate_path(
            "target",
            table,
            lambda losses: earned([losses]),
            f"squared error of {self.n_neighbors} nearest neighbours",
            names=(PLAIN, *(f"{kind} target, λ = {units:g}" for kind, units in candidates)),
            settings=[0.0, *(units for _, units in candidates)],
        )
        chosen = self.path_.chosen
        return candidates[chosen - 1] if chosen > 0 else (TARGETS[0], 0.0)

    def _squares(self, samples: Array, y: Array, split: Split, kind: str, units: float) -> Array:
        """Squared errors of held-out samples in the metric of the others."""
        kept, held, among = samples[split.kept], samples[split.held], samples[split.reference]
        if units > 0:
            problem = _problem(kept, y[split.kept], kind, units)
            tol = max(self.tol, ROUGH)
            factor = solve(self, problem, tol=tol, progress=False).factor
            among, held = among @ factor, held @ factor
        k = min(self.n_neighbors, len(among))
        near = nearest(among, k, queries=held).indices
        return np.asarray((y[split.reference][near].mean(axis=1) - y[split.held]) ** 2)


def _refuse_names(y: Any) -> None:
    """Raise ValueError for masked targets, names of classes and dates."""
    refuse_masked(y, "y")
    values = np.asarray(y)
    text = values.dtype == object and any(isinstance(one, str) for one in values.ravel().tolist())
    if text or values.dtype.kind in "USmM":
        found = "text" if text or values.dtype.kind in "US" else "dates"
        raise ValueError(f"y must hold numbers, got {found}: MetricClassifier learns from classes")


def _problem(samples: Array, y: Array, kind: str, units: float) -> Problem:
    """Alignment with a kernel of the targets; λ is `units`/n², for samples of mean square 1."""
    features = _features(y, kind)
    centred = samples - samples.mean(axis=0)
    U, sizes, _ = np.linalg.svd(features, full_matrices=False)
    gram = Dense(centred.T @ centred, lower=0.0)
    trace = float(np.trace(gram.array))
    # T = YYᵀ with orthogonal columns Y = UΣ, whose squared norms replace class sizes
    data = Moments(gram, centred.T @ (U * sizes), sizes**2, trace)
    return kta_from_moments(data, units / len(y) ** 2)


def _features(y: Array, kind: str) -> Array:
    """Y of the target kernel YYᵀ: y itself, or an RBF kernel of y from a few quantiles of it."""
    spread = float(y.std()) or 1.0
    z = (y - y.mean()) / spread
    if kind == "linear":
        return z[:, None]
    marks = np.unique(np.quantile(z, np.linspace(0.02, 0.98, LANDMARKS)))
    values, vectors = np.linalg.eigh(np.exp(-0.5 * np.subtract.outer(marks, marks) ** 2))
    kept = values > 1e-6 * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])
    features: Array = np.exp(-0.5 * np.subtract.outer(z, marks) ** 2) @ root
    return features - features.mean(axis=0)
