"""Duplicate samples are merged into one point weighted by its multiplicity."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian.manifold import MVU, ColoredMVU, RegMVU
from gramian.manifold._spaces import Places, _groups


def rows(seed=0, kinds=60, n=150):
    """Samples with few distinct rows, as for words in short texts."""
    rng = np.random.default_rng(seed)
    once = rng.standard_normal((kinds, 3))
    return once[np.concatenate([np.arange(kinds), rng.integers(0, kinds // 4, n - kinds)])]


def test_negative_zero_equals_zero():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [1.0, -0.0], [2.0, 1.0], [0.0, 0.0]])
    stored = sp.csr_array(X)
    stored.data[:] = stored.data
    written = sp.csr_array((np.array([0.0]), np.array([1]), np.array([0, 0, 0, 0, 0, 1])), (5, 2))
    for samples in (X, X.astype(np.float32), stored, stored + written):
        copies = Places().copies(samples)
        assert copies.first.tolist() == [0, 1, 4]
        assert copies.kind.tolist() == [0, 1, 0, 1, 2]
        assert copies.merge.counts.tolist() == [2.0, 2.0, 1.0]
    assert not Places().copies(X[:2]).any


@pytest.mark.parametrize("learner", [MVU, RegMVU, ColoredMVU])
def test_copies_have_equal_coordinates(learner):
    X = rows()
    y = X[:, 0] + 0.1 * X[:, 1]
    fitted = learner(n_neighbors=5).fit(X, y)
    assert fitted.certificate_.relative_gap <= fitted.tol
    copies = Places().copies(X)
    L = fitted.kernel_factor_
    np.testing.assert_array_equal(L, L[copies.first][copies.kind])
    np.testing.assert_allclose(L.mean(axis=0), 0.0, atol=1e-9)
    assert fitted.embedding_.shape == (len(X), 2)
    assert fitted.graph_.n == len(X) and fitted.graph_.n_parts == 1
    assert np.sum(fitted.graph_.sq_distances == 0) == len(X) - copies.first.size
    assert fitted.X_fit_.shape == X.shape


def test_copies_count_in_variance_and_certificate():
    X = rows(kinds=30, n=60)
    fitted = MVU(n_neighbors=5, tol=1e-4).fit(X)
    copies = Places().copies(X)
    graph = gm.graph.neighbor_graph(X[copies.first], 5, connect="mst")
    unit = graph.sq_distances.mean()
    D = graph.sq_distances / unit
    problem = gm.problems.mvu(graph.edges, D, graph.n, fitted.lam_, mass=copies.merge.counts)
    L = fitted.kernel_factor_ / np.sqrt(unit)
    once = L[copies.first]
    i, j = graph.edges.T
    kept = np.sum((np.sum((once[i] - once[j]) ** 2, axis=1) - D) ** 2)
    assert problem.value(once) == pytest.approx(kept - fitted.lam_ * np.sum(L**2))
    assert problem.value(once) == pytest.approx(fitted.certificate_.value)
    assert problem.value(once) - fitted.certificate_.gap <= problem.value(once[:, :2])


def test_unit_masses_have_no_effect():
    X = np.unique(rows(), axis=0)
    graph = gm.graph.neighbor_graph(X, 5, connect="mst")
    plain = gm.problems.mvu(graph.edges, graph.sq_distances, graph.n, 0.1)
    weighed = gm.problems.mvu(graph.edges, graph.sq_distances, graph.n, 0.1, mass=np.ones(graph.n))
    L = np.random.default_rng(0).standard_normal((graph.n, 3))
    assert weighed.value(L) == pytest.approx(plain.value(L))


@pytest.mark.parametrize(
    ("mass", "message"),
    [([1.0, 2.0], "one number for each of 3 points"), ([1.0, 0.0, 1.0], "not a positive number")],
)
def test_rejects_bad_masses(mass, message):
    with pytest.raises(ValueError, match=message):
        gm.problems.mvu([[0, 1], [1, 2]], [1.0, 1.0], 3, 0.1, mass=mass)


def test_rejects_too_few_distinct_samples():
    with pytest.raises(ValueError, match="nothing to unfold"):
        MVU().fit(np.ones((20, 3)))
    with pytest.raises(ValueError, match="2 distinct samples unfold to at most 1"):
        MVU().fit(np.repeat([[0.0, 1.0], [2.0, 3.0]], 10, axis=0))
    with pytest.raises(ValueError, match="more than 100 edges"):
        MVU(n_neighbors=150).fit(np.random.default_rng(0).standard_normal((200, 3)))


def test_warns_of_hub():
    X = np.random.default_rng(0).standard_normal((400, 60))
    X[7] = 0.0
    with pytest.warns(UserWarning, match=r"sample 7 is a neighbour of \d+ of 400 samples"):
        RegMVU(tol=0.1).fit(X)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_of_equal_rows_are_numbered_by_first_appearance(form, dtype):
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 2, (150, 3)).astype(dtype)
    X = np.where(rows == 0, rng.choice([0.0, -0.0], rows.shape), rows).astype(dtype)
    known = {}
    expected = [known.setdefault((row + 0.0).tobytes(), len(known)) for row in X]
    np.testing.assert_array_equal(_groups(form(X)), expected)
