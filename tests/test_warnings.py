"""Warnings name the line that called the library."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from gramian.completion import NuclearCompletion
from gramian.kernel import NPKL, AutoKernel, RegPCP
from gramian.manifold import RegMVU
from gramian.metric import MetricClassifier, TripletMetric

Y = np.arange(45) % 3
X = np.random.default_rng(0).normal(size=(45, 3)) + 4 * np.eye(3)[Y]
HASTY = {"max_iter": 1, "tol": 1e-9}


@pytest.mark.filterwarnings("ignore:n_clusters")
@pytest.mark.parametrize(
    "model",
    [
        TripletMetric(lam=1.0, shrinkage=0.0, **HASTY),
        MetricClassifier(metric=TripletMetric(lam=1.0, shrinkage=0.0, **HASTY)),
        NPKL(shrinkage=0.0, **HASTY),
        AutoKernel(**HASTY),
        RegPCP(shrinkage=0.0, **HASTY),
        RegMVU(**HASTY),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_that_does_not_converge(model):
    with pytest.warns(UserWarning, match="did not converge") as warned:
        model.fit(X, Y)
    assert {one.filename for one in warned} == {__file__}


def test_input_that_may_be_meant_otherwise():
    shuffled = pd.DataFrame(X).sample(frac=1, random_state=0)
    triples = np.column_stack([np.divmod(np.arange(60), 8)[k] for k in (0, 1)] + [np.ones(60)])
    for call in (
        lambda: RegPCP(shrinkage=0.0).fit(shuffled, must_link=[[0, 3]], cannot_link=[[0, 1]]),
        lambda: RegPCP(n_clusters=2, shrinkage=0.0).fit(X, Y),
        lambda: NuclearCompletion(lam=1.0).fit(triples),
    ):
        with pytest.warns(UserWarning) as warned:
            call()
        assert {one.filename for one in warned} == {__file__}


def test_warning_of_a_step_names_the_line_of_scikit_learn():
    with pytest.warns(UserWarning, match="did not converge") as warned:
        make_pipeline(RegPCP(shrinkage=0.0, **HASTY)).fit(X, Y)
    assert "gramian" not in warned[0].filename.replace(__file__, "")
