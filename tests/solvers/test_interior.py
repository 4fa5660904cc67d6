"""The central path of the dual: true bounds at every point, and optima to many digits."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gramian as gm
from gramian import problems
from gramian.checks import check_adjoint
from gramian.manifold import MVU
from gramian.methods.barrier import Barrier
from gramian.objectives.dense import value_dense
from gramian.reductions.graph_whitening import graph_whitening
from gramian.reductions.squared_forms import squared_forms
from tests.slow import slow
from tests.solvers.test_whitened import colored, roll


def unfolding(n=60, nu=0.3, target=None, **kwargs):
    edges, D, _ = roll(n, **kwargs)
    return problems.mvu(edges, D, n, nu, None if target is None else target(n))


def never():
    return False


@pytest.mark.parametrize("target", [None, colored], ids=["plain", "colored"])
def test_the_forms_are_the_objective(target):
    """F and its dual vectors by u_e, t_e, b_e and C, beside those of the objective."""
    whitening = graph_whitening(unfolding(40, target=target))
    even = whitening.problem.objective
    check_adjoint(even.map)
    forms = squared_forms(even)
    Y = np.random.default_rng(0).standard_normal((even.order, 3))
    L = whitening.factor(Y)[1:]
    M, U = L @ L.T, forms.U.toarray()
    z = np.einsum("ek,kl,el->e", U, M, U)
    value = 0.5 * np.sum((z - forms.targets) ** 2 / forms.softness) + np.sum(forms.C * M)
    assert value + even.constant == pytest.approx(even.value(even.image(Y)))
    w = (z - forms.targets) / forms.softness
    np.testing.assert_allclose(w, even.dual(even.image(Y)), atol=1e-9)
    assert np.linalg.eigvalsh(U.T @ (forms.unit[:, None] * U))[0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_every_point_of_the_path_bounds_the_optimum(seed):
    problem = unfolding(50, seed=seed)
    even = graph_whitening(problem).problem
    best = gm.minimize(problem, "staircase", tol=1e-7)
    barrier = Barrier(squared_forms(even.objective), np.zeros(even.objective.facts.terms))
    for mu in (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        M = barrier.centre(mu, never)
        bound = barrier.bound + even.objective.constant
        assert bound <= best.value + 1e-9 * abs(best.value)
        value = value_dense(problem.objective, np.pad(M, ((1, 0), (1, 0))))
        assert value >= best.certificate.lower_bound
        assert np.linalg.eigvalsh(M)[0] >= -1e-12 * np.trace(M)
    assert best.value - bound <= 3 * 1e-6 * even.order + best.certificate.gap


@pytest.mark.parametrize("target", [None, colored], ids=["plain", "colored"])
@pytest.mark.parametrize("nu", [slow(0.02), 1.0])
def test_it_reaches_the_optimum_of_another_method(nu, target):
    problem = unfolding(60, nu, target, k=4)
    result = gm.minimize(problem, "interior", tol=1e-8)
    assert result.status is gm.Status.CONVERGED and result.route == ("interior",)
    other = gm.minimize(problem, "staircase", tol=1e-7)
    assert result.value <= other.value + 1e-8 * abs(other.value)
    assert result.certificate.lower_bound <= other.value
    told = gm.certify(problem, result.factor)
    assert told.lower_bound <= other.value


@pytest.mark.slow
def test_equal_rows_and_short_edges_are_no_trouble():
    model = MVU(tol=1e-5).fit(load_iris().data)
    assert model.result_.route == ("interior",)
    assert model.certificate_.relative_gap <= 1e-5


def test_continues_from_a_start():
    problem = unfolding(60)
    first = gm.minimize(problem, "interior", tol=1e-4)
    again = gm.minimize(problem, "interior", tol=1e-6, init=first.factor)
    assert again.certificate.relative_gap <= 1e-6


def test_rejects_unsupported_problems_with_the_reason():
    edges, D, _ = roll(1200)
    for problem, reason in (
        (problems.mvu(edges, D, 1200, 0.1), "about 2,500 at most"),
        (problems.top_eigen(np.eye(30)), "distances along the edges"),
    ):
        with pytest.raises(ValueError, match=reason):
            gm.minimize(problem, "interior")


def test_respects_time_limit():
    result = gm.minimize(unfolding(300), "interior", tol=1e-12, time_limit=0.05)
    assert result.status is gm.Status.TIME_LIMIT
    assert np.isfinite(result.certificate.gap)


def test_a_gap_below_rounding_ends_the_path():
    """It hands over where digits end, with a gap that is still a true one."""
    result = gm.minimize(unfolding(40), "interior", tol=1e-16, max_iter=40)
    assert result.iterations <= 40 and result.route[0] == "interior"
    assert len(result.route) > 1
    assert 0 <= result.certificate.relative_gap <= 1e-7
