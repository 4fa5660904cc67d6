"""Block Lanczos compared with LAPACK, in particular for multiple eigenvalues."""

import numpy as np
import pytest

from gramian.linalg import block_lanczos

N = 240


def rotated(spectrum, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, N)))[0]
    K = (Q * spectrum) @ Q.T
    return (K + K.T) / 2


def cluster(width, seed=1):
    values = np.random.default_rng(seed).standard_normal(N)
    values[:7] = 5.0 + width * np.arange(7)
    values[7:9] = 4.0
    return rotated(values)


GOE = np.random.default_rng(2).standard_normal((N, N))
VECTOR = GOE[0]
MATRICES = {
    "random": GOE + GOE.T,
    "zero": np.zeros((N, N)),
    "identity": 3.0 * np.eye(N),
    "negative identity": -3.0 * np.eye(N),
    "diagonal": np.diag(np.arange(N, dtype=float)),
    "rank one": np.outer(VECTOR, VECTOR),
    "minus rank one": -np.outer(VECTOR, VECTOR),
    "every value ten times": rotated(np.repeat(np.arange(N // 10), 10).astype(float)),
    "repeated diagonal": np.diag(np.repeat(np.arange(N // 10), 10).astype(float)),
    "seven times and twice": cluster(0.0),
    "cluster below the tolerance": cluster(1e-12),
    "cluster near the tolerance": cluster(1e-9),
    "cluster above the tolerance": cluster(1e-6),
    "two high, the rest far below": rotated(np.r_[5.0, 5.0, np.full(N - 2, -1e6)]),
    "fast decay": rotated(10.0 ** (-np.arange(N) / 5)),
    "negative definite": rotated(-(np.arange(N) ** 2.0)),
    "tiny": 1e-150 * (GOE + GOE.T),
    "huge": 1e150 * (GOE + GOE.T),
}


@pytest.mark.parametrize("block", [1, 2, 5])
@pytest.mark.parametrize("name", MATRICES)
def test_against_lapack(name, block):
    K, k = MATRICES[name], 12
    expected = np.linalg.eigvalsh(K)[::-1][:k]
    norm = np.linalg.norm(K, 2)
    values, vectors, residuals = block_lanczos(K, k, block=block, random_state=0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * norm)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    measured = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(residuals, measured, atol=1e-13 * norm)
    assert np.max(measured, initial=0.0) <= 1e-10 * norm


def test_restarts_reach_the_same_pairs():
    K = MATRICES["random"]
    values, _, residuals = block_lanczos(K, 8, max_basis=40, random_state=0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[::-1][:8], rtol=1e-12)
    assert np.max(residuals) <= 1e-10 * np.linalg.norm(K, 2)


def test_residuals_reflect_product_limit():
    K = MATRICES["random"]
    values, vectors, residuals = block_lanczos(K, 5, max_products=30, random_state=0)
    assert np.max(residuals) > 1e-6 * np.linalg.norm(K, 2)
    measured = np.linalg.norm(K @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(residuals, measured, rtol=1e-6)


def test_float32_products():
    K = MATRICES["random"].astype(np.float32)
    values, _, _ = block_lanczos(K, 4, random_state=0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K.astype(float))[::-1][:4], rtol=1e-5)


def test_k_out_of_range():
    with pytest.raises(ValueError, match="between 1 and 240"):
        block_lanczos(MATRICES["random"], 0)
