"""The width of a Gaussian kernel that is given none depends on how far apart the samples lie."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from gramian.estimators.kernel_functions import with_bandwidth
from gramian.kernel import InductiveKernel, KernelKMeans
from gramian.metric import KTA, DMLEig
from gramian.spectral import LowRankKernel
from tests.slow import slow

X, CLASSES = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
OFFSET = X + 1000.0 * (np.arange(X.shape[1]) == 4)
ROTATION = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0]
CHANGES = {
    "one column with an offset": OFFSET,
    "all columns shifted": X + 50.0,
    "rotated": X @ ROTATION,
    "permuted columns": X[:, ::-1],
    "constant columns": np.hstack([X, np.full((len(X), 7), 0.1)]),
    "a large constant": np.column_stack([X, np.full(len(X), 1e6)]),
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_width_is_that_of_centred_samples(how, form):
    expected = 1.0 / (X.shape[1] * np.var(X))
    assert with_bandwidth("rbf", None, form(CHANGES[how]))["gamma"] == pytest.approx(expected)
    scaled = with_bandwidth("rbf", None, form(2.0**20 * CHANGES[how]))["gamma"]
    assert scaled == pytest.approx(2.0**-40 * expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_samples_that_are_all_the_same_have_a_width(form):
    assert with_bandwidth("rbf", None, form(np.full((50, 3), 0.1)))["gamma"] == 1.0


def test_given_width_is_not_changed():
    assert with_bandwidth("rbf", {"gamma": 0.5}, X) == {"gamma": 0.5}


@pytest.mark.parametrize("how", CHANGES)
def test_clusters_are_the_same(how):
    one, other = (
        KernelKMeans(n_clusters=2, kernel="rbf", n_init=20).fit(data) for data in (X, CHANGES[how])
    )
    assert other.inertia_ == pytest.approx(one.inertia_, rel=1e-6)
    sizes = [np.sort(np.bincount(found.labels_)).tolist() for found in (one, other)]
    assert sizes[0] == sizes[1]
    np.testing.assert_array_equal(other.predict(CHANGES[how]), other.labels_)


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize(
    "make",
    [InductiveKernel, slow(lambda: KTA(kernel="rbf")), slow(lambda: DMLEig(kernel="rbf"))],
    ids=["InductiveKernel", "KTA", "DMLEig"],
)
def test_learned_kernels_are_the_same(make, how):
    one, other = (make().fit(data, CLASSES) for data in (X, CHANGES[how]))
    mapped = one.transform(X), other.transform(CHANGES[how])
    near, far = (np.linalg.norm(rows[:, None] - rows[:60], axis=2) for rows in mapped)
    np.testing.assert_allclose(far, near, atol=1e-3 * near.max())


@pytest.mark.parametrize("how", [how for how in CHANGES if how != "rotated"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_kernel_of_low_rank_is_the_same(kernel, how):
    one, other = (
        LowRankKernel(n_components=20, kernel=kernel).fit(data) for data in (X, CHANGES[how])
    )
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-8)
    grams = [found.transform(data[:9]) for found, data in ((one, X), (other, CHANGES[how]))]
    np.testing.assert_allclose(grams[1] @ grams[1].T, grams[0] @ grams[0].T, atol=1e-8)
