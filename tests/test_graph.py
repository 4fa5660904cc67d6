"""Neighbour graphs, their Laplacians, and connecting edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from gramian.common import clock
from gramian.graph import (
    Graph,
    neighbor_graph,
    normalized_laplacian,
    smoothest,
    solve_laplacian,
)
from gramian.maps import PairDistances, sparse_root


def clouds(parts=3, each=20, seed=0):
    """Groups of points far from each other."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(each, 3)) + 50 * i for i in range(parts)])


@settings(max_examples=20)
@given(seed=st.integers(0, 2**16), k=st.integers(1, 5))
def test_edges_join_nearest_neighbours(seed, k):
    X = np.random.default_rng(seed).normal(size=(30, 3))
    graph = neighbor_graph(X, k, connect="mst")
    found = {tuple(edge) for edge in graph.edges}
    for i, row in enumerate(cdist(X, X)):
        for j in np.argsort(row)[1 : k + 1]:
            assert (min(i, j), max(i, j)) in found
    i, j = graph.edges.T
    assert np.all(i < j)
    np.testing.assert_allclose(graph.sq_distances, np.sum((X[i] - X[j]) ** 2, axis=1))


def test_sparse_samples_and_approximate_search_give_the_same_graph():
    X = np.random.default_rng(0).normal(size=(60, 4))
    exact = neighbor_graph(X, 4, connect="mst")
    sparse = neighbor_graph(sp.csr_array(X), 4, connect="mst")
    np.testing.assert_array_equal(sparse.edges, exact.edges)
    np.testing.assert_allclose(sparse.sq_distances, exact.sq_distances)
    near = neighbor_graph(X, 4, approximate=True, connect="mst")
    np.testing.assert_array_equal(near.edges, exact.edges)


def test_disconnected_graph_raises_or_is_joined():
    X = clouds()
    with pytest.raises(ValueError, match=r"falls into 3 components of 20, 20, 20 points.*mst"):
        neighbor_graph(X, 4)
    graph = neighbor_graph(X, 4, connect="mst")
    assert graph.n_parts == 1
    bridges = graph.edges[graph.sq_distances > 400]
    assert len(bridges) == 2
    distances = cdist(X[:20], X[20:40])
    first, second = np.unravel_index(np.argmin(distances), distances.shape)
    assert [first, second + 20] in bridges.tolist()


def test_components_are_joined_by_a_spanning_tree():
    X = clouds(parts=12, each=6)
    pairs = neighbor_graph(X, 5, connect="mst")
    inside = sum(6 * 5 // 2 for _ in range(12))
    assert pairs.n_parts == 1
    assert inside + 11 <= len(pairs.edges) <= inside + 2 * 11


def test_connected_graph_is_unchanged():
    graph = neighbor_graph(clouds(parts=1), 6)
    joined = neighbor_graph(clouds(parts=1), 6, connect="mst")
    np.testing.assert_array_equal(joined.edges, graph.edges)


@pytest.mark.parametrize("normalized", [False, True])
def test_laplacians_have_their_null_vector_and_are_semidefinite(normalized):
    graph = neighbor_graph(clouds(parts=1), 4)
    L = graph.laplacian(graph.weights(), normalized=normalized).toarray()
    degree = graph.adjacency(graph.weights()).sum(axis=1)
    null = np.sqrt(degree) if normalized else np.ones(graph.n)
    np.testing.assert_allclose(L @ null, 0.0, atol=1e-10)
    assert np.linalg.eigvalsh(L)[0] > -1e-10
    if normalized:
        np.testing.assert_allclose(np.diag(L), 1.0)


def test_gaussian_weights():
    graph = neighbor_graph(clouds(parts=1), 4)
    weights = graph.weights()
    order = np.argsort(graph.sq_distances)
    assert np.all(np.diff(weights[order]) <= 0)
    scaled = Graph(graph.n, graph.edges, 9.0 * graph.sq_distances)
    np.testing.assert_allclose(scaled.weights(), weights)
    np.testing.assert_allclose(graph.weights(2.0), np.exp(-graph.sq_distances / 4))
    with pytest.raises(ValueError, match="bandwidth must be"):
        graph.weights(-1.0)
    with pytest.raises(ValueError, match="weights must be 53 finite"):
        graph.adjacency(np.ones(3))


@pytest.mark.parametrize("n", [60, 400])
def test_the_smoothest_vectors_are_the_lowest_eigenvectors(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    L = neighbor_graph(X, 6, connect="mst").laplacian()
    values, Q = smoothest(L, 8)
    expected = np.linalg.eigvalsh(L.toarray())[1:9]
    np.testing.assert_allclose(values, expected, atol=1e-9)
    np.testing.assert_allclose(L @ Q, Q * values, atol=1e-7)
    np.testing.assert_allclose(Q.T @ Q, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(Q.sum(axis=0), 0.0, atol=1e-6)
    with pytest.raises(ValueError, match="such eigenvectors"):
        smoothest(L, n)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number"),
        ({"n_neighbors": 60}, "at most 59 neighbours"),
        ({"connect": "glue"}, "connect must be one of"),
    ],
)
def test_rejects_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        neighbor_graph(clouds(), **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limit", ["FACTORED", "MIN_TRIED_POINTS"])
def test_eigenvectors_without_factorisation_agree(limit, weighted, monkeypatch):
    graph = neighbor_graph(np.random.default_rng(0).normal(size=(400, 3)), 6, connect="mst")
    P = graph.laplacian(graph.weights() if weighted else None)
    values, vectors = smoothest(P, 5)
    monkeypatch.setattr(f"gramian.graph.{limit}", 300)
    monkeypatch.setattr("gramian.maps.whitened.MAX_WHOLE_POINTS", 10)
    monkeypatch.setattr("gramian.maps.whitened.MAX_TRIAL_ENTRIES", 1000)
    rough, waves = smoothest(P, 5)
    np.testing.assert_allclose(rough, values, rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(waves * vectors, axis=0)), 1.0, atol=1e-2)
    side = vectors[:, :2] * [1.0, 3.0]
    np.testing.assert_allclose(solve_laplacian(P, side), side / values[:2], atol=1e-4)


def test_no_factorisation_with_fill_in(monkeypatch):
    def refused(*given, **more):
        raise AssertionError("factored")

    P = neighbor_graph(np.random.default_rng(0).normal(size=(500, 20)), 6).laplacian()
    monkeypatch.setattr("gramian.graph.MIN_TRIED_POINTS", 300)
    monkeypatch.setattr("gramian.maps.whitened.MAX_WHOLE_POINTS", 10)
    monkeypatch.setattr("gramian.maps.whitened.MAX_TRIAL_ENTRIES", 1000)
    monkeypatch.setattr("gramian.graph.eigsh", refused)
    np.testing.assert_allclose(smoothest(P, 2)[0], np.linalg.eigvalsh(P.toarray())[1:3], rtol=1e-3)


def test_short_time_limit_reduces_trials(monkeypatch):
    upper = sp.coo_array(sp.triu(neighbor_graph(clouds(1, 400), 6).laplacian(), k=1))
    edges = PairDistances(np.column_stack(upper.coords), 400)
    monkeypatch.setattr("gramian.maps.whitened.MAX_WHOLE_POINTS", 10)
    assert sparse_root(edges)[1].all()
    with clock.budget(60.0):
        monkeypatch.setattr("gramian.maps.whitened.TRIAL_TIME_GROWTH", 1e9)
        assert not sparse_root(edges)[1].all()


def test_eigenvectors_of_almost_disconnected_graph():
    weights = 10.0 ** np.random.default_rng(0).uniform(-14, -2, 39)
    W = sp.block_diag([sp.coo_array(np.ones((10, 10)) - np.eye(10))] * 40).tolil()
    for part, weight in enumerate(weights):
        W[10 * part, 10 * part + 10] = W[10 * part + 10, 10 * part] = weight
    laplacian = normalized_laplacian(sp.csr_array(W))
    values, waves = smoothest(laplacian, 2, constant=True)
    np.testing.assert_allclose(values, 0.0, atol=1e-12)
    np.testing.assert_allclose(laplacian @ waves, 0.0, atol=1e-8)
    np.testing.assert_allclose(waves.T @ waves, np.eye(2), atol=1e-10)
