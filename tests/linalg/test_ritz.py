"""Ritz pairs of a short Lanczos run."""

import numpy as np
import pytest

from gramian.linalg import ritz_pairs
from gramian.linalg._lanczos import LanczosBasis
from tests.cases import symmetric


@pytest.fixture(scope="module")
def matrix():
    return symmetric(np.random.default_rng(0), 120)


def test_residuals_and_vectors(matrix):
    found = ritz_pairs(matrix, 5, steps=30, random_state=0)
    V = found.vectors
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(np.sum(V * (matrix @ V), axis=0), found.values, atol=1e-9)
    norms = np.linalg.norm(matrix @ V - V * found.values, axis=0)
    np.testing.assert_allclose(norms, found.residuals, atol=1e-9)
    assert np.all(np.diff(found.values) <= 0)


def test_full_number_of_steps_gives_eigenvalues(matrix):
    found = ritz_pairs(matrix, 3, steps=500, random_state=1)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(matrix)[::-1][:3], atol=1e-8)


def test_uses_given_start(matrix):
    values, vectors = np.linalg.eigh(matrix)
    found = ritz_pairs(matrix, 2, steps=20, v0=vectors[:, -1])
    assert found.values[0] == pytest.approx(values[-1])
    assert found.residuals[0] == pytest.approx(0.0, abs=1e-8)


def test_fewer_pairs_than_requested():
    assert ritz_pairs(np.eye(4), 3, steps=10, random_state=0).values.size == 1


def test_reorthogonalisation():
    """Without reorthogonalisation it is lost once an extreme eigenvalue converges."""
    rng = np.random.default_rng(0)
    values = np.append(np.linspace(0.0, 1.0, 2000), [2.0, 3.0, 5.0])
    start = rng.standard_normal(values.size)
    full = LanczosBasis(start, 150, 1e-14)
    partial = LanczosBasis(start, 150, 1e-14, partial=True)
    for basis in (full, partial):
        while not basis.full:
            basis.extend(values * basis.last)
    Q = partial.vectors
    assert np.max(np.abs(Q @ Q.T - np.eye(150))) < 1e-7
    np.testing.assert_allclose(partial.ritz()[0], full.ritz()[0], atol=1e-10)
