"""UMAP of umap-learn."""
# /// script
# dependencies = ["umap-learn>=0.5.6"]
# ///

import time
import warnings
from typing import Any

import numpy as np
from umap import UMAP

from benchmarks.harness.exchange import serve


def embed(**sets: np.ndarray) -> dict[str, Any]:
    """The default embedding of each set, by its name, and the seconds of each.

    A first fit, which compiles, is not counted.
    """
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    _embedded(next(iter(sets.values())))
    found: dict[str, Any] = {"first": time.perf_counter() - start, "seconds": {}}
    for name, X in sets.items():
        start = time.perf_counter()
        found[name] = _embedded(X)
        found["seconds"][name] = time.perf_counter() - start
    return found


def _embedded(X: np.ndarray) -> np.ndarray:
    return UMAP(random_state=0, n_jobs=1).fit_transform(X)


if __name__ == "__main__":
    serve(embed)
