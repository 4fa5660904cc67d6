"""Estimators of a cluster do not depend on NumPy's error state, which belongs to the caller."""

import inspect
import warnings

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

import gramian.dask as gd
from tests.slow import slow_except

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning"),
]

WINE, CLASSES = (part[::3] for part in load_wine(return_X_y=True))
X = np.column_stack([WINE, 1e-170 * WINE[:, 0]])
"""Squares of the last column underflow to 0."""
RATED = np.random.default_rng(0).permutation(30 * 20)[:300]
RATINGS = pd.DataFrame({
    "user": RATED // 20, "item": RATED % 20, "rating": np.where(RATED % 7 < 3, 1.0, -1.0)
})  # fmt: skip
ESTIMATORS = [name for name in gd.__all__ if inspect.isclass(getattr(gd, name))]
QUICK = "KTA", "LinearSeparation"


def answers(name):
    """What is said of samples or pairs after a few steps."""
    model = getattr(gd, name)(max_iter=2)
    samples = da.from_array(X, chunks=(20, X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if hasattr(model, "recommend"):
            positive = name == "ImplicitCompletion"
            given = RATINGS[RATINGS["rating"] > 0] if positive else RATINGS
            model.fit(dd.from_pandas(given, npartitions=2))
            return model.predict(RATINGS[["user", "item"]])
        model.fit(samples, CLASSES)
    return model.transform(samples).compute(scheduler="synchronous")


@pytest.mark.parametrize(
    "name", slow_except([name for name in ESTIMATORS if name != "ClusterError"], *QUICK)
)
def test_result_is_independent_of_the_callers_errstate(name):
    expected = answers(name)
    with np.errstate(all="raise"):
        found = answers(name)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
