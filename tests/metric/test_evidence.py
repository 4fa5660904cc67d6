"""Held-out votes: how many samples are searched, and that this changes no loss."""

import numpy as np
import pytest

from gramian.metric import KTA, _evidence, _selection
from gramian.neighbours import nearest

CLASSES = np.repeat([0, 1, 2, 3], 5)


def search_of(samples, queries, calls):
    def search(rows, k):
        calls.append((len(queries[rows]), k))
        found = nearest(samples, k, queries=queries[rows])
        return found.indices[None], found.sq_distances[None]

    return search


@pytest.mark.parametrize("loss", [_evidence.wrong_shares, _evidence.other_shares])
def test_only_tied_queries_need_more_samples(loss):
    rng = np.random.default_rng(0)
    samples, queries = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    circle = np.linspace(0, 2 * np.pi, 11)[:10]
    samples[::2] = 40 + np.column_stack([np.cos(circle), np.sin(circle), 0 * circle])
    queries[4] = 40, 40, 40
    asked, calls = np.arange(6) % 4, []
    found = _evidence.losses_of_votes(search_of(samples, queries, calls), CLASSES, asked, loss)
    every = nearest(samples, 12, queries=queries)
    expected = loss(every.indices, every.sq_distances, CLASSES, asked, 1e-9)
    np.testing.assert_array_equal(found, [expected])
    assert calls == [(6, 5 if loss is _evidence.wrong_shares else 9), (1, 12)]


def test_few_samples_are_all_searched():
    calls, samples = [], np.zeros((3, 2))
    search = search_of(samples, np.zeros((2, 2)), calls)
    asked = np.array([0, 1])
    found = _evidence.losses_of_votes(search, np.arange(3), asked, _evidence.wrong_shares)
    np.testing.assert_allclose(found, [[2 / 3, 2 / 3]])
    assert calls == [(2, 3)]


@pytest.mark.parametrize("columns", [5, 3])
def test_products_with_triangular_factors_are_those_of_others(columns):
    rng = np.random.default_rng(0)
    rotated = rng.normal(size=(7, 5)).astype(np.float32)
    factor = np.tril(rng.normal(size=(5, columns)))
    factor /= np.abs(factor).max()
    found = _selection._mapped(rotated, factor)
    np.testing.assert_allclose(found, rotated @ factor, rtol=1e-5, atol=1e-6)


def test_samples_with_equal_keys_are_split_by_their_content():
    rng = np.random.default_rng(0)
    half = rng.integers(-3, 4, size=(60, 4)).astype(float)
    X, y = np.vstack([half, -half]), np.tile(np.arange(60) % 3, 2)
    expected = KTA().fit(X, y).path_.errors
    order = rng.permutation(len(y))
    names = np.array(["b", "c", "a"])[y[order]]
    np.testing.assert_allclose(KTA().fit(X[order], names).path_.errors, expected)


@pytest.mark.parametrize("scale", [1.0, 70.0, 1e-2])
def test_no_two_weights_are_close(scale):
    rng = np.random.default_rng(0)
    fitted = KTA().fit(scale * rng.normal(size=(60, 4)), np.arange(60) % 2)
    tried = fitted.path_.values[1:]
    assert len(tried) == (4 if scale == 1 else 7)
    assert np.all(tried[1:] > _selection.CLOSE * tried[:-1])
