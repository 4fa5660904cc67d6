"""The exact search: all methods agree with brute force, including ties."""

from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.arrays.samples import row_squares
from gramian.neighbours import nearest

tiles = import_module("gramian.arrays.neighbours")
front = import_module("gramian.neighbours.nearest")
tree = import_module("gramian.neighbours._tree")

WAYS = ("plain", "compiled", "tree")
FORMS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": lambda X: sp.csr_array(X),
}


@pytest.fixture
def go(monkeypatch):
    """Force one search method, with small tiles."""

    def choose(way):
        monkeypatch.setattr(front, "MAX_PLAIN_WORK", 0 if way == "compiled" else 10**12)
        monkeypatch.setattr(front, "MIN_DENSE_FRACTION", 1.0)
        monkeypatch.setattr(front, "MAX_DENSE_ELEMENTS", 0)
        monkeypatch.setattr(tree, "FEATURES", {9: 0} if way == "tree" else {})
        monkeypatch.setattr(tiles, "TILE_SIDE", 48)

    return choose


def whole(seed, n=150, d=4, most=3):
    """Integers: many ties and some identical samples."""
    return np.random.default_rng(seed).integers(0, most, (n, d)).astype(float)


def brute(X, k, *, queries=None, apart=None):
    """The first k by (distance, index), one query at a time."""
    Q = X if queries is None else queries
    left_out = np.eye(len(X), dtype=bool) if queries is None else np.zeros((len(Q), len(X)), bool)
    if apart is not None:
        sides = apart if isinstance(apart, tuple) else (apart, apart)
        left_out = sides[1][:, None] == sides[0]
    D = np.array([np.sum((X - q) ** 2, axis=1) for q in Q])
    D[left_out] = np.inf
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, 1)


def same(found, expected):
    np.testing.assert_array_equal(found.indices, expected[0])
    np.testing.assert_allclose(found.sq_distances, expected[1], rtol=1e-12, atol=1e-12)
    assert found.recall == 1.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [1, 6, 40])
def test_ties_are_broken_by_index(way, form, k, go):
    go(way)
    X = whole(k)
    same(nearest(FORMS[form](X), k), brute(X, k))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMS)
def test_queries_and_labels(way, form, go):
    go(way)
    X, Q = whole(1), whole(2, n=70)
    labels, asked = whole(3, d=1)[:, 0].astype(int), whole(4, n=70, d=1)[:, 0].astype(int)
    X, Q = (FORMS[form](part) for part in (X, Q))
    A, B = whole(1), whole(2, n=70)
    same(nearest(X, 5, queries=Q), brute(A, 5, queries=B))
    same(nearest(X, 5, apart=labels), brute(A, 5, apart=labels))
    both = (labels, asked)
    same(nearest(X, 5, queries=Q, apart=both), brute(A, 5, queries=B, apart=both))


@pytest.mark.parametrize("way", WAYS)
def test_query_among_the_samples_finds_itself(way, go):
    go(way)
    X = np.random.default_rng(0).standard_normal((60, 4))
    found = nearest(X, 3, queries=X)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(60))
    np.testing.assert_array_equal(found.indices[:, 1:], nearest(X, 2).indices)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    offset=st.sampled_from([0.0, 1e3, 1e7]),
    scale=st.sampled_from([1e-60, 1.0, 1e60]),
    far=st.sampled_from([0.0, 1e4, 1e9]),
)
def test_scale_offset_and_outlier(way, seed, offset, scale, far):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(front, "MAX_PLAIN_WORK", 0 if way == "compiled" else 10**12)
        patch.setattr(tree, "FEATURES", {9: 0} if way == "tree" else {})
        patch.setattr(tiles, "TILE_SIDE", 32)
        X = np.random.default_rng(seed).standard_normal((90, 5)) + offset
        X[seed % 90] += far
        same(nearest(X * scale, 4), brute(X * scale, 4))


@pytest.mark.parametrize("form", FORMS)
def test_hundreds_of_identical_samples(form, go):
    go("compiled")
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((3, 6)), 120, axis=0)[rng.permutation(360)]
    X = X.astype(np.float32).astype(float)
    same(nearest(FORMS[form](X), 7), brute(X, 7))


@pytest.mark.parametrize("way", WAYS)
def test_grid_with_ties(way, go):
    go(way)
    X = np.stack(np.meshgrid(np.arange(15.0), np.arange(12.0)), axis=-1).reshape(-1, 2) / 7
    found = nearest(X, 6)
    assert np.all(np.diff(found.sq_distances, axis=1) >= 0)
    np.testing.assert_allclose(found.sq_distances, brute(X, 6)[1], rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_result_is_independent_of_threads(threads, monkeypatch):
    monkeypatch.setattr(tiles, "TILE_SIDE", 16)
    X, labels = whole(5, n=203) / 3, whole(6, n=203, d=1)[:, 0].astype(np.int32)
    marks = np.arange(203, dtype=np.int32)
    for either in (marks, labels):
        found, _ = tiles.search(X, X, 5, (either, either), threads=threads)
        np.testing.assert_array_equal(found, brute(X, 5, apart=either)[0])


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 300), spread=st.sampled_from([0.0, 2.0, 8.0]))
def test_float32_score_is_within_error_bound(seed, d, spread):
    """Also for samples of very different sizes that are not well centred."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, d)) * 10 ** rng.uniform(-spread, 0, (40, 1)) + rng.uniform(0, 3)
    frame = tiles.ProductCoordinates.of(X, X)
    moved = frame.put(X)
    squares = row_squares(moved)
    _, slopes, bases = frame.asking(squares)
    y_squares, norms, rests = frame.offered(squares)
    scores = squares[:, None] + (y_squares - np.float32(2.0) * (moved @ moved.T)).astype(float)
    exact = frame.scale**2 * np.sum((X[:, None] - X) ** 2, axis=2)
    rooms = bases[:, None] + slopes[:, None] * norms + rests
    assert np.all(np.abs(scores - exact) <= rooms)
    assert rooms.max() < 1e-6 * (d + 20) * squares.max()


def test_integers_are_exact():
    X = np.random.default_rng(0).integers(-30, 30, (50, 100)).astype(float)
    assert tiles.ProductCoordinates.of(X, X).terms == 0
    assert tiles.ProductCoordinates.of(X + 0.5, X).terms == 100
    assert tiles.ProductCoordinates.of(X * 1000, X).terms == 100


def test_unsorted_csr_with_duplicates(go):
    go("compiled")
    X = whole(7, n=60)
    order = np.argsort(np.random.default_rng(0).random(X.shape), axis=1)
    data = np.take_along_axis(X, order, 1).ravel()
    parts = sp.csr_array((data, order.ravel(), np.arange(0, X.size + 1, X.shape[1])), X.shape)
    same(nearest(parts, 5), brute(X, 5))
    twice = sp.csr_array(
        (np.repeat(data / 2, 2), np.repeat(order.ravel(), 2), 2 * parts.indptr), X.shape
    )
    same(nearest(twice, 5), brute(X, 5))


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7])
def test_rounds_pair_blocks_once(count):
    rounds = list(tiles._rounds(count))
    met = [pair for pairs in rounds for pair in pairs]
    assert sorted(met) == [(a, b) for a in range(count) for b in range(a + 1, count)]
    assert all(len({seat for pair in pairs for seat in pair}) == 2 * len(pairs) for pairs in rounds)


def test_few_samples_are_searched_by_several_threads():
    X = np.random.default_rng(0).normal(size=(30, 4))
    own = np.arange(30, dtype=np.int32)
    found, _ = tiles.search(X, X, 3, (own, own), threads=2)
    np.testing.assert_array_equal(found, nearest(X, 3).indices)


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 9), ({"queries": whole(1, n=3)}, 10), ({"apart": [0] * 7 + [1] * 3}, 3)],
)
def test_rejects_too_many_neighbours(options, most):
    X = whole(0, n=10)
    assert nearest(X, most, **options).indices.shape[1] == most
    with pytest.raises(ValueError, match=f"has only {most} other samples"):
        nearest(X, most + 1, **options)


def test_large_searches_are_compiled(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 5))
    kernels = import_module("gramian.arrays.neighbours")
    expected = front.nearest(X, 3)
    asked = []

    def compiled(*given):
        asked.append(given)
        return expected.indices, expected.sq_distances

    monkeypatch.setattr(front._tree, "fits", lambda X: False)
    monkeypatch.setattr(kernels, "search", compiled)
    for limit, count in ((400 * 400 * 105, 0), (400 * 400 * 105 - 1, 1)):
        monkeypatch.setattr(front, "MAX_PLAIN_WORK", limit)
        np.testing.assert_array_equal(front.nearest(X, 3).indices, expected.indices)
        assert len(asked) == count


@pytest.mark.parametrize(("scale", "fault"), [(1e155, "overflow"), (1e-170, "vanish")])
def test_rejects_samples_whose_squares_overflow_or_vanish(scale, fault):
    samples = scale * np.random.default_rng(0).standard_normal((60, 3))
    for queries in (None, samples / scale):
        with pytest.raises(ValueError, match=rf"entries of X .*: sums of their squares {fault}"):
            nearest(samples, 3, queries=queries)
