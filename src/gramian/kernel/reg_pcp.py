"""Pairwise constraint propagation in the smoothest waves of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.constraints import whole_number
from gramian.graph import smoothest
from gramian.kernel._base import LinkedKernel
from gramian.problems.kernel import reg_pcp_to
from gramian.result import Result

Array = NDArray[np.floating]

MOST_WAVES = 50


class RegPCP(LinkedKernel):
    """A kernel of few waves: QYQᵀ, Q the smoothest of the graph's normalised Laplacian.

    Solves min Σ ((QYQᵀ)_ij − t_ij)² over Y ⪰ 0 (thesis eq. 3.12), the sum over the links and the
    diagonal, t_ij = 1 for i = j and must-links, 0 for cannot-links. Of order m whatever the number
    of samples.

    Parameters
    ----------
    n_basis : int or "auto"
        m, the number of waves; fewer where the samples are. "auto" takes √(2p) for p links, at
        least the number of clusters and at most 50 or a quarter of the samples: more waves than
        the links can hold would follow them and nothing else.
    n_clusters, affinity, n_neighbors, bandwidth, approximate, rank :
        As in `NPKL`.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    basis_ : array of shape (n_samples, m)
        Q.
    result_ : Result
        Its factor is that of Y.
    kernel_factor_, labels_, n_clusters_, links_, constraint_violation_, laplacian_ :
        As in `NPKL`.
    certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NPKL`.
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        n_basis: int | str = "auto",
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
        self.n_basis = n_basis
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.n_basis, str) and self.n_basis != "auto":
            raise ValueError(f'n_basis must be a whole number or "auto", got {self.n_basis!r}')
        if not isinstance(self.n_basis, str):
            whole_number(self.n_basis, "n_basis")

    def _fit_to(self, X: Any) -> None:
        self.__dict__.pop("basis_", None)  # that of another fit
        super()._fit_to(X)

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        if not hasattr(self, "basis_"):
            m = min(self._waves(), self.laplacian_.shape[0])
            self.basis_ = smoothest(self.laplacian_, m, constant=True)[1]
        problem = reg_pcp_to(self.basis_, *self.links_.with_diagonal(merged=False))
        result = self._minimize(problem, None if start is None else self.basis_.T @ start)
        return result, self.basis_ @ result.factor

    def _waves(self) -> int:
        if not isinstance(self.n_basis, str):
            return self.n_basis
        enough = int(np.sqrt(2 * len(self.links_.pairs)))
        most = min(MOST_WAVES, self.links_.n // 4)
        return max(min(enough, most), self.n_clusters_ or 2)
