"""Metrics in the feature space of a kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine, make_circles
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.metric import KTA, ClassCollapse, DMLEig
from tests.slow import slow

LEARNERS = (DMLEig, KTA)
KTA_FIRST = pytest.mark.parametrize("learner", [slow(DMLEig), KTA])

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
HALF, REST = np.arange(0, 178, 2), np.arange(1, 178, 2)


def rings():
    """Two rings among four features of noise."""
    circles, y = make_circles(300, noise=0.05, factor=0.5, random_state=0)
    noise = np.random.default_rng(0).normal(scale=0.5, size=(300, 4))
    return train_test_split(np.hstack([circles, noise]), y, random_state=0)


def squares():
    """XOR: the class is the sign of a product."""
    rng = np.random.default_rng(1)
    points = rng.uniform(0.2, 1.0, (300, 2)) * rng.choice([-1, 1], (300, 2))
    samples = np.hstack([points, rng.normal(scale=0.5, size=(300, 3))])
    return train_test_split(samples, (points.prod(axis=1) > 0).astype(int), random_state=0)


def accuracy(model, train, test, y_train, y_test):
    """Of the nearest class mean: a linear map cannot help where the means agree."""
    model.fit(train, y_train)
    nearest = NearestCentroid().fit(model.transform(train), y_train)
    return nearest.score(model.transform(test), y_test)


@KTA_FIRST
@pytest.mark.parametrize("data", ["wine", "wide", slow("breast cancer")])
def test_a_linear_kernel_gives_the_linear_model(learner, data):
    samples, y = X, Y
    if data == "wide":
        samples, y = X[:12], np.arange(12) % 2
    elif data == "breast cancer":
        samples, y = load_breast_cancer(return_X_y=True)
        samples = StandardScaler().fit_transform(samples)
    options = {} if learner is KTA else {"n_neighbors": 2}
    linear = learner(**options).fit(samples, y)
    kernel = learner(kernel="linear", **options).fit(samples, y)
    mapped = linear.transform(samples)
    scale = np.abs(mapped).max()
    np.testing.assert_allclose(kernel.transform(samples), mapped, atol=1e-8 * scale)
    assert kernel.certificate_.relative_gap == pytest.approx(
        linear.certificate_.relative_gap, abs=1e-6
    )


@KTA_FIRST
@pytest.mark.parametrize("data", [slow(rings), squares])
def test_kernel_separates_classes_that_are_not_linearly_separable(learner, data):
    split = data()
    assert accuracy(learner(), *split) < 0.7
    assert accuracy(learner(kernel="rbf"), *split) > 0.85


@pytest.mark.slow
@KTA_FIRST
def test_a_gaussian_kernel_beats_euclid_on_rings(learner):
    train, test, y, y_test = rings()
    model = learner(kernel="rbf").fit(train, y)
    mapped = KNeighborsClassifier(3).fit(model.transform(train), y)
    euclid = KNeighborsClassifier(3).fit(train, y).score(test, y_test)
    assert mapped.score(model.transform(test), y_test) > euclid


@KTA_FIRST
def test_names_functions_and_sparse_samples_are_one_kernel(learner):
    gamma = 0.05
    named = learner(kernel="rbf", kernel_params={"gamma": gamma}).fit(X[HALF], Y[HALF])
    function = learner(kernel=lambda A, B: rbf_kernel(A, B, gamma=gamma)).fit(X[HALF], Y[HALF])
    sparse = clone(named).fit(sp.csr_array(X[HALF]), Y[HALF])
    expected = named.transform(X[REST])
    np.testing.assert_allclose(function.transform(X[REST]), expected, atol=1e-8)
    np.testing.assert_allclose(
        sparse.transform(sp.csr_array(X[REST])), expected, atol=1e-6 * np.abs(expected).max()
    )


@KTA_FIRST
def test_kernel_metric_has_the_methods_of_metrics(learner):
    model = learner(kernel="rbf").fit(X, Y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.dual_components_.shape[1] == 178
    assert not hasattr(model, "components_")
    Z = model.transform(X)
    expected = np.linalg.norm(Z[:5] - Z[5:10], axis=1)
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    np.testing.assert_allclose(model.pair_distance(pairs), expected, rtol=1e-9)
    assert model.get_metric()(X[0], X[5]) == pytest.approx(expected[0])
    with pytest.raises(ValueError, match="no matrix of the features"):
        model.get_mahalanobis_matrix()
    linear = model.set_params(kernel=None).fit(X, Y)
    assert linear.components_.shape[1] == 13
    assert not hasattr(linear, "dual_components_")


def test_a_kernel_metric_is_learned_from_pairs():
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 178, (2, 600))
    pairs = np.column_stack([i, j])[i != j]
    same = Y[pairs[:, 0]] == Y[pairs[:, 1]]
    unique, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    model = DMLEig(kernel="rbf").fit_pairs(unique, same[first], X=X)
    assert np.mean(model.predict(unique, X=X) == same[first]) > 0.9


@pytest.mark.slow
def test_more_samples_continue_from_a_fitted_kernel_metric():
    options = {"kernel": "rbf", "floor": 0.0, "kernel_params": {"gamma": 0.05}, "ridge": 1.0}
    first = DMLEig(**options).fit(X[:-4], Y[:-4])
    cold = DMLEig(**options, tol=1e-6).fit(X, Y)
    warm = DMLEig(**options, tol=1e-6, init=first).fit(X, Y)
    assert warm.result_.value == pytest.approx(cold.result_.value, rel=1e-4)
    with pytest.raises(ValueError, match="init must be fitted with one too"):
        DMLEig(kernel="rbf", init=DMLEig().fit(X, Y)).fit(X, Y)


@pytest.mark.parametrize("kernel", [None, "linear", "rbf"])
def test_same_samples_continue_from_the_last_fit(kernel):
    options = {"kernel": kernel, "floor": 0.0, "shrinkage": 0.0, "ridge": 1.0}
    first = DMLEig(**options, tol=1e-6).fit(X, Y)
    again = DMLEig(**options, tol=1e-6, init=first).fit(X, Y)
    size = abs(first.result_.value)
    assert again.result_.history["value"][0] <= first.result_.value + 1e-3 * size


@pytest.mark.slow
@KTA_FIRST
def test_kernels_are_searched_over_in_a_pipeline(learner):
    name = learner.__name__.lower()
    search = GridSearchCV(
        make_pipeline(learner(kernel="rbf"), KNeighborsClassifier(3)),
        {f"{name}__kernel": [None, "rbf"]},
        cv=2,
    )
    assert search.fit(X, Y).best_score_ > 0.9


@pytest.mark.slow
@KTA_FIRST
def test_the_bandwidth_has_no_scale(learner):
    one = learner(kernel="rbf").fit(X, Y)
    other = learner(kernel="rbf").fit(100 * X, Y)
    np.testing.assert_allclose(other.transform(100 * X[:9]), one.transform(X[:9]), atol=1e-6)


@pytest.mark.slow
def test_accepts_more_components_than_features():
    assert KTA(kernel="rbf", n_components=20).fit(X, Y).transform(X).shape == (178, 20)
    with pytest.raises(ValueError, match="number of samples, 178"):
        KTA(kernel="rbf", n_components=200).fit(X, Y)


@pytest.mark.parametrize("learner", [*LEARNERS, ClassCollapse])
def test_rejects_invalid_kernels(learner, monkeypatch):
    with pytest.raises(ValueError, match="kernel must be None, a function"):
        learner(kernel="round").fit(X, Y)
    with pytest.raises(ValueError, match="must return 178 × 178 finite numbers"):
        learner(kernel=lambda A, B: np.ones(3)).fit(X, Y)
    with pytest.raises(ValueError, match="some not finite"):
        learner(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, Y)
    with pytest.raises(ValueError, match="constant or negative definite"):
        learner(kernel=lambda A, B: np.ones((len(A), len(B)))).fit(X, Y)
    monkeypatch.setattr("gramian.common.memory.memory", lambda: 1e5)
    with pytest.raises(ValueError, match="holds 178 × 178 matrices, which here need"):
        learner(kernel="rbf").fit(X, Y)


@pytest.mark.parametrize("seed", range(4))
def test_copies_that_differ_by_rounding_add_no_direction_to_an_rbf_kernel(seed):
    rng = np.random.default_rng(seed)
    samples, y = rng.normal(size=(60, 300)) + 1.0, np.arange(60) % 3
    copies = np.repeat(samples, 2, axis=0)
    copies = copies * (1 + 1e-15 * rng.uniform(-1, 1, copies.shape))
    learner = KTA(kernel="rbf", kernel_params={"gamma": 0.05}, lam=1e-2)
    learner.fit(copies, np.repeat(y, 2))
    assert learner.dual_components_.shape[0] == 59
    assert np.abs(learner.transform(samples)).max() < 1.5
