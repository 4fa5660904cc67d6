"""Theta numbers with a border: detection, conversion in both directions, optima and bounds."""

import numpy as np
import pytest

import gramian as gm
from gramian.constrained.model import Model
from tests.constrained.programs import Instance, optimum


def random_graph(n, density, seed=0):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return (upper + upper.T).astype(float)


def outer(*ends):
    """vvᵀ of the sum v of unit vectors."""
    v = np.sum(ends, axis=0)
    return np.outer(v, v)


def by_zero_and_one(graph, w):
    """X_00 = 1, X_ii = X_0i, X_ij = 0 on edges; the corner is the last row."""
    n, e = len(graph), np.eye(len(graph) + 1)
    A, b = [outer(e[n])], [1.0]
    for i in range(n):
        A.append(2 * outer(e[i]) - np.outer(e[i], e[n]) - np.outer(e[n], e[i]))
        b.append(0.0)
    for i, j in np.argwhere(np.triu(graph)):
        A.append(np.outer(e[i], e[j]) + np.outer(e[j], e[i]))
        b.append(0.0)
    return np.diag(np.append(-w, 0.0)), np.array(A), np.array(b)


def by_signs(graph, w):
    """M_ii = 1, and (e_i + e_j + e_0)ᵀM(e_i + e_j + e_0) = 1 on edges."""
    n, e = len(graph), np.eye(len(graph) + 1)
    A = [outer(row) for row in e]
    A += [outer(e[i], e[j], e[n]) for i, j in np.argwhere(np.triu(graph))]
    C = -0.5 * np.diag(np.append(w, 0.0))
    C[n, :n] = C[:n, n] = -0.25 * w
    return C, np.array(A), np.ones(len(A))


def combined(graph, w):
    """The first by rows that are mixed with each other, and a corner in the middle."""
    C, A, b = by_zero_and_one(graph, w)
    rng = np.random.default_rng(0)
    mix = np.eye(len(b)) + np.triu(rng.random((len(b),) * 2) < 0.02, 1)
    order = np.roll(np.arange(len(C)), 2)
    A = np.einsum("kl,lij->kij", mix, A)[:, order][:, :, order]
    return C[order][:, order], A, mix @ b


FORMS = [by_zero_and_one, by_signs, combined]


@pytest.mark.parametrize("form", FORMS)
def test_feasible_points_stay_feasible_in_both_directions(form):
    """A feasible Y leads to a feasible M of no less a value, a dual point to one of its value."""
    graph, w = random_graph(9, 0.3, seed=1), np.linspace(1.0, 2.0, 9)
    C, A, b = form(graph, w)
    problem = gm.problems.sdp(C, list(A), b)
    found = Model.of(problem).bordered
    V = np.diag(np.sqrt(w / w.sum()))  # tr = 1, and no two rows have a product
    L = found.factor(V)
    assert problem.bounds.violation(problem.bounds.map.bilinear(L, L)) < 1e-14
    assert problem.value(L) <= found.problem.value(V) + 1e-12
    inner, back = Model.of(found.problem), found.coordinates_of(L)
    assert inner.bounds.violation(inner.bounds.map.bilinear(back, back)) < 1e-14
    assert found.problem.value(back) <= problem.value(L) + 1e-12
    y = np.random.default_rng(0).standard_normal(inner.bounds.size)
    y[0] = -50.0
    assert np.linalg.eigvalsh(inner.slack(None, y).dense())[0] > 0
    led = found.multipliers(y)
    assert np.linalg.eigvalsh(C - np.einsum("k,kij->ij", led, A))[0] > 0
    assert led @ b == pytest.approx(-50.0)
    np.testing.assert_allclose(found.multipliers_of(led), y, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS)
def test_theta_with_a_border_against_clarabel(form, seed):
    graph = random_graph(16, 0.15 + 0.15 * seed, seed)
    C, A, b = form(graph, np.random.default_rng(seed).uniform(0.5, 2.0, 16))
    n = len(C)
    word, best = optimum(Instance("t", 0, C, A, b, np.zeros((0, n, n)), np.zeros(0), None))
    assert word == "solved"
    result = gm.minimize(gm.problems.sdp(C, list(A), b), "theta-form", tol=1e-6, time_limit=60)
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.violation <= 1e-6
    assert result.value == pytest.approx(best, rel=1e-5)
    assert result.certificate.lower_bound <= best + 1e-6 * abs(best)


def test_auto_uses_the_form_with_a_trace():
    graph = random_graph(70, 0.1)
    C, A, b = by_signs(graph, np.ones(70))
    result = gm.minimize(gm.problems.sdp(C, list(A), b), tol=1e-5, time_limit=100)
    assert result.route == ("theta-form",)
    plain = gm.minimize(gm.problems.lovasz_theta(graph), tol=1e-5, time_limit=100)
    assert result.value == pytest.approx(plain.value, rel=3e-5)


def test_rejects_other_problems():
    graph, w = random_graph(9, 0.3, seed=1), np.ones(9)
    C, A, b = by_signs(graph, w)
    for off in (b + np.eye(1, len(b), 3).ravel(), np.append(b[:-1], 0.5)):
        assert Model.of(gm.problems.sdp(C, list(A), off)).bordered is None
    assert Model.of(gm.problems.sdp(-C, list(A), b)).bordered is None
    assert Model.of(gm.problems.lovasz_theta(graph)).bordered is None
    assert Model.of(gm.problems.maxcut(graph)).bordered is None  # C has entries on other edges
    with pytest.raises(ValueError, match="theta numbers with a border"):
        gm.minimize(gm.problems.lovasz_theta(graph), "theta-form")
