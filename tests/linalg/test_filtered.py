"""Leading singular vectors by filters."""

import numpy as np
from scipy import sparse

from gramian.linalg.filtered import leading_singular


def test_finds_close_and_multiple_singular_values():
    rng = np.random.default_rng(0)
    sizes = np.concatenate([[3.0, 3.0, 3.0, 2.5], np.linspace(1.0, 0.0, 96)])
    left, right = (np.linalg.qr(rng.normal(size=(n, 100)))[0] for n in (150, 120))
    A = sparse.csr_array((left * sizes) @ right.T)
    U, found, V = leading_singular(A, 8, 1.0, rng)
    np.testing.assert_allclose(found[:4], sizes[:4], rtol=1e-4)
    np.testing.assert_allclose(U.T @ U, np.eye(8), atol=1e-3)
    np.testing.assert_allclose(A @ V[:, :4], U[:, :4] * found[:4], atol=1e-3)


def test_values_far_above_the_floor_do_not_overflow():
    rng = np.random.default_rng(0)
    A = sparse.csr_array(rng.normal(size=(60, 40)))
    for share in (1e12, 1.0, 1e-12):
        U, sizes, V = leading_singular(share * A, 5, 1e-30, rng)
        assert np.all(np.isfinite(U)) and np.all(np.isfinite(V))
        assert sizes[0] <= 1.01 * share * np.linalg.norm(A.toarray(), 2)
