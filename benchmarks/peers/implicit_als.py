"""Alternating least squares of implicit, for clicks."""
# /// script
# dependencies = ["implicit==0.7.3", "scipy"]
# ///

from typing import Any

import numpy as np
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares

from benchmarks.harness.exchange import serve, timed


def fit(
    train: np.ndarray, users: np.ndarray, shape: tuple[int, int], top: int, **options: Any
) -> dict[str, Any]:
    """Fit to (user, item) rows; the first `top` items of some users, their own left out."""
    ones = np.ones(len(train), dtype=np.float32)
    clicks = sp.csr_matrix((ones, (train[:, 0], train[:, 1])), shape=tuple(shape))
    learner = AlternatingLeastSquares(random_state=0, num_threads=1, **options)
    seconds = timed(lambda: learner.fit(clicks, show_progress=False))
    items, _ = learner.recommend(users, clicks[users], N=top, filter_already_liked_items=True)
    return {"items": np.asarray(items, dtype=np.int64), "fit_seconds": seconds}


if __name__ == "__main__":
    serve(fit)
