"""Parts that need no backend, on arrays that have the standard's functions and nothing else."""

import array_api_strict as xp
import numpy as np
import pytest

from gramian.linalg import Point, conjugate_gradient, quasi_newton
from gramian.linalg._lanczos import CountedOperator
from gramian.linalg.krylov import restarted
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge

Z = np.random.default_rng(0).standard_normal(30)
CENTRE = np.random.default_rng(1).standard_normal(30)


def strict(loss):
    """The loss with arrays of the standard."""
    for name, value in list(vars(loss).items()):
        if isinstance(value, np.ndarray):
            setattr(loss, name, xp.asarray(value))
    return loss


@pytest.mark.parametrize(
    "make",
    [
        lambda: Squared(CENTRE),
        lambda: SquaredHinge(CENTRE),
        lambda: SmoothedHinge(CENTRE, mu=0.3),
        lambda: Logistic(CENTRE),
        lambda: SoftMin(mu=0.2, offset=CENTRE),
    ],
    ids=["squared", "squared-hinge", "smoothed-hinge", "logistic", "soft-min"],
)
def test_losses(make):
    host, there = make(), strict(make())
    z = xp.asarray(Z)
    assert there.value(z) == pytest.approx(host.value(Z))
    np.testing.assert_allclose(np.asarray(there.gradient(z)), host.gradient(Z))
    np.testing.assert_allclose(np.asarray(there.hessian(z)(z)), host.hessian(Z)(Z))
    w = host.gradient(Z)
    assert there.conjugate(xp.asarray(w)) == pytest.approx(host.conjugate(w))


def test_l_bfgs():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((12, 12))
    A, b = xp.asarray(A @ A.T + np.eye(12)), xp.asarray(rng.standard_normal(12))

    def evaluate(x):
        slope = A @ x - b
        return Point(x, float(0.5 * (x @ (A @ x)) - b @ x), slope)

    found = quasi_newton(evaluate, xp.zeros(12), iterations=200, memory=8, tol=1e-10)
    np.testing.assert_allclose(
        np.asarray(found.x), np.linalg.solve(np.asarray(A), np.asarray(b)), rtol=1e-6, atol=1e-8
    )


class Elsewhere(CountedOperator):
    """Products on arrays of the standard."""

    def __call__(self, v):
        self.products += 1
        return xp.asarray(self._operator) @ v


def test_leading_eigenpair():
    rng = np.random.default_rng(3)
    A, start = rng.standard_normal((150, 150)), rng.standard_normal(150)
    A = A + A.T
    found = restarted(Elsewhere(A), xp.asarray(start), 1e-8, None)
    host = restarted(CountedOperator(A), start, 1e-8, None)
    assert found.converged and found.products == host.products
    assert found.value == pytest.approx(np.linalg.eigvalsh(A)[-1], rel=1e-10)
    assert not isinstance(found.vector, np.ndarray)


def test_conjugate_gradient():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((12, 12))
    A, b = xp.asarray(A @ A.T + np.eye(12)), xp.asarray(rng.standard_normal(12))
    found = conjugate_gradient(A.__matmul__, b, steps=100, tol=1e-10)
    np.testing.assert_allclose(
        np.asarray(found.x), np.linalg.solve(np.asarray(A), np.asarray(b)), rtol=1e-6, atol=1e-8
    )
