"""An interrupt from the keyboard while a parameter is chosen ends the fit, and is told."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from gramian import Status
from gramian.estimators import fitting
from gramian.metric import (
    KTA,
    LMNN,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    TripletMetric,
    _selection,
)
from gramian.metric._evidence import Trial

X, Y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

SHRUNK = pytest.mark.parametrize(
    "learner", [LMNN, DMLEig, LMNNEig, TripletMetric], ids=lambda learner: learner.__name__
)


def interrupting(function, at):
    """The function, of which call number `at` is interrupted; and the list of its calls."""
    calls = []

    def called(*given, **named):
        calls.append(len(calls) + 1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return function(*given, **named)

    return called, calls


def check_interrupted(fit):
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        fitted = fit()
    assert fitted.result_.status is Status.INTERRUPTED
    mapped = fitted.transform(X)
    assert np.all(np.isfinite(mapped)) and np.any(mapped != mapped[0])
    return fitted


@pytest.mark.parametrize("at", [1, 2])
@SHRUNK
def test_interrupt_during_evaluation_ends_the_selection(learner, at, monkeypatch):
    judge, calls = interrupting(Trial.judge, at)
    monkeypatch.setattr(Trial, "judge", judge)
    fitted = check_interrupted(lambda: learner().fit(X, Y))
    assert len(calls) == at
    assert hasattr(fitted, "path_") == (at > 1)


@SHRUNK
def test_interrupt_of_a_trial_solve_ends_the_fit(learner, monkeypatch):
    solve, results = fitting.minimize, []

    def solved(*given, **named):
        results.append(solve(*given, **named))
        first = len(results) == 1
        return replace(results[-1], status=Status.INTERRUPTED) if first else results[-1]

    judged, calls = interrupting(Trial.judge, 0)
    monkeypatch.setattr(Trial, "judge", judged)
    monkeypatch.setattr(fitting, "minimize", only_of_shrunk(solved, solve))
    check_interrupted(lambda: learner().fit(X, Y))
    assert not calls


def only_of_shrunk(solved, solve):
    """The patched solve for the problems of local metrics, the plain one for those of KTA."""

    def chosen(problem, *given, **named):
        return (solve if "kta" in problem.name.lower() else solved)(problem, *given, **named)

    return chosen


@pytest.mark.parametrize("at", [1, 2, 5])
def test_interrupt_during_selection_of_kta_keeps_evaluated_weights(at, monkeypatch):
    votes, calls = interrupting(_selection._wrong_votes, at)
    monkeypatch.setattr(_selection, "_wrong_votes", votes)
    fitted = check_interrupted(lambda: KTA().fit(X, Y))
    assert len(calls) == at and fitted.lam_ == 0


def test_an_interrupted_optimum_ends_the_choice_of_kta(monkeypatch):
    solve = _selection.minimize
    monkeypatch.setattr(_selection._Fold, "cut", lambda self, lam: 1.0)
    monkeypatch.setattr(
        _selection, "minimize", lambda *a, **b: replace(solve(*a, **b), status=Status.INTERRUPTED)
    )
    check_interrupted(lambda: KTA().fit(X, Y))


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_while_linear_separation_chooses_ends_the_fit(at, monkeypatch):
    judge, calls = interrupting(Trial.judge, at)
    monkeypatch.setattr(Trial, "judge", judge)
    check_interrupted(lambda: LinearSeparation().fit(X, Y))
    assert len(calls) == at
