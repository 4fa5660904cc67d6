"""What every metric learner offers once its components are learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from gramian.constraints import plainly
from gramian.objectives.matrices import DENSE_ORDER, SymmetricMatrix
from gramian.problem import Problem
from gramian.result import Result
from gramian.solvers import minimize

Array = NDArray[np.floating]

LARGE_RANK = 40
"""The rank of M beyond the orders that can be decomposed, unless told (LRO §5.2 takes 40 to 60)."""


class MetricLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A learned Mahalanobis metric d_M(x, z) = (x − z)ᵀM(x − z) with M = LLᵀ.

    Subclasses fit and set `result_` and `components_`, the rows of Lᵀ turned so that the mapped
    samples are uncorrelated and fall in variance, as in PCA; `transform` maps x to Lᵀx, where the
    metric is Euclidean.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _labelled(self, X: Any, y: Any) -> tuple[Any, NDArray[np.integer]]:
        """Validated samples and class indices; sets `classes_`."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2,
        )
        check_classification_targets(y)
        self.classes_, classes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has one class only ({plainly(self.classes_[0])!r}); a metric is learned "
                "from the difference between at least two classes"
            )
        return X, classes

    def _solve(self, problem: Problem, gram: SymmetricMatrix, basis: Array | None) -> None:
        """Minimise the problem and set what a fitted metric has.

        `gram` is the scatter of the samples in the coordinates the problem was posed in, `basis`
        (d × k) leads back to the features from them.
        """
        limit = self.rank
        if limit is None and problem.order > DENSE_ORDER:
            limit = LARGE_RANK
        result = self._minimize(problem, init=self._start(basis), rank=limit)
        self._finish(result, result.factor, gram, basis)

    def _minimize(self, problem: Problem, *, init: Any = None, **changes: Any) -> Result:
        """`gramian.minimize` with the parameters of the estimator."""
        options: dict[str, Any] = {
            "rank": self.rank,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "time_limit": self.time_limit,
            "random_state": self.random_state,
            "progress": self.progress,
        }
        options |= changes
        if options["rank"] is not None:
            options["rank"] = min(options["rank"], problem.order)
        return minimize(problem, self.solver, init=init, **options)

    def _start(self, basis: Array | None) -> Array | None:
        """The factor of an earlier fit, `init`, in the coordinates of this one."""
        if self.init is None:
            return None
        check_is_fitted(self.init, "components_", msg="init must be a fitted metric learner")
        components = np.asarray(self.init.components_, dtype=float)
        if components.shape[1] != self.n_features_in_:
            raise ValueError(
                f"init was fitted to {components.shape[1]} features, "
                f"but these samples have {self.n_features_in_}"
            )
        if basis is None:
            return np.ascontiguousarray(components.T)
        return np.linalg.lstsq(basis, components.T, rcond=None)[0]

    def _finish(
        self, result: Result, factor: Array, gram: SymmetricMatrix, basis: Array | None
    ) -> None:
        """Set what a fitted metric has, and warn where the run did not converge."""
        self.result_ = result
        self.certificate_ = result.certificate
        self.n_iter_ = max(1, result.iterations)
        if not result.status.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: {result.status.sentence} "
                f"({self.certificate_})",
                ConvergenceWarning,
                stacklevel=4,
            )
        factor = principal_columns(factor, gram @ factor)
        factor = factor if basis is None else basis @ factor
        self.components_ = np.ascontiguousarray(factor.T[: self.n_components])
        self._n_features_out = self.components_.shape[0]

    def _check_sizes(self) -> None:
        features = self.n_features_in_
        for name in ("rank", "n_components"):
            limit = getattr(self, name)
            if limit is not None and not (
                isinstance(limit, (int, np.integer))
                and not isinstance(limit, bool)
                and 1 <= limit <= features
            ):
                raise ValueError(
                    f"{name} must be a whole number between 1 and the number of features, "
                    f"{features}, got {limit!r}"
                )
        if self.rank is not None and (self.n_components or 0) > self.rank:
            raise ValueError(
                f"n_components={self.n_components} asks for more directions than "
                f"rank={self.rank} allows"
            )

    def transform(self, X: Any) -> Array:
        """Map samples to Lᵀx, where Euclidean distance is the learned metric.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.components_.T.astype(X.dtype, copy=False))

    def pair_distance(self, pairs: Any) -> Array:
        """√d_M(x, z) for each pair.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features)
        """
        check_is_fitted(self)
        pairs = check_array(pairs, allow_nd=True, dtype=[np.float64, np.float32])
        if pairs.ndim != 3 or pairs.shape[1:] != (2, self.n_features_in_):
            raise ValueError(
                f"pairs must have shape (n_pairs, 2, {self.n_features_in_}), got {pairs.shape}"
            )
        return np.linalg.norm((pairs[:, 0] - pairs[:, 1]) @ self.components_.T, axis=1)

    def pair_score(self, pairs: Any) -> Array:
        """Minus the distance of each pair: higher is more alike."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The distance as a function of two vectors, for scikit-learn's neighbours."""
        check_is_fitted(self)
        components = self.components_.copy()

        def mahalanobis(u: ArrayLike, v: ArrayLike) -> float:
            return float(np.linalg.norm(components @ (np.asarray(u) - np.asarray(v))))

        return mahalanobis

    def get_mahalanobis_matrix(self) -> Array:
        """M = LLᵀ as a dense (n_features, n_features) array."""
        check_is_fitted(self)
        return self.components_.T @ self.components_


def principal_columns(factor: Array, scatter_factor: Array) -> Array:
    """L turned so that LᵀGL is diagonal and falls, given L and GL; LLᵀ stays the same.

    The sign of each column is fixed by its largest entry, so that fits repeat.
    """
    scatter = factor.T @ scatter_factor
    _, vectors = np.linalg.eigh(0.5 * (scatter + scatter.T))
    turned = factor @ vectors[:, ::-1]
    if turned.size:
        largest = np.argmax(np.abs(turned), axis=0)
        turned = turned * np.where(turned[largest, np.arange(turned.shape[1])] < 0, -1.0, 1.0)
    return turned
