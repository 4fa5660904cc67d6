"""LMNN of metric-learn, the field's incumbent.

Its last release passes `force_all_finite`, gone from later scikit-learn: hence the pin.
"""
# /// script
# dependencies = ["metric-learn==0.7.0", "scikit-learn<1.6"]
# ///

import warnings
from typing import Any

import metric_learn
import numpy as np

from benchmarks.harness.exchange import serve


def fit(X: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``LMNN(**options)``; return its components (rows as in scikit-learn)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = metric_learn.LMNN(**options).fit(X, y)
    return {"components": model.components_, "n_iter": int(getattr(model, "n_iter_", -1))}


if __name__ == "__main__":
    serve(fit)
