"""The verdict on held-out data."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, make_moons

import gramian as gm
from gramian.app.verdict import (
    EUCLID_KEPT,
    beyond_chance,
    keeps_euclid,
    of_errors,
    untested,
    verdict_of_completion,
    verdict_of_metric,
    voted,
    with_selection,
)
from gramian.common import clock
from gramian.metric import KTA
from gramian.neighbours import nearest
from tests.app.cli.data import FLOWERS, answer


def test_verdict_starts_with_the_kept_euclidean_metric(run, folder):
    """The folds of this set choose other weights than the model, which keeps Euclid's metric."""
    load_breast_cancer(as_frame=True).frame.to_csv("cells.csv", index=False)
    line = ("metric", "cells.csv", "--label", "target", "--method", "kta", "--model", "m.gramian")
    facts = answer(run, *line)
    kept = gm.load("m.gramian")[1]
    assert kept.lam_ == 0 and keeps_euclid(kept)
    assert facts["verdict"].startswith(EUCLID_KEPT)
    assert facts["held_out"]["before"] == facts["held_out"]["after"]
    line = line[:-2]
    assert answer(run, *line, "--no-verdict")["verdict"].startswith(EUCLID_KEPT)
    frame = pd.read_csv("cells.csv").iloc[::5]
    frame.to_csv("test.csv", index=False)
    assert answer(run, *line, "--test", "test.csv")["verdict"].startswith(EUCLID_KEPT)


def test_folds_that_keep_euclid_are_counted(monkeypatch):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    model = KTA(lam=1e-3).fit(X, y)
    assert "kept Euclid's metric" not in verdict_of_metric(model, X, y).sentence
    monkeypatch.setattr("gramian.app.verdict.metric.keeps_euclid", lambda other: other is not model)
    assert "of which 5 kept Euclid's metric" in verdict_of_metric(model, X, y).sentence


def test_euclid_is_a_multiple_of_the_identity():
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    assert keeps_euclid(KTA(lam=0).fit(X, y)) and not keeps_euclid(KTA(lam=1e-3).fit(X, y))
    assert not keeps_euclid(KTA(lam=0, n_components=2).fit(X, y))  # principal components
    wide = np.random.default_rng(0).standard_normal((10, 20))
    assert keeps_euclid(KTA(lam=0).fit(wide, np.arange(10) % 2))  # all of it within their span


def test_the_verdict_of_a_kept_metric_fits_no_other(monkeypatch):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    model = KTA(lam=0).fit(X, y)
    monkeypatch.setattr(KTA, "fit", lambda *given: pytest.fail("another model was fitted"))
    found = verdict_of_metric(model, X, y)
    assert found.before == found.after and found.held_out == 150


@pytest.mark.parametrize(("left", "folds"), [(np.inf, 5), (1.0, 1)])
def test_folds_are_held_out_within_the_time_limit(monkeypatch, left, folds):
    clocks = SimpleNamespace(now=clock.now, phase=clock.phase, left=lambda: left)
    clocks.elapsed = lambda started: 3.0
    monkeypatch.setattr("gramian.app.verdict.metric.clock", clocks)
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target
    model = KTA(lam=0.1).fit(X, y)
    assert f"({folds} of 5 folds" in verdict_of_metric(model, X, y).sentence


def test_an_untested_verdict_has_the_error_by_which_the_learner_was_chosen():
    errors = np.array([0.2, 0.05])
    path = SimpleNamespace(nested_error=0.1, errors=errors, measure="error", held_out=1500)
    assert str(with_selection(untested("time"), path)).endswith(
        "time. The learner was chosen by the error: 20.0 % → 10.0 % of 1,500 samples."
    )
    assert with_selection(untested("time"), None) == untested("time")
    tested = replace(untested("time"), measure="3-NN error")
    assert with_selection(tested, path) is tested


def test_one_row_is_singular_in_the_verdict():
    wrong = np.zeros((10, 2))
    wrong[0, 0], wrong[1:4, 1] = 1, 1
    assert "; 1 row became right and 3 wrong" in of_errors(wrong, "3-NN", "1 of 5 folds").sentence


def test_verdict_on_many_rows_uses_a_subset(monkeypatch):
    monkeypatch.setattr("gramian.app.verdict.metric.MOST_ASKED", 50)
    X, y = make_moons(400, noise=0.2, random_state=0)
    assert verdict_of_metric(gm.metric.KTA(), X, y).held_out == 50
    asked, called = voted(X, y, 3)
    near = nearest(X, 3).indices[asked]
    np.testing.assert_array_equal(called, y[near].sum(axis=1) >= 2)
    assert asked.size == 50


def test_the_verdict_comes_first(run, folder):
    out = run("metric", "flowers.csv", "--label", "species", "--method", "kta")[1].splitlines()
    assert "held-out rows" in out[1] and "3-NN error" in out[1]
    assert next(k for k, line in enumerate(out) if "certificate" in line) > 1
    facts = answer(run, "metric", "flowers.csv", "--label", "species", "--method", "kta")
    assert 0 <= facts["held_out"]["after"] <= facts["held_out"]["before"] + 0.05
    assert facts["held_out"]["held_out"] == len(FLOWERS.target)
    off = answer(
        run, "metric", "flowers.csv", "--label", "species", "--method", "kta", "--no-verdict"
    )
    assert off["held_out"] is None


def test_a_page_begins_with_the_verdict(run, folder):
    run("metric", "flowers.csv", "--label", "species", "--method", "kta", "--report", "r.html")
    page = (folder / "r.html").read_text()
    assert page.index("Did it help?") < page.index("kta by auto")


def test_the_only_row_of_a_class_is_never_held_out():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 20 + ["c"])
    verdict = verdict_of_metric(gm.metric.KTA(), rng.normal(size=(41, 3)), y)
    assert verdict.held_out == 40
    assert "no class has two" in str(verdict_of_metric(gm.metric.KTA(), np.eye(3), [0, 1, 2]))


@pytest.mark.slow
def test_lists_are_judged_by_a_weight_that_leaves_something():
    rng = np.random.default_rng(0)
    likes = rng.random((40, 30)) < np.kron([[0.5, 0.02], [0.02, 0.5]], np.ones((20, 15)))
    user, item = np.nonzero(likes)
    given = (user, item, np.ones(user.size))
    model = gm.completion.ImplicitCompletion(random_state=0).fit(given)
    model.lam_ = 1e9  # nothing is left of less with this
    judged = verdict_of_completion(model, *given)
    assert judged.after is not None and judged.after > judged.before
    fixed = gm.completion.ImplicitCompletion(lam=1e9).fit(given)
    assert "nothing is learned with λ = 1e+09" in str(verdict_of_completion(fixed, *given))


def test_gain_of_few_samples_is_not_significant():
    assert not beyond_chance(np.array([0.3, 0.4, 0.35]))
    assert beyond_chance(np.array([0.3, 0.4, 0.35, 0.3, 0.32, 0.2]))
    assert beyond_chance(np.r_[np.full(20, 0.5), np.full(20, -0.1)])
    assert not beyond_chance(np.zeros(5))


def test_verdict_of_a_learned_metric_is_about_that_metric():
    said = {
        name: of_errors(np.repeat([[a, b], [0, 0]], [10, 20], axis=0).astype(float), "3-NN", "here")
        for name, a, b in (("equal", 1, 1), ("worse", 0, 1))
    }
    assert "no better than Euclid's" in str(said["equal"]) and "worse than Euclid's" in str(
        said["worse"]
    )
    assert all(str(one).startswith("The learned metric is") for one in said.values())
    assert all("keep your features" not in str(one) for one in said.values())


def test_folds_of_the_verdict_do_not_depend_on_the_load(monkeypatch, ticking):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    ticking(1.0)  # every look at the clock takes a second
    assert "(5 of 5 folds" in verdict_of_metric(KTA(lam=1e-3).fit(X, y), X, y).sentence
    monkeypatch.setattr("gramian.app.verdict.metric.QUICK", 150 * 4 - 1)
    assert "(1 of 5 folds" in verdict_of_metric(KTA(lam=1e-3).fit(X, y), X, y).sentence
