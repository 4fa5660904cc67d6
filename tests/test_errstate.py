"""Results do not depend on the caller's NumPy error state."""

import functools
import inspect
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning

import gramian as gm
from gramian import completion, kernel, manifold, metric, spectral
from gramian.arrays.errstate import own_errstate
from gramian.estimators.persistence import Kept
from tests.cases import CASES
from tests.slow import slow_among, slow_except

CANCER, CLASSES = (part[::7] for part in load_breast_cancer(return_X_y=True))
X = np.column_stack([CANCER, 1e-170 * CANCER[:, 0]])
"""Squares of the last column underflow to 0, and so do affinities of samples far apart."""
FEW_KNOWN = np.where(np.arange(CLASSES.size) % 2, -1, CLASSES)
RATED = np.random.default_rng(0).permutation(30 * 20)[:300]
RATINGS = (RATED // 20, RATED % 20, 1.0 + (RATED // 20 + RATED % 20) % 5)

ESTIMATORS = {
    cls.__name__: cls
    for family in (completion, kernel, manifold, metric, spectral)
    for cls in vars(family).values()
    if inspect.isclass(cls) and issubclass(cls, Kept)
}
LONG_FITS = (
    *("AutoKernel", "AutoMetric", "ColoredMVU", "DMLEig", "ImplicitCompletion", "LMNN"),
    *("LMNNEig", "MMMF", "MetricClassifier", "NuclearCompletion", "PCP"),
)
STATES = ("raise", "warn", "ignore")  # a warning is an error here, that of an underflow too


def fitted(cls):
    """The estimator fitted to what its family takes, with a limit that no clock decides."""
    options = {"max_iter": 50} if "max_iter" in inspect.signature(cls).parameters else {}
    if cls.__module__.startswith("gramian.completion"):
        return cls(**options).fit(RATINGS)
    known = FEW_KNOWN if cls.__module__.startswith("gramian.kernel") else CLASSES
    return cls(**options).fit(X, known)


def answers(estimator):
    """The clusters or coordinates of the fit, and what is said of samples or pairs."""
    found = [vars(estimator)[name] for name in ("labels_", "embedding_") if name in vars(estimator)]
    if type(estimator).__module__.startswith("gramian.completion"):
        return [*found, estimator.predict(RATINGS[:2])]
    names = [name for name in ("transform", "predict") if hasattr(estimator, name)]
    return [*found, *(getattr(estimator, name)(X) for name in names)]


def outcome(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = fitted(cls)
    return answers(estimator), getattr(estimator, "result_", None)


@functools.cache
def expected_outcome(name):
    return outcome(ESTIMATORS[name])


@pytest.mark.parametrize("state", slow_except(STATES, "raise"))
@pytest.mark.parametrize("name", slow_among(ESTIMATORS, *LONG_FITS))
def test_result_is_independent_of_error_state(name, state, ticking):
    ticking(0.0)  # `auto` changes the method if a run takes long
    expected, result = expected_outcome(name)
    with np.errstate(all=state):
        found, other = outcome(ESTIMATORS[name])
        assert set(np.geterr().values()) == {state}
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert result is None or other.status is result.status


@pytest.mark.slow
def test_shrinkage_selection_with_raise():
    """The kernels that choose the shrinkage ended as diverged, and another one was chosen."""
    digits, labels = (part[:600] for part in load_digits(return_X_y=True))
    known = np.where(np.random.default_rng(0).random(labels.size) < 0.1, labels, -1)
    expected = kernel.PCP().fit(digits, known)
    with np.errstate(all="raise"):
        found = kernel.PCP().fit(digits, known)
    assert found.shrinkage_ == expected.shrinkage_
    np.testing.assert_array_equal(found.labels_, expected.labels_)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_problems_and_their_solution_are_the_same(case, ticking):
    ticking(0.0)  # `auto` changes the method if a run takes long
    expected = gm.minimize(case.make(), tol=1e-4, max_iter=300)
    for state in STATES:
        with np.errstate(all=state):
            problem = case.make()
            found = gm.minimize(problem, tol=1e-4, max_iter=300)
            certificate = gm.certify(problem, found.factor)
            value = problem.value(found.factor)
        assert found.status is expected.status
        assert found.value == expected.value == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert certificate == gm.certify(case.make(), expected.factor)


def test_every_public_problem_computes_under_the_librarys_state():
    for name in gm.problems.__all__:
        assert hasattr(getattr(gm.problems, name), "__wrapped__"), name


def test_eigenpairs_are_the_same():
    K = np.exp(-10.0 * np.abs(np.subtract.outer(np.arange(100.0), np.arange(100.0))))
    expected = gm.spectral.top_eigen(K, 3)
    with np.errstate(all="raise"):
        found = gm.spectral.top_eigen(K, 3)
    np.testing.assert_array_equal(found.vectors, expected.vectors)


def test_ignored_errors_stay_ignored():
    with np.errstate(all="raise", over="ignore"), own_errstate():
        state = np.geterr()
    assert state == {"divide": "warn", "over": "ignore", "under": "ignore", "invalid": "warn"}
