"""Maximum variance unfolding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from sklearn.decomposition import TruncatedSVD

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, or_auto, or_none
from gramian.common.types import Array
from gramian.estimators.fitting import solve
from gramian.estimators.parameters import with_parameters
from gramian.graph import WAVES_SHARE, Graph, smoothest, solve_laplacian
from gramian.manifold._base import LEAST_SECONDS, STRETCH, Unfolding
from gramian.manifold._spaces import dense
from gramian.objectives import LowRankPlusIdentity
from gramian.problem import Problem
from gramian.problems.manifold import exact_mvu, mvu, reg_mvu
from gramian.reductions.waves import Waves
from gramian.result import Result, Status
from gramian.run import minimize

ENDED = (Status.TIME_LIMIT, Status.INTERRUPTED)
"""Statuses of an incomplete solve."""

COARSE = 4
"""Inverse of the share of the remaining time for the starting point."""

MANY, WAVES, ROUGHLY = 5_000, 20, 1e-2
"""Number of points above which the solve starts from few eigenvectors, the number of columns of a
starting point, and the gap of this coarse problem. For 20,000 digits this saves fifty of a hundred
and fifty steps."""


@with_parameters
class MVU(Unfolding):
    """Unfold samples: maximise their variance subject to the lengths of a neighbour graph.

    Solves min Σ_e (d_M(e) − D_e)² − ν tr(HM) over M ⪰ 0 (BILGO eq. 11), where D_e are the squared
    lengths of the edges divided by their mean and H = I − 11ᵀ/n, without which there is no minimum.
    A smaller ν preserves the edge lengths more closely, and makes the problem harder. With
    `max_edge_error` they are constraints: max tr(HM) subject to d_M(e) = D_e, M ⪰ 0. Equal samples
    are one point, which counts with its multiplicity in the variance (once with constraints).

    Parameters
    ----------
    n_components : int or "auto"
        Dimension of the embedding: the leading principal axes of the learned kernel. "auto" keeps
        95 % of its variance.
    n_neighbors : int
        Number of neighbours of each sample in the graph, at most 100 and at most the number of
        other samples. A sparsely sampled surface is unfolded more accurately with 12 than with 6.
    lam : float or "auto"
        The weight ν of the variance. "auto" is 0.05 λ₂, λ₂ the smallest nonzero eigenvalue of the
        graph Laplacian, independent of the scale and the number of samples: typical squared lengths
        change by about 1 %, those of the shortest edges by far more.
    max_edge_error : float, optional
        Largest relative error of a squared edge length, with linear constraints instead of the
        penalty (`gramian.constrained`); up to 50 samples Clarabel solves them if it is installed.
        A fit that does not satisfy them warns.
    connect : {"mst", "error", "components"}
        How to treat a disconnected graph: join its components by the shortest edges, raise an
        error, or unfold each separately about its own centre: `graph_.labels` holds the component
        of each sample, and inner products between components have no meaning.
    metric : {"euclidean", "precomputed"}
        "precomputed" takes distances instead of samples: a square array of distances between all
        of them, from which `n_neighbors` select the graph, or a sparse matrix of the edge lengths
        of a graph, each stored once or twice, as returned by `kneighbors_graph` and
        `KNeighborsTransformer` of scikit-learn. All edges of a given graph are used.
    approximate : bool
        From 50,000 samples on, allow missed neighbours; needs ``gramian[neighbours]``.
        `graph_.recall` is the fraction found.
    rank : int, optional
        The largest rank of the kernel; the certificate bounds the cost of this limit.
    progress : bool or "plot"
        Show a progress bar; "plot" draws the embedding during the fit.
    solver, tol, max_iter, time_limit, random_state, device :
        As in `gramian.minimize`, for the whole fit.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
    kernel_factor_ : array of shape (n_samples, rank)
        L centred, with orthogonal columns of decreasing length: LLᵀ is the learned kernel.
    explained_variance_ratio_ : array of shape (rank,)
    edge_error_ : float
        The largest relative error of a squared edge length.
    graph_ : Graph
        Edges of the distinct samples, and one of length 0 from the first to each copy of it.
    lam_ : float
        The ν used, for edges divided by their mean square, 0 with constraints; an array for
        several components.
    result_ : Result
    certificate_ : Certificate
        A bound on the distance from the optimum, for that ν; for several components, of the sum.
    parts_ : list of estimators
        One for each component, if connect="components" and there are several.
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_s_curve
    >>> from gramian.manifold import MVU
    >>> X, t = make_s_curve(200, random_state=0)
    >>> unfolded = MVU(n_neighbors=6).fit_transform(X)
    >>> bool(abs(np.corrcoef(unfolded[:, 0], t)[0, 1]) > 0.9)
    True
    """

    lam: float | str = "auto"
    max_edge_error: float | None = None
    connect: str = "mst"
    rank: int | None = None
    tol: float = 1e-3

    _rules: ClassVar = {"lam": or_auto(ABOVE_ZERO), "max_edge_error": or_none(ABOVE_ZERO)}
    _renamed: ClassVar = {"nu": "lam", "nu_": "lam_"}

    def _fit_connected(self, X: Any, side: Array | None, graph: Graph) -> None:
        """Unfold along all directions, or along side information: K = side sideᵀ."""
        with clock.placing(self._at_samples):
            if self.max_edge_error is not None:
                self.lam_ = 0.0
                result = self._keeping_edges(graph, side)
            else:
                result = self._penalised(graph, side, X)
                if side is None and result.status in ENDED:
                    result = self._at_least_flat(graph, X, result)
        self._finish(result, result.factor, X)

    def _penalised(self, graph: Graph, side: Array | None, X: Any) -> Result:
        start = None
        if side is None:
            longest, waves = self._waves(graph)
        else:
            longest = longest_along(graph, side)
        if side is None and waves is None:  # no time was left for them
            start = self._flat(X, graph)
            longest = spread_along(graph, start)
        self.lam_ = STRETCH / longest if self.lam == "auto" else float(self.lam)
        if side is None and waves is not None and graph.n > MANY:
            start = self._coarse(graph, waves)
        return self._minimize(self._problem(graph, side), start)

    def _problem(self, graph: Graph, side: Array | None) -> Problem:
        """The penalised problem of the distinct samples."""
        edges, D, n, lam = graph.edges, graph.sq_distances, graph.n, self.lam_
        if side is not None:
            return mvu(edges, D, n, lam, LowRankPlusIdentity(n, 0.0, side))
        return mvu(edges, D, n, lam, mass=self._copies.merge.counts if self._copies.any else None)

    def _at_least_flat(self, graph: Graph, X: Any, result: Result) -> Result:
        """The samples themselves, if the time was up before a better embedding was found."""
        flat = self._flat(X, graph)
        problem = self._problem(graph, None)
        if result.value <= problem.value(flat) or (self.rank or np.inf) < flat.shape[1]:
            return result
        with clock.budget(LEAST_SECONDS):
            return replace(self._minimize(problem, flat), status=result.status)

    def _flat(self, X: Any, graph: Graph) -> Array:
        """The samples themselves, or coordinates computed from distances."""
        if self.metric == "precomputed":
            return ways_from_landmarks(graph)
        return self._units.coordinates(flat_start(X))

    def _waves(self, graph: Graph) -> tuple[float, Array | None]:
        """1/λ₂ and the smoothest eigenvectors; None if the search was interrupted."""
        try:
            with clock.share(WAVES_SHARE):
                count = WAVES if graph.n > MANY else 1
                values, waves = smoothest(graph.laplacian(), count, device=self.device)
                if self._copies.any:  # the direction of largest variance, with multiplicities
                    scale = sp.diags_array(self._copies.merge.counts**-0.5)
                    values = smoothest(scale @ graph.laplacian() @ scale, 1)[0]
        except KeyboardInterrupt as error:
            clock.caught(error)
        except clock.TimeUpError:
            pass
        else:
            return 1.0 / float(values[0]), waves
        return np.nan, None

    def _keeping_edges(self, graph: Graph, side: Array | None) -> Result:
        """The unfolding with linear constraints instead of the penalty."""
        problem = exact_mvu(graph.edges, graph.sq_distances, graph.n, side)
        # The solver's tolerance bounds ‖d/D − 1‖/2 over the edges.
        tol = min(self.tol, 0.5 * float(self.max_edge_error or np.inf))
        return solve(self, problem, rank=self.rank, tol=tol)

    def _coarse(self, graph: Graph, waves: Array) -> Array:
        """A starting point for very many points: the unfolding in few eigenvectors (`RegMVU`)."""
        problem = reg_mvu(waves, graph.edges, graph.sq_distances, 1.0 / self.lam_)
        share = clock.left() / COARSE
        limit = max(share, LEAST_SECONDS) if np.isfinite(share) else None
        with clock.placing(lambda Y: self._at_samples(waves @ Y)):
            found = minimize(problem, tol=ROUGHLY, random_state=self.random_state, time_limit=limit)
        if found.status is Status.INTERRUPTED:
            clock.interrupt()
        return Waves(waves).factor(found.factor)


def flat_start(X: Any) -> Array:
    """The centred samples: a kernel with exact edge lengths, except for the part outside the
    leading directions of wide samples.
    """
    if X.shape[1] > WAVES and min(X.shape) > WAVES:
        X = TruncatedSVD(WAVES, random_state=0).fit_transform(X)
    X = dense(X)
    return np.ascontiguousarray(X - X.mean(axis=0))


def ways_from_landmarks(graph: Graph) -> Array:
    """Coordinates from shortest paths to a few points, which do not lengthen any edge."""
    marks = np.unique(np.linspace(0, graph.n - 1, min(WAVES, graph.n)).astype(int))
    ways = dijkstra(graph.adjacency(np.sqrt(graph.sq_distances)), directed=False, indices=marks)
    return np.ascontiguousarray((ways - ways.mean(axis=1, keepdims=True)).T / np.sqrt(marks.size))


def spread_along(graph: Graph, places: Array) -> float:
    """A lower bound on 1/λ₂: the largest variance of a coordinate divided by Σ_e d(e)."""
    i, j = graph.edges.T
    stretch = np.sum((places[i] - places[j]) ** 2, axis=0)
    return float(np.max(np.sum(places**2, axis=0) / np.maximum(stretch, 1e-300)))


def longest_along(graph: Graph, side: Array) -> float:
    """The largest variance along side information of embeddings with Σ_e d(e) = 1.

    λ_max of YᵀP⁺Y, P the Laplacian of the graph; for all directions it is 1/λ₂.
    """
    Y = side - side.mean(axis=0)
    if np.sum(Y * Y) <= 1e-12 * Y.size:
        raise ValueError('y is constant on a component of the graph: pass connect="mst" to join it')
    return float(np.linalg.eigvalsh(Y.T @ solve_laplacian(graph.laplacian(), Y))[-1])
