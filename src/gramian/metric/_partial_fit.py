"""Metrics from chunks of samples.

Learners whose problem needs only sums over the samples have `partial_fit`; the others have
`update`, which keeps the samples. For `partial_fit` the counts, the sums and the Gram matrix of
every class are stored, of samples minus the mean of the first chunk. They are added over chunks, so
that a metric from ten chunks is that of all samples at once, up to rounding.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from gramian.arrays.samples import (
    UNKNOWN,
    check_size,
    naming_text,
    refuse_masked,
    refuse_odd_labels,
)
from gramian.common.memory import check_memory
from gramian.common.parameters import NOT_NEGATIVE, or_auto
from gramian.common.types import Array
from gramian.constraints import plainly
from gramian.estimators.parameters import with_parameters
from gramian.metric._base import MetricLearner
from gramian.metric._few_columns import starting_maps
from gramian.metric._input import (
    CLASS_WEIGHT,
    labelled_rows,
    plain_labels,
    refuse_continuous,
    warn_of_unknown,
)
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.moments import Moments


class Update(MetricLearner):
    """`update` for a learner that needs the samples themselves."""

    def update(self, X: Any, y: ArrayLike) -> Any:
        """Learn the metric from the samples of all calls together, from the metric so far.

        The first call, and one after `fit`, starts without samples. They are kept in `seen_`. The
        problem, its certificate and the choice of parameters are those of `fit` with all samples;
        the start is the metric of the last call, unless there is an `init`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        self._check_parameters()
        before, seen = copy(self), vars(self).get("seen_")
        refuse_masked(X, "X")
        with naming_text(X):
            X, y = validate_data(
                self,
                X,
                plain_labels(y),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                reset=seen is None,
            )
        names = vars(self).get("feature_names_in_")
        if seen is not None:
            stack = sp.vstack if sp.issparse(X) or sp.issparse(seen["X"]) else np.vstack
            X, y = stack([seen["X"], X]), _together(seen["y"], np.asarray(y))
            self._before = before
        try:
            self.fit(X, y)
        except BaseException:  # nothing was learned: the samples of the earlier calls are kept
            self.__dict__ = before.__dict__
            raise
        self._forget("_before")
        if names is not None:
            self.feature_names_in_ = names
        self.seen_ = {"X": X, "y": y}
        return self


def _together(seen: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """The labels of all calls; ValueError if some are text and others numbers."""
    both = np.concatenate([seen.astype(object), new.astype(object)])
    refuse_odd_labels(both)
    return both if object in (seen.dtype, new.dtype) else np.concatenate([seen, new])


@with_parameters
class PartialFit(MetricLearner):
    """`partial_fit` for a learner with `_problem_of(data, grams)`, which sets `lam_`.

    Parameters
    ----------
    class_weight : "balanced" or dict, optional
        Multiplicities of the samples of each class, times `sample_weight`: "balanced" gives all
        classes equal total weight, n/(k n_c) for each of the n_c samples of one of k classes; a
        dict has weights by class, default 1. Votes that select lam="auto" are not weighted.

    Attributes
    ----------
    moments_ : dict
        The sums of `partial_fit`, if it was called.
    path_ : EvidencePath
        The candidates for λ and their held-out errors, if lam="auto" selected one; `print` shows
        the choice.
    """

    lam: float | str = "auto"
    regularizer: str = "identity"
    class_weight: Any = None
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {"lam": or_auto(NOT_NEGATIVE), "class_weight": CLASS_WEIGHT}

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a metric: not after `partial_fit` with samples of one class."""
        return "result_" in vars(self)

    def _problem_of(self, data: Moments, grams: Array) -> Problem:
        """The problem from the moments of centred samples, and the Gram matrix of each class."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Any:
        """Learn the metric from the samples of all calls together.

        The first call, and one after `fit`, starts from zero. With lam="auto" no samples can be
        held out, and λ is its unit (1/ḡ² for `KTA`, 2/‖L_S‖ for `LinearSeparation`); for a given
        `lam` the metric is that of `fit` with all samples at once.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        classes : labels of all classes, optional
            Required in the first call unless its samples include all classes.
        """
        self._check_parameters()
        for name in ("kernel", "class_weight"):
            if getattr(self, name, None) is not None:
                raise ValueError(f"partial_fit adds up moments of the features: {name} is for fit")
        first, before = not hasattr(self, "moments_"), dict(vars(self))
        refuse_masked(X, "X")
        with naming_text(X):
            X, labels = validate_data(self, X, plain_labels(y), dtype=np.float64, reset=first)
        check_size(X, "X")
        refuse_continuous(labels)
        try:
            return self._updated(X, labels, classes, first)
        except ValueError:
            if first:  # nothing was learned: the next call is the first
                self.__dict__ = before
            raise

    def _updated(
        self, X: Array, labels: NDArray[Any], classes: ArrayLike | None, first: bool
    ) -> Any:
        """Add validated samples, and learn the metric once there are two classes."""
        if first:
            named = np.unique(labels if classes is None else classes)
            self._begin_moments(X, named[labelled_rows(named)])
        elif classes is not None and not set(np.unique(classes)) <= {UNKNOWN, *self.classes_}:
            raise ValueError(
                f"classes differ from those of the first call, {self.classes_.tolist()}: pass all "
                "of them there"
            )
        known = labelled_rows(np.append(self.classes_, labels))[self.classes_.size :]
        warn_of_unknown(labels, known)
        self._add(X[known], labels[known])
        counts = self.moments_["counts"]
        if np.sum(counts > 0) > 1:
            self._check_sizes(int(counts.sum()))
            self._solve_moments()
        return self

    def _begin_moments(self, X: Array, classes: NDArray[Any]) -> None:
        if classes.size < 2:
            raise ValueError(
                f"the first samples are all of class {plainly(classes[0])!r}: name all classes "
                "with partial_fit(X, y, classes=…)"
            )
        d = X.shape[1]
        name = type(self).__name__
        check_memory(
            8 * (classes.size + 6) * d * d,
            f"{name}.partial_fit holds a {d} × {d} matrix for each class",
            "reduce the features first, for example with sklearn.decomposition.TruncatedSVD",
        )
        earlier = ("components_", "result_", "certificate_", "path_", "lam_")
        self._forget(*earlier, "threshold_", "same_values_")
        self.classes_ = classes
        self.moments_ = {
            "shift": X.mean(axis=0),
            "grams": np.zeros((classes.size, d, d)),
            "sums": np.zeros((d, classes.size)),
            "counts": np.zeros(classes.size),
        }

    def _add(self, X: Array, y: NDArray[Any]) -> None:
        """Add a chunk to the moments."""
        place = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(place, self.classes_.size - 1)] == y
        if not np.all(known):
            raise ValueError(
                f"class {plainly(y[~known][0])!r} is not among the classes of the first call: "
                "name all classes there with partial_fit(X, y, classes=…)"
            )
        shifted = X - self.moments_["shift"]
        for number in np.unique(place):
            rows = shifted[place == number]
            self.moments_["grams"][number] += rows.T @ rows
            self.moments_["sums"][:, number] += rows.sum(axis=0)
            self.moments_["counts"][number] += len(rows)

    def _solve_moments(self) -> None:
        """Minimise the problem of all samples so far."""
        counts, sums = self.moments_["counts"], self.moments_["sums"]
        mean = sums.sum(axis=1) / counts.sum()
        centred = sums - np.outer(mean, counts)
        crosses = np.einsum("ic,j->cij", sums, mean)
        grams = (
            self.moments_["grams"]
            - crosses
            - crosses.transpose(0, 2, 1)
            + counts[:, None, None] * np.outer(mean, mean)
        )
        gram = grams.sum(axis=0)
        gram = Dense(0.5 * (gram + gram.T), lower=0.0)
        data = Moments(gram, centred, counts, float(gram.array.trace()))
        problem = self._problem_of(data, grams)
        self._solve(problem, gram, None, maps=lambda k: starting_maps(data, k))
