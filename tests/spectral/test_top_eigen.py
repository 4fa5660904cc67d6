"""top_eigen against numpy.linalg.eigh."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning

import gramian as gm
from gramian.objectives import LowRankPlusIdentity
from gramian.objectives.matrices import Dense, GramOperator, Scaled, Sparse
from gramian.spectral import top_eigen


def random_symmetric(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def check(found, K, k, tol=1e-10):
    expected = np.linalg.eigvalsh(K)[::-1][:k]
    norm = max(np.linalg.norm(K, 2), np.finfo(float).tiny)
    assert found.values.shape == found.residuals.shape == (k,)
    assert found.vectors.shape == (len(K), k)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=max(tol, 1e-13) * norm)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    measured = np.linalg.norm(K @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, measured, atol=1e-13 * norm)
    assert np.max(measured) <= max(tol, 1e-13) * norm


DENSE = random_symmetric(320)
SPARSE = sp.random(400, 400, 0.02, random_state=1, format="csr")
SPARSE = SPARSE + SPARSE.T
FACTOR = np.random.default_rng(3).standard_normal((330, 4))
KINDS = {
    "array": (DENSE, DENSE),
    "list": (DENSE[:5, :5].tolist(), DENSE[:5, :5]),
    "integers": (np.diag(np.arange(9)), np.diag(np.arange(9.0))),
    "Fortran order": (np.asfortranarray(DENSE), DENSE),
    "csr": (SPARSE, SPARSE.toarray()),
    "coo array": (sp.coo_array(SPARSE), SPARSE.toarray()),
    "LinearOperator": (aslinearoperator(DENSE), DENSE),
    "Dense": (Dense(DENSE), DENSE),
    "Sparse": (Sparse(SPARSE), SPARSE.toarray()),
    "Scaled": (Scaled(Dense(DENSE), -2.0), -2.0 * DENSE),
    "LowRankPlusIdentity": (
        LowRankPlusIdentity(330, -1.0, FACTOR), FACTOR @ FACTOR.T - np.eye(330)
    ),
    "GramOperator": (GramOperator(FACTOR.T), FACTOR @ FACTOR.T),
}  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "lanczos", "lapack"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_matrix(kind, method):
    K, dense = KINDS[kind]
    check(top_eigen(K, 4, method=method), dense, 4)


@pytest.mark.parametrize("method", ["auto", "lanczos", "lapack", "lro"])
def test_order_one_and_all_pairs(method):
    check(top_eigen([[-2.0]], 1, method=method), np.array([[-2.0]]), 1)
    K = random_symmetric(6)
    check(top_eigen(K, 6, method=method), K, 6)


@pytest.mark.parametrize("k", [1, 7, 60, 320])
def test_numbers_of_pairs(k):
    check(top_eigen(DENSE, k), DENSE, k)


@pytest.mark.parametrize("method", ["auto", "lanczos", "lapack"])
@pytest.mark.parametrize(
    "K",
    [
        np.zeros((320, 320)),
        2.5 * np.eye(320),
        np.diag(np.repeat([3.0, 2.0, -1.0, -4.0], 80)),
        np.outer(DENSE[0], DENSE[0]),
        -np.outer(DENSE[0], DENSE[0]),
    ],
    ids=["zero", "identity", "diagonal", "rank one", "minus rank one"],
)
def test_multiplicities(K, method):
    check(top_eigen(K, 30, method=method), K, 30)


def test_float32_is_decomposed_in_float64():
    K = DENSE.astype(np.float32)
    check(top_eigen(K, 5), K.astype(float), 5)


@pytest.mark.parametrize(
    ("K", "k"),
    [
        (random_symmetric(60), 4),
        (-np.diag(np.arange(1.0, 31.0)), 3),
        (np.diag([2.0, 1.0, *-np.arange(1.0, 30.0)]), 5),
        (np.zeros((8, 8)), 2),
        (np.eye(8), 3),
    ],
    ids=["indefinite", "negative definite", "two positive", "zero", "identity"],
)
def test_low_rank_optimisation_gives_the_same_answer(K, k):
    found, expected = top_eigen(K, k, method="lro", tol=1e-8), top_eigen(K, k)
    check(found, K, k, tol=1e-8)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-10 * np.linalg.norm(K))


def test_the_residual_bounds_the_distance_to_an_eigenvalue():
    with pytest.warns(ConvergenceWarning, match="max_products"):
        found = top_eigen(DENSE, 5, method="lanczos", max_products=40)
    distance = np.min(np.abs(np.subtract.outer(found.values, np.linalg.eigvalsh(DENSE))), axis=1)
    assert np.all(distance <= found.residuals)


@pytest.mark.parametrize("scale", [2.0**-700, 2.0**700], ids=["tiny", "huge"])
def test_squares_of_the_entries_may_overflow(scale):
    K = random_symmetric(400)
    expected = top_eigen(K, 3, method="lanczos")
    for matrix in (scale * K, sp.csr_array(scale * K)):
        found = top_eigen(matrix, 3, method="lanczos")
        np.testing.assert_allclose(found.values / scale, expected.values)
        assert np.all(found.residuals <= 1e-9 * found.values[0])


def test_result_is_reproducible():
    first, second = (top_eigen(DENSE, 3, method="lanczos").vectors for _ in range(2))
    np.testing.assert_array_equal(first, second)


@settings(max_examples=15)
@given(
    n=st.integers(2, 90),
    share=st.floats(0, 1),
    scale=st.sampled_from([1e-8, 0.3, 1.0, 1e9]),
    seed=st.integers(0, 1000),
    method=st.sampled_from(["lanczos", "lapack"]),
)
def test_invariance(n, share, scale, seed, method):
    rng = np.random.default_rng(seed)
    K, k = random_symmetric(n, seed), 1 + int(share * (n - 1))
    values = top_eigen(K, k, method=method).values
    order = rng.permutation(n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    turned = Q @ K @ Q.T
    close = {"rtol": 0, "atol": 1e-9 * np.linalg.norm(K)}
    np.testing.assert_allclose(
        top_eigen(K[np.ix_(order, order)], k, method=method).values, values, **close
    )
    np.testing.assert_allclose(
        top_eigen((turned + turned.T) / 2, k, method=method).values, values, **close
    )
    np.testing.assert_allclose(
        top_eigen(scale * K, k, method=method).values / scale, values, **close
    )


NOT_FINITE = DENSE.copy()
NOT_FINITE[3, 4] = NOT_FINITE[4, 3] = np.nan
SKEW = DENSE.copy()
SKEW[0, 1] += 1e-3
BAD = {
    "not square": (np.ones((2, 3)), 1, "square"),
    "a vector": (np.ones(3), 1, "square"),
    "empty": (np.ones((0, 0)), 1, "empty"),
    "not symmetric": (SKEW, 1, "symmetric"),
    "sparse not symmetric": (sp.csr_array(SKEW), 1, "symmetric"),
    "NaN": (NOT_FINITE, 1, "NaN"),
    "infinite": (np.diag([np.inf, 1.0]), 1, "infinity"),
    "sparse NaN": (sp.csr_array(NOT_FINITE), 1, "NaN"),
    "complex": (1j * np.eye(3), 1, "real"),
    "text": (np.full((2, 2), "a"), 1, "real numbers"),
    "skew operator": (
        LinearOperator((9, 9), matvec=lambda v: np.cumsum(v), dtype=float), 1, "symmetric"
    ),
    "k = 0": (np.eye(3), 0, "between 1 and"),
    "k > n": (np.eye(3), 4, "between 1 and"),
    "k not an integer": (np.eye(3), 1.5, "integer"),
    "k boolean": (np.eye(3), True, "integer"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_rejects_bad_input(name):
    K, k, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        top_eigen(K, k)


@pytest.mark.parametrize("option", [{"method": "best"}, {"tol": -1.0}, {"max_products": 0}])
def test_rejects_bad_options(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        top_eigen(np.eye(3), 1, **option)


def test_loaded_on_demand():
    assert gm.spectral.top_eigen is top_eigen


def test_signs_do_not_depend_on_rounding_errors():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 60))
    noise = rng.standard_normal((60, 60))
    K, again = A + A.T, (A + A.T) * (1 + 1e-15 * (noise + noise.T))
    for method in ("lapack", "lanczos"):
        found = [top_eigen(matrix, 5, method=method).vectors for matrix in (K, again)]
        np.testing.assert_allclose(found[0], found[1], atol=1e-8)
        assert np.all(np.max(found[0], axis=0) >= np.max(-found[0], axis=0))
