"""What features count in a metric, and its picture."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectFromModel

from gramian.metric import KTA, LMNN, DMLEig

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
y = RNG.integers(0, 2, 80)
X = RNG.normal(size=(80, 5))
X[:, 3] += 3 * y


@pytest.mark.parametrize("learner", [KTA(lam=1.0), LMNN(shrinkage=0), DMLEig(shrinkage=0)])
def test_most_important_feature_separates_the_classes(learner):
    found = learner.fit(X, y).feature_importances_
    assert found.argmax() == 3 and found.sum() == pytest.approx(1.0) and (found >= 0).all()
    kept = SelectFromModel(learner, max_features=1, threshold=-np.inf).fit(X, y)
    assert kept.get_support().tolist() == [False, False, False, True, False]


def test_a_kernel_has_no_importances():
    with pytest.raises(AttributeError, match="feature space"):
        _ = KTA(kernel="rbf").fit(X, y).feature_importances_


def test_a_metric_is_pictured():
    frame = pd.DataFrame(X, columns=list("abcde"))
    figure = KTA(lam=1.0).fit(frame, y).plot(frame, y)
    assert [axes.get_title() for axes in figure.axes][1:] == ["after", "share of the metric"]
    assert figure.axes[2].get_yticklabels()[-1].get_text() == "d"
    sparse = KTA(lam=1.0).fit(sp.csr_array(X), y)
    assert len(sparse.plot(sp.csr_array(X)).axes) == 3
    matplotlib.pyplot.close("all")
