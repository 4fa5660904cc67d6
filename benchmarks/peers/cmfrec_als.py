"""CMF of cmfrec: a biased factorisation by alternating least squares."""
# /// script
# dependencies = ["cmfrec==3.5.1.post14", "pandas", "setuptools", "threadpoolctl"]
# ///

from typing import Any

import numpy as np
import pandas as pd
from cmfrec import CMF

from benchmarks.harness.exchange import serve, timed


def fit(train: np.ndarray, test: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``CMF(**options)`` to (user, item, rating) rows; predict the pairs of the test rows."""
    frame = pd.DataFrame(train, columns=["UserId", "ItemId", "Rating"])
    learner = CMF(random_state=0, verbose=False, **options)
    seconds = timed(lambda: learner.fit(frame))
    values = learner.predict(user=test[:, 0], item=test[:, 1])
    return {"values": np.clip(np.asarray(values, dtype=float), 1, 5), "fit_seconds": seconds}


if __name__ == "__main__":
    serve(fit)
