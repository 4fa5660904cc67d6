"""LMNN, ITML, NCA, LSML and MLKR of metric-learn, by name.

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

MODELS = ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised", "MLKR")


def fit(model: str, X: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit the learner ``model(**options)``; return its components and the seconds it took."""
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    learner = getattr(metric_learn, model)(**options)
    start, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - spent
    return {"components": learner.components_, "fit_seconds": seconds, "fit_cpu_seconds": cpu}


if __name__ == "__main__":
    serve(fit)
