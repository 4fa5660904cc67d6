"""What metric learners refuse before anything is computed, each in a sentence."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import clone

import gramian as gm
from gramian.arrays.samples import with_short_indices
from gramian.constraints import local_pairs, local_triplets, random_pairs
from gramian.metric import (
    KTA,
    LMNN,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    MetricClassifier,
    TripletMetric,
)  # fmt: skip
from tests.slow import slow_among, slow_except

LEARNERS = {
    "KTA": KTA(),
    "KTA, rbf": KTA(kernel="rbf"),
    "LinearSeparation": LinearSeparation(),
    "LMNN": LMNN(),
    "DMLEig": DMLEig(),
    "DMLEig, rbf": DMLEig(kernel="rbf"),
    "LMNNEig": LMNNEig(),
    "TripletMetric": TripletMetric(),
}
EVERY_LEARNER = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])

Y = np.arange(60) % 3
X = np.random.default_rng(0).normal(size=(60, 8)) + 2 * np.eye(3, 8)[Y]
SIMILAR, DISSIMILAR = local_pairs(X, Y, 2)
PAIRS = np.vstack([SIMILAR, DISSIMILAR])
SAME = np.repeat([1, -1], [len(SIMILAR), len(DISSIMILAR)])
TRIPLETS = local_triplets(X, Y, 2)
MASKED = np.ma.masked_array(X, X > 2)
WEAKLY = {
    "LinearSeparation": lambda pairs, X: LinearSeparation().fit_pairs(pairs, SAME, X=X),
    "DMLEig": lambda pairs, X: DMLEig().fit_pairs(pairs, SAME, X=X),
    "LMNN": lambda triplets, X: LMNN().fit_triplets(triplets, X=X),
    "LMNNEig": lambda triplets, X: LMNNEig().fit_triplets(triplets, X=X),
    "TripletMetric": lambda triplets, X: TripletMetric().fit_triplets(triplets, X=X),
}
EVERY_WEAK = pytest.mark.parametrize("name", WEAKLY)


def tuples_of(name):
    return PAIRS if name in ("LinearSeparation", "DMLEig") else TRIPLETS


@FORMS
@EVERY_LEARNER
def test_rejects_samples_whose_squares_overflow_or_vanish(learner, form):
    for scale, fault in ((1e200, "large"), (1e100, "large"), (1e-200, "small")):
        with pytest.raises(ValueError, match=f"entries of X are too {fault} .*; rescale X"):
            clone(learner).fit(form(scale * X), Y)


@pytest.mark.parametrize("learner", [KTA, DMLEig])
def test_large_numbers_of_single_precision_are_squared_in_double(learner):
    single = (1e25 * X).astype(np.float32)
    mapped = learner(kernel="rbf").fit(single, Y).transform(single.astype(float))
    expected = pdist(learner(kernel="rbf").fit(X, Y).transform(X))
    np.testing.assert_allclose(pdist(mapped), expected, atol=0.02 * expected.max())


@EVERY_WEAK
def test_rejects_pairs_and_triplets_of_such_samples(name):
    given = tuples_of(name)
    with pytest.raises(ValueError, match="entries of X are too large"):
        WEAKLY[name](given, 1e200 * X)
    with pytest.raises(ValueError, match=r"entries of (pairs|triplets) are too large"):
        WEAKLY[name](1e200 * X[given], None)


@pytest.mark.parametrize("name", slow_among(LEARNERS, "DMLEig", "DMLEig, rbf", "LMNNEig"))
def test_rejects_masks(name):
    learner = LEARNERS[name]
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        clone(learner).fit(MASKED, Y)
    with pytest.raises(ValueError, match="y has 20 masked entries"):
        clone(learner).fit(X, np.ma.masked_array(Y, Y == 1))
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        clone(learner).fit(X, Y).transform(MASKED)


@EVERY_WEAK
def test_rejects_masks_of_pairs_and_triplets(name):
    given = tuples_of(name)
    for tuples, samples in (
        (given, MASKED),
        (MASKED[given], None),
        (np.ma.masked_array(given, given == 0), X),
    ):
        with pytest.raises(ValueError, match="masked entries"):
            WEAKLY[name](tuples, samples)


def test_rejects_masked_marks_and_masked_pairs_after_a_fit():
    fitted = KTA().fit(X, Y)
    with pytest.raises(ValueError, match="same has 1 masked"):
        fitted.calibrate(PAIRS, np.ma.masked_array(SAME, np.arange(SAME.size) == 3), X=X)
    with pytest.raises(ValueError, match="masked entries"):
        fitted.pair_distance(PAIRS, X=MASKED)
    with pytest.raises(ValueError, match="masked entries"):
        fitted.pair_distance(MASKED[PAIRS])


def test_names_of_columns_are_checked_for_pairs():
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    turned = frame[frame.columns[::-1]]
    fitted = KTA(lam=1e-3).fit(frame, Y)
    np.testing.assert_allclose(fitted.pair_distance(PAIRS, X=frame), fitted.pair_distance(X[PAIRS]))
    for method in (fitted.pair_distance, fitted.pair_score):
        with pytest.raises(ValueError, match="feature names should match"):
            method(PAIRS, X=turned)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.calibrate(PAIRS, SAME, X=turned)
    fitted.calibrate(PAIRS, SAME, X=frame)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(PAIRS, X=turned)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([*Y[:2], None, *Y[3:]], dtype=object), r"y\[2\] is None, which is no label"),
        (["a", None, "b"] * 20, r"y\[1\] is None, which is no label"),
        (pd.Series(["a", pd.NA, "b"] * 20, dtype=object), r"y\[1\] is <NA>, which is no label"),
        (np.array(["a", 1, 2] * 20, dtype=object), r"y mixes labels .* \(int, str\)"),
    ],
    ids=["None", "None among words", "NA", "of two kinds"],
)
@EVERY_LEARNER
def test_every_sample_needs_a_label(learner, labels, message):
    with pytest.raises(ValueError, match=message):
        clone(learner).fit(X, labels)


@pytest.mark.parametrize("seed", ["abc", -1, 1.5, [1, "a"]])
def test_rejects_invalid_seeds(seed):
    calls = (
        lambda: LMNN(random_state=seed).fit(X, Y),
        lambda: random_pairs(Y, 3, random_state=seed),
        lambda: gm.minimize(gm.problems.top_eigen(np.eye(3)), random_state=seed),
        lambda: gm.graph.smoothest(np.eye(300), 2, random_state=seed),
    )
    for call in calls:
        with pytest.raises(ValueError, match="random_state must be a whole number of at least 0"):
            call()


@pytest.mark.slow
def test_indices_of_64_bits_are_shortened_where_they_fit():
    plain = sp.csr_array(X)
    long = sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    short = with_short_indices(long)
    assert short.indices.dtype == short.indptr.dtype == np.int32
    assert long.indices.dtype == np.int64
    assert with_short_indices(plain) is plain
    np.testing.assert_array_equal(LMNN().fit(long, Y).components_, LMNN().fit(plain, Y).components_)


def test_identical_samples_keep_euclid_or_are_rejected():
    alike, y = np.ones((40, 3)), np.arange(40) % 2
    for learner in (KTA, LinearSeparation):
        np.testing.assert_allclose(
            learner().fit(alike, y).get_mahalanobis_matrix(), np.eye(3), atol=1e-9
        )
    for learner in (LMNN, DMLEig, LMNNEig):
        with pytest.raises(ValueError, match="nothing to learn from"):
            learner().fit(alike, y)


@pytest.mark.parametrize(
    "learner",
    slow_except([KTA, LinearSeparation, LMNN, DMLEig, LMNNEig, TripletMetric], KTA, LMNN),
)
def test_samples_of_a_huge_unit_are_learned_from(learner):
    fitted = learner(tol=1e-2).fit(1e60 * X, Y)
    found, expected = (
        pdist(fitted.transform(1e60 * X)),
        pdist(learner(tol=1e-2).fit(X, Y).transform(X)),
    )
    assert np.corrcoef(found, expected)[0, 1] > 0.99


SOME = np.where(np.arange(len(Y)) % 4 == 0, -1, Y)
"""Labels of three samples in four."""


SEMI = [
    KTA(),
    LinearSeparation(),
    ClassCollapse(ridge=0.1, n_components=1),
    DMLEig(shrinkage=0.5),
    MetricClassifier(metric=KTA(lam=0.1)),
]


@pytest.mark.parametrize("learner", SEMI, ids=lambda learner: type(learner).__name__)
def test_samples_of_unknown_class_are_left_out(learner):
    known = SOME != -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clone(learner).fit(X, SOME)
        expected = clone(learner).fit(X[known], SOME[known])
    np.testing.assert_array_equal(found.classes_, np.unique(Y))
    if isinstance(learner, MetricClassifier):
        np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    else:
        np.testing.assert_allclose(found.components_, expected.components_, atol=1e-12)


def test_weights_of_samples_of_unknown_class_are_left_out():
    weights, known = 1.0 + np.arange(len(Y)) % 3, SOME != -1
    found = KTA(lam=0.1, class_weight="balanced").fit(X, SOME, weights)
    expected = KTA(lam=0.1, class_weight="balanced").fit(X[known], SOME[known], weights[known])
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("form", [lambda y: y[:, None], lambda y: y.astype(object)])
@pytest.mark.parametrize("learner", [KTA(lam=0.1, class_weight="balanced"), SEMI[-1]])
def test_labels_in_a_column_or_as_objects_are_those_of_numbers(learner, form):
    found, expected = (clone(learner).fit(X, y) for y in (form(SOME), SOME))
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    if isinstance(learner, MetricClassifier):
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    else:
        np.testing.assert_array_equal(found.components_, expected.components_)


def test_names_columns_of_dates_and_text():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020", periods=len(Y))
    frame = pd.DataFrame({"day": dates, "size": X[:, 0], "note": "x", "number": "1"})
    for kept in (["day", "size"], ["day", "size", "note", "number"]):
        found = "'day', 'note'" if "note" in kept else "'day'"
        with pytest.raises(ValueError, match=f"text or dates where numbers belong, in {found}:"):
            KTA(lam=0.1).fit(frame[kept], Y)


@pytest.mark.parametrize("few", [None, 1])
@pytest.mark.parametrize("regularizer", ["identity", "trace", "frobenius"])
def test_equal_samples_have_no_held_out_errors(regularizer, few):
    found = KTA(regularizer=regularizer, n_components=few).fit(np.full(X.shape, 0.1), Y)
    assert found.lam_ == 1.0 and not hasattr(found, "path_")
    M = found.get_mahalanobis_matrix()
    assert np.linalg.matrix_rank(M) == (regularizer == "identity") * (few or X.shape[1])


def test_least_trace_of_noise_in_many_features_is_0():
    noise = np.random.default_rng(0).normal(size=(45, 200))
    found = KTA(regularizer="trace").fit(noise, np.arange(45) // 15)
    assert not found.path_.gained


def test_classes_without_weight_are_predicted():
    metric = KTA(lam=0.1, class_weight={2: 0.0})
    found = MetricClassifier(metric=metric, n_neighbors=1).fit(X, Y)
    np.testing.assert_array_equal(found.metric_.classes_, [0, 1])
    np.testing.assert_array_equal(found.predict(X), Y)


def test_chunks_with_samples_of_unknown_class():
    found, known = KTA(lam=0.1), SOME != -1
    for part in (slice(0, 30), slice(30, 60)):
        found.partial_fit(X[part], SOME[part])
    expected = KTA(lam=0.1).fit(X[known], SOME[known])
    M, N = found.get_mahalanobis_matrix(), expected.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, N, atol=1e-8)


def test_minus_one_with_one_class_or_another_negative_label_is_a_class():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (2 * (Y > 0) - 1, Y - 2):
            np.testing.assert_array_equal(KTA(lam=0.1).fit(X, y).classes_, np.unique(y))


def test_warns_if_minus_one_may_be_a_class():
    with pytest.warns(UserWarning, match="if -1 is a class") as said:
        found = KTA(lam=0.1).fit(X, Y - 1, np.ones(len(Y)))
    np.testing.assert_array_equal(found.classes_, [0, 1])
    assert len(said) == 1
    with pytest.warns(UserWarning, match="if -1 is a class"):
        KTA(lam=0.1).partial_fit(X, Y - 1)


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "dia", "dok", "lil"])
def test_accepts_every_sparse_format(form):
    rng = np.random.default_rng(0)
    X, y = np.round(rng.standard_normal((40, 3))), rng.integers(0, 2, 40)
    X[:, 0] += y
    expected = KTA(lam=1e-3).fit(sp.csr_array(X), y)
    found = KTA(lam=1e-3).fit(sp.csr_array(X).asformat(form), y)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-12)
