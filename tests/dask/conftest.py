"""A cluster for the tests of one module."""

import pytest


@pytest.fixture(autouse=True)
def ratings_stay_on_workers(monkeypatch):
    """Small tests run on the workers what a fit computes there for many ratings."""
    pytest.importorskip("distributed", reason="gramian[dask] is not installed")
    monkeypatch.setattr("gramian.dask._recommend.DRIVER_RATINGS", 0)


@pytest.fixture(scope="module")
def client():
    """A cluster of threads: what tasks compute does not depend on where they run."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
