"""LMNN, ITML, NCA and LSML of metric-learn, by name.

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

MODELS = ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised")


def fit(model: str, X: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit the learner ``model(**options)``; return its components and the seconds it took."""
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    learner = getattr(metric_learn, model)(**options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, y)
    return {"components": learner.components_, "fit_seconds": time.perf_counter() - start}


if __name__ == "__main__":
    serve(fit)
