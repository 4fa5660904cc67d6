"""ITML of metric-learn, learned from pairs that are the same or not.

Its last release passes `force_all_finite`, gone from later scikit-learn: hence the pin.
"""
# /// script
# dependencies = ["metric-learn==0.7.0", "scikit-learn<1.6"]
# ///

import time
import warnings
from typing import Any

import metric_learn
import numpy as np

from benchmarks.harness.exchange import serve


def fit(pairs: np.ndarray, same: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``ITML(**options)`` to (n, 2, d) pairs and their ±1; return its components."""
    learner = metric_learn.ITML(**options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(pairs, same)
    return {
        "components": learner.components_,
        "fit_seconds": time.perf_counter() - start,
        "sweeps": int(learner.n_iter_) + 1,
    }


if __name__ == "__main__":
    serve(fit)
