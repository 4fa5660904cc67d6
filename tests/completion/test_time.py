"""Fits that end in time: what is left out when the time is up."""

import time

import numpy as np
import pytest

import gramian as gm
from gramian.common import clock
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion, _selection
from gramian.losses import SquaredWithOffsets
from gramian.losses.thresholds import WithThresholds
from gramian.methods import quick
from gramian.objectives.halves import RowFits
from tests.slow import slow_except

LEARNERS = [NuclearCompletion, ImplicitCompletion, MMMF]


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((400, 150)) < 0.4)
    scores = np.sum(rng.normal(size=(400, 3))[rows] * rng.normal(size=(150, 3))[cols], axis=1)
    return rows, cols, np.clip(np.round(3 + scores), 1, 5)


@pytest.fixture
def counted(monkeypatch):
    """How often what takes long is called."""
    seen = dict.fromkeys(("refit", "_fitted", "_found", "proved_certificate"), 0)
    for owner, name in (
        (RowFits, "refit"),
        (SquaredWithOffsets, "_fitted"),
        (WithThresholds, "_found"),
        (quick, "proved_certificate"),
    ):
        plain = getattr(owner, name)

        def counting(*given, plain=plain, name=name, **named):
            seen[name] += 1
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, counting)
    return seen


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("learner", LEARNERS)
def test_fit_without_time_makes_one_sweep(learner, ratings, counted):
    """Nothing is held out, no certificate is made, no offsets or thresholds are solved for."""
    model = learner(time_limit=1e-4).fit(ratings)
    assert counted["refit"] <= 3  # both halves, and the value
    assert counted["proved_certificate"] == counted["_found"] == 0
    assert counted["_fitted"] <= (learner is MMMF)  # whose offsets come first
    assert model.result_.status is gm.Status.TIME_LIMIT and not hasattr(model, "path_")
    assert np.all(np.isfinite(model.predict(ratings[:2])))
    assert model.certificate_.lower_bound == pytest.approx(0.0, abs=1e-9 * model.result_.value)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("learner", LEARNERS)
def test_value_after_a_time_limit_is_not_below_that_of_its_factor(learner, ratings):
    model = learner(time_limit=1e-4).fit(ratings)
    again = learner(lam=model.lam_)
    problem = again._problem(again._ratings(ratings), model.lam_)
    assert problem.value(model.result_.factor) <= model.result_.value
    assert problem.value(model.result_.factor) > 0.5 * model.result_.value


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("tick", [1e-3, 1e-2])
def test_time_limit_ends_the_fit(learner, ratings, monkeypatch, tick):
    """Every half-sweep takes a tick of this clock; reading the ratings takes ten."""
    now, refit, gather = [0.0], RowFits.refit, learner._ratings

    def taking(plain, ticks):
        def timed(*given, **named):
            now[0] += ticks * tick
            return plain(*given, **named)

        return timed

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(RowFits, "refit", taking(refit, 1))
    monkeypatch.setattr(learner, "_ratings", taking(gather, 10))
    limit = 40 * tick
    learner(time_limit=limit).fit(ratings)
    assert now[0] <= 1.2 * limit


@pytest.mark.parametrize("learner", slow_except(LEARNERS, NuclearCompletion))
def test_unreached_time_limit_does_not_change_the_fit(learner, ratings):
    free, limited = learner().fit(ratings), learner(time_limit=1e4).fit(ratings)
    assert limited.lam_ == free.lam_ and limited.result_.status is free.result_.status
    pairs = ratings[:2]
    np.testing.assert_array_equal(limited.predict(pairs), free.predict(pairs))


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("learner", LEARNERS)
def test_small_fit_without_time_skips_the_path(learner, ratings):
    few = tuple(part[::20] for part in ratings)
    model = learner(time_limit=1e-6).fit(few)
    assert model.result_.status is gm.Status.TIME_LIMIT and not hasattr(model, "path_")
    assert np.all(np.isfinite(model.predict(few[:2])))


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_path_keeps_its_first_value_if_the_time_ends_in_the_next(ratings, monkeypatch):
    few, plain, seen = tuple(part[::20] for part in ratings), _selection.rough, []

    def ending(*given, **named):
        seen.append(given)
        if len(seen) > 12:  # the first value of λ takes ten splits
            raise clock.TimeUpError
        return plain(*given, **named)

    monkeypatch.setattr(_selection, "rough", ending)
    model = NuclearCompletion(time_limit=1e4).fit(few)
    assert np.isfinite(model.path_.errors).tolist().count(True) == 1
    assert model.lam_ == model.path_.values[np.isfinite(model.path_.errors)]


@pytest.mark.filterwarnings("ignore:.*interrupted from the keyboard")
@pytest.mark.parametrize("at", [2, 7])
def test_interrupt_of_the_selection_keeps_the_errors_before_it(at, monkeypatch):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((40, 30)) < 0.4)
    scores = (rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)))[rows, cols]
    calls, error = [], _selection.Fold.error

    def interrupted(fold, lam):
        calls.append(lam)
        if len(calls) == at:
            raise KeyboardInterrupt
        return error(fold, lam)

    monkeypatch.setattr(_selection.Fold, "error", interrupted)
    model = NuclearCompletion().fit((rows, cols, scores))
    assert len(calls) == at and model.result_.status is gm.Status.INTERRUPTED
    assert model.path_.values[model.path_.chosen] == model.lam_
    assert np.all(np.isfinite(model.predict((rows, cols))))
