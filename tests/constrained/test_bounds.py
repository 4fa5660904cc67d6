"""The best of several lower bounds keeps its method and its probability of error."""

from dataclasses import replace

import numpy as np
import pytest

import gramian as gm
from gramian.bounds import UNKNOWN, Bounds, LowerBounds
from gramian.certificate import Certificate
from gramian.estimators.active_set import whole
from gramian.losses import Logistic, Squared
from gramian.maps import Entries
from gramian.objectives import Composite, LowerBound


def certificate_at(lower, *, miss, method="trace bound"):
    """A certificate with F = 10 above this bound."""
    how = "Lanczos" if miss else "eigenvalues"
    return Certificate(10.0, 0.0, 0.0, 10.0 - lower, 1.0, method, 1.0, how, miss, 20.0)


def whole_of(certificates, value=10.0):
    bounds = LowerBounds()
    for certificate in certificates:
        bounds.add(certificate.bound)
    return whole(bounds, certificates[-1], value, 20.0)


def test_lower_proved_bound_does_not_prove_an_estimated_one():
    estimated = certificate_at(9.5, miss=1e-4, method="Fenchel dual point")
    found = whole_of([estimated, certificate_at(8.0, miss=0.0)])
    assert found.lower_bound == pytest.approx(9.5)
    assert found.miss == pytest.approx(1e-4) and not found.proved
    assert found.proof == "Lanczos" and found.method.startswith("Fenchel dual point")


def test_a_higher_proved_bound_replaces_an_estimated_one():
    found = whole_of([certificate_at(8.0, miss=1.0), certificate_at(9.5, miss=0.0)])
    assert found.lower_bound == pytest.approx(9.5) and found.proved


def test_a_proved_bound_stays_proved_after_a_lower_estimate():
    found = whole_of([certificate_at(9.5, miss=0.0), certificate_at(8.0, miss=0.5)])
    assert found.lower_bound == pytest.approx(9.5) and found.proved


def test_miss_probabilities_of_estimates_add_up():
    bounds = LowerBounds()
    for value, miss in ((1.0, 1e-3), (3.0, 2e-3), (2.0, 4e-3)):
        bounds.add(LowerBound(value, "trace bound", miss=miss))
    assert bounds.best.value == 3.0 and bounds.best.miss == pytest.approx(7e-3)
    bounds.add(LowerBound(0.0, "trace bound", miss=1.0))
    assert bounds.best.miss == 1.0


def test_without_a_bound_no_gap_is_reported():
    nothing = replace(certificate_at(0.0, miss=0.0), gap=None, relative_gap=None)
    found = whole_of([nothing])
    assert found.gap is None and found.relative_gap is None
    assert LowerBounds().best is None


def test_certificates_above_order_1500_keep_their_probability():
    n, rng = 1600, np.random.default_rng(0)
    pairs = np.sort(np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), axis=1)
    objective = Composite(Entries(pairs, n), Squared(rng.standard_normal(n)))
    problem = gm.Problem(objective, gm.Spectrahedron(50.0))
    near = rng.standard_normal((n, 3))
    near *= np.sqrt(50.0) / np.linalg.norm(near)
    far = np.sqrt(50.0) * np.eye(n)[:, :1]
    first = gm.certify(problem, near, time_limit=0.0)
    second = gm.certify(problem, far)
    assert not first.proved and second.proved and first.lower_bound > second.lower_bound
    found = whole_of([first, second], value=first.value)
    assert found.miss == first.miss and found.proof == first.proof
    assert found.lower_bound == pytest.approx(first.lower_bound)


def test_certificate_by_the_highest_estimate_has_the_sum_of_miss_probabilities():
    problem = gm.problems.quadratic(np.eye(2), None, -np.eye(2))
    bounds, image = Bounds(problem, keep_estimates=True), problem.objective.image(np.zeros((2, 1)))
    for value, miss in ((-1.9, 1e-3), (-1.5, 2e-3)):
        bound = LowerBound(value, "trace bound", how="Lanczos", miss=miss)
        certificate, _ = bounds.look(image, UNKNOWN, known=bound)
    assert certificate.lower_bound == pytest.approx(-1.5)
    assert certificate.miss == pytest.approx(3e-3) and not certificate.proved


@pytest.mark.parametrize("upper", [1e3, 0.5], ids=["inactive", "active"])
@pytest.mark.parametrize(("loss", "C"), [(Squared, 0.0), (Logistic, 0.1)], ids=["shift", "scale"])
def test_slope_of_a_nonlinear_objective_is_moved_to_a_feasible_one(loss, C, upper):
    """The multipliers alone cannot make the slack positive semidefinite."""
    T = np.random.default_rng(0).normal(size=(5, 5)) * 3
    i, j = np.triu_indices(5)
    objective = Composite(Entries(np.column_stack([i, j]), 5), loss((T + T.T)[i, j]), C)
    row = gm.Constraint(Entries(np.array([[0, 0]]), 5), 0.1, upper)
    problem = gm.Problem(objective, constraints=(row,))
    result = gm.minimize(problem, tol=1e-6)
    assert result.status.name == "CONVERGED"
    again = gm.certify(problem, result.factor, dual=result.dual)
    assert again.lower_bound == pytest.approx(result.certificate.lower_bound, rel=1e-5)
    free = gm.minimize(gm.Problem(objective), tol=1e-8)
    if 0.1 <= free.matrix()[0, 0] <= upper:
        assert result.value == pytest.approx(free.value, rel=1e-5)
    assert free.certificate.lower_bound <= result.value * (1 + 1e-9)
    rng = np.random.default_rng(1)
    for _ in range(5):  # bounds of any point hold
        L = rng.normal(size=(5, 3))
        found = gm.certify(problem, L, dual=rng.normal(size=1))
        assert found.lower_bound <= result.value * (1 + 1e-9)
