"""SVD of Surprise: a biased factorisation by stochastic gradients."""
# /// script
# dependencies = ["scikit-surprise==1.1.5", "pandas"]
# ///

from typing import Any

import numpy as np
import pandas as pd
from surprise import SVD, Dataset, Reader

from benchmarks.harness.exchange import serve, timed


def fit(train: np.ndarray, test: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``SVD(**options)`` to (user, item, rating) rows; predict the pairs of the test rows."""
    frame = pd.DataFrame(train, columns=["user", "item", "rating"])
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    learner = SVD(random_state=0, **options)
    seconds = timed(lambda: learner.fit(data))
    values = [learner.predict(user, item).est for user, item in test[:, :2]]
    return {"values": np.array(values), "fit_seconds": seconds}


if __name__ == "__main__":
    serve(fit)
