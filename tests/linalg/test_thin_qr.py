"""QR decomposition of matrices with few columns."""

import numpy as np
import pytest

from gramian.linalg.thin_qr import thin_qr


@pytest.mark.parametrize("least", [1.0, 1e-6, 1e-12, 0.0])
@pytest.mark.parametrize("graded", [False, True], ids=["dependent", "graded"])
def test_columns_are_orthonormal_and_reproduce_the_matrix(least, graded):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 6))
    A[:, 5] = least * A[:, 5] if graded else A[:, 4] + least * A[:, 5]
    Q, R = thin_qr(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(Q @ R, A, atol=1e-13 * np.linalg.norm(A))
    np.testing.assert_allclose(R, np.triu(R), atol=1e-14 * np.linalg.norm(R))


def test_wide_matrix():
    A = np.random.default_rng(0).normal(size=(3, 5))
    Q, R = thin_qr(A)
    assert Q.shape == (3, 3)
    np.testing.assert_allclose(Q @ R, A, atol=1e-13)
