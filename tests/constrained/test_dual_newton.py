"""Newton's method on the dual: derivatives, theta numbers computed by Clarabel, valid bounds."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from benchmarks._sdp.graphs import hamming
from gramian.constrained import polish
from gramian.constrained.dual_newton import ScaledProgram, Subproblem
from gramian.constrained.model import Model
from gramian.maps import Entries
from gramian.objectives import Linear
from tests.constrained.programs import Instance, optimum
from tests.slow import slow


def random_graph(n, density, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return (upper + upper.T).astype(float)


def theta_by_clarabel(graph):
    """θ computed by Clarabel alone."""
    n = len(graph)
    edges = np.argwhere(np.triu(graph))
    A = np.zeros((len(edges) + 1, n, n))
    for k, (i, j) in enumerate(edges):
        A[k, i, j] = A[k, j, i] = 1.0
    A[-1] = np.eye(n)
    b = np.eye(1, len(A), len(edges)).ravel()
    given = Instance("theta", 0, -np.ones((n, n)), A, b, np.zeros((0, n, n)), np.zeros(0), None)
    word, best = optimum(given)
    assert word == "solved"
    return -best


@pytest.mark.parametrize("rows", ["few", "many"])
@pytest.mark.parametrize("above", [4, 16])
def test_the_derivative_is_that_of_the_gradient(rows, above):
    """By central differences, with few eigenvalues above 0 and with most; bounds on both sides."""
    n, rng = 20, np.random.default_rng(above)
    pairs = np.argwhere(np.triu(np.ones((n, n))))
    pairs = pairs[rng.permutation(len(pairs))[: 7 if rows == "few" else 90]]
    lower = np.where(rng.random(len(pairs)) < 0.5, 0.3, -5.0)
    bounds = gm.Constraint(Entries(pairs, n), lower, np.where(lower == 0.3, 0.3, 5.0))
    scaled = ScaledProgram(Model.of(gm.Problem(Linear(np.eye(n)), constraints=bounds)))
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    W = (Q * np.r_[np.linspace(0.5, 2, above), np.linspace(-2, -0.5, n - above)]) @ Q.T
    y, s, sigma = 0.1 * rng.standard_normal(len(pairs)), np.zeros(len(pairs)), 1.7
    M = W + sigma * (scaled.C - scaled.adjoint(y))
    centre = Subproblem(scaled, scaled.C, M, s, sigma)
    point = centre.at(y)
    assert point.below == n - above
    d, h = rng.standard_normal(y.size), 1e-6
    ahead, behind = centre.at(y + h * d), centre.at(y - h * d)
    assert (ahead.value - behind.value) / (2 * h) == pytest.approx(point.gradient @ d, rel=1e-6)
    bent = (ahead.gradient - behind.gradient) / (2 * h)
    product, _ = point.derivative()
    np.testing.assert_allclose(product(d), bent, atol=1e-6 * np.linalg.norm(bent))


@pytest.mark.parametrize(("n", "density"), [(24, 0.3), slow(24, 0.6)])
def test_theta_against_clarabel(n, density):
    pytest.importorskip("clarabel")
    graph = random_graph(n, density)
    best = theta_by_clarabel(graph)
    found = gm.minimize(gm.problems.lovasz_theta(graph), "dual-newton", tol=1e-6)
    assert found.status is gm.Status.CONVERGED
    assert -found.value == pytest.approx(best, rel=3e-6)
    assert found.certificate.lower_bound <= -best + 1e-7 * best
    assert found.certificate.violation <= 1e-6


def test_auto_uses_dual_newton_for_theta_of_a_hamming_graph():
    """Where all edges are alike θ = −nλ_min/(λ_max − λ_min) (Lovász 1979, theorem 9)."""
    graph, n = hamming(7), 128
    problem = gm.problems.lovasz_theta(graph)
    found = gm.minimize(problem, tol=1e-7)
    assert found.status is gm.Status.CONVERGED
    assert found.route[0] == "dual-newton"
    assert found.certificate.proved
    eigenvalues = np.linalg.eigvalsh(graph.toarray())
    ratio = -n * eigenvalues[0] / (eigenvalues[-1] - eigenvalues[0])
    assert -found.value == pytest.approx(ratio, rel=1e-6)
    slack = -np.ones((n, n)) - Model.of(problem).bounds.map.adjoint_matrix(found.dual)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-9


def test_polish_of_rows_of_different_size_needs_few_products(monkeypatch):
    """A diagonal matrix moved off its edges, more of them than are solved for directly."""
    n = 110
    model = Model.of(gm.problems.lovasz_theta(random_graph(n, 0.3)))
    assert model.bounds.size > polish.MAX_FALLBACK_ROWS
    monkeypatch.setattr(polish, "MAX_STEP_PRODUCTS", 20)
    L = np.diag(np.geomspace(1e-2, 1.0, n))
    L /= np.linalg.norm(L)
    moved = L + 1e-5 * np.random.default_rng(0).standard_normal(L.shape)
    back = polish.polished(model, moved, goal=1e-9)
    bounds = model.bounds
    assert bounds.violation(bounds.map.bilinear(moved, moved)) > 1e-6
    assert bounds.violation(bounds.map.bilinear(back, back)) <= 1e-9
    assert np.linalg.norm(back - moved) <= np.linalg.norm(moved - L)


def test_row_without_entries_is_ignored():
    A = [np.eye(3), np.zeros((3, 3))]
    problem = gm.problems.sdp(np.diag([1.0, 2.0, 3.0]), [sp.csr_array(a) for a in A], [1.0, 0.0])
    found = gm.minimize(problem, "dual-newton", tol=1e-6)
    assert found.value == pytest.approx(1.0, abs=1e-5)
