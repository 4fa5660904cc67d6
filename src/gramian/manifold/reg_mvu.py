"""Unfolding in the smoothest eigenvectors of the graph Laplacian."""

from __future__ import annotations

from typing import Any, ClassVar

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, COUNT, or_auto
from gramian.estimators.parameters import with_parameters
from gramian.graph import Graph, smoothest
from gramian.manifold._base import STRETCH, Unfolding
from gramian.problems.manifold import reg_mvu
from gramian.reductions.waves import Waves


@with_parameters
class RegMVU(Unfolding):
    """Unfold samples with a kernel QYQᵀ, Q the smoothest eigenvectors of the graph Laplacian.

    Solves min ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0 (thesis eq. 3.11), where D_e are the
    squared lengths of the edges divided by their mean. The problem has order m for any number of
    samples: a fast approximation, certified among kernels of this form. Equal samples are one
    point.

    Parameters
    ----------
    n_components : int or "auto"
        Dimension of the embedding: the leading principal axes of the learned kernel. "auto" keeps
        95 % of its variance.
    n_neighbors : int
        Number of neighbours of each sample, at most the number of other samples.
    n_basis : int
        m, the number of eigenvectors; fewer if there are fewer samples.
    lam : float or "auto"
        The weight ν of the edge lengths. "auto" is 20/λ₂, λ₂ the smallest nonzero eigenvalue of
        the graph Laplacian: the value of `MVU` in the form of the thesis.
    connect, metric, approximate, rank, progress :
        As in `MVU`.
    solver, tol, max_iter, time_limit, random_state, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    basis_ : array of shape (n_samples, m)
        Q.
    embedding_, kernel_factor_, explained_variance_ratio_, edge_error_, graph_, lam_ :
        As in `MVU`.
    result_ : Result
        Its factor is that of Y.
    certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `MVU`.
    """

    n_basis: int = 30
    lam: float | str = "auto"
    connect: str = "mst"
    rank: int | None = None

    _rules: ClassVar = {"lam": or_auto(ABOVE_ZERO), "n_basis": COUNT}
    _renamed: ClassVar = {"nu": "lam", "nu_": "lam_"}

    def _fit_connected(self, X: Any, side: None, graph: Graph) -> None:
        values, self.basis_ = smoothest(graph.laplacian(), min(self.n_basis, graph.n - 1))
        if self.lam == "auto":
            self.lam_ = 1.0 / (STRETCH * float(values[0]))
        else:
            self.lam_ = float(self.lam)
        problem = reg_mvu(self.basis_, graph.edges, graph.sq_distances, self.lam_)
        with clock.placing(lambda Y: self._at_samples(self.basis_ @ Y)):
            result = self._minimize(problem)
        self._finish(result, Waves(self.basis_).factor(result.factor), X)
        self.basis_ = self._at_samples(self.basis_)
