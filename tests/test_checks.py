"""The public checks accept correct implementations and reject slightly wrong ones."""

import numpy as np
import pytest

from gramian.checks import (
    check_adjoint,
    check_conjugate,
    check_curvature,
    check_gradient,
    check_hessian,
)
from gramian.losses import Squared, SquaredHinge
from gramian.maps import Entries, PairDistances
from gramian.objectives import Composite

PAIRS = [[0, 1], [1, 2], [3, 0]]


class WrongGradient(Squared):
    def gradient(self, z):
        return 1.001 * super().gradient(z)


class WrongCurvature(Squared):
    def curvature(self, z, directions):
        return 1.01 * super().curvature(z, directions)


class WrongSmoothness(Squared):
    steepest = 0.99


class NaNGradient(Squared):
    def gradient(self, z):
        return np.full_like(z, np.nan)


class WrongAdjoint(PairDistances):
    def adjoint(self, w, V):
        return 1.0001 * super().adjoint(w, V)


class WrongObjective(Composite):
    def gradient_factor(self, image):
        return 0.5 * super().gradient_factor(image)


class WrongHessian(Composite):
    def hessian_factor(self, image):
        product = super().hessian_factor(image)
        return lambda D: 1.001 * product(D)


class WrongConjugate(SquaredHinge):
    def conjugate(self, w):
        return 0.9 * super().conjugate(w)


class Concave(Squared):
    """−½‖z‖², with the conjugate for which the equality of Fenchel and Young holds."""

    def value(self, z):
        return -super().value(z)

    def gradient(self, z):
        return -super().gradient(z)

    def conjugate(self, w):
        return -super().conjugate(w)


def test_correct_implementations_pass():
    assert 0 <= check_conjugate(SquaredHinge()) < 1e-8
    assert 0 <= check_conjugate(Squared(np.ones(3))) < 1e-8
    assert 0 <= check_adjoint(Entries(PAIRS, 4)) < 1e-10
    assert 0 <= check_gradient(SquaredHinge()) < 1e-6
    assert 0 <= check_gradient(SquaredHinge(np.ones(3))) < 1e-6
    assert 0 <= check_curvature(Squared()) < 1e-5
    assert 0 <= check_curvature(Squared(np.ones(3))) < 1e-5
    assert 0 <= check_gradient(Composite(Entries(PAIRS, 4), Squared())) < 1e-6
    assert 0 <= check_hessian(Composite(Entries(PAIRS, 4), Squared())) < 1e-5


@pytest.mark.parametrize(
    ("check", "subject", "what"),
    [
        (check_gradient, WrongGradient(), "gradient"),
        (check_gradient, NaNGradient(), "gradient"),
        (check_conjugate, WrongConjugate(), "conjugate"),
        (check_conjugate, Concave(), "convexity"),
        (check_curvature, WrongCurvature(), "curvature"),
        (check_curvature, WrongSmoothness(), "smoothness"),
        (check_adjoint, WrongAdjoint(PAIRS, 4), "adjoint"),
        (check_gradient, WrongObjective(Entries(PAIRS, 4), Squared()), "gradient"),
        (check_hessian, WrongHessian(Entries(PAIRS, 4), Squared()), "hessian"),
    ],
)
def test_wrong_implementations_fail(check, subject, what):
    with pytest.raises(AssertionError, match=f"{what} check failed: relative error"):
        check(subject)


def test_uses_given_point_and_tolerance():
    check_gradient(WrongGradient(), np.ones(3), rtol=0.01)
    L = np.random.default_rng(1).standard_normal((4, 2))
    check_gradient(Composite(Entries(PAIRS, 4), Squared()), L)
