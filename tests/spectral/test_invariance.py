"""A low-rank kernel does not depend on the order and the origin of the samples."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from gramian.spectral import LowRankKernel

RNG = np.random.default_rng(0)
X = StandardScaler().fit_transform(load_wine().data)
N, D = X.shape
ORDER = RNG.permutation(N)
ROTATION = np.linalg.qr(RNG.normal(size=(D, D)))[0]
CHANGES = {
    "permuted columns": lambda X: X[:, ::-1],
    "shifted": lambda X: X + 1e4,
    "rotated": lambda X: X @ ROTATION,
    "constant columns": lambda X: np.column_stack([X, np.full((len(X), 2), [0.1, 1e4])]),
    "nothing of the samples": lambda X: X,
}
NEW = X[:20] + 0.1


def grams(fitted, new):
    left = fitted.transform(new)
    return fitted.kernel_factor_ @ fitted.kernel_factor_.T, left @ fitted.kernel_factor_.T


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("n_components", [5, 30])
def test_result_is_invariant(n_components, how):
    expected = grams(LowRankKernel(n_components=n_components).fit(X), NEW)
    fitted = LowRankKernel(n_components=n_components).fit(CHANGES[how](X[ORDER]))
    whole, across = grams(fitted, CHANGES[how](NEW))
    np.testing.assert_allclose(whole, expected[0][np.ix_(ORDER, ORDER)], atol=1e-7)
    np.testing.assert_allclose(across, expected[1][:, ORDER], atol=1e-7)


@pytest.mark.parametrize("power", [-30, 30])
def test_gamma_scales_with_the_samples(power):
    expected = grams(LowRankKernel(n_components=10, gamma=0.1).fit(X), NEW)
    fitted = LowRankKernel(n_components=10, gamma=0.1 * 4.0**-power).fit(2.0**power * X)
    for one, other in zip(grams(fitted, 2.0**power * NEW), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_single_row_agrees_with_batch(kernel):
    fitted = LowRankKernel(n_components=10, kernel=kernel).fit(X)
    alone = np.concatenate([fitted.transform(row[None]) for row in NEW])
    np.testing.assert_allclose(alone, fitted.transform(NEW), rtol=1e-9, atol=1e-10)
