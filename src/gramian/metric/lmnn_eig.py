"""LMNN-eig: large margins as an eigenvalue problem with slack."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from gramian.common.parameters import INSIDE
from gramian.constraints import (
    as_triplets,
    check_class_sizes,
    other_class_neighbors,
    same_class_neighbors,
)
from gramian.estimators.parameters import with_parameters
from gramian.losses import FilledSoftMin
from gramian.metric._few_columns import maps_in
from gramian.metric._floor import FlooredLearner, floor_for
from gramian.metric._local import (
    neighbor_space,
    ridge_for,
    targets_of,
)
from gramian.metric._max_min import MaxMin
from gramian.metric.dml_eig import distances, principal_whitening
from gramian.problems.local_metric import lmnn_eig_whitened, pair_scatter, whitening
from gramian.reductions.floor import Floor
from gramian.reductions.slack import SlackRow
from gramian.reductions.span import Span

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

SMOOTHING = 0.1
"""μ in units of the largest level that a multiple of I reaches."""


@with_parameters
class LMNNEig(FlooredLearner):
    """Learn large margins between targets and impostors by eigenvalue optimisation with slack.

    Solves max min_T (ξ_τ + ⟨C̃_τ, S⟩) over S ⪰ 0, ξ ≥ 0 with γ tr S + (1 − γ) 1ᵀξ = 1 (DML-eig
    eq. 16, equivalent to LMNN with a plain hinge by its Lemma 2), smoothed by μ. The triplets τ
    join each sample with its k targets and k impostors; C̃_τ is their margin after whitening by
    the scatter X_S = GGᵀ of the targets, and M = G⁻ᵀSG⁻¹. The floor S ⪰ ρ (tr S/d) I, which is
    ours, keeps a part of the plain whitening; the paper has ρ = 0.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all that M has.
    n_neighbors : int
        Targets and impostors of each sample.
    gamma : float in (0, 1)
        γ: the price of large distances to targets against that of slack.
    mu : float or "auto"
        The smoothing μ; "auto" is a tenth of the largest margin that a multiple of the plain
        whitening reaches with its slack, whatever the scale of the data.
    floor : float in [0, 1) or "auto"
        ρ; 0 is the paper's model. "auto" is 0.7, and nearer to 1 with fewer than ten samples
        for every feature; it is 0 where `rank` is given.
    shrinkage : float in [0, 1] or "auto"
        α of M = (1 − α) M̂ + α c I, M̂ the optimum of the problem above and c I the multiple of
        Euclid's metric of the same mean square over the samples: 0 is the model as it is, 1 is
        to do nothing. "auto" lets held-out neighbours or triplets choose, Euclid's metric among
        what they choose from; it is 0 where `rank` is given, and where there is too little to
        hold out.
    neighbor_metric : {"kta", "euclidean"}
        Where targets and impostors are nearest: after a quick alignment with the labels (`KTA`),
        or in the features as they are.
    ridge : float or "auto"
        Added to X_S, in units of its mean eigenvalue. "auto" is 1e-3, or 1 where the samples span
        more than half as many directions as they are.
    rank : int, optional
        The largest rank of M. F is minimised over factors with so many columns, from several
        starting maps (the optimum of any rank, cut; discriminants; principal directions), and the
        certificate compares with the optimum of any rank. There is no floor then, and no shrinkage:
        either would make M of full rank, and is refused beside a rank.
    init : fitted metric learner, optional
        Start from its metric.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The rows of a factor of M, in decreasing order of the variance of the mapped samples.
    mu_, floor_, ridge_ : float
        The smoothing, the floor and the ridge used.
    shrinkage_ : float
        α. `result_` and `certificate_` are those of M̂.
    path_ : EvidencePath
        The α that were tried and their held-out errors, where shrinkage="auto" found enough to
        hold out; `print` says what was chosen, and where nothing was gained.
    max_min_ : MaxMin
        The smallest margin with slack reached, and a bound that nothing feasible can pass (17).
    result_ : Result
        Of order d + 1: its last row carries the slack (see `gramian.problems.lmnn_eig`).
    certificate_ : Certificate
        How far from the optimum of the smoothed problem (S, ξ) can be.
    classes_, n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.
    """

    n_neighbors: int = 3
    gamma: float = 0.5
    mu: float | str = "auto"
    floor: float | str = "auto"
    shrinkage: float | str = "auto"
    neighbor_metric: str = "kta"
    ridge: float | str = "auto"
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {"gamma": INSIDE}

    def fit(self, X: Any, y: ArrayLike) -> LMNNEig:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        X, classes = self._labelled(X, y)
        self._check(X.shape[0])
        check_class_sizes(classes, self.classes_, self.n_neighbors)
        span, classes, _ = self._arranged(X, classes)
        samples = span.X
        k, device = self.n_neighbors, self.device
        space, units = neighbor_space(
            samples, classes, self.neighbor_metric, units=self.aligned_by, device=device
        )
        near = same_class_neighbors(space, classes, k, device=device)
        triplets = as_triplets(near, other_class_neighbors(space, classes, k, device=device))
        rough = self._shrink_by_labels(samples, classes, units=units, **self._amounts(samples))
        return self._fit_to(span, triplets, rough, classes)

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNNEig:
        """Learn the metric from triplets (anchor, same, other).

        Parameters
        ----------
        triplets : array of shape (n_triplets, 3, n_features), or (n_triplets, 3) indices in X
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        X, indices = self._tripled(triplets, X)
        self._check(X.shape[0])
        span = self._dense_view(X)
        samples = span.X
        rough = self._shrink_by_triplets(samples, indices, **self._amounts(samples))
        return self._fit_to(span, indices, rough)

    def _fit_to(
        self,
        span: Span,
        triplets: Indices,
        rough: Array | None,
        classes: Indices | None = None,
    ) -> LMNNEig:
        self.ridge_ = ridge_for(self.ridge, span.X)
        scatter = whitening(span.X, targets_of(triplets), ridge=self.ridge_)
        white = principal_whitening(span.X, scatter)
        X = white.samples(span.X)
        self.floor_ = floor_for(self.floor, X, self.rank)
        plain = _margins(X, triplets) / X.shape[1]
        self.mu_: float = self._smoothing(plain)
        floor, row = Floor(self.floor_), SlackRow(self.gamma)
        problem = lmnn_eig_whitened(
            floor.samples(X), triplets, self.gamma, self.mu_, plain=floor.rho * plain
        )
        start = self._above(floor, span, rough, white)
        if start is not None:
            start = min(row.starts(start), key=problem.value)

        def with_slack(L: Array) -> Array:
            L = white.coordinates(L)
            starts = row.starts(L / np.linalg.norm(L))
            return min((_merged(Y) for Y in starts), key=problem.value)

        maps = maps_in(span.X, classes, with_slack)
        result = self._minimize_at_rank(problem, maps, init=start)
        self.max_min_ = self._max_min(X, triplets, plain, result.factor)
        self._finish(result, *self._shrunk(floor.factor(row.factor(result.factor)), X, white, span))
        return self

    def _smoothing(self, margins: Array) -> float:
        """μ; `margins` are those of S = I/d."""
        if self.mu != "auto":
            return float(self.mu)
        fill = FilledSoftMin(mu=1.0, rate=1.0)
        levels = [
            fill.level(np.append(share / self.gamma * margins, (1 - share) / (1 - self.gamma)))
            for share in np.linspace(0.0, 1.0, 21)
        ]
        return SMOOTHING * float(max(levels))

    def _max_min(self, X: Array, triplets: Indices, plain: Array, factor: Array) -> MaxMin:
        """The level the least margins are raised to, and the bound (17) of the weights u."""
        row, floor = SlackRow(self.gamma), self.floor_
        S = row.factor(factor)
        margins = Floor(floor).distances(_margins(X @ S, triplets), np.sum(S * S) * plain)
        loss = FilledSoftMin(mu=self.mu_, rate=row.rate)
        z = np.append(margins, row.slack(factor))
        u = -loss.gradient(z)[:-1]
        far, near = triplets[:, [0, 2]], triplets[:, :2]
        scatter = pair_scatter(X, far, weights=u) - pair_scatter(X, near, weights=u)
        largest = (1 - floor) * float(scipy.linalg.eigvalsh(scatter)[-1])
        along = floor * float(u @ plain)
        bound = max(float(u.max()) / (1 - self.gamma), (largest + along) / self.gamma)
        return MaxMin(loss.level(z), bound)


def _merged(Y: Array) -> Array:
    """The factor of S and its slack with the slack in the first column: F sees the same."""
    merged = Y[:, :-1].copy()
    merged[-1, 0] = Y[-1, -1]
    return merged


def _margins(Z: Array, triplets: Indices) -> Array:
    """d(i, l) − d(i, j) of the triplets (i, j, l)."""
    return distances(Z, triplets[:, [0, 2]]) - distances(Z, triplets[:, :2])
