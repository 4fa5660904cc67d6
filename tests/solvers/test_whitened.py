"""Unfolding in coordinates where the graph's Laplacian is the identity."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import kneighbors_graph

import gramian as gm
from gramian import problems
from gramian.maps import pairs
from gramian.objectives import LowRankPlusIdentity
from gramian.objectives.landmarks import from_landmarks
from gramian.objectives.pencil import whitening
from gramian.problem import Problem


def roll(n, k=6, seed=0):
    """The edges of a neighbour graph of the Swiss roll, joined by a tree, and their squares."""
    X, t = make_swiss_roll(n, random_state=seed)
    tree = minimum_spanning_tree(squareform(pdist(X)))
    near = (kneighbors_graph(X, k) + tree).tocoo()
    edges = np.unique(np.sort(np.column_stack([near.row, near.col]), axis=1), axis=0)
    D = np.sum((X[edges[:, 0]] - X[edges[:, 1]]) ** 2, axis=1)
    return edges, D / D.mean(), t


def colored(n):
    labels = np.eye(3)[np.arange(n) % 3]
    return LowRankPlusIdentity(n, 0.0, labels)


@pytest.mark.parametrize("target", [None, colored], ids=["plain", "colored"])
def test_whitened_coordinates_change_no_value_and_no_gradient(target):
    edges, D, _ = roll(80)
    problem = problems.mvu(edges, D, 80, 0.1, None if target is None else target(80))
    white = whitening(problem.objective)
    rng = np.random.default_rng(0)
    Y, direction = rng.standard_normal((2, 79, 3))
    L = white.factor(Y)
    assert Problem(white.objective).value(Y) == pytest.approx(problem.value(L))
    np.testing.assert_allclose(white.factor(white.coordinates(L + 5.0)), L, atol=1e-9)
    inner = white.objective.gradient_factor(white.objective.image(Y))
    outer = problem.objective.gradient_factor(problem.objective.image(L))
    assert np.sum(inner * direction) == pytest.approx(np.sum(outer * white.factor(direction)))


@pytest.mark.parametrize("nu", [0.2, 1.0])
def test_it_reaches_the_optimum_of_another_method(nu):
    edges, D, _ = roll(60, k=4)
    problem = problems.mvu(edges, D, 60, nu)
    result = gm.minimize(problem, "whitened", tol=1e-7, random_state=0)
    assert result.certificate.relative_gap <= 1e-7
    other = gm.minimize(problem, "staircase", tol=1e-7)
    assert result.value == pytest.approx(other.value, rel=3e-7)


def test_auto_certifies_the_unfolding_of_many_points():
    edges, D, t = roll(400)
    result = gm.minimize(problems.mvu(edges, D, 400, 0.03), tol=1e-3)
    assert result.certificate.relative_gap <= 1e-3
    centred = result.factor - result.factor.mean(axis=0)
    first = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    assert abs(np.corrcoef(first, t)[0, 1]) > 0.9


def test_the_bound_of_any_factor_holds_at_many_points():
    """`certify` takes the whitened bound, also for a factor that no solver has made."""
    edges, D, _ = roll(520)
    problem = problems.mvu(edges, D, 520, 0.05)
    best = gm.minimize(problem, tol=1e-5)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        L = best.factor + size * rng.standard_normal(best.factor.shape)
        certificate = gm.certify(problem, L)
        assert certificate.lower_bound <= best.value
        assert certificate.gap >= problem.value(L) - best.value


def test_landmarks_place_a_chain_on_a_line():
    n = 60
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    lengths = np.random.default_rng(0).uniform(1, 2, n - 1)
    white = whitening(problems.mvu(edges, lengths**2, n, 0.1).objective)
    L, spread = from_landmarks(white.objective, 12)
    places = np.append(0.0, np.cumsum(lengths))
    np.testing.assert_allclose(np.abs(L[:, 0] - L[0, 0]), places, rtol=1e-9)
    assert abs(spread) < 1e-9


def test_equal_runs_of_a_problem_have_equal_bits(monkeypatch):
    monkeypatch.setattr(pairs, "MAX_PLAIN_NUMBERS", 1_000_000)  # both kinds of code in a run
    edges, D, _ = roll(150)
    problem = problems.mvu(edges, D, 150, 0.3)
    first, second = (gm.minimize(problem, "whitened", tol=1e-4) for _ in range(2))
    np.testing.assert_array_equal(first.factor, second.factor)


@pytest.mark.slow
def test_an_unfolding_of_moderate_size_needs_no_compiler():
    code = (
        "import sys, gramian as gm\n"
        "from tests.solvers.test_whitened import roll\n"
        "edges, D, _ = roll(500, k=12)\n"
        "result = gm.minimize(gm.problems.mvu(edges, D, 500, 0.03), tol=1e-3)\n"
        "assert result.certificate.relative_gap <= 1e-3\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_warm_start_needs_no_more_iterations():
    edges, D, _ = roll(150)
    problem = problems.mvu(edges, D, 150, 0.3)
    first = gm.minimize(problem, "whitened", tol=1e-4)
    again = gm.minimize(problem, "whitened", tol=1e-4, init=first.factor)
    assert again.value == pytest.approx(first.value, rel=2e-4)
    assert again.iterations <= first.iterations


def test_rejects_problems_without_whitened_coordinates():
    edges, D, _ = roll(80)
    apart = np.vstack([edges, edges + 80])
    cases = [
        problems.mvu(apart, np.tile(D, 2), 160, 0.1),
        problems.top_eigen(np.eye(80)),
    ]
    for problem in cases:
        with pytest.raises(ValueError, match="connected graph"):
            gm.minimize(problem, "whitened")


@pytest.mark.slow
def test_whitens_by_a_subset_of_edges_to_avoid_fill_in(monkeypatch):
    edges, D, _ = roll(300)
    plain = problems.mvu(edges, D, 300, 0.1)
    best = gm.minimize(plain, "whitened", tol=1e-6, random_state=0)
    monkeypatch.setattr("gramian.maps.whitened.MAX_WHOLE_POINTS", 10)
    monkeypatch.setattr("gramian.maps.whitened.MAX_TRIAL_ENTRIES", 1000)
    problem = problems.mvu(edges, D, 300, 0.1)
    inner = whitening(problem.objective).objective
    kept = inner.map.identity_weights()
    assert 299 < kept.sum() < len(edges)
    np.testing.assert_allclose(inner.map.adjoint_matrix(kept), np.eye(299), atol=1e-9)
    result = gm.minimize(problem, "whitened", tol=1e-4, random_state=0)
    assert result.certificate.relative_gap <= 1e-4
    assert result.value == pytest.approx(best.value, rel=2e-4)
    monkeypatch.setattr("gramian.objectives.pencil.PENCIL_ORDER", 10)
    for factor in (result.factor, np.random.default_rng(0).standard_normal((300, 3))):
        assert gm.certify(problem, factor).lower_bound <= best.value


@pytest.mark.parametrize("target", [None, colored], ids=["plain", "colored"])
def test_products_of_the_gradient_with_a_vector_are_those_of_the_matrix(target):
    edges, D, _ = roll(60)
    problem = problems.mvu(edges, D, 60, 0.1, None if target is None else target(60))
    inner = whitening(problem.objective).objective
    rng = np.random.default_rng(0)
    gradient = inner.gradient(inner.image(rng.standard_normal((59, 3))))
    for v in rng.standard_normal((2, 59)):
        np.testing.assert_allclose(gradient @ v, gradient.dense() @ v, atol=1e-9)
