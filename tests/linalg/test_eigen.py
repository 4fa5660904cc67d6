"""Leading eigenpairs compared with dense eigenvalue decompositions, with degenerate cases."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from gramian.linalg import METHODS, block_lanczos, leading_eigenpair

NEWTON = ["newton-lanczos", "newton-cg"]
every_method = pytest.mark.parametrize("method", METHODS)


def symmetric(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return (a + a.T) / 2


def with_spectrum(values, seed=0):
    n = len(values)
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    a = (q * values) @ q.T
    return (a + a.T) / 2, q


def assert_leading(pair, a, tol=1e-6):
    values = np.linalg.eigvalsh(a)
    norm = np.abs(values).max()
    assert pair.converged
    assert np.linalg.norm(pair.vector) == pytest.approx(1.0)
    assert pair.residual <= tol * norm * (1 + 1e-9)
    assert pair.value == pytest.approx(values[-1], abs=tol * norm + 1e-300)
    true_residual = np.linalg.norm(a @ pair.vector - pair.value * pair.vector)
    assert pair.residual == pytest.approx(true_residual, abs=1e-12 * norm)


@every_method
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 150])
def test_random_dense(method, n):
    a = symmetric(n, seed=n)
    assert_leading(leading_eigenpair(a, method=method, random_state=0), a)


@every_method
@pytest.mark.parametrize("wrap", [sp.csr_array, sp.csc_matrix, aslinearoperator])
def test_operator_kinds(method, wrap):
    a = symmetric(120) * (np.abs(symmetric(120, 1)) > 0.8)
    assert_leading(leading_eigenpair(wrap(a), method=method, random_state=0), a)


@every_method
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8, 1e-11, 0.0])
def test_tolerance_is_respected(method, tol):
    a = symmetric(120)
    pair = leading_eigenpair(a, method=method, tol=tol, random_state=0)
    assert pair.converged
    assert pair.residual <= max(tol, 1e-14) * np.abs(np.linalg.eigvalsh(a)).max()


@every_method
@pytest.mark.parametrize("n", [1, 2, 100])
@pytest.mark.parametrize("multiple", [0.0, 2.5, -3.0])
def test_multiples_of_the_identity(method, n, multiple):
    pair = leading_eigenpair(multiple * np.eye(n), method=method, random_state=0)
    assert pair.converged
    assert pair.value == pytest.approx(multiple)
    assert pair.residual <= 1e-12


@every_method
@pytest.mark.parametrize("top", [0.0, -1.0, 1e-9])
def test_leading_eigenvalue_not_positive(method, top):
    a, _ = with_spectrum(np.linspace(-3.0, -1.5, 100))
    shifted = a + 1.5 * np.eye(100) + top * np.eye(100)
    assert_leading(leading_eigenpair(shifted, method=method, random_state=0), shifted)


@every_method
def test_large_negative_eigenvalue_is_ignored(method):
    a, _ = with_spectrum(np.r_[-100.0, np.linspace(-1, 1, 99)])
    assert_leading(leading_eigenpair(a, method=method, tol=1e-8, random_state=0), a, tol=1e-8)


@every_method
def test_clustered_leading_eigenvalues(method):
    a, _ = with_spectrum(np.r_[1.0, 1.0, 1 - 1e-4, np.linspace(-1, 0.9, 97)])
    assert_leading(leading_eigenpair(a, method=method, random_state=0), a)


@every_method
@pytest.mark.parametrize("position", [0, 50, 98])
def test_start_at_another_eigenvector(method, position):
    a, q = with_spectrum(np.linspace(-1, 1, 100))
    pair = leading_eigenpair(a, method=method, v0=q[:, position], random_state=0)
    assert_leading(pair, a)
    assert pair.value == pytest.approx(1.0, abs=1e-8)


@every_method
def test_warm_start_uses_fewer_products(method):
    a = symmetric(200)
    cold = leading_eigenpair(a, method=method, random_state=0)
    warm = leading_eigenpair(a, method=method, v0=cold.vector, random_state=0)
    assert warm.converged
    assert warm.products < cold.products


@every_method
def test_products_are_counted(method):
    class Counting:
        shape = (100, 100)
        count = 0

        def __matmul__(self, v):
            self.count += 1 if v.ndim == 1 else v.shape[1]
            return a @ v

    a, operator = symmetric(100), Counting()
    assert leading_eigenpair(operator, method=method).products == operator.count


@every_method
def test_deterministic(method):
    a = symmetric(100)
    one, two = (leading_eigenpair(a, method=method, random_state=3) for _ in range(2))
    assert one.value == two.value
    np.testing.assert_array_equal(one.vector, two.vector)


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(method, bad):
    a = symmetric(80)
    a[3, 4] = a[4, 3] = bad
    with pytest.raises(FloatingPointError, match="NaN"):
        leading_eigenpair(a, method=method, random_state=0)


@every_method
def test_reports_no_convergence(method):
    a, _ = with_spectrum(1 - np.linspace(0, 1, 300) ** 4)
    pair = leading_eigenpair(a, method=method, tol=1e-12, max_iter=1, random_state=0)
    assert not pair.converged
    assert pair.residual > 1e-12


@every_method
def test_float32_operator(method):
    a = symmetric(150).astype(np.float32)
    pair = leading_eigenpair(a, method=method, random_state=0)
    assert pair.converged
    assert pair.value == pytest.approx(np.linalg.eigvalsh(a)[-1], rel=1e-5)


@every_method
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_extreme_scales(method, scale):
    a = scale * symmetric(100)
    assert_leading(leading_eigenpair(a, method=method, random_state=0), a)


def test_wrong_arguments():
    a = symmetric(5)
    with pytest.raises(ValueError, match="unknown method"):
        leading_eigenpair(a, method="power")
    with pytest.raises(ValueError, match="square"):
        leading_eigenpair(a[:3])
    with pytest.raises(ValueError, match="v0"):
        leading_eigenpair(a, v0=np.ones(4))
    with pytest.raises(ValueError, match="v0"):
        leading_eigenpair(a, v0=np.full(5, np.nan))
    with pytest.raises(ValueError, match="complex"):
        leading_eigenpair(a + 1j)
    with pytest.raises(ValueError, match="k must"):
        block_lanczos(a, 6)


def test_zero_start_is_replaced():
    assert leading_eigenpair(symmetric(100), v0=np.zeros(100), random_state=0).converged


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (40, 3), (150, 1), (150, 6), (150, 80)])
def test_several(n, k):
    a = symmetric(n)
    values, vectors, residuals = block_lanczos(sp.csr_array(a), k, tol=1e-9, random_state=0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:k], atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(
        residuals, np.linalg.norm(a @ vectors - vectors * values, axis=0), atol=1e-12
    )
    assert residuals.max() <= 1e-7


def test_several_with_multiplicity():
    a, _ = with_spectrum(np.r_[np.ones(4), np.linspace(-1, 0.5, 116)])
    values, vectors, _ = block_lanczos(a, 4, random_state=0)
    np.testing.assert_allclose(values, 1.0, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)


newton = st.sampled_from(NEWTON)
seeds = st.integers(0, 1000)


@settings(max_examples=15)
@given(newton, seeds, st.floats(1e-6, 1e6), st.floats(-50, 50))
def test_scale_and_shift(method, seed, scale, shift):
    a = symmetric(30, seed)
    moved = scale * (a + shift * np.eye(30))
    base = leading_eigenpair(a, method=method, tol=1e-9, random_state=seed)
    pair = leading_eigenpair(moved, method=method, tol=1e-9, random_state=seed)
    assert pair.value == pytest.approx(scale * (base.value + shift), abs=1e-7 * scale)


@settings(max_examples=15)
@given(newton, seeds)
def test_permutation_and_orthogonal_similarity(method, seed):
    a = symmetric(30, seed)
    _, q = with_spectrum(np.ones(30), seed + 1)
    order = np.random.default_rng(seed).permutation(30)
    value = leading_eigenpair(a, method=method, tol=1e-9, random_state=seed).value
    turned = leading_eigenpair(q @ a @ q.T, method=method, tol=1e-9, random_state=seed)
    permuted = leading_eigenpair(a[order][:, order], method=method, tol=1e-9, random_state=seed)
    assert turned.value == pytest.approx(value, abs=1e-8)
    assert permuted.value == pytest.approx(value, abs=1e-8)


@settings(max_examples=25)
@given(st.sampled_from(list(METHODS)), seeds, st.integers(1, 12))
def test_residual_interval_holds_an_eigenvalue(method, seed, n):
    a = symmetric(n, seed)
    pair = leading_eigenpair(a, method=method, random_state=seed)
    distance = np.abs(np.linalg.eigvalsh(a) - pair.value).min()
    assert distance <= pair.residual + 1e-13 * np.abs(a).sum()
