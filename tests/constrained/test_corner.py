"""Sensors and anchors: problems with a fixed corner of M, and their dual points."""

from fractions import Fraction

import numpy as np
import pytest

import gramian as gm
from gramian.constrained.corner import corner_point
from gramian.constrained.model import Model
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.objectives import Composite
from tests.constrained.test_exact import exactly_psd


def network(n, seed=0, noise=0.0, degree=6):
    """Sensors and anchors in the unit square, each sensor with its nearest measured."""
    rng = np.random.default_rng(seed)
    places, anchors = rng.random((n, 2)), rng.random((5, 2))
    points = np.vstack([places, anchors])
    apart = np.linalg.norm(points[:n, None] - points[None], axis=2)
    near = np.argsort(apart, axis=1)[:, 1 : degree + 1]
    pairs = np.column_stack([np.repeat(np.arange(n), degree), near.ravel()])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < n]
    distances = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    distances = distances * np.abs(1 + noise * rng.standard_normal(distances.size))
    return gm.problems.sensor_localization(pairs, distances, anchors, n=n), places


def test_sensors_without_noise_are_certified():
    problem, places = network(25, degree=8)
    found = gm.minimize(problem, tol=1e-4, random_state=0)
    assert found.status is gm.Status.CONVERGED
    assert found.route[0] == "anchored-newton"
    assert found.certificate.violation <= 1e-12
    assert found.certificate.lower_bound <= 0.0 <= found.value
    placed = gm.problems.sensor_positions(found.factor, 2)
    assert np.median(np.linalg.norm(placed - places, axis=1)) <= 1e-2


def test_bound_for_noisy_sensors_is_below_other_local_minima():
    problem, _ = network(12, noise=0.1, degree=4)
    found = gm.minimize(problem, "anchored-newton", tol=1e-4, random_state=0)
    assert found.status is gm.Status.CONVERGED
    assert found.certificate.proved and found.value > 1e-6
    other = gm.minimize(problem, tol=1e-2, max_iter=4, random_state=1)
    assert found.certificate.lower_bound <= other.value
    again = gm.certify(problem, found.factor)
    assert again.lower_bound == pytest.approx(found.certificate.lower_bound, rel=1e-6)


def test_noisy_sensors_that_need_more_columns_are_certified():
    problem, _ = network(25, seed=1, noise=0.05, degree=7)
    found = gm.minimize(problem, "anchored-newton", tol=1e-4, random_state=0, max_iter=30)
    assert found.status is gm.Status.CONVERGED
    assert found.rank > 5  # two dimensions and three additional columns at the start


@pytest.mark.parametrize("seed", range(8))
def test_a_dual_point_of_a_corner_is_feasible_without_rounding(seed):
    problem, _ = network(5, seed, noise=0.3, degree=3)
    model, rng = Model.of(problem), np.random.default_rng(seed)
    corner = model.corner
    image = model.objective.image(rng.standard_normal((7, 3)))
    point = corner_point(corner, model.bounds, image, 0.0)
    assert np.isfinite(point.value)
    S = [[Fraction(0)] * 7 for _ in range(7)]
    for e, i, j, a in zip(*corner.entries, strict=True):
        S[i][j] += Fraction(float(point.w[e])) * Fraction(float(a))
    for i, j, weight, y in zip(*corner.seen, point.y, strict=True):
        for row, column in {(i, j), (j, i)}:
            S[corner.held[row]][corner.held[column]] -= Fraction(float(weight)) * Fraction(float(y))
    assert exactly_psd(S)


def test_sensors_not_connected_to_an_anchor():
    pairs = np.array([[0, 1], [1, 2], [0, 2], [3, 4]])  # 4 is the anchor
    problem = gm.problems.sensor_localization(pairs, np.ones(4), [[0.0, 0.0]], n=4)
    found = gm.minimize(problem, tol=1e-6, random_state=0)
    assert found.status is gm.Status.CONVERGED
    assert found.value <= 1e-10


def test_other_constraints_are_not_recognised_as_fixed_block():
    corner = Entries([[0, 0], [0, 1], [1, 1]], 4)
    objective = Composite(Entries([[2, 2], [2, 3]], 4), Squared(1.0))
    free = gm.Problem(objective, constraints=gm.Constraint.equal(corner, [1.0, 0.0, 1.0]))
    assert Model.of(free).corner is not None
    for constraint in (
        gm.Constraint(corner, 0.0, 1.0),
        gm.Constraint.equal(Entries([[0, 0], [1, 1]], 4), 1.0),
        gm.Constraint.equal(corner, [1.0, 1.0, 1.0]),  # of rank one
    ):
        problem = gm.Problem(objective, constraints=constraint)
        assert Model.of(problem).corner is None
        with pytest.raises(ValueError, match="fix a block of M"):
            gm.minimize(problem, "anchored-newton")
    started = gm.minimize(free, "anchored-newton", init=np.eye(4), rank=4, tol=1e-6)
    assert started.value <= 1e-10
