"""Weights of samples: they are repetitions, and a sample without any is not there."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from gramian.metric import KTA, LinearSeparation, MetricClassifier

X, Y = make_classification(90, 7, n_informative=5, n_classes=3, random_state=0)
X += 3.0
TIMES = np.random.default_rng(0).integers(0, 4, 90)
WIDE = np.random.default_rng(1).normal(size=(90, 300)) + 1.0  # a span, repeated or not

LEARNERS = [
    KTA(lam=1e-3),
    KTA(lam=1e-3, center=False),
    KTA(lam=1e-3, regularizer="trace"),
    KTA(lam=1e-2, kernel="rbf", kernel_params={"gamma": 0.05}),
    LinearSeparation(lam=1e-3),
    LinearSeparation(regularizer="frobenius"),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("samples", [X, WIDE, sp.csr_array(X)], ids=["tall", "wide", "sparse"])
def test_a_weight_is_a_number_of_repetitions(learner, samples):
    weighted = learner.set_params(tol=1e-8).fit(samples, Y, sample_weight=TIMES)
    value, mapped = weighted.result_.value, weighted.transform(samples)
    repeated = np.repeat(np.arange(90), TIMES)
    again = learner.fit(samples[repeated], Y[repeated])
    assert value == pytest.approx(again.result_.value, rel=1e-6)
    assert again.certificate_.relative_gap <= 1e-8
    there = again.transform(samples)
    np.testing.assert_allclose(
        _distances(mapped), _distances(there), atol=1e-4 * np.abs(_distances(there)).max()
    )


def _distances(mapped):
    return np.sum((mapped[:40] - mapped[40:80]) ** 2, axis=1)


@pytest.mark.parametrize("learner", [KTA(), LinearSeparation()], ids=str)
def test_unit_weights_have_no_effect(learner):
    plain = learner.fit(X, Y).transform(X)
    np.testing.assert_allclose(learner.fit(X, Y, np.ones(90)).transform(X), plain, atol=1e-8)


def test_the_chosen_metric_is_that_of_the_weights():
    rare = (Y != 2) | (np.arange(90) % 10 == 0)
    balanced = compute_sample_weight("balanced", Y[rare])
    model = KTA().fit(X[rare], Y[rare], balanced)
    again = KTA(lam=model.lam_).fit(X[rare], Y[rare], balanced)
    assert model.lam_ == model.path_.value
    np.testing.assert_allclose(model.transform(X), again.transform(X), atol=1e-8)


@pytest.mark.parametrize("learner", [KTA(), LinearSeparation()], ids=str)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(90), r"sample_weight\[0\] = -1 is negative"),
        (np.ones(89), "sample_weight"),
        (np.full(90, np.nan), "NaN"),
        ("balanced", "parameter class_weight"),
        ((Y == 1).astype(float), "above 0 are of one class"),
        (np.zeros(90), "[Ss]ample weights|of one class"),
    ],
    ids=["negative", "length", "nan", "text", "one class", "none"],
)
def test_rejects_invalid_sample_weights(learner, weights, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(X, Y, sample_weight=weights)


def test_classes_of_weight_zero_are_ignored():
    model = KTA().fit(X, np.array(["a", "b", "c"])[Y], sample_weight=(Y != 0))
    assert model.classes_.tolist() == ["b", "c"]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
)
def test_scikit_learn_agrees(check, learner):
    check(type(learner).__name__, learner)


# --- weights of classes ----------------------------------------------------------------

NAMED = np.array(["a", "b", "c"])[Y]
RARE = (Y != 2) | (np.arange(90) % 5 == 0)


@pytest.mark.parametrize("learner", [KTA(), LinearSeparation(), *LEARNERS], ids=str)
@pytest.mark.parametrize(
    "weight", ["balanced", {"a": 2, "c": 0.5}, {"b": 0}, {"a": 1, "b": 2, "c": 3, "d": 4}], ids=str
)
def test_weights_of_classes_are_those_of_their_samples(learner, weight):
    samples, classes = X[RARE], NAMED[RARE]
    same = clone(learner).fit(samples, classes, compute_sample_weight(weight, classes))
    by_class = clone(learner).set_params(class_weight=weight).fit(samples, classes)
    assert by_class.classes_.tolist() == same.classes_.tolist()
    np.testing.assert_allclose(by_class.transform(X), same.transform(X), atol=1e-8)


def test_balanced_class_weights_use_sample_weights():
    repeated = np.repeat(np.arange(90), TIMES)
    learner = KTA(lam=1e-3, class_weight="balanced", tol=1e-8)
    value = clone(learner).fit(X, NAMED, TIMES).result_.value
    again = clone(learner).fit(X[repeated], NAMED[repeated])
    assert value == pytest.approx(again.result_.value, rel=1e-6)


@pytest.mark.parametrize("learner", [KTA(), LinearSeparation()], ids=str)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("even", 'must be "balanced", a mapping of classes to weights, or None'),
        ({"d": 1}, "'d', which is no class of y"),
        ({"a": -1}, r"class_weight\['a'\] must be"),
        ({"a": "many"}, r"class_weight\['a'\] must be"),
        ({"a": 0, "b": 0}, "above 0 are of one class"),
    ],
    ids=str,
)
def test_rejects_invalid_class_weights(learner, weight, message):
    with pytest.raises(ValueError, match=message):
        clone(learner).set_params(class_weight=weight).fit(X, NAMED)


def test_fit_pairs_rejects_class_weight():
    with pytest.raises(ValueError, match="pairs have none"):
        LinearSeparation(class_weight="balanced").fit_pairs([[0, 1], [1, 2]], [1, -1], X=X)


def test_a_grid_over_weights_of_classes():
    grid = GridSearchCV(
        MetricClassifier(metric=KTA(lam=1e-3)),
        {"metric__class_weight": [None, "balanced", {"a": 3}]},
        cv=2,
    )
    assert np.isfinite(grid.fit(X, NAMED).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("learner", [KTA(), LinearSeparation()], ids=str)
def test_rounding_errors_do_not_turn_directions_without_variance(learner):
    """Two features are sums of others: no principal axes exist in the plane that is left."""
    noise = np.random.default_rng(0).standard_normal(X.shape)
    plain = clone(learner).fit(X, Y).transform(X)
    again = clone(learner).fit(X * (1 + 1e-15 * noise), Y).transform(X)
    np.testing.assert_allclose(again, plain, atol=1e-8)
