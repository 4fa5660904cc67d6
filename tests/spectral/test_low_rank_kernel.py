"""LowRankKernel against dense numpy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels
from sklearn.preprocessing import StandardScaler

from gramian.spectral import LowRankKernel

X = StandardScaler().fit_transform(load_wine().data)
NEW = X[:20] + 0.1


def dense_kernel(model):
    told = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    told = {name: value for name, value in told.items() if value is not None}
    if callable(model.kernel):
        return pairwise_kernels(X, metric=model.kernel)
    return pairwise_kernels(X, metric=model.kernel, filter_params=True, **told)


def product(x, z):
    return float(x @ z) ** 2


MODELS = {
    "rbf": LowRankKernel(n_components=20, gamma=0.05, lam=0.3),
    "linear": LowRankKernel(n_components=6, kernel="linear", lam=0.1),
    "poly": LowRankKernel(n_components=15, kernel="poly", degree=2, coef0=1.0, lam=2.0),
    "laplacian": LowRankKernel(n_components=10, kernel="laplacian"),
    "callable": LowRankKernel(n_components=5, kernel=product),
    "lro": LowRankKernel(n_components=3, kernel="linear", solver="lro", tol=1e-9),
}


@pytest.mark.parametrize("name", MODELS)
def test_against_dense(name):
    model = MODELS[name].fit(X)
    K = dense_kernel(model)
    values, vectors = np.linalg.eigh(K)
    r = model.n_components
    best = (vectors[:, -r:] * values[-r:]) @ vectors[:, -r:].T
    L = model.kernel_factor_
    assert L.shape == (len(X), r)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:r], rtol=1e-8)
    np.testing.assert_allclose(L @ L.T, best, atol=1e-6 * values[-1])
    error = np.abs(np.linalg.eigvalsh(K - L @ L.T)).sum()
    assert model.approximation_error_ == pytest.approx(error, rel=1e-6)
    shifted = L @ L.T + model.lam * np.eye(len(X))
    for b in (X[:, 0], X[:, :3]):
        np.testing.assert_allclose(model.solve(b), np.linalg.solve(shifted, b), rtol=1e-7)
    assert model.logdet() == pytest.approx(np.linalg.slogdet(shifted)[1], rel=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_training_points_are_mapped_to_the_factor(name):
    model = MODELS[name].fit(X)
    size = np.max(np.abs(model.kernel_factor_))
    np.testing.assert_allclose(model.transform(X), model.kernel_factor_, atol=1e-7 * size)
    np.testing.assert_array_equal(model.fit_transform(X), model.kernel_factor_)


def test_new_points_extend_the_kernel():
    """At full rank, Nyström's formula gives k(x, X) K⁻¹ k(X, z)."""
    model = LowRankKernel(n_components=len(X), gamma=0.5).fit(X)
    between = model.transform(NEW) @ model.kernel_factor_.T
    np.testing.assert_allclose(
        between, pairwise_kernels(NEW, X, metric="rbf", gamma=0.5), atol=1e-6
    )


def test_precomputed():
    K = laplacian_kernel(X)
    model = LowRankKernel(n_components=8, kernel="precomputed").fit(K)
    same = LowRankKernel(n_components=8, kernel="laplacian").fit(X)
    np.testing.assert_allclose(model.kernel_factor_, same.kernel_factor_, atol=1e-10)
    np.testing.assert_allclose(
        model.transform(laplacian_kernel(NEW, X)), same.transform(NEW), atol=1e-10
    )


def test_indefinite_kernels_keep_their_positive_part():
    K = np.diag([3.0, 1.0, -2.0, -5.0])
    model = LowRankKernel(n_components=4, kernel="precomputed").fit(K)
    np.testing.assert_allclose(model.kernel_factor_ @ model.kernel_factor_.T, np.diag([3, 1, 0, 0]))


def test_linear_kernel_is_not_formed():
    wide = sp.random(3000, 5000, 0.002, random_state=0, format="csr")
    model = LowRankKernel(n_components=3, kernel="linear", tol=1e-8).fit(wide)
    singular = sp.linalg.svds(wide, k=3, random_state=0)[1][::-1]
    np.testing.assert_allclose(model.eigenvalues_, singular**2, rtol=1e-6)
    np.testing.assert_allclose(model.transform(wide), model.kernel_factor_, atol=1e-6)


def test_frames():
    model = LowRankKernel(n_components=2).set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    out = model.fit_transform(frame)
    assert list(out.columns) == ["lowrankkernel0", "lowrankkernel1"]
    assert list(model.get_feature_names_out()) == list(out.columns)
    assert list(model.transform(frame).columns) == list(out.columns)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"n_components": 0}, X, "n_components"),
        ({"n_components": 2.5}, X, "n_components"),
        ({"lam": 0.0}, X, "lam"),
        ({"kernel": "gauss"}, X, "unknown kernel"),
        ({"kernel": "precomputed"}, X, "square"),
        ({"kernel": "precomputed"}, np.triu(np.ones((4, 4))), "symmetric"),
        ({"kernel": "linear"}, np.zeros((5, 3)), "no positive eigenvalue"),
        ({}, sp.csr_array((100_000, 3)), "80 GB"),
    ],
)
def test_rejects_bad_input(options, data, message):
    with pytest.raises(ValueError, match=message):
        LowRankKernel(**options).fit(data)


def test_rejects_right_side_of_wrong_length():
    with pytest.raises(ValueError, match="178 samples"):
        MODELS["rbf"].fit(X).solve(np.ones(5))


def test_rejects_masked_arrays():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        LowRankKernel(n_components=2).fit(np.ma.masked_array(X, X > 1))
