"""Learning must not do harm: what is held out has to speak for it."""

import numpy as np
import pytest
from scipy.ndimage import zoom
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from gramian import load
from gramian.constraints import random_pairs, random_triplets
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from tests.slow import slow_except

SHRUNK = [LMNN, DMLEig, LMNNEig, TripletMetric]
LEARNERS = [KTA, LinearSeparation, *SHRUNK]
IDS = {"ids": lambda learner: learner.__name__}
ROOM = 0.03
"""Allowed difference from the Euclidean error: about two of the test samples."""

WINE, KIND = load_wine(return_X_y=True)
IRIS, SPECIES = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
SCALED = StandardScaler().fit_transform(WINE)
SETS = {
    "scaled": (SCALED, KIND),
    "raw": (WINE[::2], KIND[::2]),
    "noise": (np.hstack([IRIS, RNG.normal(size=(150, 4))]), SPECIES),
    "shuffled": (SCALED[::2, :5], RNG.permutation(KIND[::2])),
    "duplicated": (np.repeat(IRIS[::5], 2, axis=0), np.repeat(SPECIES[::5], 2)),
}


def check_never_worse(estimator, X, y, *, room=ROOM, splits=1):
    """The 3-NN error after learning is at most `room` above the one before."""
    before, after = [], []
    for seed in range(splits):
        A, B, a, b = train_test_split(X, y, train_size=0.6, stratify=y, random_state=seed)
        fitted = clone(estimator).fit(A, a)
        for scores, f in ((before, lambda Z: Z), (after, fitted.transform)):
            scores.append(1 - KNeighborsClassifier(3).fit(f(A), a).score(f(B), b))
    assert np.mean(after) <= np.mean(before) + room


@pytest.mark.parametrize("data", slow_except(SETS, "noise"))
@pytest.mark.parametrize("learner", LEARNERS, **IDS)
def test_learning_does_no_harm(learner, data):
    check_never_worse(learner(tol=1e-2), *SETS[data])


@pytest.mark.parametrize("learner", SHRUNK, **IDS)
def test_full_shrinkage_is_euclid(learner):
    fitted = learner(shrinkage=1, tol=1e-2).fit(SCALED, KIND)
    M = fitted.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(len(M)), atol=1e-8 * M[0, 0])
    assert fitted.shrinkage_ == 1 and not hasattr(fitted, "path_")


@pytest.mark.parametrize("learner", [KTA, LinearSeparation], **IDS)
def test_weight_zero_is_euclid(learner):
    fitted = learner(lam=0.0).fit(SCALED, KIND)
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), np.eye(13), atol=1e-9)
    assert fitted.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("learner", slow_except(LEARNERS, KTA, LinearSeparation), **IDS)
def test_selection_is_printed_and_saved(learner, tmp_path):
    fitted = learner(tol=1e-2).fit(SCALED, KIND)
    path = fitted.path_
    assert path.value == (fitted.shrinkage_ if learner in SHRUNK else fitted.lam_)
    assert path.errors[path.chosen] <= path.errors[0]
    assert ("was chosen" in str(path)) == path.gained
    order = np.random.default_rng(1).permutation(len(KIND))
    turned = learner(tol=1e-2).fit(SCALED[order], KIND[order])
    np.testing.assert_allclose(turned.path_.errors, path.errors, atol=0.02)
    assert turned.path_.value == pytest.approx(path.value)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").path_.errors, path.errors)


def test_shuffled_labels_keep_the_euclidean_metric():
    fitted = LinearSeparation().fit(*SETS["shuffled"])
    assert "nothing is gained by learning: the Euclidean metric is kept" in str(fitted.path_)


@pytest.mark.parametrize("learner", [LinearSeparation, DMLEig], **IDS)
def test_random_pairs_keep_the_euclidean_metric(learner):
    pairs = np.vstack(random_pairs(KIND, 40, random_state=0))
    same = np.random.default_rng(0).permutation(np.repeat([True, False], 40))
    keep = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)[1]
    fitted = learner().fit_pairs(pairs[keep], same[keep], X=SCALED)
    assert fitted.path_.held_out == keep.size
    M = fitted.get_mahalanobis_matrix()
    if not fitted.path_.gained:
        np.testing.assert_allclose(M, M[0, 0] * np.eye(13), atol=1e-8 * M[0, 0])


@pytest.mark.parametrize("learner", [LMNN, LMNNEig, TripletMetric], **IDS)
def test_triplets_are_evaluated_on_held_out_anchors(learner):
    triplets = random_triplets(KIND, 300, random_state=0)
    fitted = learner(tol=1e-2).fit_triplets(triplets, X=SCALED)
    assert fitted.path_.held_out == np.unique(triplets[:, 0]).size
    assert fitted.path_.errors[fitted.path_.chosen] <= fitted.path_.errors[0]


def test_no_shrinkage_with_too_few_samples():
    few = DMLEig(tol=1e-2).fit(SCALED[::12], KIND[::12])
    assert few.shrinkage_ == 0 and not hasattr(few, "path_")


@pytest.mark.parametrize("learner", SHRUNK, **IDS)
@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, "some"])
def test_rejects_invalid_shrinkage(learner, shrinkage):
    with pytest.raises(ValueError, match="shrinkage must be"):
        learner(shrinkage=shrinkage).fit(SCALED, KIND)


def test_labels_without_any_direction_keep_euclid():
    X, y = np.random.default_rng(2).normal(size=(200, 4)), np.arange(200) % 20
    fitted = TripletMetric().fit(X, y)
    assert fitted.shrinkage_ == 1 and fitted.path_.value == 1
    M = fitted.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(4), atol=1e-12)
    with pytest.warns(UserWarning, match="a column of zeros"):
        alone = TripletMetric(shrinkage=0).fit(X, y)
    np.testing.assert_array_equal(alone.transform(X), np.zeros((200, 1)))


def test_evaluated_metric_equals_the_fitted_metric():
    """The projected unconstrained minimiser has a smaller error than the Euclidean metric, the
    optimum a larger one: 9.8 % if λ is selected by the former; the Euclidean metric has 5.2 %.
    """
    images, y = load_digits().images / 8 - 1, load_digits().target
    X = np.array([zoom(image, 2, order=3).ravel() for image in images])
    X += 0.05 * np.random.default_rng(0).normal(size=X.shape)
    A, B, a, b = train_test_split(X, y, train_size=300, stratify=y, random_state=0)
    fitted = KTA().fit(A, a)
    before = KNeighborsClassifier(3).fit(A, a).score(B, b)
    after = KNeighborsClassifier(3).fit(fitted.transform(A), a).score(fitted.transform(B), b)
    assert after >= before - 0.01
