"""ClassCollapse: its problem, its certificate, few columns, targets, batches and the ridge."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.losses.collapse import SoftCollapse
from gramian.metric import ClassCollapse, class_collapse
from gramian.outcome import InconsistentResultWarning
from gramian.problems.class_collapse import target_unit

WINE, KINDS = load_wine(return_X_y=True)
WINE = StandardScaler().fit_transform(WINE)
DIGITS, FIGURES = load_digits(return_X_y=True)
DIGITS = StandardScaler().fit_transform(DIGITS)


def test_the_optimum_of_any_rank_is_certified_for_uniform_targets():
    fitted = ClassCollapse(targets="uniform", ridge=0.1).fit(WINE, KINDS)
    assert fitted.result_.status is gm.Status.CONVERGED
    assert fitted.certificate_.relative_gap <= 1e-3
    problem = gm.problems.class_collapse(WINE, KINDS, ridge=0.1)
    value = problem.value(fitted.components_.T)
    assert value == pytest.approx(fitted.certificate_.value, rel=1e-6)
    assert problem.value(1.05 * fitted.components_.T) >= fitted.certificate_.lower_bound


@pytest.mark.parametrize("targets", ["soft", "uniform"])
def test_minimises_over_few_columns(targets):
    """Better than the leading directions of the optimum of any rank, and above its bound."""
    whole = ClassCollapse(targets=targets, ridge=0.1).fit(WINE, KINDS)
    few = ClassCollapse(n_components=1, targets=targets, ridge=0.1).fit(WINE, KINDS)
    assert few.components_.shape == (1, 13)
    assert few.result_.status is gm.Status.LOCAL
    assert few.result_.seconds > 0
    assert 0 <= few.certificate_.gap < np.inf
    if targets == "uniform":
        problem = gm.problems.class_collapse(WINE, KINDS, ridge=0.1)
        scales = np.geomspace(0.1, 10, 30)
        cut = min(problem.value(scale * whole.components_[:1].T) for scale in scales)
        assert few.certificate_.value < cut
        assert few.certificate_.lower_bound <= whole.certificate_.value + 1e-9


def test_result_of_few_columns_is_checked(monkeypatch):
    monkeypatch.setattr("gramian.outcome._fault", lambda *_: "planted fault")
    with pytest.warns() as caught:
        fitted = ClassCollapse(n_components=1, ridge=0.1).fit(WINE, KINDS)
    assert InconsistentResultWarning in {warning.category for warning in caught}
    assert fitted.result_.status is gm.Status.STALLED


def test_soft_targets_are_a_stationary_point_of_the_convex_problem():
    fitted = ClassCollapse(n_components=2, ridge=0.1).fit(WINE, KINDS)
    L = fitted.result_.factor
    assert fitted.result_.formula.startswith("min Σ_i") or "Σ_i" in fitted.result_.formula
    assert abs(fitted.certificate_.complementarity) <= 0.05 * fitted.certificate_.value
    assert L.shape[1] == 2


def test_digits_in_two_dimensions_have_fewer_errors_than_the_discriminant():
    train, test = slice(0, 400), slice(400, 1000)
    fitted = ClassCollapse(n_components=2).fit(DIGITS[train], FIGURES[train])
    plain = LinearDiscriminantAnalysis(n_components=2).fit(DIGITS[train], FIGURES[train])
    wrong = [
        1 - KNeighborsClassifier(3)
        .fit(model.transform(DIGITS[train]), FIGURES[train])
        .score(model.transform(DIGITS[test]), FIGURES[test])
        for model in (fitted, plain)
    ]  # fmt: skip
    assert wrong[0] < wrong[1]
    assert fitted.ridge_ == fitted.path_.value and len(fitted.path_.errors) == 4


def test_batches_have_the_same_mixture_of_classes(monkeypatch):
    monkeypatch.setattr(class_collapse, "BATCH", 60)
    batches = class_collapse._Batches.of(WINE, KINDS)
    assert batches.sizes == (60, 59, 59)
    counts = [
        np.bincount(part) for part in np.split(batches.classes, np.cumsum(batches.sizes)[:-1])
    ]
    assert np.ptp(counts, axis=0).max() <= 1
    fitted = ClassCollapse(n_components=2, ridge=0.1).fit(WINE, KINDS)
    whole = KNeighborsClassifier(3).fit(fitted.transform(WINE), KINDS)
    assert whole.score(fitted.transform(WINE), KINDS) > 0.95
    assert fitted.certificate_.gap >= 0


def test_uses_a_subset_of_many_samples(monkeypatch):
    monkeypatch.setattr(class_collapse, "MOST", 100)
    assert sum(class_collapse._Batches.of(WINE, KINDS).sizes) == 100


def test_starts_from_init():
    first = ClassCollapse(n_components=2, ridge=0.1).fit(WINE, KINDS)
    again = ClassCollapse(n_components=2, ridge=0.1, init=first).fit(WINE, KINDS)
    assert again.certificate_.value <= first.certificate_.value * (1 + 1e-3)


def test_invariant_to_order_and_rotation():
    rng = np.random.default_rng(0)
    order = rng.permutation(len(KINDS))
    turn = np.linalg.qr(rng.standard_normal((13, 13)))[0]
    plain = ClassCollapse(n_components=2, ridge=0.1).fit(WINE, KINDS)
    turned = ClassCollapse(n_components=2, ridge=0.1).fit((WINE @ turn)[order], KINDS[order])
    assert turned.certificate_.value == pytest.approx(plain.certificate_.value, rel=1e-3)


def test_the_scale_of_the_samples_does_not_matter():
    plain = ClassCollapse(n_components=2, ridge=0.1).fit(WINE, KINDS)
    small = ClassCollapse(n_components=2, ridge=0.1).fit(1e-4 * WINE, KINDS)
    assert small.certificate_.value == pytest.approx(plain.certificate_.value, rel=1e-3)


def test_a_class_of_one_sample_is_rejected():
    with pytest.raises(ValueError, match="has a single sample"):
        ClassCollapse().fit(WINE, np.r_[9, KINDS[1:]])


@pytest.mark.parametrize(("name", "value"), [("ridge", 0.0), ("targets", "hard"), ("tol", 2)])
def test_rejects_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        ClassCollapse(**{name: value}).fit(WINE, KINDS)


def test_problem_is_its_formula():
    X, y = WINE[::12], KINDS[::12]
    L = 0.3 * np.random.default_rng(0).standard_normal((13, 3))
    squares = np.sum(((X @ L)[:, None] - (X @ L)) ** 2, axis=2)
    total, scatter = 0.0, 0.0
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        own = others & (y == y[i])
        total += squares[i, own].mean() + np.log(np.sum(np.exp(-squares[i, others])))
        scatter += np.mean(np.sum((X[own] - X[i]) ** 2, axis=1))
    assert target_unit(X, y, (len(y),)) == pytest.approx(scatter / 13)
    expected = total + 0.2 * scatter / 13 * np.sum(L * L)
    assert gm.problems.class_collapse(X, y, ridge=0.2).value(L) == pytest.approx(expected)


def test_problem_rejects_targets_of_another_shape():
    with pytest.raises(ValueError, match=r"targets must have shape \(178, 178\)"):
        gm.problems.class_collapse(WINE, KINDS, targets=np.ones((3, 3)))


@pytest.mark.parametrize("at", [1, 3, 40])
@pytest.mark.parametrize("ridge", [0.1, "auto"])
def test_interrupt_keeps_a_map(at, ridge, monkeypatch):
    """Of the choice of the ridge, of a trial, or of the descent from the best start."""
    calls, gradient = [], SoftCollapse.gradient

    def interrupted(self, z):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return gradient(self, z)

    monkeypatch.setattr(SoftCollapse, "gradient", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        fitted = ClassCollapse(n_components=2, ridge=ridge).fit(WINE, KINDS)
    assert fitted.result_.status is gm.Status.INTERRUPTED
    assert np.all(np.isfinite(fitted.transform(WINE))) and fitted.components_.shape == (2, 13)
