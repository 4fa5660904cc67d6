"""What data on clusters look like: empty partitions, columns in another order, ids of two kinds."""

import time

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
from gramian.dask._cluster import Cluster
from gramian.dask._collections import read
from gramian.dask._ratings import ClusterRatings
from gramian.dask._store import given_ratings, store

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :5], y


@pytest.fixture(scope="module")
def frame(wine):
    return pd.DataFrame(wine[0], columns=list("abcde")).assign(kind=wine[1])


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((480, 60)) < 0.1)
    R = rng.normal(size=(480, 2)) @ rng.normal(size=(2, 60))
    return pd.DataFrame({"user": i, "item": j, "rating": np.round(R[i, j], 1)})


def chunked(X, rows=60):
    return da.from_array(X, chunks=(rows, *X.shape[1:]))


def kept(X, rows, mask):
    """A Dask array of some rows, whose chunks do not know their sizes; some of them empty."""
    return chunked(X, rows)[da.from_array(mask, chunks=rows)]


def written(folder, *frames):
    folder.mkdir()
    for k, part in enumerate(frames):
        part.to_parquet(folder / f"{k}.parquet")
    return str(folder)


def same_metric(found, known, within=1e-6):
    M, N = found.get_mahalanobis_matrix(), known.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, N, atol=within * np.abs(N).max())


# --- partitions without rows, and with one -----------------------------------------------


@pytest.mark.parametrize("name", ["KTA", "LinearSeparation"])
def test_empty_partitions_do_not_change_moments(wine, name):
    X, y = wine
    mask = np.arange(len(X)) >= 60
    found = getattr(gd, name)(lam=0.01).fit(kept(X, 20, mask), kept(y, 20, mask))
    same_metric(found, getattr(gm.metric, name)(lam=0.01).fit(X[mask], y[mask]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_empty_partitions_do_not_affect_held_out_neighbours(wine):
    X, y = wine
    mask = np.arange(len(X)) >= 60
    given = kept(X, 20, mask), kept(y, 20, mask)
    settings = {"n_neighbors": 1, "max_iter": 1, "shrinkage": 0.0}
    found = gd.TripletMetric(**settings).fit(*given)
    known = gm.metric.TripletMetric(**settings).fit(X[mask], y[mask])
    assert found.lam_ == pytest.approx(known.lam_)
    nothing = np.zeros(len(X), dtype=bool)
    with pytest.raises(ValueError, match="no rows"):
        gd.KTA().fit(kept(X, 20, nothing), kept(y, 20, nothing))


@pytest.mark.parametrize("learner", [gd.KTA, gd.LinearSeparation])
def test_rejects_class_weight(learner, wine):
    with pytest.raises(ValueError, match="class_weight is not supported on a cluster"):
        learner(class_weight="balanced").fit(chunked(wine[0]), wine[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_accepts_empty_blocks_of_pairs(wine):
    X, y = wine
    similar, other = gm.constraints.random_pairs(y, 30, random_state=0)
    pairs, same = X[np.vstack([similar, other])], np.repeat([True, False], 30)
    mask = np.arange(60) >= 20
    found = gd.DMLEig(max_iter=1).fit_pairs(kept(pairs, 10, mask), same[mask])
    known = gm.metric.DMLEig(max_iter=1, shrinkage=0.0).fit_pairs(pairs[mask], same[mask])
    assert found.mu_ == pytest.approx(known.mu_)
    with pytest.raises(ValueError, match="pairs has no rows"):
        gd.DMLEig().fit_pairs(kept(pairs, 10, np.zeros(60, dtype=bool)), same[:0])


def test_empty_chunks_are_transformed_to_empty_chunks(wine):
    X, y = wine
    model = gd.KTA(lam=0.01).fit(chunked(X), y)
    mask = np.arange(len(X)) >= 60
    np.testing.assert_allclose(
        model.transform(kept(X, 20, mask)).compute(), model.transform(X[mask])
    )
    with pytest.raises(ValueError, match="rows and columns"):
        model.transform(chunked(X[:, 0]))


def test_a_kernel_of_partitions_that_are_empty_or_have_one_sample():
    X = make_moons(60, noise=0.05, random_state=0)[0]
    mask, links = np.arange(60) >= 20, {"must_link": [[0, 1]], "cannot_link": [[0, 30]]}
    settings = {"lam": 10.0, "shrinkage": 0.0, "tol": 0.1, "n_clusters": 2}
    found = gd.NPKL(**settings).fit(kept(X, 10, mask), **links)
    known = gm.kernel.NPKL(**settings).fit(X[mask], **links)
    assert abs(found.laplacian_ - known.laplacian_).max() < 1e-12
    found = gd.NPKL(**settings).fit(da.from_array(X, chunks=((1, 58, 1), 2)), **links)
    known = gm.kernel.NPKL(**settings).fit(X, **links)
    assert abs(found.laplacian_ - known.laplacian_).max() < 1e-12


# --- columns, labels, marks ----------------------------------------------------------------


def test_rejects_partitions_with_other_column_orders(frame, tmp_path):
    folder = written(tmp_path / "turned", frame[:90], frame[90:][frame.columns[::-1]])
    with pytest.raises(ValueError, match="in the same order"):
        gd.KTA(lam=0.01).fit(folder, "kind")
    with pytest.raises(ValueError, match="in the same order"):
        gd.NPKL().fit(folder, "kind")


def test_transform_matches_columns_of_frames_by_name(frame):
    model = gd.KTA(lam=0.01).fit(dd.from_pandas(frame, npartitions=3), "kind")
    X = frame.drop(columns="kind")
    lazy = model.transform(dd.from_pandas(X, npartitions=2))
    np.testing.assert_allclose(lazy.compute(), model.transform(X))
    with pytest.raises(ValueError, match="same order"):
        model.transform(dd.from_pandas(X[X.columns[::-1]], npartitions=2)).compute()


def test_accepts_frames_of_mixed_numeric_dtypes(frame):
    mixed = pd.DataFrame({
        "a": frame["a"] > 0,
        "b": pd.array(np.arange(len(frame)), dtype="Int64"),
        "c": frame["c"],
        "kind": pd.Categorical(np.array(["x", "y", "z"])[frame["kind"]]),
    })  # fmt: skip
    found = gd.KTA(lam=0.01).fit(dd.from_pandas(mixed, npartitions=2), "kind")
    table = mixed[["a", "b", "c"]].to_numpy(dtype=float)
    same_metric(found, gm.metric.KTA(lam=0.01).fit(table, np.asarray(mixed["kind"])))
    assert found.classes_.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match=r"partition \d: X has text .*, in 'text'"):
        gd.KTA().fit(dd.from_pandas(mixed.assign(text="a"), npartitions=2), "kind")


def test_rejects_invalid_labels(wine, frame, tmp_path):
    X, y = wine
    numbers = y.astype(float)
    for labels, told in (
        (np.where(np.arange(len(y)) == 5, np.nan, numbers), "NaN"),
        (numbers + 0.5, "Unknown label type"),
        (y[:-3], "178 rows, and y 175"),
        (da.from_array(y[:-3], chunks=60), "178 rows, and y 175"),
        (da.from_array(y[:, None], chunks=(60, 1)), "one entry for each row"),
        (dd.from_pandas(pd.Series(y), npartitions=5), "3 partitions and y 5"),
        ("kind", "names a column, and X has none"),
    ):
        with pytest.raises(ValueError, match=told):
            gd.KTA(lam=0.01).fit(chunked(X), labels)
    text = written(tmp_path / "text", frame[:90], frame[90:].astype({"kind": str}))
    with pytest.raises(ValueError, match="labels are text in some partitions"):
        gd.KTA(lam=0.01).fit(text, "kind")
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.savez(tmp_path / "b.npz", X=X, y=y.astype(str))
    for learner in (gd.LMNN, gd.LMNNEig, gd.DMLEig, gd.TripletMetric):
        with pytest.raises(ValueError, match="labels are text in some partitions"):
            learner().fit([str(tmp_path / "a.npz"), str(tmp_path / "b.npz")], "y")
    with pytest.raises(ValueError, match="no column 'label'"):
        gd.KTA(lam=0.01).fit([str(tmp_path / "a.npz")], "label")


def test_rejects_contradictory_pairs_and_triplets(wine):
    X, y = wine
    similar, other = gm.constraints.random_pairs(y, 30, random_state=0)
    pairs, same = X[np.vstack([similar, other])], np.repeat([True, False], 30)
    for marks, told in (
        (np.where(same, "yes", "no"), "booleans"),
        (same.astype(int), "For 0 and 1"),
        (np.ones(60, dtype=bool), "all 60 pairs are similar"),
        (np.zeros(60, dtype=bool), "all 60 pairs are dissimilar"),
        (da.from_array(same[1:], chunks=20), "60 rows, and same 59"),
        (dd.from_pandas(pd.Series(np.append(same, same[:20])), npartitions=4), "same 4"),
    ):
        with pytest.raises(ValueError, match=told):
            gd.DMLEig().fit_pairs(chunked(pairs, 20), marks)
    both = np.vstack([pairs, pairs[:1, ::-1]])
    with pytest.raises(ValueError, match=r"contradictory pairs: pairs\[0\]"):
        gd.DMLEig().fit_pairs(chunked(both, 20), np.append(same, False))
    triplets = X[gm.constraints.random_triplets(y, 30, random_state=0)]
    turned = np.vstack([triplets, triplets[:1, [0, 2, 1]]])
    with pytest.raises(ValueError, match="contradictory triplets"):
        gd.LMNN().fit_triplets(chunked(turned, 20))
    with pytest.raises(ValueError, match="one point as anchor and as other"):
        gd.LMNN().fit_triplets(chunked(triplets[:, [0, 1, 0]], 20))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fit_on_the_driver_removes_attributes_of_earlier_fit(wine):
    X, y = (each[::3] for each in wine)
    similar, other = gm.constraints.random_pairs(y, 30, random_state=0)
    pairs, same = X[np.vstack([similar, other])], np.repeat([True, False], 30)
    model = gd.DMLEig(shrinkage=0.0, max_iter=2).fit_pairs(chunked(pairs, 20), same)
    assert hasattr(model, "threshold_")
    model.fit(chunked(X), y)
    assert not hasattr(model, "threshold_") and model.classes_.tolist() == [0, 1, 2]


def test_sparse_files_of_any_format_are_samples(wine, tmp_path):
    X = wine[0][:5]  # as many rows as columns: nothing but the format tells them apart
    sp.save_npz(tmp_path / "turned.npz", sp.csc_array(X))
    assert np.array_equal(read(str(tmp_path / "turned.npz")).toarray(), X)


def test_error_names_invalid_files(tmp_path):
    for name in ("a.parquet", "a.npz"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=f"{name} cannot be read"):
            gd.KTA().fit([str(tmp_path / name)], "kind")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read"):
        gd.NuclearCompletion().fit([str(tmp_path / "a.parquet")])
    with pytest.raises(ValueError, match=r"missing\.parquet cannot be read"):
        gd.NuclearCompletion().fit([str(tmp_path / "missing.parquet")])


def test_time_limit_includes_reading(ratings, wine):
    def late(block):
        time.sleep(1.0)
        return block

    slow = dd.from_pandas(ratings, npartitions=4).map_partitions(late, meta=ratings)
    with pytest.raises(TimeoutError, match="the ratings of the cluster"):
        gd.NuclearCompletion(lam=8.0, time_limit=0.3).fit(slow)
    samples_of = chunked(wine[0]).map_blocks(late, meta=np.empty((0, 0)))
    with pytest.raises(TimeoutError, match="the moments of the samples"):
        gd.KTA(time_limit=0.3).fit(samples_of, wine[1])


# --- ratings -----------------------------------------------------------------------------


def test_sample_weight_equals_that_of_a_local_fit(ratings):
    weights = np.where(ratings["user"] < 240, 0.0, 1.5)
    signs = ratings.assign(rating=np.sign(ratings["rating"] + 0.05) + ratings["user"] % 2)
    away, home = gd.NuclearCompletion(lam=8.0), gm.completion.NuclearCompletion(lam=8.0)
    given = dd.from_pandas(signs.assign(weight=weights), npartitions=3)
    rated = store(given_ratings(Cluster(), given, "weight"))
    away._look_at(rated)
    problems = away._problem(rated, 8.0), home._problem(home._ratings(signs, weights), 8.0)
    uneven = np.random.default_rng(0).uniform(0.1, 3.0, len(signs))
    given = dd.from_pandas(signs.assign(weight=uneven), npartitions=3)
    there = store(given_ratings(Cluster(), given, "weight"))
    away._look_at(there)
    here = home._ratings(signs, uneven)
    assert away.bias_ridge_ == home.bias_ridge_ < 5.0
    assert away._guess(there) == pytest.approx(home._guess(here), rel=1e-12)
    L = np.random.default_rng(0).normal(size=(problems[0].order, 2))
    values = [problem.objective.value(problem.objective.image(L)) for problem in problems]
    assert values[0] == pytest.approx(values[1])
    assert rated.known().nnz == int(np.sum(weights > 0))


def test_rejects_unreadable_ratings(ratings, tmp_path):
    def fitted(given, **named):
        gd.NuclearCompletion(lam=8.0, **named).fit(given)

    text = ratings[1500:].astype({"user": str})
    renamed = ratings[1500:].rename(columns={"rating": "stars"})
    for given, told in (
        (written(tmp_path / "text", ratings[:1500], text), "ids are text in some partitions"),
        (written(tmp_path / "other", ratings[:1500], renamed), "no column 'rating'"),
        (written(tmp_path / "words", ratings.assign(rating="good")), "must be numbers"),
        (written(tmp_path / "none", ratings[:0]), "there are no ratings"),
    ):
        with pytest.raises(ValueError, match=told):
            fitted(given)
    given = dd.from_pandas(ratings, npartitions=2)
    with pytest.raises(ValueError, match="duplicates must be one of"):
        fitted(given, duplicates="first")


def test_rejects_ratings_whose_squares_vanish(ratings):
    tiny = dd.from_pandas(ratings.assign(rating=1e-200 * ratings["rating"]), npartitions=2)
    with pytest.raises(ValueError, match="entries of the ratings are too small"):
        gd.NuclearCompletion(lam=8.0).fit(tiny)


def test_rejects_weights_that_do_not_match_the_ratings(ratings):
    model, given = gd.NuclearCompletion(lam=8.0), dd.from_pandas(ratings, npartitions=2)
    arrays = tuple(da.from_array(np.asarray(ratings[c]), chunks=1000) for c in ratings)
    for X, weights, told in (
        (given, "weight", "no column 'weight'"),
        (given, np.ones(len(ratings)), "the name of the column"),
        (arrays, "weight", "pass sample_weight as an array"),
        (arrays, da.ones(10, chunks=10), "sample_weight 10 entries"),
        (arrays, np.zeros(len(ratings)), "every sample_weight is zero"),
        ((*arrays[:2], arrays[2][:-5]), None, "and values"),
    ):
        with pytest.raises(ValueError, match=told):
            model.fit(X, sample_weight=weights)
    rated = store(given_ratings(Cluster(), arrays, np.full(len(ratings), 2.0)))
    assert rated.weight == 2.0 * len(ratings)


def test_gram_matrix_of_items_is_computed_on_demand(ratings, monkeypatch):
    monkeypatch.setattr("gramian.dask._ratings.DRIVER_ENTRIES", 0)
    rated = store(given_ratings(Cluster(), dd.from_pandas(ratings, npartitions=2)))
    model = gd.NuclearCompletion(lam=8.0)
    model._look_at(rated)
    objective = model._problem(rated, 8.0).objective
    image = objective.image(np.ones((objective.order, 1)))
    objective.value(image)
    before = rated.cluster.traffic.rounds
    smaller = objective.gradient(image).form().smaller()
    assert smaller.order == 60 and rated.cluster.traffic.rounds == before
    assert np.array_equal(smaller.dense(), objective.gradient(image).form().smaller().dense())
    assert rated.cluster.traffic.rounds == before + 1


def test_accepts_empty_files_and_filtered_frames(ratings, tmp_path):
    whole = store(given_ratings(Cluster(), dd.from_pandas(ratings, npartitions=1)))
    given = written(tmp_path / "some", ratings[:0], ratings[:1000], ratings[1000:])
    rated = store(given_ratings(Cluster(), given))
    assert (rated.shape, rated.check) == (whole.shape, pytest.approx(whole.check))
    frame = dd.from_pandas(ratings, npartitions=6)
    rated = store(given_ratings(Cluster(), frame[frame["user"] >= 200]))
    assert rated.size == int(np.sum(ratings["user"] >= 200))


def test_rejects_checkpoints_of_other_parameters_or_ratings(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.completion._base.LEAST_SWEPT", 1000)
    once, settings = ClusterRatings.mean_error, {"lam": 8.0, "bias_ridge": 2.0}

    def lose(*arguments):
        raise gd.ClusterError("lost")

    monkeypatch.setattr(ClusterRatings, "mean_error", lose)
    given = dd.from_pandas(ratings, npartitions=2)
    with gm.checkpoints(tmp_path, every=0), pytest.raises(gd.ClusterError):
        gd.NuclearCompletion(**settings).fit(given)
    monkeypatch.setattr(ClusterRatings, "mean_error", once)
    swapped = ratings.copy()
    first, last = swapped["rating"].iloc[0], swapped["rating"].iloc[-1]
    swapped.loc[swapped.index[[0, -1]], "rating"] = [last, first]
    assert first != last
    for changes, data, told in (
        ({"bias_ridge": 3.0}, ratings, "other bias_ridge"),
        ({"rank": 4}, ratings, "other rank"),
        ({"random_state": 1}, ratings, "other random_state"),
        ({}, swapped, "other ratings"),
    ):
        with (
            gm.checkpoints(tmp_path, every=0),
            pytest.raises(gm.StoredFileError, match=told),
        ):
            model = gd.NuclearCompletion(**settings | changes)
            model.fit(dd.from_pandas(data, npartitions=2))
    with gm.checkpoints(tmp_path, every=0):
        model = gd.NuclearCompletion(**settings).fit(given)
    assert model.result_.status is gm.Status.SETTLED
