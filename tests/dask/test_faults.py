"""What clusters do: workers die, schedulers vanish, nobody started one. Real processes here."""

import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask
import dask.array as da
import pandas as pd
from distributed import Client, LocalCluster

import gramian as gm
import gramian.dask as gd
from gramian.dask._cluster import Cluster, told_plainly
from gramian.dask._ratings import ClusterRatings
from gramian.dask._sweeps import ShardedHalves

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning")


def started():
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


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


@pytest.mark.slow
def test_fit_is_bitwise_reproducible_if_a_worker_dies(ratings):
    with started() as cluster, Client(cluster) as client:
        model = gd.NuclearCompletion(lam=8.0, tol=0.5).fit(ratings)
        timer = kill_one(client, 0.3)
        again = gd.NuclearCompletion(lam=8.0, tol=0.5).fit(ratings)
        timer.join()
    assert np.array_equal(model.row_factors_, again.row_factors_)
    assert model.certificate_ == again.certificate_


@pytest.mark.slow
def test_factors_on_workers_are_bitwise_reproducible_if_a_worker_dies(ratings, tmp_path):
    settings = {"lam": 8.0, "tol": 0.1, "rank": 8, "random_state": 0}
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as threads,
        Client(threads),
    ):
        known = gd.NuclearCompletion(**settings).fit(ratings, factors=tmp_path / "threads")
    with started() as cluster, Client(cluster) as processes:
        timer = kill_one(processes, 0.5)
        again = gd.NuclearCompletion(**settings).fit(ratings, factors=tmp_path / "processes")
        timer.join()
    assert np.array_equal(known.result_.factor, again.result_.factor)
    assert known.certificate_ == again.certificate_


def test_lost_fit_resumes_from_its_checkpoint(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.completion._base.LEAST_SWEPT", 1000)
    once, asked = ClusterRatings.mean_error, []

    def lose(*arguments):
        asked.append(arguments)
        if len(asked) == 2:
            raise gd.ClusterError("lost")
        return once(*arguments)

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        monkeypatch.setattr(ClusterRatings, "mean_error", lose)
        with gm.checkpoints(tmp_path, every=0), pytest.raises(gd.ClusterError):
            gd.NuclearCompletion(lam=8.0).fit(ratings)
        monkeypatch.setattr(ShardedHalves, "scattered", None)  # it is not begun again
        with gm.checkpoints(tmp_path, every=0):
            resumed = gd.NuclearCompletion(lam=8.0).fit(ratings)
    assert resumed.result_.status is gm.Status.SETTLED
    assert resumed.certificate_.relative_gap < 0.5


def test_error_without_a_client_explains_how_to_start_one():
    with pytest.raises(gd.ClusterError, match="from distributed import Client"):
        gd.KTA().fit(da.zeros((4, 2), chunks=2), np.arange(4))


def test_errors_of_the_cluster_become_cluster_errors():
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    class Events:
        address = "tcp://1"

        def get_events(self, topic):
            told = ("1 begins a", "2 begins b", "1 ends a", "1 begins partition 7")
            parts = [line.split(" ", 2) for line in told]
            return [(0.0, {"worker": f"tcp://{k}", kind: name}) for k, kind, name in parts]

    for error, told in (
        (KilledWorker("gramian-sum-1", Events(), 3), r"4 workers.* \(.* reading partition 7\)"),
        (KeyError("gramian-piece-1"), "ran out of memory"),
        (CommClosedError("closed"), "connection to the Dask scheduler was lost"),
        (OSError(28, "No space left on device"), "free disk space"),
    ):
        with pytest.raises(gd.ClusterError, match=told) as caught, told_plainly(Events()):
            raise error
        assert "the same call" in str(caught.value)


@pytest.mark.parametrize("gone", [False, True])
def test_lost_tasks_are_retried(monkeypatch, gone):
    from distributed.scheduler import KilledWorker

    class Lost:
        status = "error"

        def exception(self):
            if gone:
                return KeyError(("normal-1", 0, 0))
            return KilledWorker("gramian-gradient-1", None, 3)

    class Asked:
        def __init__(self):
            self.tried = []

        def retry(self, futures):
            self.tried.append(len(futures))

    monkeypatch.setattr(Cluster, "_done", lambda self, futures: None)
    monkeypatch.setattr("gramian.dask._cluster.HEARD", 0.01)
    client = Asked()
    Cluster(client=client)._wait([Lost(), Lost()])
    assert client.tried == [2, 2, 2]


def test_retry_waits_until_the_client_is_updated(monkeypatch):
    class Lost:
        status = "error"

        def exception(self):
            return KeyError("gramian-moments-sum-1")

    class Late:
        tried = 0

        def retry(self, futures):
            self.tried += 1
            threading.Timer(0.2, setattr, (futures[0], "status", "finished")).start()

    monkeypatch.setattr(Cluster, "_done", lambda self, futures: None)
    client = Late()
    Cluster(client=client)._wait([Lost()])
    assert client.tried == 1


@pytest.mark.slow
def test_error_names_a_partition_that_workers_ran_out_of_memory_with(tmp_path, monkeypatch):
    """The second of three files needs more memory than a worker has.

    The scheduler attributes the death of a worker to all tasks that it was given.
    """
    monkeypatch.setattr("gramian.dask._cluster.TRIES", 0)
    for k, rows in enumerate((20, 6_000_000, 20)):
        np.savez_compressed(tmp_path / f"{k}.npz", X=np.zeros((rows, 20)), y=np.arange(rows) % 2)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="600MB", dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster),
        pytest.raises(gd.ClusterError, match=r"reading .*1\.npz\), .* out of memory"),
    ):  # fmt: skip
        gd.KTA(lam=0.01).fit(str(tmp_path), "y")


def test_cluster_without_workers_raises_an_error(monkeypatch):
    monkeypatch.setattr("gramian.dask._cluster.LOOK", 0.2)
    monkeypatch.setattr("gramian.dask._cluster.PATIENCE", 0.4)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as alone,
        Client(alone),
    ):
        start = time.monotonic()
        with pytest.raises(gd.ClusterError, match="no worker"):
            Cluster().sum("test", float, [1, 2])
        assert time.monotonic() - start < 30
