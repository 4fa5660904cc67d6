"""The automatic choice between metric learners: what it takes, reports, keeps and saves."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian import Status
from gramian.common import clock
from gramian.metric import KTA, AutoMetric, MetricClassifier, _choice, _evidence, auto_metric
from gramian.metric._evidence import Trial
from tests.slow import slow_except

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def fitted():
    return AutoMetric().fit(X, Y)


def test_table_lists_every_candidate_and_the_choice(fitted):
    path = fitted.path_
    assert path.names == ("the Euclidean metric", "KTA", "ClassCollapse", "DMLEig", "LMNN")
    assert path.held_out == len(Y) and path.gained and path.name == path.names[path.chosen]
    assert path.errors[path.chosen] < path.errors[0]
    assert path.errors.min() <= path.nested_error < path.errors[0]
    assert path.standard_errors[0] == 0 and np.all(path.seconds[1:] > 0)
    lines = str(path).splitlines()
    assert lines[0].startswith(f"{path.name} was taken") and len(lines) == 6
    assert all(name in line for name, line in zip(path.names, lines[1:], strict=True))
    assert path.plot().axes[0].get_xlabel().endswith("held out")


def test_metric_is_that_of_the_selected_learner(fitted):
    size = np.sqrt(np.mean((X - X.mean(axis=0)) ** 2))
    again = clone(fitted.learner_).fit(X / size, Y)
    np.testing.assert_allclose(again.components_ / size, fitted.components_, atol=1e-6)
    assert type(fitted.learner_).__name__ == fitted.path_.name
    assert fitted.certificate_ is fitted.learner_.certificate_
    assert fitted.certificate_.relative_gap <= fitted.tol
    mapped = fitted.transform(X)
    far = np.linalg.norm(mapped[0] - mapped[1])
    np.testing.assert_allclose(fitted.pair_distance([[0, 1]], X=X), far)
    np.testing.assert_allclose(fitted.get_metric()(X[0], X[1]), far)
    M = fitted.get_mahalanobis_matrix()
    np.testing.assert_allclose((X[0] - X[1]) @ M @ (X[0] - X[1]), far**2)


@pytest.mark.parametrize("change", slow_except(["rows and names", "scale", "sparse"], "scale"))
def test_selection_is_invariant_to_order_and_names(fitted, change):
    order = np.random.default_rng(0).permutation(len(Y))
    if change == "rows and names":
        other = AutoMetric().fit(X[order], np.array(["c", "a", "b"])[Y[order]])
    else:
        other = AutoMetric().fit(1e3 * X if change == "scale" else sp.csr_array(X), Y)
    assert other.path_.name == fitted.path_.name
    np.testing.assert_allclose(other.path_.errors, fitted.path_.errors, atol=1e-9)
    M, N = fitted.get_mahalanobis_matrix(), other.get_mahalanobis_matrix()
    np.testing.assert_allclose(N / np.trace(N), M / np.trace(M), atol=1e-6)


def test_lambda_of_kta_is_confirmed_with_about_as_many_samples_as_features(monkeypatch):
    monkeypatch.setattr(AutoMetric, "_others", lambda self, classes: [])
    rng = np.random.default_rng(7)
    means, scales = rng.standard_normal((5, 30)), np.geomspace(1, 0.1, 30)
    y = np.arange(533) % 5
    samples = (means[y] + rng.standard_normal((533, 30))) * scales
    train, test = slice(33), slice(33, None)
    metric = AutoMetric().fit(samples[train], y[train])
    found, plain = (
        KNeighborsClassifier(3).fit(Z[train], y[train]).score(Z[test], y[test])
        for Z in (metric.transform(samples), samples)
    )
    assert found > plain - 0.02  # 0.42 by the λ that is best for the parts of the trial, and 0.87


def test_keeps_the_euclidean_metric_if_no_candidate_is_better():
    circles, y = make_circles(120, noise=0.15, factor=0.5, random_state=0)
    found = AutoMetric().fit(circles, y)
    assert not found.path_.gained and found.learner_.lam_ == 0
    assert str(found.path_).startswith(
        "nothing is gained by learning: the Euclidean metric is kept"
    )
    M = found.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, M[0, 0] * np.eye(2), atol=1e-12)


def test_saves_the_table_of_candidates(fitted, tmp_path):
    fitted.save(tmp_path / "m.gramian")
    again = gm.load(tmp_path / "m.gramian")
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert str(again.path_) == str(fitted.path_)
    assert type(again.learner_) is type(fitted.learner_)


def test_report_names_the_candidates(fitted, tmp_path):
    page = fitted.report(tmp_path / "page.html").read_text("utf-8")
    assert "ClassCollapse" in page and f"{fitted.path_.name} was taken" in page


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"n_components": 2}, {"rank": 2}])
def test_selects_for_the_number_of_components(limit):
    found = AutoMetric(**limit).fit(IRIS, SPECIES)
    assert found.transform(IRIS).shape == (150, 2)
    assert found.path_.errors[found.path_.chosen] < 0.1


def test_local_learners_are_fitted_without_rare_classes(fitted):
    rare = np.concatenate([Y, [3, 4, 4]])
    samples = np.vstack([X, X[:3] + 10.0])
    found = AutoMetric().fit(samples, rare)
    assert found.path_.names == fitted.path_.names and found.path_.held_out == len(Y)
    np.testing.assert_array_equal(found.classes_, np.arange(5))
    for place in (3, 4):
        learner = found._fitted(replace(found.path_, chosen=place), samples, rare, rare)
        assert learner.n_neighbors == 3
        np.testing.assert_array_equal(learner.classes_, np.arange(3))


def test_few_components_are_those_of_the_chosen_learner():
    found = AutoMetric(n_components=2, tol=1e-2).fit(X, Y)
    assert found.transform(X).shape == (len(Y), 2)
    collapse = replace(found.path_, chosen=found.path_.names.index("ClassCollapse"))
    learner = found._fitted(collapse, X, Y, Y)
    assert learner.n_components == 2 and learner.components_.shape == (2, X.shape[1])


def test_share_of_other_classes_among_the_nearest():
    near, squares = np.array([[0, 1, 2], [0, 1, 2]]), np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
    classes, asked = np.array([0, 1, 1]), np.array([0, 0])
    found = _evidence.other_shares(near, squares, classes, asked, 1e-9)
    np.testing.assert_allclose(found, [2 / 3, 2 / 3])
    tied = _evidence.other_shares(
        np.arange(8)[None],
        np.r_[np.ones(6), 2.0, 2.0][None],
        np.arange(8) % 8 // 6,
        asked[:1],
        1e-9,
    )
    np.testing.assert_allclose(tied, [1 / 7])  # two samples of the other class share the last place


def test_uses_kta_with_too_few_samples_to_hold_out():
    lonely = np.r_[SPECIES[::10], 3]
    found = AutoMetric().fit(np.vstack([IRIS[::10], [[9.0] * 4]]), lonely)
    assert isinstance(found.learner_, KTA) and not hasattr(found, "path_")
    assert found.learner_.get_params() == {**KTA().get_params(), "progress": False}


def test_uses_kta_if_the_time_is_up_before_the_choice(monkeypatch):
    def late(*given):
        raise clock.TimeUpError

    monkeypatch.setattr(_choice, "_weights", late)
    found = AutoMetric().fit(IRIS, SPECIES)
    assert isinstance(found.learner_, KTA) and not hasattr(found, "path_")


def test_warns_if_no_learner_was_compared():
    with pytest.warns(ConvergenceWarning, match="has compared no learners"):
        found = AutoMetric(time_limit=1e-3).fit(IRIS, SPECIES)
    assert isinstance(found.learner_, KTA) and not hasattr(found, "path_")


def test_a_choice_that_was_interrupted_is_reported(monkeypatch):
    def interrupted(*given):
        clock.interrupt()

    monkeypatch.setattr(auto_metric, "choose_learner", interrupted)
    with pytest.warns(ConvergenceWarning):
        found = AutoMetric().fit(IRIS, SPECIES)
    assert found.result_.status is Status.INTERRUPTED


def test_omits_candidates_beyond_the_time_limit(monkeypatch):
    mixtures = _choice._mixtures

    def late(trial, learner, *given):
        if type(learner).__name__ == "LMNN":
            now = clock.now
            monkeypatch.setattr(clock, "now", lambda: now() + 60.0)  # half of the limit is over
        return mixtures(trial, learner, *given)

    monkeypatch.setattr(_choice, "_mixtures", late)
    found = AutoMetric(time_limit=100.0).fit(IRIS, SPECIES)
    assert found.path_.names == ("the Euclidean metric", "KTA", "ClassCollapse", "DMLEig")
    assert found.result_.status.converged


@pytest.mark.filterwarnings("ignore:.*interrupted from the keyboard")
def test_interrupt_keeps_the_candidates_before_it(monkeypatch):
    calls, votes = [], Trial.judge

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 12:  # KTA has nine parts
            raise KeyboardInterrupt
        return votes(*given)

    monkeypatch.setattr(Trial, "judge", interrupted)
    found = AutoMetric().fit(IRIS, SPECIES)
    assert found.path_.names == ("the Euclidean metric", "KTA") and len(calls) == 12
    assert found.result_.status is Status.INTERRUPTED


def test_classifier_uses_it_by_default():
    model = MetricClassifier().fit(IRIS[::2], SPECIES[::2])
    assert isinstance(model.metric_, AutoMetric) and model.metric_.path_.held_out == 75
    assert model.score(IRIS[1::2], SPECIES[1::2]) > 0.9
