"""The value of each problem agrees with its displayed formula, including constants."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import gramian as gm
from gramian import problems
from gramian.objectives import gram_quadratic
from gramian.objectives.dense import value_dense
from gramian.problems import metric, moments
from gramian.problems.moments import weighted_gram
from tests.cases import LABELS, X, Y, psd, signed_scatter, symmetric

L = np.random.default_rng(0).standard_normal((X.shape[1], 3))
M = L @ L.T
EYE = np.eye(X.shape[1])
REGULARIZERS = {
    "identity": np.sum((M - EYE) ** 2),
    "frobenius": np.sum(M * M),
    "trace": np.trace(M),
}
EVERY_REGULARIZER = pytest.mark.parametrize(
    ("regularizer", "penalty"), REGULARIZERS.items(), ids=REGULARIZERS
)
SAMPLES = {
    "dense": X,
    "fortran": np.asfortranarray(X),
    "list": X.tolist(),
    "csr": sp.csr_array(X),
    "csc-matrix": sp.csc_matrix(X),
}
EVERY_SAMPLE = pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
LABELLINGS = {
    "integers": LABELS,
    "words": LABELS.astype(str),
    "list": LABELS.tolist(),
    "floats": LABELS.astype(float),
}


@pytest.fixture(params=[False, True], ids=["formed", "matrix-free"])
def matrix_free(request, monkeypatch):
    """Both sides of the order above which XᵀX is not formed."""
    if request.param:
        for module in (gram_quadratic, metric, moments):
            monkeypatch.setattr(module, "DENSE_ORDER", 2)


@EVERY_REGULARIZER
@EVERY_SAMPLE
def test_kta_equals_its_formula(samples, regularizer, penalty, matrix_free):
    problem = problems.kta(samples, LABELS, 0.3, regularizer=regularizer)
    expected = penalty + 0.3 * np.sum((X @ M @ X.T - Y @ Y.T) ** 2)
    assert problem.value(L) == pytest.approx(expected)
    assert value_dense(problem.objective, M) == pytest.approx(expected)


@EVERY_REGULARIZER
@EVERY_SAMPLE
def test_linear_separation_equals_its_formula(samples, regularizer, penalty, matrix_free):
    problem = problems.linear_separation(samples, LABELS, 0.3, regularizer=regularizer)
    expected = penalty + 0.3 * np.sum(signed_scatter() * M)
    assert problem.value(L) == pytest.approx(expected)
    assert value_dense(problem.objective, M) == pytest.approx(expected)


@pytest.mark.parametrize("labels", LABELLINGS.values(), ids=LABELLINGS)
@pytest.mark.parametrize("make", [problems.kta, problems.linear_separation])
def test_accepts_labels_of_any_type(make, labels):
    assert make(X, labels, 0.3).value(L) == pytest.approx(make(X, LABELS, 0.3).value(L))


@pytest.mark.parametrize("make", [problems.kta, problems.linear_separation])
def test_zero_lam_gives_the_regularizer(make):
    assert make(X, LABELS, 0.0).value(L) == pytest.approx(REGULARIZERS["identity"])


@pytest.mark.parametrize("weights", [None, np.linspace(-1, 1, 5000)], ids=["plain", "weighted"])
@pytest.mark.parametrize("sparse", [False, True])
def test_float32_samples_are_summed_in_float64(sparse, weights):
    rows = (100 + np.random.default_rng(0).standard_normal((5000, 3))).astype(np.float32)
    exact = rows.astype(float)
    expected = exact.T @ (exact if weights is None else exact * weights[:, None])
    found = weighted_gram(sp.csr_array(rows) if sparse else rows, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.sum(exact**2))


def test_kta_of_single_precision_samples():
    single = (X + 20).astype(np.float32)
    value = problems.kta(single, LABELS, 0.3).value(L)
    assert value == pytest.approx(
        problems.kta(single.astype(float), LABELS, 0.3).value(L), rel=1e-10
    )


def test_quadratic_equals_its_formula():
    rng = np.random.default_rng(1)
    A, B, C = psd(rng, 5), psd(rng, 5), symmetric(rng, 5)
    expected = np.trace(A @ M @ A @ M + B @ M @ M + 2 * C @ M)
    assert problems.quadratic(A, B, C).value(L) == pytest.approx(expected)
    assert problems.quadratic(None, 1.0, C).value(L) == pytest.approx(np.trace(M @ M + 2 * C @ M))


K = np.round(3 * symmetric(np.random.default_rng(2), 5)).astype(int)
REPEATED = sp.coo_array((np.ones(4), ([0, 0, 1, 2], [0, 0, 1, 2])), shape=(5, 5))
KERNELS = {
    "dense": K.astype(float),
    "integers": K,
    "list": K.tolist(),
    "unsigned": np.abs(K).astype(np.uint8),
    "signed bytes": (20 * K).astype(np.int8),
    "booleans": K > 0,
    "single": K.astype(np.float32),
    "unsigned sparse": sp.csr_array(np.abs(K).astype(np.uint8)),
    "byte sparse": sp.csr_array((20 * K).astype(np.int8)),
    "low-rank": gm.problems.spectral.as_symmetric(0.5, "K", 5),
    "csr": sp.csr_array(K.astype(float)),
    "csc-matrix": sp.csc_matrix(K.astype(float)),
    "coo with repeats": REPEATED,
    "lil": sp.lil_array(K.astype(float)),
    "dok": sp.dok_array(K.astype(float)),
    "dia": sp.dia_array(K.astype(float)),
    "bsr": sp.bsr_array(K.astype(float)),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_top_eigen_equals_its_formula_for_all_matrix_types(kernel):
    if hasattr(kernel, "dense"):
        dense = kernel.dense()
    else:
        dense = kernel.toarray() if sp.issparse(kernel) else np.asarray(kernel)
    problem = problems.top_eigen(kernel)
    assert problem.value(L) == pytest.approx(np.sum((M - dense.astype(float)) ** 2))


def test_top_eigen_of_an_operator_omits_the_constant():
    problem = problems.top_eigen(aslinearoperator(K.astype(float)))
    assert problem.formula == "‖M − K‖² − ‖K‖²"
    assert problem.value(L) == pytest.approx(np.sum((M - K) ** 2) - np.sum(K * K))
    optimum = -np.sum(np.maximum(np.linalg.eigvalsh(K), 0.0) ** 2)
    assert gm.minimize(problem).value == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("dtype", [int, np.float32, float])
def test_value_accepts_factors_of_any_real_dtype(dtype):
    problem = problems.top_eigen(np.eye(3))
    assert problem.value(np.ones((3, 1), dtype=dtype)) == pytest.approx(6.0)
