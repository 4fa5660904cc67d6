"""The losses that collapse classes: formulas, derivatives, conjugate and the soft targets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from gramian.checks import check_curvature, check_gradient
from gramian.losses import Collapse
from gramian.losses.collapse import SoftCollapse, uniform_targets

SIZES = (5, 4)
CLASSES = np.array([0, 0, 1, 1, 2, 0, 0, 0, 1])  # two points are alone in their class
SEEDS = settings(max_examples=20)


def images(seed, spread=2.0):
    rng = np.random.default_rng(seed)
    return np.concatenate([
        (spread * rng.random((size, size)) * (1 - np.eye(size))).ravel() for size in SIZES
    ])  # fmt: skip


def by_rows(z, classes):
    """(distances to the others of the batch, which of them are of the same class) by anchor."""
    first = start = 0
    for size in SIZES:
        block, own = z[first : first + size**2].reshape(size, size), classes[start : start + size]
        for i in range(size):
            others = np.arange(size) != i
            same = own[others] == own[i]
            if same.any():
                yield block[i, others], same
        first, start = first + size**2, start + size


def collapse():
    return Collapse(uniform_targets(CLASSES, SIZES), SIZES)


def test_collapse_agrees_with_its_formula():
    z = images(0)
    expected = sum(np.mean(d[same]) + logsumexp(-d) for d, same in by_rows(z, CLASSES))
    assert collapse().value(z) == pytest.approx(expected)


def test_soft_collapse_agrees_with_its_formula():
    z = images(1)
    expected = sum(logsumexp(-d) - logsumexp(-d[same]) for d, same in by_rows(z, CLASSES))
    assert SoftCollapse(CLASSES, SIZES).value(z) == pytest.approx(expected)


@SEEDS
@given(seed=st.integers(0, 10**6))
def test_derivatives(seed):
    z, rng = images(seed), np.random.default_rng(seed)
    loss = collapse()
    check_gradient(loss, z)
    check_curvature(loss, z)
    d = rng.standard_normal((z.size, 2))
    bend = loss.hessian(z)
    np.testing.assert_allclose(loss.curvature(z, d)[:, 0], d.T @ bend(d[:, 0]), atol=1e-10)


@SEEDS
@given(seed=st.integers(0, 10**6))
def test_soft_collapse_has_the_gradient_of_its_majoriser(seed):
    """Collapse with the soft targets of z lies above, up to a constant, and touches at z."""
    z, other = images(seed), images(seed + 1)
    soft = SoftCollapse(CLASSES, SIZES)
    convex = Collapse(soft.soft_targets(z), SIZES)
    np.testing.assert_allclose(soft.gradient(z), convex.gradient(z), atol=1e-12)
    rise = convex.value(other) - convex.value(z)
    assert soft.value(other) - soft.value(z) <= rise + 1e-9
    step = 1e-6 * np.random.default_rng(seed).standard_normal(z.size)
    change = soft.value(z + step) - soft.value(z - step)
    assert change == pytest.approx(2 * soft.gradient(z) @ step, rel=1e-4, abs=1e-11)


@SEEDS
@given(seed=st.integers(0, 10**6))
def test_conjugate_and_infimum(seed):
    z, loss = images(seed), collapse()
    w = loss.gradient(z)
    assert loss.value(z) + loss.conjugate(w) == pytest.approx(w @ z)
    assert loss.conjugate(0.5 * w) <= 0.5 * (loss.conjugate(w) + loss.conjugate(0 * w)) + 1e-9
    assert loss.conjugate(0 * w) == pytest.approx(-loss.infimum)
    assert loss.value(z) >= loss.infimum
    assert loss.conjugate(w + 0.1) == np.inf


def test_far_points_do_not_overflow():
    z = images(2, spread=1e6)
    for loss in (collapse(), SoftCollapse(CLASSES, SIZES)):
        assert np.isfinite(loss.value(z)) and np.all(np.isfinite(loss.gradient(z)))


def test_recession_equals_the_asymptotic_slope():
    z, loss = images(3), collapse()
    slope = (loss.value(1e6 * z) - loss.value(5e5 * z)) / 5e5
    assert loss.recession(z, np.zeros(z.size)) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("change", [-0.1, 0.1, np.nan])
def test_rejects_targets_that_are_not_distributions(change):
    q = uniform_targets(CLASSES, SIZES)
    q[1] += change
    with pytest.raises(ValueError, match="must be distributions over the other points"):
        Collapse(q, SIZES)


def test_rejects_points_that_are_not_sorted_by_class():
    with pytest.raises(ValueError, match="must be sorted by class"):
        SoftCollapse(np.array([0, 1, 0]), (3,))
