"""Pairwise constraint propagation in the smoothest eigenvectors of the graph Laplacian."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.common.parameters import ABOVE_ZERO, COUNT, NOT_NEGATIVE, or_auto
from gramian.common.types import Array
from gramian.estimators.parameters import with_parameters
from gramian.graph import smoothest
from gramian.kernel._base import LinkedKernel
from gramian.problems.kernel import reg_pcp_to
from gramian.reductions.waves import Waves
from gramian.result import Result

WAVES, MORE = 50, 2
"""Default number of eigenvectors, and the factor by which more are tried."""


@with_parameters
class RegPCP(LinkedKernel):
    """A kernel QYQᵀ, where Q holds the smoothest eigenvectors of the normalised Laplacian.

    Solves min η tr(ΛY) + Σ ω_ij ((QYQᵀ)_ij − t_ij)² over Y ⪰ 0, where the sum is over the links and
    the diagonal, t_ij = 1 for i = j and must-links, 0 for cannot-links; Λ holds the eigenvalues,
    and ω = 1 on the diagonal. The thesis (eq. 3.12) has η = 0 and ω = 1 everywhere: then a hundred
    links among thousands of diagonal entries hardly count, and enough eigenvectors to satisfy them
    fit the links only. The problem has order m for any number of samples.

    Few eigenvectors cannot satisfy all links. The clusters still do where possible: samples joined
    by must-links are one point of k-means, and cannot-linked ones are separated; `links_met_` is
    the fraction of satisfied links.

    Parameters
    ----------
    n_basis : int or "auto"
        m, the number of eigenvectors; fewer if there are fewer samples. "auto" is 50, or twice the
        number of clusters if that is more, and at most a quarter of the samples; or twice as many
        if clearly better on held-out links, with up to 2,000 samples and 20 links of each kind.
    smoothness : float
        η.
    link_weight : float
        ω of the links, relative to 1 for the diagonal; it multiplies their own weights.
    shrinkage :
        As in `NPKL`.
    n_clusters, affinity, n_neighbors, bandwidth, approximate, rank :
        As in `NPKL`.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    basis_ : array of shape (n_samples, m)
        Q.
    setting_path_ : EvidencePath
        The values of m and 1 − AUC of held-out links, if "auto" had enough of them.
    result_ : Result
        Its factor is that of Y.
    links_met_ : float
        The fraction of must-links and cannot-links that `labels_` satisfies.
    shrinkage_, path_ :
        As in `NPKL`.
    kernel_factor_, labels_, n_clusters_, links_, constraint_violation_, laplacian_ :
        As in `NPKL`.
    certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NPKL`.
    """

    n_basis: int | str = "auto"
    smoothness: float = 1.0
    link_weight: float = 10.0

    _rules: ClassVar = {
        "n_basis": or_auto(COUNT),
        "smoothness": NOT_NEGATIVE,
        "link_weight": ABOVE_ZERO,
    }

    _keeps_links = True

    _setting = "n_basis"

    def _prepare(self) -> None:
        most = int(max(self._settings()))
        self._roughness, self._basis = smoothest(self.laplacian_, most, constant=True)

    def _settings(self) -> tuple[float, ...]:
        n, m = self.links_.n, self._waves()
        if isinstance(self.n_basis, str) and self._enough and MORE * m <= n // 4:
            return float(m), float(MORE * m)
        return (float(min(m, n)),)

    def _take(self, setting: float) -> None:
        self.basis_ = self._basis[:, : int(setting)]

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        entries, targets, weights = self.links_.with_diagonal(merged=False)
        linked = entries[:, 0] != entries[:, 1]
        problem = reg_pcp_to(
            self.basis_,
            entries,
            targets,
            np.where(linked, self.link_weight, 1.0) * weights,
            roughness=self.smoothness * self._roughness[: self.basis_.shape[1]],
        )
        waves = Waves(self.basis_)
        result = self._minimize(problem, None if start is None else waves.coordinates(start))
        return result, waves.factor(result.factor)

    def _waves(self) -> int:
        if not isinstance(self.n_basis, str):
            return self.n_basis
        clusters = self.n_clusters_ or 2
        return max(min(max(WAVES, 2 * clusters), self.links_.n // 4), clusters)
