"""Symmetric matrices: products, dense forms, lower bounds and input validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from gramian import problems
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.objectives import Composite, GramOperator, GramQuadratic, LowRankPlusIdentity, matrices
from gramian.objectives.matrices import Dense, MatrixSum, Scaled, Sparse
from gramian.objectives.matrix_inputs import as_symmetric, require_psd
from tests.cases import psd, symmetric

N = 6


def low_rank(rng, weights=None):
    return LowRankPlusIdentity(N, rng.standard_normal(), rng.standard_normal((N, 3)), weights)


def matvec_only(array):
    return LinearOperator(array.shape, matvec=lambda v: array @ v, dtype=float)


MAKERS = {
    "dense": lambda rng: Dense(symmetric(rng, N)),
    "sparse": lambda rng: Sparse(sp.csr_array(symmetric(rng, N))),
    "low-rank": lambda rng: low_rank(rng),
    "low-rank-indefinite": lambda rng: low_rank(rng, np.array([1.0, -2.0, -0.5])),
    "identity": lambda rng: LowRankPlusIdentity(N, rng.standard_normal()),
    "gram": lambda rng: GramOperator(rng.standard_normal((4, N))),
    "gram-weighted": lambda rng: GramOperator(
        rng.standard_normal((9, N)), 0.5, rng.standard_normal(9)
    ),
    "gram-sparse": lambda rng: GramOperator(
        sp.random_array((9, N), density=0.5, format="csr", rng=rng), 2.0, rng.standard_normal(9)
    ),
    "gram-negative": lambda rng: GramOperator(rng.standard_normal((9, N)), -1.0),
    "gram-negative-weighted": lambda rng: GramOperator(
        rng.standard_normal((9, N)), -1.0, rng.standard_normal(9)
    ),
    "sum": lambda rng: MatrixSum(Dense(symmetric(rng, N)), low_rank(rng)),
    "scaled": lambda rng: Scaled(Dense(symmetric(rng, N)), 3.0),
    "scaled-negative": lambda rng: Scaled(Dense(symmetric(rng, N)), -3.0),
    "scaled-zero": lambda rng: Scaled(as_symmetric(aslinearoperator(np.eye(N)), "C"), 0.0),
    "operator": lambda rng: as_symmetric(aslinearoperator(symmetric(rng, N)), "C"),
    "operator-matvec": lambda rng: as_symmetric(matvec_only(symmetric(rng, N)), "C"),
}
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@EVERY
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_products_dense_form_and_lower_bound_agree(make, seed):
    rng = np.random.default_rng(seed)
    matrix, V = make(rng), rng.standard_normal((N, 2))
    dense = matrix.dense()
    np.testing.assert_allclose(dense, dense.T, atol=1e-12)
    np.testing.assert_allclose(matrix @ V, dense @ V, atol=1e-11)
    np.testing.assert_allclose(matrix @ V[:, 0], dense @ V[:, 0], atol=1e-11)
    assert (matrix @ V[:, :0]).shape == (N, 0)
    assert matrix.lower <= np.linalg.eigvalsh(dense)[0] + 1e-12 * np.linalg.norm(dense)


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_lower_bound_is_tight_at_large_order(name, monkeypatch):
    monkeypatch.setattr(matrices, "DENSE_ORDER", 10)
    array = symmetric(np.random.default_rng(0), 40)
    matrix = Dense(array) if name == "dense" else Sparse(sp.csr_array(array))
    true = np.linalg.eigvalsh(array)[0]
    assert true - 1e-6 <= matrix.lower <= true + 1e-12


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([[1.0, 2.0], [3.0, 4.0]]), "C must be symmetric"),
        (sp.csr_array([[1.0, 2.0], [3.0, 4.0]]), "C must be symmetric"),
        (np.ones((2, 3)), r"C must be a square matrix, got shape \(2, 3\)"),
        (sp.csr_array(np.ones((2, 3))), "C must be a square matrix"),
        (aslinearoperator(np.ones((2, 3))), "C must be a square matrix"),
        (np.ones(2), "C must be a square matrix"),
        (np.zeros((0, 0)), "C is empty"),
        (sp.csr_array((0, 0)), "C is empty|invalid"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "C contains NaN or infinity"),
        (sp.csr_array([[np.inf, 0.0], [0.0, 1.0]]), "C contains NaN or infinity"),
        (1j * np.eye(2), "C must hold real numbers"),
        (sp.csr_array(1j * np.eye(2)), "C must hold real numbers"),
        (np.eye(2).astype(object), "C must hold real numbers"),
        (np.array([["a", "b"], ["b", "a"]]), "C must hold real numbers"),
        (np.nan, "C is nan, which is not finite"),
        (np.eye(3), "C has order 3, but the problem has order 2"),
        (LowRankPlusIdentity(3, 1.0), "C has order 3, but the problem has order 2"),
    ],
)
def test_rejects_matrix_that_is_not_symmetric(value, message):
    with pytest.raises(ValueError, match=message):
        as_symmetric(value, "C", 2)


@pytest.mark.parametrize("value", [None, 2.0])
def test_number_requires_order(value):
    with pytest.raises(ValueError, match="no matrix determines the order"):
        as_symmetric(value, "B")


def test_low_rank_rejects_inconsistent_shapes():
    with pytest.raises(ValueError, match=r"shape \(4, k\) and k weights"):
        LowRankPlusIdentity(4, 1.0, np.ones((3, 2)))
    with pytest.raises(ValueError, match="k weights"):
        LowRankPlusIdentity(4, 1.0, np.ones((4, 2)), np.ones(3))


INDEFINITE = np.diag([1.0, -0.5, 1.0])


@pytest.mark.parametrize("name", ["A", "B"])
@pytest.mark.parametrize(
    "value",
    [
        INDEFINITE,
        sp.csr_array(INDEFINITE),
        -1.0,
        LowRankPlusIdentity(3, 0.1, np.ones((3, 1)), np.array([-1.0])),
        GramOperator(np.eye(3), -1.0),
        GramOperator(np.eye(3), 1.0, np.array([1.0, -1.0, 1.0])),
    ],
    ids=["dense", "sparse", "number", "low-rank", "gram", "gram-weighted"],
)
def test_rejects_A_or_B_that_is_not_psd(name, value):
    parts = {"A": np.eye(3), "B": np.eye(3), "C": np.eye(3), name: value}
    with pytest.raises(ValueError, match=f"{name} must be positive semidefinite"):
        problems.quadratic(**parts)


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((4, 4)),
        psd(np.random.default_rng(0), 4, 1),
        np.outer([-np.cos(1.0), 1.0, 0.0, 0.0], [-np.cos(1.0), 1.0, 0.0, 0.0]),
        1e-12 * psd(np.random.default_rng(1), 4, 2),
        1e12 * psd(np.random.default_rng(2), 4, 2),
        LowRankPlusIdentity(4, 0.0, np.ones((4, 2)), np.array([2.0, -1.0])),
    ],
    ids=["zero", "rank one", "hidden from the probe", "tiny", "huge", "low-rank"],
)
def test_accepts_singular_psd_matrix(matrix):
    require_psd(as_symmetric(matrix, "A"), "A")


def test_integer_and_float32_matrices_are_converted_to_float64():
    L = np.random.default_rng(0).standard_normal((3, 2))
    exact = GramQuadratic(2 * np.eye(3), np.eye(3), np.eye(3))
    for dtype in (int, np.float32, np.uint8):
        objective = GramQuadratic(*(k * np.eye(3, dtype=dtype) for k in (2, 1, 1)))
        assert objective.value(objective.image(L)) == pytest.approx(exact.value(exact.image(L)))


def test_composite_rejects_C_of_another_order():
    with pytest.raises(ValueError, match="C has order 4, but the problem has order 3"):
        Composite(Entries([[0, 1]], 3), Squared(), np.eye(4))
