"""The exact quartic minimiser against brute force, closed forms and degenerate cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.linalg import minimise_quartic

number = st.floats(-10, 10, allow_nan=False)
positive = st.floats(1e-2, 10)


def value_at(coefficients, mu):
    return np.polynomial.polynomial.polyval(mu, coefficients)


@settings(max_examples=60)
@given(number, number, number, number, positive, st.booleans())
def test_not_above_any_grid_point(c0, c1, c2, c3, c4, nonnegative):
    c = [c0, c1, c2, c3, c4]
    mu, value = minimise_quartic(c, nonnegative=nonnegative)
    reach = 2 + 3 * max(map(abs, c[:4])) / c4
    grid = np.linspace(0 if nonnegative else -reach, reach, 2001)
    terms = max(abs(coefficient * mu**power) for power, coefficient in enumerate(c))
    assert value <= value_at(c, grid).min() + 1e-12 * (1 + terms)
    assert value == pytest.approx(value_at(c, mu), abs=1e-11 * (1 + terms))
    assert not (nonnegative and mu < 0)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1.0, 1e5])
@pytest.mark.parametrize("height", [1e-12, 1.0, 1e12])
def test_equivariant_to_units(unit, height):
    c = np.array([0.0, -3.0, 1.0, -2.0, 1.5])
    mu, value = minimise_quartic(c)
    scaled_mu, scaled_value = minimise_quartic(height * c / unit ** np.arange(5))
    assert scaled_mu == pytest.approx(unit * mu, rel=1e-12)
    assert scaled_value == pytest.approx(height * value, rel=1e-12)


@pytest.mark.parametrize(
    ("coefficients", "mu", "value"),
    [
        ([3.0], 0.0, 3.0),
        ([0, 0, 0, 0, 0], 0.0, 0.0),
        ([1, -2, 1], 1.0, 0.0),
        ([0, -1, 1, 0, 0], 0.5, -0.25),
        ([0, 0, 0, 0, 2], 0.0, 0.0),
        ([0, 0, -2, 0, 1], None, -1.0),
        ([1, -4, 6, -4, 1], 1.0, 0.0),
    ],
)
def test_known_minima(coefficients, mu, value):
    found, least = minimise_quartic(coefficients)
    if mu is not None:
        assert found == pytest.approx(mu, abs=1e-4 if coefficients == [1, -4, 6, -4, 1] else 1e-14)
    assert least == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("tiny", [1e-20, 1e-40, 1e-120, 1e-200])
def test_tiny_leading_coefficient_does_not_hide_the_small_root(tiny):
    assert minimise_quartic([0, -1, 1, 0, tiny])[0] == pytest.approx(0.5, rel=1e-12)


def test_random_magnitudes():
    rng = np.random.default_rng(0)
    for _ in range(300):
        c = rng.choice([-1, 1], 5) * 10.0 ** rng.uniform(-40, 40, 5)
        c[4] = abs(c[4])
        mu, value = minimise_quartic(c)
        ladder = np.r_[0.0, 10.0 ** np.linspace(-60, 60, 1201)]
        values = value_at(c, np.r_[ladder, -ladder])
        assert value <= values.min() + 1e-12 * np.abs(c * mu ** np.arange(5)).max()


def test_far_minimum_of_tiny_leading_coefficient():
    mu, value = minimise_quartic([0, 0, -1, 0, 1e-12])
    assert abs(mu) == pytest.approx(np.sqrt(0.5e12))
    assert value == pytest.approx(-0.25e12)


def test_nonnegative_takes_the_boundary():
    assert minimise_quartic([5, 1, 1], nonnegative=True) == (0.0, 5.0)
    assert minimise_quartic([0, -1, 0, 1], nonnegative=True)[0] == pytest.approx(3**-0.5)


@pytest.mark.parametrize("c", [[0, 1], [0, 0, -1], [0, 0, 0, 1], [0, 0, 1, 0, -1]])
def test_unbounded_below(c):
    with pytest.raises(ValueError, match="unbounded"):
        minimise_quartic(c)


def test_unbounded_on_the_half_line():
    with pytest.raises(ValueError, match="unbounded"):
        minimise_quartic([0, -1], nonnegative=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        minimise_quartic([0, bad, 1])
