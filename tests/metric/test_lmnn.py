"""LMNN: its certificate is that of the whole problem, and what the metric must not depend on."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.constraints import as_pairs, same_class_neighbors
from gramian.estimators import active_set, fitting
from gramian.metric import KTA, LMNN, _impostors, _lmnn_task
from gramian.metric._impostors import Impostors
from gramian.metric._lmnn_task import LMNNTask
from gramian.problems.local_metric import lmnn_of_triplets, pair_scatter
from tests.slow import slow

PLAIN = {"neighbor_metric": "euclidean", "ridge": 0.0, "shrinkage": 0.0}


def samples(n=60, d=5, classes=3, seed=0):
    """Classes that differ in two directions, amid others that are larger."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    X = rng.standard_normal((n, d)) * np.linspace(1.0, 2.0, d)
    X[:, :2] += 1.5 * np.column_stack([y == 0, y == 1])
    return X, y


X, Y = samples()


def distances(learner, data):
    mapped = learner.transform(data)
    return np.sum((mapped[:, None] - mapped) ** 2, axis=2)


def impostors(Z, y, near):
    """(i, j, l, 1 + d(i, j) − d(i, l)) of all triplets with a margin below 1, by loops."""
    found = []
    for i in range(len(Z)):
        for j in near[i]:
            for l in np.flatnonzero(y != y[i]):
                hinge = 1 + np.sum((Z[i] - Z[j]) ** 2) - np.sum((Z[i] - Z[l]) ** 2)
                if hinge > 0:
                    found.append((i, int(j), int(l), hinge))
    return found


@pytest.fixture(scope="module")
def sharp():
    """A fit to nine digits."""
    return LMNN(**PLAIN, tol=1e-9).fit(X, Y)


# --- the certificate -----------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_the_certificate_is_that_of_all_triplets(lam, k, tol):
    learner = LMNN(**PLAIN, lam=lam, n_neighbors=k, tol=tol).fit(X, Y)
    problem = gm.problems.lmnn(X, Y, k, lam)
    certificate = learner.certificate_
    assert certificate.relative_gap <= tol
    assert certificate.value == pytest.approx(problem.value(learner.components_.T), rel=1e-6)
    assert learner.result_.value == certificate.value
    optimum = gm.minimize(problem, tol=1e-9).value
    assert certificate.lower_bound <= optimum * (1 + 1e-8)
    assert optimum * (1 - 1e-8) <= certificate.value <= optimum * (1 + tol + 1e-8)


@pytest.mark.parametrize("solver", ["bilgo", "lbfgs", "staircase"])
def test_other_solvers_give_the_same_value(solver, sharp):
    other = LMNN(**PLAIN, solver=solver, tol=1e-6).fit(X, Y)
    assert other.certificate_.relative_gap <= 1e-6
    assert other.certificate_.value == pytest.approx(sharp.certificate_.value, rel=1e-6)


def test_the_metric_is_better_than_every_multiple_of_the_identity(sharp):
    problem = gm.problems.lmnn(X, Y, 3, 1.0)
    best = minimize_scalar(
        lambda s: problem.value(np.exp(s) * np.eye(5)), bounds=(-8, 4), method="bounded"
    )
    assert sharp.certificate_.value < 0.9 * best.fun


def test_default_targets_are_nearest_after_alignment():
    """The value is that of the formula with the targets that KTA has nearest."""
    data = X * [1, 1, 1, 1, 10]
    learner = LMNN(ridge=0.0, shrinkage=0.0, tol=1e-6).fit(data, Y)
    unit = data - data.mean(axis=0)
    unit /= np.sqrt(np.mean(unit * unit))
    aligned = KTA(tol=1e-2).fit(unit, Y).transform(unit)
    near = same_class_neighbors(aligned, Y, 3)
    assert np.mean(near == same_class_neighbors(data, Y, 3)) < 0.5
    others = [np.flatnonzero(across) for across in Y[:, None] != Y]
    triplets = [(i, j, l) for i in range(60) for j in near[i] for l in others[i]]
    problem = lmnn_of_triplets(data, as_pairs(near), np.array(triplets), 1.0)
    value = problem.value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)


def test_the_ridge_adds_its_share_of_the_trace():
    learner = LMNN(**PLAIN | {"ridge": 0.3}, tol=1e-6).fit(X, Y)
    pairs = as_pairs(same_class_neighbors(X, Y, 3))
    mean = np.trace(pair_scatter(X, pairs)) / 5
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    expected = value + 0.3 * mean * np.sum(learner.components_**2)
    assert learner.certificate_.value == pytest.approx(expected, rel=1e-6)


def test_ending_before_the_last_round_still_certifies_all_triplets(monkeypatch):
    """After one round some triplets are newly violated: they count."""
    monkeypatch.setattr(active_set, "MAX_ROUNDS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        learner = LMNN(**PLAIN, tol=1e-9).fit(X, Y)
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)
    near = same_class_neighbors(X, Y, 3)
    assert learner.n_active_ == len(impostors(learner.transform(X), Y, near))


@pytest.mark.parametrize(
    ("module", "name", "size"),
    [
        (active_set, "MIN_SAMPLED_ANCHORS", 3),
        (_impostors, "ROWS", 7),
        (active_set, "MAX_ACTIVE_SLACK", 1e-3),
    ],
)
def test_sizes_of_the_search_change_no_value(module, name, size, monkeypatch, sharp):
    """Coarse first rounds, small blocks, triplets that come and go."""
    monkeypatch.setattr(module, name, size)
    learner = LMNN(**PLAIN, tol=1e-5).fit(X, Y)
    assert learner.certificate_.relative_gap <= 1e-5
    assert learner.certificate_.value == pytest.approx(sharp.certificate_.value, rel=2e-5)
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)


def test_too_many_active_triplets_loosen_the_bound_and_not_the_value(monkeypatch, sharp):
    monkeypatch.setattr(_lmnn_task, "MOST", 1000)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        learner = LMNN(**PLAIN).fit(X, Y)
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)
    assert learner.certificate_.lower_bound <= sharp.certificate_.value <= value


# --- violated triplets ---------------------------------------------------------------


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-3, 0.3, 3.0, 1e3]),
    shift=st.sampled_from([0.0, 30.0]),
    block=st.sampled_from([1, 3, 1000]),
)
def test_violated_triplets_are_those_of_brute_force(seed, scale, shift, block):
    rng = np.random.default_rng(seed)
    data, y = samples(n=20, seed=seed)
    Z = scale * data + shift
    near = same_class_neighbors(data, y, 2)
    anchors = np.sort(rng.choice(20, 12, replace=False))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS", "COLUMNS"):
            patch.setattr(_impostors, name, block)
        blocks = Impostors(Z, y, near, anchors).blocks()
    keys = np.sort(np.concatenate([found.keys for found in blocks]))
    i, l, t = keys // 2 // 20, keys // 2 % 20, keys % 2
    expected = [row for row in impostors(Z, y, near) if row[0] in anchors]
    expected = np.array(sorted(expected)).reshape(-1, 4)
    found = np.column_stack([i, near[i, t], l])
    np.testing.assert_array_equal(found[np.lexsort(found[:, ::-1].T)], expected[:, :3])
    push = sum(found.push for found in blocks)
    assert push == pytest.approx(np.sum(expected[:, 3] ** 2), rel=1e-8)
    assert sum(found.count for found in blocks) == len(expected)


def test_the_fitted_metric_counts_the_triplets_it_violates(sharp):
    near = same_class_neighbors(X, Y, 3)
    assert sharp.n_active_ == len(impostors(sharp.transform(X), Y, near)) > 0


# --- what the metric must not depend on ----------------------------------------------


def test_a_shift_and_a_rotation_change_no_distance(sharp):
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0]
    moved = (X + 7.0) @ rotation
    learner = LMNN(**PLAIN, tol=1e-9).fit(moved, Y)
    scale = distances(sharp, X).max()
    np.testing.assert_allclose(distances(learner, moved), distances(sharp, X), atol=1e-3 * scale)
    assert learner.certificate_.value == pytest.approx(sharp.certificate_.value, rel=1e-8)


@pytest.mark.parametrize("neighbor_metric", ["euclidean", slow("kta")])
def test_the_order_of_samples_does_not_matter(neighbor_metric):
    order = np.random.default_rng(2).permutation(60)
    first, second = (
        LMNN(neighbor_metric=neighbor_metric, tol=1e-9).fit(X[rows], Y[rows])
        for rows in (np.arange(60), order)
    )
    assert second.certificate_.value == pytest.approx(first.certificate_.value, rel=1e-8)
    M = first.get_mahalanobis_matrix()
    np.testing.assert_allclose(second.get_mahalanobis_matrix(), M, atol=1e-3 * np.linalg.norm(M))


@pytest.mark.parametrize("scale", [0.01, 1e6])
@pytest.mark.parametrize("neighbor_metric", ["euclidean", slow("kta")])
def test_scaling_the_samples_scales_the_metric_back(scale, neighbor_metric):
    options = {"neighbor_metric": neighbor_metric, "tol": 1e-9}
    sharp = LMNN(**options).fit(X, Y)
    learner = LMNN(**options).fit(scale * X, Y)
    M = sharp.get_mahalanobis_matrix()
    np.testing.assert_allclose(
        scale**2 * learner.get_mahalanobis_matrix(), M, atol=1e-3 * np.linalg.norm(M)
    )
    assert learner.certificate_.value == pytest.approx(sharp.certificate_.value, rel=1e-8)


def test_labels_may_be_strings(sharp):
    learner = LMNN(**PLAIN, tol=1e-9).fit(X, np.array(["ant", "bee", "cat"])[Y])
    assert list(learner.classes_) == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(learner.components_, sharp.components_)


def test_fit_changes_no_parameter_and_repeats(sharp):
    learner = LMNN(**PLAIN, tol=1e-9)
    before = learner.get_params()
    learner.fit(X, Y)
    assert learner.get_params() == before
    np.testing.assert_array_equal(learner.components_, sharp.components_)


# --- parameters ----------------------------------------------------------------------


@pytest.fixture
def iterations(monkeypatch):
    """The iterations of every call of `minimize`."""
    counts, minimize = [], fitting.minimize

    def counted(*args, **options):
        result = minimize(*args, **options)
        counts.append(result.iterations)
        return result

    monkeypatch.setattr(fitting, "minimize", counted)
    return counts


def test_a_start_from_a_fitted_learner_needs_fewer_iterations(iterations, sharp):
    cold = LMNN(**PLAIN, tol=1e-6, solver="bilgo").fit(X, Y)
    needed = sum(iterations)
    iterations.clear()
    warm = LMNN(**PLAIN, tol=1e-6, solver="bilgo", init=sharp).fit(X, Y)
    assert sum(iterations) < needed
    assert warm.certificate_.value == pytest.approx(cold.certificate_.value, rel=1e-6)
    assert warm.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("start", [KTA, LMNN])
def test_any_learner_can_be_the_start(start, sharp):
    learner = LMNN(**PLAIN, tol=1e-6, init=start().fit(X, Y)).fit(X, Y)
    assert learner.certificate_.value == pytest.approx(sharp.certificate_.value, rel=2e-6)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_a_rank_limit_is_kept_and_its_cost_certified(rank, sharp):
    """The limit is no failure to converge, and the certificate is still of all triplets."""
    learner = LMNN(**PLAIN, rank=rank).fit(X, Y)
    assert learner.components_.shape[0] <= rank
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)
    cost = learner.certificate_.value - sharp.certificate_.value
    assert -1e-6 * value <= cost <= learner.certificate_.gap
    assert learner.certificate_.value <= gm.problems.lmnn(X, Y, 3, 1.0).value(np.zeros((5, 1)))


def test_components_are_uncorrelated_with_decreasing_variance(sharp):
    two = LMNN(**PLAIN, rank=5, n_components=2, tol=1e-9).fit(X, Y)
    scatter = np.cov(sharp.transform(X).T)
    assert np.all(np.diff(np.diag(scatter)) <= 1e-9)
    np.testing.assert_allclose(scatter, np.diag(np.diag(scatter)), atol=1e-9)
    np.testing.assert_allclose(two.transform(X), sharp.transform(X)[:, :2], atol=1e-7)
    assert two.transform(X).shape == (60, 2)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, pd.DataFrame, np.ndarray.tolist])
def test_every_form_of_input_gives_the_same_metric(form, sharp):
    learner = LMNN(**PLAIN, tol=1e-9).fit(form(X), Y)
    M = sharp.get_mahalanobis_matrix()
    np.testing.assert_allclose(learner.get_mahalanobis_matrix(), M, atol=1e-6 * np.linalg.norm(M))
    np.testing.assert_allclose(learner.transform(form(X)), X @ learner.components_.T)


def test_single_precision_is_kept_and_close(sharp):
    single = X.astype(np.float32)
    learner = LMNN(**PLAIN, tol=1e-6).fit(single, Y)
    assert learner.transform(single).dtype == np.float32
    assert learner.certificate_.value == pytest.approx(sharp.certificate_.value, rel=1e-5)


def test_frames_keep_their_names():
    frame = pd.DataFrame(X, columns=list("abcde"))
    learner = LMNN(n_components=2).set_output(transform="pandas").fit(frame, Y)
    mapped = learner.transform(frame)
    assert list(mapped.columns) == ["lmnn0", "lmnn1"]
    assert list(learner.feature_names_in_) == list("abcde")


@pytest.mark.slow
def test_pipelines_grid_search_and_clone():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LMNN(tol=1e-2), KNeighborsClassifier(3)),
        {"lmnn__n_neighbors": [1, 2], "lmnn__lam": [0.1, 1.0]},
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_score_ > 0.5
    learner = LMNN(lam=0.2, rank=2)
    assert clone(learner).get_params() == learner.get_params()


@pytest.mark.slow
def test_improves_neighbours_on_unscaled_wine():
    """Without scaling, two large features hide the others."""
    wine = load_wine(return_X_y=True)
    neighbours = KNeighborsClassifier(3)
    plain = cross_val_score(neighbours, *wine, cv=3).mean()
    learned = cross_val_score(make_pipeline(LMNN(tol=1e-2), neighbours), *wine, cv=3).mean()
    assert learned > plain + 0.15


def test_time_limit_warns_and_returns_a_certified_metric():
    data, y = samples(n=400, d=30, seed=3)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        learner = LMNN(**PLAIN, time_limit=0.02, tol=1e-12).fit(data, y)
    assert learner.result_.status is gm.Status.TIME_LIMIT
    assert np.all(np.isfinite(learner.transform(data)))
    value = gm.problems.lmnn(data, y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)
    assert learner.certificate_.relative_gap > 1e-12


# --- data that is not as usual -------------------------------------------------------


def test_identical_samples_of_different_classes_cost_their_margin_and_no_more():
    data, y = np.vstack([X, X[:5]]), np.append(Y, (Y[:5] + 1) % 3)
    learner = LMNN(**PLAIN, tol=1e-6).fit(data, y)
    value = gm.problems.lmnn(data, y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)
    assert learner.certificate_.relative_gap <= 1e-6


def test_repeated_samples_of_one_class_do_no_harm():
    data, y = np.vstack([X] * 3), np.tile(Y, 3)
    learner = LMNN(**PLAIN, n_neighbors=3).fit(data, y)
    assert learner.certificate_.relative_gap <= 1e-4
    value = gm.problems.lmnn(data, y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-4)
    with pytest.raises(ValueError, match="every similar pair are identical"):
        LMNN(n_neighbors=2).fit(data, y)  # every target is a copy


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("neighbor_metric", ["euclidean", "kta"])
def test_fewer_samples_than_features(form, neighbor_metric):
    rng = np.random.default_rng(4)
    data, y = rng.standard_normal((20, 50)), np.arange(20) % 2
    options = {"neighbor_metric": neighbor_metric, "ridge": 1e-2, "shrinkage": 0.0}
    learner = LMNN(**options, tol=1e-6).fit(form(data), y)
    assert learner.certificate_.relative_gap <= 1e-6
    assert learner.components_.shape[1] == 50 and learner.components_.shape[0] <= 19
    if neighbor_metric == "euclidean":
        pairs = as_pairs(same_class_neighbors(data, y, 3))
        value = gm.problems.lmnn(data, y, 3, 1.0).value(learner.components_.T)
        # In the span of the centred samples, of order 19, the mean eigenvalue is larger.
        mean = np.trace(pair_scatter(data, pairs)) / 19
        value += 1e-2 * mean * np.sum(learner.components_**2)
        assert learner.certificate_.value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_few_samples_in_single_precision_are_summed_in_double(form):
    rng = np.random.default_rng(5)
    single = (rng.standard_normal((20, 50)) + 30).astype(np.float32)
    values = [
        LMNN(**PLAIN | {"ridge": 1e-2}, tol=1e-7)
        .fit(form(data), np.arange(20) % 2)
        .certificate_.value
        for data in (single, single.astype(float))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_constant_and_repeated_features_do_no_harm(sharp):
    wide = np.column_stack([X, np.ones((60, 2)), X[:, 0]])
    learner = LMNN(neighbor_metric="euclidean", shrinkage=0.0).fit(wide, Y)
    assert np.all(np.isfinite(learner.components_))
    assert learner.certificate_.relative_gap <= 1e-4
    np.testing.assert_allclose(learner.components_[:, 5:7], 0.0, atol=1e-6)
    # A feature that is there twice is one of √2 times the length.
    longer = X * np.where(np.arange(5) == 0, np.sqrt(2.0), 1.0)
    mapped = [LMNN(**PLAIN, tol=1e-9).fit(data, Y).transform(data) for data in (longer, wide)]
    expected, found = (np.linalg.norm(Z[:30] - Z[30:], axis=1) for Z in mapped)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="singular"):
        LMNN(**PLAIN).fit(np.column_stack([X, Y == 1]), Y)


@pytest.mark.parametrize("gap", [20.0, 1e4])
def test_classes_far_apart_are_learned(gap):
    """Hardly a triplet is violated, or none."""
    learner = LMNN(**PLAIN).fit(X + gap * Y[:, None], Y)
    certificate = learner.certificate_
    nothing = 60 * 3 * 40  # F(0): each of 60 samples, its 3 targets, the 40 of other classes
    assert certificate.gap <= 1e-4 * max(certificate.value, 1e-6 * nothing)
    value = gm.problems.lmnn(X + gap * Y[:, None], Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-4)


def test_two_samples_a_class():
    learner = LMNN(n_neighbors=1).fit(
        [[0.0, 1.0], [0.1, 0.5], [3.0, 0.9], [3.2, 0.4]], [0, 0, 1, 1]
    )
    assert np.all(np.isfinite(learner.components_))
    assert learner.certificate_.relative_gap <= 1e-4


# --- what is refused -----------------------------------------------------------------

BAD = {
    "lam of zero": ({"lam": 0.0}, "lam must be a finite number above 0"),
    "lam below zero": ({"lam": -1.0}, "lam must be a finite number above 0"),
    "lam NaN": ({"lam": np.nan}, "lam must be a finite number above 0"),
    "lam a word": ({"lam": "auto"}, "lam must be a finite number above 0"),
    "ridge": ({"ridge": -1.0}, "ridge must be a finite number"),
    "neighbor_metric": ({"neighbor_metric": "x"}, 'neighbor_metric must be "kta" or "euclidean"'),
    "no neighbours": ({"n_neighbors": 0}, "whole number of at least 1, got 0"),
    "half a neighbour": ({"n_neighbors": 1.5}, "whole number of at least 1, got 1.5"),
    "neighbours in words": ({"n_neighbors": "3"}, "whole number of at least 1, got '3'"),
    "too many neighbours": ({"n_neighbors": 20}, "too few for 20 neighbours each: use at most 19"),
    "rank": ({"rank": 6}, "rank must be a whole number between 1"),
    "n_components": ({"n_components": 0}, "n_components must be a whole number between 1"),
    "solver": ({"solver": "bilog"}, "did you mean 'bilgo'"),
    "tol": ({"tol": -1.0}, "tol"),
}


@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_rejects_bad_parameters_and_names_them(parameters, message):
    with pytest.raises(ValueError, match=message):
        LMNN(**parameters).fit(X, Y)


def test_rejects_bad_data_and_names_it():
    for data, y, message in (
        (np.where(X > 2, np.nan, X), Y, "NaN"),
        (X, np.zeros(60), "one class"),
        (X, np.append(Y[:-1], 9), "class 9 has a single sample"),
        (X, Y[:-1], "inconsistent"),
        (X, np.linspace(0, 1, 60), "continuous"),
    ):
        with pytest.raises(ValueError, match=message):
            LMNN().fit(data, y)


def test_rejects_start_of_wrong_shape():
    with pytest.raises(ValueError, match="init was fitted to 3 features"):
        LMNN(init=KTA(lam=1.0).fit(X[:, :3], Y)).fit(X, Y)
    with pytest.raises(Exception, match="init must be a fitted metric learner"):
        LMNN(init=KTA()).fit(X, Y)
    with pytest.raises(TypeError, match="fitted metric learner, or None, got ndarray"):
        LMNN(init=np.eye(4)).fit(X, Y)


def test_a_start_survives_a_clone_if_it_is_frozen():
    start = KTA(lam=1.0).fit(X, Y)
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        clone(LMNN(init=start)).fit(X, Y)
    one, two = LMNN(init=start, shrinkage=0.1), LMNN(init=FrozenEstimator(start), shrinkage=0.1)
    np.testing.assert_allclose(clone(two).fit(X, Y).transform(X), one.fit(X, Y).transform(X))


def test_an_interrupt_while_counting_keeps_the_best(monkeypatch):
    """Ctrl-C in the third count of triplets: the metric of the first round is kept."""
    count, seen = LMNNTask.violated, []

    def interrupted(self, *args, **options):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return count(self, *args, **options)

    monkeypatch.setattr(LMNNTask, "violated", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        learner = LMNN(**PLAIN, tol=1e-8).fit(X, Y)
    assert learner.result_.status is gm.Status.INTERRUPTED
    value = gm.problems.lmnn(X, Y, 3, 1.0).value(learner.components_.T)
    assert learner.certificate_.value == pytest.approx(value, rel=1e-6)


# --- searching again ---------------------------------------------------------------------


def a_task(seed=0, n=120, d=4):
    X, y = samples(n, d, seed=seed)
    near = same_class_neighbors(X, y, 2)
    return LMNNTask(X, y, near.astype(np.int64), 1.0, np.eye(d))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(-3, 0.5), st.sampled_from([1.0, 1.2]))
def test_consecutive_searches_equal_separate_searches(seed, power, margin):
    task, rng = a_task(seed % 7), np.random.default_rng(seed)
    L = 0.6 * rng.standard_normal((4, rng.integers(1, 5)))
    for _ in range(4):
        again = task.violated(L, task.anchors, margin=margin)
        alone = a_task(seed % 7).violated(L, task.anchors, margin=margin)
        np.testing.assert_array_equal(again.keys, alone.keys)
        assert again.count == alone.count
        assert again.value == pytest.approx(alone.value, rel=1e-12)
        L = L + 10**power * rng.standard_normal(L.shape)


def test_safe_anchors_are_not_searched(monkeypatch):
    task, searched = a_task(), []
    blocks = Impostors.blocks
    monkeypatch.setattr(
        Impostors, "blocks", lambda asked: searched.append(asked.anchors.size) or blocks(asked)
    )
    L = 0.6 * np.eye(4)
    for scale in (1.0, 1.001, 0.999, 3.0):
        task.violated(scale * L, task.anchors)
    assert searched == [120, 120]


def test_does_not_store_too_many_pairs(monkeypatch):
    monkeypatch.setattr(_impostors, "HELD", 1)
    task = a_task()
    first = task.violated(0.1 * np.eye(4), task.anchors)
    assert task.standing.pairs.size == 0
    again = task.violated(0.1 * np.eye(4), task.anchors)
    np.testing.assert_array_equal(first.keys, again.keys)


def test_first_rounds_in_float32_end_at_the_same_optimum(monkeypatch):
    X, y = samples(300, 6)
    asked = {**PLAIN, "tol": 1e-8}
    double = LMNN(**asked).fit(X, y)
    monkeypatch.setattr(active_set, "MIN_FLOAT32_TERMS", 0)
    single = LMNN(**asked).fit(X, y)
    for fit in (double, single):
        assert fit.certificate_.relative_gap <= 1e-8
    assert single.result_.value == pytest.approx(double.result_.value, rel=1e-8)
    assert single.n_active_ == double.n_active_


def test_rejects_similar_samples_that_differ_by_rounding_only():
    rng = np.random.default_rng(0)
    data, y = np.vstack([X] * 3), np.tile(Y, 3)
    data = data * (1 + 1e-15 * rng.uniform(-1, 1, data.shape))
    with pytest.raises(ValueError, match="every similar pair are identical"):
        LMNN(n_neighbors=2).fit(data, y)


@pytest.mark.parametrize("count", [20, 60])
def test_the_slope_of_some_anchors_is_that_of_their_value(count):
    task, rng = a_task(n=60), np.random.default_rng(1)
    anchors = np.arange(count)
    L, D = rng.normal(size=(2, 4, 3))
    slope = task.slope(task.violated(L, anchors).keys, L, count / task.n)
    ahead, behind = (task.violated(L + step * D, anchors).value for step in (1e-6, -1e-6))
    assert float(np.sum(slope * D)) == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)
