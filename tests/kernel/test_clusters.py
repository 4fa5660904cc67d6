"""Clusters from a learned kernel: links are kept, and the graph's own waves are a choice."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_info, threadpool_limits

from gramian.constraints import random_pairs
from gramian.graph import smoothest
from gramian.kernel import NPKL, PCP, InductiveKernel, RegPCP
from gramian.kernel._clusters import k_means, linked_clusters, share_met
from gramian.kernel._links import gather

IRIS, SPECIES = load_iris(return_X_y=True)
EVERY = pytest.mark.parametrize("learner", [NPKL, PCP, RegPCP])


def links_of(y, count, seed=0):
    similar, dissimilar = random_pairs(y, count, random_state=seed)
    return {"must_link": similar, "cannot_link": dissimilar}


def means(k):
    return KMeans(k, n_init=3, random_state=0)


def test_a_chain_of_cannot_links_has_two_colours():
    """Nearest first, some link of a chain is broken; with least freedom first none is."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    cannot = np.column_stack([np.arange(29), np.arange(1, 30)])
    links = gather(30, None, None, cannot)
    labels, centres = linked_clusters(rows, links, means(2))
    assert share_met(links, labels) == 1.0 and centres.shape == (2, 2)
    np.testing.assert_array_equal(labels[::2], labels[0])


def test_consistent_links_are_kept_whatever_the_rows_say():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 80)
    links = gather(80, None, **links_of(y, 60))
    labels, _ = linked_clusters(rng.normal(size=(80, 3)), links, means(4))
    assert share_met(links, labels) >= 0.99


def test_links_that_clusters_do_not_mind_change_nothing():
    X, y = make_blobs(90, centers=3, cluster_std=0.3, random_state=0)
    links = gather(90, None, **links_of(y, 20))
    labels, _ = linked_clusters(X, links, means(3))
    assert adjusted_rand_score(labels, y) == 1.0


def test_fewer_groups_than_clusters_are_left_to_k_means():
    links = gather(4, None, [[0, 1], [2, 3]], None)
    labels, centres = linked_clusters(np.eye(4), links, means(3))
    assert np.unique(labels).size == 3 and centres.shape == (3, 4)


@EVERY
def test_full_shrinkage_is_spectral_clustering(learner):
    fitted = learner(n_clusters=3, shrinkage=1, random_state=0, tol=1e-2)
    fitted.fit(IRIS, cannot_link=[[0, 60]])
    waves = normalize(smoothest(fitted.laplacian_, 3, constant=True)[1])
    expected = KMeans(3, n_init=10, random_state=0).fit(waves).labels_
    assert adjusted_rand_score(fitted.labels_, expected) > 0.95
    np.testing.assert_array_equal(fitted.predict(IRIS[:5]), fitted.labels_[:5])


@EVERY
def test_held_out_links_choose_and_the_clusters_say_what_they_keep(learner):
    fitted = learner(n_clusters=3, random_state=0).fit(IRIS, **links_of(SPECIES, 40))
    path = fitted.path_
    assert path.value == fitted.shrinkage_ and path.held_out == len(fitted.links_.pairs)
    assert fitted.links_met_ == share_met(fitted.links_, fitted.labels_)
    if learner is not NPKL:
        assert fitted.links_met_ >= 0.99
    assert fitted.certificate_.relative_gap <= 1e-4


@pytest.mark.slow
def test_held_out_links_choose_lambda():
    links = links_of(SPECIES, 40)
    fitted = NPKL(lam="auto", n_clusters=3, random_state=0).fit(IRIS, **links)
    path = fitted.setting_path_
    assert list(path.values) == [10, 1, 100] and path.parameter == "lam"
    assert fitted.lam_ == path.value and path.held_out == len(fitted.links_.pairs)
    told = NPKL(lam=fitted.lam_, n_clusters=3, random_state=0).fit(IRIS, **links)
    np.testing.assert_array_equal(told.kernel_factor_, fitted.kernel_factor_)
    np.testing.assert_array_equal(told.path_.errors, fitted.path_.errors)
    assert not hasattr(told, "setting_path_") and told.lam_ == fitted.lam_
    few = NPKL(lam="auto", n_clusters=3).fit(IRIS, cannot_link=[[0, 60]])
    assert few.lam_ == 10 and not hasattr(few, "setting_path_")
    fitted.add_links(must_link=[[0, 1]])
    assert fitted.lam_ == fitted.setting_path_.value
    with pytest.raises(ValueError, match="lam must be"):
        NPKL(lam=0.0).fit(IRIS, cannot_link=[[0, 60]])


@pytest.mark.slow
@pytest.mark.parametrize("model", [NPKL(lam="auto"), NPKL(), RegPCP()])
def test_judging_takes_at_most_half_of_a_limit_of_time(model, monkeypatch):
    given, learn = [], type(model)._learn_roughly

    def noted(rough):
        given.append(rough.time_limit)
        return learn(rough)

    monkeypatch.setattr(type(model), "_learn_roughly", noted)
    rng = np.random.default_rng(0)
    X = np.vstack([IRIS, IRIS + 0.1 * rng.normal(size=IRIS.shape), IRIS - 0.1])
    y = np.tile(SPECIES, 3)
    model.set_params(n_clusters=3, time_limit=40.0).fit(X, **links_of(y, 40))
    assert given and sum(given) == pytest.approx(20.0)


@pytest.mark.slow
def test_links_that_the_waves_do_not_hold_take_a_larger_lambda():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.integers(0, 2, 60)
    pairs = np.array([(i, j) for i in range(60) for j in range(i)])
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    fitted = NPKL(lam="auto", shrinkage=0.0, random_state=0)
    fitted.fit(X, must_link=pairs[same], cannot_link=pairs[~same])
    assert fitted.setting_path_.errors[0] <= fitted.setting_path_.errors[1]


@pytest.mark.slow
def test_held_out_links_choose_the_number_of_waves():
    rng = np.random.default_rng(0)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 500))
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    parts = (np.arange(500) // 10) % 2
    links = links_of(parts, 250)
    fitted = RegPCP(n_clusters=2, random_state=0).fit(ring, **links)
    assert list(fitted.setting_path_.values) == [50, 100]
    assert fitted.setting_path_.value == fitted.basis_.shape[1] == 100
    told = RegPCP(n_clusters=2, n_basis=100, random_state=0).fit(ring, **links)
    np.testing.assert_allclose(told.kernel_factor_, fitted.kernel_factor_, atol=1e-6)
    assert not hasattr(told, "setting_path_")
    assert "n_basis = 100 was chosen" in str(fitted.setting_path_)


def test_a_few_links_leave_the_kernel_alone_unless_its_rank_is_too_small():
    few = [[0, 60], [0, 120]]
    fitted = NPKL(n_clusters=2, random_state=0).fit(IRIS, cannot_link=few)
    assert fitted.kernel_factor_.shape[1] >= 2
    assert fitted.shrinkage_ == 0 and not hasattr(fitted, "path_")
    narrow = NPKL(n_clusters=8, random_state=0).fit(IRIS, cannot_link=few)
    assert narrow.kernel_factor_.shape[1] < 8
    assert narrow.shrinkage_ == 0.25 and not hasattr(narrow, "path_")
    assert np.unique(narrow.labels_).size == 8
    np.testing.assert_array_equal(narrow.predict(IRIS[:5]), narrow.labels_[:5])
    with pytest.raises(ValueError, match="shrinkage must be"):
        NPKL(shrinkage=2).fit(IRIS, cannot_link=[[0, 60]])


def test_reg_pcp_with_the_parameters_of_the_thesis_is_its_formula():
    fitted = RegPCP(smoothness=0.0, link_weight=1.0, n_basis=8, tol=1e-8)
    fitted.fit(IRIS, **links_of(SPECIES, 20))
    K = fitted.kernel_factor_ @ fitted.kernel_factor_.T
    i, j = fitted.links_.pairs.T
    value = np.sum((np.diag(K) - 1) ** 2) + np.sum((K[i, j] - fitted.links_.targets) ** 2)
    assert fitted.certificate_.value == pytest.approx(value)


def test_reg_pcp_pays_for_rough_waves():
    fitted = RegPCP(smoothness=2.0, link_weight=5.0, n_basis=8, tol=1e-8)
    fitted.fit(IRIS, **links_of(SPECIES, 20))
    factor = fitted.kernel_factor_
    i, j = fitted.links_.pairs.T
    off = np.sum(factor[i] * factor[j], axis=1) - fitted.links_.targets
    value = (
        2.0 * np.sum(factor * (fitted.laplacian_ @ factor))
        + np.sum((np.sum(factor**2, axis=1) - 1) ** 2)
        + 5.0 * np.sum(off**2)
    )
    assert fitted.certificate_.value == pytest.approx(value, rel=1e-6)
    with pytest.raises(ValueError, match="link_weight must be"):
        RegPCP(link_weight=0.0).fit(IRIS, cannot_link=[[0, 60]])


def test_the_inductive_kernel_is_not_worse_than_the_one_it_is_given():
    """Over several divisions: of 60 samples held out, one more or less is chance."""
    errors = np.mean([_errors_beside_the_given_kernel(seed) for seed in range(6)], axis=0)
    assert errors[0] <= errors[1] + 0.01


def _errors_beside_the_given_kernel(seed):
    rng = np.random.default_rng(seed)
    X = np.hstack([IRIS, rng.normal(size=(150, 4))])
    train = rng.permutation(150)[:90]
    test = np.setdiff1d(np.arange(150), train)
    kernels = [
        InductiveKernel(shrinkage=share).fit(X[train], SPECIES[train]) for share in ("auto", 1)
    ]
    assert kernels[0].path_.value == kernels[0].shrinkage_
    return [
        1
        - KNeighborsClassifier(3)
        .fit(k.transform(X[train]), SPECIES[train])
        .score(k.transform(X[test]), SPECIES[test])
        for k in kernels
    ]


def test_with_full_shrinkage_the_inductive_kernel_is_the_given_one():
    fitted = InductiveKernel(kernel_params={"gamma": 0.5}, shrinkage=1).fit(IRIS, SPECIES)
    K = rbf_kernel(IRIS, gamma=0.5)
    found = fitted.kernel_factor_ @ fitted.kernel_factor_.T
    np.testing.assert_allclose(found / found[0, 0], K, atol=1e-6)
    with pytest.raises(ValueError, match="shrinkage must be"):
        InductiveKernel(shrinkage=-1).fit(IRIS, SPECIES)


def test_small_k_means_uses_one_thread():
    used = []

    class Probe(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            used.extend(lib["num_threads"] for lib in openmp_pools())
            return super().fit(X, y, sample_weight)

    with threadpool_limits(2, user_api="openmp"):
        k_means(Probe(2, n_init=1), np.random.default_rng(0).random((50, 3)))
        assert {lib["num_threads"] for lib in openmp_pools()} == {2}
    assert set(used) == {1}


def openmp_pools() -> list[dict]:
    return [lib for lib in threadpool_info() if lib["user_api"] == "openmp"]
