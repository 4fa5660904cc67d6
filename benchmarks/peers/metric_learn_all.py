"""LMNN, ITML, NCA, LSML and MLKR of metric-learn, by name; ITML also from pairs.

Its last release passes `force_all_finite`, which later scikit-learn lacks: hence the pin.
"""
# /// script
# dependencies = ["metric-learn==0.7.0", "scikit-learn<1.6"]
# ///

import time
from typing import Any

import metric_learn
import numpy as np

from benchmarks.harness.exchange import serve, timed

MODELS = ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised", "MLKR", "ITML")


def fit(model: str, X: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``model(**options)`` to samples, ITML to (n, 2, d) pairs and their ±1."""
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    learner = getattr(metric_learn, model)(**options)
    spent = time.process_time()
    seconds, sweeps = timed(lambda: learner.fit(X, y)), int(getattr(learner, "n_iter_", -1)) + 1
    return {
        "components": learner.components_,
        "fit_seconds": seconds,
        "fit_cpu_seconds": time.process_time() - spent,
        "sweeps": sweeps,
    }


if __name__ == "__main__":
    serve(fit)
