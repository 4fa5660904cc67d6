"""The bilateral search against grids and a general solver."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gramian.linalg import bilateral, box_quadratic
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.objectives.restriction import (
    CompositeRestriction,
    QuadraticRestriction,
    TotalRestriction,
)

NONNEGATIVE = (np.zeros(2), np.full(2, np.inf))
BOXES = {
    "quadrant": NONNEGATIVE,
    "shifted": (np.array([-1.0, 0.0]), np.full(2, np.inf)),
    "capped": (np.array([-1.0, 0.0]), np.array([0.0, np.inf])),
    "fixed": (np.zeros(2), np.array([0.0, np.inf])),
    "closed": (np.array([-1.0, -2.0]), np.array([0.5, 3.0])),
}
EVERY_BOX = pytest.mark.parametrize(("lower", "upper"), BOXES.values(), ids=BOXES)


def model(Q, p):
    return lambda b: 0.5 * b @ Q @ b + p @ b


def random_psd(rng, rank):
    R = rng.standard_normal((rank, 2))
    return R.T @ R


def grid_minimum(f, lower, upper, reach=20.0, ticks=11):
    """The smallest value on a grid, refined from its best point."""
    ends = np.where(np.isfinite(upper), upper, lower + reach)
    axes = np.linspace(lower, ends, ticks).T
    start = min((np.array([a, b]) for a in axes[0] for b in axes[1]), key=f)
    bounds = [
        (low, None if np.isinf(high) else high) for low, high in zip(lower, upper, strict=True)
    ]
    found = scipy.optimize.minimize(f, start, bounds=bounds, options={"ftol": 1e-15})
    return min(f(start), found.fun)


@EVERY_BOX
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), rank=st.integers(0, 2))
@example(seed=0, rank=0)
def test_box_quadratic_matches_a_grid(lower, upper, seed, rank):
    rng = np.random.default_rng(seed)
    Q, p = random_psd(rng, rank), rng.standard_normal(2)
    if np.isinf(upper).any() and rank < 2:
        p = Q @ rng.standard_normal(2) + rng.uniform(0, 1, 2)  # no direction of the box falls
    b = box_quadratic(Q, p, lower, upper)
    assert b is not None
    assert np.all(b >= lower) and np.all(b <= upper)
    assert model(Q, p)(b) <= grid_minimum(model(Q, p), lower, upper) + 1e-8


FALLING = {
    "zero Q": (np.zeros((2, 2)), [-1.0, 1.0], NONNEGATIVE),
    "zero Q, second": (np.zeros((2, 2)), [1.0, -1.0], NONNEGATIVE),
    "first row only": (np.diag([1.0, 0.0]), [0.0, -1.0], NONNEGATIVE),
    "second row only": (np.diag([0.0, 1.0]), [-1e-3, 0.0], NONNEGATIVE),
    "flat line inside": (np.array([[1.0, -2.0], [-2.0, 4.0]]), [-1.0, 0.0], NONNEGATIVE),
    "flat line, shifted": (
        np.array([[1.0, -1.0], [-1.0, 1.0]]),
        [0.5, -1.0],
        (np.array([-1.0, 0.0]), np.full(2, np.inf)),
    ),
    "capped": (np.diag([1.0, 0.0]), [0.0, -1.0], (np.array([-1.0, 0.0]), np.array([0.0, np.inf]))),
}


@pytest.mark.parametrize(("Q", "p", "box"), FALLING.values(), ids=FALLING)
def test_box_quadratic_detects_unboundedness(Q, p, box):
    assert box_quadratic(Q, np.array(p), *box) is None


BOUNDED = {
    "flat line leaves the quadrant": (np.array([[1.0, 1.0], [1.0, 1.0]]), [-1.0, 0.0], NONNEGATIVE),
    "flat line does not fall": (np.array([[1.0, -1.0], [-1.0, 1.0]]), [-1.0, 1.0], NONNEGATIVE),
    "zero slope": (np.zeros((2, 2)), [0.0, 0.0], NONNEGATIVE),
    "cap stops the flat line": (
        np.array([[1.0, -1.0], [-1.0, 1.0]]),
        [-1.0, 0.0],
        (np.array([-1.0, 0.0]), np.array([0.0, np.inf])),
    ),
}


@pytest.mark.parametrize(("Q", "p", "box"), BOUNDED.values(), ids=BOUNDED)
def test_box_quadratic_finds_the_minimum_of_a_singular_form(Q, p, box):
    p = np.array(p)
    b = box_quadratic(Q, p, *box)
    assert model(Q, p)(b) == pytest.approx(grid_minimum(model(Q, p), *box), abs=1e-8)


LOSSES = {
    "squared": Squared(np.linspace(-1, 2, 9)),
    "squared-hinge": SquaredHinge(1.0),
    "smoothed-hinge": SmoothedHinge(1.0, mu=0.5),
    "logistic": Logistic(1.0),
    "soft-min": SoftMin(mu=0.3),
}
MODES = {
    "free": ({}, (0.0, np.inf)),
    "capped": ({"cap_alpha": True}, (0.0, 1.0)),
    "fixed": ({"fix_alpha": True}, (1.0, 1.0)),
}


@pytest.mark.parametrize(("mode", "alphas"), MODES.values(), ids=MODES)
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
@example(seed=3181)  # flat along a line, where steps of steepest descent zigzag
def test_bilateral_matches_a_grid(loss, mode, alphas, seed):
    rng = np.random.default_rng(seed)
    Z, c = rng.standard_normal((9, 2)), rng.uniform(0.1, 1.0, 2)
    if isinstance(loss, SoftMin):
        c = c + np.abs(Z).max()  # so that F is bounded below
    restriction = CompositeRestriction(loss, Z, c, 0.5)
    alpha, beta, value = bilateral(restriction, **mode)
    assert alphas[0] <= alpha <= alphas[1] and beta >= 0
    assert value == restriction.value(np.array([alpha, beta]))
    lower, upper = np.array([alphas[0], 0.0]), np.array([alphas[1], np.inf])
    assert value <= grid_minimum(restriction.value, lower, upper) + 1e-6
    assert value <= restriction.value(np.array([1.0, 0.0]))


def test_bilateral_of_unbounded_quadratic():
    falling = QuadraticRestriction(np.zeros((2, 2)), np.array([0.0, -1.0]), 0.0)
    assert bilateral(falling)[2] == -np.inf


@pytest.mark.parametrize("loss", [SquaredHinge(1.0), SmoothedHinge(1.0), Logistic()])
def test_bilateral_of_unbounded_function(loss):
    """Beyond the margins only the linear term remains, which is unbounded below."""
    falling = CompositeRestriction(loss, np.ones((3, 2)), np.array([0.0, -1.0]), 0.0)
    assert bilateral(falling)[2] == -np.inf


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-12, 1e-4, 1.0, 1e6, 1e12]))
def test_bilateral_is_exact_for_a_quadratic_at_any_scale(seed, scale):
    rng = np.random.default_rng(seed)
    Q, c = random_psd(rng, 2) + 0.01 * np.eye(2), rng.standard_normal(2)
    plain = bilateral(QuadraticRestriction(Q, c, 0.0))
    scaled = bilateral(QuadraticRestriction(scale * Q, scale * c, 0.0))
    np.testing.assert_allclose(scaled[:2], plain[:2], rtol=1e-6, atol=1e-9)


def test_large_starting_value_loses_no_digits():
    """f(1, 0) is 1e25 times the decrease: rounding there must not hide the minimum."""
    steep = QuadraticRestriction(np.diag([1e26, 1.0]), np.array([-1e17, 0.0]), 1e11)
    alpha, _, value = bilateral(steep)
    assert alpha == pytest.approx(1e-9, rel=1e-6)
    assert value < 1e11


def test_along_agrees_with_value():
    rng = np.random.default_rng(0)
    composite = CompositeRestriction(
        SoftMin(mu=0.5), rng.normal(size=(30, 4)), rng.normal(size=4), 1.5
    )
    quadratic = QuadraticRestriction(np.eye(4), rng.normal(size=4), -2.0)
    theta, move = rng.normal(size=(2, 4))
    for restriction in (composite, quadratic, TotalRestriction([composite, quadratic])):
        line = restriction.along(theta, move)
        for t in (0.0, 0.3, -2.0):
            assert line(t) == pytest.approx(restriction.value(theta + t * move), rel=1e-12)


def test_overflow_does_not_prove_unboundedness():
    Q = np.array([[1.0, np.nan], [np.nan, 2.0]])
    assert box_quadratic(Q, np.ones(2), np.array([-1.0, 0.0]), np.full(2, np.inf)) is not None
