"""The approximate search: opt-in, with its extra, and with an estimated recall."""

import sys
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.graph import neighbor_graph
from gramian.neighbours import APPROXIMATE_FROM, nearest

approximate = import_module("gramian.neighbours._approximate")


@pytest.fixture
def small(monkeypatch):
    """Use the approximate search for a few hundred samples."""
    pytest.importorskip("faiss")
    monkeypatch.setattr(approximate, "APPROXIMATE_FROM", 500)


def clustered(n=1200, d=40):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)) * 0.8 ** np.arange(d)


def test_few_samples_are_searched_exactly(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    X = clustered(300)
    exact, asked = nearest(X, 4), nearest(X, 4, approximate=True)
    assert APPROXIMATE_FROM == 50_000 and asked.recall == 1.0
    np.testing.assert_array_equal(asked.indices, exact.indices)


def test_missing_extra_raises(monkeypatch):
    monkeypatch.setattr(approximate, "APPROXIMATE_FROM", 100)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(
        ImportError, match=r"pip install 'gramian\[neighbours\]'.*approximate=False"
    ):
        nearest(clustered(200), 4, approximate=True)
    assert nearest(clustered(200), 4).recall == 1.0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_recall_agrees_with_found_neighbours(form, small):
    X = clustered()
    exact, near = nearest(X, 5), nearest(form(X), 5, approximate=True)
    true = np.mean([np.isin(a, b).mean() for a, b in zip(exact.indices, near.indices, strict=True)])
    assert true > 0.9
    assert near.recall == pytest.approx(true, abs=0.03)
    gaps = np.sum((X[:, None] - X[near.indices]) ** 2, axis=2)
    np.testing.assert_allclose(near.sq_distances, gaps)
    assert np.all(np.diff(gaps, axis=1) >= 0)
    assert not np.any(near.indices == np.arange(len(X))[:, None])


def test_graph_has_recall(small):
    X = clustered()
    graph = neighbor_graph(X, 5, approximate=True, connect="components")
    assert 0.9 < graph.recall <= 1.0
    assert neighbor_graph(X, 5, connect="components").recall == 1.0


def test_warns_of_low_recall(small, monkeypatch):
    monkeypatch.setattr(approximate, "CELLS_PER_QUERY", 1)
    monkeypatch.setattr(approximate, "DIRECTIONS", 2)
    with pytest.warns(UserWarning, match=r"finds about \d+% of the nearest neighbours"):
        found = nearest(np.random.default_rng(0).standard_normal((900, 60)), 5, approximate=True)
    assert found.recall < 0.9


def test_queries_with_too_few_candidates_are_searched_exactly(small, monkeypatch):
    monkeypatch.setattr(approximate, "_candidates", lambda *a: np.full((900, 3), -1))
    X = clustered(900)
    found = nearest(X, 5, approximate=True)
    np.testing.assert_array_equal(found.indices, nearest(X, 5).indices)
    assert found.recall == 1.0
