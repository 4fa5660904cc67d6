"""k-NN in a learned metric: scikit-learn's checks, probabilities, grids, files."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.metric import KTA, DMLEig, MetricClassifier, MetricRegressor

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)


@parametrize_with_checks([MetricClassifier(metric=KTA())])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_k_nn_in_the_learned_metric():
    model = MetricClassifier(metric=KTA(lam=0.1), n_neighbors=5).fit(X[::2], y[::2])
    metric = KTA(lam=0.1).fit(X[::2], y[::2])
    plain = KNeighborsClassifier(5).fit(metric.transform(X[::2]), y[::2])
    np.testing.assert_array_equal(model.predict(X), plain.predict(metric.transform(X)))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(metric.transform(X)))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.certificate_.relative_gap <= 1e-6 and model.result_.status.converged


def test_it_helps_on_wine():
    plain = cross_val_score(KNeighborsClassifier(3), X, y, cv=10).mean()
    assert cross_val_score(MetricClassifier(), X, y, cv=10).mean() > plain


def test_grids_reach_the_metric():
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), MetricClassifier(metric=KTA())),
        {"metricclassifier__metric__lam": [1e-3, 1.0], "metricclassifier__n_neighbors": [1, 5]},
        cv=3,
    ).fit(X, y)
    assert grid.best_score_ > 0.95


@pytest.mark.parametrize("metric", [None, DMLEig(shrinkage=0.0)])
def test_it_is_saved_with_its_metric(metric, tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(13)])
    model = MetricClassifier(metric=metric).fit(frame[::3], np.array(["a", "b", "c"])[y[::3]])
    model.save(tmp_path / "m.gramian")
    again = gm.load(tmp_path / "m.gramian")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.feature_names_in_.tolist() == list(frame)
    whole = make_pipeline(StandardScaler(), MetricClassifier(metric=KTA(lam=0.1))).fit(X, y)
    gm.save(whole, tmp_path / "p.gramian")
    np.testing.assert_allclose(
        gm.load(tmp_path / "p.gramian").predict_proba(X), whole.predict_proba(X)
    )


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("n_neighbors", 0, "n_neighbors must be a whole number of at least 1, got 0"),
        ("weights", "dist", 'weights must be "uniform" or "distance", got \'dist\''),
        ("metric", "euclidean", "such as gramian.metric.KTA.*got 'euclidean'.*KNeighborsClass"),
        ("metric", KTA, "such as gramian.metric.KTA"),
    ],
)
def test_rejects_bad_parameters_before_the_metric_is_fitted(parameter, value, message):
    model = MetricClassifier().set_params(**{parameter: value})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "metric_")


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("model", [MetricClassifier(metric=KTA(lam=0.1)), MetricRegressor()])
def test_frames_as_output_of_transformers_do_not_matter(model, container):
    expected = clone(model).fit(X[::4], y[::4]).predict(X)
    with config_context(transform_output=container):
        np.testing.assert_array_equal(clone(model).fit(X[::4], y[::4]).predict(X), expected)
