"""The nearest PSD matrix: against projections and an independent conic solver."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian.problems import nearest


def symmetric(n: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((n, n))
    return 0.5 * (A + A.T)


def projected(T: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(T)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def with_gaps(n: int) -> np.ndarray:
    T = symmetric(n) + 2 * np.eye(n)
    gap = np.triu(np.random.default_rng(1).random((n, n)) < 0.4, 1)
    T[gap | gap.T] = np.nan
    return T


def test_all_entries_known_is_the_projection():
    T = symmetric(8)
    result = gm.minimize(nearest(T), tol=1e-10)
    np.testing.assert_allclose(result.matrix(), projected(T), atol=1e-4)
    assert result.value == pytest.approx(0.5 * np.sum((projected(T) - T) ** 2), rel=1e-8)


def test_a_linear_term_shifts_the_target():
    """½‖M − T‖² + ⟨C, M⟩ is ½‖M − (T − C)‖² up to a constant."""
    T, C = symmetric(6), symmetric(6, seed=5)
    result = gm.minimize(nearest(T, C=C), tol=1e-10)
    np.testing.assert_allclose(result.matrix(), projected(T - C), atol=1e-4)


def test_gaps_and_weights_agree_with_a_conic_solver():
    pytest.importorskip("clarabel")
    T = with_gaps(7)
    W = np.abs(symmetric(7, seed=3))
    problem = nearest(T, weights=W, C=0.1)
    ours = gm.minimize(problem, tol=1e-9)
    theirs = gm.minimize(problem, "conic", tol=1e-9)
    assert ours.value == pytest.approx(theirs.value, rel=1e-6, abs=1e-8)
    assert ours.certificate.relative_gap < 1e-6


def test_the_value_is_the_formula():
    T, W, C = with_gaps(6), np.abs(symmetric(6, seed=2)), symmetric(6, seed=4)
    L = np.random.default_rng(0).standard_normal((6, 2))
    M = L @ L.T
    expected = 0.5 * np.nansum(W * (M - T) ** 2) + np.sum(C * M)
    assert nearest(T, weights=W, C=C).value(L) == pytest.approx(expected)


def test_missing_sparse_entries_are_unknown():
    T = with_gaps(6)
    known = ~np.isnan(T)
    i, j = np.nonzero(known)
    stored = sp.csr_matrix((T[known], (i, j)), shape=T.shape)
    L = np.random.default_rng(0).standard_normal((6, 3))
    assert nearest(stored).value(L) == pytest.approx(nearest(T).value(L))


def test_lists_are_matrices_and_masked_entries_are_unknown():
    T, W = with_gaps(6), np.abs(symmetric(6, seed=2))
    L = np.random.default_rng(0).standard_normal((6, 2))
    expected = nearest(T, weights=W).value(L)
    assert nearest(T.tolist(), weights=W.tolist()).value(L) == pytest.approx(expected)
    masked = np.ma.masked_array(np.where(np.isnan(T), 9.0, T), np.isnan(T))
    assert nearest(masked, weights=W).value(L) == pytest.approx(expected)


def test_a_fixed_trace_is_kept():
    result = gm.minimize(nearest(symmetric(6), trace=3.0), tol=1e-8)
    assert np.trace(result.matrix()) == pytest.approx(3.0)
    assert result.certificate.relative_gap < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"T": np.ones((2, 3))}, "square"),
        ({"T": np.array([[1.0, 2.0], [3.0, 1.0]])}, "symmetric"),
        ({"T": np.array([[1.0, np.nan], [3.0, 1.0]])}, "symmetric"),
        ({"T": np.array([[1.0, np.inf], [np.inf, 1.0]])}, "not finite"),
        ({"T": np.full((2, 2), np.nan)}, "no known entries"),
        ({"T": [["a", "b"], ["b", "a"]]}, "T must hold real numbers"),
        ({"T": [[1.0, 2.0], [2.0]]}, "T must hold real numbers"),
        ({"T": 1j * np.eye(2)}, "T must hold real numbers"),
        ({"T": [1.0, 2.0]}, "square"),
        ({"T": np.eye(2), "weights": np.ones((3, 3))}, "shape of T"),
        ({"T": np.eye(2), "weights": -np.ones((2, 2))}, "negative"),
        ({"T": np.eye(2), "weights": sp.csr_matrix(np.eye(2))}, "every known entry"),
    ],
)
def test_rejects_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        nearest(**arguments)


@pytest.mark.parametrize("weights", [None, "some"])
def test_unknown_diagonal_entries_free_their_rows(weights):
    """The infimum is that of the other rows, and is approached by an ever larger diagonal."""
    T, W = symmetric(8, seed=1), None
    if weights is None:
        T[[0, 1], [0, 1]] = np.nan
    else:
        W = np.ones((8, 8)) - np.diag([1.0, 1.0, 0, 0, 0, 0, 0, 0])
    infimum = 0.5 * np.sum((projected(T[2:, 2:]) - T[2:, 2:]) ** 2)
    problem = nearest(T, weights=W)
    result = gm.minimize(problem, tol=1e-4)
    assert result.status.converged
    assert result.value == pytest.approx(infimum, rel=1e-4)
    for factor in (result.factor, symmetric(8), np.zeros((8, 1))):
        assert gm.certify(problem, factor).lower_bound <= infimum * (1 + 1e-12)


def test_entries_of_weight_zero_are_unknown():
    T, W = symmetric(6), np.ones((6, 6))
    W[1, 2] = W[2, 1] = W[3, 3] = 0.0
    unknown = np.where(W > 0, T, np.nan)
    L = np.random.default_rng(0).standard_normal((6, 2))
    weighted, missing = nearest(T, weights=W), nearest(unknown)
    assert weighted.objective.map.size == missing.objective.map.size
    assert weighted.value(L) == pytest.approx(missing.value(L))
