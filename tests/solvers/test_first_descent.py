"""The descent that a small problem starts with."""

import numpy as np
import pytest

import gramian as gm
from gramian.methods import first_descent
from gramian.methods.first_descent import FirstDescent
from gramian.objectives import GramQuadratic, Sum


def quadratic(order: int, seed: int) -> GramQuadratic:
    A, B, C = np.random.default_rng(seed).standard_normal((3, order, order))
    return GramQuadratic(A @ A.T / order, B @ B.T / order + 0.1 * np.eye(order), C + C.T)


@pytest.fixture
def looks(monkeypatch):
    """The steps taken at each look of a certificate."""
    found, on = [], FirstDescent.on

    def counted(self, image):
        result = on(self, image)
        found.append(first_descent.MAX_STEPS - self.left)
        return result

    monkeypatch.setattr(FirstDescent, "on", counted)
    return found


@pytest.mark.parametrize("order", [12, 16, 20])
def test_a_strongly_convex_one_ends_as_soon_as_its_gap_is_small(order, looks, monkeypatch):
    problem = gm.Problem(Sum([quadratic(order, 1), quadratic(order, 2)]))
    with monkeypatch.context() as patch:
        patch.setattr(
            first_descent,
            "FIRST_GRADIENT_IN_ROOT_TOLERANCES",
            first_descent.FINAL_GRADIENT_IN_TOLERANCES * np.sqrt(1e-6),
        )
        far = gm.minimize(problem, tol=1e-6)
    whole, looks[:] = max(looks), []
    near = gm.minimize(problem, tol=1e-6)
    assert near.certificate.relative_gap <= 1e-6
    assert near.certificate.value - far.certificate.value <= near.certificate.gap + 1e-9
    assert len(looks) <= 3
    assert max(looks) < 0.8 * whole


def test_continues_after_an_early_certificate(looks, monkeypatch):
    monkeypatch.setattr(first_descent, "FIRST_GRADIENT_IN_ROOT_TOLERANCES", 300.0)
    problem = gm.Problem(Sum([quadratic(8, 3), quadratic(8, 4)]))
    result = gm.minimize(problem, tol=1e-8)
    assert result.certificate.relative_gap <= 1e-8
    assert len(looks) > 2
    assert looks == sorted(looks)
    assert looks[-1] <= first_descent.MAX_STEPS
