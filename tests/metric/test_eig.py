"""DMLEig and LMNNEig: the max–min problems they bound, their models, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.constraints import as_pairs, local_pairs, local_triplets, same_class_neighbors
from gramian.metric import KTA, DMLEig, LMNNEig, _base, kta
from gramian.problems.local_metric import pair_scatter, whitening
from tests.conic import _Model, add
from tests.slow import slow

LEARNERS = (DMLEig, LMNNEig)
EVERY_LEARNER = pytest.mark.parametrize("learner", LEARNERS)
DML_FIRST = pytest.mark.parametrize("learner", [DMLEig, slow(LMNNEig)])
PLAIN = {"neighbor_metric": "euclidean", "ridge": 0.0, "shrinkage": 0.0}


def samples(n=45, d=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    X = rng.standard_normal((n, d)) * np.linspace(1.0, 2.0, d)
    X[:, :2] += 2.0 * np.column_stack([y == 0, y == 1])
    return X, y


X, Y = samples()
TINY = samples(n=15, d=3, seed=1)


def squared(learner, data, pairs):
    mapped = learner.transform(data)
    return np.sum((mapped[pairs[:, 0]] - mapped[pairs[:, 1]]) ** 2, axis=1)


def margins(learner, data, triplets):
    far, near = triplets[:, [0, 2]], triplets[:, :2]
    return squared(learner, data, far) - squared(learner, data, near)


def all_distances(learner, data):
    mapped = learner.transform(data)
    return np.sum((mapped[:, None] - mapped) ** 2, axis=2)


def in_whitened(learner, data, y, ridge=0.0):
    """S with M = RSRᵀ, where R whitens the similar pairs."""
    inverse = whitening(data, local_pairs(data, y, 3)[0], ridge=ridge).plain
    return inverse @ learner.get_mahalanobis_matrix() @ inverse.T


# --- the optima of the max–min problems, by Clarabel ----------------------------------


def forms(data, pairs):
    """Rows ⟨x xᵀ, ·⟩ of the pairs' differences over symmetric matrices."""
    difference = data[pairs[:, 0]] - data[pairs[:, 1]]
    return lambda M: np.einsum("pi,ij,pj->p", difference, M, difference)


def largest_minimum(data, y, k):
    """max min_D d_M over M ⪰ 0 with Σ_S d_M ≤ 1."""
    clarabel = pytest.importorskip("clarabel")
    similar, dissimilar = local_pairs(data, y, k)
    model = _Model(data.shape[1])
    total = model.of_M(lambda M: forms(data, similar)(M).sum()[None])
    model.nonnegative(-total, 1.0)
    distances = model.of_M(forms(data, dissimilar))
    t = model.variables(1)
    model.nonnegative(add(distances, np.repeat(-t, len(distances), axis=0)))
    model.add_linear(-t[0])
    return -model.minimum(clarabel)


def least_hinge(data, y, k, gamma):
    """min γ Σ_S d_M + (1 − γ) Σ_T max(0, 1 − ⟨C_τ, M⟩) over M ⪰ 0: DML-eig eq. (7)."""
    clarabel = pytest.importorskip("clarabel")
    similar, triplets = local_pairs(data, y, k)[0], local_triplets(data, y, k)
    model = _Model(data.shape[1])
    far, near = forms(data, triplets[:, [0, 2]]), forms(data, triplets[:, :2])
    model.add_linear(gamma * model.of_M(lambda M: forms(data, similar)(M).sum()[None])[0])
    margin = model.of_M(lambda M: far(M) - near(M))
    hinge = model.variables(len(margin))
    model.nonnegative(hinge)
    model.nonnegative(add(hinge, margin), -1.0)
    model.add_linear((1 - gamma) * hinge.sum(axis=0))
    return model.minimum(clarabel)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("solver", ["auto", "frank-wolfe"])
def test_dml_eig_reaches_the_largest_minimum(k, solver):
    data, y = TINY
    best = largest_minimum(data, y, k)
    options = PLAIN | {"n_neighbors": k, "floor": 0.0, "solver": solver}
    coarse = DMLEig(**options).fit(data, y)
    fine = DMLEig(**options, mu=1e-4 * best, tol=1e-5).fit(data, y)
    for learner in (coarse, fine):
        assert learner.max_min_.value <= best * (1 + 1e-7)
        assert learner.max_min_.bound >= best * (1 - 1e-7)
    assert fine.max_min_.value == pytest.approx(best, rel=2e-3)
    assert fine.max_min_.bound == pytest.approx(best, rel=2e-3)
    assert fine.max_min_.relative_gap < 2e-3
    assert coarse.max_min_.relative_gap > fine.max_min_.relative_gap


@pytest.mark.parametrize("gamma", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("k", [1, 2])
def test_lmnn_eig_is_equivalent_to_the_plain_hinge(gamma, k):
    """Lemma 2: the least hinge objective is 1 over the largest margin with slack."""
    data, y = TINY
    least = least_hinge(data, y, k, gamma)
    learner = LMNNEig(**PLAIN, n_neighbors=k, lam=gamma, floor=0.0, mu=1e-4 / least, tol=1e-6).fit(
        data, y
    )
    reached = learner.max_min_
    assert reached.value <= (1 + 1e-6) / least
    assert reached.bound >= (1 - 1e-6) / least
    assert reached.relative_gap < 1e-2
    similar, triplets = local_pairs(data, y, k)[0], local_triplets(data, y, k)
    pull = np.sum(squared(learner, data, similar)) / reached.value
    slack = np.maximum(0.0, 1 - margins(learner, data, triplets) / reached.value)
    objective = gamma * pull + (1 - gamma) * np.sum(slack)
    assert least * (1 - 1e-6) <= objective <= least * 1.02
    assert objective == pytest.approx(1 / reached.bound, rel=0.02)


# --- certificates and the models -----------------------------------------------------


@EVERY_LEARNER
@pytest.mark.parametrize("floor", [slow(0.0), 0.3, slow(0.7)])
@pytest.mark.parametrize("mu", ["auto", slow(1e-3)])
@pytest.mark.parametrize("tol", [slow(1e-3), 1e-6])
def test_the_gap_is_within_tol_and_the_value_within_its_bound(learner, floor, mu, tol):
    fitted = learner(floor=floor, mu=mu, tol=tol).fit(X, Y)
    assert fitted.certificate_.relative_gap <= tol
    assert fitted.result_.status is gm.Status.CONVERGED
    assert 0 < fitted.max_min_.value <= fitted.max_min_.bound
    assert fitted.max_min_.gap >= 0
    assert fitted.mu_ == (1e-3 if mu != "auto" else fitted.mu_) > 0


@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_dml_eig_reports_the_smallest_distance_of_its_metric(floor):
    fitted = DMLEig(**PLAIN, floor=floor, tol=1e-6).fit(X, Y)
    similar, dissimilar = local_pairs(X, Y, 3)
    smallest = squared(fitted, X, dissimilar).min()
    assert fitted.max_min_.value == pytest.approx(smallest, rel=1e-8)
    # The model: S ⪰ (ρ/d)I with trace 1, so that Σ_S d_M = 1, smoothed.
    assert np.sum(squared(fitted, X, similar)) == pytest.approx(1.0, rel=1e-6)
    problem = gm.problems.dml_eig(X, similar, dissimilar, fitted.mu_)
    factor = np.linalg.cholesky(in_whitened(fitted, X, Y) + 1e-15 * np.eye(4))
    assert fitted.certificate_.value == pytest.approx(problem.value(factor), rel=1e-6)


@pytest.mark.parametrize("ridge", [1e-3, 0.3])
def test_a_ridge_keeps_the_similar_pairs_within_their_budget(ridge):
    fitted = DMLEig(neighbor_metric="euclidean", ridge=ridge, shrinkage=0.0).fit(X, Y)
    total = np.sum(squared(fitted, X, local_pairs(X, Y, 3)[0]))
    assert total <= 1 + 1e-9
    assert np.trace(in_whitened(fitted, X, Y, ridge)) == pytest.approx(1.0)


@pytest.mark.parametrize("gamma", [0.1, 0.5])
@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_lmnn_eig_reports_the_margin_of_its_metric_with_slack(gamma, floor):
    fitted = LMNNEig(**PLAIN, lam=gamma, floor=floor, tol=1e-6).fit(X, Y)
    similar, triplets = local_pairs(X, Y, 3)[0], local_triplets(X, Y, 3)
    trace = np.sum(squared(fitted, X, similar))
    budget = (1 - gamma * trace) / (1 - gamma)
    assert budget >= -1e-9
    filled = np.maximum(0.0, fitted.max_min_.value - margins(fitted, X, triplets))
    assert np.sum(filled) == pytest.approx(budget, rel=1e-6, abs=1e-8)
    assert fitted.result_.factor.shape[0] == 5
    assert np.sum(fitted.result_.factor**2) == pytest.approx(1 / gamma)


@pytest.mark.parametrize("floor", [0.0, 0.2, 0.7])
def test_the_floor_holds_in_whitened_coordinates(floor):
    S = in_whitened(DMLEig(**PLAIN, floor=floor).fit(X, Y), X, Y)
    lowest = np.linalg.eigvalsh(S)[0]
    assert np.trace(S) == pytest.approx(1.0)
    assert lowest >= floor / 4 * (1 - 1e-8) - 1e-12
    S = in_whitened(LMNNEig(**PLAIN, floor=floor).fit(X, Y), X, Y)
    lowest = np.linalg.eigvalsh(S)[0]
    assert lowest >= floor * np.trace(S) / 4 * (1 - 1e-8) - 1e-12


@EVERY_LEARNER
def test_the_bound_holds_for_other_metrics_of_the_model(learner):
    """No S of the model, floor included, has a larger minimum than the bound."""
    fitted = learner(**PLAIN, floor=0.4).fit(X, Y)
    rng = np.random.default_rng(3)
    R = whitening(X, local_pairs(X, Y, 3)[0]).matrix
    Z, dissimilar, triplets = X @ R, local_pairs(X, Y, 3)[1], local_triplets(X, Y, 3)
    for _ in range(50):
        L = rng.standard_normal((4, rng.integers(1, 5)))
        S = 0.6 * L @ L.T / np.sum(L * L) + 0.1 * np.eye(4)
        if learner is DMLEig:
            least = forms(Z, dissimilar)(S).min()
        else:
            share = rng.uniform()
            c = forms(Z, triplets[:, [0, 2]])(S) - forms(Z, triplets[:, :2])(S)
            c, budget = np.sort(share * c / 0.5), (1 - share) / 0.5
            levels = (budget + np.cumsum(c)) / np.arange(1, c.size + 1)
            least = levels.min()  # of all ways to fill the m least, the true one is least
        assert least <= fitted.max_min_.bound


@DML_FIRST
@pytest.mark.parametrize("neighbor_metric", ["euclidean", slow("kta")])
def test_the_automatic_smoothing_is_free_of_scale(learner, neighbor_metric):
    first = learner(neighbor_metric=neighbor_metric, tol=1e-7).fit(X, Y)
    expected = all_distances(first, X)
    for scale in (1e-5, 1e4):
        fitted = learner(neighbor_metric=neighbor_metric, tol=1e-7).fit(scale * X, Y)
        assert fitted.mu_ == pytest.approx(first.mu_, rel=1e-6)
        np.testing.assert_allclose(
            all_distances(fitted, scale * X), expected, atol=1e-3 * expected.max()
        )


@EVERY_LEARNER
def test_a_shift_a_rotation_and_the_order_of_samples_change_no_distance(learner):
    expected = all_distances(learner(**PLAIN, tol=1e-7).fit(X, Y), X)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    order = np.random.default_rng(2).permutation(45)
    moved = (X + 5.0) @ rotation
    fitted = learner(**PLAIN, tol=1e-7).fit(moved[order], Y[order])
    np.testing.assert_allclose(all_distances(fitted, moved), expected, atol=1e-3 * expected.max())


@EVERY_LEARNER
def test_default_pairs_are_nearest_after_alignment(learner):
    """With the targets of KTA the budget of the similar pairs is that of those."""
    data = X * [1, 1, 1, 10]
    fitted = learner(ridge=0.0, floor=0.5, shrinkage=0.0).fit(data, Y)
    unit = data - data.mean(axis=0)
    unit /= np.sqrt(np.mean(unit * unit))
    aligned = KTA(tol=1e-2).fit(unit, Y).transform(unit)
    near = same_class_neighbors(aligned, Y, 3)
    assert np.mean(near == same_class_neighbors(data, Y, 3)) < 0.7
    scatter = pair_scatter(data, as_pairs(near))
    total = np.sum(scatter * fitted.get_mahalanobis_matrix())
    if learner is DMLEig:
        assert total == pytest.approx(1.0)
    else:
        slack = np.sum(fitted.result_.factor[-1] ** 2)
        assert total == pytest.approx(2.0 - slack)


# --- as scikit-learn has it ----------------------------------------------------------


@DML_FIRST
@pytest.mark.parametrize("form", [sp.csr_array, slow(pd.DataFrame), slow(np.ndarray.tolist)])
def test_every_form_of_input_gives_the_same_metric(learner, form):
    M = learner(tol=1e-7).fit(X, Y).get_mahalanobis_matrix()
    fitted = learner(tol=1e-7).fit(form(X), Y)
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), M, atol=1e-6 * np.linalg.norm(M))


@pytest.mark.slow
@DML_FIRST
def test_single_precision_is_kept_and_close(learner):
    single = X.astype(np.float32)
    fitted = learner(tol=1e-7).fit(single, Y)
    assert fitted.transform(single).dtype == np.float32
    M = learner(tol=1e-7).fit(X, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(fitted.get_mahalanobis_matrix(), M, atol=1e-3 * np.linalg.norm(M))


@EVERY_LEARNER
def test_components_have_decreasing_variance_and_frames_keep_names(learner):
    frame = pd.DataFrame(X, columns=list("abcd"))
    full = learner(shrinkage=0.0).fit(X, Y)
    two = learner(rank=4, n_components=2, shrinkage=0.0)
    two = two.set_output(transform="pandas").fit(frame, Y)
    assert np.all(np.diff(np.var(full.transform(X), axis=0)) <= 1e-12)
    mapped = two.transform(frame)
    name = learner.__name__.lower()
    assert list(mapped.columns) == [f"{name}0", f"{name}1"]
    np.testing.assert_allclose(mapped, full.transform(X)[:, :2], atol=1e-5)


@pytest.mark.slow
@EVERY_LEARNER
def test_pipelines_grid_search_and_clone(learner):
    name = learner.__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), learner(), KNeighborsClassifier(3)),
        {f"{name}__floor": [0.0, 0.7], f"{name}__mu": ["auto", 0.01]},
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_score_ > 0.6
    assert clone(learner(floor=0.1)).get_params() == learner(floor=0.1).get_params()


@pytest.mark.slow
@DML_FIRST
def test_fit_changes_no_parameter_and_repeats(learner):
    fitted = learner()
    before = fitted.get_params()
    first = fitted.fit(X, Y).components_
    assert fitted.get_params() == before
    np.testing.assert_array_equal(first, learner().fit(X, Y).components_)


@pytest.mark.slow
@EVERY_LEARNER
def test_improves_neighbours_on_unscaled_wine(learner):
    """Without scaling, two large features hide the others."""
    wine = load_wine(return_X_y=True)
    neighbours = KNeighborsClassifier(3)
    plain = cross_val_score(neighbours, *wine, cv=3).mean()
    learned = cross_val_score(make_pipeline(learner(tol=1e-3), neighbours), *wine, cv=3).mean()
    assert learned > plain + 0.15


@pytest.mark.slow
@EVERY_LEARNER
def test_floor_is_higher_with_few_samples_per_feature(learner):
    n, d = X.shape
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(n, n // 4 - d))])
    assert learner().fit(X, Y).floor_ == pytest.approx(1 - 0.3 * min(1, n / (10 * d)))
    assert learner().fit(wide, Y).floor_ == pytest.approx(1 - 0.3 * 4 / 10, rel=0.05)


@pytest.mark.slow
@EVERY_LEARNER
def test_a_start_from_a_fitted_learner_needs_no_more_iterations(learner):
    cold = learner(tol=1e-6, floor=0.0).fit(X, Y)
    warm = learner(tol=1e-6, floor=0.0, init=cold).fit(X, Y)
    assert warm.result_.value == pytest.approx(cold.result_.value, rel=2e-6)
    assert warm.n_iter_ <= cold.n_iter_
    from_other = learner(tol=1e-6, floor=0.0, init=KTA().fit(X, Y)).fit(X, Y)
    assert from_other.result_.value == pytest.approx(cold.result_.value, rel=2e-6)


@DML_FIRST
def test_a_rank_limit_is_kept_and_its_cost_certified(learner):
    free = learner(floor=0.0, shrinkage=0.0, tol=1e-6).fit(X, Y)
    limited = learner(floor=0.0, shrinkage=0.0, rank=2).fit(X, Y)
    assert limited.components_.shape[0] <= 2
    cost = limited.result_.value - free.result_.value
    assert -1e-5 * abs(free.result_.value) <= cost <= limited.certificate_.gap + 1e-12


@DML_FIRST
def test_fits_orders_too_large_for_a_decomposition(learner, monkeypatch):
    monkeypatch.setattr(_base, "DENSE_ORDER", 3)
    monkeypatch.setattr(_base, "LARGE_RANK", 2)
    fitted = learner(floor=0.0, shrinkage=0.0).fit(X, Y)
    assert 0 < fitted.max_min_.value <= fitted.max_min_.bound


@DML_FIRST
def test_time_and_iteration_limits_warn_and_return_a_metric(learner):
    for limit in ({"time_limit": 1e-4}, {"solver": "frank-wolfe", "max_iter": 1}):
        with pytest.warns(ConvergenceWarning, match="limit was reached first"):
            fitted = learner(**limit, tol=1e-12, mu=1e-4, floor=0.0).fit(X, Y)
        assert np.all(np.isfinite(fitted.transform(X)))
        assert fitted.max_min_.value <= fitted.max_min_.bound


# --- data that is not as usual -------------------------------------------------------


@DML_FIRST
@pytest.mark.parametrize("form", [slow(np.asarray), sp.csr_array])
def test_fewer_samples_than_features(learner, form):
    rng = np.random.default_rng(4)
    data, y = rng.standard_normal((20, 50)), np.arange(20) % 2
    fitted = learner().fit(form(data), y)
    assert fitted.certificate_.relative_gap <= 1e-4
    assert fitted.components_.shape == (19, 50)
    assert np.all(np.isfinite(fitted.components_))


@DML_FIRST
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_few_samples_in_single_precision_are_summed_in_double(learner, form):
    rng = np.random.default_rng(5)
    single = (rng.standard_normal((20, 50)) + 30).astype(np.float32)
    values = [
        learner(neighbor_metric="euclidean", shrinkage=0.0, tol=1e-7)
        .fit(form(data), np.arange(20) % 2)
        .certificate_.value
        for data in (single, single.astype(float))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@pytest.mark.slow
@EVERY_LEARNER
def test_constant_features_do_no_harm(learner):
    wide = np.column_stack([X, np.ones((45, 2))])
    fitted = learner().fit(wide, Y)
    assert fitted.certificate_.relative_gap <= 1e-4
    other = wide.copy()
    other[:, 4:] = 7.0
    np.testing.assert_allclose(
        all_distances(learner().fit(other, Y), other), all_distances(fitted, wide), atol=1e-6
    )
    alone, beside = learner(ridge=0.0).fit(X, Y), learner(ridge=0.0).fit(wide, Y)
    np.testing.assert_allclose(all_distances(beside, wide), all_distances(alone, X), rtol=1e-8)
    with pytest.raises(ValueError, match="singular"):
        learner(ridge=0.0).fit(np.column_stack([X, Y == 1]), Y)


@pytest.mark.slow
def test_identical_samples_of_different_classes_are_named_by_dml_eig():
    data, y = X.copy(), Y.copy()
    data[7], y[7], y[3] = data[3], 0, 1
    with pytest.warns(UserWarning, match=r"samples (3 and 7|7 and 3) are identical"):
        fitted = DMLEig().fit(data, y)
    assert fitted.certificate_.relative_gap <= 1e-4 and fitted.max_min_.value > 0
    with pytest.raises(ValueError, match="all other dissimilar pairs"):
        DMLEig(n_neighbors=1).fit(np.repeat(X[:30:3], 2, axis=0), np.tile([0, 1], 10))
    assert LMNNEig().fit(data, y).certificate_.relative_gap <= 1e-4


@EVERY_LEARNER
def test_rejects_sparse_samples_too_large_to_be_dense_and_states_sizes(learner, monkeypatch):
    data = sp.random_array((60, 40), density=0.1, random_state=0, format="csr")
    monkeypatch.setattr("gramian.common.memory.memory", lambda: 2e4)
    with pytest.raises(
        ValueError, match=rf"{learner.__name__} .*need \d+\.\d GB of the \d+\.\d GB"
    ):
        learner().fit(data, np.arange(60) % 2)


# --- what is refused -----------------------------------------------------------------

BAD = {
    "mu of zero": ({"mu": 0}, 'mu must be a finite number above 0, or "auto", got 0'),
    "mu below zero": ({"mu": -1.0}, "mu must be a finite number above 0"),
    "mu NaN": ({"mu": np.nan}, "mu must be a finite number above 0"),
    "mu a word": ({"mu": "x"}, """mu must be a finite number above 0, or "auto", got 'x'"""),
    "mu None": ({"mu": None}, "mu must be a finite number above 0"),
    "floor of one": ({"floor": 1}, 'floor must be at least 0 and below 1, or "auto", got 1'),
    "floor below zero": ({"floor": -0.1}, "floor must be at least 0"),
    "floor a word": ({"floor": "low"}, 'floor must be at least 0 and below 1, or "auto"'),
    "ridge": ({"ridge": -1.0}, "ridge must be a finite number"),
    "neighbor_metric": ({"neighbor_metric": "x"}, 'neighbor_metric must be "kta" or "euclidean"'),
    "no neighbours": ({"n_neighbors": 0}, "whole number of at least 1, got 0"),
    "half a neighbour": ({"n_neighbors": 1.5}, "whole number of at least 1, got 1.5"),
    "too many neighbours": ({"n_neighbors": 15}, "too few for 15 neighbours each: use at most 14"),
    "rank": ({"rank": 5}, "rank must be a whole number between 1"),
    "n_components": ({"n_components": 0}, "n_components must be a whole number between 1"),
    "solver": ({"solver": "frank-wolf"}, "did you mean 'frank-wolfe'"),
    "a solver of the cone": ({"solver": "bilgo"}, "it works over the whole cone"),
    "tol": ({"tol": -1.0}, "tol"),
}


@EVERY_LEARNER
@pytest.mark.parametrize(("parameters", "message"), BAD.values(), ids=BAD)
def test_rejects_bad_parameters_and_names_them(learner, parameters, message):
    with pytest.raises(ValueError, match=message):
        learner(**parameters).fit(X, Y)


@pytest.mark.parametrize("lam", [0, 1, -0.5, 2.0, np.nan, "half"])
def test_rejects_lam_outside_its_range(lam):
    with pytest.raises(ValueError, match="lam must be between 0 and 1"):
        LMNNEig(lam=lam).fit(X, Y)


@EVERY_LEARNER
def test_rejects_bad_data_and_names_it(learner):
    for data, y, message in (
        (np.where(X > 2, np.nan, X), Y, "NaN"),
        (X, np.zeros(45), "one class"),
        (X, np.append(Y[:-1], 9), "class 9 has a single sample"),
        (X, Y[:-1], "inconsistent"),
        (X, np.linspace(0, 1, 45), "continuous"),
    ):
        with pytest.raises(ValueError, match=message):
            learner().fit(data, y)


@EVERY_LEARNER
def test_rejects_start_of_wrong_shape(learner):
    with pytest.raises(ValueError, match="init was fitted to 3 features"):
        learner(init=KTA(lam=1.0).fit(X[:, :3], Y)).fit(X, Y)


@pytest.mark.parametrize(("n", "choices"), [(300, 10), (2100, 1)])
def test_parts_of_many_samples_share_the_alignment_of_the_whole(n, choices, monkeypatch):
    """Of few samples every part has to choose its own: the held-out ones must not be known."""
    calls, choose = [], kta.weigh
    monkeypatch.setattr(
        kta, "weigh", lambda *args, **named: calls.append(args) or choose(*args, **named)
    )
    data, y = samples(n=n)
    DMLEig(tol=1e-2).fit(data, y)
    assert len(calls) == choices


def test_soft_minimum_computes_no_shift_of_the_dual_vector():
    similar, dissimilar = local_pairs(X, Y, 3)
    objective = gm.problems.dml_eig(X, similar, dissimilar, 0.1).objective
    image = objective.image(np.eye(4) / 2)
    assert not any(np.isfinite(b.value) for b in objective.lower_bounds(image, -1.0))
    assert not vars(objective).get("_results")  # nothing of order³ was computed
