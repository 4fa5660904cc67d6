"""The central path: small problems of every loss, whatever their units and conditioning."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.checks import check_curvature, check_gradient
from gramian.common import clock
from gramian.losses import SmoothedHinge
from gramian.methods.central_path import _Newton
from gramian.objectives.operators import coordinates_of, seen_coordinates
from gramian.proofs import lowest


def data(seed=0, n=24, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.arange(n) % 3


def triplets_of(y, rng, count):
    rows = np.argsort(rng.random((50 * count, len(y))), axis=1)[:, :3]
    i, j, l = rows.T
    return rows[(y[i] == y[j]) & (y[i] != y[l])][:count]


def signs(seed=0, shape=(9, 7)):
    rng = np.random.default_rng(seed)
    cells = rng.choice(shape[0] * shape[1], 40, replace=False)
    return *np.divmod(cells, shape[1]), rng.choice([-1.0, 1.0], 40), shape


def small_problems():
    X, y = data()
    yield "lmnn", problems.lmnn(X, y, 2, 1.0)
    table = triplets_of(y, np.random.default_rng(1), 60)
    yield "triplets", problems.triplets(X, table, 1.0, 1e-3)
    yield "mmmf", problems.mmmf(*signs(), 0.3, mu=1e-2)
    edges = np.array([(i, j) for i in range(12) for j in (i + 1, i + 2) if j < 12])
    D = np.random.default_rng(2).random(len(edges))
    yield "mvu", problems.mvu(edges, D, 12, 0.1)


SMALL = dict(small_problems())


@pytest.mark.parametrize("name", SMALL)
def test_agrees_with_the_staircase(name):
    path = gm.minimize(SMALL[name], "central-path", tol=1e-8)
    climb = gm.minimize(SMALL[name], "staircase", tol=1e-6)
    assert path.status is gm.Status.CONVERGED and path.certificate.proved
    assert path.certificate.relative_gap <= 1e-8
    assert path.value <= climb.value + 1e-6 * abs(climb.value)
    assert climb.value >= path.certificate.lower_bound - 1e-12 * abs(path.value)


@pytest.mark.parametrize("name", SMALL)
def test_the_dual_vector_of_the_result_proves_its_bound(name):
    result = gm.minimize(SMALL[name], "central-path")
    again = gm.certify(SMALL[name], result.factor, dual=result.dual)
    assert again.relative_gap <= 2e-6


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kind", ["plain", "rank-deficient", "mixed scales", "far"])
def test_lmnn_ends_whatever_the_units_of_its_data(kind, scale):
    X, y = data(3, n=20, d=8)
    if kind == "rank-deficient":
        X = X[:, :3] @ np.random.default_rng(4).normal(size=(3, 8))
    if kind == "mixed scales":
        X = X * 10.0 ** np.linspace(-3, 3, 8)
    if kind == "far":
        X = X + 1e3
    result = gm.minimize(problems.lmnn(X * scale, y, 1, 1.0), time_limit=60)
    assert result.status is gm.Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-6 and result.certificate.proved


def test_line_search_obeys_the_time_limit():
    problem = dict(small_problems())["lmnn"]
    point = _Newton(problem.objective, np.eye(problem.order), 1.0)
    assert np.all(np.isfinite(point.moved()[0]))
    with clock.until(clock.now()), pytest.raises(clock.TimeUpError):
        point.moved()


@pytest.mark.parametrize("mu", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("margin", [1.0, 1e3])
def test_mmmf_ends_for_sharp_hinges(mu, margin):
    problem = problems.mmmf(*signs(5), 0.2, mu=mu, margin=margin)
    result = gm.minimize(problem, "central-path")
    assert result.status is gm.Status.CONVERGED and result.certificate.proved


def test_rejects_unsupported_problem():
    with pytest.raises(ValueError, match="cannot solve 'top_eigen': it needs a loss of a linear"):
        gm.minimize(problems.top_eigen(np.eye(3)), "central-path")
    with pytest.raises(ValueError, match="rank"):
        gm.minimize(SMALL["mvu"], "central-path", rank=2)
    many = np.argsort(np.random.default_rng(0).random((400_000, 6)), axis=1)[:, :3]
    crowd = problems.triplets(np.random.default_rng(1).normal(size=(6, 12)), many, 1.0, 0.1)
    with pytest.raises(ValueError, match="too many terms"):
        gm.minimize(crowd, "central-path")
    blind = problems.lmnn(np.ones((6, 2)), np.arange(6) % 2, 1, 1.0)
    with pytest.raises(ValueError, match="depends on some of M"):
        gm.minimize(blind, "central-path")
    assert gm.minimize(blind).status is gm.Status.CONVERGED


def test_a_time_limit_keeps_the_best_point():
    result = gm.minimize(SMALL["lmnn"], "central-path", tol=1e-13, time_limit=0.02)
    assert np.isfinite(result.value) and result.value <= SMALL["lmnn"].scale


# --- its parts -------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [10.0, 0.1, 1e-4])
def test_derivatives_of_the_softened_hinge(mu):
    loss = SmoothedHinge(np.linspace(-1, 1, 20), mu=0.3, weight=np.linspace(0.5, 2, 20))
    soft = loss.softened(mu, 20)
    z = np.random.default_rng(0).normal(size=20)
    check_gradient(soft, z)
    check_curvature(soft, z)
    step = 1e-5
    ahead, behind = (loss.softened(mu * (1 + s), 20).gradient(z) for s in (step, -step))
    np.testing.assert_allclose(soft.drift(z), (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-9)


def test_softened_hinge_converges_to_the_hinge_with_feasible_dual():
    loss = SmoothedHinge(1.0, mu=0.1)
    z = np.array([-1e6, -3.0, 0.95, 0.999, 1.0, 1.001, 1e3, 1e9])
    for mu in (1e2, 1e-3, 1e-12):
        assert np.isfinite(loss.conjugate(loss.softened(mu, z.size).gradient(z)))
    soft = loss.softened(1e-12, z.size)
    np.testing.assert_allclose(soft.gradient(z), loss.gradient(z), atol=1e-5)
    assert soft.value(z) == pytest.approx(loss.value(z), rel=1e-9)


def test_coordinates_omit_only_the_null_space():
    X, y = data(6, n=15, d=7)
    X[:, 3] = X[:, 0] + X[:, 1]  # one direction less
    X = X * 10.0 ** np.linspace(-4, 4, 7)
    problem = problems.lmnn(X, y, 1, 1.0)
    T = coordinates_of(problem.objective)
    assert T.shape == (7, 6)
    edges = np.array([(0, 1), (1, 2), (3, 4)])
    objective = problems.mvu(edges, np.ones(3), 5, 1.0).objective
    blind = seen_coordinates(objective.map, np.zeros((5, 5)))
    assert blind.shape == (5, 3)  # two parts, each blind to its own shift


def test_definiteness_is_proved_in_units_of_the_data_and_only_where_it_holds():
    X, y = data(7, n=20, d=5)
    X = X * 10.0 ** np.linspace(-5, 5, 5)
    problem = problems.lmnn(X, y, 1, 1.0)
    result = gm.minimize(problem, "central-path")
    assert lowest(problem.objective.dual_operator(result.dual), rescale=True).value >= 0
    worse = lowest(problem.objective.dual_operator(1.01 * result.dual), rescale=True)
    G = problem.objective.dual_operator(1.01 * result.dual).dense()
    scaled = G * np.outer(*[1 / np.sqrt(np.abs(np.diagonal(G)))] * 2)
    assert (worse.value >= 0) == bool(np.linalg.eigvalsh(scaled)[0] > 0)
