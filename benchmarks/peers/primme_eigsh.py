"""PRIMME: near-optimal Davidson and Krylov methods for a few eigenvalues."""
# /// script
# dependencies = ["primme>=3.2", "numpy", "scipy"]
# ///

import time
from typing import Any

import numpy as np
import primme

from benchmarks.harness.exchange import serve


def largest(order: int, pairs: list[int], tol: float, repeat: int, patience: float) -> dict:
    """Least seconds, eigenvalues and vectors of the symmetric draw of `order`, by k.

    Once a k took longer than `patience`, larger ones are not tried.
    """
    A = np.random.default_rng(order).standard_normal((order, order))
    K = (A + A.T) / 2
    found: dict[str, Any] = {"seconds": {}}
    for k in pairs:
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            values, vectors = primme.eigsh(K, k, which="LA", tol=tol)
            seconds.append(time.perf_counter() - start)
        found["seconds"][str(k)] = min(seconds)
        found |= {f"values_{k}": values, f"vectors_{k}": vectors}
        if min(seconds) > patience:
            break
    return found


if __name__ == "__main__":
    serve(largest)
