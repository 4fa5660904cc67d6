"""What the solvers of BiS, LRO and DML-eig promise beyond reaching the optimum."""

import numpy as np
import pytest

import gramian as gm
from gramian.losses import SoftMin, Squared
from gramian.maps import Entries, PairDistances
from gramian.methods.base import Settings
from gramian.objectives import Composite
from gramian.objectives.dense import gradient_dense, value_dense
from gramian.papers import biconvex
from gramian.papers.agd import agd
from tests.cases import BY_NAME, CASES, EDGES, N
from tests.slow import slow

CONE = [case for case in CASES if case.problem.domain.trace is None]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pair_of_factors_has_the_value_and_gradient_of_its_symmetric_product(case):
    objective = case.problem.objective
    rng = np.random.default_rng(0)
    X, Y, V = rng.standard_normal((3, objective.order, 2))
    M = 0.5 * (X @ Y.T + Y @ X.T)
    image = objective.pair_image(X, Y)
    gradient = gradient_dense(objective, M)
    assert objective.value(image) == pytest.approx(value_dense(objective, M), rel=1e-9)
    np.testing.assert_allclose(objective.gradient(image) @ V, gradient @ V, atol=1e-9)
    np.testing.assert_allclose(objective.gradient(image).dense(), gradient, atol=1e-9)
    np.testing.assert_allclose(biconvex.gradient(objective, X, Y), gradient @ Y, atol=1e-9)


@pytest.mark.parametrize("case", CONE, ids=str)
def test_a_step_of_the_local_lipschitz_constant_descends(case):
    objective = case.problem.objective
    X, Y = np.random.default_rng(1).standard_normal((2, objective.order, 2))
    slope = biconvex.gradient(objective, X, Y)
    L = biconvex.lipschitz(objective, X, Y, slope, 1.0)
    step = biconvex.value(objective, X - slope / L, Y)
    model = biconvex.value(objective, X, Y) - 0.5 * np.sum(slope**2) / L
    assert step <= model + 1e-9 * (1 + abs(model))
    if objective.facts.quadratic:
        assert step == pytest.approx(model, rel=1e-8)


@pytest.mark.parametrize("rule", [slow(1), 2])
@pytest.mark.parametrize("extrapolate", [True, slow(False)])
def test_bis_factors_converge_to_each_other(rule, extrapolate):
    case = BY_NAME["squared-distances"]
    result = gm.minimize(case.problem, "bis", tol=1e-9, rule=rule, extrapolate=extrapolate)
    difference = result.history["difference"]
    assert difference[-1] <= 1e-12 * difference.max()
    assert np.all(result.history["gamma"] >= 0)
    assert result.value == pytest.approx(case.optimum, rel=1e-7)
    if rule == 2:
        assert np.all(np.diff(result.history["gamma"]) >= 0)


def test_bis_rejects_an_unknown_rule():
    with pytest.raises(ValueError, match="rule must be 1"):
        gm.minimize(CONE[0].problem, "bis", rule=3)


def soft_min(mu: float, order: int = N) -> gm.Problem:
    return gm.Problem(Composite(PairDistances(EDGES, order), SoftMin(mu=mu)), gm.Spectrahedron(2.0))


@pytest.mark.parametrize("mu", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize(
    "options",
    [
        {"step": "hazan", "local": False},
        {"step": "exact", "local": False},
        {"step": "away", "local": False},
        {"step": "exact", "local": True},
        {"step": "hazan", "local": False, "smoothing": 1.0},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_frank_wolfe_gap_is_valid_at_every_iterate(mu, options):
    """The largest smallest distance over tr M = 2 is that of M = 2(I − 11ᵀ/n)/(n − 1)."""
    problem = soft_min(mu)
    H = np.eye(N) - 1 / N
    optimum = value_dense(problem.objective, 2 * H / (N - 1))
    result = gm.minimize(problem, "frank-wolfe", tol=0, max_iter=60, certify_every=1, **options)
    values, gaps = result.history["value"], result.history["gap"]
    assert np.all(np.isfinite(values)) and np.all(np.isfinite(gaps))
    assert np.all(values - optimum <= gaps + 1e-10)
    assert np.all(values >= optimum - 1e-10)
    assert np.trace(result.matrix()) == pytest.approx(2.0)


def test_exact_steps_and_local_search_reduce_the_gap():
    problem = soft_min(0.1)
    runs = {
        name: gm.minimize(problem, "frank-wolfe", tol=0, max_iter=40, **options).certificate.gap
        for name, options in {
            "hazan": {"step": "hazan", "local": False},
            "exact": {"step": "exact", "local": False},
            "local": {"step": "exact", "local": True},
        }.items()
    }
    assert runs["local"] < 1e-3 * runs["hazan"]
    assert runs["exact"] < runs["hazan"]


def test_frank_wolfe_needs_a_bound_on_the_trace():
    bounded = BY_NAME["squared-entries"]
    result = gm.minimize(bounded.problem, "frank-wolfe", tol=1e-7)
    assert result.value == pytest.approx(bounded.optimum, rel=1e-6)
    free = gm.Problem(Composite(Entries([[0, 0]], 3), Squared(1.0)))
    with pytest.raises(
        ValueError, match=r"nothing bounds the trace.*These can: auto, staircase, bilgo"
    ):
        gm.minimize(free, "frank-wolfe")


def test_frank_wolfe_rejects_an_unknown_step():
    with pytest.raises(ValueError, match="step must be one of"):
        gm.minimize(soft_min(0.1), "frank-wolfe", step="armijo")


def test_auto_keeps_the_trace_of_a_large_slice():
    rng = np.random.default_rng(0)
    pairs = np.array([rng.choice(120, 2, replace=False) for _ in range(400)])
    problem = gm.Problem(
        Composite(PairDistances(pairs, 120), SoftMin(mu=0.5)), gm.Spectrahedron(3.0)
    )
    result = gm.minimize(problem, tol=1e-4)
    assert result.status is gm.Status.CONVERGED
    assert np.sum(result.factor**2) == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["gd", "lro", "agd"])
def test_descent_on_the_factor_keeps_the_requested_rank(name):
    result = gm.minimize(BY_NAME["kta-trace"].problem, name, rank=2, max_iter=30)
    assert result.rank == 2
    values = result.history["value"]
    assert values[-1] < values[0]


def test_agd_extrapolates_by_nesterovs_weights():
    """L⁺ = P − ∂F/∂P/η at P = L + ((t − 1)/t⁺)(L − L⁻), t⁺ = ½(1 + √(1 + 4t²)), BiS §IV."""
    problem = gm.problems.quadratic(np.diag(np.geomspace(0.1, 1.0, 8)), None, -np.eye(8))
    objective = problem.objective
    L = before = np.random.default_rng(0).standard_normal((8, 2))
    run = agd(problem, L, Settings(None, 0.0, np.random.default_rng(0)), check=1000)
    value, t, weight = next(run).value, 1.0, 0.0
    for _ in range(10):
        P = L + weight * (L - before)
        step = next(run)
        assert step.value < value  # otherwise the momentum is reset
        moved = P - step.trace["step"] * objective.gradient_factor(objective.image(P))
        np.testing.assert_allclose(step.factor, moved, rtol=1e-12, atol=1e-14)
        before, L, value = L, step.factor, step.value
        t, last = 0.5 * (1 + np.sqrt(1 + 4 * t * t)), t
        weight = (last - 1) / t
    assert weight > 0.7
