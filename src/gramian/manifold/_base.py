"""Common methods of unfoldings."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted

from gramian.bounds import sum_of
from gramian.common import clock
from gramian.common.parameters import COUNT, FLAG, Rule, one_of, or_auto
from gramian.common.types import Array
from gramian.common.warnings import warn
from gramian.estimators import plotting
from gramian.estimators.fitting import principal, settle, solve, validated
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.persistence import Kept
from gramian.graph import Graph
from gramian.manifold._spaces import METRICS, Places, barycentric, dense, space_of
from gramian.neighbours import Neighbours, nearest
from gramian.problem import Problem
from gramian.reductions.parts import Components, widened
from gramian.reductions.units import Units
from gramian.result import Result

STRETCH = 0.05
"""Approximate relative stretch of the edges by the smoothest eigenvector with lam="auto"."""

ENOUGH = 0.95
"""Fraction of the variance that n_components="auto" keeps."""

MOST_NEIGHBORS = 100
"""Largest number of neighbours of a sample."""

CROWDED = 10.0
"""Ratio of the degree of a hub to that of other samples."""

LEAST_SECONDS = 1e-3
"""Smallest time limit of a component, or of a starting point, in seconds."""


def _is_progress(value: Any) -> bool:
    return value == "plot" if isinstance(value, str) else FLAG.holds(value)


@with_parameters
class Unfolding(
    SolverParameters, Kept, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A kernel M = LLᵀ of the samples that preserves the lengths of a neighbour graph."""

    n_components: int | str = 2
    n_neighbors: int = 6
    metric: str = "euclidean"
    approximate: bool = False

    _rules: ClassVar = {
        "n_components": or_auto(COUNT),
        "n_neighbors": COUNT,
        "metric": one_of(*METRICS),
        "approximate": FLAG,
        "progress": Rule('True, False or "plot"', _is_progress),
    }

    _whole: ClassVar[bool] = False
    """Whether a disconnected graph is treated as one problem."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Embed the samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Or distances or a graph, depending on `metric`.
        y : ignored
        """
        return self._fit(self._samples(X), None)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Unfold the samples and return `embedding_`."""
        return self.fit(X, y).embedding_

    def plot(self, color: ArrayLike | None = None, *, graph: bool = True) -> Any:
        """A figure of the embedding, in two or three dimensions, and the kernel's spectrum.

        Parameters
        ----------
        color : labels or numbers of shape (n_samples,), optional
        graph : bool
            Whether to draw the neighbour graph.
        """
        check_is_fitted(self)
        edges = self.graph_.edges if graph else None
        name = type(self).__name__
        return plotting.unfolding(
            self.embedding_, self.explained_variance_ratio_, edges, color, name
        )

    def _fit(self, X: Any, side: Any) -> Any:
        """Unfold the samples, with a progress plot on request."""
        plot = self.progress == "plot"
        with plotting.pictured(type(self).__name__) if plot else nullcontext():
            self._fit_whole(X, side)
        return self

    def _fit_whole(self, X: Any, side: Any) -> None:
        """Unfold the samples, or each component of their graph separately."""
        space = self._space(X)
        self._copies = space.copies(X)
        graph = self._graph(X)
        self.__dict__.pop("parts_", None)  # of an earlier fit
        if graph.n_parts > 1 and not self._whole:
            self._fit_parts(X, side)
        elif self._copies.any:
            once = None if side is None else self._copies.summed(side)
            self._fit_connected(space.part(X, self._copies.first), once, graph)
            self._describe(X)
        else:
            self._fit_connected(X, side, graph)

    def _fit_parts(self, X: Any, side: Any) -> None:
        """Fit a copy of the estimator to each component of its graph and combine the results."""
        parts = Components(self.graph_.labels)
        started, self.parts_ = clock.now(), []
        for points in parts.members:
            part, asked, limit = clone(self), self.n_components, self.time_limit
            if limit is not None:
                limit = max(limit - clock.elapsed(started), LEAST_SECONDS)
            part.set_params(
                n_components=asked if isinstance(asked, str) else min(asked, points.size - 1),
                n_neighbors=min(self.n_neighbors, points.size - 1),
                connect="error",
                progress=self.progress != "plot" and bool(self.progress),
                time_limit=limit,
            )
            own = self._space(X).part(X, points)
            self.parts_.append(part._fit(own, None if side is None else side[points]))
        self.kernel_factor_ = parts.factor([part.kernel_factor_ for part in self.parts_])
        self.certificate_ = sum_of([part.certificate_ for part in self.parts_])
        gaps = [part.certificate_.relative_gap for part in self.parts_]
        worst = int(np.argmax([np.inf if gap is None else gap for gap in gaps]))
        self.result_ = self.parts_[worst].result_
        self.lam_: Any = np.array([part.lam_ for part in self.parts_])
        self.n_iter_ = max(part.n_iter_ for part in self.parts_)
        self._describe(X)

    def _graph(self, X: Any) -> Graph:
        """The graph of the distinct samples, scaled to a mean squared edge length of 1.

        Sets `graph_`, the unscaled graph of all samples.
        """
        copies = self._copies
        n = copies.first.size
        if n == 1:
            raise ValueError("all neighbouring samples are identical: nothing to unfold")
        components = 1 if self.n_components == "auto" else int(self.n_components)
        if components >= n:
            distinct = "distinct " if copies.any else ""
            raise ValueError(
                f"{n} {distinct}samples unfold to at most {n - 1} dimensions, got "
                f"n_components={components}"
            )
        k = min(int(self.n_neighbors), n - 1)
        if k > MOST_NEIGHBORS:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} would join each sample by more than "
                f"{MOST_NEIGHBORS} edges, which connect different folds and prevent unfolding: "
                "pass 4 to 30"
            )
        space = self._space(X)
        graph = space.graph(
            space.part(X, copies.first) if copies.any else X,
            k,
            self._joined_by(X),
            approximate=self.approximate,
            device=self.device,
        )
        _check_degrees(graph)
        self.graph_ = copies.joined(graph)
        self._unit = float(graph.sq_distances.mean())
        if self._unit == 0:
            raise ValueError("all neighbouring samples are identical: nothing to unfold")
        return Graph(n, graph.edges, self._units.lengths(graph.sq_distances))

    def _joined_by(self, X: Any) -> str:
        """How a disconnected graph is treated."""
        return str(self.connect)

    @property
    def _units(self) -> Units:
        """The scaling of edge lengths."""
        return Units(self._unit)

    def _samples(self, X: Any) -> Any:
        self._check_parameters()
        X = validated(self, X, least=3, reset=True)
        if self.metric == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f'metric="precomputed" takes a square matrix of distances, got shape {X.shape}: '
                'pass metric="euclidean" for samples and their features'
            )
        return self._space(X).checked(X)

    def _space(self, X: Any) -> Places:
        """The kind of input: samples, distances or a graph."""
        return space_of(self.metric, X)

    def _at_samples(self, factor: Array) -> Array:
        """Coordinates of all samples from those of the distinct ones."""
        return factor[self._copies.kind]

    def _minimize(self, problem: Problem, init: Array | None = None) -> Result:
        return solve(self, problem, init, rank=self.rank)

    def _finish(self, result: Result, factor: Array, X: Any) -> None:
        """Set the fitted attributes, in the units of the samples, with copies at one position."""
        settle(self, result)
        copies, placed = self._copies, self._at_samples(factor)
        turned = self._units.factor(principal(placed - placed.mean(axis=0)))
        self.kernel_factor_ = turned[copies.first][copies.kind]
        self._describe(X)

    def _describe(self, X: Any) -> None:
        """Set the attributes that follow from the factor."""
        variances = np.sum(self.kernel_factor_**2, axis=0)
        self.explained_variance_ratio_ = variances / max(float(variances.sum()), 1e-300)
        columns = self.n_components
        if isinstance(columns, str):
            missing = np.cumsum(self.explained_variance_ratio_) < ENOUGH
            columns = min(1 + int(missing.sum()), missing.size)
        self.embedding_ = widened(self.kernel_factor_, columns)
        self._describe_edges()
        self._n_features_out = columns
        self.X_fit_ = X

    def _describe_edges(self) -> None:
        """Set `edge_error_`; an edge of length 0 is compared with the mean."""
        found, D = self.graph_.squares_at(self.kernel_factor_), self.graph_.sq_distances
        self.edge_error_ = float(np.max(np.abs(found - D) / np.where(D > 0, D, D.mean())))

    def transform(self, X: Any, *, return_error: bool = False) -> Any:
        """Embed new samples using their nearest neighbours in the fit.

        The weights that best reconstruct a new sample from its nearest samples of the fit (as in
        locally linear embedding) are applied to their coordinates.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            If distances were given, those to the samples of the fit, one row per new sample.
        return_error : bool
            Also return an array of shape (n_samples,): the largest error of a squared distance
            between the new point, in all dimensions of the kernel, and its neighbours, relative to
            the mean of the true ones. It is 0 for a sample of the fit whose nearest neighbour is
            itself, and close to or above 1 if the position is unreliable.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        single = self.graph_.n_parts == 1 or self._whole
        rank = self.kernel_factor_.shape[1]
        placed, error = self._place(X, rank) if single else self._place_in_parts(X, rank)
        places = widened(placed, self.embedding_.shape[1])
        return (places, error) if return_error else places

    def _place_in_parts(self, X: Any, rank: int) -> tuple[Array, Array]:
        """Place each new sample in the component of its nearest one; also return the errors."""
        space, labels = self._space(self.X_fit_), self.graph_.labels
        parts = labels[space.near(self.X_fit_, 1, X).indices[:, 0]]
        placed, error = np.zeros((X.shape[0], rank)), np.zeros(X.shape[0])
        for part in np.unique(parts):
            of = parts == part
            seen = space.of_part(X[of], np.flatnonzero(labels == part))
            placed[of], error[of] = self.parts_[part]._place(seen, rank)
        return placed, error

    def inverse_transform(self, X: Any) -> Array:
        """Samples at given coordinates: coordinates and samples have the same weights.

        Parameters
        ----------
        X : array of shape (n_places, n_components)
        """
        check_is_fitted(self)
        if self.metric == "precomputed":
            raise ValueError(
                'metric="precomputed" provides distances but no samples to combine: fit '
                "to the samples themselves"
            )
        places = check_array(X, dtype=np.float64)
        if places.shape[1] != self.embedding_.shape[1]:
            raise ValueError(
                f"points have {self.embedding_.shape[1]} coordinates here, got {places.shape[1]}"
            )
        k = min(self.n_neighbors, self.X_fit_.shape[0] - 1)
        near = nearest(self.embedding_, k, queries=places).indices
        weights = barycentric(places, self.embedding_, near)
        samples = np.empty((len(places), self.X_fit_.shape[1]))
        for row, (around, weight) in enumerate(zip(near, weights, strict=True)):
            samples[row] = weight @ dense(self.X_fit_[around])
        return samples

    def _near(self, X: Any) -> Neighbours:
        """The samples of the fit that are nearest to new ones."""
        k = min(self.n_neighbors, self.X_fit_.shape[0] - 1)
        return self._space(self.X_fit_).near(self.X_fit_, k, X)

    def _place(self, X: Any, columns: int) -> tuple[Array, Array]:
        """Coordinates in the leading dimensions of the kernel, and the error of their distances."""
        found = self._near(X)
        weights = self._space(self.X_fit_).weights(X, self.X_fit_, found)
        around = widened(self.kernel_factor_, columns)[found.indices]
        placed = np.einsum("ik,ikc->ic", weights, around)
        squares = np.sum((around - placed[:, None]) ** 2, axis=2)
        true = found.sq_distances
        usual = np.maximum(true.mean(axis=1), np.finfo(float).tiny)
        error = np.max(np.abs(squares - true), axis=1) / usual
        return placed, np.where(true.min(axis=1) == 0, 0.0, error)


def _check_degrees(graph: Graph) -> None:
    """Raise ValueError for a given graph with too many edges, and warn of a hub.

    A hub is joined to a third of all samples, and to far more than others are.
    """
    each = 2 * len(graph.edges) / graph.n
    if each > 2 * MOST_NEIGHBORS:
        raise ValueError(
            f"the given graph has {each:.0f} edges per sample on average, which connect different "
            "folds and prevent unfolding: keep the 4 to 30 shortest of each sample"
        )
    degrees = np.bincount(graph.edges.ravel(), minlength=graph.n)
    hub = int(np.argmax(degrees))
    if degrees[hub] > graph.n / 3 and degrees[hub] > CROWDED * degrees.mean():
        warn(
            f"sample {hub} is a neighbour of {degrees[hub]} of {graph.n} samples, and its edges "
            "keep all of them near it: remove it, or normalise the samples first "
            "(sklearn.preprocessing.Normalizer)",
        )
