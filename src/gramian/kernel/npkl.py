"""Nonparametric kernel learning."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.common.parameters import ABOVE_ZERO, or_auto
from gramian.kernel._base import LinkedKernel
from gramian.problems.kernel import npkl_to
from gramian.reductions.base import Reduction, Substitution
from gramian.result import Result

Array = NDArray[np.floating]

STRENGTHS = (10.0, 1.0, 100.0)
"""λ that links held out choose from; the first stands unless another is clearly better."""


class NPKL(LinkedKernel):
    """A kernel that is smooth along the graph of the samples and near what is known of pairs.

    Solves min tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over Z ⪰ 0 (BiS eq. 4): L the normalised Laplacian of
    a neighbourhood graph, and the sum over the links and the diagonal, T_ij = 1 for i = j and
    must-links, 0 for cannot-links. k-means on the rows of the kernel's factor, at unit length,
    gives clusters.

    Parameters
    ----------
    n_clusters : int, optional
        Clusters of `labels_`; as many as `y` has classes where it is not given.
    lam : float or "auto"
        λ, what the links count beside the smoothness. "auto" lets links held out choose among 1,
        10 and 100, with up to 2,000 samples and 20 links of either kind; otherwise it is 10, which
        clusters about as well on the sets it was tried on, in less than half of the time.
    merge : bool
        Samples that must-links join become one point of the graph: the must-links then hold
        exactly, and the problem is smaller.
    shrinkage : float in [0, 1] or "auto"
        The part β of the graph's own smoothest waves, as many as clusters, in the rows that
        k-means sees: 0 is the learned kernel alone, 1 is spectral clustering. "auto" lets links
        held out choose, where there are enough of them; where nothing is clearly better it is 0,
        or 0.25 for a kernel of smaller rank than there are clusters. With more than 2,000 samples
        it is 0. The kernel itself is not changed.
    affinity : {"nearest_neighbors", "precomputed", "precomputed_laplacian"}
        What X is: samples, their affinities, or the Laplacian.
    n_neighbors : int
        Neighbours of each sample in the graph.
    bandwidth : float or "auto"
        σ of the affinities exp(−d²/σ²); "auto" takes σ² = the median of d² over the edges.
    approximate : bool
        From 50,000 samples on, allow some neighbours to be missed; needs ``gramian[neighbours]``.
        `neighbor_recall_` says what share was found.
    rank : int, optional
        The largest rank of the kernel; the certificate then says what the limit can cost.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    kernel_factor_ : array of shape (n_samples, rank)
        L, its columns orthogonal and falling: LLᵀ is the learned kernel.
    labels_ : array of shape (n_samples,)
    n_clusters_ : int or None
    shrinkage_ : float
        β.
    lam_ : float
        λ.
    setting_path_ : EvidencePath
        The λ that were tried with lam="auto", as `path_`.
    path_ : EvidencePath
        The β that were tried and 1 − AUC of the links held out, where shrinkage="auto" found
        enough of them; `print` says what was chosen.
    links_met_ : float
        The share of the must-links and cannot-links that `labels_` keeps.
    links_ : Links
    constraint_violation_ : float
        The largest |Z_ij − T_ij| over the links and the diagonal.
    neighbor_recall_ : float
        The share of the nearest neighbours that the graph has; 1 unless approximate.
    laplacian_ : sparse array of shape (n_samples, n_samples)
    result_ : Result
    certificate_ : Certificate
        How far from the optimum the kernel can be.
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

    _rules: ClassVar = {"lam": or_auto(ABOVE_ZERO)}

    _setting = "lam"

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        lam: float | str = 10.0,
        merge: bool = False,
        shrinkage: float | str = "auto",
        affinity: str = "nearest_neighbors",
        n_neighbors: int = 10,
        bandwidth: float | str = "auto",
        approximate: bool = False,
        solver: str = "auto",
        rank: int | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        progress: bool = False,
        device: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam = lam
        self.merge = merge
        self.shrinkage = shrinkage
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.approximate = approximate
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def _settings(self) -> tuple[float, ...]:
        return STRENGTHS if self.lam == "auto" else (float(self.lam),)

    def _take(self, setting: float) -> None:
        self.lam_ = setting

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        return self._penalised(self.lam_, start, self.merge)

    def _penalised(self, lam: float, start: Array | None, merge: bool) -> tuple[Result, Array]:
        """The kernel for one λ, of the samples or of the groups that must-links join."""
        entries, targets, weights = self.links_.with_diagonal(merge)
        way: Reduction = self.links_.merge if merge else Substitution(None)
        laplacian = self.links_.merge.summed(self.laplacian_) if merge else self.laplacian_
        start = None if start is None else way.coordinates(start)
        result = self._minimize(npkl_to(laplacian, entries, targets, 0.5 * lam * weights), start)
        return result, way.factor(result.factor)
