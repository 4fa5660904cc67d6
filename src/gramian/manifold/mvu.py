"""Maximum variance unfolding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from sklearn.decomposition import TruncatedSVD

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, or_auto, or_none
from gramian.estimators.fitting import solve
from gramian.graph import WAVES_SHARE, Graph, smoothest, solve_laplacian
from gramian.manifold._base import STRETCH, Unfolding
from gramian.objectives import LowRankPlusIdentity
from gramian.problem import Problem
from gramian.problems.manifold import exact_mvu, mvu, reg_mvu
from gramian.reductions.waves import Waves
from gramian.result import Result, Status
from gramian.run import minimize

Array = NDArray[np.floating]

ENDED = (Status.TIME_LIMIT, Status.INTERRUPTED)
"""Statuses of a solve that was cut short."""

COARSE, LEAST = 4, 1e-3
"""The part of the time left that the start may take, one in so many, and its seconds at least."""

MANY, WAVES, ROUGHLY = 5_000, 20, 1e-2
"""Points beyond which the solve starts from few waves, how many, and to which gap these are
unfolded. 20,000 digits: a hundred steps from there come to what a hundred and fifty do without."""


class MVU(Unfolding):
    """Unfold samples: their variance as large as the lengths of a neighbourhood graph allow.

    Solves min Σ_e (d_M(e) − D_e)² − ν tr(HM) over M ⪰ 0 (BILGO eq. 11), D_e the squared lengths of
    the edges in units of their mean and H = I − 11ᵀ/n, without which there is no minimum. The
    smaller ν, the nearer the edges keep to their lengths, and the harder the problem. With
    `max_edge_error` they are kept: max tr(HM) subject to d_M(e) = D_e, M ⪰ 0. Samples that are
    equal are one point, which counts as often in the variance (once where edges are kept).

    Parameters
    ----------
    n_components : int or "auto"
        Columns of the embedding: the leading principal axes of the learned kernel. "auto" takes as
        many as hold 95 % of its variance.
    n_neighbors : int
        Neighbours of each sample in the graph, 100 at most; all others where they are fewer. A thin
        sample of a surface unfolds straighter with 12 than with 6.
    nu : float or "auto"
        The weight ν of the variance. "auto" is 0.05 λ₂, λ₂ the smallest nonzero eigenvalue of the
        graph's Laplacian, which stretches the edges by some percent whatever the scale and the
        number of the samples.
    max_edge_error : float, optional
        Keep the edges, none off by more than this part of its squared length, as linear
        constraints in place of the penalty (`gramian.constrained`); up to 50 samples Clarabel solves
        them where it is installed. A fit that could not keep them warns.
    connect : {"mst", "error", "components"}
        What to do with a graph in several parts: join them by the shortest edges, refuse, or
        unfold each by itself, about a centre of its own: `graph_.labels` tells them apart, and
        inner products between them mean nothing.
    metric : {"euclidean", "precomputed"}
        "precomputed" takes distances in place of samples: a square array of those between all
        of them, of which `n_neighbors` make the graph, or a sparse matrix whose entries are the
        lengths of the edges of a graph, each stored once or twice, as `kneighbors_graph` and
        `KNeighborsTransformer` of scikit-learn give it. All edges of a given graph are taken.
    approximate : bool
        From 50,000 samples on, allow some neighbours to be missed; needs ``gramian[neighbours]``.
        `graph_.recall` says what share was found.
    rank : int, optional
        The largest rank of the kernel; the certificate then says what the limit can cost.
    progress : bool or "plot"
        Show a progress bar; "plot" draws the picture as it unfolds, in a notebook or a window.
    solver, tol, max_iter, time_limit, random_state, device :
        As in `gramian.minimize`; they are those of the whole fit.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
    kernel_factor_ : array of shape (n_samples, rank)
        L centred, its columns orthogonal and falling: LLᵀ is the learned kernel.
    explained_variance_ratio_ : array of shape (rank,)
    edge_error_ : float
        The largest relative error of a squared edge length.
    graph_ : Graph
        Edges of the distinct samples, and one of length 0 from the first to each copy of it.
    nu_ : float
        The ν used, for edges in units of their mean square, 0 where they are constraints; an array
        over several parts.
    result_ : Result
    certificate_ : Certificate
        How far from the optimum the kernel can be, for that ν; of the sum over several parts.
    parts_ : list of estimators
        One for each part, where connect="components" and there are several.
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

    _rules: ClassVar = {"nu": or_auto(ABOVE_ZERO), "max_edge_error": or_none(ABOVE_ZERO)}

    def __init__(
        self,
        *,
        n_components: int | str = 2,
        n_neighbors: int = 6,
        nu: float | str = "auto",
        max_edge_error: float | None = None,
        connect: str = "mst",
        metric: str = "euclidean",
        approximate: bool = False,
        solver: str = "auto",
        rank: int | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        progress: bool | str = False,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.nu = nu
        self.max_edge_error = max_edge_error
        self.connect = connect
        self.metric = metric
        self.approximate = approximate
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def _fit_connected(self, X: Any, side: Array | None, graph: Graph) -> None:
        """Unfold along all directions, or those of a side information: K = side sideᵀ."""
        with clock.placing(self._at_samples):
            if self.max_edge_error is not None:
                self.nu_ = 0.0
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
        self.nu_ = STRETCH / longest if self.nu == "auto" else float(self.nu)
        if side is None and waves is not None and graph.n > MANY:
            start = self._coarse(graph, waves)
        return self._minimize(self._problem(graph, side), start)

    def _problem(self, graph: Graph, side: Array | None) -> Problem:
        """The penalised problem of the distinct samples."""
        edges, D, n, nu = graph.edges, graph.sq_distances, graph.n, self.nu_
        if side is not None:
            return mvu(edges, D, n, nu, LowRankPlusIdentity(n, 0.0, side))
        return mvu(edges, D, n, nu, mass=self._copies.mass if self._copies.any else None)

    def _at_least_flat(self, graph: Graph, X: Any, result: Result) -> Result:
        """The samples as they are, where the time was up before anything better was found."""
        flat = self._flat(X, graph)
        problem = self._problem(graph, None)
        if result.value <= problem.value(flat) or (self.rank or np.inf) < flat.shape[1]:
            return result
        with clock.budget(LEAST):
            return replace(self._minimize(problem, flat), status=result.status)

    def _flat(self, X: Any, graph: Graph) -> Array:
        """The samples as they are, or what stands for them where only distances are known."""
        if self.metric == "precomputed":
            return ways_from_landmarks(graph)
        return self._units.coordinates(flat_start(X))

    def _waves(self, graph: Graph) -> tuple[float, Array | None]:
        """1/λ₂ and the smoothest waves; None where the time or the keyboard ended the search."""
        try:
            with clock.share(WAVES_SHARE):
                values, waves = smoothest(graph.laplacian(), WAVES if graph.n > MANY else 1)
                if self._copies.any:  # the wave of the largest variance, each copy counted
                    scale = sp.diags_array(self._copies.mass**-0.5)
                    values = smoothest(scale @ graph.laplacian() @ scale, 1)[0]
        except KeyboardInterrupt:
            clock.interrupt()
        except clock.TimeUpError:
            pass
        else:
            return 1.0 / float(values[0]), waves
        return np.nan, None

    def _keeping_edges(self, graph: Graph, side: Array | None) -> Result:
        """The unfolding with linear constraints in place of the penalty."""
        problem = exact_mvu(graph.edges, graph.sq_distances, graph.n, side)
        # ‖d/D − 1‖/2 over the edges is what the solver holds below its tolerance.
        tol = min(self.tol, 0.5 * float(self.max_edge_error or np.inf))
        return solve(self, problem, rank=self.rank, tol=tol)

    def _coarse(self, graph: Graph, waves: Array) -> Array:
        """A start for very many points: the unfolding by few waves, as in `RegMVU`."""
        problem = reg_mvu(waves, graph.edges, graph.sq_distances, 1.0 / self.nu_)
        share = clock.left() / COARSE
        limit = max(share, LEAST) if np.isfinite(share) else None
        with clock.placing(lambda Y: self._at_samples(waves @ Y)):
            found = minimize(problem, tol=ROUGHLY, random_state=self.random_state, time_limit=limit)
        if found.status is Status.INTERRUPTED:
            clock.interrupt()
        return Waves(waves).factor(found.factor)


FLAT = 20
"""Principal directions that stand for samples of more features."""


def flat_start(X: Any) -> Array:
    """The samples themselves, centred: a kernel whose edges have their lengths, but for what lies
    outside the leading directions of wide samples.
    """
    if X.shape[1] > FLAT and min(X.shape) > FLAT:
        X = TruncatedSVD(FLAT, random_state=0).fit_transform(X)
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    return np.ascontiguousarray(dense - dense.mean(axis=0))


def ways_from_landmarks(graph: Graph) -> Array:
    """Places by the shortest ways to a few points, with no edge longer than it is."""
    marks = np.unique(np.linspace(0, graph.n - 1, min(FLAT, graph.n)).astype(int))
    ways = dijkstra(graph.adjacency(np.sqrt(graph.sq_distances)), directed=False, indices=marks)
    return np.ascontiguousarray((ways - ways.mean(axis=1, keepdims=True)).T / np.sqrt(marks.size))


def spread_along(graph: Graph, places: Array) -> float:
    """A lower bound on 1/λ₂: the most that a column of the places has of variance by Σ_e d(e)."""
    i, j = graph.edges.T
    stretch = np.sum((places[i] - places[j]) ** 2, axis=0)
    return float(np.max(np.sum(places**2, axis=0) / np.maximum(stretch, 1e-300)))


def longest_along(graph: Graph, side: Array) -> float:
    """The largest variance along a side information of placements with Σ_e d(e) = 1.

    λ_max of YᵀP⁺Y, P the Laplacian of the graph; 1/λ₂ of it stands for all directions.
    """
    Y = side - side.mean(axis=0)
    if np.sum(Y * Y) <= 1e-12 * Y.size:
        raise ValueError(
            'y is the same for all samples of a part of the graph: pass connect="mst" to join it'
        )
    return float(np.linalg.eigvalsh(Y.T @ solve_laplacian(graph.laplacian(), Y))[-1])
