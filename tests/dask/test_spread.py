"""Factors that stay on the workers: what comes to the driver, files, faults, and the answer."""

import os

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask.dataframe as dd
import pandas as pd

import gramian as gm
import gramian.dask as gd
from gramian.completion._stored import StoredRows
from gramian.dask import _cluster, _spread
from gramian.dask._cluster import Cluster
from gramian.dask._completion import Completed, CompletionModel
from gramian.dask._ratings import ClusterRatings
from gramian.dask._store import given_ratings, store
from gramian.dask._sweeps import ShardedHalves
from gramian.reductions import block_embedding

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning")

LIMITS = {"lam": 8.0, "random_state": 0}


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """Ratings of 1500 users and 120 items in three files."""
    folder, rng = tmp_path_factory.mktemp("ratings"), np.random.default_rng(0)
    R = rng.normal(size=(1500, 3)) @ rng.normal(size=(3, 120)) + rng.normal(size=(1500, 1))
    i, j = np.nonzero(rng.random(R.shape) < 0.15)
    noisy = np.round(R[i, j] + 0.3 * rng.normal(size=i.size), 1)
    frame = pd.DataFrame({"user": i, "item": j, "rating": noisy})
    for k, part in enumerate(np.array_split(rng.permutation(i.size), 3)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(scope="module")
def frame(ratings):
    return dd.read_parquet(ratings).compute().reset_index(drop=True)


@pytest.fixture
def received(monkeypatch):
    """The bytes of the largest arrays that come to the driver or leave it, as they do."""
    seen, gather, shared = [], Cluster.gather, Cluster.shared

    def gathered(self, nodes):
        found = gather(self, nodes)
        seen.extend(_cluster.size_of(part) for part in found)
        return found

    def sent(self, name, value):
        seen.append(0 if name == "names" else _cluster.size_of(value))
        return shared(self, name, value)

    monkeypatch.setattr(Cluster, "gather", gathered)
    monkeypatch.setattr(Cluster, "shared", sent)
    return seen


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_factors_are_not_copied_to_the_driver(ratings, frame, tmp_path, received, monkeypatch):
    monkeypatch.setattr("gramian.dask._ratings.DRIVER_ENTRIES", 0)
    most = {}
    for rank in (16, 64):
        received.clear()
        found = gd.NuclearCompletion(**LIMITS, tol=1e-3, rank=rank).fit(
            ratings, factors=tmp_path / f"{rank}"
        )
        assert found.result_.history["rank"].max() == rank
        most[rank] = max(received)
        assert most[rank] < 8 * 1620 * 16  # of the rows of any factor no more than a few numbers
    assert most[64] == most[16]  # that of the proof, items × items, whatever the rank
    assert isinstance(found.row_factors_, StoredRows)
    assert isinstance(found.result_.factor, StoredRows)
    known = gm.completion.NuclearCompletion(lam=8.0, tol=1e-4).fit(frame)
    gaps = found.certificate_.gap + known.certificate_.gap
    assert abs(found.result_.value - known.result_.value) <= gaps
    assert found.result_.status is gm.Status.CONVERGED
    assert found.certificate_.relative_gap <= 1e-3
    np.testing.assert_allclose(found.predict(frame), known.predict(frame), atol=0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_factors_in_files_give_the_same_predictions(ratings, frame, tmp_path):
    arrays = gd.NuclearCompletion(**LIMITS).fit(ratings)
    files = gd.NuclearCompletion(**LIMITS).fit(ratings, factors=tmp_path / "factors")
    assert np.array_equal(np.asarray(files.result_.factor), arrays.result_.factor)
    assert np.array_equal(files.row_factors_, arrays.row_factors_)
    assert np.array_equal(files.col_factors_, arrays.col_factors_)
    assert files.certificate_ == arrays.certificate_
    pairs = frame[["user", "item"]]
    known = arrays.predict(pairs)
    assert np.array_equal(files.predict(pairs), known)
    lazy = files.predict(dd.from_pandas(pairs, npartitions=2))
    np.testing.assert_array_equal(lazy.compute(), known)
    for a, b in zip(files.recommend(7, 5), arrays.recommend(7, 5), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(files.similar_users(7, 5)[0], arrays.similar_users(7, 5)[0])
    assert np.array_equal(files.transform(frame), arrays.transform(frame))
    files.save(tmp_path / "model.gramian")
    loaded = gm.load(tmp_path / "model.gramian")
    assert type(loaded) is gm.completion.NuclearCompletion
    assert np.array_equal(loaded.predict(pairs), known)
    states = [name for name in os.listdir(tmp_path / "factors") if name.startswith("state")]
    assert not states


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_lost_fit_with_factors_in_files_resumes(ratings, tmp_path, monkeypatch):
    once, asked = ClusterRatings.mean_error, []

    def lose(*arguments):
        asked.append(arguments)
        if len(asked) == 2:
            raise gd.ClusterError("lost")
        return once(*arguments)

    fit = {"factors": tmp_path / "factors"}
    with monkeypatch.context() as patch:
        patch.setattr(ClusterRatings, "mean_error", lose)
        with gm.checkpoints(tmp_path, every=0), pytest.raises(gd.ClusterError):
            gd.NuclearCompletion(**LIMITS).fit(ratings, **fit)
    monkeypatch.setattr(ShardedHalves, "scattered", None)  # it is not begun again
    with gm.checkpoints(tmp_path, every=0):
        resumed = gd.NuclearCompletion(**LIMITS).fit(ratings, **fit)
    assert resumed.result_.status is gm.Status.SETTLED
    with gm.checkpoints(tmp_path), pytest.raises(gm.StoredFileError, match="other factors"):
        gd.NuclearCompletion(**LIMITS).fit(ratings)


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_adds_columns_if_sweeps_end_above_the_tolerance(ratings, monkeypatch):
    monkeypatch.setattr("gramian.completion._quick.MAX_RANK", 1)
    monkeypatch.setattr("gramian.methods.alternating.MAX_QUIET_CHUNKS", 1)
    found = gd.NuclearCompletion(**LIMITS, tol=1e-2).fit(ratings)
    assert found.result_.status is gm.Status.CONVERGED
    assert found.result_.history["rank"].min() == 1 < found.result_.history["rank"].max()
    assert found.certificate_.relative_gap <= 1e-2


@pytest.mark.usefixtures("client")
def test_sweeps_in_blocks_are_mixed_as_in_a_local_fit(frame):
    from gramian.methods.alternating import Sweeps
    from gramian.methods.base import Settings

    rated = store(given_ratings(Cluster(), dd.from_pandas(frame, npartitions=3)))
    m, n = rated.shape
    away = gm.Problem(Completed(rated, CompletionModel(0.5, 5.0, np.ones(m), np.ones(n)), 8.0))
    values = frame["rating"].to_numpy() - 0.5
    home = gm.problems.nuclear_completion(
        frame["user"], frame["item"], values, (m, n), 8.0, ridge=5.0
    )
    L = np.random.default_rng(0).normal(size=(m + n, 4))
    told = Settings(rank=None, tol=1e-6, rng=np.random.default_rng(0))
    there, here = (Sweeps(problem, L, told).take(12) for problem in (away, home))
    np.testing.assert_allclose(there.gathered(), here, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("client")
def test_blocks_are_balanced_as_in_a_local_fit(frame):
    rated = store(given_ratings(Cluster(), dd.from_pandas(frame, npartitions=3)))
    L = np.random.default_rng(0).normal(size=(sum(rated.shape), 5))
    L[:, 4] = 0.0
    m = rated.shape[0]
    found = _spread.balanced(_spread.spread(rated, L)).gathered()
    known = block_embedding.balanced(L, m)
    assert found.shape == known.shape
    np.testing.assert_allclose(found[:m] @ found[m:].T, L[:m] @ L[m:].T, atol=1e-9)
    np.testing.assert_allclose(np.abs(found), np.abs(known), atol=1e-9)


@pytest.mark.usefixtures("client")
def test_rejects_a_folder_that_is_not_shared(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.dask._spread.write_rows", lambda path, rows: None)
    with pytest.raises(ValueError, match="that all of them share"):
        gd.NuclearCompletion(**LIMITS, rank=4).fit(ratings, factors=tmp_path / "nowhere")


@pytest.mark.usefixtures("client")
def test_rejects_factors_folder_of_other_estimators(ratings, tmp_path):
    for model in (gd.MMMF(), gd.NuclearCompletion(solver="lbfgs")):
        with pytest.raises(ValueError, match="leave factors out"):
            model.fit(ratings, factors=tmp_path)
