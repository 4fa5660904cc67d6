"""Exact unfoldings: optima of an independent model, true bounds, faces of cliques."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_swiss_roll

import gramian as gm
from gramian.constrained.cliques import face_of
from gramian.constrained.model import Model
from gramian.constrained.unfolding_path import refusal
from gramian.graph import neighbor_graph
from gramian.problems.manifold import exact_mvu


def graph(n, neighbours=4, seed=0):
    X = make_swiss_roll(n, random_state=seed)[0]
    found = neighbor_graph(X, neighbours, connect="mst")
    return found.edges, found.sq_distances / found.sq_distances.mean()


def laplacian(weights, edges, n):
    L = np.zeros((n, n))
    for w, (i, j) in zip(weights, edges, strict=True):
        L[i, i] += w
        L[j, j] += w
        L[i, j] -= w
        L[j, i] -= w
    return L


@pytest.mark.parametrize("n", [20, 60])
def test_edges_hold_and_the_bound_is_a_dual_point(n):
    """The dual vector is checked by itself: Σ y_e A_e ⪯ C, and y·D is the bound."""
    edges, D = graph(n)
    problem = exact_mvu(edges, D, n)
    result = gm.minimize(problem, "unfolding-path", tol=1e-5)
    assert result.status is gm.Status.CONVERGED
    assert result.route == ("unfolding-path",)
    i, j = np.asarray(edges).T
    L = result.factor
    lengths = np.sum((L[i] - L[j]) ** 2, axis=1)
    assert np.max(np.abs(lengths / D - 1)) <= 1e-4
    C = -np.eye(n) + 2.0 / n
    slack = C - laplacian(result.dual, edges, n)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-11 * np.linalg.norm(slack)
    assert result.dual @ D == pytest.approx(-np.sum(L * L), rel=1e-4)
    assert result.certificate.lower_bound <= result.dual @ D * (1 - 1e-9) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_is_that_of_other_methods(seed):
    edges, D = graph(15, seed=seed)
    problem = exact_mvu(edges, D, 15)
    found = gm.minimize(problem, "unfolding-path", tol=1e-6)
    other = gm.minimize(problem, "interior-point", tol=1e-6)
    assert found.status is gm.Status.CONVERGED
    assert found.value == pytest.approx(other.value, rel=1e-5)
    assert found.certificate.lower_bound <= other.value + 1e-5 * abs(other.value)


def test_unfolding_path_certifies_a_hundred_points():
    edges, D = graph(100)
    problem = exact_mvu(edges, D, 100)
    result = gm.minimize(problem, tol=5e-5)
    assert result.status is gm.Status.CONVERGED
    assert result.route == ("unfolding-path",)
    assert result.certificate.proved and result.certificate.violation <= 5e-5


def test_cliques_give_the_null_vectors_of_every_unfolding():
    """Six points of a space, all joined, and one beside: two vectors, of no cost."""
    X = np.random.default_rng(0).standard_normal((7, 3))
    edges = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)] + [(0, 6), (1, 6)])
    D = np.sum((X[edges[:, 0]] - X[edges[:, 1]]) ** 2, axis=1)
    face = face_of(edges, D, 7)
    assert scipy.linalg.orth(face.vectors).shape[1] == 2
    np.testing.assert_allclose(face.vectors.T @ X, 0.0, atol=1e-10)
    np.testing.assert_allclose(face.vectors.sum(axis=0), 0.0, atol=1e-12)
    squares = laplacian(face.weights, edges, 7)
    np.testing.assert_allclose(squares, face.vectors @ face.vectors.T, atol=1e-10)
    assert abs(face.weights @ D) < 1e-10


def test_points_without_cliques_have_no_face():
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    assert face_of(edges, np.ones(4), 4).vectors.shape == (4, 0)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: exact_mvu([(0, 1), (1, 2)], [1.0, 0.0], 3), "above 0"),
        (lambda: gm.problems.sdp(np.eye(3), [np.eye(3)], [1.0]), "distances"),
        (lambda: exact_mvu([(k, k + 1) for k in range(600)], np.ones(600), 601), "at most"),
    ],
)
def test_rejects_other_problems(make, reason):
    assert reason in (refusal(Model.of(make())) or "")


def test_infeasible_lengths_do_not_converge():
    """A triangle with one side that is too long."""
    problem = exact_mvu([(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 9.0], 3)
    assert gm.minimize(problem, time_limit=5.0).status is not gm.Status.CONVERGED
