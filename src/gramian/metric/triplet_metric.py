"""The triplet hinge with a trace: a metric of low rank from relative comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.samples import column_sums
from gramian.common.parameters import ABOVE_ZERO, or_auto
from gramian.common.types import Indices
from gramian.constraints import local_triplets
from gramian.estimators.parameters import with_parameters
from gramian.linalg import leading_eigenpair
from gramian.metric._few_columns import maps_in
from gramian.metric._shrinkage import TripletFits
from gramian.metric._view import along_axes, varying_view
from gramian.objectives import Objective
from gramian.problems.local_metric import triplets as triplet_problem
from gramian.problems.moments import column_means, gram_of
from gramian.reductions.base import Substitution, carried
from gramian.reductions.span import Span
from gramian.result import Result

WEIGHT = 100.0
"""Default λ in units of λ₀, the largest λ for which M = 0 is optimal."""


@with_parameters
class TripletMetric(TripletFits):
    """Learn a metric of small trace with i nearer to j than to l for given triplets (i, j, l).

    Solves min tr M + λ Σ h_μ(1 + d_M(i, j) − d_M(i, l)) over M ⪰ 0 (BiS eqs. 34–35), where h_μ is
    the hinge smoothed by μ. The trace term makes the rank of M low. `fit` uses the triplets of
    nearest targets and impostors. With fewer samples than features the problem is solved in their
    span, which contains the whole solution. With more than 3000 of both, dense or sparse, the
    default rank is 40 and there is no shrinkage.

    Parameters
    ----------
    lam : float or "auto"
        The weight λ of the triplets; "auto" is a hundred times the largest λ for which M = 0 is
        optimal, independent of the scale of the data and the number of triplets.
    mu : float
        The smoothing μ, in units of the margin.

    Attributes
    ----------
    lam_ : float
        The weight used.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.metric import TripletMetric
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> ranked = np.argsort(np.abs(X[:, :1] - X[:, 0]), axis=1)  # only feature 0 matters
    >>> triplets = np.column_stack([np.arange(60), ranked[:, 5], ranked[:, 40]])
    >>> model = TripletMetric().fit_triplets(triplets, X=X)
    >>> int(np.argmax(np.abs(model.components_[0])))
    0
    """

    lam: float | str = "auto"
    mu: float = 0.5

    _rules: ClassVar = {"lam": or_auto(ABOVE_ZERO), "mu": ABOVE_ZERO}

    def _fit_labels(self, span: Span, classes: Indices, rows: Indices) -> None:
        triplets = local_triplets(span.X, classes, self.n_neighbors)
        size = self._weigh(span, triplets)
        rough = self._shrink_by_labels(span.X, classes) if self._may_shrink(span) else None
        self._fit_to(span, triplets, rough, size, classes)

    def _fit_triplets(self, span: Span, triplets: Indices) -> None:
        size = self._weigh(span, triplets)
        rough = self._shrink_by_triplets(span.X, triplets) if self._may_shrink(span) else None
        self._fit_to(span, triplets, rough, size)

    def _dense_view(self, X: Any) -> Span:
        """Samples along their principal axes if these can be computed, else unchanged."""
        view = varying_view(X, center=True)
        if not view.exact:
            return view
        if not view.centered:
            view = Span(view.matrix, _dense(view.X) - column_means(view.X), centered=True)
        return along_axes(view)

    def _may_shrink(self, view: Span) -> bool:
        """Whether a metric of full rank can be formed."""
        if view.exact:
            return True
        if self.shrinkage not in ("auto", 0):
            raise ValueError(
                f"shrinkage={self.shrinkage!r} needs a metric of full rank, and {view.X.shape[1]} "
                "features are too many for one: pass shrinkage=0, or reduce the features first"
            )
        self._forget("path_")
        self.shrinkage_ = 0.0
        return False

    def _fit_to(
        self,
        view: Span,
        triplets: Indices,
        rough: NDArray[np.floating] | None,
        size: float,
        classes: Indices | None = None,
    ) -> None:
        """Solve for the samples divided by `size`, so that numbers are near 1."""
        X = view.X / size
        problem = triplet_problem(X, triplets, size**2 * self.lam_, self.mu)
        gram = gram_of(X, None if view.centered else column_means(X))
        start = self._begin(view, rough, Substitution(None))
        start = None if start is None else size * start
        maps = maps_in(view.X, classes, lambda L: size * L)
        result = self._minimize_at_rank(problem, self._limit(X.shape[1]), gram, maps, init=start)
        result = _in_unit(result, size)
        factor = result.factor
        if view.exact:
            factor = self._mixed(factor, np.eye(factor.shape[0]), gram)
        self._finish(result, factor, gram, view.matrix)

    def _weigh(self, view: Span, triplets: Indices) -> float:
        """Set λ. For λ ≤ λ₀ no eigenvalue of −∇F(0) = λ Σ(X_il − X_ij) − I is positive.

        Returns the unit of the samples.
        """
        size = _power_of_two(view.X)
        auto = self.lam == "auto"
        self.lam_ = self._auto(view.X / size, triplets) / size**2 if auto else float(self.lam)
        return size

    def _auto(self, X: Any, triplets: Indices) -> float:
        """λ for these samples, independent of their scale and the number of triplets."""
        return weight_unit(triplet_problem(X, triplets, 1.0, self.mu).objective)


def weight_unit(objective: Objective) -> float:
    """`WEIGHT` times λ₀, by the objective with λ = 1."""
    gradient = objective.gradient(objective.image(np.zeros((objective.order, 1))))
    steepest = leading_eigenpair(-gradient, tol=1e-2, random_state=0).value
    # If no direction increases the margins, M = 0 is optimal for every λ.
    return WEIGHT / (steepest + 1.0) if steepest + 1.0 > 1e-12 else 1.0


def _power_of_two(X: Any) -> float:
    """The power of two nearest to the root mean variance of the samples, their unit."""
    n, d = X.shape
    total, square = column_sums(X, squares=True)
    variance = float(np.sum(square / n - (total / n) ** 2)) / d
    return float(2.0 ** np.round(0.5 * np.log2(variance))) if variance > 0 else 1.0


def _in_unit(result: Result, size: float) -> Result:
    """The result for samples X, of which X/`size` were solved for: tr M is `size`⁻² times tr S."""
    if size == 1:
        return result
    factor, scale = result.factor / size, size**-2
    certificate = carried(result.certificate, factor, scale=scale)
    return replace(result, factor=factor, value=certificate.value, certificate=certificate)


def _dense(X: Any) -> NDArray[np.floating]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
