"""The search along a line of factors against a fine grid."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gramian.linalg import quartic
from gramian.linalg.quartic import quartic_coefficients
from gramian.losses import Logistic, SmoothedHinge, Squared, SquaredHinge
from gramian.maps import Entries, PairDistances
from gramian.objectives import Composite, GramQuadratic
from tests.cases import psd, symmetric

N = 5
EDGES = [(i, j) for i in range(N) for j in range(i)]


def quadratic(rng):
    return GramQuadratic(psd(rng, N), psd(rng, N) + 0.1 * np.eye(N), symmetric(rng, N))


def composite(loss, linear_map=PairDistances):
    return lambda rng: Composite(linear_map(EDGES, N), loss, 0.3)


QUADRATIC = {
    "gram-quadratic": quadratic,
    "squared": composite(Squared(1.0), Entries),
}
OTHERS = {
    "squared-hinge": composite(SquaredHinge(1.0)),
    "smoothed-hinge": composite(SmoothedHinge(1.0, mu=0.5)),
    "logistic": composite(Logistic(1.0), Entries),
}


def line(make, seed, descending=True):
    """φ(μ) = F at L + μΔ, its restriction, and whether Δ is the steepest descent."""
    rng = np.random.default_rng(seed)
    objective = make(rng)
    image = objective.image(rng.standard_normal((N, 2)))
    direction = rng.standard_normal((N, 2))
    if descending:
        direction = -objective.gradient_factor(image) + 0.1 * direction
        direction /= np.linalg.norm(direction)
    restriction = objective.line(image, direction).restriction
    return restriction, lambda mu: restriction.value(np.array([1.0, 2 * mu, mu * mu]))


def grid_minimum(phi, reach=10.0):
    ticks = np.linspace(0.0, reach, 2001)
    best = ticks[np.argmin([phi(t) for t in ticks])]
    found = scipy.optimize.minimize_scalar(
        phi, bounds=(max(0.0, best - 0.01), best + 0.01), method="bounded", options={"xatol": 1e-10}
    )
    return min(phi(best), found.fun)


@pytest.mark.parametrize("make", QUADRATIC.values(), ids=QUADRATIC)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), descending=st.booleans())
def test_quadratic_search_is_exact(make, seed, descending):
    restriction, phi = line(make, seed, descending)
    mu, value = quartic(restriction)
    assert mu >= 0
    assert value == pytest.approx(phi(mu), rel=1e-9, abs=1e-9)
    assert value <= grid_minimum(phi) + 1e-8


@pytest.mark.parametrize("make", QUADRATIC.values(), ids=QUADRATIC)
def test_coefficients_are_those_of_the_polynomial(make):
    restriction, phi = line(make, 0)
    c = quartic_coefficients(restriction)
    for mu in (0.0, 0.5, 2.0, -1.0):
        assert np.polynomial.polynomial.polyval(mu, c) == pytest.approx(phi(mu), rel=1e-9)


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), descending=st.booleans())
@example(seed=383, descending=True)  # has two valleys
@example(seed=6, descending=True)  # Newton alone goes to and fro between two kinks
def test_other_searches_descend_to_a_stationary_point(make, seed, descending):
    restriction, phi = line(make, seed, descending)
    mu, value = quartic(restriction)
    assert mu >= 0
    assert value == pytest.approx(phi(mu), rel=1e-12)
    assert value <= phi(0.0)
    h = 1e-6
    slope, first = (phi(mu + h) - phi(mu - h)) / (2 * h), (phi(h) - phi(0.0)) / h
    assert abs(slope) <= 1e-5 * (1 + abs(first)) or (mu == 0 and slope >= 0)


def valleys(phi, reach=10.0):
    slopes = np.sign(np.diff([phi(t) for t in np.linspace(0.0, reach, 2001)]))
    return int(np.sum((slopes[:-1] < 0) & (slopes[1:] > 0)))


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_searches_match_a_grid_of_unimodal_functions(make):
    lines = [line(make, seed) for seed in range(16)]
    single = [(restriction, phi) for restriction, phi in lines if valleys(phi) == 1]
    assert len(single) >= 3
    for restriction, phi in single:
        assert quartic(restriction)[1] <= grid_minimum(phi) + 1e-7
