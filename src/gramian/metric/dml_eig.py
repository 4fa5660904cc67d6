"""DML-eig: the largest smallest distance of dissimilar pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.constraints import as_pairs
from gramian.estimators.parameters import with_parameters
from gramian.metric._few_columns import maps_in
from gramian.metric._input import sorted_pairs
from gramian.metric._local import FlooredLearner, MaxMin, distances
from gramian.metric._view import KernelMetricLearner, by_keys
from gramian.problems.local_metric import dml_eig_whitened, pair_scatter
from gramian.reductions.floor import Floor
from gramian.reductions.span import Span

SMOOTHING = 0.3
"""μ in units of the median distance of the dissimilar pairs at S = I/d."""


@with_parameters
class DMLEig(KernelMetricLearner, FlooredLearner):
    """Learn the metric whose smallest distance between dissimilar pairs is largest.

    Solves max min_D d_M over M ⪰ 0 with Σ_S d_M ≤ 1 (DML-eig eq. 3), S and D the pairs of each
    sample with its nearest of the same and of other classes, smoothed by μ (§3.1): with the
    scatter X_S = GGᵀ of the similar pairs and M = G⁻ᵀSG⁻¹ it is

        min μ ln Σ_D exp(−⟨X̃_τ, S⟩/μ)  over  S ⪰ (ρ/d) I, tr S = 1.

    The paper has ρ = 0. The smallest distances alone determine its metric, and with few pairs its
    rank is very low; the floor ρ keeps a part of the plain whitening.

    Parameters
    ----------
    mu : float or "auto"
        The smoothing μ, in units of the whitened distances. It also has a statistical effect.
        "auto" is 0.3 times the median distance of the dissimilar pairs under S = I/d, independent
        of the scale of the data. `max_min_` shows the result for the max–min problem itself.
    solver : str or callable
        As in `gramian.minimize`. ``solver="frank-wolfe"`` is the paper's, improved.

    Attributes
    ----------
    max_min_ : MaxMin
        The smallest distance reached, and an upper bound for all metrics of the model.
    threshold_ : float
        The distance up to which `predict` classifies a pair as the same, after `fit_pairs` or
        `calibrate`.
    certificate_ : Certificate
        A bound on the distance of S from the optimum of the smoothed problem.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import DMLEig
    >>> X, y = load_wine(return_X_y=True)
    >>> dml = DMLEig().fit(StandardScaler().fit_transform(X), y)
    >>> dml.max_min_.value <= dml.max_min_.bound
    True
    """

    def _fit_labels(self, span: Span, classes: Indices, rows: Indices) -> None:
        near, far, units = self._local_neighbors(span.X, classes)
        similar, dissimilar = (sorted_pairs(as_pairs(ends))[0] for ends in (near, far))
        rough = self._shrink_by_labels(span.X, classes, units)
        self._fit_to(span, similar, dissimilar, rough, rows=rows, classes=classes)

    def fit_pairs(self, pairs: Any, same: ArrayLike, *, X: Any = None) -> DMLEig:
        """Learn the metric from pairs that are the same or not, and the threshold of `predict`.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) indices of samples in X
            Strings are labels of the index of the frame X.
        same : booleans or ±1 of shape (n_pairs,)
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        samples, similar, dissimilar, given = self._paired(pairs, same, X)
        self._check(samples.shape[0])
        span, order = by_keys(self._dense_view(samples))
        place = np.argsort(order)
        similar, _ = sorted_pairs(place[similar])
        dissimilar, found = sorted_pairs(place[dissimilar])
        given = given[found]
        rough = self._shrink_by_pairs(span.X, similar, dissimilar)
        self._fit_to(span, similar, dissimilar, rough, given=given)
        return self.calibrate(pairs, same, X=X)

    def _fit_to(
        self,
        span: Span,
        similar: Indices,
        dissimilar: Indices,
        rough: Array | None,
        *,
        rows: Indices | None = None,
        given: Indices | None = None,
        classes: Indices | None = None,
    ) -> None:
        """Learn from pairs; `rows` are the positions of the samples, or `given` those of the
        dissimilar pairs, in the input. `classes` are those of the samples, if known."""
        white, X = self._whitened(span.X, similar)
        plain = distances(X, dissimilar) / X.shape[1]
        apart = separable(dissimilar if rows is None else rows[dissimilar], plain, given)
        dissimilar, plain = dissimilar[apart], plain[apart]
        self.mu_ = SMOOTHING * float(np.median(plain)) if self.mu == "auto" else float(self.mu)
        floor = Floor(self.floor_)
        problem = dml_eig_whitened(floor.samples(X), dissimilar, self.mu_, offset=floor.rho * plain)
        start = self._above(floor, span, rough, white)
        maps = maps_in(span.X, classes, white.coordinates)
        k, gram = self._limit(X.shape[1]), X.T @ X
        result = self._minimize_at_rank(problem, k, gram, maps, init=start)
        reached = floor.distances(distances(X @ result.factor, dissimilar), plain)
        self.max_min_ = self._max_min(X, dissimilar, plain, reached)
        self._finish(result, *self._shrunk(floor.factor(result.factor), gram, white, span))

    def _max_min(self, X: Array, dissimilar: Indices, plain: Array, reached: Array) -> MaxMin:
        """min_D d at this metric, and max_S Σ u_τ d_τ for the weights u that smoothing gives."""
        u = softmax(-reached / self.mu_)
        scatter, last = pair_scatter(X, dissimilar, weights=u, near=True), X.shape[1] - 1
        largest = float(scipy.linalg.eigvalsh(scatter, subset_by_index=[last, last])[0])
        bound = self.floor_ * float(u @ plain) + (1.0 - self.floor_) * largest
        return MaxMin(float(reached.min()), bound)


def separable(dissimilar: Indices, plain: Array, given: Indices | None) -> NDArray[np.bool_]:
    """The dissimilar pairs of different samples; a warning names the others."""
    apart: NDArray[np.bool_] = plain > 1e-14 * float(plain.max())
    if apart.all():
        return apart
    first = int(np.argmin(plain))
    if given is None:
        i, j = dissimilar[first]
        which = f"samples {i} and {j} are identical but of different classes"
    else:
        which = f"the points of pairs[{given[first]}] are identical but marked as different"
    if not apart.any():
        raise ValueError(f"{which}, as are all other dissimilar pairs: no metric tells them apart")
    warn(
        f"{which}, as {int((~apart).sum())} of {apart.size} dissimilar pairs are: no metric "
        "can tell those apart, and they are left out",
    )
    return apart
