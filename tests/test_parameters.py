"""Rules for parameters, and the tables of rules of estimators."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from gramian import completion, kernel, manifold, metric, spectral
from gramian.common.parameters import (
    ABOVE_ZERO,
    BELOW_ONE,
    COUNT,
    INSIDE,
    NOT_NEGATIVE,
    SHARE,
    TOLERANCE,
    one_of,
    or_auto,
    or_none,
    positive,
    whole_number,
)
from gramian.completion._margins import checked_levels
from gramian.estimators.parameters import SolverParameters, _entries, with_parameters
from gramian.estimators.persistence import Kept

ESTIMATORS = [
    cls
    for family in (completion, kernel, manifold, metric, spectral)
    for cls in vars(family).values()
    if inspect.isclass(cls) and issubclass(cls, Kept)
]
RULES = {
    "above zero": (ABOVE_ZERO, [1, 1e-300, np.float32(2)], [0, -1, np.nan, np.inf, "1", None]),
    "not negative": (NOT_NEGATIVE, [0, 0.0, 3], [-1e-300, np.inf, np.nan, "auto"]),
    "share": (SHARE, [0, 1, 0.5], [-0.1, 1.1, np.nan, "half"]),
    "inside": (INSIDE, [0.5], [0, 1, np.nan]),
    "below one": (BELOW_ONE, [0, 0.99], [1, -0.1]),
    "tolerance": (TOLERANCE, [0, 1e-6], [1.0, -1e-6, "small", np.nan]),
    "count": (COUNT, [1, np.int64(7)], [0, -1, 1.5, 2.0, True, "3", None]),
    "words": (one_of("kta", "euclidean"), ["kta", "euclidean"], ["x", None, 1, ["kta"]]),
    "or auto": (or_auto(ABOVE_ZERO), ["auto", 2.0], ["x", 0, None]),
    "or none": (or_none(COUNT), [None, 2], [0, "auto"]),
}


@pytest.mark.parametrize("name", RULES)
def test_rule_accepts_and_rejects(name):
    rule, good, bad = RULES[name]
    for value in good:
        rule.check(value, "p")
    for value in bad:
        with pytest.raises(ValueError) as refused:
            rule.check(value, "p")
        assert str(refused.value) == f"p must be {rule.words}, got {value!r}"


def test_one_of_lists_words():
    assert one_of("a", "b", "c").words == '"a", "b" or "c"'
    assert or_auto(SHARE).words == 'between 0 and 1, or "auto"'


def test_checked_numbers_are_plain_ones():
    assert type(positive(np.float32(2), "lam")) is float and positive(0, "lam", zero=True) == 0.0
    assert type(whole_number(np.int64(2), "k")) is int


@pytest.mark.parametrize(("values", "told"), [([3.0, 3.0], "1 diff"), (range(99), "more than 50")])
def test_levels_are_two_at_least_and_not_too_many(values, told):
    with pytest.raises(ValueError, match=f"two to 50 levels, and the entries have {told}"):
        checked_levels(np.array(values))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_rules_refer_to_parameters_and_accept_defaults(cls):
    if "_rules" in vars(cls):
        assert set(cls._rules) <= set(inspect.signature(cls).parameters)
    if not inspect.isabstract(cls) and all(
        parameter.default is not inspect.Parameter.empty
        for parameter in inspect.signature(cls).parameters.values()
    ):
        cls()._check_parameters()


@pytest.mark.parametrize("name", metric.__all__)
def test_every_parameter_of_a_metric_learner_is_documented(name):
    """Descriptions that learners share are inserted from their base classes."""
    learner = getattr(metric, name)
    described = _entries(inspect.cleandoc(learner.__doc__), "Parameters")
    assert set(learner().get_params(deep=False)) == set(described)
    attributes = _entries(inspect.cleandoc(learner.__doc__), "Attributes")
    assert {"result_", "certificate_", "n_features_in_"} <= set(attributes)


def test_a_class_describes_its_own_parameters_before_inherited_ones():
    @with_parameters
    class Learner(SolverParameters):
        """A learner.

        Parameters
        ----------
        tol : float
            Its own tolerance.
        """

    described = _entries(Learner.__doc__, "Parameters")
    assert "Its own tolerance." in described["tol"]
    assert next(iter(described)) == "tol" and "device" in described


RENAMED = [
    (cls, old, new)
    for cls in ESTIMATORS
    for old, new in getattr(cls, "_renamed", {}).items()
    if not old.endswith("_")
]


def test_renamed_parameters():
    assert {(cls.__name__, old, new) for cls, old, new in RENAMED} == {
        ("MVU", "nu", "lam"),
        ("ColoredMVU", "nu", "lam"),
        ("RegMVU", "nu", "lam"),
        ("LMNNEig", "gamma", "lam"),
        ("LowRankKernel", "method", "solver"),
    }


@pytest.mark.parametrize(("cls", "old", "new"), RENAMED)
def test_deprecated_name_sets_the_parameter_and_warns(cls, old, new):
    value = object()
    with pytest.warns(FutureWarning, match=f"{old} of {cls.__name__} is deprecated.* use {new}$"):
        made = cls(**{old: value})
    with pytest.warns(FutureWarning, match=f"use {new}$") as warned:
        changed = cls().set_params(**{old: value})
    assert warned[0].filename == __file__
    for estimator in (made, changed):
        assert estimator.get_params()[new] is value and old not in estimator.get_params()
        assert set(vars(estimator)) == set(estimator.get_params())
        with pytest.warns(FutureWarning, match=f"use {new}$"):
            assert getattr(estimator, old) is value
    with pytest.warns(FutureWarning, match=f"use {new}$"):
        setattr(made, old, 3)
    assert getattr(made, new) == 3


@pytest.mark.parametrize(("cls", "old", "new"), RENAMED)
def test_rejects_a_parameter_given_by_both_names(cls, old, new):
    for method in (cls, cls().set_params):
        with pytest.raises(ValueError, match=f"{old} is the deprecated name.* pass {new} only"):
            method(**{old: 1, new: 1})


@pytest.mark.parametrize(("cls", "old", "new"), RENAMED)
def test_present_name_does_not_warn(cls, old, new):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = cls(**{new: 0.25})
        copies = [clone(made), pickle.loads(pickle.dumps(made)), cls().set_params(**{new: 0.25})]
        for copied in copies:
            assert copied.get_params() == made.get_params()


@pytest.mark.parametrize(("cls", "old", "new"), RENAMED)
def test_restores_pickles_of_earlier_versions(cls, old, new):
    state = cls(**{new: 0.25}).__getstate__()
    state[old] = state.pop(new)
    restored = cls.__new__(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restored.__setstate__(state)
        assert clone(restored).get_params()[new] == 0.25


def test_grid_search_takes_both_names():
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = np.arange(30) % 2

    def search(name):
        model = metric.MetricClassifier(metric=metric.LMNNEig(tol=0.1, shrinkage=0.5))
        return GridSearchCV(model, {f"metric__{name}": [0.2]}, cv=2).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        present = search("lam")
    with pytest.warns(FutureWarning, match="use lam$"):
        former = search("gamma")
    assert present.best_estimator_.metric.lam == former.best_estimator_.metric.lam == 0.2
    assert present.best_score_ == former.best_score_


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("name", ["tol", "time_limit"])
def test_limits_are_checked_before_a_fit(cls, name):
    estimator = cls()
    if name in estimator.get_params(deep=False):
        with pytest.raises(ValueError, match=f"{name} must be .*, got 'soon'"):
            estimator.set_params(**{name: "soon"})._check_parameters()
