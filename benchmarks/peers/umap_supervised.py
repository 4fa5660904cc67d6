"""Supervised UMAP of umap-learn."""
# /// script
# dependencies = ["umap-learn>=0.5.6"]
# ///

import time
import warnings
from typing import Any

import numpy as np
from umap import UMAP

from benchmarks.harness.exchange import serve


def maps(
    dimensions: list[int], A: np.ndarray, a: np.ndarray, B: np.ndarray
) -> dict[str, dict[str, Any] | np.ndarray]:
    """The default maps of training samples A with classes a, and of B, of every split.

    The first axis of the arrays is that of the splits. A first fit, which compiles, is not counted
    in the CPU seconds of the fits.
    """
    warnings.simplefilter("ignore")
    _mapped(2, A[0], a[0], B[0])
    found: dict[str, Any] = {"seconds": {}}
    for k in dimensions:
        made = [_mapped(k, *split) for split in zip(A, a, B, strict=True)]
        found[f"A{k}"], found[f"B{k}"] = (
            np.array([one[place] for one in made]) for place in (0, 1)
        )
        found["seconds"][str(k)] = [one[2] for one in made]
    return found


def _mapped(k: int, A: np.ndarray, a: np.ndarray, B: np.ndarray) -> tuple[Any, Any, float]:
    start = time.process_time()
    model = UMAP(n_components=k, random_state=0, n_jobs=1).fit(A, a)
    seconds = time.process_time() - start
    return model.embedding_, model.transform(B), seconds


if __name__ == "__main__":
    serve(maps)
