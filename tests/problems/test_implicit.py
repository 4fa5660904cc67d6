"""Squares of all entries without a sum over them, compared with the explicit sum."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient, check_hessian
from gramian.linalg.svec import svec
from gramian.objectives import BlockSquares
from gramian.objectives.dense import gradient_dense, value_dense
from gramian.objectives.halves import halves_of
from gramian.problems.completion import trace_weighted

M, N, LAM, UNKNOWN = 14, 11, 1.2, 0.7
RNG = np.random.default_rng(0)
KNOWN = RNG.random((M, N)) < 0.3
ROWS, COLS = np.nonzero(KNOWN)
CONFIDENCE = UNKNOWN + RNG.uniform(0.5, 8.0, ROWS.size)
A, B = RNG.uniform(0.5, 2.0, M), RNG.uniform(0.5, 2.0, N)
SCALES = {"row_scale": A, "col_scale": B}


def implicit(lam=LAM):
    return problems.implicit_completion(
        ROWS, COLS, CONFIDENCE, (M, N), lam, unknown=UNKNOWN, **SCALES
    )


def written_out(lam=LAM):
    rows, cols = np.indices((M, N)).reshape(2, -1)
    weights = np.full((M, N), UNKNOWN)
    weights[ROWS, COLS] = CONFIDENCE
    return problems.nuclear_completion(
        rows, cols, KNOWN.astype(float).ravel(), (M, N), lam, weights=weights.ravel(), **SCALES
    )


def test_values_and_gradients_agree_with_explicit_sum():
    one, two = implicit(), written_out()
    L, V = RNG.normal(size=(M + N, 4)), RNG.normal(size=(M + N, 3))
    assert one.value(L) == pytest.approx(two.value(L))
    G, H = (p.objective.gradient(p.objective.image(L)) for p in (one, two))
    np.testing.assert_allclose(G @ V, H @ V, atol=1e-9)
    np.testing.assert_allclose(G @ V[:, 0], H @ V[:, 0], atol=1e-9)
    np.testing.assert_allclose(G.dense(), H.dense(), atol=1e-9)
    check_gradient(one.objective)
    check_hessian(one.objective)
    S = L @ L.T
    assert value_dense(one.objective, S) == pytest.approx(one.value(L))
    np.testing.assert_allclose(gradient_dense(one.objective, S), G.dense(), atol=1e-9)


def test_restrictions_agree_with_values():
    squares = BlockSquares(0.7, A, B)
    L, D = RNG.normal(size=(2, M + N, 3))
    image, other = squares.image(L), squares.image(D)
    both = squares.blend(image, other)
    expected = value_dense(squares, 2.0 * L @ L.T + 0.5 * D @ D.T)
    assert both.restriction.value(np.array([2.0, 0.5])) == pytest.approx(expected)
    assert squares.value(both.take(2.0, 0.5)) == pytest.approx(expected)
    line, mu = squares.line(image, D), 0.3
    expected = squares.value(squares.image(L + mu * D))
    assert line.restriction.value(np.array([1.0, 2 * mu, mu * mu])) == pytest.approx(expected)
    assert squares.value(line.take(mu)) == pytest.approx(expected)
    C = RNG.normal(size=(3, 3))
    inside = squares.subspace(L).value(svec(C @ C.T))
    assert inside == pytest.approx(value_dense(squares, L @ C @ C.T @ L.T))
    pair = squares.pair_image(L, D)
    assert squares.value(pair) == pytest.approx(value_dense(squares, 0.5 * (L @ D.T + D @ L.T)))


@pytest.mark.parametrize("solver", ["auto", "staircase", "alternating", "lbfgs"])
def test_optimum_agrees_with_explicit_sum(solver):
    options = {"rank": 10} if solver == "lbfgs" else {}
    expected = gm.minimize(written_out(), "staircase", tol=1e-9)
    found = gm.minimize(implicit(), solver, tol=1e-7, **options)
    assert found.value == pytest.approx(expected.value, rel=1e-6)
    assert found.certificate.relative_gap <= 1e-6
    assert found.certificate.lower_bound <= expected.value * (1 + 1e-9)


def test_bounds_are_valid():
    problem, best = implicit(), gm.minimize(written_out(), tol=1e-9).value
    for seed in range(20):
        L = np.random.default_rng(seed).normal(size=(M + N, 5)) * 0.3
        assert gm.certify(problem, L).lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sweeps_decrease_the_value(dtype):
    problem = implicit()
    halves = halves_of(problem.objective, dtype)
    L = RNG.normal(size=(M + N, 4))
    state = halves.state(L)
    np.testing.assert_allclose(halves.factor(state), L, rtol=1e-5)
    last = problem.value(L)
    assert halves.refit_upper(state, 0) == pytest.approx(last, rel=1e-5)
    for _ in range(4):
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
        value = problem.value(halves.factor(state))
        assert value <= last * (1 + 1e-6)
        last = value


def test_trace_weighted_agrees_with_new_problem():
    L = RNG.normal(size=(M + N, 3))
    assert trace_weighted(implicit(), 0.4).value(L) == pytest.approx(implicit(0.4).value(L))


def test_rejects_confidence_below_unknown():
    with pytest.raises(ValueError, match="is not above that of all others, 5"):
        problems.implicit_completion([0], [0], [3.0], (2, 2), 1.0, unknown=5.0)
