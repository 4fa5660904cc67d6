"""k-nearest neighbours in a learned metric."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.arrays.samples import check_size, naming_text, refuse_masked
from gramian.certificate import Certificate
from gramian.common.parameters import COUNT, one_of
from gramian.common.types import Array
from gramian.estimators.parameters import with_parameters
from gramian.estimators.persistence import Kept
from gramian.metric._input import labelled_rows, plain_labels
from gramian.metric.auto_metric import AutoMetric
from gramian.result import Result


@with_parameters
class MetricClassifier(Kept, ClassifierMixin, BaseEstimator):
    """k-nearest-neighbours classification in a metric learned from the same samples.

    A metric learner and scikit-learn's `KNeighborsClassifier` in one estimator, for grids over the
    parameters of both: ``{"metric__lam": […], "n_neighbors": […]}``. There is no `sample_weight`,
    because a sample of weight 2 is not two neighbours. `KTA` and `LinearSeparation` accept weights,
    which are exact multiplicities there (``metric=KTA(class_weight="balanced")``).

    Parameters
    ----------
    metric : a metric learner of `gramian.metric`, optional
        A copy of it is fitted. By default ``AutoMetric()``, which selects a learner on held-out
        samples: ``metric_.path_`` is the table of its candidates.
    n_neighbors : int
        k; all samples if there are fewer.
    weights : {"uniform", "distance"}
        Equal votes, or votes weighted by inverse distance.

    Attributes
    ----------
    metric_ : the fitted metric learner
    classes_ : array of shape (n_classes,)
    result_, certificate_ :
        Those of the metric.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import MetricClassifier
    >>> A, B, a, b = train_test_split(*load_wine(return_X_y=True), random_state=0)
    >>> model = make_pipeline(StandardScaler(), MetricClassifier()).fit(A, a)
    >>> model.score(B, b) > 0.9
    True
    """

    metric: Any = None
    n_neighbors: int = 3
    weights: str = "uniform"

    _rules: ClassVar = {"n_neighbors": COUNT, "weights": one_of("uniform", "distance")}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: ArrayLike) -> MetricClassifier:
        """Learn the metric, and store the mapped samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        self._check_parameters()
        metric = AutoMetric() if self.metric is None else self.metric
        if isinstance(metric, type) or not hasattr(metric, "transform"):
            raise ValueError(
                "metric must be a metric learner such as gramian.metric.KTA(), or None, got "
                f"{metric!r}: for a fixed metric use sklearn.neighbors.KNeighborsClassifier"
            )
        self.metric_ = clone(metric).fit(X, y)
        self.n_features_in_ = self.metric_.n_features_in_
        names = getattr(self.metric_, "feature_names_in_", None)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if names is not None:
            self.feature_names_in_ = names
        mapped, classes = self._of_metric(X), np.asarray(plain_labels(y)).ravel()
        known = labelled_rows(classes)
        k = min(self.n_neighbors, int(known.sum()))
        self.neighbours_ = KNeighborsClassifier(k, weights=self.weights)
        self.neighbours_.fit(mapped[known], classes[known])
        self.classes_ = self.neighbours_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample."""
        mapped = self._mapped(X)
        return np.asarray(self.neighbours_.predict(mapped))

    def predict_proba(self, X: Any) -> Array:
        """The fraction of each class among the neighbours, in the order of `classes_`."""
        mapped = self._mapped(X)
        return np.asarray(self.neighbours_.predict_proba(mapped))

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """The accuracy of the predictions."""
        return float(super().score(X, y, sample_weight))

    @property
    def result_(self) -> Result:
        """The result of the solve of the metric."""
        return self.metric_.result_

    @property
    def certificate_(self) -> Certificate:
        """A bound on the distance of the metric from the optimum."""
        return self.metric_.certificate_

    def _mapped(self, X: Any) -> Any:
        """The samples mapped by the metric."""
        check_is_fitted(self)
        refuse_masked(X, "X")
        kinds = [np.float64, np.float32]
        with naming_text(X):
            samples = validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)
        check_size(samples, "X", least=0.0)
        return self._of_metric(X)

    def _of_metric(self, X: Any) -> Array:
        """The samples mapped by the metric, also if scikit-learn is set to return frames."""
        return np.asarray(self.metric_.transform(X))
