"""Distances or a graph instead of samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from sklearn.pipeline import make_pipeline

from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from gramian.manifold._spaces import both_ways

N = 60
RNG = np.random.default_rng(0)
ALONG = RNG.uniform(0, np.pi, N)
X = np.column_stack([np.cos(ALONG), np.sin(ALONG), RNG.uniform(0, 1, N)])
D = cdist(X, X)
OPTIONS = {"n_neighbors": 6, "random_state": 0, "tol": 1e-2}
LEARNERS = pytest.mark.parametrize("learner", [MVU, RegMVU, ColoredMVU, NeighborLayout])


def made(learner, **more):
    more |= {"rounds": 2} if learner is NeighborLayout else {}
    return learner(**OPTIONS, **more)


def graph_of(points, k=6):
    return kneighbors_graph(points, k, mode="distance")


@LEARNERS
@pytest.mark.filterwarnings("ignore:y holds numbers that are not whole")
def test_distances_agree_with_samples(learner):
    plain = made(learner).fit(X, ALONG)
    given = made(learner, metric="precomputed").fit(D, ALONG)
    np.testing.assert_array_equal(given.graph_.edges, plain.graph_.edges)
    np.testing.assert_allclose(given.graph_.sq_distances, plain.graph_.sq_distances)
    assert given.result_.value == pytest.approx(plain.result_.value, rel=2e-2)
    assert given.n_features_in_ == N


@pytest.mark.parametrize("learner", [ColoredMVU, NeighborLayout])
@pytest.mark.filterwarnings("ignore:y holds numbers that are not whole")
def test_graph_agrees_with_samples(learner):
    plain = made(learner).fit(X, ALONG)
    given = made(learner, metric="precomputed").fit(graph_of(X), ALONG)
    np.testing.assert_array_equal(given.graph_.edges, plain.graph_.edges)
    assert given.result_.value == pytest.approx(plain.result_.value, rel=2e-2)


@pytest.mark.parametrize("form", ["rows", "columns", "both", "upper"])
def test_edges_may_be_stored_in_any_way(form):
    rows = graph_of(X)
    both = rows.maximum(rows.T)
    stored = {"rows": rows, "columns": rows.T, "both": both, "upper": sp.triu(both)}[form]
    assert abs(both_ways(stored) - both).max() == 0


def test_follows_the_transformer_of_scikit_learn():
    chain = make_pipeline(
        KNeighborsTransformer(n_neighbors=5, mode="distance"), MVU(metric="precomputed", tol=1e-2)
    )
    found, plain = chain.fit_transform(X), MVU(n_neighbors=5, tol=1e-2).fit(X)
    np.testing.assert_array_equal(chain[-1].graph_.edges, plain.graph_.edges)
    expected = cdist(plain.embedding_, plain.embedding_)
    np.testing.assert_allclose(cdist(found, found), expected, atol=0.05 * expected.max())


@pytest.mark.parametrize("learner", [MVU, NeighborLayout])
def test_new_samples_are_placed_by_their_distances(learner):
    new = X[:10] + 0.01
    plain = made(learner).fit(X)
    given = made(learner, metric="precomputed").fit(D)
    places, error = given.transform(cdist(new, X), return_error=True)
    expected, known = plain.transform(new, return_error=True)
    turned = np.sign(np.sum(plain.embedding_ * given.embedding_, axis=0))
    size = np.abs(plain.embedding_).max()
    np.testing.assert_allclose(places * turned, expected, atol=0.1 * size)
    np.testing.assert_allclose(error, known, atol=0.1)
    np.testing.assert_allclose(given.transform(D[:5]), given.embedding_[:5], atol=1e-9)
    with pytest.raises(ValueError, match="no samples to combine"):
        given.inverse_transform(places)
    with pytest.raises(ValueError, match="60 features"):
        given.transform(cdist(new, X[:50]))
    with pytest.raises(ValueError, match=r"d\(0, 1\) = -1"):
        given.transform(np.where(np.eye(1, N, 1), -1.0, D[:1]))


def test_graph_cannot_transform():
    fitted = MVU(metric="precomputed", tol=0.1).fit(graph_of(X))
    with pytest.raises(ValueError, match="new samples cannot be embedded with a graph"):
        fitted.transform(sp.csr_array(D[:3]))


def test_samples_at_no_distance_are_one_point():
    points = np.vstack([X, X[:7]])
    fitted = MVU(metric="precomputed", tol=0.1).fit(cdist(points, points))
    np.testing.assert_array_equal(fitted.embedding_[N:], fitted.embedding_[:7])
    assert np.sum(fitted.graph_.sq_distances == 0) == 7


def apart():
    return np.vstack([X, X[:40] + 50.0])


def test_components_are_joined_rejected_or_embedded_separately():
    points = apart()
    far = cdist(points, points)
    joined = MVU(metric="precomputed", tol=0.1).fit(far)
    assert joined.graph_.n_parts == 1
    np.testing.assert_array_equal(joined.graph_.edges, MVU(tol=0.1).fit(points).graph_.edges)
    with pytest.raises(ValueError, match="2 components of 60, 40 points"):
        MVU(metric="precomputed", connect="error").fit(far)
    parts = MVU(metric="precomputed", connect="components", tol=0.1).fit(far)
    assert len(parts.parts_) == 2
    np.testing.assert_allclose(parts.transform(far[55:65]), parts.embedding_[55:65], atol=1e-9)


def test_rejects_disconnected_given_graph():
    links = graph_of(apart())
    with pytest.raises(ValueError, match="falls into 2 components without distances"):
        MVU(metric="precomputed").fit(links)
    parts = MVU(metric="precomputed", connect="components", tol=0.1).fit(links)
    assert len(parts.parts_) == 2
    picture = NeighborLayout(metric="precomputed", rounds=2).fit(links)
    centres = [picture.embedding_[of].mean(axis=0) for of in (slice(N), slice(N, None))]
    assert np.linalg.norm(centres[0] - centres[1]) > 1.0


def changed(*entries):
    """The distances with some entries replaced."""
    other = D.copy()
    for i, j, value in entries:
        other[i, j] = value
    return other


def linked(*entries):
    other = sp.lil_array(graph_of(X))
    for i, j, value in entries:
        other[i, j] = value
    return sp.csr_array(other)


def with_zero():
    stored = sp.coo_array(graph_of(X))
    stored.data[3] = 0.0
    return sp.csr_array(stored)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X, r"takes a square matrix of distances, got shape \(60, 3\)"),
        (changed((2, 5, 9.0)), r"symmetric, but d\(2, 5\) = 9 and d\(5, 2\)"),
        (changed((2, 5, -1.0), (5, 2, -1.0)), r"at least 0, but d\(2, 5\) = -1"),
        (changed((4, 4, 0.5)), r"0 from a sample to itself, but d\(4, 4\) = 0.5"),
        (changed((1, 2, np.nan)), "contains NaN"),
        (linked((0, 1, 5.0), (1, 0, 7.0)), "0 and 1 have 5 and 7|have 7 and 5"),
        (linked((0, 1, -1.0)), r"positive lengths, but \(0, 1\) has -1"),
        (with_zero(), r"positive lengths, but \(0, \d+\) has 0"),
        (sp.csr_array(graph_of(X)[:50]), "square matrix"),
        (1e200 * D, "too large"),
    ],
)
def test_rejects_bad_distances(given, message):
    with pytest.raises(ValueError, match=message):
        MVU(metric="precomputed").fit(given)


def test_rejects_too_many_edges_and_unknown_metric():
    points = np.random.default_rng(1).standard_normal((300, 3))
    with pytest.raises(ValueError, match="keep the 4 to 30 shortest of each"):
        MVU(metric="precomputed").fit(sp.csr_array(cdist(points, points)))
    with pytest.raises(ValueError, match='metric must be "euclidean" or "precomputed"'):
        MVU(metric="cosine").fit(X)


def test_time_limit_falls_back_to_shortest_paths():
    with pytest.warns(UserWarning, match="time limit"):
        fitted = MVU(metric="precomputed", time_limit=1e-3).fit(D)
    assert abs(np.corrcoef(fitted.embedding_[:, 0], ALONG)[0, 1]) > 0.9
