"""LRO eq. (10): a kernel close to a given one."""

import numpy as np
import pytest

import gramian as gm
from gramian.checks import check_gradient
from tests.conic import Term, conic_minimum

N_POINTS = 6


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_POINTS, N_POINTS))
    S = rng.standard_normal((N_POINTS, N_POINTS))
    S = S + S.T
    return X @ X.T + 0.5 * np.eye(N_POINTS), np.diag(S.sum(1)) - S


def formula(N, T, lam, tau, K):
    inverse = np.linalg.inv(N)
    square = np.trace(inverse @ K @ inverse @ K)
    return square + np.trace((tau * inverse + lam * T) @ K)


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_the_value_is_that_of_the_formula(parts, tau):
    N, T = parts
    problem = gm.problems.inductive_kernel(N, T, 1.3, tau=tau)
    L = np.random.default_rng(1).standard_normal((N_POINTS, 3))
    assert problem.value(L) == pytest.approx(formula(N, T, 1.3, tau, L @ L.T))
    check_gradient(problem.objective)


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_the_optimum_is_the_positive_part_in_the_span(parts, tau):
    """With K = N^½WN^½ it is ‖W‖² + tr(GW), G = τI + λN^½TN^½, minimal at (−G/2)₊."""
    N, T = parts
    values, vectors = np.linalg.eigh(N)
    root = (vectors * np.sqrt(values)) @ vectors.T
    G = tau * np.eye(N_POINTS) + 2.0 * root @ T @ root
    low = np.minimum(np.linalg.eigvalsh(G), 0.0)
    result = gm.minimize(gm.problems.inductive_kernel(N, T, 2.0, tau=tau), tol=1e-9)
    assert result.value == pytest.approx(-0.25 * np.sum(low**2), rel=1e-7)
    assert result.certificate.relative_gap <= 1e-9


def test_a_conic_solver_agrees(parts):
    N, T = parts
    inverse = np.linalg.inv(N)
    root = np.linalg.cholesky(inverse).T

    square = Term("squared", lambda M: (root @ M @ root.T).ravel())
    optimum = conic_minimum(N_POINTS, [square], 0.3 * inverse + 2.0 * T)
    result = gm.minimize(gm.problems.inductive_kernel(N, T, 2.0, tau=0.3), tol=1e-9)
    assert result.value == pytest.approx(optimum, rel=1e-5)


def test_a_number_is_a_multiple_of_the_identity(parts):
    _, T = parts
    L = np.random.default_rng(2).standard_normal((N_POINTS, 2))
    plain = gm.problems.inductive_kernel(2.0, T, 1.0, tau=0.5)
    full = gm.problems.inductive_kernel(2.0 * np.eye(N_POINTS), T, 1.0, tau=0.5)
    assert plain.value(L) == pytest.approx(full.value(L))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": np.ones((N_POINTS, N_POINTS))}, "positive definite"),
        ({"kernel": np.eye(4)}, "order"),
        ({"kernel": 0.0}, "above 0"),
        ({"scores": np.arange(36.0).reshape(6, 6)}, "symmetric"),
        ({"lam": -1.0}, "lam must be"),
        ({"tau": -1.0}, "tau must be"),
        ({"tau": np.nan}, "tau must be"),
    ],
)
def test_rejects_bad_input(parts, change, message):
    given = {"kernel": parts[0], "scores": parts[1], "lam": 1.0, "tau": 0.0} | change
    with pytest.raises(ValueError, match=message):
        gm.problems.inductive_kernel(
            given["kernel"], given["scores"], given["lam"], tau=given["tau"]
        )
