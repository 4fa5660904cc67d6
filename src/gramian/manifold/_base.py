"""What every unfolding offers once its kernel is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian import plotting
from gramian._samples import ready, refuse_masked
from gramian.constraints import whole_number
from gramian.fitting import principal, settle, solve
from gramian.graph import Graph, neighbor_graph
from gramian.manifold._parts import fit_parts, transform_parts, widened
from gramian.neighbours import nearest
from gramian.persistence import Kept
from gramian.problem import Problem
from gramian.result import Result

Array = NDArray[np.floating]

STRETCH = 0.05
"""What ν="auto" lets the longest wave of the graph stretch its edges by, about."""

RIDGE = 1e-3
"""Added to a local Gram matrix, in units of its trace."""


class Unfolding(Kept, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A kernel M = LLᵀ of the samples that keeps the lengths of a neighbourhood graph."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Unfold the samples; their `embedding_`."""
        return self.fit(X, y).embedding_

    def plot(self, color: ArrayLike | None = None, *, graph: bool = True) -> Any:
        """A figure of the embedding, in two or three dimensions, and the kernel's spectrum.

        Parameters
        ----------
        color : labels or numbers of shape (n_samples,), optional
        graph : bool
            Draw the neighbourhood graph too.
        """
        check_is_fitted(self)
        edges = self.graph_.edges if graph else None
        name = type(self).__name__
        return plotting.unfolding(
            self.embedding_, self.explained_variance_ratio_, edges, color, name
        )

    def _fit(self, X: Any, side: Any) -> Any:
        """Unfold the samples, or each part of their graph by itself."""
        graph = self._graph(X)
        self.__dict__.pop("parts_", None)  # those of another fit
        if graph.n_parts == 1:
            self._fit_connected(X, side, graph)
        else:
            fit_parts(self, X, side)
        return self

    def _graph(self, X: Any) -> Graph:
        """The graph of the samples with edges of mean square 1; sets `graph_` as they are."""
        n = X.shape[0]
        components = whole_number(self.n_components, "n_components")
        if components >= n:
            raise ValueError(f"{n} samples unfold to at most {n - 1} dimensions, got {components}")
        k = min(whole_number(self.n_neighbors, "n_neighbors"), n - 1)
        self.graph_ = neighbor_graph(
            X, k, approximate=self.approximate, connect=self.connect, device=self.device
        )
        self._unit = float(self.graph_.sq_distances.mean())
        if self._unit == 0:
            raise ValueError("all neighbouring samples are identical: nothing to unfold")
        return Graph(n, self.graph_.edges, self.graph_.sq_distances / self._unit)

    def _samples(self, X: Any) -> Any:
        refuse_masked(X, "X")
        return ready(
            validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=3
            )
        )

    def _minimize(self, problem: Problem, init: Array | None = None) -> Result:
        return solve(self, problem, init, rank=self.rank)

    def _finish(self, result: Result, factor: Array, X: Any) -> None:
        """Set what a fitted unfolding has, in the units of the samples."""
        settle(self, result)
        self.kernel_factor_ = np.sqrt(self._unit) * principal(factor - factor.mean(axis=0))
        self._describe(X)

    def _describe(self, X: Any) -> None:
        """Set what follows from the factor."""
        variances = np.sum(self.kernel_factor_**2, axis=0)
        self.explained_variance_ratio_ = variances / max(float(variances.sum()), 1e-300)
        self.embedding_ = widened(self.kernel_factor_, self.n_components)
        self.edge_error_ = largest_edge_error(self.graph_, self.kernel_factor_)
        self._n_features_out = self.n_components
        self.X_fit_ = X

    def transform(self, X: Any) -> Array:
        """Place new samples among the embedded ones, as they lie among their neighbours.

        The weights that best combine the nearest samples of the fit to a new one (as in locally
        linear embedding) combine their places.
        """
        check_is_fitted(self)
        refuse_masked(X, "X")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        X = ready(X)
        return self._place(X) if self.graph_.n_parts == 1 else transform_parts(self, X)

    def _place(self, X: Any) -> Array:
        k = min(self.n_neighbors, self.X_fit_.shape[0] - 1)
        near = nearest(self.X_fit_, k, queries=X).indices
        weights = barycentric(_dense(X), self.X_fit_, near)
        return np.einsum("ik,ikc->ic", weights, self.embedding_[near])


def largest_edge_error(graph: Graph, factor: Array) -> float:
    """max |d_e − D_e| / D_e; an edge of length 0 is measured by the mean."""
    i, j = graph.edges.T
    found = np.sum((factor[i] - factor[j]) ** 2, axis=1)
    D = graph.sq_distances
    return float(np.max(np.abs(found - D) / np.where(D > 0, D, D.mean())))


def barycentric(X: Array, reference: Any, near: NDArray[np.integer]) -> Array:
    """Weights of sum 1 that combine the neighbours of each row of X to it, with a ridge.

    A row that is one of its neighbours is that one.
    """
    k = near.shape[1]
    weights = np.empty(near.shape)
    step = max(1, 4_000_000 // (k * X.shape[1]))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        around = _dense(reference[near[rows].ravel()]).reshape(-1, k, X.shape[1])
        gaps = around - X[rows][:, None]
        squares = np.sum(gaps * gaps, axis=2)
        grams = gaps @ gaps.transpose(0, 2, 1)
        traces = np.trace(grams, axis1=1, axis2=2)
        ridge = RIDGE * np.where(traces > 0, traces, 1.0) / k
        grams = grams + ridge[:, None, None] * np.eye(k)
        found = np.linalg.solve(grams, np.ones((len(grams), k, 1)))[:, :, 0]
        found = found / found.sum(axis=1, keepdims=True)
        known = squares.min(axis=1) == 0
        found[known] = np.eye(k)[np.argmin(squares[known], axis=1)]
        weights[rows] = found
    return weights


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
