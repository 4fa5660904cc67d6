"""A rank that is asked for is the rank of the metric, and is found in few searches."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from gramian.metric._lmnn_task import LMNNTask

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)


@pytest.mark.parametrize(
    "learner",
    [KTA, LinearSeparation, LMNN, DMLEig, LMNNEig, TripletMetric],
    ids=lambda learner: learner.__name__,
)
def test_a_rank_is_the_number_of_columns(learner):
    fitted = learner(rank=2, tol=1e-2).fit(X, Y)
    assert fitted.transform(X).shape[1] <= 2
    assert np.linalg.matrix_rank(fitted.get_mahalanobis_matrix(), tol=1e-9) <= 2
    assert fitted.certificate_.gap >= 0


@pytest.mark.parametrize(
    ("learner", "mixture"),
    [(DMLEig, "floor"), (LMNNEig, "floor"), *((kind, "shrinkage") for kind in (LMNN, DMLEig))],
)
def test_a_mixture_of_full_rank_is_refused_beside_a_rank(learner, mixture):
    with pytest.raises(ValueError, match=f"{mixture}=0.5 makes a metric of full rank"):
        learner(rank=2, **{mixture: 0.5}).fit(X, Y)


@pytest.mark.slow
def test_lmnn_of_low_rank_takes_few_searches_for_violated_triplets(monkeypatch):
    """At a low rank nearly all triplets matter, and rounds over some of them ended far apart."""
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:400], y[:400]
    values, search = [], LMNNTask.violated

    def searched(self, *given, **named):
        found = search(self, *given, **named)
        values.append(found.value)
        return found

    solves, solve = [], LMNN._minimize
    monkeypatch.setattr(LMNNTask, "violated", searched)
    monkeypatch.setattr(LMNN, "_minimize", lambda *a, **b: solves.append(1) or solve(*a, **b))
    fitted = LMNN(rank=2).fit(digits, y)
    assert fitted.result_.status is gm.Status.LOCAL
    assert len(solves) <= 4 and len(values) <= 200
    assert fitted.certificate_.value <= min(values[4:]) * (1 + 1e-9)
