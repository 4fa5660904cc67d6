"""Metrics from pairs and triplets, and what they say of pairs."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from gramian.constraints import local_pairs, local_triplets, random_pairs, random_triplets
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from gramian.metric._input import distinct_rows
from gramian.metric._verification import threshold
from gramian.problems.local_metric import lmnn_of_triplets, pair_scatter
from gramian.run import minimize
from tests.slow import slow

FROM_PAIRS = pytest.mark.parametrize("learner", [DMLEig, LinearSeparation])
FROM_TRIPLETS = pytest.mark.parametrize("learner", [LMNN, LMNNEig, TripletMetric])

X, Y = load_iris(return_X_y=True)
X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # iris has identical samples
SIMILAR, DISSIMILAR = local_pairs(X, Y, 3)
PAIRS = np.vstack([SIMILAR, DISSIMILAR])
SAME = np.repeat([1, -1], [len(SIMILAR), len(DISSIMILAR)])
TRIPLETS = local_triplets(X, Y, 3)


def metric_of(learner):
    return learner.get_mahalanobis_matrix()


def assert_same_metric(one, other, rtol=1e-8):
    M = metric_of(one)
    np.testing.assert_allclose(metric_of(other), M, atol=rtol * np.abs(M).max())


def test_dml_eig_from_local_pairs_is_the_one_from_labels():
    labelled = DMLEig(neighbor_metric="euclidean", shrinkage=0.0).fit(X, Y)
    np.testing.assert_array_equal(
        DMLEig(shrinkage=0.0).fit_pairs(PAIRS, SAME, X=X).components_, labelled.components_
    )


@pytest.mark.parametrize("learner", [LMNNEig, TripletMetric])
def test_learners_from_local_triplets_are_those_from_labels(learner):
    plain = {"neighbor_metric": "euclidean"} if learner is LMNNEig else {}
    own, given = learner(shrinkage=0.0, **plain), learner(shrinkage=0.0)
    assert_same_metric(own.fit(X, Y), given.fit_triplets(TRIPLETS, X=X))


def test_linear_separation_from_all_pairs_is_the_one_from_labels():
    i, j = np.triu_indices(len(Y), 1)
    pairs, same = np.column_stack([i, j]), Y[i] == Y[j]
    labelled = LinearSeparation(lam=1e-4, tol=1e-10).fit(X, Y)
    assert_same_metric(labelled, LinearSeparation(lam=1e-4, tol=1e-10).fit_pairs(pairs, same, X=X))


def test_lmnn_from_triplets_is_the_problem_of_those_triplets():
    fitted = LMNN(ridge=0.0, shrinkage=0.0, tol=1e-8).fit_triplets(TRIPLETS, X=X)
    problem = lmnn_of_triplets(X, SIMILAR, TRIPLETS, 1.0, pull=pair_scatter(X, SIMILAR))
    assert fitted.result_.value == pytest.approx(
        minimize(problem, "projected-gradient", tol=1e-6, max_iter=20_000).value, rel=1e-4
    )
    assert fitted.certificate_.relative_gap < 1e-8
    margins = 1 + squared(fitted, TRIPLETS[:, :2]) - squared(fitted, TRIPLETS[:, [0, 2]])
    assert fitted.n_active_ == pytest.approx(np.sum(margins > 0), abs=3)


def squared(fitted, pairs):
    return fitted.pair_distance(pairs, X=X) ** 2


@FROM_PAIRS
def test_vectors_frames_and_sparse_samples_give_the_metric_of_indices(learner):
    plain = learner().fit_pairs(PAIRS, SAME, X=X)
    assert_same_metric(plain, learner().fit_pairs(X[PAIRS], SAME))
    assert_same_metric(plain, learner().fit_pairs(PAIRS, SAME == 1, X=sp.csr_array(X)))
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = learner().fit_pairs(pd.DataFrame(PAIRS), pd.Series(SAME), X=frame)
    assert_same_metric(plain, named)
    assert list(named.feature_names_in_) == list("abcd")
    assert named.transform(frame).shape == (150, 4)


@FROM_TRIPLETS
def test_triplets_of_vectors_frames_and_sparse_samples_give_the_metric_of_indices(learner):
    plain = learner(tol=1e-8).fit_triplets(TRIPLETS, X=X)
    assert_same_metric(plain, learner(tol=1e-8).fit_triplets(X[TRIPLETS]), rtol=1e-4)
    sparse = learner(tol=1e-8).fit_triplets(TRIPLETS, X=sp.csr_array(X))
    assert_same_metric(plain, sparse, rtol=1e-4)


@FROM_PAIRS
@settings(max_examples=10)
@given(seed=st.integers(0, 2**16))
def test_neither_the_order_of_pairs_nor_of_their_points_matters(learner, seed):
    rng = np.random.default_rng(seed)
    order, turn = rng.permutation(len(PAIRS)), rng.random(len(PAIRS)) < 0.5
    turned = np.where(turn[:, None], PAIRS[:, ::-1], PAIRS)
    plain = learner().fit_pairs(PAIRS, SAME, X=X)
    other = learner().fit_pairs(turned[order], SAME[order], X=X)
    assert_same_metric(plain, other, rtol=1e-7)
    assert other.threshold_ == pytest.approx(plain.threshold_, rel=1e-6)


@FROM_TRIPLETS
def test_the_order_of_triplets_does_not_matter(learner):
    order = np.random.default_rng(0).permutation(len(TRIPLETS))
    plain = learner(tol=1e-8).fit_triplets(TRIPLETS, X=X)
    assert_same_metric(plain, learner(tol=1e-8).fit_triplets(TRIPLETS[order], X=X), rtol=1e-4)


@FROM_PAIRS
def test_a_metric_from_pairs_has_its_certificate_and_changes_no_parameter(learner):
    fitted = learner()
    before = fitted.get_params()
    fitted.fit_pairs(PAIRS, SAME, X=X)
    assert fitted.get_params() == before
    assert fitted.certificate_.relative_gap <= 1e-4
    assert "threshold_" not in vars(clone(fitted))


@FROM_TRIPLETS
def test_a_metric_from_triplets_has_its_certificate_and_serves_neighbours(learner):
    fitted = learner().fit_triplets(TRIPLETS, X=X)
    assert fitted.certificate_.relative_gap <= 1e-4
    neighbours = KNeighborsClassifier(3, metric=fitted.get_metric(), algorithm="brute")
    mapped = KNeighborsClassifier(3).fit(fitted.transform(X), Y)
    np.testing.assert_array_equal(
        neighbours.fit(X, Y).predict(X[::9]), mapped.predict(fitted.transform(X[::9]))
    )


def test_init_continues_with_more_pairs():
    samples = StandardScaler().fit_transform(load_wine().data)
    near, far = random_pairs(load_wine().target, 2_000, random_state=0)
    pairs, same = np.vstack([near, far]), np.repeat([True, False], 2_000)
    some = np.arange(4_000) % 100 != 0
    first = DMLEig(floor=0.0, tol=1e-6).fit_pairs(pairs[some], same[some], X=samples)
    cold = DMLEig(floor=0.0, tol=1e-6).fit_pairs(pairs, same, X=samples)
    warm = DMLEig(floor=0.0, tol=1e-6, init=first).fit_pairs(pairs, same, X=samples)
    assert warm.result_.value == pytest.approx(cold.result_.value, rel=1e-5)
    assert warm.result_.iterations <= cold.result_.iterations


@pytest.mark.parametrize("floor", [0.0, 0.6])
def test_init_reproduces_its_metric(floor):
    first = DMLEig(floor=floor).fit_pairs(PAIRS, SAME, X=X)
    again = DMLEig(floor=floor, init=first, max_iter=1).fit_pairs(PAIRS, SAME, X=X)
    assert again.result_.value <= first.result_.value * (1 + 1e-9)


FROM_TUPLES = {
    "DMLEig": (DMLEig(), "pairs"),
    "DMLEig, rbf": (DMLEig(kernel="rbf"), "pairs"),
    "DMLEig, linear": (DMLEig(kernel="linear"), "pairs"),
    "LinearSeparation": (LinearSeparation(), "pairs"),
    "LMNN": (LMNN(), "triplets"),
    "LMNNEig": (LMNNEig(), "triplets"),
    "TripletMetric": (TripletMetric(), "triplets"),
}


QUICK = [
    *((name, 4, np.asarray) for name in FROM_TUPLES),
    *((name, 200, np.asarray) for name in ("DMLEig", "LinearSeparation", "TripletMetric")),
]
"""Each learner, and more features than samples once for pairs, without weights, and triplets."""


def fitted_to(name, samples, rows):
    """The learner of a name fitted to the pairs or triplets, sample i at the row rows[i]."""
    learner, kind = FROM_TUPLES[name]
    if kind == "pairs":
        return clone(learner).fit_pairs(rows[PAIRS], SAME, X=samples)
    return clone(learner).fit_triplets(rows[TRIPLETS], X=samples)


@pytest.mark.parametrize(
    ("name", "features", "form"),
    [
        row if row in QUICK else slow(*row)
        for row in itertools.product(FROM_TUPLES, (4, 90, 200), (np.asarray, sp.csr_array))
    ],
)
def test_samples_in_no_pair_have_no_effect(name, features, form):
    """Neither a ridge, a floor, a mean, a scale nor a principal direction depends on them."""
    rng = np.random.default_rng(0)
    wide = np.hstack([X, 0.3 * rng.normal(size=(150, features - 4))])
    rows = np.sort(rng.permutation(500)[:150])
    among = 1e3 * rng.normal(size=(500, features)) + 50.0
    among[rows] = wide
    alone, fitted = fitted_to(name, form(wide), np.arange(150)), fitted_to(name, form(among), rows)
    for found in ("components_", "dual_components_", "ridge_", "floor_", "lam_", "mu_"):
        assert hasattr(alone, found) == hasattr(fitted, found)
        if hasattr(alone, found):
            expected = getattr(alone, found)
            scale = np.max(np.abs(expected))
            np.testing.assert_allclose(getattr(fitted, found), expected, atol=1e-6 * scale)
    if hasattr(alone, "threshold_"):
        assert fitted.threshold_ == pytest.approx(alone.threshold_, rel=1e-6)


def test_error_names_nearly_identical_pairs():
    near = np.vstack([X, X[:1] * (1 + 1e-12)])
    pairs, same = np.vstack([[[0, 150]], PAIRS]), np.append(-1, SAME)
    with pytest.warns(UserWarning, match=r"points of pairs\[0\] are identical but marked"):
        DMLEig().fit_pairs(pairs, same, X=np.vstack([near, 7 * X]))


# --- verification


def test_pair_score_ranks_pairs_and_predict_returns_the_type_of_labels():
    fitted = DMLEig().fit_pairs(PAIRS, SAME, X=X)
    assert roc_auc_score(SAME, fitted.pair_score(PAIRS, X=X)) > 0.9
    assert set(fitted.predict(PAIRS, X=X)) == {-1, 1}
    as_bool = DMLEig().fit_pairs(PAIRS, SAME == 1, X=X)
    assert as_bool.predict(PAIRS, X=X).dtype == bool
    np.testing.assert_array_equal(as_bool.predict(X[PAIRS]), fitted.predict(X[PAIRS]) == 1)
    np.testing.assert_allclose(
        fitted.pair_distance(X[PAIRS]), fitted.pair_distance(PAIRS, X=X), rtol=1e-9
    )


def test_every_learner_is_calibrated_and_only_then_predicts():
    fitted = KTA().fit(X, Y)
    assert not hasattr(fitted, "predict")
    with pytest.raises(AttributeError) as refusal:
        fitted.predict(X[PAIRS])
    assert "calibrate" in str(refusal.value.__cause__)
    accuracy = np.mean(fitted.calibrate(PAIRS, SAME, X=X).predict(PAIRS, X=X) == SAME)
    assert accuracy > 0.7
    assert not hasattr(fitted.fit(X, Y), "threshold_")


@pytest.mark.slow
def test_fitting_from_pairs_forgets_the_labels_of_an_earlier_fit():
    fitted = DMLEig().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    fitted.fit_pairs(X[PAIRS], SAME)
    assert not hasattr(fitted, "classes_")
    assert not hasattr(fitted, "feature_names_in_")
    assert hasattr(fitted, "threshold_")
    assert not hasattr(fitted.fit(X, Y), "threshold_")


@settings(max_examples=60)
@given(
    marked=st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=30).filter(
        lambda rows: len({same for _, same in rows}) == 2
    ),
    rate=st.none() | st.floats(0, 1),
)
def test_threshold_minimises_the_errors(marked, rate):
    distances = np.array([float(d) for d, _ in marked])
    alike = np.array([same for _, same in marked])
    cuts = np.concatenate([[-1.0], np.unique(distances)])
    found = threshold(distances, alike, rate) >= distances
    if rate is None:
        best = max(np.sum((distances <= cut) == alike) for cut in cuts)
        assert np.sum(found == alike) == best
    else:
        allowed = [c for c in cuts if np.sum(~alike & (distances <= c)) <= rate * np.sum(~alike)]
        assert np.sum(found & ~alike) <= rate * np.sum(~alike)
        assert np.sum(found) == np.sum(distances <= max(allowed))


def test_calibrate_respects_the_false_positive_rate():
    fitted = KTA().fit(X, Y)
    near, far = random_pairs(Y, 1_000, random_state=0)
    pairs, same = np.vstack([near, far]), np.repeat([True, False], 1_000)
    fitted.calibrate(pairs, same, X=X, max_false_positive_rate=0.01)
    assert np.mean(fitted.predict(far, X=X)) <= 0.01
    with pytest.raises(ValueError, match="max_false_positive_rate must be between"):
        fitted.calibrate(pairs, same, X=X, max_false_positive_rate=2)
    with pytest.raises(ValueError, match="pairs that are not"):
        fitted.calibrate(near, np.ones(1_000, dtype=bool), X=X)


# --- what is refused

BAD_PAIRS = {
    "contradictory": (
        np.vstack([PAIRS, PAIRS[:1, ::-1]]),
        np.append(SAME, -1),
        r"contradictory pairs: pairs\[0\]",
    ),
    "only similar": (SIMILAR, np.ones(len(SIMILAR)), "all 450 pairs are similar"),
    "only dissimilar": (DISSIMILAR, -np.ones(len(DISSIMILAR)), "all 450 pairs are dissimilar"),
    "with itself": (
        np.vstack([[[3, 3]], PAIRS]),
        np.append(1, SAME),
        r"pairs\[0\] is of a point with itself",
    ),
    "out of range": (
        np.vstack([PAIRS, [[0, 150]]]),
        np.append(SAME, 1),
        r"pairs\[900\] has the index 150, but X has 150",
    ),
    "negative": (np.vstack([PAIRS, [[-1, 5]]]), np.append(SAME, 1), "has the index -1"),
    "labels": (PAIRS, (SAME + 1) // 2, "same must be booleans, or"),
    "words": (PAIRS, np.where(SAME == 1, "yes", "no"), "same must be booleans, or"),
    "too few marks": (PAIRS, SAME[:-1], "one entry for each of 900 pairs"),
    "none": (np.empty((0, 2), dtype=int), np.empty(0), "there are no pairs"),
    "floats": (PAIRS + 0.5, SAME, "pairs must be integers"),
    "three columns": (TRIPLETS, np.ones(len(TRIPLETS)), r"shape \(n_pairs, 2\)"),
}


@FROM_PAIRS
@pytest.mark.parametrize("case", BAD_PAIRS)
def test_bad_pairs_are_refused_with_the_reason(learner, case):
    pairs, same, message = BAD_PAIRS[case]
    with pytest.raises(ValueError, match=message):
        learner().fit_pairs(pairs, same, X=X)


@FROM_PAIRS
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_identical_points_marked_different_are_refused(learner, kind):
    doubled = np.vstack([X, X[:1]])
    pairs, same = np.vstack([PAIRS, [[0, 150]]]), np.append(SAME, -1)
    with pytest.raises(ValueError, match=r"pairs\[900\] marks samples 0 and 150 as different"):
        learner().fit_pairs(pairs, same, X=kind(doubled))


@FROM_PAIRS
def test_bad_vectors_are_refused_with_the_reason(learner):
    twice = np.concatenate([X[PAIRS], X[PAIRS[:1]]])
    with pytest.raises(ValueError, match="contradictory pairs"):
        learner().fit_pairs(twice, np.append(SAME, -1))
    with pytest.raises(ValueError, match="of a point with itself"):
        learner().fit_pairs(np.concatenate([X[PAIRS], X[[[0, 0]]]]), np.append(SAME, -1))
    with pytest.raises(ValueError, match="pass X= with the samples"):
        learner().fit_pairs(PAIRS, SAME)
    with pytest.raises(ValueError, match=r"\(n_pairs, 2, n_features\)"):
        learner().fit_pairs(X[TRIPLETS], np.ones(len(TRIPLETS)))
    broken = X[PAIRS]
    broken[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learner().fit_pairs(broken, SAME)
    fitted = learner().fit_pairs(X[PAIRS], SAME)
    with pytest.raises(ValueError, match="pairs has 3 features"):
        fitted.pair_distance(X[PAIRS][:, :, :3])
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.pair_distance(PAIRS, X=X[:, :3])


BAD_TRIPLETS = {
    "anchor twice": ([[0, 0, 60]], "one point as anchor and as same"),
    "other is anchor": ([[0, 1, 0]], "one point as anchor and as other"),
    "same is other": ([[0, 1, 1]], "one point as same and as other"),
    "reversed": ([[0, 1, 60], [0, 60, 1]], "contradictory triplets"),
    "out of range": ([[0, 1, 150]], "has the index 150"),
}


@FROM_TRIPLETS
@pytest.mark.parametrize("case", BAD_TRIPLETS)
def test_bad_triplets_are_refused_with_the_reason(learner, case):
    extra, message = BAD_TRIPLETS[case]
    with pytest.raises(ValueError, match=message):
        learner().fit_triplets(np.vstack([TRIPLETS, extra]), X=X)


@FROM_TRIPLETS
def test_triplets_of_identical_points_or_none_are_refused(learner):
    doubled = np.vstack([X, X[:1]])
    with pytest.raises(ValueError, match="marks samples 0 and 150 as different"):
        learner().fit_triplets(np.vstack([TRIPLETS, [[0, 1, 150]]]), X=doubled)
    with pytest.raises(ValueError, match="there are no triplets"):
        learner().fit_triplets(np.empty((0, 3), dtype=int), X=X)
    with pytest.raises(ValueError, match="pass X= with the samples"):
        learner().fit_triplets(TRIPLETS)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16), decimals=st.integers(0, 2))
def test_distinct_rows_are_found_whatever_their_order(seed, decimals):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(40, 3)), decimals)
    found, which = distinct_rows(rows)
    np.testing.assert_array_equal(found[which], rows)
    assert len(found) == len(np.unique(rows, axis=0))
    order = rng.permutation(40)
    np.testing.assert_array_equal(distinct_rows(rows[order])[0], found)


def test_distinguishes_rows_with_equal_keys(monkeypatch):
    monkeypatch.setattr("gramian.metric._input.projections", lambda X: np.zeros((2, len(X))))
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    found, which = distinct_rows(rows)
    np.testing.assert_array_equal(found[which], rows)
    assert len(found) == 2


# --- the triplet hinge


def test_the_triplet_metric_meets_most_of_its_triplets_at_low_rank():
    fitted = TripletMetric().fit(X, Y)
    met = squared(fitted, TRIPLETS[:, :2]) < squared(fitted, TRIPLETS[:, [0, 2]])
    assert np.mean(met) > 0.9
    assert fitted.components_.shape[0] <= 4


@pytest.mark.filterwarnings("ignore:the optimum is M = 0")
@pytest.mark.parametrize("lam", [0.5, 2.0])
def test_below_its_unit_of_weight_the_triplet_metric_is_zero(lam):
    auto = TripletMetric().fit(X, Y)
    fitted = TripletMetric(lam=lam * auto.lam_ / 100, shrinkage=0.0).fit(X, Y)
    assert (np.abs(fitted.components_).sum() > 1e-6) == (lam > 1)


def test_the_weight_of_triplets_has_no_scale():
    one, many = TripletMetric().fit(X, Y), TripletMetric().fit(1e3 * X + 5.0, Y)
    np.testing.assert_allclose(
        many.transform(1e3 * X) @ many.transform(1e3 * X).T,
        one.transform(X) @ one.transform(X).T,
        rtol=1e-3,
        atol=1e-3,
    )


def test_more_features_than_samples_are_solved_in_the_span():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 3000))
    y = np.repeat([0, 1], 20)
    wide[y == 1, :3] += 4.0
    triplets = random_triplets(y, 300, random_state=0)
    dense = TripletMetric(tol=1e-8).fit_triplets(triplets, X=wide)
    assert dense.result_.factor.shape[0] < 40
    sparse = TripletMetric(tol=1e-8).fit_triplets(triplets, X=sp.csr_array(wide))
    np.testing.assert_allclose(
        sparse.pair_distance(triplets[:, :2], X=wide),
        dense.pair_distance(triplets[:, :2], X=wide),
        rtol=1e-4,
    )


def test_parameters_of_the_triplet_metric_that_make_no_sense_are_refused():
    for parameters in ({"lam": -1.0}, {"lam": "best"}, {"mu": 0.0}, {"rank": 0}):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            TripletMetric(**parameters).fit(X, Y)
