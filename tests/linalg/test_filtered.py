"""Leading singular vectors by filters."""

import numpy as np

from gramian.linalg.filtered import leading_singular


def test_finds_close_and_multiple_singular_values():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([[3.0, 3.0, 3.0, 2.5], np.linspace(1.0, 0.0, 96)])
    left, right = (np.linalg.qr(rng.normal(size=(n, 100)))[0] for n in (150, 120))
    A = (left * sizes) @ right.T
    U, found, V = leading_singular(A.__matmul__, A.T.__matmul__, rng.normal(size=(120, 8)))
    np.testing.assert_allclose(found[:4], sizes[:4], rtol=1e-4)
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-3)
    np.testing.assert_allclose(A @ V[:, :4], U[:, :4] * found[:4], atol=1e-3)
