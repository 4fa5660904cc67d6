"""Nonparametric kernel learning."""

from __future__ import annotations

from typing import ClassVar

from gramian.common.parameters import ABOVE_ZERO, or_auto
from gramian.common.types import Array
from gramian.estimators.parameters import with_parameters
from gramian.kernel._base import LinkedKernel
from gramian.problems.kernel import npkl_to
from gramian.reductions.base import Reduction, Substitution
from gramian.result import Result

STRENGTHS = (10.0, 1.0, 100.0)
"""Candidates for λ; the first is used unless another is clearly better on held-out links."""


class Penalised(LinkedKernel):
    """Kernels whose links are a penalty."""

    def _penalised(self, lam: float, start: Array | None, merge: bool) -> tuple[Result, Array]:
        """The kernel for one λ, of the samples or of the groups joined by must-links."""
        entries, targets, weights = self.links_.with_diagonal(merge)
        way: Reduction = self.links_.merge if merge else Substitution(None)
        laplacian = self.links_.merge.summed(self.laplacian_) if merge else self.laplacian_
        start = None if start is None else way.coordinates(start)
        result = self._minimize(npkl_to(laplacian, entries, targets, 0.5 * lam * weights), start)
        return result, way.factor(result.factor)


@with_parameters
class NPKL(Penalised):
    """A kernel that is smooth along the graph of the samples and close to given links.

    Solves min tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over Z ⪰ 0 (BiS eq. 4), where L is the normalised
    Laplacian of a neighbour graph, and the sum is over the links and the diagonal: T_ij = 1 for
    i = j and must-links, 0 for cannot-links. k-means on the normalised rows of the kernel's factor
    gives the clusters.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters of `labels_`; by default the number of classes of `y`.
    lam : float or "auto"
        λ, the weight of the links relative to the smoothness. "auto" selects 1, 10 or 100 by
        held-out links, with up to 2,000 samples and at least 20 links of each kind; otherwise it is
        10, which clusters about as well on the sets tried, in less than half of the time.
    merge : bool
        Merge samples joined by must-links into one point of the graph: the must-links then hold
        exactly, and the problem is smaller.
    shrinkage : float in [0, 1] or "auto"
        The weight β of the graph's smoothest eigenvectors, as many as clusters, in the rows passed
        to k-means: 0 is the learned kernel alone, 1 is spectral clustering. "auto" selects it by
        held-out links if there are enough; if no choice is clearly better it is 0, or 0.25 for a
        kernel whose rank is below the number of clusters. With more than 2,000 samples it is 0.
        The kernel itself is not changed.
    affinity : {"nearest_neighbors", "precomputed", "precomputed_laplacian"}
        The meaning of X: samples, their affinities, or the Laplacian.
    n_neighbors : int
        Neighbours of each sample in the graph.
    bandwidth : float or "auto"
        σ of the affinities exp(−d²/σ²); "auto" uses σ² = the median of d² over the edges.
    approximate : bool
        From 50,000 samples on, allow missed neighbours; needs ``gramian[neighbours]``.
        `neighbor_recall_` is the fraction found.
    rank : int, optional
        The largest rank of the kernel; the certificate bounds the cost of this limit.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    kernel_factor_ : array of shape (n_samples, rank)
        L, with orthogonal columns of decreasing norm: LLᵀ is the learned kernel.
    labels_ : array of shape (n_samples,)
    n_clusters_ : int or None
    shrinkage_ : float
        β.
    lam_ : float
        λ.
    setting_path_ : EvidencePath
        The values of λ tried with lam="auto", like `path_`.
    path_ : EvidencePath
        The values of β and 1 − AUC of held-out links, if shrinkage="auto" had enough of them;
        `print` shows the choice.
    links_met_ : float
        The fraction of must-links and cannot-links that `labels_` satisfies.
    links_ : Links
    constraint_violation_ : float
        The largest |Z_ij − T_ij| over the links and the diagonal.
    neighbor_recall_ : float
        The fraction of the nearest neighbours found; 1 unless approximate.
    laplacian_ : sparse array of shape (n_samples, n_samples)
    result_ : Result
    certificate_ : Certificate
        A bound on the distance from the optimum.
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from gramian.kernel import NPKL
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> known = np.where(np.arange(200) < 10, y, -1)
    >>> labels = NPKL(random_state=0).fit_predict(X, known)
    >>> agree = np.mean(labels == y)
    >>> bool(max(agree, 1 - agree) > 0.95)
    True
    """

    lam: float | str = 10.0
    merge: bool = False

    _rules: ClassVar = {"lam": or_auto(ABOVE_ZERO)}

    _setting = "lam"

    def _settings(self) -> tuple[float, ...]:
        return STRENGTHS if self.lam == "auto" else (float(self.lam),)

    def _take(self, setting: float) -> None:
        self.lam_ = setting

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        return self._penalised(self.lam_, start, self.merge)
