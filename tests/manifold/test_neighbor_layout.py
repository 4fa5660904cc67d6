"""Maps of `NeighborLayout`: separation of clusters, certificates, and places of new samples."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import Isomap, trustworthiness

import gramian as gm
from gramian.arrays.places import HOST
from gramian.common import clock
from gramian.graph import Graph
from gramian.manifold import MVU, NeighborLayout
from gramian.manifold import neighbor_layout as neighbor_layout_module
from gramian.manifold.neighbor_layout import (
    NEAR,
    PUSHED,
    closeness,
    hub_of_counts,
    near_pairs,
    random_pairs,
    repelled,
)
from gramian.problems import neighbor_layout
from gramian.proofs import sparse

X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]


@pytest.fixture(scope="module")
def fitted():
    return NeighborLayout(random_state=0).fit(X)


def share_of_own(places, labels):
    """How many have a sample of their class for their nearest."""
    gaps = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.mean(labels[gaps.argmin(axis=1)] == labels)


def texts(n=120, words=8000):
    """Counts of words in texts of two topics, whose lengths differ by a factor of 10."""
    rng, topic = np.random.default_rng(0), np.arange(n) % 2
    shares = np.ones((2, words))
    shares[0, :100] = shares[1, 100:200] = 8.0
    shares /= shares.sum(axis=1, keepdims=True)
    lengths = np.exp(rng.uniform(np.log(100), np.log(1000), n)).astype(int)
    counts = [rng.multinomial(m, shares[c]) for m, c in zip(lengths, topic, strict=True)]
    return sp.csr_array(np.array(counts, dtype=float)), topic


def test_counts_are_divided_by_the_norm_of_their_row_where_a_short_text_is_near_to_all():
    counts, topic = texts()
    layout = NeighborLayout(rounds=1, tol=0.1, random_state=0).fit(counts)
    assert layout.normalized_ and share_of_own(layout.embedding_, topic) > 0.9  # 0.73 by raw counts
    np.testing.assert_array_equal(layout.transform(counts), layout.embedding_)
    assert hub_of_counts(counts.toarray(), 7)
    assert not hub_of_counts(-counts, 7) and not hub_of_counts(X, 7)
    empty = sp.csr_array(sp.vstack([counts, sp.csr_array((1, counts.shape[1]))]))
    assert not hub_of_counts(empty, 7)  # divided or not, no words are near to all


@pytest.mark.slow
def test_neighbourhoods_are_kept_better_than_by_distances(fitted):
    picture, distances = fitted.embedding_, Isomap(n_neighbors=8).fit_transform(X)
    for first, second in ((X, picture), (picture, X)):
        kept = trustworthiness(first, second, n_neighbors=10)
        other = (X, distances) if first is X else (distances, X)
        assert kept > trustworthiness(*other, n_neighbors=10)
        assert kept > 0.96
    assert share_of_own(picture, Y) > 0.93 > share_of_own(MVU(tol=1e-2).fit_transform(X), Y)


def test_layout_is_certified_near_the_optimum_of_any_rank(fitted):
    assert fitted.relaxation_.relative_gap <= fitted.tol and fitted.relaxation_.proved
    assert fitted.certificate_.relative_gap < 0.06
    assert fitted.certificate_.lower_bound == pytest.approx(fitted.relaxation_.lower_bound)
    assert fitted.result_.status is gm.Status.LOCAL
    assert 0 < fitted.torn_ < 0.5
    assert np.all((fitted.weights_ > 0) & (fitted.weights_ < 1.01 * closeness(fitted.graph_)))


def test_near_neighbours_attract_more_and_all_samples_about_equally():
    squares = np.array([1.0, 4.0, 4.0, 4.0, 9.0])
    graph = Graph(6, np.array([[0, 1], [1, 2], [1, 3], [1, 4], [1, 5]]), squares)
    found = closeness(graph)
    assert found.mean() == pytest.approx(1) and found[0] > found[1] > found[4]
    assert found[1] == found[2] == found[3]
    hub = np.exp(-4 * squares / squares.mean())
    shares = 1 + hub / hub.sum()  # each of the others has one edge
    np.testing.assert_allclose(found, shares / shares.mean(), rtol=2e-2)
    np.testing.assert_array_equal(closeness(Graph(6, graph.edges, squares * (1 + 1e-14))), found)
    alike = closeness(Graph(6, graph.edges, np.full(5, 3.0)))
    np.testing.assert_allclose(alike, 1.0)


def test_pairs_of_near_places_stand_for_themselves():
    places = np.column_stack([np.arange(200.0) ** 2, np.zeros(200)])
    drawn = random_pairs(200, np.random.default_rng(0))
    pairs, counts = repelled(drawn, near_pairs(places, NEAR), 200)
    near = counts < 1
    assert {(0, 1), (0, NEAR), (150, 151)} <= set(map(tuple, pairs[near].tolist()))
    keys = np.sort(pairs, axis=1) @ [200, 1]
    assert np.unique(keys[near]).size == near.sum() and not np.any(np.isin(keys[~near], keys[near]))
    assert counts.sum() == pytest.approx(200 * PUSHED, rel=0.05)
    assert np.all(pairs[:, 0] != pairs[:, 1])


def test_one_round_is_the_convex_problem_of_the_affinities():
    points, _ = make_blobs(80, n_features=5, random_state=1)
    fitted = NeighborLayout(rounds=1, random_state=0).fit(points)
    np.testing.assert_allclose(fitted.weights_, closeness(fitted.graph_))
    assert fitted.result_.problem == "neighbor_layout"
    edges = fitted.graph_.edges
    pairs = np.array([(i, j) for i in range(80) for j in range(i)])
    assert neighbor_layout(edges, pairs, 80).value(fitted.embedding_) > 0


def test_new_samples_are_placed_near_their_neighbours_with_an_error(fitted):
    held, labels = load_digits(return_X_y=True)
    places, error = fitted.transform(held[500:600], return_error=True)
    near = np.linalg.norm(places[:, None] - fitted.embedding_, axis=2).argmin(axis=1)
    assert np.mean(Y[near] == labels[500:600]) > 0.8  # of their nearest samples 0.89 are
    assert np.all((error >= 0) & (error < 1)) and np.median(error) < 0.5
    np.testing.assert_allclose(fitted.transform(X[:20]), fitted.embedding_[:20], atol=1e-12)
    assert fitted.inverse_transform(fitted.embedding_[:3]).shape == (3, 64)
    np.testing.assert_allclose(fitted.inverse_transform(fitted.embedding_[:3]), X[:3], atol=1e-6)


def test_the_same_seed_gives_the_same_picture_whatever_the_form():
    points, _ = make_blobs(60, n_features=4, random_state=2)
    options = {"rounds": 2, "random_state": 3}
    first = NeighborLayout(**options).fit_transform(points)
    np.testing.assert_array_equal(first, NeighborLayout(**options).fit_transform(points))
    sparse = NeighborLayout(**options).fit_transform(sp.csr_array(points))
    np.testing.assert_allclose(sparse, first, atol=1e-6 * np.abs(first).max())


def test_copies_have_equal_coordinates():
    points, _ = make_blobs(50, n_features=4, random_state=2)
    fitted = NeighborLayout(rounds=2).fit(np.vstack([points, points[:10]]))
    np.testing.assert_array_equal(fitted.embedding_[50:], fitted.embedding_[:10])


def test_time_limit_applies_to_the_whole_fit_and_warns():
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fitted = NeighborLayout(time_limit=0.2).fit(X)
    assert fitted.embedding_.shape == (500, 2)


def test_very_many_samples_are_not_compared_with_the_optimum(monkeypatch):
    monkeypatch.setattr("gramian.manifold.neighbor_layout.FACTORED", 40)
    points, _ = make_blobs(60, n_features=4, random_state=2)
    places = []
    monkeypatch.setattr(
        "gramian.manifold.neighbor_layout.place", lambda device: places.append(device) or HOST
    )
    before = time.perf_counter()
    fitted = NeighborLayout(rounds=3, device="cpu").fit(points)
    assert fitted.certificate_.gap is not None and fitted.result_.status is gm.Status.LOCAL
    assert 0 < fitted.result_.seconds <= time.perf_counter() - before
    assert fitted.result_.route == ("lbfgs",)
    assert fitted.result_.formula.startswith("min Σ_e")
    assert places == ["cpu"]


def test_result_describes_rounds_and_optimum_of_any_rank(fitted):
    assert fitted.result_.route[0] == "lbfgs" and len(fitted.result_.route) > 1
    alone = fitted.result_.history["time"][-1]
    assert fitted.result_.seconds > alone > 0
    problem = neighbor_layout(fitted.graph_.edges, [[0, 1]], len(X), weights=fitted.weights_)
    pulled = problem.value(fitted.result_.factor) - neighbor_layout(
        fitted.graph_.edges, [[0, 1]], len(X), weights=0.0
    ).value(fitted.result_.factor)
    squares = np.sum(
        (
            fitted.embedding_[fitted.graph_.edges[:, 0]]
            - fitted.embedding_[fitted.graph_.edges[:, 1]]
        )
        ** 2,
        axis=1,
    )
    assert pulled == pytest.approx(fitted.weights_ @ squares)


@pytest.mark.slow
def test_a_proof_that_would_fill_in_is_computed_as_a_dense_factor(monkeypatch):
    """A sparse factor of random pairs fills in: of 2,000 points it took half of the fit."""
    orders = []
    monkeypatch.setattr(
        sparse, "splu", lambda A, **options: orders.append(A.shape[0]) or splu(A, **options)
    )
    points, _ = make_blobs(1600, n_features=8, random_state=0)
    fitted = NeighborLayout(rounds=2, tol=0.1).fit(points)
    assert fitted.relaxation_.proved and fitted.relaxation_.relative_gap <= 0.1
    assert max(orders, default=0) < 1600


def test_watcher_receives_frames_without_effect_on_the_fit():
    class Seen(clock.Watcher):
        shapes = ()

        def frame(self, places):
            self.shapes += (places().shape,)

    seen = Seen()
    points = np.vstack([X[:100], X[:5]])
    with clock.watched_by(seen):
        NeighborLayout(rounds=3, tol=0.1).fit(points)
    assert len(seen.shapes) >= 50 and set(seen.shapes) == {(105, 2)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repulsion": 0.0}, "repulsion must be a finite number above 0"),
        ({"rounds": 0}, "rounds must be"),
        ({"n_components": "auto"}, "n_components must be a whole number"),
        ({"n_components": 60}, "unfold to at most"),
    ],
)
def test_rejects_invalid_options(options, message):
    with pytest.raises(ValueError, match=message):
        NeighborLayout(**options).fit(X[:50])


SEEN, NEW = slice(0, 150), slice(150, 300)


def wrong_when_new(model):
    """The share of new samples whose nearest sample in the picture is of another class."""
    gaps = np.linalg.norm(model.transform(X[NEW])[:, None] - model.embedding_, axis=2)
    return np.mean(Y[SEEN][gaps.argmin(axis=1)] != Y[NEW])


def test_classes_draw_the_picture_and_place_new_samples():
    plain = NeighborLayout(random_state=0, rounds=4).fit(X[SEEN])
    guided = NeighborLayout(random_state=0, rounds=4).fit(X[SEEN], Y[SEEN])
    assert share_of_own(guided.embedding_, Y[SEEN]) > share_of_own(plain.embedding_, Y[SEEN])
    assert wrong_when_new(guided) <= wrong_when_new(plain)
    assert guided.certificate_.gap >= 0
    across = Y[SEEN][guided.graph_.edges[:, 0]] != Y[SEEN][guided.graph_.edges[:, 1]]
    assert guided.weights_[across].max() <= 0.1 + 1e-12


@pytest.mark.parametrize("y", [np.full(150, -1), Y[SEEN]], ids=["unknown", "without weight"])
def test_unknown_classes_and_zero_weights_have_no_effect(y):
    weight = 0.9 if y[0] == -1 else 0.0
    plain = NeighborLayout(random_state=0, rounds=2).fit(X[SEEN])
    same = NeighborLayout(random_state=0, rounds=2, target_weight=weight).fit(X[SEEN], y)
    np.testing.assert_allclose(same.embedding_, plain.embedding_, atol=1e-8)


def test_copies_of_different_classes_have_none():
    twice = np.vstack([X[SEEN], X[:20]])
    classes = np.concatenate([Y[SEEN], 1 + Y[:20]])
    fitted = NeighborLayout(random_state=0, rounds=2).fit(twice, classes)
    np.testing.assert_array_equal(fitted.embedding_[:20], fitted.embedding_[150:])


def test_warns_that_continuous_targets_are_ignored():
    points, _ = make_blobs(40, random_state=0)
    layout = NeighborLayout(rounds=1, tol=0.1, random_state=0)
    plain = layout.fit_transform(points)
    with pytest.warns(UserWarning, match="numbers that are not whole and is ignored"):
        given = layout.fit_transform(points, points[:, 0])
    np.testing.assert_array_equal(plain, given)


@pytest.mark.parametrize("gap", [-1, np.nan, None])
def test_gaps_in_classes_are_unknown(gap):
    points, classes = make_blobs(40, random_state=0)
    layout = NeighborLayout(rounds=1, tol=0.1, random_state=0)
    expected = layout.fit_transform(points, np.where(classes == 2, -1, classes))
    named = [gap if c == 2 else int(c) for c in classes]
    np.testing.assert_array_equal(layout.fit_transform(points, named), expected)


def test_the_rows_that_decide_on_normalisation_do_not_depend_on_their_order(monkeypatch):
    rng = np.random.default_rng(0)
    counts = sp.csr_array(rng.poisson(0.05, (200, 60)).astype(float))
    compared = []

    def recorded(X, k):
        compared.append(sorted(map(tuple, X.toarray().tolist())))
        return 1

    monkeypatch.setattr(neighbor_layout_module, "_largest_hub", recorded)
    monkeypatch.setattr(neighbor_layout_module, "COMPARED", 40)
    for order in (np.arange(200), rng.permutation(200)):
        hub_of_counts(counts[order], 5)
    assert len(compared[0]) == 40 and compared[0] == compared[2]
