"""Metrics from chunks of samples: learners whose problem needs only sums over the samples.

Kept are, of samples less a shift that the first chunk decides, the counts, the sums and the Gram
matrix of every class. They add up over chunks, so that a metric from ten chunks is that of all
samples at once, up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from gramian.arrays.samples import naming_text, refuse_masked, refuse_odd_labels
from gramian.common.memory import check_memory
from gramian.constraints import plainly
from gramian.metric._base import MetricLearner, _refuse_continuous
from gramian.metric._selection import unit
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.metric import kta_from_moments, linear_separation_from_scatter
from gramian.problems.moments import Moments

Array = NDArray[np.floating]


class PartialFit(MetricLearner):
    """`partial_fit` for a learner with `_problem_of(gram, sums, counts)`, which sets `lam_`."""

    def _problem_of(self, grams: Array, sums: Array, counts: Array) -> Problem:
        """The problem from the Gram matrix, sum and count of each class, of centred samples."""
        raise NotImplementedError

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Any:
        """Learn the metric from the samples of all calls together.

        The first call, and one after `fit`, starts anew. With lam="auto" nothing can be held out,
        and λ has its unit (1/ḡ² for `KTA`, 2/‖L_S‖ for `LinearSeparation`); for a given `lam` the
        metric is that of `fit` with all samples at once.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        classes : labels of all classes, optional
            Needed in the first call where its samples are not of all classes.
        """
        self._check_parameters()
        for name in ("kernel", "class_weight"):
            if getattr(self, name, None) is not None:
                raise ValueError(f"partial_fit adds up moments of the features: {name} is for fit")
        first = not hasattr(self, "moments_")
        refuse_masked(X, "X")
        refuse_odd_labels(y)
        with naming_text(X):
            X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        labels = np.asarray(y)
        _refuse_continuous(labels)
        if first:
            self._begin_moments(X, np.unique(labels if classes is None else classes))
        self._add(X, labels)
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
        self._forget("path_", "threshold_", "same_values_")
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
        problem = self._problem_of(grams, centred, counts)
        self._solve(problem, Dense(0.5 * (gram + gram.T), lower=0.0), None)

    def _labelled(self, X: Any, y: Any) -> Any:
        self._forget("moments_")
        return super()._labelled(X, y)

    def _tupled(self, given: Any, X: Any, width: int) -> Any:
        self._forget("moments_")
        return super()._tupled(given, X, width)


class PartialAlignment(PartialFit):
    """`partial_fit` of `KTA`."""

    def _problem_of(self, grams: Array, sums: Array, counts: Array) -> Problem:
        gram = grams.sum(axis=0)
        if not self.center:
            raise ValueError("partial_fit centres the samples: center=False is for fit")
        data = Moments(Dense(0.5 * (gram + gram.T), lower=0.0), sums, counts, float(gram.trace()))
        auto = self.lam == "auto"
        self.lam_ = unit(data, int(counts.sum())) if auto else float(self.lam)
        return kta_from_moments(data, self.lam_, regularizer=self.regularizer)


class PartialSeparation(PartialFit):
    """`partial_fit` of `LinearSeparation`."""

    def _problem_of(self, grams: Array, sums: Array, counts: Array) -> Problem:
        # L_S = Σ_c (2n_c − n) G_c − 2 Σ_c s_c s_cᵀ + ssᵀ, as in `signed_scatter`; s = 0 here
        signed = np.einsum("c,cij->ij", 2 * counts - counts.sum(), grams) - 2 * sums @ sums.T
        scatter = Dense(0.5 * (signed + signed.T))
        self.lam_ = self._unit(scatter) if self.lam == "auto" else float(self.lam)
        return linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
