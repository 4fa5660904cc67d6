"""Kernels from links: what they reach, what they cluster, how they go on, what they refuse."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, load_iris, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian import problems
from gramian.common import clock
from gramian.kernel import NPKL, PCP, AutoKernel, InductiveKernel, KernelKMeans, RegPCP
from gramian.kernel import inductive_kernel as inductive
from tests.conic import _Model
from tests.slow import slow

LINKED = pytest.mark.parametrize("learner", [NPKL, RegPCP, PCP])

X, Y = make_moons(160, noise=0.1, random_state=0)
RNG = np.random.default_rng(0)
KNOWN = np.where(np.isin(np.arange(160), RNG.choice(160, 12, replace=False)), Y, -1)


@parametrize_with_checks(
    [
        *(learner(tol=1e-2, shrinkage=0.0) for learner in (NPKL, RegPCP, PCP)),
        InductiveKernel(),
        KernelKMeans(),
    ]
)
@pytest.mark.filterwarnings("ignore:n_clusters=[0-9]+, but")
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [NPKL(tol=1e-2), RegPCP(tol=1e-2), AutoKernel(tol=1e-2), KernelKMeans(kernel="rbf")]
)
@pytest.mark.filterwarnings("ignore:n_clusters=[0-9]+, but")
def test_variant(estimator, check):
    check(estimator)


@LINKED
def test_few_labels_make_clusters_of_classes(learner):
    fitted = learner(random_state=0).fit(X, KNOWN)
    assert adjusted_rand_score(fitted.labels_, Y) > 0.9
    assert fitted.certificate_.relative_gap <= fitted.tol
    alone = SpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit_predict(X)
    assert adjusted_rand_score(fitted.labels_, Y) >= adjusted_rand_score(alone, Y)
    values = np.sum(fitted.kernel_factor_**2, axis=0)
    assert np.all(np.diff(values) <= 1e-9 * values[0])


def test_npkl_is_the_problem_of_its_formula():
    fitted = NPKL(lam=3.0).fit(X, KNOWN)
    problem = problems.npkl(fitted.laplacian_, fitted.links_.must, fitted.links_.cannot, 3.0)
    assert problem.value(fitted.kernel_factor_) == pytest.approx(fitted.certificate_.value)


def pcp_optimum(L, links):
    """min tr(ZL) with the diagonal and the links kept, by Clarabel."""
    clarabel = pytest.importorskip("clarabel")
    n = L.shape[0]
    model = _Model(n)
    i, j = np.vstack([np.column_stack([np.arange(n)] * 2), links.pairs]).T
    rows = model.of_M(lambda M: M[i, j])
    targets = np.append(np.ones(n), links.targets)
    model.nonnegative(rows, -targets)
    model.nonnegative(-rows, targets)
    model.add_linear(model.of_M(lambda M: np.sum(L * M)[None])[0])
    return model.minimum(clarabel)


def test_pcp_reaches_the_optimum_of_a_conic_solver():
    few = np.linspace(0, 159, 24).astype(int)
    known = np.where(np.arange(24) % 3 == 0, Y[few], -1)
    fitted = PCP(n_neighbors=5, max_violation=1e-4, tol=1e-7).fit(X[few], known)
    assert fitted.constraint_violation_ <= 1e-4
    expected = pcp_optimum(fitted.laplacian_.toarray(), fitted.links_)
    assert fitted.smoothness_ == pytest.approx(expected, rel=1e-2)
    assert fitted.certificate_.lower_bound <= expected * (1 + 1e-6)
    assert fitted.result_.status is gm.Status.CONVERGED


def test_pcp_respects_time_limit_and_reports_violated_links(ticking):
    ticking(2e-3)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fitted = PCP(max_violation=1e-9, tol=1e-9, time_limit=0.2).fit(X, KNOWN)
    assert fitted.result_.seconds < 1.0
    assert fitted.constraint_violation_ > 0


def test_selection_accepts_factor_without_columns(monkeypatch):
    """As a limit of time leaves it that ends before anything is found."""
    monkeypatch.setattr(PCP, "_learn_roughly", lambda self: np.zeros((self.links_.n, 0)))
    fitted = PCP(n_clusters=2, tol=1e-2).fit(X, KNOWN)
    assert np.isfinite(fitted.path_.errors).all()


@pytest.mark.parametrize("merge", [False, True])
def test_links_pull_together_and_apart(merge):
    must, cannot = [[0, 1], [1, 2]], [[0, 3], [4, 5]]
    fitted = NPKL(merge=merge, lam=100.0).fit(X, must_link=must, cannot_link=cannot)
    K = fitted.kernel_factor_ @ fitted.kernel_factor_.T
    assert K[0, 1] > 0.9 and K[1, 2] > 0.9 and K[0, 3] < 0.1 and K[4, 5] < 0.1
    if merge:
        np.testing.assert_allclose(fitted.kernel_factor_[0], fitted.kernel_factor_[2])
    with pytest.raises(ValueError, match="pass n_clusters"):
        fitted.predict(X)


@pytest.mark.parametrize("learner", [NPKL, RegPCP, slow(PCP)])
def test_more_links_continue_from_the_fit(learner):
    fitted = learner(n_clusters=2, random_state=0, tol=1e-6).fit(X, KNOWN)
    more = {"must_link": [[0, 1]] if Y[0] == Y[1] else None,
            "cannot_link": [[0, 1]] if Y[0] != Y[1] else None}  # fmt: skip
    fitted.add_links(**more)
    links = fitted.links_
    fresh = learner(n_clusters=2, random_state=0, tol=1e-6).fit(
        X, links=links.pairs, targets=links.targets
    )
    assert fitted.certificate_.relative_gap <= 1e-6
    assert fitted.certificate_.value == pytest.approx(fresh.certificate_.value, rel=1e-5, abs=1e-9)
    i, j = links.must[0]
    with pytest.raises(ValueError, match="two ways"):
        fitted.add_links(cannot_link=[[i, j]])


def test_rejected_links_are_not_added():
    fitted = PCP(n_clusters=2, shrinkage=0.0).fit(X, must_link=[[0, 1]], cannot_link=[[2, 3]])
    with pytest.raises(ValueError, match="soft targets"):
        fitted.add_links(links=[[0, 4]], targets=[0.5])
    assert len(fitted.links_.pairs) == 2


def test_added_links_can_need_more_eigenvectors():
    X, y = make_moons(400, noise=0.1, random_state=0)
    fitted = RegPCP(n_clusters=2, tol=0.1).fit(X, must_link=[np.flatnonzero(y == 1)[:2]])
    pairs = np.column_stack(np.triu_indices(12, 1))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    fitted.add_links(must_link=pairs[same], cannot_link=pairs[~same])
    assert fitted._basis.shape[1] == fitted.setting_path_.values[1]


def test_clusters_are_found_after_the_time_limit(monkeypatch):
    monkeypatch.setattr(clock, "grace", lambda: clock.until(1e18))
    X = make_moons(250, noise=0.1, random_state=0)[0]
    with pytest.warns(ConvergenceWarning):
        fitted = NPKL(n_clusters=10, time_limit=1e-9).fit(X, must_link=[[0, 1]])
    assert np.unique(fitted.labels_).size == 10 and fitted.shrinkage_ > 0


@pytest.mark.parametrize("K", [np.zeros((6, 6)), -np.eye(6)], ids=["zero", "negative"])
def test_refuses_kernels_without_positive_eigenvalues(K):
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        KernelKMeans(n_clusters=2, kernel="precomputed").fit(K)


@LINKED
def test_new_samples_find_their_clusters(learner):
    fitted = learner(random_state=0).fit(X, KNOWN)
    new, truth = make_moons(100, noise=0.1, random_state=7)
    assert adjusted_rand_score(fitted.predict(new), truth) > 0.8
    np.testing.assert_allclose(fitted.transform(X), fitted.kernel_factor_)
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    assert fitted.get_feature_names_out().size == fitted.kernel_factor_.shape[1]


@pytest.mark.slow
def test_affinities_laplacians_frames_and_sparse_samples_do_as_well():
    fitted = NPKL(random_state=0, tol=1e-6).fit(X, KNOWN)
    given = NPKL(random_state=0, tol=1e-6, affinity="precomputed_laplacian")
    given.fit(fitted.laplacian_, KNOWN)
    assert given.certificate_.value == pytest.approx(fitted.certificate_.value)
    with pytest.raises(ValueError, match="does not define new samples"):
        given.transform(fitted.laplacian_)
    W = kneighbors_graph(X, 10)
    W = W.maximum(W.T)
    own = NPKL(random_state=0, affinity="precomputed").fit(W, KNOWN)
    assert adjusted_rand_score(own.labels_, Y) > 0.9
    assert own.predict(W[:5]).shape == (5,)
    for form in (sp.csr_array, pd.DataFrame):
        other = NPKL(random_state=0, tol=1e-6).fit(form(X), KNOWN)
        assert other.certificate_.value == pytest.approx(fitted.certificate_.value, rel=1e-5)
    with pytest.raises(ValueError, match="square"):
        NPKL(affinity="precomputed").fit(X, KNOWN)
    with pytest.raises(ValueError, match="negative"):
        NPKL(affinity="precomputed").fit(-W, KNOWN)
    with pytest.raises(ValueError, match="ymmetric"):
        NPKL(affinity="precomputed").fit(kneighbors_graph(X, 3), KNOWN)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"affinity": "what"}, 'affinity must be "nearest_neighbors", "precomputed" or "prec'),
        ({"lam": 0.0}, "lam must be"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"n_clusters": 500}, "n_clusters=500, but"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"bandwidth": -1.0}, "bandwidth must be"),
    ],
)
def test_rejects_invalid_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        NPKL(**parameters).fit(X, KNOWN)


@pytest.mark.slow
def test_soft_targets_are_for_penalties():
    links = {"links": [[0, 1], [2, 3]], "targets": [0.5, 1.0]}
    fitted = NPKL(lam=1000.0).fit(X, **links)
    assert fitted.kernel_factor_[0] @ fitted.kernel_factor_[1] == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ValueError, match="soft targets"):
        PCP().fit(X, **links)


def test_the_picture_shows_clusters_and_links():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = NPKL(random_state=0).fit(X, KNOWN).plot()
    before, after = figure.axes
    assert "the graph alone" in before.get_title() and "must-links kept 100%" in after.get_title()
    assert sum(len(c.get_offsets()) for c in after.collections[2:]) == 160
    given = NPKL(random_state=0, affinity="precomputed_laplacian")
    given.fit(NPKL().fit(X, KNOWN).laplacian_, KNOWN)
    assert len(given.plot(X).axes) == len(given.plot().axes) == 2
    matplotlib.pyplot.close("all")


# --- kernels with values for new samples ---------------------------------------------


def test_the_inductive_kernel_is_its_formula():
    few, y = X[:40], Y[:40]
    fitted = InductiveKernel(
        kernel="rbf", kernel_params={"gamma": 2.0}, tau=0.3, lam=1.5, shrinkage=0.0
    )
    fitted.fit(few, y)
    N = np.exp(-2.0 * np.sum((few[:, None] - few) ** 2, axis=2)) + 1e-9 * np.eye(40)
    inverse = np.linalg.inv(N)
    same = y[:, None] == y
    np.fill_diagonal(same, False)
    different = y[:, None] != y
    S = same / same.sum() - different / different.sum()
    T = 2 * (np.diag(S.sum(axis=1)) - S)
    K = fitted.kernel_factor_ @ fitted.kernel_factor_.T
    value = (np.trace(inverse @ K @ inverse @ K) + 0.3 * np.trace(inverse @ K)
             + 1.5 * np.trace(T @ K))  # fmt: skip
    assert fitted.certificate_.value == pytest.approx(value, rel=1e-3)
    np.testing.assert_allclose(fitted.kernel_of(few), K, atol=1e-6)


@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_inductive_kernel_separates_concentric_rings(tau):
    rings, y = make_circles(200, factor=0.5, noise=0.08, random_state=0)
    known = np.where(np.arange(200) < 60, y, -1)
    fitted = InductiveKernel(tau=tau).fit(rings[:150], known[:150])
    assert fitted.certificate_.relative_gap <= 1e-6
    features = fitted.transform(rings)
    means = np.array([features[:150][known[:150] == c].mean(axis=0) for c in (0, 1)])
    nearest = np.argmin(np.sum((features[150:, None] - means) ** 2, axis=2), axis=1)
    assert np.mean(nearest == y[150:]) > 0.9
    assert fitted.kernel_of(rings[150:], rings[:3]).shape == (50, 3)


def test_tau_keeps_fewer_directions_and_n_components_limits_them():
    data, y = load_iris(return_X_y=True)
    ranks = [
        InductiveKernel(tau=tau, shrinkage=0.0).fit(data, y)._n_features_out
        for tau in (0.0, 0.2, 1.9)
    ]
    assert ranks[0] >= ranks[1] > ranks[2] == 1
    assert InductiveKernel(n_components=1).fit(data, y).transform(data).shape == (150, 1)
    with pytest.raises(ValueError, match="lower tau"):
        InductiveKernel(tau=5.0).fit(data, y)


def test_the_inductive_kernel_works_in_a_pipeline():
    data, y = load_iris(return_X_y=True)
    pipe = make_pipeline(InductiveKernel(), SVC(kernel="linear"))
    search = GridSearchCV(pipe, {"inductivekernel__tau": [0.0, 0.1]}, cv=3).fit(data, y)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(160, dtype=int), "1 class"),
        (np.full(160, -1), "0 labelled"),
        (np.append([0, 1], np.full(158, -1)), "at least two of one class"),
    ],
)
def test_rejects_uninformative_labels(y, message):
    with pytest.raises(ValueError, match=message):
        InductiveKernel().fit(X, y)


def test_kernel_k_means_is_k_means_in_feature_space():
    rings, y = make_circles(150, factor=0.3, noise=0.05, random_state=0)
    plain = KernelKMeans(n_clusters=2, random_state=0).fit(rings)
    assert adjusted_rand_score(plain.labels_, y) < 0.2
    factor = NPKL(random_state=0).fit_transform(rings, np.where(np.arange(150) < 8, y, -1))
    assert adjusted_rand_score(KernelKMeans(n_clusters=2).fit_predict(factor), y) > 0.9
    K = factor @ factor.T
    given = KernelKMeans(n_clusters=2, kernel="precomputed", random_state=0).fit(K)
    assert adjusted_rand_score(given.labels_, y) > 0.9
    own = sum(
        np.trace(K[np.ix_(of, of)]) - K[np.ix_(of, of)].sum() / of.sum()
        for of in (given.labels_ == 0, given.labels_ == 1)
    )
    assert given.inertia_ == pytest.approx(own, rel=1e-6)
    np.testing.assert_array_equal(given.predict(K[:9]), given.labels_[:9])
    rbf = KernelKMeans(n_clusters=2, kernel="rbf", random_state=0).fit(rings)
    np.testing.assert_array_equal(rbf.predict(rings), rbf.labels_)
    with pytest.raises(ValueError, match="must be square"):
        KernelKMeans(kernel="precomputed").fit(rings)
    with pytest.raises(ValueError, match="kernel must be"):
        KernelKMeans(n_clusters=2, kernel="what").fit(rings)


def test_the_family_is_found_from_the_package():
    assert gm.kernel.NPKL is NPKL


def test_rank_limit_truncates_the_best_kernel():
    data, y = load_iris(return_X_y=True)
    whole = InductiveKernel(shrinkage=0.0).fit(data, y)
    cut = InductiveKernel(n_components=1, shrinkage=0.0).fit(data, y)
    np.testing.assert_allclose(cut.kernel_factor_, whole.kernel_factor_[:, :1])
    other = InductiveKernel(n_components=1, shrinkage=0.0, solver="lbfgs").fit(data, y)
    assert cut.certificate_.value <= other.certificate_.value + 1e-9
    assert cut.certificate_.lower_bound <= whole.certificate_.value
    with pytest.raises(ValueError, match="n_components must be"):
        InductiveKernel(n_components=0).fit(data, y)


def test_one_decomposition_of_the_kernel_judges_every_shrinkage(monkeypatch):
    """There was one for each of six: at 1,000 samples half of the fit."""
    digits, labels = (part[:300] for part in load_digits(return_X_y=True))
    orders = []
    whole = inductive.eigh
    monkeypatch.setattr(inductive, "eigh", lambda A: orders.append(len(A)) or whole(A))
    fitted = InductiveKernel().fit(digits, labels)
    assert len(fitted.path_.values) == 6
    assert len(orders) <= 10  # three divisions into three parts, and the mixture at the end
