"""k-NN regression in a learned metric: scikit-learn's checks, gains, the choice, files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.metric import MetricRegressor

X, y = make_friedman1(300, n_features=12, noise=1.0, random_state=0)
A, B, a, b = X[::2], X[1::2], y[::2], y[1::2]


@pytest.fixture(scope="module")
def fitted():
    return MetricRegressor().fit(A, a)


@parametrize_with_checks([MetricRegressor()])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_r2_is_higher_than_by_euclid(fitted):
    assert fitted.score(B, b) > KNeighborsRegressor(5).fit(A, a).score(B, b) + 0.05
    assert fitted.path_.gained and fitted.certificate_.relative_gap <= fitted.tol
    assert fitted.path_.errors[fitted.path_.chosen] < fitted.path_.errors[0]


def test_it_is_k_nn_in_the_learned_metric(fitted):
    near = KNeighborsRegressor(5).fit(fitted.transform(A), a)
    np.testing.assert_allclose(fitted.predict(B), near.predict(fitted.transform(B)))
    gaps = fitted.transform(B[:1]) - fitted.transform(B[1:2])
    M, gap = fitted.get_mahalanobis_matrix(), B[0] - B[1]
    np.testing.assert_allclose(gap @ M @ gap, np.sum(gaps**2))


@pytest.mark.parametrize("kind", ["noise", "constant", "few"])
def test_keeps_euclidean_metric_if_no_candidate_is_better(kind):
    rng = np.random.default_rng(0)
    y = np.ones(150) if kind == "constant" else rng.normal(size=150)
    rows = slice(15) if kind == "few" else slice(None)
    found = MetricRegressor().fit(A[rows], y[rows])
    assert hasattr(found, "path_") == (kind == "noise")
    M = found.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(len(M)), atol=1e-9 * M[0, 0])


@pytest.mark.parametrize(
    ("shuffled", "scale", "unit"),
    [(True, 1, 1), (False, 1e3, 1), (False, 1, 1e3), (False, 1, 1e200)],
)
def test_predictions_are_independent_of_order_and_units(fitted, shuffled, scale, unit):
    order = np.random.default_rng(0).permutation(len(a)) if shuffled else slice(None)
    found = MetricRegressor().fit(scale * A[order], unit * a[order])
    np.testing.assert_allclose(found.predict(scale * B) / unit, fitted.predict(B), rtol=1e-6)


def test_both_kernels_of_the_targets_are_tried(fitted):
    names = fitted.path_.names
    assert sum("linear" in name for name in names) == sum("rbf" in name for name in names) == 4
    assert fitted.path_.errors.min() <= fitted.path_.nested_error < fitted.path_.errors[0]
    assert "with the choice repeated" in str(fitted.path_)


def test_it_is_saved_with_its_samples(tmp_path):
    frame = pd.DataFrame(A, columns=[f"c{k}" for k in range(12)])
    model = MetricRegressor(weights="distance").fit(frame, a)
    model.save(tmp_path / "m.gramian")
    again = gm.load(tmp_path / "m.gramian")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.feature_names_in_.tolist() == list(frame)
    assert str(again.path_) == str(model.path_)


@pytest.mark.parametrize(("name", "value"), [("n_neighbors", 0), ("weights", "near"), ("tol", 2.0)])
def test_rejects_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        MetricRegressor(**{name: value}).fit(A, a)
