"""The Newton system of BILGO's Algorithm 2 on a Lanczos basis: when the basis stops growing."""

import numpy as np
import pytest

from gramian.linalg._lanczos import CountedOperator
from gramian.linalg.newton_eigen import Centred, Iterate, _newton_basis


def basis_at(values, u, forcing):
    """The basis for diag(values) at the unit vector u, and the Newton matrix on it."""
    u = u / np.linalg.norm(u)
    centred = Centred(CountedOperator(np.diag(values)), 0.0, 1.0)
    iterate = Iterate(u, values * u)
    basis = _newton_basis(centred, iterate, forcing)
    newton = iterate.rho * np.eye(basis.size) - basis.tridiagonal()
    newton[0, 0] += 2 * iterate.rho
    return basis, newton


def residual(basis, newton, size):
    """‖∇²f d + ∇f‖/‖∇f‖ for the Newton step d in the first `size` vectors."""
    step = np.linalg.solve(newton[:size, :size], np.eye(size)[1])
    return basis.betas[size - 1] * abs(step[-1])


@pytest.mark.parametrize("forcing", [0.1, 1e-2, 1e-4])
def test_stops_at_the_first_basis_that_solves_the_newton_system(forcing):
    values = np.r_[1.0, np.linspace(-1.0, 0.5, 59)]
    u = np.r_[1.0, 0.02 * np.random.default_rng(0).standard_normal(59)]
    basis, newton = basis_at(values, u, forcing)
    assert np.linalg.eigvalsh(newton)[0] > 0
    assert 2 < basis.size < 20
    assert residual(basis, newton, basis.size) <= forcing
    assert residual(basis, newton, basis.size - 1) > forcing


def test_stops_at_the_first_negative_curvature():
    values = np.r_[1.0, 0.9, np.linspace(-1.0, 0.5, 58)]
    u = np.r_[1e-2, 1.0, 0.02 * np.random.default_rng(0).standard_normal(58)]
    basis, newton = basis_at(values, u, 0.0)
    assert basis.size < 20
    assert np.linalg.eigvalsh(newton)[0] < 0
    assert np.linalg.eigvalsh(newton[:-1, :-1])[0] > 0
