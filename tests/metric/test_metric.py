"""The metric learners: what they learn, in every form of input, and what they refuse."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.common import clock
from gramian.metric import KTA, LMNN, LinearSeparation, _base
from gramian.metric.kta import regression
from gramian.objectives import gram_quadratic
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problems import metric as metric_problems
from gramian.problems import moments as moments_module
from gramian.reductions import span

LEARNERS = (KTA, LinearSeparation)
DIGITS_OPTIMUM = 247.7373706638145


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def few_samples(n=12, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.arange(n) % 3


def test_kta_reaches_the_known_optimum_on_digits():
    X, y = load_digits(return_X_y=True)
    kta = KTA(lam=1e-3, tol=1e-8).fit(StandardScaler().fit_transform(X), y)
    assert kta.result_.value == pytest.approx(DIGITS_OPTIMUM, rel=1e-10)
    assert kta.certificate_.relative_gap <= 1e-8


def test_kta_helps_neighbours_on_wine():
    """As the README says, from samples that each fold scales for itself."""
    wine, neighbours = load_wine(return_X_y=True), KNeighborsClassifier(3)
    models = [make_pipeline(StandardScaler(), *steps, neighbours) for steps in ([], [KTA()])]
    plain, learned = (1 - cross_val_score(model, *wine, cv=10).mean() for model in models)
    assert plain == pytest.approx(0.051, abs=0.0005)
    assert learned == pytest.approx(0.017, abs=0.0005)


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_value_is_that_of_the_displayed_formula(learner, wine):
    X, y = wine
    fitted = learner(lam=1e-4).fit(X, y)
    formula = {KTA: gm.problems.kta, LinearSeparation: gm.problems.linear_separation}[learner]
    problem = formula(X, y, 1e-4)
    assert problem.value(fitted.components_.T) == pytest.approx(fitted.result_.value, rel=1e-9)


@pytest.mark.parametrize("learner", LEARNERS)
def test_transform_gives_the_distances_of_the_metric(learner, wine):
    X, y = wine
    fitted = learner().fit(X, y)
    M = fitted.get_mahalanobis_matrix()
    difference = X[0] - X[5]
    expected = np.sqrt(difference @ M @ difference)
    mapped = fitted.transform(X)
    assert np.linalg.norm(mapped[0] - mapped[5]) == pytest.approx(expected)
    assert fitted.pair_distance(X[[0, 5]][None]) == pytest.approx(expected)
    assert fitted.pair_score(X[[0, 5]][None]) == pytest.approx(-expected)
    assert fitted.get_metric()(X[0], X[5]) == pytest.approx(expected)


def test_get_metric_serves_scikit_learns_neighbours(wine):
    X, y = wine
    kta = KTA(n_components=2).fit(X, y)
    by_metric = KNeighborsClassifier(3, metric=kta.get_metric()).fit(X, y).predict(X[:20])
    by_map = KNeighborsClassifier(3).fit(kta.transform(X), y).predict(kta.transform(X[:20]))
    np.testing.assert_array_equal(by_metric, by_map)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    "form", [sp.csr_matrix, sp.csr_array, pd.DataFrame, np.asfortranarray, np.ndarray.tolist]
)
def test_every_form_of_input_gives_the_same_metric(learner, form, wine):
    X, y = wine
    expected = learner().fit(X, y).get_mahalanobis_matrix()
    given = form(X)
    fitted = learner().fit(given, y)
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), expected, atol=1e-7)


@pytest.mark.parametrize("learner", LEARNERS)
def test_single_precision_is_kept_and_close(learner, wine):
    X, y = wine
    fitted = learner().fit(X.astype(np.float32), y)
    assert fitted.transform(X.astype(np.float32)).dtype == np.float32
    expected = learner().fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), expected, atol=1e-3)


@pytest.mark.parametrize("learner", LEARNERS)
def test_order_of_samples_and_shift_of_data_do_not_matter(learner, wine):
    X, y = wine
    expected = learner().fit(X, y).get_mahalanobis_matrix()
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = learner().fit(X[order], y[order]).get_mahalanobis_matrix()
    np.testing.assert_allclose(shuffled, expected, atol=1e-7)
    shifted = learner(lam=1e-4).fit(X + 3.0, y).get_mahalanobis_matrix()
    still = learner(lam=1e-4).fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(shifted, still, atol=1e-7)


@pytest.mark.parametrize("learner", LEARNERS)
def test_labels_may_be_strings_and_frames_keep_names(learner, wine):
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(13)])
    fitted = learner(n_components=2).set_output(transform="pandas").fit(frame, y.astype(str))
    assert list(fitted.classes_) == ["0", "1", "2"]
    mapped = fitted.transform(frame)
    name = learner.__name__.lower()
    assert list(mapped.columns) == [f"{name}0", f"{name}1"] == list(fitted.get_feature_names_out())
    assert list(fitted.feature_names_in_) == list(frame.columns)


def test_components_are_uncorrelated_with_decreasing_variance(wine):
    X, y = wine
    full, two = KTA(lam=1e-3).fit(X, y), KTA(lam=1e-3, rank=13, n_components=2).fit(X, y)
    scatter = np.cov(full.transform(X).T)
    assert np.all(np.diff(np.diag(scatter)) <= 1e-12)
    np.testing.assert_allclose(scatter, np.diag(np.diag(scatter)), atol=1e-9)
    np.testing.assert_allclose(two.transform(X), full.transform(X)[:, :2], atol=1e-7)


def test_a_rank_limit_is_kept_and_its_cost_certified(wine):
    X, y = wine
    free, limited = KTA(lam=1e-3).fit(X, y), KTA(lam=1e-3, rank=2).fit(X, y)
    assert limited.components_.shape == (2, 13)
    cost = limited.result_.value - free.result_.value
    assert 0 < cost <= limited.certificate_.gap


@pytest.mark.parametrize("regularizer", sorted(metric_problems.REGULARIZERS))
def test_each_regulariser_of_kta(regularizer, wine):
    X, y = wine
    kta = KTA(regularizer=regularizer, lam=1e-3).fit(X, y)
    assert kta.certificate_.relative_gap <= 1e-4


@pytest.mark.parametrize("regularizer", ["identity", "frobenius"])
def test_linear_separation_is_a_projection(regularizer, wine):
    X, y = wine
    fitted = LinearSeparation(lam=1e-4, regularizer=regularizer).fit(X, y)
    S = np.where(y[:, None] == y, 1.0, -1.0)
    scatter = X.T @ (np.diag(S.sum(axis=1)) - S) @ X
    target = (np.eye(13) if regularizer == "identity" else 0) - 0.5e-4 * scatter
    values, vectors = np.linalg.eigh(target)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), expected, atol=1e-4)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_fewer_samples_than_features_are_solved_in_their_span(learner, form):
    X, y = few_samples()
    X -= X.mean(axis=0)
    fitted = learner(lam=0.01, tol=1e-9).fit(form(X), y)
    formula = {KTA: gm.problems.kta, LinearSeparation: gm.problems.linear_separation}[learner]
    whole = gm.minimize(formula(X, y, 0.01), tol=1e-9)
    assert fitted.result_.value == pytest.approx(whole.value, rel=1e-7)
    np.testing.assert_allclose(
        X @ fitted.get_mahalanobis_matrix() @ X.T, X @ whole.matrix() @ X.T, atol=1e-4
    )


@pytest.fixture
def small_limits(monkeypatch):
    """Treat orders above 5 as too large to decompose, to reach the matrix-free path."""
    for module in (_base, span, gram_quadratic, metric_problems, moments_module):
        monkeypatch.setattr(module, "DENSE_ORDER", 5)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_matrix_free_path_agrees(learner, form, wine, small_limits, monkeypatch):
    X, y = wine
    with monkeypatch.context() as usual:
        usual.undo()
        expected = learner(lam=1e-4, tol=1e-7).fit(X, y)
    free = learner(lam=1e-4, tol=1e-6, rank=13, solver="bilgo").fit(form(X), y)
    assert free.result_.value == pytest.approx(expected.result_.value, rel=1e-5)


@pytest.mark.parametrize("lam", [1e-2, 1.0, 1e6])
def test_a_large_problem_starts_near_its_optimum(lam, wine, small_limits):
    X, y = wine
    data = moments_module.moments(sp.csr_array(X), y, center=True)
    problem = metric_problems.kta_from_moments(data, lam)
    start, nothing = (problem.value(L) for L in (regression(data, lam), np.zeros((13, 1))))
    optimum = gm.minimize(problem, "bilgo", tol=1e-6).value
    assert start - optimum < 0.1 * (nothing - optimum)
    limited = KTA(lam=lam, rank=5).fit(sp.csr_array(X), y)
    assert limited.result_.value <= start
    assert limited.result_.rank <= 5


def test_the_weight_is_chosen_for_the_rank():
    """Metrics of that rank are compared; λ = 0 gives the principal directions."""
    X, y = load_digits(return_X_y=True)
    X = X / X.std()
    few = KTA(rank=10).fit(X[::2], y[::2])
    assert few.path_.errors[few.path_.chosen] == few.path_.errors.min()
    assert KTA(rank=2).fit(X[::2], y[::2]).lam_ > 0
    near = KNeighborsClassifier(3).fit(few.transform(X[::2]), y[::2])
    assert near.score(few.transform(X[1::2]), y[1::2]) > 0.94


def test_weights_are_chosen_without_a_gram_matrix(wine, small_limits):
    X, y = wine
    kta = KTA(rank=3).fit(sp.csr_array(X), y)
    assert kta.lam_ > 0
    assert kta.certificate_.gap >= 0


def test_grid_search_and_clone(wine):
    search = GridSearchCV(
        make_pipeline(KTA(), KNeighborsClassifier(3)), {"kta__lam": [1e-6, 1e-2, "auto"]}, cv=3
    ).fit(*wine)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("learner", LEARNERS)
def test_fit_changes_no_parameter_and_repeats(learner, wine):
    fitted = learner()
    before = fitted.get_params()
    first = fitted.fit(*wine).components_
    assert fitted.get_params() == before
    np.testing.assert_array_equal(first, learner().fit(*wine).components_)


@pytest.mark.parametrize("learner", LEARNERS)
def test_not_converging_warns(learner, wine):
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        learner(solver="bilgo", max_iter=1, lam=1e-3).fit(*wine)


BAD = {
    "NaN": (lambda X, y: (np.where(X > 2, np.nan, X), y), "NaN"),
    "infinity": (lambda X, y: (np.where(X > 2, np.inf, X), y), "infinity"),
    "one class": (lambda X, y: (X, np.zeros(len(y))), "one class"),
    "one sample": (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
    "lengths": (lambda X, y: (X, y[:-1]), "inconsistent"),
    "complex": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "objects": (lambda X, y: (np.full((4, 2), "a", dtype=object), y[:4]), "could not convert"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no features": (lambda X, y: (X[:, :0], y), "0 feature"),
    "one dimension": (lambda X, y: (X[:, 0], y), "2D"),
    "regression target": (lambda X, y: (X, np.linspace(0, 1, len(y))), "continuous"),
    "NaN label": (lambda X, y: (X, np.where(y == 0, np.nan, y)), "NaN"),
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("case", BAD)
def test_rejects_bad_data_and_names_it(learner, case, wine):
    spoil, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        learner().fit(*spoil(*wine))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": -1.0}, "at least 0"),
        ({"lam": np.nan}, "finite"),
        ({"lam": "best"}, '"auto"'),
        ({"regularizer": "ridge"}, "regularizer must be"),
        ({"rank": 0}, "between 1"),
        ({"rank": 14}, "between 1"),
        ({"rank": 2.5}, "whole number"),
        ({"n_components": 0}, "between 1"),
        ({"n_components": 14}, "between 1"),
        ({"rank": 2, "n_components": 3}, "more directions"),
        ({"solver": "bilog"}, "did you mean 'bilgo'"),
        ({"tol": -1}, "tol"),
    ],
)
def test_rejects_bad_parameters_and_names_them(learner, parameters, message, wine):
    with pytest.raises(ValueError, match=message):
        learner(**parameters).fit(*wine)


def test_rejects_pairs_of_the_wrong_shape(wine):
    kta = KTA().fit(*wine)
    with pytest.raises(ValueError, match=r"\(n_pairs, 2, n_features\)"):
        kta.pair_distance(wine[0])


def test_constant_features_and_repeated_samples_do_no_harm(wine):
    X, y = wine
    X = np.hstack([X, np.ones((len(y), 2))])
    X, y = np.vstack([X, X[:20]]), np.concatenate([y, y[:20]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kta = KTA().fit(X, y)
    plain = KTA(lam=kta.lam_).fit(X[:, :-2], y).transform(X[:, :-2])
    np.testing.assert_allclose(pdist(kta.transform(X)), pdist(plain), atol=1e-4)


def test_all_features_constant():
    kta = KTA().fit(np.ones((6, 3)), np.arange(6) % 2)
    M = kta.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(3), atol=1e-9)


@pytest.mark.slow
@pytest.mark.data
def test_faces_are_learned_without_a_square_matrix():
    folder = os.environ.get("GRAMIAN_DATA")
    if not folder:
        pytest.skip("set GRAMIAN_DATA to the folder of the benchmark data sets")
    faces = np.load(Path(folder) / "orl_faces.npz")
    kta = KTA().fit(faces["X"] / 255.0, faces["y"])
    assert kta.components_.shape == (399, 10304)
    assert kta.certificate_.relative_gap <= 1e-4


def test_a_metric_of_no_direction_still_transforms():
    X, y = load_wine(return_X_y=True)
    nothing = np.zeros((13, 0))
    model = KTA(lam=1.0).fit(X, y)
    model._finish(model.result_, nothing, as_symmetric(np.eye(13), "gram", 13), None)
    assert model.components_.shape == (1, 13)
    assert model.transform(X).shape == (178, 1)
    assert not model.transform(X).any()


def test_outer_fit_reports_the_time_limit_of_an_inner_fit(monkeypatch):
    X, y = load_wine(return_X_y=True)

    def inner(*given, **named):
        raise clock.TimeUpError

    monkeypatch.setattr(KTA, "_check", inner)
    outer = LMNN(time_limit=5.0)
    monkeypatch.setattr(LMNN, "_check", lambda self, n: KTA().fit(X, y))
    with pytest.raises(TimeoutError, match=r"the time limit of 5 s ended before LMNN"):
        outer.fit(X, y)


def test_interrupt_without_a_result_is_reported(monkeypatch):
    X, y = load_wine(return_X_y=True)

    def ended(self, n):
        clock.interrupt()
        clock.check()

    monkeypatch.setattr(KTA, "_check", ended)
    for model in (KTA(), KTA(time_limit=100.0)):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
