"""Problems that depend on differences of samples keep their digits far from the origin."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian import problems
from gramian.arrays.samples import far_means, near_origin
from gramian.constraints import local_pairs, local_triplets
from gramian.estimators.kernel_functions import kernel_values, with_bandwidth
from gramian.graph import neighbor_graph
from gramian.neighbours import nearest
from gramian.objectives import gram_quadratic
from gramian.problems import metric, moments

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
FAR = RNG.normal(size=(60, 20)) + 2 * np.eye(3, 20)[Y] + 1e6
NEAR = FAR - 1e6  # exactly what FAR holds, which float64 rounds to 1e-10
SIMILAR, DISSIMILAR = local_pairs(NEAR, Y, 2)
TRIPLETS = local_triplets(NEAR, Y, 2)
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
PROBLEMS = {
    "linear_separation": lambda X: problems.linear_separation(X, Y, 1e-3),
    "triplets": lambda X: problems.triplets(X, TRIPLETS, 1.0, 0.5),
    "lmnn": lambda X: problems.lmnn(X, Y, 2, 1.0),
    "dml_eig": lambda X: problems.dml_eig(X, SIMILAR, DISSIMILAR, 0.1, ridge=1e-3),
    "lmnn_eig": lambda X: problems.lmnn_eig(X, SIMILAR, TRIPLETS, 0.5, 0.1, ridge=1e-3),
}


@FORMS
@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_values_and_gradients_are_invariant(make, form):
    near, far = make(form(NEAR)), make(form(FAR))
    L = np.random.default_rng(1).normal(size=(near.order, 3))
    assert far.value(L) == pytest.approx(near.value(L), rel=1e-9)
    gradients = [p.objective.gradient_factor(p.objective.image(L)) for p in (near, far)]
    np.testing.assert_allclose(gradients[1], gradients[0], atol=1e-9 * np.abs(gradients[0]).max())


@FORMS
@pytest.mark.parametrize("order", [3000, 5], ids=["formed", "matrix-free"])
def test_linear_separation_far_from_the_origin(form, order, monkeypatch):
    for module in (gram_quadratic, metric, moments):
        monkeypatch.setattr(module, "DENSE_ORDER", order)
    near = gm.minimize(PROBLEMS["linear_separation"](form(NEAR)), tol=1e-10)
    far = gm.minimize(PROBLEMS["linear_separation"](form(FAR)), tol=1e-10)
    assert far.value == pytest.approx(near.value, rel=1e-9)
    np.testing.assert_allclose(far.matrix(), near.matrix(), atol=1e-8)
    rounded = gm.minimize(PROBLEMS["linear_separation"](form(FAR + 1e8)), tol=1e-10)
    assert rounded.value == pytest.approx(near.value, rel=1e-6)


@FORMS
def test_centred_moments_are_accurate(form):
    near, far = (moments.moments(form(X), Y, center=True) for X in (NEAR, FAR))
    np.testing.assert_allclose(far.gram.dense(), near.gram.dense(), atol=1e-9)
    np.testing.assert_allclose(far.sums, near.sums, atol=1e-7)
    assert far.trace == pytest.approx(near.trace, rel=1e-12)


@FORMS
def test_neighbours_and_graphs_are_invariant(form):
    np.testing.assert_array_equal(
        nearest(form(FAR + 1e8), 3).indices, nearest(form(FAR + 1e8 - 1e8 - 1e6), 3).indices
    )
    graph = neighbor_graph(form(FAR), 2, connect="mst")
    np.testing.assert_array_equal(graph.edges, neighbor_graph(form(NEAR), 2, connect="mst").edges)


@FORMS
def test_gaussian_kernel_is_invariant(form):
    bandwidths = [with_bandwidth("rbf", None, form(X)) for X in (NEAR, FAR)]
    assert bandwidths[1]["gamma"] == pytest.approx(bandwidths[0]["gamma"], rel=1e-9)
    near, far = (kernel_values("rbf", bandwidths[0], form(X), form(X)) for X in (NEAR, FAR))
    np.testing.assert_allclose(far, near, atol=1e-9)


def test_only_columns_far_from_the_origin_are_shifted():
    X = sp.random_array((200, 6), density=0.3, rng=np.random.default_rng(0)).tocsr()
    assert near_origin(X) is X
    dense = X.toarray()
    assert near_origin(dense) is dense
    dense[:, 2] += 50.0
    shifted = near_origin(sp.csr_array(dense))
    assert np.flatnonzero(far_means(dense)).tolist() == [2]
    np.testing.assert_array_equal(shifted.toarray(), near_origin(dense))
    np.testing.assert_array_equal(shifted.toarray()[:, [0, 1, 3, 4, 5]], dense[:, [0, 1, 3, 4, 5]])
    assert shifted.nnz <= X.nnz + 200
    assert abs(shifted.toarray()[:, 2].mean()) < 1e-12
