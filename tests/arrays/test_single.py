"""Sparse products in float32."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.arrays import cpu


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("columns", [1, 5, 40])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sparse_product_has_the_dtype_of_the_factor(compiled, columns, kind):
    rng = np.random.default_rng(0)
    A = sp.random_array((30, 20), density=0.3, rng=rng, format="csr")
    V = rng.standard_normal((20, columns))
    found = cpu.sparse_product(A, V.astype(kind), compiled=compiled)
    assert found.dtype == kind
    np.testing.assert_allclose(found, A.toarray() @ V, rtol=0, atol=20 * np.finfo(kind).eps)
