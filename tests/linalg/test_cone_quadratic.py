"""The small quadratic program over the cone: optimality conditions and known optima."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.linalg import Slice, cone_quadratic
from gramian.linalg.svec import smat, svec, symmetric_kron, triangle_size
from tests.cases import psd, symmetric


def random_quadratic(seed, order, rank=None):
    rng = np.random.default_rng(seed)
    size = triangle_size(order)
    return psd(rng, size, rank), rng.standard_normal(size), svec(psd(rng, order))


def assert_optimal(H, gradient, here, S, trace=None):
    """∇ − yI ⪰ 0 and complementary to S, which is in the cone."""
    order = S.shape[0]
    G = smat(H @ (svec(S) - here) + gradient, order)
    y = 0.0 if trace is None else float(np.sum(G * S)) / trace
    G = G - y * np.eye(order)
    size = float(np.linalg.norm(gradient))
    assert np.linalg.eigvalsh(S)[0] >= -1e-12
    assert np.linalg.eigvalsh(G)[0] >= -1e-6 * size
    assert abs(np.sum(G * S)) <= 1e-6 * size * (1 + np.trace(S))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_the_optimality_conditions_hold(seed, order):
    H, gradient, here = random_quadratic(seed, order)
    H = H + 1e-3 * np.eye(here.size)
    assert_optimal(H, gradient, here, cone_quadratic(H, gradient, here).S)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 9), st.floats(1e-3, 1e3))
def test_the_trace_is_kept_and_the_optimality_conditions_hold(seed, order, trace):
    H, gradient, here = random_quadratic(seed, order, rank=2)
    S = cone_quadratic(H, gradient, here, Slice(np.eye(order), trace)).S
    assert np.trace(S) == pytest.approx(trace, rel=1e-9)
    if trace <= 10:
        assert_optimal(H, gradient, here, S, trace)


def test_the_projection_onto_the_cone_is_found():
    """½‖S − K‖² is minimal at P₊(K)."""
    K = symmetric(np.random.default_rng(0), 8)
    values, vectors = np.linalg.eigh(K)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    zero = np.zeros(triangle_size(8))
    S = cone_quadratic(np.eye(zero.size), -svec(K), zero).S
    np.testing.assert_allclose(S, nearest, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_invariant_to_scale(scale, unit):
    H, gradient, here = random_quadratic(5, 6)
    plain = cone_quadratic(H, gradient, here).S
    S = cone_quadratic(scale * H, scale * gradient * unit, here * unit).S
    np.testing.assert_allclose(S / unit, plain, atol=1e-6 * np.trace(plain))


def test_damping_keeps_the_solution_near_the_start():
    H, gradient, here = random_quadratic(6, 5, rank=1)
    moves = [
        np.linalg.norm(svec(cone_quadratic(H, gradient, here, damping=d).S) - here)
        for d in (1e-6, 1e-2, 1e2)
    ]
    assert moves[0] > moves[1] > moves[2]


def test_the_gradient_is_definite_at_some_point_inside():
    H, gradient, here = random_quadratic(7, 6)
    found = cone_quadratic(H, gradient, here)
    gradients = [smat(H @ (svec(X) - here) + gradient, 6) for X in found.inside]
    definite = [
        np.sum(G * X)
        for G, X in zip(gradients, found.inside, strict=True)
        if np.linalg.eigvalsh(G)[0] > 0
    ]
    assert min(definite) < 1e-6


def test_unbounded_problem_gives_large_solution():
    order = 3
    H = np.zeros((6, 6))
    H[0, 0] = 1.0
    S = cone_quadratic(H, -svec(np.eye(order)), np.zeros(6)).S
    assert np.all(np.isfinite(S))
    assert np.trace(S) > 1e6


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_symmetric_kron_is_the_product(seed, order):
    rng = np.random.default_rng(seed)
    P, Q, S = symmetric(rng, order), symmetric(rng, order), symmetric(rng, order)
    expected = svec(0.5 * (P @ S @ Q + Q @ S @ P))
    np.testing.assert_allclose(symmetric_kron(P, Q) @ svec(S), expected, atol=1e-10)
    np.testing.assert_allclose(symmetric_kron(P, P) @ svec(S), svec(P @ S @ P), atol=1e-10)
