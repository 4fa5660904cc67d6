"""ClassCollapse: its problem, its certificate, few columns, targets, batches and the ridge."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_wine, make_circles, make_moons
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
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


def curved(make):
    """Two curved classes in the plane, and two features of noise."""
    plane, y = make(120, noise=0.05, random_state=0)
    noise = np.random.default_rng(0).normal(scale=0.3, size=(120, 2))
    return np.hstack([plane, noise]), y


@pytest.mark.parametrize("make", [lambda *a, **k: make_circles(*a, factor=0.5, **k), make_moons])
def test_a_kernel_separates_curved_classes_in_two_dimensions(make):
    X, y = curved(make)
    train, test = slice(0, None, 2), slice(1, None, 2)
    right = []
    for kernel in (None, "rbf"):
        fitted = ClassCollapse(n_components=2, kernel=kernel).fit(X[train], y[train])
        nearest = NearestCentroid().fit(fitted.transform(X[train]), y[train])
        right.append(nearest.score(fitted.transform(X[test]), y[test]))
    assert right[0] < 0.9 and right[1] > 0.95


@pytest.mark.parametrize("k", [2, None])
@pytest.mark.parametrize("step", [3, 16], ids=["tall", "wide"])
def test_a_linear_kernel_gives_the_metric_of_features(k, step):
    X, y = WINE[::step], KINDS[::step]
    plain, kernel = (
        ClassCollapse(n_components=k, kernel=kernel, ridge=0.1).fit(X, y)
        for kernel in (None, "linear")
    )
    expected = pdist(plain.transform(WINE))
    assert pdist(kernel.transform(WINE)) == pytest.approx(expected, abs=1e-3 * expected.max())
    assert not hasattr(kernel, "components_") and kernel.dual_components_.shape[1] == len(y)


def test_a_kernel_map_depends_neither_on_order_nor_names_nor_form():
    order = np.random.default_rng(0).permutation(60)
    X, y = WINE[::3], KINDS[::3]
    plain = ClassCollapse(n_components=2, kernel="rbf").fit(X, y)
    renamed = np.array(["b", "c", "a"])[y]
    other = ClassCollapse(n_components=2, kernel="rbf").fit(sp.csr_array(X[order]), renamed[order])
    assert other.ridge_ == plain.ridge_
    expected = plain.transform(WINE)
    assert other.transform(sp.csr_array(WINE)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("k", [1, None])
def test_the_certificate_of_a_kernel_bounds_an_optimum_found_otherwise(k):
    """Kernel principal components, and SciPy's L-BFGS on a factor of full rank."""
    X, y = WINE[::9], KINDS[::9]
    fitted = ClassCollapse(n_components=k, kernel="rbf", targets="uniform", ridge=0.1).fit(X, y)
    gamma = 1.0 / np.sum(np.var(X, axis=0))
    Z = KernelPCA(len(y) - 1, kernel="rbf", gamma=gamma).fit_transform(X)
    gaps = Z[:, None] - Z
    same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    q = same / same.sum(axis=1, keepdims=True)
    pull = 0.1 * np.einsum("ij,ijk,ijk", q, gaps, gaps) / Z.shape[1]

    def objective(entries):
        L = entries.reshape(Z.shape[1], -1)
        squares = np.sum(((Z @ L)[:, None] - Z @ L) ** 2, axis=2)
        shares = np.exp(-squares) * ~np.eye(len(y), dtype=bool)
        sums = shares.sum(axis=1, keepdims=True)
        w = q - shares / sums
        w = w + w.T
        gradient = 2.0 * (Z.T @ (np.diag(w.sum(axis=1)) - w) @ (Z @ L) + pull * L)
        value = np.sum(q * squares) + np.sum(np.log(sums)) + pull * np.sum(L * L)
        return value, gradient.ravel()

    start = np.eye(Z.shape[1]).ravel()
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000})
    certificate = fitted.certificate_
    assert certificate.lower_bound <= found.fun * (1 + 1e-9)
    assert found.fun <= certificate.value + 1e-6 * abs(found.fun)
    if k is None:
        assert certificate.relative_gap <= 1e-3
        assert certificate.value == pytest.approx(found.fun, rel=1e-3)


def test_a_kernel_map_starts_from_init_and_is_updated():
    first = ClassCollapse(n_components=2, kernel="rbf", ridge=0.1).update(WINE[::4], KINDS[::4])
    later = first.update(WINE[1::4], KINDS[1::4])
    whole = ClassCollapse(n_components=2, kernel="rbf", ridge=0.1, init=later)
    whole.fit(later.seen_["X"], later.seen_["y"])
    assert whole.certificate_.value <= later.certificate_.value * (1 + 1e-3)
    with pytest.raises(ValueError, match="init must be fitted with one too"):
        ClassCollapse(kernel="rbf", init=ClassCollapse(ridge=0.1).fit(WINE, KINDS)).fit(WINE, KINDS)
