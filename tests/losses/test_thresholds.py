"""Free thresholds: values, slopes, conjugates, and their use in MMMF."""

import numpy as np
import pytest
import scipy.optimize

import gramian as gm
from gramian import problems
from gramian.checks import check_curvature, check_gradient
from gramian.completion import MMMF
from gramian.losses import Signed, SmoothedHinge, WithThresholds

RNG = np.random.default_rng(0)
P, K, KAPPA = 60, 3, 0.8
SIGNS = RNG.choice([-1.0, 1.0], P)
GROUPS, SCALE = RNG.integers(0, K, P), RNG.uniform(0.5, 2.0, P)
HINGE = Signed(SmoothedHinge(1.0, mu=0.4), SIGNS)
LOSS = WithThresholds(HINGE, GROUPS, K, SCALE, ridge=KAPPA)


def test_value_is_the_minimum_over_thresholds():
    for seed in range(5):
        z = np.random.default_rng(seed).normal(size=P) * 2

        def of(delta, z=z):
            return HINGE.value(z - delta[GROUPS] / SCALE) + 0.5 * KAPPA * delta @ delta

        best = scipy.optimize.minimize(of, np.zeros(K), tol=1e-10)
        assert LOSS.value(z) == pytest.approx(best.fun, rel=1e-7)
        np.testing.assert_allclose(LOSS.thresholds(z), best.x, atol=1e-4)
        assert LOSS.error(z) <= 1e-16
        w = LOSS.gradient(z)
        assert LOSS.value(z) + LOSS.conjugate(w) == pytest.approx(w @ z)
    check_gradient(LOSS, z)
    check_curvature(LOSS, z)


def test_optimum_agrees_with_search_over_thresholds():
    rows, cols = np.indices((7, 6)).reshape(2, -1)
    levels = RNG.integers(0, 3, rows.size)
    signs = np.where(levels[:, None] > np.arange(2), 1.0, -1.0)
    moved = np.array([-1.0, 1.0])

    def problem(delta=None, **more):
        shift = moved if delta is None else moved + delta
        margins = 1.0 + signs * shift
        return problems.mmmf(np.repeat(rows, 2), np.repeat(cols, 2), signs.ravel(), (7, 6), 0.7,
                             margin=margins.ravel(), mu=0.3, **more)  # fmt: skip

    free = problem(groups=np.tile([0, 1], rows.size), ridge=0.5)
    found = gm.minimize(free, tol=1e-7)
    assert found.certificate.relative_gap <= 1e-7

    def of(delta):
        return gm.minimize(problem(delta), tol=1e-8).value + 0.25 * delta @ delta

    best = free.objective.loss.thresholds(free.objective.image(found.factor).z)
    assert of(best) == pytest.approx(found.value, rel=1e-6)
    for step in 0.1 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]):
        assert of(best + step) > found.value


@pytest.mark.slow
def test_learned_thresholds_adapt_to_levels():
    true = RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 30))
    levels = np.digitize(true, [-0.2, 0.2]) + 1.0  # few in the middle
    rows, cols = np.nonzero(RNG.random(true.shape) < 0.6)
    given = rows, cols, levels[rows, cols]
    learned = MMMF(lam=2.0, random_state=0).fit(given)
    fixed = MMMF(lam=2.0, thresholds="fixed", random_state=0).fit(given)
    np.testing.assert_array_equal(fixed.thresholds_, [-1.0, 1.0])
    assert np.diff(learned.thresholds_)[0] < 2.0
    assert learned.result_.value <= fixed.result_.value * (1 + 1e-6)
    assert learned.certificate_.relative_gap <= 1e-3
    with pytest.raises(ValueError, match='thresholds must be "learned" or "fixed"'):
        MMMF(lam=2.0, thresholds="free").fit(given)
