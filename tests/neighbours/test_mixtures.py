"""Neighbours by combinations of metrics, compared with sorting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.neighbours import nearest, search_mixtures


def combined(spaces, mixture):
    """The combination of squared distances, every one from differences."""
    return sum(
        w * np.sum((asked[:, None] - own[None]) ** 2, axis=2)
        for w, (own, asked) in zip(mixture, spaces, strict=True)
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    widths=st.tuples(st.integers(1, 80), st.integers(1, 80)),
    size=st.floats(1e-8, 1e8),
)
def test_mixtures_agree_with_sorting(seed, widths, size):
    rng = np.random.default_rng(seed)
    scales = (1.0, size)
    spaces = [
        (s * rng.standard_normal((70, d)), s * rng.standard_normal((9, d)))
        for s, d in zip(scales, widths, strict=True)
    ]
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7 / size**2], [1e-3, 1.0]])
    found, distances = search_mixtures(spaces, weights, 4)
    for got, far, mixture in zip(found, distances, weights, strict=True):
        exact = combined(spaces, mixture)
        np.testing.assert_array_equal(got, np.argsort(exact, axis=1, kind="stable")[:, :4])
        np.testing.assert_allclose(far, np.take_along_axis(exact, got, axis=1), rtol=1e-12)


@pytest.mark.parametrize("width", [3, 40])
def test_ties_are_broken_by_index(width):
    rng = np.random.default_rng(0)
    few = rng.standard_normal((5, width))
    samples = np.tile(few, (6, 1))
    found, _ = search_mixtures([(samples, few), (2 * samples, 2 * few)], np.array([[0.5, 0.5]]), 3)
    np.testing.assert_array_equal(found[0], np.arange(5)[:, None] + [0, 5, 10])


@pytest.mark.parametrize("far", [1e2, 1e6, 1e12, 1e60])
def test_queries_far_from_all_samples(far):
    """Single precision would overflow."""
    rng = np.random.default_rng(1)
    samples, way = rng.standard_normal((200, 50)), rng.standard_normal((4, 50))
    found = nearest(samples, 3, queries=far * way)
    exact = np.sum((samples[None] - far * way[:, None]) ** 2, axis=2)
    taken = np.take_along_axis(exact, found.indices, axis=1)
    np.testing.assert_array_equal(taken, np.sort(exact, axis=1)[:, :3])
    np.testing.assert_allclose(found.sq_distances, taken, rtol=1e-12)
