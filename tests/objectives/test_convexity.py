"""Losses and objectives of users that are not convex: no bound is claimed."""

import numpy as np
import pytest

import gramian as gm
from gramian.losses import Separable, SoftMin, Squared
from gramian.maps import Entries
from gramian.objectives import Composite, GramQuadratic, Sum
from gramian.objectives.convexity import not_convex
from gramian.outcome import InconsistentResultWarning

PAIRS = [[0, 1], [1, 2], [2, 3], [0, 0], [1, 1], [2, 2]]
TARGETS = [1.0, -2.0, 3.0, 2.0, 2.0, 2.0]
ENTRIES = Entries(PAIRS, 4)
GOOD = Composite(ENTRIES, Squared(TARGETS))
FACTOR = np.random.default_rng(0).normal(size=(4, 2))


class Welsch(Separable):
    """1 − exp(−s²), whose conjugate is infinite except at 0."""

    steepest = 2.0

    def _phi(self, s):
        return 1 - np.exp(-s * s)

    def _slope(self, s):
        return 2 * s * np.exp(-s * s)

    def _bend(self, s):
        return (2 - 4 * s * s) * np.exp(-s * s)

    def _conjugate_phi(self, u):
        return np.where(u == 0, 0.0, np.inf)


class Own(Squared):
    pass


class Minus:
    def __init__(self, operator):
        self.operator = operator

    def __matmul__(self, V):
        return -(self.operator @ V)


class Falling(GramQuadratic):
    def gradient(self, image):
        return Minus(super().gradient(image))


class OwnQuadratic(GramQuadratic):
    pass


class Whole(SoftMin):
    """A loss that is not a sum over entries."""


def test_a_loss_that_is_not_convex_has_no_bound():
    problem = gm.Problem(Composite(ENTRIES, Welsch(TARGETS), C=0.1))
    with pytest.warns(InconsistentResultWarning, match="Welsch is not convex, so no lower bound"):
        found = gm.minimize(problem)
    assert found.status is gm.Status.STALLED and found.certificate.gap is None
    assert "no bound on the gap is known here: Welsch is not convex" in str(found)
    assert gm.certify(problem, found.factor).gap is None


def test_finds_the_part_that_is_not_convex():
    whole = Whole(mu=0.5)
    convex = [Composite(ENTRIES, Own(TARGETS)), Composite(ENTRIES, whole)]
    assert not_convex(Sum(convex), FACTOR) == ""
    odd = Composite(ENTRIES, Welsch(TARGETS))
    assert not_convex(Sum([*convex, odd]), FACTOR) == "Welsch"
    assert not_convex(OwnQuadratic(np.eye(4), None, np.eye(4)), FACTOR) == ""
    assert not_convex(Falling(np.eye(4), None, np.eye(4)), FACTOR) == "Falling"
    assert gm.minimize(gm.Problem(convex[0])).status is gm.Status.CONVERGED


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Composite(ENTRIES, Squared),
            r"loss is the class Squared: pass an object of it, Sq",
        ),
        (lambda: Composite(Entries, Squared(TARGETS)), "map is the class Entries: pass an object"),
        (lambda: Composite(ENTRIES, "squared"), "loss must be a loss of gramian.losses, got str"),
        (lambda: Composite(Squared(TARGETS), ENTRIES), "map must be a map of gramian.maps, got Sq"),
        (lambda: gm.Problem(Squared(TARGETS)), "objective must be one of gramian.objectives, got"),
        (lambda: gm.Problem(Composite), "objective is the class Composite: pass an object of it"),
        (lambda: gm.Problem(GOOD, gm.PSDCone), r"domain is the class PSDCone: .*, PSDCone\(…\)"),
        (lambda: gm.Problem(GOOD, "psd"), r"domain must be a PSDCone\(\) or Spectrahedron"),
        (
            lambda: gm.Problem(GOOD, constraints=gm.Constraint),
            "constraints is the class Constraint",
        ),
    ],
)
def test_rejects_classes_in_place_of_their_objects(make, message):
    with pytest.raises(TypeError, match=message):
        make()
