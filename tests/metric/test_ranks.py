"""A rank that is asked for is the rank of the metric, and is found in few searches."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from gramian.metric._few_columns import starting_maps
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
    ("learner", "plain"),
    [
        (KTA, {"lam": 1e-2}),
        (LinearSeparation, {"lam": 1e-3}),
        (DMLEig, {"shrinkage": 0.0, "floor": 0.0}),
        (LMNNEig, {"shrinkage": 0.0, "floor": 0.0}),
        (TripletMetric, {"shrinkage": 0.0}),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_the_certificate_of_a_rank_compares_with_the_optimum_of_any_rank(learner, plain):
    whole = learner(**plain).fit(X, Y)
    few = learner(rank=1, **plain).fit(X, Y)
    assert few.transform(X).shape[1] == 1 and few.result_.status is gm.Status.LOCAL
    size = 1e-3 * abs(whole.result_.value)
    assert few.result_.value >= whole.certificate_.lower_bound
    assert abs(few.certificate_.lower_bound - whole.result_.value) <= size


def test_a_rank_is_reached_from_the_best_of_several_maps():
    """The objective in one dimension is no larger than that of any starting map, at any scale."""
    few = KTA(rank=1, lam=1e-2).fit(X, Y)
    problem = gm.problems.kta(X, Y, 1e-2)
    scales = np.geomspace(1e-3, 10, 60)
    for L in starting_maps(X, Y, 1):
        assert few.result_.value <= min(problem.value(scale * L) for scale in scales) + 1e-9


@pytest.mark.parametrize(
    ("learner", "mixture"),
    [(DMLEig, "floor"), (LMNNEig, "floor"), *((kind, "shrinkage") for kind in (LMNN, DMLEig))],
)
def test_rejects_shrinkage_or_floor_with_a_rank(learner, mixture):
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
