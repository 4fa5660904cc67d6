"""Derivatives, convexity, bounds and conjugate of every loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logsumexp

from gramian.checks import check_curvature, check_gradient
from gramian.losses import (
    Augmented,
    FilledSoftMin,
    Logistic,
    Loss,
    Repulsion,
    Signed,
    SmoothedHinge,
    SoftMin,
    Squared,
    SquaredHinge,
    SquaredWithOffsets,
)

SIZE = 8
CENTRE = np.linspace(-1.0, 2.0, SIZE)
WEIGHT = np.linspace(0.0, 3.0, SIZE)  # one weight is zero

SIGNS = np.where(np.arange(SIZE) % 3 == 0, -1.0, 1.0)
ROWS, COLS = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([0, 1, 2, 0, 3, 1, 2, 3])

FREE = np.where(np.arange(SIZE) % 2, np.inf, 0.5)

LOSSES = {
    "augmented-equality": Augmented(CENTRE, CENTRE, SIGNS, 2.0),
    "augmented-bounds": Augmented(CENTRE, CENTRE + FREE, 0.3 * SIGNS, np.linspace(1, 2, SIZE)),
    "offsets": SquaredWithOffsets(CENTRE, ROWS, COLS, (3, 4), ridge=0.5),
    "offsets-scaled": SquaredWithOffsets(
        CENTRE, ROWS, COLS, (3, 4), ridge=2.0, scale=np.linspace(0.5, 2.0, SIZE)
    ),
    "signed": Signed(Logistic(CENTRE), SIGNS),
    "scaled-hinge": Signed(SmoothedHinge(1.0, mu=2.0), SIGNS * np.linspace(0.5, 2.0, SIZE)),
    "squared": Squared(CENTRE),
    "squared-weighted": Squared(CENTRE, weight=WEIGHT),
    "squared-hinge": SquaredHinge(),
    "squared-hinge-weighted": SquaredHinge(CENTRE, weight=WEIGHT),
    "smoothed-hinge": SmoothedHinge(),
    "smoothed-hinge-wide": SmoothedHinge(CENTRE, mu=2.0, weight=WEIGHT),
    "logistic": Logistic(),
    "logistic-weighted": Logistic(CENTRE, weight=WEIGHT),
    "repulsion": Repulsion(),
    "repulsion-weighted": Repulsion(floor=0.3, weight=WEIGHT),
    "soft-min": SoftMin(mu=1.0),
    "soft-min-sharp": SoftMin(mu=0.1),
    "soft-min-offset": SoftMin(mu=0.5, offset=CENTRE),
    "filled-soft-min": FilledSoftMin(mu=1.0),
    "filled-soft-min-sharp": FilledSoftMin(mu=0.2, rate=3.0),
    "filled-soft-min-offset": FilledSoftMin(mu=0.5, rate=0.7, offset=CENTRE[:-1]),
}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
RANDOM = [settings(max_examples=30), given(seed=st.integers(0, 10**6))]


def random_case(function):
    for decorate in reversed(RANDOM):
        function = decorate(function)
    return EVERY_LOSS(function)


def point(loss: Loss, seed: int, spread: float = 2.0) -> np.ndarray:
    z = spread * np.random.default_rng(seed).standard_normal(SIZE)
    if isinstance(loss, FilledSoftMin):
        z[-1] = abs(z[-1])  # the slack
    return z


def off_kinks(loss: Loss, z: np.ndarray) -> np.ndarray:
    """z moved at least 1e-3 away from jumps of the second derivative."""
    if isinstance(loss, FilledSoftMin):
        for _ in range(SIZE):
            close = np.abs(z[:-1] + loss.offset - loss.level(z)) < 1e-3
            z = z + np.append(5e-3 * close, 0.0)
        z[-1] = max(z[-1], 1e-2)
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
    z = off_kinks(loss, point(loss, seed))
    check_gradient(loss, z, random_state=seed)
    check_curvature(loss, z, random_state=seed)


@EVERY_LOSS
def test_hessian_is_the_curvature(loss):
    z, D = point(loss, 3), np.random.default_rng(4).standard_normal((SIZE, 3))
    product = loss.hessian(z)
    columns = np.column_stack([product(d) for d in D.T])
    np.testing.assert_allclose(D.T @ columns, loss.curvature(z, D), atol=1e-10)


@EVERY_LOSS
def test_curvature_is_a_symmetric_form_over_several_directions(loss):
    rng = np.random.default_rng(0)
    z, D = point(loss, 1), rng.standard_normal((SIZE, 3))
    full = loss.curvature(z, np.eye(SIZE))
    np.testing.assert_allclose(full, full.T, atol=1e-14)
    np.testing.assert_allclose(loss.curvature(z, D), D.T @ full @ D, atol=1e-10)


@random_case
def test_is_convex_along_segments(loss, seed):
    x, y = point(loss, seed), point(loss, seed + 1)
    t = np.random.default_rng(seed).uniform()
    chord = t * loss.value(x) + (1 - t) * loss.value(y)
    assert loss.value(t * x + (1 - t) * y) <= chord + 1e-10 * (1 + abs(chord))


@random_case
def test_smoothness_bounds_the_curvature(loss, seed):
    spectrum = np.linalg.eigvalsh(loss.curvature(point(loss, seed), np.eye(SIZE)))
    assert spectrum[0] >= -1e-12 * loss.smoothness
    assert spectrum[-1] <= loss.smoothness * (1 + 1e-12)


@random_case
def test_infimum_is_a_lower_bound(loss, seed):
    assert loss.value(point(loss, seed, spread=20.0)) >= loss.infimum


@random_case
def test_fenchel_young_holds_with_equality_at_the_gradient(loss, seed):
    z, other = point(loss, seed), point(loss, seed + 1)
    value, w = loss.value(z), loss.gradient(z)
    assert loss.conjugate(w) == pytest.approx(w @ z - value, rel=1e-9, abs=1e-9)
    w = loss.gradient(other)
    assert value + loss.conjugate(w) >= w @ z - 1e-9 * (1 + abs(value))


@random_case
def test_fenchel_young_holds_inside_the_domain(loss, seed):
    """Domains are convex, so a convex combination of gradients lies inside."""
    z = point(loss, seed)
    w = np.mean([loss.gradient(point(loss, seed + k, spread=5.0)) for k in range(1, 4)], axis=0)
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
    "filled soft-min, positive": (FilledSoftMin(mu=1.0), [-1.5, 0.5, -2.0]),
    "filled soft-min, off the simplex": (FilledSoftMin(mu=1.0), [-0.5, -0.4, -2.0]),
    "filled soft-min, slack too cheap": (FilledSoftMin(mu=1.0, rate=2.0), [-0.4, -0.6, -1.1]),
}


@pytest.mark.parametrize(("loss", "w"), OUTSIDE.values(), ids=OUTSIDE)
def test_conjugate_is_infinite_outside_its_domain(loss, w):
    assert loss.conjugate(np.array(w)) == np.inf


SHARE = 1 / (1 + np.exp(-1))
BY_HAND = {
    "squared": (Squared([1.0, 0.0], weight=[2.0, 1.0]), [3.0, -1.0], 9.0, [8.0, -2.0]),
    "squared hinge": (SquaredHinge(1.0), [0.0, 4.0], 1.0, [-2.0, 0.0]),
    "smoothed hinge, both pieces": (SmoothedHinge(1.0, mu=1.0), [0.5, -1.0], 1.625, [-0.5, -1.0]),
    "logistic": (Logistic(), [0.0], np.log(2), [-0.5]),
    "soft-min": (SoftMin(mu=2.0), [1.0, 1.0], 2 * np.log(2) - 1, [-0.5, -0.5]),
    "soft-min, offset": (
        SoftMin(mu=2.0, offset=[3.0, -2.0]),
        [-2.0, 3.0],
        2 * np.log(2) - 1,
        [-0.5, -0.5],
    ),
    "soft-min, one offset for all": (
        SoftMin(mu=2.0, offset=4.0),
        [-3.0, -3.0],
        2 * np.log(2) - 1,
        [-0.5, -0.5],
    ),
    "filled soft-min, one raised": (
        FilledSoftMin(mu=1.0),
        [0.0, 2.0, 1.0],
        np.log(np.exp(-1) + np.exp(-2)),
        [-SHARE, SHARE - 1, -SHARE],
    ),
    "filled soft-min, all raised": (
        FilledSoftMin(mu=1.0),
        [0.0, 2.0, 4.0],
        np.log(2) - 3,
        [-0.5, -0.5, -0.5],
    ),
    "filled soft-min, no slack": (
        FilledSoftMin(mu=1.0),
        [1.0, 2.0, 0.0],
        np.log(np.exp(-1) + np.exp(-2)),
        [-SHARE, SHARE - 1, -SHARE],
    ),
    "filled soft-min, rate and offset": (
        FilledSoftMin(mu=1.0, rate=2.0, offset=[1.0, -1.0]),
        [-1.0, 3.0, 0.5],
        np.log(np.exp(-1) + np.exp(-2)),
        [-SHARE, SHARE - 1, -2 * SHARE],
    ),
}


@pytest.mark.parametrize(("loss", "z", "value", "gradient"), BY_HAND.values(), ids=BY_HAND)
def test_values_equal_manual_computation(loss, z, value, gradient):
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


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), mu=st.floats(0.3, 3.0), rate=st.floats(0.2, 5.0))
def test_filled_soft_min_minimises_over_slack(seed, mu, rate):
    """SLSQP over ξ ≥ 0 with Σ ξ = ωt."""
    rng = np.random.default_rng(seed)
    c, b, t = rng.standard_normal(5), rng.standard_normal(5), rng.uniform(0.0, 2.0)
    budget = rate * t
    best = minimize(
        lambda xi: mu * logsumexp(-(c + b + xi) / mu),
        np.full(5, budget / 5),
        method="SLSQP",
        bounds=[(0, None)] * 5,
        constraints=[LinearConstraint(np.ones((1, 5)), budget, budget)],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    loss, z = FilledSoftMin(mu=mu, rate=rate, offset=b), np.append(c, t)
    assert loss.value(z) == pytest.approx(best.fun, rel=1e-6, abs=1e-6)
    assert np.sum(np.maximum(0, loss.level(z) - c - b)) == pytest.approx(budget, abs=1e-12)


@pytest.mark.parametrize("t", [-0.3, -2.0])
def test_gradient_of_filled_soft_min_with_negative_slack(t):
    """Extrapolation may leave the cone: value and gradient must agree there, too."""
    loss = FilledSoftMin(mu=0.5, rate=1.5)
    check_gradient(loss, np.append(np.linspace(-1.0, 2.0, 7), t))


@pytest.mark.parametrize(
    ("loss", "shifted"),
    [
        (SoftMin(mu=0.4), SoftMin(mu=0.4, offset=CENTRE)),
        (FilledSoftMin(mu=0.4, rate=2.0), FilledSoftMin(mu=0.4, rate=2.0, offset=CENTRE[:-1])),
    ],
    ids=["soft-min", "filled"],
)
def test_offset_shifts_the_argument(loss, shifted):
    z, by = point(loss, 1), np.append(CENTRE[:-1], CENTRE[-1] if isinstance(loss, SoftMin) else 0)
    D = np.random.default_rng(2).standard_normal((SIZE, 2))
    assert loss.size is None and shifted.size == SIZE
    assert shifted.value(z - by) == pytest.approx(loss.value(z))
    w = loss.gradient(z)
    np.testing.assert_allclose(shifted.gradient(z - by), w)
    np.testing.assert_allclose(shifted.curvature(z - by, D), loss.curvature(z, D))
    assert shifted.conjugate(w) == pytest.approx(loss.conjugate(w) - w @ by)


@pytest.mark.parametrize("name", ["soft-min-offset", "filled-soft-min-offset"])
def test_smoothed_keeps_other_parameters(name):
    loss = LOSSES[name]
    again = loss.smoothed(0.01)
    assert again.mu == 0.01 and again.size == loss.size
    assert type(again) is type(loss) and getattr(again, "rate", None) == getattr(loss, "rate", None)
    np.testing.assert_array_equal(again.offset, loss.offset)


def test_soft_minima_lie_within_mu_ln_p_above_the_minimum():
    z = point(LOSSES["filled-soft-min"], 5)
    for mu in (1.0, 0.1, 1e-3):
        above = SoftMin(mu=mu).value(z) + z.min()
        assert 0 <= above <= mu * np.log(SIZE)
        filled = FilledSoftMin(mu=mu, rate=2.0)
        assert 0 <= filled.value(z) + filled.level(z) <= mu * np.log(SIZE - 1)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_sharp_filled_soft_min_neither_overflows_nor_underflows(scale):
    loss, z = FilledSoftMin(mu=1e-5), scale * np.array([-2.0, -1.0, 3.0, 2.0])
    w = loss.gradient(z)
    assert loss.level(z) == pytest.approx(-0.5 * scale)
    assert loss.value(z) == pytest.approx(0.5 * scale, abs=1e-5)
    np.testing.assert_allclose(w, [-0.5, -0.5, 0.0, -0.5])
    assert np.all(np.isfinite(loss.curvature(z, np.eye(4))))
    assert np.isfinite(loss.conjugate(w))


@pytest.mark.parametrize("scale", [1e2, 1e8])
def test_logistic_is_accurate_in_its_tails(scale):
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
        ({"weight": -1.0}, "finite and not negative"),
        ({"weight": [1.0, np.nan]}, "finite and not negative"),
        ({"weight": np.inf}, "finite and not negative"),
    ],
)
def test_rejects_bad_weights(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize("make", [Squared, SquaredHinge, SmoothedHinge, Logistic])
@pytest.mark.parametrize("centre", [np.nan, np.inf, [0.0, -np.inf]])
def test_rejects_target_that_is_not_finite(make, centre):
    with pytest.raises(ValueError, match="NaN or infinite"):
        make(centre)


@pytest.mark.parametrize("make", [SmoothedHinge, SoftMin, FilledSoftMin])
@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan, np.inf])
def test_rejects_smoothing_that_is_not_positive(make, mu):
    with pytest.raises(ValueError, match="mu must be a finite number above 0"):
        make(mu=mu)


@pytest.mark.parametrize("make", [SoftMin, FilledSoftMin])
@pytest.mark.parametrize("offset", [np.nan, [0.0, np.inf], [[1.0]]])
def test_rejects_offset_that_is_not_a_finite_vector(make, offset):
    with pytest.raises(ValueError, match="finite number or vector"):
        make(mu=1.0, offset=offset)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_rejects_slack_rate_that_is_not_positive(rate):
    with pytest.raises(ValueError, match="rate must be a finite number above 0"):
        FilledSoftMin(mu=1.0, rate=rate)


def test_signed_rejects_a_factor_of_zero():
    with pytest.raises(ValueError, match="other than 0"):
        Signed(Squared(), [1.0, 0.0])
