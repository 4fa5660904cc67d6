"""The verdict on embeddings: how well distances and neighbourhoods are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.manifold import trustworthiness

from gramian.app.verdict.base import (
    LARGEST_COMPARED,
    Verdict,
    percent,
)
from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.graph import neighbor_graph

FEWEST_COMPARED, MOST_COMPARED = 100, 3000
"""Numbers of samples between which path lengths are compared; neighbourhoods up to the second."""

FEWEST_NEIGHBOURS, LANDMARKS, SHORTER = 4, 40, 0.13
"""Neighbours from which on path lengths are compared, samples at which the paths start, and the
relative decrease of path lengths by one more neighbour that indicates a short cut."""


def verdict_of_embedding(fitted: Any, X: Any) -> Verdict:
    """How well distances are kept, and the share of the variance compared with that of PCA.

    Also the trustworthiness of the picture, and short cuts of the graph, which prevent unfolding.
    """
    given_distances = getattr(fitted, "metric", "") == "precomputed"
    if hasattr(fitted, "torn_"):
        return _verdict_of_picture(fitted, X, given_distances)
    k, errors = fitted.embedding_.shape[1], edge_errors(fitted)
    learned = float(fitted.explained_variance_ratio_[:k].sum())
    words = {1: "One dimension holds", 2: "Two dimensions hold", 3: "Three dimensions hold"}
    sentence = (
        f"Distances between neighbours change by {percent(float(np.median(errors)))} (median) and "
        f"{percent(float(errors.max()))} (largest). {words.get(k, f'{k} dimensions hold')} "
        f"{percent(learned)} of the variance"
    )
    if given_distances:
        return Verdict(f"{sentence}.{_trusted(fitted, X, given_distances)}")
    plain = _linear_share(X, k)
    sentence += f"; as many principal components of the samples hold {percent(plain)}"
    if fitted.n_neighbors >= X.shape[0] - 1:
        sentence += f": each of the {X.shape[0]} samples is a neighbour of all others, so nothing "
        sentence += "can be unfolded"
    elif learned <= plain + 0.01:
        sentence += ": nothing was unfolded; fewer neighbours may help (--neighbors)"
    sentence = f"{sentence}.{_trusted(fitted, X, given_distances)}"
    cut = short_cut(X, fitted.n_neighbors)
    if cut is not None:
        first, loss = cut
        sentence += (
            f" With {first} neighbours the graph takes a short cut (paths along it are "
            f"{percent(loss)} shorter than with {first - 1}): try {first - 1}."
        )
    return Verdict(sentence, "share of the variance", plain, learned)


def edge_errors(fitted: Any) -> Array:
    """|d_e − D_e|/D_e of the distances between neighbours, D before and d after unfolding.

    An edge of length 0 is measured by the mean length.
    """
    i, j = fitted.graph_.edges.T
    found = np.linalg.norm(fitted.kernel_factor_[i] - fitted.kernel_factor_[j], axis=1)
    given = np.sqrt(fitted.graph_.sq_distances)
    return np.abs(found - given) / np.where(given > 0, given, given.mean() or 1.0)


def _verdict_of_picture(fitted: Any, X: Any, given_distances: bool) -> Verdict:
    """How well neighbourhoods are kept, compared with PCA, and the cost of few dimensions."""
    cost = fitted.certificate_.relative_gap
    sentence = f"{percent(fitted.torn_)} of the edges are torn"
    if cost is not None:
        sentence += f", and more dimensions improve the value by at most {percent(cost)}"
    near = fitted.n_neighbors
    if given_distances or X.shape[0] > MOST_COMPARED or near >= X.shape[0] / 2:
        return Verdict(f"{sentence}.{_trusted(fitted, X, given_distances)}")
    flat = TruncatedSVD(fitted.embedding_.shape[1], random_state=0)
    plain = flat.fit_transform(X if sp.issparse(X) else X - np.mean(X, axis=0))
    before, after = (
        float(trustworthiness(X, Z, n_neighbors=near)) for Z in (plain, fitted.embedding_)
    )
    sentence += f". Trustworthiness {after:.3f}, where PCA's picture has {before:.3f}."
    return Verdict(sentence, "trustworthiness", before, after)


def _trusted(fitted: Any, X: Any, given_distances: bool) -> str:
    """The sentence about trustworthiness; empty if it takes too long or is not defined."""
    n, near = X.shape[0], fitted.n_neighbors
    if n > MOST_COMPARED or near >= n / 2 or (given_distances and sp.issparse(X)):
        return ""
    metric = "precomputed" if given_distances else "euclidean"
    share = trustworthiness(X, fitted.embedding_, n_neighbors=near, metric=metric)
    return f" Trustworthiness {share:.3f}: 1 if all neighbours in the picture are neighbours."


def short_cut(X: Any, k: int) -> tuple[int, float] | None:
    """The first number of neighbours, up to k, that shortens the paths along the graph abruptly.

    Paths get shorter by a few percent with each additional neighbour. A decrease by more than
    `SHORTER` means that new edges leave the manifold: from one turn of a roll to the next. Returns
    that number and the relative decrease, None without a short cut.
    """
    if not FEWEST_NEIGHBOURS < k < X.shape[0] or not FEWEST_COMPARED <= X.shape[0] <= MOST_COMPARED:
        return None
    marks = generator(0).permutation(X.shape[0])[:LANDMARKS]
    before = _mean_path(X, FEWEST_NEIGHBOURS, marks)
    for count in range(FEWEST_NEIGHBOURS + 1, k + 1):
        now = _mean_path(X, count, marks)
        if now < (1.0 - SHORTER) * before:
            return count, 1.0 - now / before
        before = now
    return None


def _mean_path(X: Any, k: int, marks: NDArray[Any]) -> float:
    """The mean length of the shortest paths along the neighbourhood graph, from a few samples."""
    graph = neighbor_graph(X, k, connect="mst")
    lengths = np.sqrt(np.maximum(graph.sq_distances, 1e-300))
    paths = sp.coo_array((lengths, tuple(graph.edges.T)), shape=(X.shape[0],) * 2).tocsr()
    return float(np.mean(dijkstra(paths, directed=False, indices=marks)))


def _linear_share(X: Any, k: int) -> float:
    """The share of the variance in the k leading principal components."""
    solver = "covariance_eigh" if X.shape[1] <= LARGEST_COMPARED else "arpack"
    found = PCA(min(k, *X.shape), svd_solver=solver, random_state=0).fit(X)
    return float(np.nan_to_num(found.explained_variance_ratio_).sum())
