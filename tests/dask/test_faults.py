"""What clusters do: workers die, schedulers vanish, nobody started one. Real processes here."""

import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask.array as da
import pandas as pd
from distributed import Client, LocalCluster

import gramian as gm
import gramian.dask as gd
from gramian.dask._cluster import Cluster
from gramian.dask._recovery import Progress, told_plainly

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning")


def started():
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """Ratings of 460 users and 60 items in three files."""
    folder, rng = tmp_path_factory.mktemp("ratings"), np.random.default_rng(0)
    R = rng.normal(size=(460, 2)) @ rng.normal(size=(2, 60))
    i, j = np.nonzero(rng.random(R.shape) < 0.2)
    frame = pd.DataFrame({"user": i, "item": j, "rating": np.round(R[i, j], 1)})
    for k, part in enumerate(np.array_split(rng.permutation(i.size), 3)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet")
    return str(folder / "*.parquet")


def kill_one(client, after):
    """End one worker by SIGKILL in a while."""
    pids = list(client.run(os.getpid).values())
    timer = threading.Timer(after, os.kill, (pids[0], signal.SIGKILL))
    timer.start()
    return timer


def test_a_cluster_of_processes_repeats_bit_for_bit_whoever_dies(ratings):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 8)), rng.integers(3, size=3000)
    sharded = da.from_array(X, chunks=(300, 8))
    with started() as cluster, Client(cluster) as client:
        first = gd.KTA(lam=0.01).fit(sharded, y)
        model = gd.NuclearCompletion(lam=8.0, tol=0.05).fit(ratings)
        timer = kill_one(client, 0.3)
        again = gd.NuclearCompletion(lam=8.0, tol=0.05).fit(ratings)
        timer.join()
        assert np.array_equal(model.row_factors_, again.row_factors_)
        assert model.certificate_ == again.certificate_
        timer = kill_one(client, 0.05)
        assert np.array_equal(gd.KTA(lam=0.01).fit(sharded, y).components_, first.components_)
        timer.join()
    np.testing.assert_allclose(
        first.get_mahalanobis_matrix(),
        gm.metric.KTA(lam=0.01).fit(X, y).get_mahalanobis_matrix(),
        atol=1e-8,
    )


def test_a_lost_scheduler_is_told_and_the_same_call_goes_on(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.completion._quick.LEAST", 1000)
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50)
    client = Client(cluster)
    calm = gd.NuclearCompletion().fit(ratings)
    sweeps = []

    def lose(*arguments):
        sweeps.append(arguments)
        if len(sweeps) == 2:
            raise gd.ClusterError("lost")
        return once(*arguments)

    from gramian.dask import _recommend

    once = _recommend._rmse
    with gm.checkpoints(tmp_path, every=0):
        swept = gd.NuclearCompletion._path_on

        def then_lose(self, *arguments):
            state = swept(self, *arguments)
            monkeypatch.setattr(_recommend, "_rmse", lose)
            return state

        monkeypatch.setattr(gd.NuclearCompletion, "_path_on", then_lose)
        with pytest.raises(gd.ClusterError):
            gd.NuclearCompletion().fit(ratings)
    monkeypatch.setattr(_recommend, "_rmse", once)

    def never(*_):
        raise AssertionError("the path is not gone down again")

    monkeypatch.setattr(gd.NuclearCompletion, "_path_on", never)
    with gm.checkpoints(tmp_path, every=0):
        resumed = gd.NuclearCompletion().fit(ratings)
    assert resumed.lam_ == calm.lam_
    assert resumed.result_.value == pytest.approx(calm.result_.value, rel=0.02)
    np.testing.assert_allclose(resumed.path_.rmse, calm.path_.rmse)
    client.close()
    cluster.close()


def test_without_a_client_one_sentence_says_how_to_start_one():
    with pytest.raises(gd.ClusterError, match="from distributed import Client"):
        gd.KTA().fit(da.zeros((4, 2), chunks=2), np.arange(4))


def test_what_a_cluster_raises_becomes_one_sentence(tmp_path):
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    for error, told in (
        (KilledWorker("gramian-gradient-1", None, 3), "lost with 4 workers"),
        (CommClosedError("closed"), "connection to the Dask scheduler was lost"),
        (OSError(28, "No space left on device"), "make room"),
    ):
        with pytest.raises(gd.ClusterError, match=told) as caught, told_plainly():
            raise error
        assert "the same call" in str(caught.value)
    with gm.checkpoints(tmp_path):
        Progress({"order": 3}).keep(now=True, lam=1.0)
    with gm.checkpoints(tmp_path), pytest.raises(gm.StoredFileError, match="another fit"):
        Progress({"order": 4}).stored()


def test_a_cluster_without_workers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("gramian.dask._cluster.LOOK", 0.2)
    monkeypatch.setattr("gramian.dask._cluster.PATIENCE", 0.4)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as alone,
        Client(alone),
    ):
        start = time.monotonic()
        with pytest.raises(gd.ClusterError, match="no worker"):
            Cluster().sum("test", float, [1, 2])
        assert time.monotonic() - start < 30
