"""Checkpoints of a fit that ends by the error held out."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.completion import ImplicitCompletion, NuclearCompletion
from gramian.completion._base import LEAST_SWEPT
from gramian.methods.quick import DUAL_SWEEPS
from gramian.objectives.halves import RowFits
from tests.slow import slow


class KilledError(Exception):
    """Stands for a kill."""


@pytest.fixture
def ratings():
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((400, 150)) < 0.4)
    assert rows.size > LEAST_SWEPT
    values = np.sum(rng.normal(size=(400, 3))[rows] * rng.normal(size=(150, 3))[cols], axis=1)
    return rows, cols, values + 0.5 * rng.normal(size=rows.size)


@pytest.fixture
def counted(monkeypatch):
    """Counts half-sweeps, and kills at one of them."""
    refit, seen = RowFits.refit, {"count": 0, "kill": np.inf}

    def counting(self, *given, **named):
        seen["count"] += 1
        if seen["count"] >= seen["kill"]:
            raise KilledError
        return refit(self, *given, **named)

    monkeypatch.setattr(RowFits, "refit", counting)
    return seen


@pytest.mark.parametrize("share", [slow(0.3), 0.75, slow(0.97)])
def test_killed_fit_resumes(ratings, counted, tmp_path, share):
    alone = NuclearCompletion(random_state=0).fit(ratings)
    whole, counted["count"] = counted["count"], 0
    counted["kill"] = int(share * whole)
    with pytest.raises(KilledError), gm.checkpoints(tmp_path, every=0):
        NuclearCompletion(random_state=0).fit(ratings)
    counted["count"], counted["kill"] = 0, np.inf
    with gm.checkpoints(tmp_path, every=0):
        model = NuclearCompletion(random_state=0).fit(ratings)
    assert counted["count"] <= (1 - share) * whole + 2 * DUAL_SWEEPS
    np.testing.assert_allclose(model.path_.values, alone.path_.values)
    assert model.lam_ == alone.lam_
    np.testing.assert_allclose(model.path_.value, alone.path_.value)
    assert model.result_.value <= 1.02 * alone.result_.value
    assert model.result_.status.name == "SETTLED"


def test_finished_fit_is_read_from_its_checkpoint(ratings, counted, tmp_path):
    with gm.checkpoints(tmp_path):
        first = NuclearCompletion(random_state=0, lam=4.0).fit(ratings)
    counted["count"] = 0
    with gm.checkpoints(tmp_path):
        again = NuclearCompletion(random_state=0, lam=4.0).fit(ratings)
    assert counted["count"] <= 2 * DUAL_SWEEPS  # for the certificate
    np.testing.assert_allclose(again.predict(ratings[:2]), first.predict(ratings[:2]))


def test_fit_resumes_after_a_time_limit(ratings, tmp_path):
    with gm.checkpoints(tmp_path, every=0), pytest.warns(match="did not converge"):
        NuclearCompletion(random_state=0, time_limit=1e-3).fit(ratings)
    with gm.checkpoints(tmp_path, every=0):
        model = NuclearCompletion(random_state=0).fit(ratings)
    assert model.result_.status.name == "SETTLED"


def test_rejects_checkpoints_of_another_fit(ratings, tmp_path):
    rows, cols, values = ratings
    with gm.checkpoints(tmp_path):
        NuclearCompletion(random_state=0, lam=4.0).fit(ratings)
    others = (
        (NuclearCompletion(random_state=0, lam=5.0), ratings, "other lam"),
        (NuclearCompletion(random_state=0, lam=4.0), (rows, cols, values + 1), "other ratings"),
        (NuclearCompletion(random_state=0, lam=4.0, tol=1e-2), ratings, "another format"),
        (ImplicitCompletion(random_state=0), (rows, cols, np.abs(values)), "other estimator"),
    )
    for model, given, why in others:
        with pytest.raises(gm.StoredFileError, match=why), gm.checkpoints(tmp_path):
            model.fit(given)


def test_implicit_completion_resumes(ratings, counted, tmp_path):
    clicks = ratings[0], ratings[1], np.ones(ratings[0].size)
    counted["kill"] = 12
    with pytest.raises(KilledError), gm.checkpoints(tmp_path, every=0):
        ImplicitCompletion(random_state=0).fit(clicks)
    counted["kill"] = np.inf
    with gm.checkpoints(tmp_path, every=0):
        model = ImplicitCompletion(random_state=0).fit(clicks)
    assert model.result_.status.name == "SETTLED"


def test_info_describes_a_checkpoint(ratings, tmp_path, capsys):
    pytest.importorskip("click")
    from gramian.app.cli.info import info

    with gm.checkpoints(tmp_path):
        NuclearCompletion(random_state=0, lam=4.0).fit(ratings)
    info.main([str(tmp_path / "solve-0001.gramian")], standalone_mode=False)
    told = capsys.readouterr().out
    assert "NuclearCompletion" in told and "whole" in told
