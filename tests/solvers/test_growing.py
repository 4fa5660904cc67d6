"""L-BFGS with a doubling number of columns: what completes large matrices."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.methods.loop import FIRST_COLUMNS


def soft_threshold_value(R, lam):
    """min ½‖U − R‖² + λ‖U‖_*, from the singular values of R."""
    s = np.linalg.svd(R, compute_uv=False)
    kept = np.maximum(s - lam, 0)
    return 0.5 * np.sum((kept - s) ** 2) + lam * kept.sum(), int(np.sum(kept > 0))


def test_auto_doubles_the_columns_up_to_the_rank_of_the_optimum(monkeypatch):
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    rng = np.random.default_rng(0)
    R = rng.normal(size=(60, 50))
    best, rank = soft_threshold_value(R, 2.0)
    assert rank > 2 * FIRST_COLUMNS
    rows, cols = np.indices(R.shape).reshape(2, -1)
    problem = problems.nuclear_completion(rows, cols, R.ravel(), R.shape, 2.0)
    for module in ("solvers.auto", "methods.rough"):
        monkeypatch.setattr(f"gramian.{module}.halves_of", lambda objective: None)
    ranks = []
    result = gm.minimize(
        problem, tol=1e-6, random_state=0, callback=lambda state: ranks.append(state.record["rank"])
    )
    assert ranks[0] == FIRST_COLUMNS and result.rank >= rank
    assert result.certificate.relative_gap <= 1e-6
    assert result.value == pytest.approx(best, rel=1e-6)
    assert result.certificate.lower_bound <= best
