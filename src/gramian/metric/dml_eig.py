"""DML-eig: the largest smallest distance of dissimilar pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from gramian.arrays.dense import eigh, row_signs
from gramian.constraints import (
    as_pairs,
    check_class_sizes,
    other_class_neighbors,
    same_class_neighbors,
)
from gramian.estimators.parameters import with_parameters
from gramian.maps import PairDistances
from gramian.metric._base import sorted_pairs
from gramian.metric._few_columns import maps_in
from gramian.metric._floor import FlooredLearner, floor_for
from gramian.metric._kernel import KernelMetricLearner
from gramian.metric._local import (
    neighbor_space,
    ridge_for,
)
from gramian.metric._max_min import MaxMin
from gramian.metric._shrinkage import by_keys
from gramian.problems.local_metric import dml_eig_whitened, pair_scatter, whitening
from gramian.reductions.floor import Floor
from gramian.reductions.scatter_whitening import ScatterWhitening
from gramian.reductions.span import Span

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

SMOOTHING = 0.3
"""μ in units of the median distance of the dissimilar pairs at S = I/d."""


@with_parameters
class DMLEig(KernelMetricLearner, FlooredLearner):
    """Learn the metric whose smallest distance between dissimilar pairs is largest.

    Solves max min_D d_M over M ⪰ 0 with Σ_S d_M ≤ 1 (DML-eig eq. 3), S and D the pairs of each
    sample with its nearest of the same and of other classes, smoothed by μ (§3.1): with the
    scatter X_S = GGᵀ of the similar pairs and M = G⁻ᵀSG⁻¹ it is

        min μ ln Σ_D exp(−⟨X̃_τ, S⟩/μ)  over  S ⪰ (ρ/d) I, tr S = 1.

    The paper has ρ = 0. Its smallest distances decide everything, and with few pairs a metric of
    very low rank wins them; the floor ρ keeps a part of the plain whitening.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all that M has.
    n_neighbors : int
        Similar and dissimilar pairs of each sample.
    mu : float or "auto"
        The smoothing μ, in the units of the whitened distances. It is a statistical choice as
        much as a numerical one: "auto" is 0.3 of the median distance of the dissimilar pairs
        under S = I/d, whatever the scale of the data. `max_min_` tells what smoothing leaves of
        the max–min problem itself.
    floor : float in [0, 1) or "auto"
        ρ; 0 is the paper's model. "auto" is 0.7, and nearer to 1 with fewer than ten samples
        for every feature; it is 0 where `rank` is given.
    shrinkage : float in [0, 1] or "auto"
        α of M = (1 − α) M̂ + α c I, M̂ the optimum of the problem above and c I the multiple of
        Euclid's metric of the same mean square over the samples: 0 is the model as it is, 1 is
        to do nothing. "auto" lets held-out neighbours or pairs choose, Euclid's metric among
        what they choose from; it is 0 where `rank` is given, and where there is too little to
        hold out.
    neighbor_metric : {"kta", "euclidean"}
        Where pairs are nearest: after a quick alignment with the labels (`KTA`), or in the
        features as they are.
    kernel : str or callable, optional
        Learn in the feature space of a kernel of scikit-learn's, by name, or of a function of
        two sample matrices that gives the matrix of kernel values. The model is exact in the
        span of the samples, and holds n × n matrices.
    kernel_params : dict, optional
        Parameters of the kernel; γ of "rbf" is 1/Σ_j var(X_j) unless given.
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
        As in `gramian.minimize`. ``solver="frank-wolfe"`` is the paper's, improved.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The rows of a factor of M, in decreasing order of the variance of the mapped samples. With
        a kernel `dual_components_`, their weights of the samples of the fit, stands in its place.
    mu_, floor_, ridge_ : float
        The smoothing, the floor and the ridge used.
    shrinkage_ : float
        α. `result_` and `certificate_` are those of M̂.
    path_ : EvidencePath
        The α that were tried and their held-out errors, where shrinkage="auto" found enough to
        hold out; `print` says what was chosen, and where nothing was gained.
    max_min_ : MaxMin
        The smallest distance reached, and a bound that no metric of the model can pass.
    threshold_ : float
        The distance up to which `predict` calls a pair the same, after `fit_pairs`, `calibrate`.
    result_ : Result
    certificate_ : Certificate
        How far from the optimum of the smoothed problem S can be.
    classes_, n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

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

    n_neighbors: int = 3
    mu: float | str = "auto"
    floor: float | str = "auto"
    shrinkage: float | str = "auto"
    neighbor_metric: str = "kta"
    kernel: str | Callable[..., Array] | None = None
    kernel_params: dict[str, Any] | None = None
    ridge: float | str = "auto"
    rank: int | None = None
    init: Any = None

    def fit(self, X: Any, y: ArrayLike) -> DMLEig:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        X, classes = self._labelled(X, y)
        self._check(X.shape[0])
        check_class_sizes(classes, self.classes_, self.n_neighbors)
        span, classes, rows = self._arranged(X, classes)
        samples = span.X
        k, device = self.n_neighbors, self.device
        space, units = neighbor_space(
            samples, classes, self.neighbor_metric, units=self.aligned_by, device=device
        )
        near = same_class_neighbors(space, classes, k, device=device)
        far = other_class_neighbors(space, classes, k, device=device)
        similar, dissimilar = (sorted_pairs(as_pairs(ends))[0] for ends in (near, far))
        rough = self._shrink_by_labels(samples, classes, units=units, **self._amounts(samples))
        return self._fit_to(span, similar, dissimilar, rough, rows=rows, classes=classes)

    def fit_pairs(self, pairs: Any, same: ArrayLike, *, X: Any = None) -> DMLEig:
        """Learn the metric from pairs that are the same or not, and the threshold of `predict`.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) indices of samples in X
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
        rough = self._shrink_by_pairs(span.X, similar, dissimilar, **self._amounts(span.X))
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
    ) -> DMLEig:
        """Learn from pairs; `rows` are the places of the samples, or `given` those of the
        dissimilar pairs, among what was passed. `classes` are those of the samples, if known."""
        self.ridge_ = ridge_for(self.ridge, span.X)
        white = principal_whitening(span.X, whitening(span.X, similar, ridge=self.ridge_))
        X = white.samples(span.X)
        self.floor_ = floor_for(self.floor, X, self.rank)
        plain = distances(X, dissimilar) / X.shape[1]
        apart = _told_apart(dissimilar if rows is None else rows[dissimilar], plain, given)
        dissimilar, plain = dissimilar[apart], plain[apart]
        self.mu_ = SMOOTHING * float(np.median(plain)) if self.mu == "auto" else float(self.mu)
        floor = Floor(self.floor_)
        problem = dml_eig_whitened(floor.samples(X), dissimilar, self.mu_, offset=floor.rho * plain)
        start = self._above(floor, span, rough, white)
        maps = maps_in(span.X, classes, white.coordinates)
        result = self._minimize_at_rank(problem, maps, init=start)
        reached = floor.distances(distances(X @ result.factor, dissimilar), plain)
        self.max_min_ = self._max_min(X, dissimilar, plain, reached)
        self._finish(result, *self._shrunk(floor.factor(result.factor), X, white, span))
        return self

    def _max_min(self, X: Array, dissimilar: Indices, plain: Array, reached: Array) -> MaxMin:
        """min_D d at this metric, and max_S Σ u_τ d_τ for the weights u that smoothing gives."""
        u = softmax(-reached / self.mu_)
        scatter = pair_scatter(X, dissimilar, weights=u)
        largest = float(scipy.linalg.eigvalsh(scatter)[-1])
        bound = self.floor_ * float(u @ plain) + (1.0 - self.floor_) * largest
        return MaxMin(float(reached.min()), bound)


def principal_whitening(samples: Array, white: ScatterWhitening) -> ScatterWhitening:
    """R turned to the principal axes of the whitened samples, each with the sign they give it.

    Coordinates that only the samples decide: turning the features, or taking them from a linear
    kernel, changes nothing after this.
    """
    Z = samples @ white.matrix
    _, axes = eigh(Z.T @ Z)
    signs = row_signs((Z @ axes).T)
    return ScatterWhitening(white.matrix @ (axes * signs))


def distances(Z: Array, pairs: Indices) -> Array:
    """‖z_i − z_j‖² of the pairs."""
    return PairDistances(pairs, Z.shape[0]).bilinear(Z, Z)


def _told_apart(dissimilar: Indices, plain: Array, given: Indices | None) -> NDArray[np.bool_]:
    """The dissimilar pairs that any metric can tell apart; the others are named in a warning."""
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
    warnings.warn(
        f"{which}, as {int((~apart).sum())} of {apart.size} dissimilar pairs are: no metric "
        "can tell those apart, and they are left out",
        stacklevel=4,
    )
    return apart
