"""Values of constructor parameters that are of a wrong type or size."""

import warnings

import numpy as np
import pytest

from gramian.metric import (
    KTA,
    LMNN,
    AutoMetric,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    MetricClassifier,
    MetricRegressor,
    TripletMetric,
)  # fmt: skip
from tests.wrong_parameters import NEED_TORCH, check_error_names

Y = np.arange(16) % 2
X = np.random.default_rng(0).normal(size=(16, 4)) + 2 * np.eye(2, 4)[Y]

NO_NUMBERS = ("abc", "3", [1], {}, np.array([1.0, 2.0]), np.nan, True)
NO_SHARES = (*NO_NUMBERS, -1, np.inf, 1e30, 1000)
NO_WEIGHTS = (*NO_NUMBERS, -1, np.inf)
NO_COUNTS = (*NO_NUMBERS, -1, 0, 2.5, np.inf, 1e30)
NO_FLAGS = ("abc", 0, 1, None, np.nan, [True], np.array([True, False]))
NO_WORDS = ("abc", None, 1, np.nan, True, [1], np.array(["identity"]))
NO_KERNELS = ("abc", "", 1, True, np.nan, ["rbf"], {}, np.array([1.0, 2.0]))

SHARED = {
    "n_components": (*NO_COUNTS, 1000),
    "tol": NO_SHARES,
    "time_limit": ("abc", -1, 0, np.nan, [1]),
    "max_iter": ("abc", -1),
    "progress": NO_FLAGS,
    "solver": ("abc", None),
    "random_state": ("abc", -1, 2.5, np.nan),
}
LIMITED = {**SHARED, "rank": (*NO_COUNTS, 1000)}
SHRUNK = {"shrinkage": NO_SHARES, "init": ("abc", 1, KTA)}
LOCAL = {
    "n_neighbors": NO_COUNTS, "neighbor_metric": NO_WORDS, "ridge": (*NO_WEIGHTS, None),
}  # fmt: skip
ALIGNED = {"lam": (*NO_WEIGHTS, None), "regularizer": NO_WORDS, "init": ("abc", 1, KTA),
           "class_weight": ("abc", 1, [1], {0: -1}, {0: "a"})}  # fmt: skip
KERNEL = {"kernel": NO_KERNELS, "kernel_params": ("abc", 1, [1], np.nan)}
VOTING = {"n_neighbors": NO_COUNTS, "weights": NO_WORDS}

WRONG = {
    KTA: {**LIMITED, **ALIGNED, **KERNEL, "center": NO_FLAGS},
    LinearSeparation: {**LIMITED, **ALIGNED},
    LMNN: {**LIMITED, **SHRUNK, **LOCAL, "lam": (*NO_WEIGHTS, 0, "auto")},
    LMNNEig: {
        **LIMITED, **SHRUNK, **LOCAL, "mu": (*NO_WEIGHTS, 0), "floor": NO_SHARES,
        "lam": (*NO_SHARES, 0, 1),
    },
    DMLEig: {**LIMITED, **SHRUNK, **LOCAL, **KERNEL, "mu": (*NO_WEIGHTS, 0), "floor": NO_SHARES},
    TripletMetric: {
        **LIMITED, **SHRUNK, "n_neighbors": NO_COUNTS, "lam": (*NO_WEIGHTS, 0),
        "mu": (*NO_WEIGHTS, 0),
    },
    ClassCollapse: {
        **SHARED, **KERNEL, "ridge": (*NO_WEIGHTS, 0), "targets": NO_WORDS,
        "init": ("abc", 1, KTA),
    },
    AutoMetric: LIMITED,
    MetricClassifier: {"metric": ("abc", 1, True, KTA), **VOTING},
    MetricRegressor: {**{k: v for k, v in SHARED.items() if k != "n_components"}, **VOTING},
}  # fmt: skip
ROWS = [(kind, name) for kind, wrong in WRONG.items() for name in wrong]


@pytest.mark.parametrize(("kind", "name"), ROWS, ids=lambda one: getattr(one, "__name__", one))
def test_names_a_wrong_parameter(kind, name):
    """An error that begins with, or explains, the parameter; solvers are listed."""
    check_error_names(kind, name, WRONG[kind][name], X, Y)


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_table_lists_every_parameter(kind):
    assert set(kind().get_params(deep=False)) - NEED_TORCH == set(WRONG[kind])


@pytest.mark.parametrize("kind", [LMNN, LMNNEig, DMLEig, TripletMetric])
def test_says_how_many_neighbours_there_are(kind):
    with pytest.raises(ValueError, match="too few for 1000 neighbours each: use at most 7"):
        kind(n_neighbors=1000).fit(X, Y)


@pytest.mark.parametrize("kind", [MetricClassifier, MetricRegressor])
def test_all_samples_vote_if_there_are_fewer_than_neighbours(kind):
    options = {} if kind is MetricRegressor else {"metric": KTA(lam=0.1)}
    many, all_of_them = (kind(n_neighbors=k, **options).fit(X, Y) for k in (1000, 16))
    np.testing.assert_array_equal(many.predict(X), all_of_them.predict(X))


def test_a_tolerance_of_zero_is_reached_up_to_rounding():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge
        fitted = ClassCollapse(tol=0, ridge=0.1, targets="uniform").fit(X, Y)
    assert fitted.certificate_.relative_gap <= 1e-6
