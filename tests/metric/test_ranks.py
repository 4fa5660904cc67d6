"""A rank that is asked for is the rank of the metric, and is found in few searches."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.common import clock
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from gramian.metric._few_columns import starting_maps
from gramian.metric._lmnn_task import LMNNTask
from gramian.problems.metric import signed_scatter
from gramian.problems.moments import moments
from tests.slow import slow

X, Y = (part[::2] for part in load_wine(return_X_y=True))
X = StandardScaler().fit_transform(X)


LEARNERS = {
    "KTA": (KTA, {"lam": 1e-2}),
    "LinearSeparation": (LinearSeparation, {"lam": 1e-3}),
    "LMNN": (LMNN, {"shrinkage": 0.25}),
    "DMLEig": (DMLEig, {"shrinkage": 0.25}),
    "LMNNEig": (LMNNEig, {"shrinkage": 0.25}),
    "TripletMetric": (TripletMetric, {"shrinkage": 0.25}),
}
BY_NAME = pytest.mark.parametrize("name", LEARNERS)
PROBLEMS = {
    "KTA": lambda **given: gm.problems.kta(X, Y, **given),
    "LinearSeparation": lambda **given: gm.problems.linear_separation(X, Y, **given),
}


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
    for L in starting_maps(moments(X, Y), 1):
        assert few.result_.value <= min(problem.value(scale * L) for scale in scales) + 1e-9


@pytest.mark.parametrize("learner", [DMLEig, LMNNEig], ids=lambda learner: learner.__name__)
def test_rejects_a_floor_with_a_rank(learner):
    with pytest.raises(ValueError, match=r"floor=0\.5 makes a metric of full rank"):
        learner(n_components=2, floor=0.5).fit(X, Y)


@BY_NAME
def test_the_number_of_components_is_the_rank(name):
    learner, given = LEARNERS[name]
    one, other = (learner(**given, **few).fit(X, Y) for few in ({"rank": 2}, {"n_components": 2}))
    assert one.transform(X).shape == (len(Y), 2)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert one.certificate_ == other.certificate_


@BY_NAME
def test_all_dimensions_are_the_metric_of_full_rank(name):
    learner, given = LEARNERS[name]
    M = learner(**given).fit(X, Y).get_mahalanobis_matrix()
    full = learner(**given, n_components=13).fit(X, Y).get_mahalanobis_matrix()
    np.testing.assert_allclose(full, M, atol=1e-12 * np.abs(M).max())


@BY_NAME
def test_solved_columns_are_no_worse_than_truncated_ones(name):
    """F of the metric of two columns is at most that of the full-rank metric, cut to two."""
    learner, given = LEARNERS[name]
    given = {**given, "shrinkage": 0.0} if "shrinkage" in learner().get_params() else given
    given = {**given, "floor": 0.0} if "floor" in learner().get_params() else given
    two = learner(**given, n_components=2).fit(X, Y)
    whole = learner(**given).fit(X, Y).result_
    assert two.result_.value >= whole.certificate.lower_bound - 1e-9 * abs(whole.value)
    assert two.certificate_.lower_bound <= whole.value + 1e-9 * abs(whole.value)
    if name in PROBLEMS:
        problem = PROBLEMS[name](**given)
        L = learner(**given, rank=13, n_components=2).fit(X, Y).components_.T
        cut = min(problem.value(scale * L) for scale in np.geomspace(0.1, 10, 41))
        assert two.result_.value < cut
        assert two.result_.value == pytest.approx(problem.value(two.components_.T), rel=1e-6)


def test_the_best_rank_of_linear_separation_is_known():
    """‖M − I‖² + λ⟨L_S, M⟩ is ‖M − (I − ½λL_S)‖² + const: its leading eigenvectors are optimal."""
    two = LinearSeparation(lam=1e-4, n_components=2).fit(X, Y)
    scatter = signed_scatter(X, Y).dense()
    values, vectors = np.linalg.eigh(np.eye(13) - 0.5e-4 * scatter)
    best = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    np.testing.assert_allclose(two.get_mahalanobis_matrix(), best, atol=1e-6 * np.abs(best).max())


@pytest.mark.parametrize("learner", [KTA, LinearSeparation])
def test_no_weight_gives_the_principal_directions(learner):
    """All orthonormal maps are optimal for λ = 0."""
    two = learner(lam=0.0, n_components=2).fit(X, Y)
    mapped = PCA(2).fit_transform(X)
    found = two.transform(X) - two.transform(X).mean(axis=0)
    np.testing.assert_allclose(np.abs(found), np.abs(mapped), atol=1e-6)


@pytest.mark.parametrize(
    "name", ["KTA", "LinearSeparation", "DMLEig", *(slow(one) for one in ("LMNN", "TripletMetric"))]
)
def test_few_columns_do_not_depend_on_order_names_or_rotation(name):
    learner, given = LEARNERS[name]
    given = {**given, "tol": 1e-6}
    rng = np.random.default_rng(0)
    order, turn = rng.permutation(len(Y)), np.linalg.qr(rng.normal(size=(13, 13)))[0]
    names = np.array(["c", "a", "b"])[Y]
    plain = learner(**given, n_components=2).fit(X, Y)
    value = plain.result_.value
    assert learner(**given, n_components=2).fit(X[order], names[order]).result_.value == (
        pytest.approx(value, rel=1e-6)
    )
    turned = learner(**given, n_components=2).fit(X @ turn, Y)
    assert turned.result_.value == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("learner", [KTA, DMLEig], ids=lambda learner: learner.__name__)
def test_few_columns_in_the_space_of_a_kernel(learner, kernel):
    given = {"lam": 1e-2} if learner is KTA else {"shrinkage": 0.0, "floor": 0.0}
    two = learner(kernel=kernel, n_components=2, **given).fit(X, Y)
    whole = learner(kernel=kernel, **given).fit(X, Y).result_
    assert two.transform(X).shape == (len(Y), 2) and two.result_.factor.shape[1] == 2
    gap = two.certificate_.gap + 1e-3 * abs(whole.value)
    assert -1e-3 * abs(whole.value) <= two.result_.value - whole.value <= gap


@pytest.mark.slow
def test_lmnn_of_low_rank_takes_few_searches_for_violated_triplets(monkeypatch):
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:400], y[:400]
    values, search = [], LMNNTask.violated

    def searched(self, *given, **named):
        found = search(self, *given, **named)
        values.append(found.value)
        return found

    monkeypatch.setattr(LMNNTask, "violated", searched)
    fitted = LMNN(rank=2, shrinkage=0.0).fit(digits, y)
    assert fitted.result_.status is gm.Status.LOCAL
    assert len(values) <= 400


@pytest.mark.parametrize("calls", [300, 1000])
@pytest.mark.parametrize("name", ["KTA", "LMNN", "DMLEig"])
def test_a_time_limit_at_a_limited_rank_keeps_the_best_map(name, calls, monkeypatch):
    """The clock jumps beyond the limit after some calls: in the solve, or in the steps after it."""
    now, count = clock.now, [0]

    def jumping():
        count[0] += 1
        return now() + (100.0 if count[0] > calls else 0.0)

    kind, parameters = LEARNERS[name]
    monkeypatch.setattr(clock, "now", jumping)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = kind(n_components=2, time_limit=50.0, tol=1e-10, **parameters).fit(X, Y)
    assert found.transform(X).shape == (len(Y), 2) and np.isfinite(found.result_.value)
    assert not found.result_.status.converged or found.certificate_.gap is not None
