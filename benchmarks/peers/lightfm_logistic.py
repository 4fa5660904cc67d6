"""LightFM with the logistic loss: biases and factors of users and items, by stochastic gradients.

``lightfm-next`` is the maintained copy of LightFM, whose own releases no longer build.
"""
# /// script
# dependencies = ["lightfm-next==1.19.0"]
# ///

from typing import Any

import numpy as np
import scipy.sparse as sp
from lightfm import LightFM

from benchmarks.harness.exchange import serve, timed


def fit(
    train: np.ndarray, test: np.ndarray, shape: list[int], epochs: int, **options: Any
) -> dict[str, Any]:
    """Fit ``LightFM(**options)`` to (user, item, ±1) rows; score the pairs of the test rows."""
    labels = sp.coo_matrix((train[:, 2].astype(np.float32), _pairs(train)), shape=tuple(shape))
    learner = LightFM(loss="logistic", random_state=0, **options)
    seconds = timed(lambda: learner.fit(labels, epochs=epochs, num_threads=1))
    return {"scores": learner.predict(*_pairs(test), num_threads=1), "fit_seconds": seconds}


def _pairs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Users and items, contiguous as LightFM needs them."""
    users, items = np.ascontiguousarray(rows[:, :2].T, dtype=np.int32)
    return users, items


if __name__ == "__main__":
    serve(fit)
