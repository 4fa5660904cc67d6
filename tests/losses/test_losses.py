"""Every loss: its derivatives, its convexity, its bounds and its conjugate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.checks import check_curvature, check_gradient
from gramian.losses import Logistic, Loss, SmoothedHinge, SoftMin, Squared, SquaredHinge

SIZE = 8
CENTRE = np.linspace(-1.0, 2.0, SIZE)
WEIGHT = np.linspace(0.0, 3.0, SIZE)  # one weight is zero

LOSSES = {
    "squared": Squared(CENTRE),
    "squared-weighted": Squared(CENTRE, weight=WEIGHT),
    "squared-hinge": SquaredHinge(),
    "squared-hinge-weighted": SquaredHinge(CENTRE, weight=WEIGHT),
    "smoothed-hinge": SmoothedHinge(),
    "smoothed-hinge-wide": SmoothedHinge(CENTRE, mu=2.0, weight=WEIGHT),
    "logistic": Logistic(),
    "logistic-weighted": Logistic(CENTRE, weight=WEIGHT),
    "soft-min": SoftMin(mu=1.0),
    "soft-min-sharp": SoftMin(mu=0.1),
}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
RANDOM = [settings(max_examples=30, deadline=None), given(seed=st.integers(0, 10**6))]


def random_case(function):
    for decorate in reversed(RANDOM):
        function = decorate(function)
    return EVERY_LOSS(function)


def point(seed: int, spread: float = 2.0) -> np.ndarray:
    return spread * np.random.default_rng(seed).standard_normal(SIZE)


def off_kinks(loss: Loss, z: np.ndarray) -> np.ndarray:
    """z moved at least 1e-3 away from where the second derivative jumps."""
    corners = [0.0, -loss.mu] if isinstance(loss, SmoothedHinge) else [0.0]
    for corner in corners if hasattr(loss, "centre") else []:
        at = loss.centre + corner
        z = np.where(np.abs(z - at) < 1e-3, at + 2e-3, z)
    return z


@EVERY_LOSS
def test_is_a_loss(loss):
    assert isinstance(loss, Loss)


@random_case
def test_gradient_and_curvature_match_differences(loss, seed):
    z = off_kinks(loss, point(seed))
    check_gradient(loss, z, random_state=seed)
    check_curvature(loss, z, random_state=seed)


@EVERY_LOSS
def test_hessian_is_the_curvature(loss):
    z, D = point(3), np.random.default_rng(4).standard_normal((SIZE, 3))
    product = loss.hessian(z)
    columns = np.column_stack([product(d) for d in D.T])
    np.testing.assert_allclose(D.T @ columns, loss.curvature(z, D), atol=1e-10)


@EVERY_LOSS
def test_curvature_is_a_symmetric_form_over_several_directions(loss):
    rng = np.random.default_rng(0)
    z, D = point(1), rng.standard_normal((SIZE, 3))
    full = loss.curvature(z, np.eye(SIZE))
    np.testing.assert_allclose(full, full.T, atol=1e-14)
    np.testing.assert_allclose(loss.curvature(z, D), D.T @ full @ D, atol=1e-10)


@random_case
def test_is_convex_along_segments(loss, seed):
    x, y = point(seed), point(seed + 1)
    t = np.random.default_rng(seed).uniform()
    chord = t * loss.value(x) + (1 - t) * loss.value(y)
    assert loss.value(t * x + (1 - t) * y) <= chord + 1e-10 * (1 + abs(chord))


@random_case
def test_smoothness_bounds_the_curvature(loss, seed):
    spectrum = np.linalg.eigvalsh(loss.curvature(point(seed), np.eye(SIZE)))
    assert spectrum[0] >= -1e-12 * loss.smoothness
    assert spectrum[-1] <= loss.smoothness * (1 + 1e-12)


@random_case
def test_infimum_is_a_lower_bound(loss, seed):
    assert loss.value(point(seed, spread=20.0)) >= loss.infimum


@random_case
def test_fenchel_young_holds_with_equality_at_the_gradient(loss, seed):
    z, other = point(seed), point(seed + 1)
    value, w = loss.value(z), loss.gradient(z)
    assert loss.conjugate(w) == pytest.approx(w @ z - value, rel=1e-9, abs=1e-9)
    w = loss.gradient(other)
    assert value + loss.conjugate(w) >= w @ z - 1e-9 * (1 + abs(value))


@random_case
def test_fenchel_young_holds_inside_the_domain(loss, seed):
    """Domains are convex, so a mix of gradients lies inside."""
    z = point(seed)
    w = np.mean([loss.gradient(point(seed + k, spread=5.0)) for k in range(1, 4)], axis=0)
    assert np.isfinite(loss.conjugate(w))
    assert loss.value(z) + loss.conjugate(w) >= w @ z - 1e-9 * (1 + abs(loss.value(z)))


OUTSIDE = {
    "squared, zero weight": (Squared(weight=[1.0, 0.0]), [1.0, 0.1]),
    "squared hinge, positive": (SquaredHinge(), [-1.0, 0.1]),
    "squared hinge, zero weight": (SquaredHinge(weight=[1.0, 0.0]), [-1.0, -0.1]),
    "smoothed hinge, positive": (SmoothedHinge(), [-0.5, 0.1]),
    "smoothed hinge, steep": (SmoothedHinge(weight=2.0), [-0.5, -2.1]),
    "logistic, positive": (Logistic(), [-0.5, 0.1]),
    "logistic, steep": (Logistic(weight=2.0), [-0.5, -2.1]),
    "soft-min, positive": (SoftMin(mu=1.0), [-1.5, 0.5]),
    "soft-min, off the simplex": (SoftMin(mu=1.0), [-0.5, -0.4]),
}


@pytest.mark.parametrize(("loss", "w"), OUTSIDE.values(), ids=OUTSIDE)
def test_conjugate_is_infinite_outside_its_domain(loss, w):
    assert loss.conjugate(np.array(w)) == np.inf


BY_HAND = {
    "squared": (Squared([1.0, 0.0], weight=[2.0, 1.0]), [3.0, -1.0], 9.0, [8.0, -2.0]),
    "squared hinge": (SquaredHinge(1.0), [0.0, 4.0], 1.0, [-2.0, 0.0]),
    "smoothed hinge, both pieces": (SmoothedHinge(1.0, mu=1.0), [0.5, -1.0], 1.625, [-0.5, -1.0]),
    "logistic": (Logistic(), [0.0], np.log(2), [-0.5]),
    "soft-min": (SoftMin(mu=2.0), [1.0, 1.0], 2 * np.log(2) - 1, [-0.5, -0.5]),
}


@pytest.mark.parametrize(("loss", "z", "value", "gradient"), BY_HAND.values(), ids=BY_HAND)
def test_values_by_hand(loss, z, value, gradient):
    assert loss.value(np.array(z)) == pytest.approx(value)
    np.testing.assert_allclose(loss.gradient(np.array(z)), gradient)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_sharp_soft_min_neither_overflows_nor_underflows(scale):
    loss, z = SoftMin(mu=1e-5), scale * np.array([-2.0, 3.0, 0.5])
    w = loss.gradient(z)
    assert loss.value(z) == pytest.approx(2 * scale)
    np.testing.assert_allclose(w, [-1.0, 0.0, 0.0])
    np.testing.assert_allclose(loss.curvature(z, np.eye(3)), np.zeros((3, 3)), atol=1e-9)
    assert loss.conjugate(w) == 0.0


@pytest.mark.parametrize("scale", [1e2, 1e8])
def test_logistic_keeps_its_tails(scale):
    loss, z = Logistic(), np.array([-scale, scale])
    assert loss.value(z) == pytest.approx(scale)
    np.testing.assert_allclose(loss.gradient(z), [-1.0, 0.0], atol=1e-40)


def test_smoothed_hinge_lies_within_half_mu_of_the_hinge():
    z = np.linspace(-3, 3, 101)
    for one in z:
        below = max(0.0, 1 - one) - SmoothedHinge(mu=0.2).value(np.array([one]))
        assert -1e-15 <= below <= 0.1 + 1e-15


@pytest.mark.parametrize("make", [Squared, SquaredHinge, SmoothedHinge, Logistic])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": -1.0}, "weights that are not negative"),
        ({"weight": [1.0, np.nan]}, "finite weights"),
        ({"weight": np.inf}, "finite weights"),
    ],
)
def test_bad_weights_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize("make", [Squared, SquaredHinge, SmoothedHinge, Logistic])
@pytest.mark.parametrize("centre", [np.nan, np.inf, [0.0, -np.inf]])
def test_a_target_or_margin_that_is_not_finite_is_refused(make, centre):
    with pytest.raises(ValueError, match="NaN or infinite"):
        make(centre)


@pytest.mark.parametrize("make", [SmoothedHinge, SoftMin])
@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan, np.inf])
def test_a_smoothing_that_is_not_a_positive_number_is_refused(make, mu):
    with pytest.raises(ValueError, match="needs mu > 0"):
        make(mu=mu)
