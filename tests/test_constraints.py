"""Pairs and triplets from labels: nearest neighbours and classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.constraints import (
    all_pairs,
    as_pairs,
    as_triplets,
    local_pairs,
    local_triplets,
    other_class_neighbors,
    random_pairs,
    random_triplets,
    same_class_neighbors,
)

FINDERS = {"same": same_class_neighbors, "other": other_class_neighbors}
EVERY_FINDER = pytest.mark.parametrize("name", FINDERS)
LOCAL = pytest.mark.parametrize("make", [local_pairs, local_triplets])


def samples(seed=0, n=40, d=3, classes=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.permutation(np.arange(n) % classes)


def brute(X, y, k, *, same):
    """The k nearest of its class or of the others for each sample, one row at a time."""
    found = []
    for i in range(len(X)):
        allowed = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
        found.append(sorted(allowed, key=lambda j: np.sum((X[i] - X[j]) ** 2))[:k])
    return np.array(found)


# --- the nearest ---------------------------------------------------------------------


@EVERY_FINDER
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), d=st.integers(1, 20))
def test_neighbours_are_those_of_brute_force(name, seed, k, d):
    X, y = samples(seed, d=d)
    found = FINDERS[name](X, y, k)
    assert found.shape == (40, k)
    assert np.issubdtype(found.dtype, np.integer)
    np.testing.assert_array_equal(found, brute(X, y, k, same=name == "same"))


@EVERY_FINDER
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, np.ndarray.tolist])
def test_every_form_of_samples_has_the_same_neighbours(name, form):
    X, y = samples(1, d=20)
    X[np.abs(X) < 0.7] = 0.0
    np.testing.assert_array_equal(FINDERS[name](form(X), y), FINDERS[name](X, y))


@EVERY_FINDER
def test_single_precision_samples_have_the_neighbours_of_their_numbers(name):
    X, y = samples(2)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(
        FINDERS[name](single, y), brute(single.astype(float), y, 3, same=name == "same")
    )


@EVERY_FINDER
@pytest.mark.parametrize("kind", [str, float, object, list])
def test_labels_of_any_type(name, kind):
    X, y = samples(3)
    labels = y.tolist() if kind is list else y.astype(kind)
    np.testing.assert_array_equal(FINDERS[name](X, labels), FINDERS[name](X, y))


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("d", [2, 30])
def test_no_sample_is_its_own_neighbour_among_duplicates(k, d, approximate):
    """Ten copies of each of two points per class: only copies are near, and never itself."""
    rng = np.random.default_rng(0)
    spots = 10 * rng.standard_normal((4, d))
    where = rng.permutation(np.repeat(np.arange(4), 10))
    found = same_class_neighbors(spots[where], where % 2, k, approximate=approximate)
    assert not np.any(found == np.arange(40)[:, None])
    assert np.all(where[found] == where[:, None])
    assert all(len(set(row)) == k for row in found)


def test_identical_samples_of_one_class_are_neighbours_of_each_other():
    X = np.array([[0.0], [0.0], [5.0], [7.0], [0.0], [6.9]])
    found = same_class_neighbors(X, [0, 0, 0, 1, 1, 1], 1)
    assert found[:2].ravel().tolist() == [1, 0]
    assert found[[3, 5]].ravel().tolist() == [5, 3]


def test_fewer_fills_the_rows_of_a_small_class_with_its_nearest():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [13.0], [20.0], [21.0], [23.0], [27.0], [30.0]])
    y = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 2])
    found = same_class_neighbors(X, y, 4, fewer=True)
    expected = [[1, 1, 1, 1], [0, 0, 0, 0], [3, 4, 3, 3], [2, 4, 2, 2], [3, 2, 3, 3]]
    np.testing.assert_array_equal(found[:5], expected)
    np.testing.assert_array_equal(found[5:], 5 + brute(X[5:], y[5:], 4, same=True))


def test_fewer_has_no_effect_on_large_classes():
    X, y = samples(4)
    np.testing.assert_array_equal(
        same_class_neighbors(X, y, 5, fewer=True), same_class_neighbors(X, y, 5)
    )


@EVERY_FINDER
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_approximate_neighbours_are_mostly_the_exact_ones(name, form, monkeypatch):
    """900 samples of 40 features that vary in a few directions most."""
    pytest.importorskip("faiss")
    monkeypatch.setattr("gramian.neighbours._approximate.APPROXIMATE_FROM", 200)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((900, 40)) * 0.7 ** np.arange(40)
    y = rng.integers(0, 3, 900)
    exact = FINDERS[name](X, y, 3)
    near = FINDERS[name](form(X), y, 3, approximate=True)
    shared = np.mean([len(set(a) & set(b)) / 3 for a, b in zip(exact, near, strict=True)])
    assert shared >= 0.95
    assert np.all((y[near] == y[:, None]) == (name == "same"))
    assert not np.any(near == np.arange(900)[:, None])


# --- pairs and triplets of the nearest -----------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 4])
def test_local_pairs_are_every_sample_with_its_nearest(k):
    X, y = samples(7)
    similar, dissimilar = local_pairs(X, y, k)
    assert similar.shape == dissimilar.shape == (40 * k, 2)
    for pairs, same in ((similar, True), (dissimilar, False)):
        expected = [(i, j) for i, row in enumerate(brute(X, y, k, same=same)) for j in row]
        assert sorted(map(tuple, pairs.tolist())) == sorted(expected)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_local_triplets_are_every_combination(k):
    X, y = samples(8)
    triplets = local_triplets(X, y, k)
    assert triplets.shape == (40 * k * k, 3)
    near, far = brute(X, y, k, same=True), brute(X, y, k, same=False)
    expected = [(i, j, l) for i in range(40) for j in near[i] for l in far[i]]
    assert sorted(map(tuple, triplets.tolist())) == sorted(expected)


@LOCAL
def test_local_constraints_pass_their_options_on(make, monkeypatch):
    X, y = samples(9, n=20)
    y[:] = [0] * 2 + [1] * 18
    with pytest.raises(ValueError, match="too few for 3 neighbours"):
        make(X, y, 3)
    found = make(X, y, 2, fewer=True, approximate=True)
    assert len(found) == (2 if make is local_pairs else 80)
    monkeypatch.setattr("gramian.neighbours._approximate.APPROXIMATE_FROM", 20)
    monkeypatch.setattr("gramian.neighbours._approximate.search", lambda *a: 1 / 0)
    wide, labels = samples(9, n=60, d=30, classes=2)
    with pytest.raises(ZeroDivisionError):
        make(wide, labels, 2, approximate=True)


def test_pairs_and_triplets_of_given_neighbours():
    near, far = np.array([[1, 2], [0, 2], [1, 0]]), np.array([[5], [6], [7]])
    expected = [[0, 1], [0, 2], [1, 0], [1, 2], [2, 1], [2, 0]]
    np.testing.assert_array_equal(as_pairs(near), expected)
    expected = [[0, 1, 5], [0, 2, 5], [1, 0, 6], [1, 2, 6], [2, 1, 7], [2, 0, 7]]
    np.testing.assert_array_equal(as_triplets(near, far), expected)


# --- all, and drawn ------------------------------------------------------------------

LABELS = st.lists(st.integers(0, 4), min_size=3, max_size=30).filter(
    lambda y: 1 < len(set(y)) < len(y)
)
"""At least two classes, and a class of two or more."""


@given(y=st.lists(st.integers(0, 3), min_size=1, max_size=15))
def test_all_pairs_are_all_pairs_once(y):
    same, other = all_pairs(y)
    pairs = [(i, j) for i in range(len(y)) for j in range(i + 1, len(y))]
    assert [tuple(p) for p in same.tolist()] == [(i, j) for i, j in pairs if y[i] == y[j]]
    assert [tuple(p) for p in other.tolist()] == [(i, j) for i, j in pairs if y[i] != y[j]]


@given(y=LABELS, count=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_random_pairs_have_their_classes_and_repeat(y, count, seed):
    y = np.array(y)
    similar, dissimilar = random_pairs(y, count, random_state=seed)
    assert similar.shape == dissimilar.shape == (count, 2)
    assert np.all(y[similar[:, 0]] == y[similar[:, 1]])
    assert np.all(similar[:, 0] != similar[:, 1])
    assert np.all(y[dissimilar[:, 0]] != y[dissimilar[:, 1]])
    again = random_pairs(y, count, random_state=np.random.default_rng(seed))
    np.testing.assert_array_equal(again, (similar, dissimilar))


@given(y=LABELS, count=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_random_triplets_have_their_classes_and_repeat(y, count, seed):
    y = np.array(y)
    triplets = random_triplets(y, count, random_state=seed)
    assert triplets.shape == (count, 3)
    anchor, same, other = triplets.T
    assert np.all(anchor != same)
    assert np.all(y[anchor] == y[same])
    assert np.all(y[anchor] != y[other])
    np.testing.assert_array_equal(random_triplets(y, count, random_state=seed), triplets)


def test_draws_are_uniform_and_depend_on_the_seed():
    y = np.array([0, 1, 0, 1, 1, 0, 2])
    similar, dissimilar = random_pairs(y, 6000)
    for pairs, expected in ((similar, 12), (dissimilar, 30)):
        found, counts = np.unique(pairs, axis=0, return_counts=True)
        assert len(found) == expected
        assert counts.max() < 3 * counts.min()
    assert not np.array_equal(similar, random_pairs(y, 6000, random_state=1)[0])
    found = np.unique(random_triplets(y, 6000), axis=0)
    assert len(found) == 6 * 2 * 4  # a class of one has no anchors, and is an impostor


# --- what is refused -----------------------------------------------------------------

X0, Y0 = samples(10)
BAD_COUNTS = [0, -1, 2.0, "3", True, None]
REFUSED = {
    "one class": (X0, np.zeros(40), 3, "only one class"),
    "NaN": (np.where(X0 > 2, np.nan, X0), Y0, 3, "NaN"),
    "infinity": (np.where(X0 > 2, np.inf, X0), Y0, 3, "infinity"),
    "lengths": (X0, Y0[:-1], 3, "inconsistent numbers of samples"),
    "one dimension": (X0[:, 0], Y0, 3, "2D"),
    **{
        f"k={k!r}": (X0, Y0, k, rf"k must be a whole number of at least 1, got {k!r}")
        for k in BAD_COUNTS
    },
}


@EVERY_FINDER
@pytest.mark.parametrize("case", REFUSED)
def test_rejects_bad_input(name, case):
    X, y, k, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        FINDERS[name](X, y, k)


@LOCAL
@pytest.mark.parametrize("case", REFUSED)
def test_local_constraints_reject_bad_input(make, case):
    X, y, k, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make(X, y, k)


@pytest.mark.parametrize("fewer", [False, True])
def test_rejects_class_of_one_sample(fewer):
    y = np.array(["ant", *["bee"] * 39])
    with pytest.raises(ValueError, match="class 'ant' has a single sample"):
        same_class_neighbors(X0, y, 1, fewer=fewer)


def test_error_names_small_class():
    y = np.array(["ant"] * 3 + ["bee"] * 37)
    with pytest.raises(ValueError, match=r"'ant' has 3 samples.*at most 2 neighbours"):
        same_class_neighbors(X0, y, 3)
    assert same_class_neighbors(X0, y, 2).shape == (40, 2)


def test_rejects_too_few_samples_outside_a_class():
    y = np.array(["ant"] * 3 + ["bee"] * 37)
    with pytest.raises(ValueError, match=r"only 3 samples are outside class 'bee'.*k = 4"):
        other_class_neighbors(X0, y, 4)
    assert other_class_neighbors(X0, y, 3).shape == (40, 3)


@pytest.mark.parametrize("draw", [random_pairs, random_triplets])
def test_random_draws_reject_single_member_classes(draw):
    with pytest.raises(ValueError, match="only one class"):
        draw([1, 1, 1], 5)
    with pytest.raises(ValueError, match="every class has only one member"):
        draw([1, 2, 3], 5)
    for count in BAD_COUNTS:
        with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
            draw([1, 1, 2], count)
