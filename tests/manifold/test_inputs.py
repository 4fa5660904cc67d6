"""Input validation of unfoldings."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU

Y = np.arange(40) % 3
X = np.random.default_rng(0).normal(size=(40, 3))
MASKED = np.ma.masked_array(X, X > 1.5)
UNFOLDINGS = {
    "MVU": MVU(),
    "ColoredMVU": ColoredMVU(),
    "RegMVU": RegMVU(n_basis=8),
    "NeighborLayout": NeighborLayout(rounds=2),
}
EVERY_UNFOLDING = pytest.mark.parametrize("learner", UNFOLDINGS.values(), ids=UNFOLDINGS)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@EVERY_UNFOLDING
def test_rejects_masked_arrays(learner):
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        clone(learner).fit(MASKED, Y)
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        clone(learner).set_params(max_iter=1).fit(X, Y).transform(MASKED)


@EVERY_UNFOLDING
@pytest.mark.parametrize(("size", "word"), [(1e200, "large"), (1e-200, "small")])
def test_rejects_samples_that_overflow_or_underflow(learner, size, word):
    with pytest.raises(ValueError, match=f"too {word}"):
        clone(learner).fit(size * X, Y)


@EVERY_UNFOLDING
def test_accepts_long_indices(learner):
    short = sp.csr_array(X)
    parts = (short.data, short.indices.astype(np.int64), short.indptr.astype(np.int64))
    long = sp.csr_array(parts, shape=X.shape)
    learner = clone(learner).set_params(max_iter=1)
    first, second = (clone(learner).fit(form, Y).embedding_ for form in (short, long))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([None, *Y[1:]], r"y\[0\] is None, which is no label"),
        (["a", 1, *Y[2:].astype(object)], "mixes labels that cannot be compared"),
        (np.ma.masked_array(Y, Y == 1), r"y has .* masked entries"),
    ],
)
def test_rejects_missing_labels(y, message):
    y = y if isinstance(y, np.ma.MaskedArray) else np.array(y, dtype=object)
    with pytest.raises(ValueError, match=message):
        ColoredMVU().fit(X, y)
