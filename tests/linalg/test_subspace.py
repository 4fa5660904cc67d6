"""Leading eigenpairs from a known subspace, by products with blocks."""

import numpy as np

from gramian.linalg.subspace import subspace_pairs


def matrix(values, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(len(values),) * 2))[0]
    return (turn * values) @ turn.T, turn


def test_rounds_reach_the_largest_eigenvalues():
    A, turn = matrix(np.linspace(3.0, -1.0, 200))
    start = turn[:, :10] + 0.1 * np.random.default_rng(1).normal(size=(200, 10))
    found = subspace_pairs(A, start, 3, rounds=40)
    np.testing.assert_allclose(found.values, np.linspace(3.0, -1.0, 200)[:3], rtol=1e-6)
    rest = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(rest, found.residuals, atol=1e-8)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(3), atol=1e-10)


def test_stops_when_the_residual_is_small_enough():
    A, turn = matrix(np.linspace(3.0, -1.0, 100))
    noise = np.random.default_rng(1).normal(size=(100, 6))
    first = subspace_pairs(A, turn[:, :6] + 0.1 * noise, 2, rounds=0)
    same = subspace_pairs(A, turn[:, :6] + 0.1 * noise, 2, rounds=9, enough=first.residuals[0])
    np.testing.assert_array_equal(first.values, same.values)
    more = subspace_pairs(A, turn[:, :6] + 0.1 * noise, 2, rounds=9)
    assert more.residuals[0] < 0.1 * first.residuals[0]


def test_exact_eigenvectors_need_no_further_directions():
    A, turn = matrix(np.array([2.0, 2.0, 1.0, 0.0, -1.0]))
    found = subspace_pairs(A, turn[:, :3], 4, rounds=3)
    np.testing.assert_allclose(found.values[:3], [2.0, 2.0, 1.0], atol=1e-12)
