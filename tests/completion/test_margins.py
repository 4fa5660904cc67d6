"""Squares above hinges: they touch, they lie above, and sweeps over them lower F."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramian as gm
from gramian import problems
from gramian.checks import check_adjoint
from gramian.common.storage import StoredFileError
from gramian.completion import MMMF, _base
from gramian.completion._margins import Margins
from gramian.completion._reading import gather
from gramian.maps import BlockEntries, RepeatedEntries
from tests.slow import slow

RNG = np.random.default_rng(0)


def levels_of(m=60, n=40, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(m, 3)) @ rng.normal(size=(3, n)) + rng.normal(size=(m, 1))
    levels = np.digitize(true, [-1.5, -0.3, 0.8]) + 1.0
    rows, cols = np.nonzero(rng.random((m, n)) < share)
    return rows, cols, levels[rows, cols], levels


def margins_of(seed=0, size=50, ridge=2.0, mu=0.3):
    rng = np.random.default_rng(seed)
    return Margins(
        rng.integers(0, 4, size), rng.normal(size=size), rng.uniform(0.5, 2, size),
        np.array([-2.0, 0.0, 2.0]), rng.normal(size=3), mu, ridge,
    )  # fmt: skip


def hinges(margins, z):
    """The same sum, one entry and one threshold at a time."""
    total = 0.5 * margins.ridge * margins.delta @ margins.delta
    for e, place in enumerate(margins.places):
        for k, theta in enumerate(margins.theta + margins.delta):
            sign = 1.0 if place > k else -1.0
            s = 1.0 - sign * (z[e] + margins.offsets[e] - theta)
            mu = margins.mu
            h = 0.0 if s <= 0 else s * s / (2 * mu) if s <= mu else s - mu / 2
            total += margins.weights[e] * h
    return total


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.floats(0.01, 2.0), st.floats(0.1, 5.0))
def test_quadratic_majorant_touches_the_hinges(seed, mu, spread):
    margins = margins_of(seed, size=8, mu=mu)
    rng = np.random.default_rng(seed)
    z, other = spread * rng.normal(size=(2, 8))
    bend, targets, beside = margins.squares(z)

    def above(u):
        return beside + 0.5 * float(bend @ (u - targets) ** 2)

    assert above(z) == pytest.approx(hinges(margins, z), rel=1e-9)
    assert above(other) >= hinges(margins, other) * (1 - 1e-9)


def test_threshold_updates_decrease_the_objective():
    margins, z = margins_of(), RNG.normal(size=50)
    before = hinges(margins, z)
    for _ in range(5):
        margins.settle(z)
        now = hinges(margins, z)
        assert now <= before
        before = now


@pytest.mark.slow
@pytest.mark.parametrize("learned", ["learned", "fixed"])
def test_sweeps_decrease_the_objective(learned):
    rows, cols, values, _ = levels_of()
    model = MMMF(thresholds=learned)
    ratings = model._ratings((rows, cols, values))
    halves, offsets = model._halves(ratings, 2.0)
    state = np.zeros((100, 41), dtype=np.float32)
    state[:, :-1] = RNG.normal(size=(100, 40))
    told = []
    for _ in range(200):
        told.append(halves.refit_upper(state, 3))
        told.append(halves.refit_lower(state, 3))
    assert np.all(np.diff(told) <= 1e-5 * told[0])
    problem = model._problem(ratings, 2.0, model._swept_offsets(halves, offsets, state))
    image = problem.objective.image(halves.factor(state))
    swept = halves.refit_upper(state.copy(), 0)
    if learned == "learned":
        swept -= 0.5 * model.bias_ridge * float(state[:, -1] @ state[:, -1])
    assert problem.objective.value(image) == pytest.approx(swept, rel=1e-3)
    best = gm.minimize(problem, tol=1e-5).value
    assert problem.objective.value(image) <= 1.05 * best


def test_held_out_entries_do_not_affect_the_fit():
    rows, cols, values, _ = levels_of()
    held = np.random.default_rng(1).random(values.size) < 0.2
    changed = np.where(held, 5.0 - values, values)
    found = []
    for given_values in (values, changed):
        model = MMMF()
        halves, _ = model._halves(model._ratings((rows, cols, given_values)), 2.0, held)
        state = np.full((100, 4), 0.1, dtype=np.float32)
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
        found.append(state)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("levels", [2, slow(4)])
def test_fit_stops_by_the_error_on_held_out_levels(monkeypatch, levels):
    monkeypatch.setattr(_base, "LEAST_SWEPT", 100)
    rows, cols, values, true = levels_of(80, 60)
    if levels == 2:
        values, true = np.sign(values - 2.5), np.sign(true - 2.5)
    given_ratings = rows, cols, values
    model = MMMF(random_state=0).fit(given_ratings)
    assert model.result_.status is gm.Status.SETTLED
    assert 0 < model.certificate_.relative_gap < 0.5
    assert model.path_.values.size > 1
    unseen = np.argwhere(~gather(given_ratings).matrix.toarray().astype(bool))
    error = np.mean(np.abs(model.predict(unseen) - true[tuple(unseen.T)]))
    exact = MMMF(lam=model.lam_, tol=1e-4, random_state=0).fit(given_ratings)
    assert exact.certificate_.relative_gap <= 1e-4
    assert exact.result_.value <= model.result_.value * 1.02
    optimum = np.mean(np.abs(exact.predict(unseen) - true[tuple(unseen.T)]))
    assert error <= 1.15 * optimum
    np.testing.assert_array_equal(
        model.predict(unseen), MMMF(random_state=0).fit(given_ratings).predict(unseen)
    )


def test_repeated_entries():
    rows, cols = np.array([0, 0, 2, 3]), np.array([1, 3, 0, 2])
    map = RepeatedEntries(rows, cols, (4, 5), 3)
    check_adjoint(map)
    L = RNG.normal(size=(9, 2))
    plain = BlockEntries(rows, cols, (4, 5))
    np.testing.assert_array_equal(map.bilinear(L, L), np.repeat(plain.bilinear(L, L), 3))
    w = np.array([1e16, 1.0, -1e16] * 4)
    np.testing.assert_array_equal(map.matrix(w).data, np.ones(4))
    with pytest.raises(ValueError, match="at least 1"):
        RepeatedEntries(rows, cols, (4, 5), 0)


def test_several_signs_per_entry_equal_repeated_entries():
    rows, cols = np.indices((6, 5)).reshape(2, -1)
    turned = np.random.default_rng(3).permutation(rows.size)
    signs = RNG.choice([-1.0, 1.0], (rows.size, 2))
    margin = RNG.uniform(0.5, 1.5, (rows.size, 2))
    given_problem = {"margin": margin[turned].ravel(), "mu": 0.3}
    once = problems.mmmf(
        rows[turned], cols[turned], signs[turned].ravel(), (6, 5), 0.7, repeat=2, **given_problem
    )
    again = problems.mmmf(
        np.repeat(rows, 2), np.repeat(cols, 2), signs.ravel(), (6, 5), 0.7,
        margin=margin.ravel(), mu=0.3,
    )  # fmt: skip
    found, same = (gm.minimize(each, tol=1e-7) for each in (once, again))
    assert found.value == pytest.approx(same.value, rel=1e-6)
    assert found.certificate.relative_gap <= 1e-7


def test_fit_after_an_interrupted_fit_starts_from_scratch(monkeypatch):
    monkeypatch.setattr(_base, "LEAST_SWEPT", 100)
    rows, cols, values, _ = levels_of(40, 30)
    model, other = MMMF(random_state=0), levels_of(50, 30, seed=1)[:3]
    broken = model._problem

    def fails(*given):
        raise RuntimeError

    model._problem = fails
    with pytest.raises(RuntimeError):
        model.fit((rows, cols, values))
    model._problem = broken
    again, fresh = model.fit(other), MMMF(random_state=0).fit(other)
    np.testing.assert_array_equal(again.row_biases_, fresh.row_biases_)


def test_checkpoints_of_margins(monkeypatch, tmp_path):
    monkeypatch.setattr(_base, "LEAST_SWEPT", 100)
    given_ratings = levels_of(40, 30)[:3]
    with gm.checkpoints(tmp_path / "auto"):
        first = MMMF(random_state=0).fit(given_ratings)
    with gm.checkpoints(tmp_path / "auto"):
        again = MMMF(random_state=0).fit(given_ratings)
    np.testing.assert_allclose(again.row_factors_, first.row_factors_, atol=1e-4)
    with pytest.raises(StoredFileError, match="other mu"), gm.checkpoints(tmp_path / "auto"):
        MMMF(mu=0.5, random_state=0).fit(given_ratings)
    for _ in range(2):
        with gm.checkpoints(tmp_path / "proved"):
            exact = MMMF(tol=1e-3, random_state=0).fit(given_ratings)
        assert exact.certificate_.relative_gap <= 1e-3
