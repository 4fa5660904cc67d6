"""Distances, scores and decisions for pairs."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.arrays.errstate import OwnErrstate, under_own_errstate
from gramian.arrays.samples import check_size, naming_text, real_numbers, refuse_masked
from gramian.common.types import Array
from gramian.estimators.row_names import numbered, row_names
from gramian.maps import PairDistances
from gramian.metric._input import blocks, marks, tuples, vectors


def _calibrated(learner: Any) -> bool:
    if not hasattr(learner, "threshold_"):
        raise AttributeError(
            "there is no threshold to predict with yet: call calibrate(pairs, same), or fit from "
            "pairs with fit_pairs"
        )
    return True


class Verification(OwnErrstate):
    """Distances, scores and decisions for pairs, given the map to a Euclidean space."""

    n_features_in_: int
    _mapping: Callable[[], Callable[[Any], Array]]

    def _mapped(self, X: Any) -> Array:
        return self._mapping()(X)

    def pair_distance(self, pairs: Any, *, X: Any = None) -> Array:
        """√d_M(x, z) for each pair.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) indices of samples in X
            Strings are labels of the index of the frame X.
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        check_is_fitted(self)
        if X is not None:
            refuse_masked(X, "X")
            pairs = numbered(pairs, row_names(X), "pairs")
            kinds = [np.float64, np.float32]
            with naming_text(X):
                X = validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)
            check_size(X, "X", least=0.0)
            X, indices = tuples(pairs, X, 2)
            Z = self._mapped(X)
            return np.sqrt(np.maximum(PairDistances(indices, Z.shape[0]).bilinear(Z, Z), 0.0))
        points = vectors(pairs, 2)
        check_size(points, "pairs", least=0.0)
        self._check_width(points.shape[2], "pairs")
        found = np.empty(points.shape[0])
        for rows in blocks(points.shape[0], 2 * points.shape[2]):
            gap = self._mapped(points[rows, 0]) - self._mapped(points[rows, 1])
            found[rows] = np.linalg.norm(gap, axis=1)
        return found

    def pair_score(self, pairs: Any, *, X: Any = None) -> Array:
        """Minus the distance of each pair: higher is more similar, as for ROC curves."""
        return -self.pair_distance(pairs, X=X)

    def calibrate(
        self,
        pairs: Any,
        same: ArrayLike,
        *,
        X: Any = None,
        max_false_positive_rate: float | None = None,
    ) -> Any:
        """Set `threshold_`, the distance up to which `predict` classifies a pair as the same.

        Pairs that were not used in the fit give a better threshold.

        Parameters
        ----------
        pairs, X :
            As in `pair_distance`.
        same : booleans or ±1 of shape (n_pairs,)
            `predict` returns the same type.
        max_false_positive_rate : float in [0, 1], optional
            The largest fraction of different pairs classified as the same; by default the
            threshold minimises the number of errors.
        """
        distances = self.pair_distance(pairs, X=X)
        return self._calibrate(distances, same, max_false_positive_rate)

    def _calibrate(self, distances: Array, same: ArrayLike, rate: float | None = None) -> Any:
        alike = marks(same, distances.size)
        if alike.all() or not alike.any():
            raise ValueError("a threshold needs pairs that are the same and pairs that are not")
        self.threshold_ = threshold(distances, alike, rate)
        boolean = np.asarray(same).dtype == bool
        self.same_values_ = np.array([False, True]) if boolean else np.array([-1, 1])
        return self

    @available_if(_calibrated)
    def predict(self, pairs: Any, *, X: Any = None) -> NDArray[Any]:
        """Whether each pair is the same: booleans or ±1, like the labels of `calibrate`.

        Parameters are those of `pair_distance`.
        """
        alike = self.pair_distance(pairs, X=X) <= self.threshold_
        return self.same_values_[alike.astype(np.intp)]

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The distance as a function of two vectors, for scikit-learn's neighbours."""
        check_is_fitted(self)
        mapped = self._mapping()

        @under_own_errstate
        def distance(u: ArrayLike, v: ArrayLike) -> float:
            one, other = self._vector(u, "u"), self._vector(v, "v")
            return float(np.linalg.norm(mapped(one[None]) - mapped(other[None])))

        return distance

    def _vector(self, given: ArrayLike, name: str) -> NDArray[Any]:
        vector = np.asarray(given)
        if vector.dtype.kind not in "fiub":
            vector = real_numbers(given, name)
        if vector.ndim != 1:
            raise ValueError(
                f"{name} must be a vector, got shape {vector.shape}: pair_distance computes the "
                "distances of many pairs"
            )
        self._check_width(vector.size, name)
        return vector

    def _check_width(self, features: int, name: str) -> None:
        if features != self.n_features_in_:
            raise ValueError(
                f"{name} has {features} features, but {type(self).__name__} was fitted to "
                f"{self.n_features_in_}"
            )


def threshold(distances: Array, alike: NDArray[np.bool_], rate: float | None) -> float:
    """The distance with the fewest errors, or the largest with the given false positive rate.

    It is midway between two of the distances, so that no training pair is on it.
    """
    order = np.argsort(distances, kind="stable")
    sorted_, same = distances[order], alike[order]
    accepted = np.concatenate([[0], np.cumsum(same)])
    wrong = np.concatenate([[0], np.cumsum(~same)])
    ends = np.concatenate([[-np.inf], sorted_, [np.inf]])
    apart = ends[1:] > ends[:-1]
    if rate is None:
        merit = np.where(apart, accepted - wrong, -1)
        cut = int(np.argmax(merit))
    else:
        if not (isinstance(rate, Real) and 0 <= rate <= 1):
            raise ValueError(f"max_false_positive_rate must be between 0 and 1, got {rate!r}")
        cut = int(np.flatnonzero(apart & (wrong <= rate * wrong[-1]))[-1])
    if cut == 0:
        return 0.5 * float(sorted_[0]) or -1.0
    if cut == sorted_.size:
        return float(sorted_[-1])
    return 0.5 * float(sorted_[cut - 1] + sorted_[cut])
