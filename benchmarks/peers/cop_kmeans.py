"""COP-k-means (Wagstaff et al. 2001) by Babaki, from the copy of it that the index has.

It is plain Python, and gives up where a sample fits in no cluster without breaking a link.
"""
# /// script
# dependencies = ["htcopkmeans==1.5", "numpy"]
# ///

import random
import time
from typing import Any

import numpy as np
from htcopkmeans.cop_kmeans import cop_kmeans

from benchmarks.harness.exchange import serve


def cluster(
    X: np.ndarray,
    must_link: np.ndarray,
    cannot_link: np.ndarray,
    k: int,
    starts: int,
    max_iter: int,
    seconds: float,
    seed: int,
) -> dict[str, Any]:
    """The clusters of the best start, and how many found some; no start after the seconds."""
    random.seed(seed)
    rows = X.tolist()
    links = [list(map(tuple, pairs.tolist())) for pairs in (must_link, cannot_link)]
    best, least, tried, found = np.full(len(X), -1), np.inf, 0, 0
    begun = time.perf_counter()
    while tried < starts and (tried == 0 or time.perf_counter() - begun < seconds):
        tried += 1
        labels, centres = cop_kmeans(rows, k, *links, max_iter=max_iter)
        if labels is None:
            continue
        found += 1
        scatter = float(np.sum((X - np.asarray(centres)[labels]) ** 2))
        if scatter < least:
            best, least = np.asarray(labels), scatter
    spent = time.perf_counter() - begun
    return {"labels": best, "tried": tried, "found": found, "fit_seconds": spent}


if __name__ == "__main__":
    serve(cluster)
