"""Clusters of worker processes on this machine, and data for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd


@contextmanager
def workers(count: int, *, memory: str = "auto", driver: bool = False) -> Iterator[Any]:
    """A client of so many worker processes of one thread each.

    Few ratings stay on the workers as many do, or come to the `driver` as in any other fit.
    """
    from distributed import Client, LocalCluster

    from gramian.dask import _recommend

    with (
        patch.object(_recommend, "DRIVER_RATINGS", _recommend.DRIVER_RATINGS if driver else 0),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(_imported)
        yield client


def _imported() -> None:
    """Import what tasks need, so that no fit waits for it."""
    import gramian.dask._recommend  # noqa: F401


def rating_files(folder: Path, users: int, items: int, count: int, files: int) -> str:
    """Ratings of rank 4 with noise, in Parquet files, never held at once; the pattern of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(files):
        path = folder / f"{k:04d}.parquet"
        if not path.exists():
            ratings_of(k, users, items, count // files).to_parquet(path)
    return str(folder / "*.parquet")


def ratings_of(part: int, users: int, items: int, count: int) -> pd.DataFrame:
    """One file of them: items of uneven popularity, halves of stars from 0.5 to 5."""
    P, Q = (np.random.default_rng(s).normal(size=(n, 4)) for s, n in ((1, users), (2, items)))
    rng = np.random.default_rng(100 + part)
    i = rng.integers(users, size=count)
    j = (items * rng.random(count) ** 2).astype(np.int64)
    keys = np.unique(i * items + j)
    i, j = np.divmod(keys, items)
    noisy = 3 + 0.5 * np.einsum("er,er->e", P[i], Q[j]) + 0.5 * rng.normal(size=i.size)
    stars = np.clip(np.round(2 * noisy) / 2, 0.5, 5.0)
    return pd.DataFrame({"user": i.astype(np.int32), "item": j.astype(np.int32), "rating": stars})
