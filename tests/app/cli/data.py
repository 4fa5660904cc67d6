"""Samples and ratings for the command line."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

FLOWERS = load_iris(as_frame=True)


def ratings() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = 3 + rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    i, j = np.nonzero(rng.random(values.shape) < 0.5)
    names = np.array(["alice", "bob", *(f"user {k}" for k in range(2, 30))])
    return pd.DataFrame(
        {"user": names[i], "item": [f"film {k}" for k in j], "rating": values[i, j].round()}
    )
