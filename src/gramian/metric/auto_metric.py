"""Selection of the metric learner on held-out samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from gramian.common import clock
from gramian.common.parameters import TOLERANCE
from gramian.common.types import Indices
from gramian.common.warnings import warn
from gramian.estimators.candidates import CandidatePath
from gramian.estimators.fitting import settle
from gramian.estimators.parameters import with_parameters
from gramian.metric._base import MetricLearner
from gramian.metric._choice import Learner, choose_learner
from gramian.metric._evidence import ROUGH, TIME_SHARE
from gramian.metric._shrinkage import ShrunkLearner
from gramian.metric._view import by_keys, principal_view
from gramian.metric.class_collapse import ClassCollapse
from gramian.metric.dml_eig import DMLEig
from gramian.metric.kta import KTA
from gramian.metric.lmnn import LMNN
from gramian.objectives.matrices import DENSE_ORDER

LOCAL: tuple[type[ShrunkLearner], ...] = (DMLEig, LMNN)
"""Local learners, evaluated after `KTA` and `ClassCollapse`."""

TARGETS = 3
"""Number of target neighbours of a sample for local learners."""


@with_parameters
class AutoMetric(MetricLearner):
    """Learn the metric of the learner that is best on held-out samples.

    `KTA`, `ClassCollapse`, `DMLEig` and `LMNN` are fitted to parts of the samples with a large
    tolerance and several settings (λ, δ, or the combination with the Euclidean metric). The
    smallest share of other classes among the 7 nearest neighbours of held-out samples selects one
    of them, or the Euclidean metric if the gain is at most half a standard error. The selected
    learner is then fitted to all samples. Samples are divided by their root mean square first, so
    that a common unit of the features has no effect; features of different units should be
    standardised. Classes of at most three samples have too few neighbours for `DMLEig` and `LMNN`,
    which are fitted without them.

    Parameters
    ----------
    rank : int, optional
        The largest rank of M. The Euclidean metric, which has full rank, is then not a candidate.
    time_limit : float, optional
        Seconds for the whole fit. Half of them are for the selection. Candidates are evaluated in
        the order above, and the last ones are omitted if there is no time for them.

    Attributes
    ----------
    learner_ : fitted metric learner
        The selected learner; `KTA` with `lam` = 0 for the Euclidean metric.
    path_ : CandidatePath
        The candidates, their held-out errors and the selected one: `print` shows the table. Its
        `nested_error` includes the selection. Not set if there are too few samples to hold out;
        then `KTA` is selected.
    result_, certificate_ :
        Those of `learner_`, for the scaled samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import AutoMetric
    >>> X, y = load_wine(return_X_y=True)
    >>> metric = AutoMetric().fit(StandardScaler().fit_transform(X), y)
    >>> bool(metric.path_.nested_error < metric.path_.errors[0])  # errors[0]: Euclidean
    True
    """

    rank: int | None = None

    _rules: ClassVar = {"tol": TOLERANCE}

    def fit(self, X: Any, y: ArrayLike) -> AutoMetric:
        """Choose the learner and fit it to all samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        X, classes, _ = self._labelled(X, y)
        self._check(X.shape[0])
        self._forget("path_")
        size, path = self._evidence(X, classes)
        if path is not None:
            self.path_ = path
        self.learner_ = self._fitted(path, X / size, self.classes_[classes], classes)
        self._adopt(size)
        if clock.interrupted() and self.result_.status.converged:  # in the choice, not in the fit
            settle(self, self.result_)
        return self

    def _evidence(self, X: Any, classes: Indices) -> tuple[float, CandidatePath | None]:
        """The root mean square of the samples, and the choice between the learners.

        If a matrix of their order is too large to decompose, `KTA` is the only candidate.
        """
        if min(X.shape) > DENSE_ORDER:
            return 1.0, None
        X, classes, _, _ = self._in_order(X, classes)
        span = principal_view(X, type(self).__name__)
        span, order = by_keys(span)
        size = float(np.sqrt(np.mean(span.X**2))) or 1.0
        aligned = self._candidate(KTA, rank=self.rank, tol=max(self.tol, ROUGH))
        others = self._others(classes)
        with clock.share(TIME_SHARE):
            plain = self.rank is None
            path = choose_learner(span.X / size, classes[order], aligned, others, plain)
        if path is None and (self.time_limit is not None or clock.interrupted()):
            warn(
                "AutoMetric has compared no learners, as there was no time or too few samples: KTA "
                "is used",
                ConvergenceWarning,
            )
        return size, path

    def _others(self, classes: Indices) -> list[Learner]:
        """The candidates after `KTA`."""
        few = self.rank if self.n_components is None else self.n_components
        collapse = self._candidate(ClassCollapse, n_components=few)
        sizes = np.bincount(classes[frequent(classes)])
        if not sizes.size:
            return [collapse]
        near = min(TARGETS, int(sizes[sizes > 0].min()) - 1)
        local = (self._candidate(kind, rank=self.rank, n_neighbors=near) for kind in LOCAL)
        return [collapse, *local]

    def _fitted(
        self, path: CandidatePath | None, X: Any, y: NDArray[Any], classes: Indices
    ) -> MetricLearner:
        """The chosen learner, fitted to all samples, or to those of frequent classes."""
        kta: KTA = self._candidate(KTA, rank=self.rank, progress=self.progress)
        if path is None:
            return kta.fit(X, y)
        setting = float(path.settings[path.chosen])
        if path.name in (KTA.__name__, path.nothing):
            kta._fit(X, y, units=setting if path.gained else 0.0)
            return kta.set_params(lam=kta.lam_)
        learner = {type(one).__name__: one for one in self._others(classes)}[path.name]
        name = "ridge" if isinstance(learner, ClassCollapse) else "shrinkage"
        learner.set_params(**{name: setting}, progress=self.progress)
        rows = frequent(classes)
        if not (isinstance(learner, ClassCollapse) or rows.all()):
            X, y = X[rows], y[rows]
        return learner.fit(X, y)

    def _candidate(self, kind: Any, **changes: Any) -> Any:
        names = ("n_components", "solver", "tol", "max_iter", "random_state", "device")
        return kind(**{**{name: getattr(self, name) for name in names}, **changes})

    def _adopt(self, size: float) -> AutoMetric:
        """Take the attributes of the learner, in the units of the given samples."""
        self.learner_._keep(self.learner_.components_ / size)
        self._keep(self.learner_.components_)
        self._n_features_out = self.components_.shape[0]
        for name in ("result_", "certificate_", "n_iter_"):
            setattr(self, name, getattr(self.learner_, name))
        return self


def frequent(classes: Indices) -> NDArray[np.bool_]:
    """The samples of classes with more than `TARGETS` samples, as many as local learners need.

    If fewer than two classes are as large, those of classes with two samples or more.
    """
    sizes = np.bincount(classes)[classes]
    for least in (TARGETS + 1, 2):
        rows = np.asarray(sizes >= least)
        if np.unique(classes[rows]).size > 1:
            return rows
    return np.zeros(classes.size, dtype=bool)
