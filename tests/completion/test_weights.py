"""Weights of ratings: they are repetitions, and those without any are not there."""

import numpy as np
import pytest
from sklearn.base import clone

import gramian as gm
from gramian import problems
from gramian.checks import check_curvature, check_gradient
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from gramian.losses import SquaredWithOffsets
from tests.conic import Term, conic_minimum
from tests.slow import slow

RNG = np.random.default_rng(0)
M, N = 12, 9
ROWS, COLS = np.nonzero(RNG.random((M, N)) < 0.6)
VALUES = RNG.normal(size=ROWS.size)
WEIGHTS = RNG.uniform(0.3, 3.0, ROWS.size)
SCALES = RNG.uniform(0.5, 2.0, M), RNG.uniform(0.5, 2.0, N)


@pytest.mark.parametrize("ridge", [slow(None), 1.5], ids=["plain", "offsets"])
@pytest.mark.parametrize("solver", ["staircase", "alternating"])
def test_integer_weights_equal_repetitions(ridge, solver):
    """An entry of weight 3 is three entries of weight 1."""
    times = RNG.integers(1, 4, ROWS.size)
    given = (M, N), 0.8
    scales = {"row_scale": SCALES[0], "col_scale": SCALES[1], "ridge": ridge}
    weighted = problems.nuclear_completion(
        ROWS, COLS, VALUES, *given, weights=times.astype(float), **scales
    )
    again = [np.repeat(part, times) for part in (ROWS, COLS, VALUES)]
    repeated = problems.nuclear_completion(*again, *given, **scales)
    check_gradient(weighted.objective)
    L = RNG.normal(size=(M + N, 3))
    assert weighted.value(L) == pytest.approx(repeated.value(L))
    one, two = (gm.minimize(p, solver, tol=1e-8) for p in (weighted, repeated))
    assert one.value == pytest.approx(two.value, rel=1e-7)
    assert one.certificate.lower_bound <= two.value * (1 + 1e-9)
    assert one.certificate.relative_gap <= 1e-8


def test_a_conic_solver_finds_the_same_optimum():
    problem = problems.nuclear_completion(ROWS, COLS, VALUES, (M, N), 0.8, weights=WEIGHTS)
    squares = Term("squared", lambda K: K[ROWS, M + COLS], VALUES, 0.5 * WEIGHTS)
    expected = conic_minimum(M + N, [squares], 0.4 * np.eye(M + N))
    assert gm.minimize(problem, tol=1e-8).value == pytest.approx(expected, rel=1e-5)


def test_the_loss_with_offsets_has_its_conjugate_and_its_curvature():
    scale = RNG.uniform(0.5, 2, ROWS.size)
    loss = SquaredWithOffsets(VALUES, ROWS, COLS, (M, N), ridge=0.7, scale=scale, weight=WEIGHTS)
    z = RNG.normal(size=ROWS.size)
    w = loss.gradient(z)
    assert loss.value(z) + loss.conjugate(w) == pytest.approx(w @ z)
    check_curvature(loss, z)
    b, c = loss.offsets(z)
    left = WEIGHTS * (VALUES - scale * z - b[ROWS] - c[COLS])
    np.testing.assert_allclose(np.bincount(ROWS, left, M), 0.7 * b, atol=1e-10)


@pytest.mark.parametrize("model", [NuclearCompletion(lam=0.5, tol=1e-8), MMMF(lam=0.5, tol=1e-6)])
def test_entries_of_weight_zero_are_ignored(model):
    values = np.where(VALUES > 0, 1.0, -1.0)
    weights = np.where(np.arange(ROWS.size) % 5 == 0, 0.0, 1.0)
    kept = weights > 0
    model.fit((ROWS, COLS, values), sample_weight=weights)
    pairs = np.argwhere(np.ones((M, N), dtype=bool))
    found = model._factorization.values(*pairs.T)
    model.fit((ROWS[kept], COLS[kept], values[kept]))
    np.testing.assert_allclose(found, model._factorization.values(*pairs.T), atol=1e-3)


@pytest.mark.parametrize("model", [NuclearCompletion(), ImplicitCompletion(), MMMF(lam=0.5)])
def test_equal_weights_of_one_do_not_change_a_fit(model):
    entries, pairs = (ROWS, COLS, 1.0 + (VALUES > 0)), np.column_stack([ROWS, COLS])
    expected = clone(model).fit(entries).predict(pairs)
    found = clone(model).fit(entries, sample_weight=np.ones(ROWS.size)).predict(pairs)
    np.testing.assert_array_equal(found, expected)


def test_larger_weights_pull_predictions_closer():
    twice = ([0, 0, 1, 1], [0, 0, 0, 1], [1.0, 5.0, 2.0, 3.0])
    for weights, expected in (([1, 1, 1, 1], 3.0), ([1, 3, 1, 1], 4.0)):
        model = NuclearCompletion(lam=1e-4, biases=False, duplicates="mean", tol=1e-6)
        model.fit(twice, sample_weight=weights)
        assert model.predict([[0, 0]])[0] == pytest.approx(expected, abs=0.01)


def test_accepts_weights_of_matrix_rows():
    X = np.where(RNG.random((M, N)) < 0.7, RNG.normal(size=(M, N)), np.nan)
    rows = RNG.uniform(0.5, 2, M)
    i, j = np.nonzero(~np.isnan(X))
    one = NuclearCompletion(lam=0.5, tol=1e-8).fit(X, sample_weight=rows)
    two = NuclearCompletion(lam=0.5, tol=1e-8).fit((i, j, X[i, j]), sample_weight=rows[i])
    np.testing.assert_allclose(one.predict((i, j)), two.predict((i, j)), atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"shape \(\d+,\)"),
        (np.full(ROWS.size, -1.0), "not below 0"),
        (np.full(ROWS.size, np.nan), "finite"),
        (np.zeros(ROWS.size), "zero"),
    ],
)
def test_rejects_invalid_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        NuclearCompletion(lam=1.0).fit((ROWS, COLS, VALUES), sample_weight=weights)
    with pytest.raises(ValueError, match="weights"):
        problems.nuclear_completion(ROWS, COLS, VALUES, (M, N), 1.0, weights=np.zeros(ROWS.size))
