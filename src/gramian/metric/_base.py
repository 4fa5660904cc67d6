"""The base class of metric learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from gramian.arrays.dense import DEVICE_ORDER, eigh, first_largest, row_signs
from gramian.arrays.places import host, moved, namespace, place
from gramian.arrays.samples import (
    SINGLE,
    check_size,
    chosen_rows,
    finite_size,
    naming_text,
    ready,
    real_numbers,
    refuse_masked,
    warn_of_missing_names,
)
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.constraints import plainly
from gramian.estimators import plotting
from gramian.estimators.fitting import settle, solve, sweeps_for
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.persistence import Kept
from gramian.estimators.row_names import numbered, row_names
from gramian.metric._few_columns import at_rank, of_columns
from gramian.metric._input import (
    NAMES,
    canonical_labels,
    in_content_order,
    labelled_rows,
    marks,
    plain_labels,
    refuse_continuous,
    sorted_pairs,
    split_pairs,
    touched,
    tuples,
    warn_of_unknown,
    weights_of_classes,
)
from gramian.metric._verification import Verification
from gramian.objectives.matrices import DENSE_ORDER, Dense, SymmetricMatrix
from gramian.problem import Problem
from gramian.reductions.base import Substitution
from gramian.result import Result, Status
from gramian.solvers.arguments import settings_for

LARGE_RANK = 40
"""Default rank of M if its order is too large to decompose (LRO §5.2 takes 40 to 60)."""

IDLE = 1e-12
"""Directions along which the variance of the mapped samples is at most this fraction of the largest
are idle: it is rounding error."""


@with_parameters
class MetricLearner(
    SolverParameters,
    Kept,
    Verification,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """A learned Mahalanobis metric d_M(x, z) = (x − z)ᵀM(x − z) with M = LLᵀ.

    Subclasses fit and set `result_` and `components_`, the rows of Lᵀ rotated so that the mapped
    samples are uncorrelated with decreasing variances, as in PCA; `transform` maps x to Lᵀx, where
    the metric is Euclidean. The entries below are inserted into the docstrings of subclasses.

    Parameters
    ----------
    n_components : int, optional
        Number of dimensions of the mapped samples, by default all. It is the `rank` unless that is
        given.
    rank : int, optional
        The largest rank of M, default `n_components`. F is minimised over factors with this number
        of columns, from several starting maps (the optimum of any rank, truncated; discriminants;
        principal directions). The certificate compares with the optimum of any rank: its gap bounds
        the cost of the limit. With more than `n_components`, `transform` returns the directions in
        which the mapped samples vary most: ``rank=n_features`` truncates the metric of full rank.
        With more than 3000 features and samples the optimum of any rank has at most 40 columns.
    init : fitted metric learner, optional
        Start from its metric.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples.
    result_ : Result
    certificate_ : Certificate
        A bound on the distance of M from the optimum.
    classes_, n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.
    """

    n_components: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _labelled(self, X: Any, y: Any) -> tuple[Any, Indices, NDArray[np.bool_]]:
        """Validated samples of known class, their class indices, and the mask of these samples.

        Sets `classes_`.
        """
        refuse_masked(X, "X")
        with naming_text(X):
            X, y = validate_data(
                self,
                X,
                plain_labels(y),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,  # checked together with the size
                ensure_min_samples=2,
            )
        size: float | None = finite_size(X, type(self).__name__)
        refuse_continuous(y)
        known = labelled_rows(y)
        warn_of_unknown(y, known)
        warn_of_missing_names(y, "leave these out")
        if not known.all():
            X, y, size = X[known], y[known], None
        self._sweeps = sweeps_for(X)
        X = ready(X, size=size)
        self._forget("threshold_", "same_values_", "moments_", "seen_")
        self.classes_, classes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has one class only ({plainly(self.classes_[0])!r}); a metric is learned "
                "from the difference between at least two classes"
            )
        return X, classes, known

    def _in_order(
        self, X: Any, classes: Indices, weights: Array | None = None
    ) -> tuple[Any, Indices, Array | None, Indices]:
        """Samples, classes and weights in an order determined by their content, and that order.

        The classes are renumbered, so that their names do not affect a fit.
        """
        order, number = canonical_labels(X, classes, weights)
        weights = None if weights is None else weights[order]
        return chosen_rows(X, order), number[classes[order]], weights, order

    def _weighed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Indices, Array | None]:
        """The samples of known class and positive weight, their classes and weights (with
        `class_weight`)."""
        X, classes, known = self._labelled(X, y)
        class_weight = self.get_params(deep=False)["class_weight"]
        if sample_weight is None and class_weight is None:
            return X, classes, None
        if isinstance(sample_weight, str):
            raise ValueError(
                f"sample_weight must be a number for each sample, got {sample_weight!r}: weights "
                "of classes are the parameter class_weight"
            )
        if sample_weight is not None:
            sample_weight = real_numbers(sample_weight, "sample_weight")
        weights = _check_sample_weight(sample_weight, known, dtype=np.float64)[known]
        if np.any(weights < 0):
            row = int(np.argmax(weights < 0))
            raise ValueError(f"sample_weight[{row}] = {weights[row]:g} is negative: weights are "
                             "how often a sample counts")  # fmt: skip
        if class_weight is not None:
            weights = weights * weights_of_classes(class_weight, self.classes_, classes, weights)
        check_size(weights, "sample_weight" if class_weight is None else "the weights")
        there = weights > 0
        held, classes = np.unique(classes[there], return_inverse=True)
        if held.size < 2:
            raise ValueError(
                "all samples of a weight above 0 are of one class; a metric is learned from the "
                "difference between at least two classes"
            )
        self.classes_ = self.classes_[held]
        return X[there], classes, weights[there]

    def _paired(self, pairs: Any, same: Any, X: Any) -> tuple[Any, Indices, Indices, Indices]:
        """The samples in pairs, the similar and dissimilar pairs as indices, and the positions of
        the dissimilar ones in the input; samples and pairs are sorted by their content.
        """
        samples, indices = self._tupled(pairs, X, 2)
        similar, dissimilar = split_pairs(samples, indices, same)
        given = np.flatnonzero(~marks(same, len(indices)))
        samples, both = in_content_order(*touched(samples, np.vstack([similar, dissimilar])))
        similar, _ = sorted_pairs(both[: len(similar)])
        dissimilar, order = sorted_pairs(both[len(similar) :])
        return samples, similar, dissimilar, given[order]

    def _tupled(self, given: Any, X: Any, width: int) -> tuple[Any, Indices]:
        self._forget("classes_", "threshold_", "same_values_", "moments_", "seen_")
        if X is not None:
            refuse_masked(X, "X")
            given = numbered(given, row_names(X), NAMES[width])
            with naming_text(X):
                X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
            self._sweeps = sweeps_for(X)
            return tuples(given, ready(X), width)
        samples, indices = tuples(given, None, width)
        self._sweeps = sweeps_for(samples)
        samples = ready(samples, NAMES[width])
        self._forget("feature_names_in_")
        self.n_features_in_ = samples.shape[1]
        return samples, indices

    def _forget(self, *names: str) -> None:
        """Delete attributes of an earlier fit."""
        for name in names:
            self.__dict__.pop(name, None)

    def _solve(
        self,
        problem: Problem,
        gram: SymmetricMatrix,
        basis: Any,
        start: Array | None = None,
        maps: Callable[[int], list[Array]] = lambda k: [],
    ) -> None:
        """Minimise the problem and set the fitted attributes.

        `gram` is the scatter of the samples in the coordinates of the problem, `basis` (d × k) maps
        these to the features, `start` is the initial factor if there is no `init`, and `maps` gives
        starting maps of limited rank.
        """
        given = self._start(basis)
        first = start if given is None else given

        k = self._limit(problem.order)
        result = self._minimize_at_rank(problem, k, gram, maps, init=first)
        self._finish(result, result.factor, gram, basis)
        whole = problem.order <= DENSE_ORDER and self.rank is None and self.n_components is None
        if sp.issparse(basis) and whole and self.regularizer == "identity":
            constant = np.flatnonzero(np.diff(basis.indptr) == 0)  # columns in which M = I
            self._keep(np.vstack([self.components_, np.eye(basis.shape[0])[constant]]))
            self._n_features_out = self.components_.shape[0]

    def _limit(self, directions: int) -> int | None:
        """The rank to solve for; None if the samples have no more directions."""
        rank = self.n_components if self.rank is None else self.rank
        return None if rank is None or rank >= directions else int(rank)

    def _minimize(self, problem: Problem, *, init: Any = None, **changes: Any) -> Result:
        """`gramian.minimize` with the parameters of the estimator."""
        result = solve(self, problem, init, **changes)
        if result.status is Status.INTERRUPTED:
            clock.interrupt()  # later phases and outer fits end as well
        return result

    def _minimize_at_rank(
        self,
        problem: Problem,
        k: int | None,
        gram: Any,
        maps: Callable[[int], list[Array]],
        *,
        init: Any = None,
    ) -> Result:
        """Minimise over factors with at most k columns, or any number if it is None.

        `gram` is the scatter of the samples and `maps` gives starting maps with a number of
        columns, both in the coordinates of the problem.
        """
        most = None
        if problem.order > DENSE_ORDER:
            most = min(problem.order, max(k or 0, LARGE_RANK))
        relaxed = self._minimize(problem, init=init, rank=most)
        if k is None or relaxed.rank <= k:
            return relaxed
        settings = settings_for(
            problem, k, self.tol, self.time_limit, self.random_state, clock.now()
        )
        others = [] if problem.order > DENSE_ORDER else maps(k)
        starts = starts_at_rank(relaxed.factor, k, gram, init, others)
        return at_rank(problem, starts, relaxed, settings)

    def _earlier(self) -> Any:
        """The learner whose metric is a start: `init`, or this one before an update."""
        return vars(self).get("_before") if self.init is None else self.init

    def _start(self, basis: Array | None) -> Array | None:
        """The factor of an earlier fit, `init`, in the coordinates of this one."""
        init = self._earlier()
        if init is None:
            return None
        check_is_fitted(
            init,
            "components_",
            msg="init must be a fitted metric learner without a kernel; clone, cross-validation "
            "and grids copy it without the fit: pass sklearn.frozen.FrozenEstimator(init) there",
        )
        components = np.asarray(init.components_, dtype=float)
        if components.shape[1] != self.n_features_in_:
            raise ValueError(
                f"init was fitted to {components.shape[1]} features, "
                f"but these samples have {self.n_features_in_}"
            )
        return np.ascontiguousarray(components.T if basis is None else basis.T @ components.T)

    def _finish(
        self, result: Result, factor: Array, gram: SymmetricMatrix, basis: Array | None
    ) -> None:
        """Set the fitted attributes, and warn if the run did not converge."""
        settle(self, result)
        there = place(self.device)
        if factor.shape[1] >= DEVICE_ORDER and isinstance(gram, Dense):
            gram, factor = moved(gram, there), there.put(factor)
        factor = principal_columns(factor, gram @ factor)
        spread = np.sum(host(factor * (gram @ factor)), axis=0)
        factor = host(factor)
        idle = spread <= IDLE * np.max(spread, initial=0.0)
        factor = Substitution(basis).factor(factor)
        if factor.shape[1] == 0:  # M = 0, for example after a time limit
            factor, idle = np.zeros((factor.shape[0], 1)), np.zeros(1, dtype=bool)
        directions = np.ascontiguousarray(
            _reproducible(factor.T, idle)[: self.n_components or self.rank]
        )
        directions *= row_signs(self._in_features(directions))[:, None]
        self._keep(directions)
        self._n_features_out = directions.shape[0]

    def _in_features(self, directions: Array) -> Array:
        """The directions as vectors of features, which determine their signs."""
        return directions

    def _keep(self, directions: Array) -> None:
        """Set the attribute of the learned directions."""
        self.components_ = directions

    def _most_directions(self, n_samples: int) -> int:
        """The largest rank that a metric can have."""
        return int(self.n_features_in_)

    def _check(self, n_samples: int) -> None:
        """Raise ValueError for parameters that are invalid for this number of samples."""
        self._check_parameters()
        self._check_sizes(n_samples)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        init = getattr(self, "init", None)
        if init is not None and (isinstance(init, type) or not hasattr(init, "fit")):
            raise TypeError(
                "init must be a fitted metric learner, or None, got "
                f"{init.__name__ if isinstance(init, type) else type(init).__name__}"
            )

    def _check_sizes(self, n_samples: int) -> None:
        most = self._most_directions(n_samples)
        for name in ("rank", "n_components"):
            limit = getattr(self, name)
            if limit is not None and not (
                isinstance(limit, (int, np.integer))
                and not isinstance(limit, bool)
                and 1 <= limit <= most
            ):
                raise ValueError(
                    f"{name} must be a whole number between 1 and the number of "
                    f"{'features' if most == self.n_features_in_ else 'samples'}, {most}, "
                    f"got {limit!r}"
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
        refuse_masked(X, "X")
        kinds = [np.float64, np.float32]
        with naming_text(X):
            X = validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=False)
        return self._mapped(X)

    def _mapping(self) -> Callable[[Any], Array]:
        """The map of samples to the space where the metric is Euclidean."""
        directions = self.components_.T
        size = float(np.abs(directions).max(initial=0.0))

        def mapped(X: Any) -> Array:
            if X.dtype == np.float32 and not 1 / SINGLE < size < SINGLE:
                return np.asarray(X.astype(float) @ directions).astype(X.dtype)
            return np.asarray(X @ directions.astype(X.dtype, copy=False))

        return mapped

    @property
    def feature_importances_(self) -> Array:
        """The share of each feature in the metric: M_jj / tr M.

        It is meaningful for features of one unit: standardise them first. A metric in the feature
        space of a kernel has none.
        """
        check_is_fitted(self)
        if getattr(self, "kernel", None) is not None:
            raise AttributeError(
                f"{type(self).__name__} has no importances of features in a kernel's feature space"
            )
        squares = np.sum(self.components_**2, axis=0)
        return squares / max(float(squares.sum()), 1e-300)

    def plot(self, X: Any, y: Any = None) -> Any:
        """Draw samples before and after, in two directions each, and the share of each feature.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels, optional
            The colours of the samples.

        Returns
        -------
        matplotlib.figure.Figure
        """
        mapped = self.transform(X)
        shares = self.feature_importances_
        names = [str(name) for name in getattr(self, "feature_names_in_", range(shares.size))]
        plain = X if sp.issparse(X) else np.asarray(X)
        views = _two_directions(plain), _two_directions(mapped)
        return plotting.metric_views(views, y, shares, names)

    def get_mahalanobis_matrix(self) -> Array:
        """M = LLᵀ as a dense (n_features, n_features) array."""
        check_is_fitted(self)
        return self.components_.T @ self.components_


def _two_directions(X: Any) -> Array:
    """Samples by their two leading principal directions."""
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    if dense.shape[1] <= 2:
        return dense
    return np.asarray(PCA(2, random_state=0).fit_transform(dense))


def starts_at_rank(
    relaxed: Array, k: int, gram: Any, init: Array | None, maps: list[Array]
) -> list[Array]:
    """Starting maps with k columns: the optimum of any rank, truncated to the directions in which
    the mapped samples vary most, an initial factor if there is one, and others."""
    given = [] if init is None else [of_columns(init, k)]
    starts = [principal_columns(relaxed, gram @ relaxed)[:, :k], *given, *maps]
    return [L for L in starts if np.any(L)]


def principal_columns(factor: Any, scatter_factor: Any) -> Any:
    """L rotated so that LᵀGL is diagonal and decreasing, given L and GL; LLᵀ stays the same."""
    scatter = factor.T @ scatter_factor
    scatter = 0.5 * (scatter + scatter.T)
    if isinstance(scatter, np.ndarray):
        return factor @ eigh(scatter)[1][:, ::-1]
    xp = namespace(scatter)
    return factor @ xp.flip(xp.linalg.eigh(scatter)[1], axis=1)


def _reproducible(rows: Array, idle: NDArray[np.bool_]) -> Array:
    """The rows, with the idle ones rotated to a basis that only depends on their span.

    Samples do not vary along idle directions, so their principal axes are rounding errors. They are
    rotated by a QR decomposition of their entries at features with large ones instead.
    """
    if np.sum(idle) < 2:
        return rows
    rest, features = rows[idle], []
    for _ in range(rest.shape[0]):
        j = int(first_largest(np.linalg.norm(rest, axis=0)[None])[0])
        features.append(j)
        unit = rest[:, j] / max(float(np.linalg.norm(rest[:, j])), 1e-300)
        rest = rest - np.outer(unit, unit @ rest)
    turn, _ = np.linalg.qr(rows[idle][:, features])
    found: Array = rows.copy()
    found[idle] = turn.T @ rows[idle]
    return found
