"""Conjugate gradients: solutions, preconditioners, many systems at once, negative curvature."""

import numpy as np
import pytest

from gramian.linalg.conjugate_gradient import conjugate_gradient


@pytest.fixture
def definite():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((12, 12))
    return B @ B.T + np.diag(np.logspace(0, 3, 12)), rng.standard_normal(12)


@pytest.mark.parametrize("scaled", [False, True])
def test_solves_a_definite_system(definite, scaled):
    A, b = definite
    scale = np.diag(A)
    found = conjugate_gradient(
        A.__matmul__,
        b,
        steps=100,
        tol=1e-12,
        precondition=(lambda r: r / scale) if scaled else None,
    )
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-8)
    np.testing.assert_allclose(found.residual, b - A @ found.x, atol=1e-9)
    assert found.products < 100 and found.curved is None


def test_stops_at_the_requested_residual(definite):
    A, b = definite
    found = conjugate_gradient(A.__matmul__, b, steps=100, residual=1e-3)
    assert np.linalg.norm(b - A @ found.x) <= 1.001e-3
    before = conjugate_gradient(A.__matmul__, b, steps=found.products - 1)
    assert np.linalg.norm(before.residual) > 1e-3


@pytest.mark.parametrize("axis", [0, 1])
def test_systems_are_independent(definite, axis):
    A, _ = definite
    rng = np.random.default_rng(1)
    B = rng.standard_normal((12, 5)) * np.logspace(-3, 3, 5)
    B[:, 2] = 0.0
    product = A.__matmul__ if axis == 0 else (lambda V: V @ A)
    found = conjugate_gradient(product, B if axis == 0 else B.T, steps=100, tol=1e-6, axis=axis).x
    for k, x in enumerate(found.T if axis == 0 else found):
        alone = conjugate_gradient(A.__matmul__, B[:, k], steps=100, tol=1e-6).x
        assert np.linalg.norm(x - alone) <= 1e-5 * np.linalg.norm(alone)


def test_zero_right_side_needs_no_product():
    found = conjugate_gradient(np.eye(3).__matmul__, np.zeros(3), steps=5)
    assert found.products == 0 and not found.x.any() and found.curved is None


def test_negative_curvature_ends_the_iteration():
    A, b = np.diag([3.0, 1.0, -1.0]), np.array([1.0, 1.0, 0.1])
    found = conjugate_gradient(A.__matmul__, b, steps=20, tol=1e-10)
    assert found.products > 1 and found.curved @ A @ found.curved <= 0
    assert b @ found.x > 0.5 * found.x @ A @ found.x  # ½xᵀAx − bᵀx has decreased


def test_returns_a_first_direction_of_negative_curvature():
    b = np.array([1.0, 2.0])
    found = conjugate_gradient(lambda p: -p, b, steps=20)
    np.testing.assert_array_equal(found.x, b)
    np.testing.assert_array_equal(found.residual, 2 * b)
    assert found.curved is not None and found.products == 1
