"""LMNN-eig: large margins as an eigenvalue problem with slack."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.linalg

from gramian.common.parameters import INSIDE
from gramian.common.types import Array, Indices
from gramian.constraints import as_triplets
from gramian.estimators.parameters import with_parameters
from gramian.losses import FilledSoftMin
from gramian.metric._few_columns import maps_in
from gramian.metric._local import FlooredLearner, MaxMin, distances, targets_of
from gramian.metric._shrinkage import TripletFits
from gramian.problems.local_metric import lmnn_eig_whitened, pair_scatter
from gramian.reductions.floor import Floor
from gramian.reductions.slack import SlackRow
from gramian.reductions.span import Span

SMOOTHING = 0.1
"""μ in units of the largest level that a multiple of I reaches."""


@with_parameters
class LMNNEig(TripletFits, FlooredLearner):
    """Learn large margins between targets and impostors by eigenvalue optimisation with slack.

    Solves max min_T (ξ_τ + ⟨C̃_τ, S⟩) over S ⪰ 0, ξ ≥ 0 with γ tr S + (1 − γ) 1ᵀξ = 1 (DML-eig
    eq. 16, equivalent to LMNN with a plain hinge by its Lemma 2), smoothed by μ. The triplets τ
    join each sample with its k targets and k impostors; C̃_τ is their margin after whitening by
    the scatter X_S = GGᵀ of the targets, and M = G⁻ᵀSG⁻¹. The floor S ⪰ ρ (tr S/d) I, which the
    paper does not have (ρ = 0), keeps a part of the plain whitening.

    Parameters
    ----------
    lam : float in (0, 1)
        γ: the weight of large distances to targets against that of slack.
    mu : float or "auto"
        The smoothing μ; "auto" is a tenth of the largest margin that a multiple of the plain
        whitening reaches with its slack, independent of the scale of the data.

    Attributes
    ----------
    max_min_ : MaxMin
        The smallest margin with slack reached, and an upper bound for all feasible points (17).
    result_ : Result
        Of order d + 1: its last row is the slack (see `gramian.problems.lmnn_eig`).
    certificate_ : Certificate
        A bound on the distance of (S, ξ) from the optimum of the smoothed problem.
    """

    lam: float = 0.5

    _rules: ClassVar = {"lam": INSIDE}
    _renamed: ClassVar = {"gamma": "lam"}

    def _fit_labels(self, span: Span, classes: Indices, rows: Indices) -> None:
        near, far, units = self._local_neighbors(span.X, classes)
        rough = self._shrink_by_labels(span.X, classes, units)
        self._fit_to(span, as_triplets(near, far), rough, classes)

    def _fit_triplets(self, span: Span, triplets: Indices) -> None:
        self._fit_to(span, triplets, self._shrink_by_triplets(span.X, triplets))

    def _fit_to(
        self,
        span: Span,
        triplets: Indices,
        rough: Array | None,
        classes: Indices | None = None,
    ) -> None:
        white, X = self._whitened(span.X, targets_of(triplets))
        gram = X.T @ X
        plain = _margins(X, triplets) / X.shape[1]
        self.mu_: float = self._smoothing(plain)
        floor, row = Floor(self.floor_), SlackRow(self.lam)
        problem = lmnn_eig_whitened(
            floor.samples(X), triplets, self.lam, self.mu_, plain=floor.rho * plain
        )
        start = self._above(floor, span, rough, white)
        if start is not None:
            start = min(row.starts(start), key=problem.value)

        def with_slack(L: Array) -> Array:
            L = white.coordinates(L)
            starts = row.starts(L / np.linalg.norm(L))
            return min((_merged(Y) for Y in starts), key=problem.value)

        maps = maps_in(span.X, classes, with_slack)
        k = self._limit(X.shape[1])
        result = self._minimize_at_rank(problem, k, np.pad(gram, (0, 1)), maps, init=start)
        self.max_min_ = self._max_min(X, triplets, plain, result.factor)
        factor = floor.factor(row.factor(result.factor))
        self._finish(result, *self._shrunk(factor, gram, white, span))

    def _smoothing(self, margins: Array) -> float:
        """μ; `margins` are those of S = I/d."""
        if self.mu != "auto":
            return float(self.mu)
        fill = FilledSoftMin(mu=1.0, rate=1.0)
        levels = [
            fill.level(np.append(share / self.lam * margins, (1 - share) / (1 - self.lam)))
            for share in np.linspace(0.0, 1.0, 21)
        ]
        return SMOOTHING * float(max(levels))

    def _max_min(self, X: Array, triplets: Indices, plain: Array, factor: Array) -> MaxMin:
        """The level of the smallest margins with slack, and the bound (17) of the weights u."""
        row, floor = SlackRow(self.lam), self.floor_
        S = row.factor(factor)
        margins = Floor(floor).distances(_margins(X @ S, triplets), np.sum(S * S) * plain)
        loss = FilledSoftMin(mu=self.mu_, rate=row.rate)
        z = np.append(margins, row.slack(factor))
        u = -loss.gradient(z)[:-1]
        far, near = triplets[:, [0, 2]], triplets[:, :2]
        scatter = pair_scatter(X, far, weights=u) - pair_scatter(X, near, weights=u)
        largest = (1 - floor) * float(scipy.linalg.eigvalsh(scatter)[-1])
        along = floor * float(u @ plain)
        bound = max(float(u.max()) / (1 - self.lam), (largest + along) / self.lam)
        return MaxMin(loss.level(z), bound)


def _merged(Y: Array) -> Array:
    """The factor of S and its slack with the slack in the first column: F is the same."""
    merged = Y[:, :-1].copy()
    merged[-1, 0] = Y[-1, -1]
    return merged


def _margins(Z: Array, triplets: Indices) -> Array:
    """d(i, l) − d(i, j) of the triplets (i, j, l)."""
    return distances(Z, triplets[:, [0, 2]]) - distances(Z, triplets[:, :2])
