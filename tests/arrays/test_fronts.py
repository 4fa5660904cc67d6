"""Multifrontal factors compared with dense ones: signs, solves and error bounds."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.arrays.fronts import Fronts, elimination


def sparse_symmetric(rng, n, each):
    ends = rng.integers(0, n, (each * n, 2))
    A = sp.coo_array((rng.standard_normal(len(ends)), ends.T), shape=(n, n))
    return sp.csr_array(A + A.T)


def definite(rng, n, each=1):
    A = sparse_symmetric(rng, n, each)
    reach = np.asarray(abs(A).sum(axis=1)).ravel()
    return sp.csr_array(A + sp.diags_array(reach + rng.uniform(0.1, 1.0, n)))


def triangle(fronts):
    """C."""
    n = fronts.plan.order.size
    return np.linalg.inv(fronts.forward(np.eye(n))[:, fronts.plan.order])


@pytest.mark.parametrize("n", [1, 2, 7, 60, 400])
@pytest.mark.parametrize("each", [0, 1, 3])
def test_factors_solve(n, each):
    rng = np.random.default_rng(n + each)
    A = definite(rng, n, each)
    fronts = Fronts(elimination(A), A)
    assert fronts.usable and fronts.negative == 0
    B = rng.standard_normal((n, 3))
    np.testing.assert_allclose(A @ fronts.solve(B), B, atol=1e-9)
    np.testing.assert_allclose(fronts.forward(A @ fronts.backward(B)), B, atol=1e-9)
    np.testing.assert_allclose(fronts.transposed_times(fronts.backward(B)), B, atol=1e-9)


@pytest.mark.parametrize("weights", [[1.0], [-0.01], [2.0, -0.01, 3.0]])
def test_borders_give_inertia(weights):
    rng = np.random.default_rng(0)
    A, weights = definite(rng, 200), np.array(weights)
    U = 0.1 * rng.standard_normal((200, weights.size))
    for lift in (0.0, 0.3, 2.0):
        S = sp.csr_array(A - lift * sp.eye_array(200))
        whole = S.toarray() + (U * weights) @ U.T
        bordered = sp.csr_array(
            sp.block_array([[S, sp.csr_array(U)], [sp.csr_array(U.T), -np.diag(1 / weights)]])
        )
        fronts = Fronts(elimination(bordered, weights.size), bordered)
        plus = bool(np.linalg.eigvalsh(whole)[0] > 0)
        assert plus == (fronts.usable and fronts.negative == np.sum(weights > 0))
        if plus:
            B = rng.standard_normal((bordered.shape[0], 2))
            np.testing.assert_allclose(bordered @ fronts.solve(B), B, atol=1e-8)


def test_sizes_and_terms_are_those_of_the_factor():
    rng = np.random.default_rng(3)
    A = definite(rng, 150)
    fronts = Fronts(elimination(A), A)
    order, C = fronts.plan.order, triangle(fronts)
    np.testing.assert_allclose(C @ C.T, A.toarray()[np.ix_(order, order)], atol=1e-9)
    np.testing.assert_allclose(fronts.sizes()[order], np.abs(C) @ np.abs(C).T @ np.ones(150))
    assert np.all(fronts.plan.terms[order] >= np.sum(np.abs(C) > 1e-12, axis=1))


def test_indefinite_matrix():
    rng = np.random.default_rng(4)
    A = sp.csr_array(definite(rng, 120) - 2.0 * sp.eye_array(120))
    below = int(np.sum(np.linalg.eigvalsh(A.toarray()) < 0))
    assert below > 0
    fronts = Fronts(elimination(A), A)
    assert not fronts.usable or fronts.negative == below


def test_elimination_order_is_cached():
    A = definite(np.random.default_rng(5), 80)
    assert elimination(A) is elimination(3.0 * A)
