"""Columns of a state along which F decreases."""

import numpy as np
import pytest

from gramian.objectives.halves import halves_of
from gramian.problems import nuclear_completion


@pytest.mark.parametrize("weighted", [False, True])
def test_new_columns_decrease_the_objective(weighted):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((60, 40)) < 0.5)
    values = np.sum(rng.normal(size=(60, 5))[rows] * rng.normal(size=(40, 5))[cols], axis=1)
    weights = rng.uniform(0.5, 2.0, rows.size) if weighted else None
    problem = nuclear_completion(
        rows, cols, values, (60, 40), 3.0, ridge=1.0, weights=weights,
        row_scale=rng.uniform(0.5, 2.0, 60), col_scale=rng.uniform(0.5, 2.0, 40),
    )  # fmt: skip
    halves = halves_of(problem.objective, np.float32)
    state = halves.scattered(rng, 2)
    for _ in range(3):
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
    wider = halves.with_falling(state, 8, rng)
    assert 2 < wider.shape[1] - 1 <= 10
    assert halves.refit_upper(wider.copy(), 0) < 0.95 * halves.refit_upper(state.copy(), 0)
    assert problem.value(halves.factor(wider)) < 0.95 * problem.value(halves.factor(state))


@pytest.mark.parametrize("lam", [1e-30, 1e-3])
def test_tiny_weights_do_not_overflow(lam):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(np.ones((30, 20)))
    problem = nuclear_completion(rows, cols, 1e9 * rng.normal(size=rows.size), (30, 20), lam)
    halves = halves_of(problem.objective, np.float32)
    wider = halves.with_falling(halves.scattered(rng, 2), 5, rng)
    assert np.all(np.isfinite(wider))
