"""The two ends of a fit: the error held out has stopped moving, or the optimum is proved."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import gramian as gm
from gramian.completion import NuclearCompletion
from gramian.completion._reading import gather
from tests.slow import slow


def ratings(m=400, n=250, share=0.25, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(m, 4)) @ rng.normal(size=(4, n)) + rng.normal(size=n)
    rows, cols = np.nonzero(rng.random((m, n)) < share)
    return rows, cols, true[rows, cols] + noise * rng.normal(size=rows.size), true


ROWS, COLS, VALUES, TRUE = ratings()


def unseen_error(model):
    known = np.zeros(TRUE.shape, dtype=bool)
    known[ROWS, COLS] = True
    pairs = np.argwhere(~known)
    return np.sqrt(np.mean((model.predict(pairs) - TRUE[~known]) ** 2))


@pytest.fixture(scope="module")
def settled():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return NuclearCompletion(random_state=0, bounds=None).fit((ROWS, COLS, VALUES))


def test_default_stops_by_the_held_out_error_without_a_warning(settled):
    assert settled.tol == "auto"
    assert settled.result_.status is gm.Status.SETTLED and settled.result_.status.converged
    assert settled.path_.value == settled.lam_
    held = settled.result_.history["held_out"]
    assert np.isfinite(held).any()
    assert settled.n_iter_ == len(settled.result_.history) - 1


def test_certificate_is_a_valid_bound(settled):
    proved = NuclearCompletion(lam=settled.lam_, tol=1e-6, bounds=None).fit((ROWS, COLS, VALUES))
    best = proved.result_.value
    assert settled.certificate_.gap is not None and settled.certificate_.proved
    assert settled.certificate_.lower_bound <= best * (1 + 1e-9)
    assert settled.result_.value >= best * (1 - 1e-6)
    problem = settled._problem(gather((ROWS, COLS, VALUES)), settled.lam_)
    assert problem.value(settled.result_.factor) == pytest.approx(settled.result_.value)
    assert unseen_error(settled) <= 1.05 * unseen_error(proved)


def test_respects_lam_rank_and_weights(settled):
    model = NuclearCompletion(lam=settled.lam_, rank=5, random_state=0)
    model.fit((ROWS, COLS, VALUES), sample_weight=np.full(ROWS.size, 1.0))
    assert model.result_.status is gm.Status.SETTLED
    assert model.lam_ == settled.lam_ and model.col_factors_.shape[1] <= 5
    assert not hasattr(model, "path_")


def test_the_same_seed_gives_the_same_answer(settled):
    again = NuclearCompletion(random_state=0, bounds=None).fit((ROWS, COLS, VALUES))
    np.testing.assert_array_equal(again.col_factors_, settled.col_factors_)


@pytest.mark.parametrize("options", [{"tol": 1e-2}, slow({"solver": "alternating", "rank": 8})])
def test_numeric_tol_or_other_solver_stops_by_the_gap(options):
    model = NuclearCompletion(lam=8.0, random_state=0, **options).fit((ROWS, COLS, VALUES))
    assert model.result_.status is not gm.Status.SETTLED


@pytest.mark.slow
def test_few_ratings_end_at_the_optimum():
    few = ROWS < 60
    model = NuclearCompletion(random_state=0).fit((ROWS[few], COLS[few], VALUES[few]))
    assert model.result_.status is gm.Status.CONVERGED
    assert model.certificate_.relative_gap <= 1e-4


def test_the_time_limit_holds():
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = NuclearCompletion(time_limit=1e-3).fit((ROWS, COLS, VALUES))
    assert model.result_.status is gm.Status.TIME_LIMIT
    assert np.all(np.isfinite(model.predict((ROWS, COLS))))


def test_rejects_other_strings_than_auto():
    with pytest.raises(ValueError, match=r'tol must be a number in .* or "auto"'):
        NuclearCompletion(lam=1.0, tol="tight").fit((ROWS, COLS, VALUES))


@pytest.mark.data
def test_movielens_is_predicted_as_well_as_by_the_optimum():
    folder = os.environ.get("GRAMIAN_DATA")
    if folder is None:
        pytest.skip("set GRAMIAN_DATA to the folder of the benchmark data sets")
    z = np.load(Path(folder) / "movielens_100k.npz")
    held = np.random.default_rng(0).random(z["rating"].size) < 0.1
    parts = [z[name].astype(float) for name in ("user", "item", "rating")]
    model = NuclearCompletion(random_state=0).fit(tuple(part[~held] for part in parts))
    told = model.evaluate(tuple(part[held] for part in parts))
    assert told["rmse"] <= 0.906
    assert model.certificate_.relative_gap <= 0.15 and model.certificate_.proved


@pytest.mark.parametrize("calls", [1, 3, 12])
def test_interrupt_keeps_the_last_sweep(calls, monkeypatch):
    from gramian.objectives.halves import Halves

    seen, refit = [], Halves.refit_lower

    def interrupted(self, state, steps):
        seen.append(1)
        if len(seen) == calls:
            raise KeyboardInterrupt
        return refit(self, state, steps)

    monkeypatch.setattr(Halves, "refit_lower", interrupted)
    model = NuclearCompletion(random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit((ROWS, COLS, VALUES))
    assert model.result_.status is gm.Status.INTERRUPTED
    assert len(seen) == calls
    assert np.all(np.isfinite(model.predict(np.column_stack([ROWS[:9], COLS[:9]]))))
    assert model.certificate_.gap is not None


def test_progress_shows_the_sweeps(capsys):
    NuclearCompletion(random_state=0, progress=True).fit((ROWS, COLS, VALUES))
    told = capsys.readouterr().err
    assert "completion by auto" in told and "steps" in told
