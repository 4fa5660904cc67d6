"""Metrics from chunks of samples are those of all samples at once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import (
    KTA,
    LMNN,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    TripletMetric,
)
from tests.slow import slow_except

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
LEARNERS = [KTA(lam=0.03, tol=1e-9), LinearSeparation(lam=1e-4, tol=1e-9)]
BY_NAME = pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)


def in_chunks(learner, X, y, chunks=10):
    for part in np.array_split(np.arange(len(y)), chunks):
        learner.partial_fit(X[part], y[part], classes=np.unique(y))
    return learner


@BY_NAME
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_ten_chunks_are_one_fit(learner, shift):
    once = type(learner)(**learner.get_params()).fit(X + shift, Y)
    parts = in_chunks(type(learner)(**learner.get_params()), X + shift, Y)
    M = once.get_mahalanobis_matrix()
    np.testing.assert_allclose(parts.get_mahalanobis_matrix(), M, atol=1e-7 * np.abs(M).max())
    np.testing.assert_allclose(parts.result_.value, once.result_.value, rtol=1e-7)
    assert parts.certificate_.relative_gap <= 1e-6
    assert parts.classes_.tolist() == once.classes_.tolist()


@BY_NAME
def test_fit_restarts_and_files_continue(learner, tmp_path):
    model = type(learner)(**learner.get_params())
    half = in_chunks(model, X[::2], Y[::2], 3)
    half.save(tmp_path / "half.gramian")
    whole = gm.load(tmp_path / "half.gramian").partial_fit(X[1::2], Y[1::2])
    once = type(learner)(**learner.get_params()).fit(X, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(whole.get_mahalanobis_matrix(), once, atol=1e-7 * np.abs(once).max())
    assert not hasattr(whole.fit(X, Y), "moments_")


@pytest.mark.parametrize("kind", [KTA, LinearSeparation])
def test_auto_takes_the_unit_of_the_weight(kind):
    model = in_chunks(kind(), X, Y)
    assert model.lam_ > 0 and not hasattr(model, "path_")


def test_rejects_kernels_new_classes_and_other_features():
    with pytest.raises(ValueError, match="kernel is for fit"):
        KTA(kernel="rbf").partial_fit(X, Y)
    with pytest.raises(ValueError, match="all of class 0"):
        KTA().partial_fit(X[Y == 0], Y[Y == 0])
    with pytest.raises(ValueError, match="class 2 is not among"):
        KTA().partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        KTA(lam=0.1).partial_fit(X, Y).partial_fit(X[:, :3], Y)


def test_a_rejected_first_call_has_no_effect():
    model = KTA(lam=0.1)
    with pytest.raises(ValueError, match="class 2 is not among"):
        model.partial_fit(X, Y, classes=[0, 1])
    assert model.partial_fit(X, Y, classes=[0, 1, 2]).classes_.tolist() == [0, 1, 2]


@BY_NAME
def test_there_is_no_metric_before_the_second_class(learner):
    model = clone(learner).fit(X, Y)
    model.partial_fit(X[Y == 0], Y[Y == 0], classes=[0, 1, 2])  # begins without samples
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.partial_fit(X[Y > 0], Y[Y > 0])
    M = clone(learner).fit(X, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), M, atol=1e-7 * np.abs(M).max())


@BY_NAME
@pytest.mark.parametrize("scale", [1e80, 1e-80])
def test_chunks_are_of_a_size_whose_powers_exist(learner, scale):
    with pytest.raises(ValueError, match="rescale X"):
        clone(learner).partial_fit(scale * X, Y)


def test_numbers_and_text_are_not_classes_together():
    words = np.array(["a", "b", "c"])[Y]
    model = ClassCollapse(ridge=0.1).update(X[::2], words[::2])
    with pytest.raises(ValueError, match="cannot be compared"):
        model.update(X[1::2], Y[1::2])
    assert model.update(X[1::2], words[1::2]).classes_.tolist() == ["a", "b", "c"]
    model = KTA(lam=0.1).partial_fit(X, Y)
    with pytest.raises(ValueError, match="class"):
        model.partial_fit(X, Y.astype(str))


UPDATED = {
    "LMNN": LMNN(shrinkage=0.1, tol=1e-7),
    "DMLEig": DMLEig(shrinkage=0.1, tol=1e-7),
    "LMNNEig": LMNNEig(shrinkage=0.1, tol=1e-7),
    "TripletMetric": TripletMetric(shrinkage=0.1, tol=1e-7),
    "ClassCollapse": ClassCollapse(targets="uniform", ridge=0.1, tol=1e-7),
}


@pytest.mark.parametrize("name", slow_except(UPDATED, "DMLEig", "LMNN"))
def test_update_equals_the_fit_of_all_samples(name):
    order = np.random.default_rng(0).permutation(len(Y))
    first, second = order[:120], order[120:]
    model = clone(UPDATED[name]).update(X[first], Y[first]).update(X[second], Y[second])
    once = clone(UPDATED[name]).fit(X, Y)
    size = 1e-5 * abs(once.result_.value)
    assert abs(model.result_.value - once.result_.value) <= size
    assert model.certificate_.gap <= size
    assert len(model.seen_["y"]) == len(Y)
    assert model.n_iter_ <= once.n_iter_
    assert not hasattr(model.fit(X, Y), "seen_")


def test_failed_update_leaves_the_model_unchanged():
    model = DMLEig(shrinkage=0).update(X[::2], Y[::2])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="class 7 has a single sample"):
        model.update(X[:1], [7])
    assert vars(model) == before
    assert len(model.update(X[1::2], Y[1::2]).seen_["y"]) == len(Y)


def test_updates_continue_from_files_and_keep_names(tmp_path):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(13)])
    model = DMLEig(shrinkage=0.1, kernel="linear").update(frame[::2], Y[::2])
    model.save(tmp_path / "half.gramian")
    again = gm.load(tmp_path / "half.gramian").update(frame[1::2], Y[1::2])
    once = DMLEig(shrinkage=0.1, kernel="linear").fit(X, Y)
    assert again.result_.value == pytest.approx(once.result_.value, rel=1e-3)
    assert list(again.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        again.update(frame.iloc[:, :3], Y)
