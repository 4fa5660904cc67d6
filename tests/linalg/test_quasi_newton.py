"""L-BFGS compared with the BFGS recursion and with SciPy's."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from gramian.linalg.quasi_newton import Pairs, Point, quasi_newton, wolfe


def rosenbrock(x):
    return Point(x, scipy.optimize.rosen(x), scipy.optimize.rosen_der(x))


def parabola(A, b):
    def evaluate(x):
        return Point(x, float(0.5 * x @ A @ x - b @ x), A @ x - b)

    return evaluate


def definite(rng, n, spread=100.0):
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (Q * np.geomspace(1.0, spread, n)) @ Q.T


@pytest.mark.parametrize(("memory", "pairs"), [(5, 3), (5, 5), (4, 11), (1, 6)])
def test_the_product_is_that_of_the_bfgs_recursion(memory, pairs):
    """H ← (I − ρsyᵀ)H(I − ρysᵀ) + ρssᵀ over the last pairs, from γI."""
    rng, n = np.random.default_rng(pairs), 9
    A = definite(rng, n)
    kept = Pairs(np.zeros(n), memory)
    x = rng.standard_normal(n)
    old = Point(x, 0.0, A @ x)
    seen = []
    for _ in range(pairs):
        x = old.x + rng.standard_normal(n)
        new = Point(x, 0.0, A @ x)
        kept.add(old, new)
        seen.append((new.x - old.x, new.gradient - old.gradient))
        old = new
    s, y = seen[-1]
    H = (s @ y) / (y @ y) * np.eye(n)
    for s, y in seen[-memory:]:
        E = np.eye(n) - np.outer(s, y) / (s @ y)
        H = E @ H @ E.T + np.outer(s, s) / (s @ y)
    assert kept.times(old.gradient) == pytest.approx(H @ old.gradient, rel=1e-9)


def test_without_pairs_the_product_equals_the_gradient():
    g = np.arange(3.0)
    assert np.array_equal(Pairs(np.zeros(3), 2).times(g), g)


def test_flat_pair_is_omitted():
    pairs, rng = Pairs(np.zeros(4), 3), np.random.default_rng(0)
    A, x = np.diag([1.0, 2.0, 3.0, 4.0]), rng.standard_normal(4)
    first = Point(x, 0.0, A @ x)
    second = Point(x + 1, 0.0, A @ (x + 1))
    pairs.add(first, second)
    before = pairs.times(second.gradient)
    pairs.add(second, Point(x + 2, 0.0, second.gradient))  # the gradient did not change
    assert pairs.taken == 1
    assert pairs.times(second.gradient) == pytest.approx(before)


@pytest.mark.parametrize("n", [2, 10, 50])
def test_rosenbrock_is_solved_in_about_the_steps_of_scipy(n):
    start = np.tile([-1.2, 1.0], n // 2)
    count = 0

    def evaluate(x):
        nonlocal count
        count += 1
        return rosenbrock(x)

    found = quasi_newton(evaluate, start, iterations=1000, memory=10, tol=1e-10)
    peer = scipy.optimize.minimize(
        scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method="L-BFGS-B"
    )
    assert found.x == pytest.approx(np.ones(n), abs=1e-6)
    assert count <= 2 * peer.nfev


@given(st.integers(0, 10**6), st.integers(2, 12))
@settings(max_examples=40)
def test_values_decrease_to_the_minimum(seed, n):
    rng = np.random.default_rng(seed)
    A, b = definite(rng, n), rng.standard_normal(n)
    values = []

    def after(point):
        values.append(point.value)
        return False

    start = rng.standard_normal(n)
    found = quasi_newton(parabola(A, b), start, iterations=300, memory=n, tol=1e-10, after=after)
    size = abs(found.value) + 1.0
    assert np.all(np.diff(values) <= 1e-13 * size)
    assert found.x == pytest.approx(np.linalg.solve(A, b), abs=1e-7)


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_invariant_to_rotation(seed):
    rng, n = np.random.default_rng(seed), 6
    Q = ortho_group.rvs(n, random_state=seed % 2**31)
    A, b, start = definite(rng, n, 10.0), rng.standard_normal(n), rng.standard_normal(n)
    plain = quasi_newton(parabola(A, b), start, iterations=8, memory=4)
    turned = quasi_newton(parabola(Q @ A @ Q.T, Q @ b), Q @ start, iterations=8, memory=4)
    assert turned.value == pytest.approx(plain.value, rel=1e-6, abs=1e-9)


def test_float32_stays_float32():
    A, b = definite(np.random.default_rng(0), 8, 10.0).astype(np.float32), np.ones(8, np.float32)
    found = quasi_newton(parabola(A, b), np.zeros(8, np.float32), iterations=60, memory=5)
    assert found.x.dtype == np.float32
    assert found.x == pytest.approx(np.linalg.solve(A, b), abs=1e-4)


def test_stops_at_rounding_level():
    steps = 0

    def after(point):
        nonlocal steps
        steps += 1
        return False

    A = definite(np.random.default_rng(1), 10)
    quasi_newton(parabola(A, np.ones(10)), np.zeros(10), iterations=10**5, memory=5, after=after)
    assert steps < 500


def test_after_ends_the_descent():
    found = quasi_newton(
        rosenbrock, np.zeros(4), iterations=100, memory=3, after=lambda point: point.value < 1.0
    )
    assert 0.1 < found.value < 1.0


def test_backtracks_from_infinite_values():
    """F is infinite beyond 1: the first trials are outside."""

    def evaluate(x):
        with np.errstate(all="ignore"):
            value, slope = -np.log(1 - x[0]) + 8 * (x[0] - 0.9) ** 2, 1 / (1 - x[0])
        return Point(x, value if x[0] < 1 else np.nan, np.array([slope + 16 * (x[0] - 0.9)]))

    start = evaluate(np.array([-3.0]))
    direction = -start.gradient
    found = wolfe(evaluate, start, direction, float(direction @ start.gradient), 1.0)
    assert found is not None and found.value < start.value
    best = quasi_newton(evaluate, np.array([-3.0]), iterations=100, memory=4, tol=1e-12)
    peer = scipy.optimize.minimize_scalar(
        lambda t: evaluate(np.array([t])).value, bounds=(-3, 1 - 1e-9), method="bounded"
    )
    assert best.value <= peer.fun + 1e-9


def test_stops_without_descent_direction():
    """A gradient that is no descent direction ends the search at the start."""

    def evaluate(x):
        return Point(x, float(np.abs(x).sum()), np.where(x == 0, 1.0, np.sign(x)))

    found = quasi_newton(evaluate, np.zeros(3), iterations=10, memory=3)
    assert np.array_equal(found.x, np.zeros(3))
