"""Estimators over shards against those at home: the same optimum, the same certificate."""

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_wine, make_moons
from sklearn.preprocessing import StandardScaler

import gramian as gm
import gramian.dask as gd
from gramian.dask import _store
from gramian.dask._cluster import Cluster
from gramian.dask._completion import Completed, CompletionModel
from gramian.dask._objective import Sharded
from gramian.dask._store import chance, given_ratings, store
from gramian.losses import SmoothedHinge, SoftMin
from gramian.maps import PairDistances
from gramian.objectives import Composite
from gramian.objectives.halves import halves_of
from tests.slow import slow

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    m, n = 480, 60
    R = rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + rng.normal(size=(m, 1))
    known = rng.random((m, n)) < 0.2
    i, j = np.nonzero(known)
    frame = pd.DataFrame({
        "user": i + 1000,
        "item": [f"item {k:03d}" for k in j],
        "rating": np.round(R[known] + 0.3 * rng.normal(size=i.size), 1),
    })  # fmt: skip
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def chunked(X, rows):
    return da.from_array(X, chunks=(rows, *X.shape[1:]))


def same_metric(found, known, within=1e-4):
    M, N = found.get_mahalanobis_matrix(), known.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, N, atol=within * np.abs(N).max())
    assert found.certificate_.relative_gap <= max(found.tol, 1e-12)


@pytest.mark.parametrize("name", ["KTA", "LinearSeparation"])
def test_metric_from_moments_equals_the_local_metric(wine, name):
    X, y = wine
    X = X + 1e5
    found = getattr(gd, name)().fit(chunked(X, 50), da.from_array(y, chunks=33))
    lam = "auto" if name == "KTA" else found.lam_  # of the other nothing is held out there
    known = getattr(gm.metric, name)(lam=lam).fit(X, y)
    same_metric(found, known, 1e-6)
    assert found.lam_ == pytest.approx(known.lam_, rel=1e-6)
    again = getattr(gd, name)().fit(chunked(X, 50), da.from_array(y, chunks=33))
    assert np.array_equal(found.components_, again.components_)


def test_accepts_sparse_chunks_frames_and_files(wine, tmp_path):
    X, y = wine
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    known = gm.metric.KTA(lam=0.01).fit(X, y)
    sparse = chunked(X, 60).map_blocks(sp.csr_array)
    same_metric(gd.KTA(lam=0.01).fit(sparse, y), known, 1e-6)
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])]).assign(kind=y)
    for k, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    found = gd.KTA(lam=0.01).fit(str(tmp_path / "*.parquet"), "kind")
    same_metric(found, known, 1e-6)
    assert found.feature_names_in_[0] == "f0"
    found = gd.KTA(lam=0.01).fit(dd.from_pandas(frame, npartitions=2), "kind")
    same_metric(found, known, 1e-6)


def test_cluster_model_is_saved_as_a_local_model(wine, tmp_path):
    X, y = wine
    found = gd.KTA(lam=0.01).fit(chunked(X, 60), y)
    lazy = found.transform(chunked(X, 60))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), found.transform(X))
    found.save(tmp_path / "model.gramian")
    loaded = gm.load(tmp_path / "model.gramian")
    assert type(loaded) is gm.metric.KTA
    assert np.array_equal(loaded.transform(X), found.transform(X))


def test_triplet_metric_on_workers_equals_the_local_one(wine):
    X, y = wine
    triplets = X[:, :5][gm.constraints.random_triplets(y, 120, random_state=0)]
    found = gd.TripletMetric(tol=0.05).fit_triplets(chunked(triplets, 60))
    known = gm.metric.TripletMetric(shrinkage=0.0, tol=0.05).fit_triplets(triplets)
    assert found.lam_ == pytest.approx(known.lam_)
    gaps = known.certificate_.gap + found.certificate_.gap
    assert abs(found.result_.value - known.result_.value) <= gaps
    with pytest.raises(ValueError, match="without shrinkage"):
        gd.TripletMetric(shrinkage=0.5).fit_triplets(chunked(triplets, 50))


@pytest.mark.parametrize("dense", [400, 0])
@pytest.mark.parametrize("mu", [None, 0.5])
def test_sum_of_shards_equals_one_objective(dense, mu, monkeypatch):
    """Sums and soft maxima, with the gradient in the round of the value or in its own."""
    monkeypatch.setattr("gramian.dask._objective.DENSE", dense)
    rng = np.random.default_rng(0)
    pairs = np.sort(np.array([rng.permutation(6)[:2] for _ in range(9)]), axis=1)

    def part(rows):
        loss = SmoothedHinge(mu=0.7, weight=2.0) if mu is None else SoftMin(mu=mu)
        return Composite(PairDistances(pairs[rows], 6), loss)

    parts = [part(slice(3 * k, 3 * k + 3)) for k in range(3)]
    found, known = Sharded(Cluster(), parts, mu=mu), part(slice(None))
    L, D = rng.normal(size=(2, 6, 2))
    a, b = found.image(L), known.image(L)
    assert found.value(a) == pytest.approx(known.value(b))
    for one, other in (
        (found.gradient_factor(a), known.gradient_factor(b)),
        (found.gradient(a).dense(), known.gradient(b).dense()),
        (found.gradient(a) @ D, known.gradient(b) @ D),
        (found.hessian_factor(a)(D), known.hessian_factor(b)(D)),
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    lines, theta = (
        [side.line(at, D).restriction for side, at in ((found, a), (known, b))],
        (1, 2, 1),
    )
    for name in ("value", "gradient", "hessian"):
        one, other = (getattr(line, name)(np.array(theta, dtype=float)) for line in lines)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    if mu is None:
        assert found.support(a).value == pytest.approx(known.support(b).value)


def test_triplets_of_vectors(wine):
    X, y = wine
    triplets = X[gm.constraints.random_triplets(y, 120, random_state=0)]
    found = gd.LMNN().fit_triplets(chunked(triplets, 50))
    same_metric(found, gm.metric.LMNN(shrinkage=0.0).fit_triplets(triplets))


def test_pairs_of_vectors(wine, capsys):
    X, y = wine
    similar, other = gm.constraints.random_pairs(y, 60, random_state=0)
    pairs, same = X[np.vstack([similar, other])], np.repeat([True, False], 60)
    found = gd.DMLEig(progress=True).fit_pairs(chunked(pairs, 50), same)
    assert "moved=" in capsys.readouterr().err
    known = gm.metric.DMLEig(shrinkage=0.0).fit_pairs(pairs, same)
    assert found.mu_ == pytest.approx(known.mu_)
    assert found.result_.value == pytest.approx(known.result_.value, abs=2 * known.certificate_.gap)
    assert found.max_min_.bound == pytest.approx(known.max_min_.bound, rel=1e-2)
    assert found.threshold_ == pytest.approx(known.threshold_, rel=1e-2)


def test_kernel_is_learned_on_the_driver():
    X = make_moons(200, noise=0.05, random_state=0)[0]
    links = {"must_link": [[0, 1], [5, 3]], "cannot_link": [[0, 190], [2, 7]]}
    settings = {"lam": 10.0, "shrinkage": 0.0, "tol": 1e-3, "random_state": 0}
    found = gd.NPKL(**settings).fit(chunked(X, 90), **links)
    known = gm.kernel.NPKL(**settings).fit(X, **links)
    assert abs(found.laplacian_ - known.laplacian_).max() < 1e-12
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-6)
    assert found.result_.route == ("samples on the driver", *known.result_.route)
    assert found.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("ridge", [None, 5.0])
def test_completion_in_blocks_equals_the_local_one(ratings, ridge, tmp_path, monkeypatch):
    for k, part in enumerate(np.array_split(np.arange(len(ratings)), 3)):
        ratings.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    rated = store(given_ratings(Cluster(), str(tmp_path)))
    m, n = rated.shape
    rng = np.random.default_rng(1)
    scales = rng.uniform(0.5, 2, m), rng.uniform(0.5, 2, n)
    i, j = (np.searchsorted(ids.names, ratings[name]) for ids, name in (
        (rated.row_ids, "user"), (rated.col_ids, "item")))  # fmt: skip
    known = gm.problems.nuclear_completion(
        i, j, ratings["rating"] - 1.0, (m, n), 3.0, row_scale=scales[0], col_scale=scales[1],
        ridge=ridge,
    ).objective  # fmt: skip
    found = Completed(rated, CompletionModel(1.0, ridge, *scales), 3.0)
    L, D = rng.normal(size=(2, m + n, 3))
    a, b = found.image(L), known.image(L)
    monkeypatch.setattr("gramian.dask._ratings.DRIVER_ENTRIES", 0)
    close = {"rtol": 1e-9, "atol": 1e-9 * known.value(b)}
    assert found.value(a) == pytest.approx(known.value(b))
    np.testing.assert_allclose(found.gradient(a) @ D, known.gradient(b) @ D, **close)
    along = np.sum(L * (known.gradient(b) @ L))
    assert found.complementarity(a) == pytest.approx(along, abs=1e-9 * known.value(b))
    known_offsets = np.zeros(m + n) if ridge is None else np.concatenate(known.loss.offsets(b.z))
    np.testing.assert_allclose(np.concatenate(found.offsets(a.factor)), known_offsets, atol=1e-10)
    with pytest.raises(NotImplementedError, match="by sweeps"):
        found.hessian_factor(a)
    for bottom in (0.0, -1.0):
        bounds = (next(iter(side.lower_bounds(at, bottom))).value
                  for side, at in ((found, a), (known, b)))  # fmt: skip
        assert next(bounds) == pytest.approx(next(bounds))
    factors, offsets = zip(*(swept(side, L) for side in (found, known)), strict=True)
    np.testing.assert_allclose(*factors, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(*offsets, rtol=1e-8, atol=1e-8)
    monkeypatch.setattr("gramian.dask._completion.PIECE", 8.0 * n * 7)  # seven columns a round
    forms = found.gradient(a).form().smaller(), known.gradient(b).form().smaller()
    np.testing.assert_allclose(forms[0].dense(), forms[1].dense(), rtol=1e-9, atol=1e-9)
    monkeypatch.undo()
    found = Completed(rated, CompletionModel(1.0, ridge, *scales), 3.0)
    a = found.image(L)
    np.testing.assert_allclose(found.gradient(a) @ D, known.gradient(b) @ D, **close)
    np.testing.assert_allclose(found.gradient(a).dense(), known.gradient(b).dense(), **close)
    np.testing.assert_allclose(found.gradient(a).slack(), known.gradient(b).slack(), rtol=1e-9)
    before, form = rated.cluster.traffic.rounds, found.gradient(a).form().smaller()
    np.testing.assert_allclose(form.dense(), forms[1].dense(), rtol=1e-9, atol=1e-9)
    assert rated.cluster.traffic.rounds == before  # the block is on the driver


@pytest.mark.parametrize("duplicates", [slow("mean"), "last"])
def test_ratings_are_divided_into_many_blocks_in_two_steps(
    ratings, tmp_path, monkeypatch, duplicates
):
    again = ratings.assign(rating=6 - ratings["rating"])[::3]
    for k, part in enumerate(np.array_split(np.arange(len(ratings)), 5)):
        pd.concat([ratings.iloc[part], again[k::5]]).to_parquet(tmp_path / f"{k}.parquet")
    monkeypatch.setattr(_store, "ENTRIES", 300)
    found = []
    for at_once in (1000, 2):
        monkeypatch.setattr(_store, "AT_ONCE", at_once)
        rated = store(given_ratings(Cluster(), str(tmp_path)), duplicates=duplicates)
        found.append([rated.cluster.gather(side.blocks) for side in (rated.users, rated.items)])
    for one, other in zip(*found, strict=True):
        assert len(one) == len(other) > 6
        for a, b in zip(one, other, strict=True):
            for name in ("starts", "neighbour", "values", "held"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_completion_fits_predicts_and_recommends(ratings):
    found = gd.NuclearCompletion(lam=8.0, tol=1e-2).fit(dd.from_pandas(ratings, npartitions=3))
    known = gm.completion.NuclearCompletion(lam=8.0, tol=1e-3).fit(ratings)
    assert found.certificate_.relative_gap <= 1e-2
    gap = known.certificate_.gap + found.certificate_.gap
    assert abs(found.result_.value - known.result_.value) <= gap
    pairs = ratings[["user", "item"]]
    predicted = found.predict(dd.from_pandas(pairs, npartitions=2))
    np.testing.assert_allclose(predicted.compute(), known.predict(pairs), atol=0.5)
    seen = set(ratings.loc[ratings.user == 1003, "item"])
    assert not seen & set(found.recommend(1003, 5)[0])


def swept(objective, L):
    """The factor and the offsets after a sweep from L."""
    halves = halves_of(objective)
    state = halves.state(L)
    halves.refit_upper(state, 3)
    halves.refit_lower(state, 3)
    factor = halves.factor(state)
    if isinstance(state, np.ndarray):
        return factor, state[:, -1]
    return factor.gathered(), state.gathered()[:, -1]


def test_mmmf_is_fitted_on_the_driver(ratings):
    """Their thresholds are learned, whatever the number of ratings."""
    levels = ratings.assign(rating=ratings["rating"].round().clip(-2, 2))
    found = gd.MMMF(lam=30.0).fit(dd.from_pandas(levels, npartitions=3))
    known = gm.completion.MMMF(lam=30.0).fit(levels)
    assert found.result_.route == ("ratings on the driver", *known.result_.route)
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-9)
    np.testing.assert_allclose(found.thresholds_, known.thresholds_)


def test_other_solvers_run_on_the_driver(ratings):
    settings = {"lam": 30.0, "solver": "lbfgs", "tol": 0.1}
    found = gd.NuclearCompletion(**settings).fit(dd.from_pandas(ratings, npartitions=2))
    known = gm.completion.NuclearCompletion(**settings).fit(ratings)
    assert found.result_.route == ("ratings on the driver", *known.result_.route)
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-9)


def test_hashed_random_numbers_are_uniform_and_reproducible():
    drawn = chance(np.arange(100_000), 3)
    assert abs(np.mean(drawn < 0.1) - 0.1) < 5e-3
    assert np.array_equal(drawn[5:10], chance(np.arange(5, 10), 3))


def test_rejects_invalid_input(wine, ratings, tmp_path):
    X, y = wine
    with pytest.raises(TypeError, match="outside gramian"):
        gd.KTA().fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        gd.KTA().fit(chunked(X, 60), np.zeros(len(X)))
    with pytest.raises(ValueError, match="NaN"):
        gd.KTA().fit(chunked(np.where(X > 3, np.nan, X), 60), y)
    with pytest.raises(ValueError, match="no Parquet or NPZ"):
        gd.NuclearCompletion().fit(str(tmp_path))
    twice = pd.concat([ratings, ratings.head(3)], ignore_index=True)
    with pytest.raises(ValueError, match="3 are repetitions"):
        gd.NuclearCompletion(lam=1.0).fit(dd.from_pandas(twice, npartitions=2))
    turned = dd.from_pandas(ratings.assign(rating=ratings["rating"] + 1j), npartitions=2)
    with pytest.raises(ValueError, match="ratings must be numbers"):
        gd.NuclearCompletion(lam=1.0).fit(turned)


@pytest.mark.parametrize("biases", [True, False])
def test_sweeps_of_weighted_ratings_equal_local_sweeps(ratings, biases):
    """Without offsets no sweep may find any, whatever the weights."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, len(ratings))
    away, home = (
        kind(lam=8.0, biases=biases)
        for kind in (gd.NuclearCompletion, gm.completion.NuclearCompletion)
    )
    weighted = dd.from_pandas(ratings.assign(weight=weights), npartitions=3)
    rated = store(given_ratings(Cluster(), weighted, "weight"))
    away._look_at(rated)
    sides = [
        problem.objective
        for problem in (
            away._problem(rated, 8.0),
            home._problem(home._ratings(ratings, weights), 8.0),
        )
    ]
    L = rng.normal(size=(sides[0].order, 2))
    factors, offsets = zip(*(swept(side, L) for side in sides), strict=True)
    np.testing.assert_allclose(*factors, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(*offsets, rtol=1e-8, atol=1e-8)
    assert biases or not np.any(offsets[0])
