"""Row-wise least squares: the compiled code, the halves of the factor, sweeps, and `auto`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramian as gm
from gramian import problems
from gramian.arrays import cpu, threads
from gramian.losses import Squared
from gramian.methods import repair
from gramian.methods.alternating import Sweeps
from gramian.methods.base import Settings
from gramian.methods.loop import Certifier
from gramian.methods.rough import rough
from gramian.objectives.halves import RowFits, halves_of

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
OFFSETS = pytest.mark.parametrize("ridge", [None, 2.0], ids=["plain", "offsets"])


def entries(m, n, share, seed=0):
    """Some entries of an m × n matrix, the first row and the last column without any."""
    known = np.random.default_rng(seed).random((m, n)) < share
    known[0], known[:, -1] = False, False
    return np.nonzero(known)


def completion(m=30, n=20, *, share=0.6, lam=1.5, ridge=None, seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = entries(m, n, share, seed)
    values = np.sum(rng.normal(size=(m, 3))[rows] * rng.normal(size=(n, 3))[cols], axis=1)
    scales = rng.uniform(0.5, 2.0, m), rng.uniform(0.5, 2.0, n)
    return problems.nuclear_completion(
        rows, cols, values, (m, n), lam, row_scale=scales[0], col_scale=scales[1], ridge=ridge
    )


def row_fits(m, n, free, seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = entries(m, n, 0.5, seed)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=m))])
    fits = RowFits(
        cpu.index_array(starts),
        cpu.index_array(cols),
        rng.uniform(0.5, 2.0, rows.size),
        rng.normal(size=rows.size),
        free,
    )
    return rows, cols, fits


@BOTH
@pytest.mark.parametrize("free", [False, True])
def test_enough_conjugate_gradient_steps_solve_every_row(compiled, free):
    m, n, r = 25, 18, 5
    rows, cols, fits = row_fits(m, n, free)
    rng = np.random.default_rng(1)
    P, Q = rng.normal(size=(m, r + 1)), rng.normal(size=(n, r + 1))
    if not free:
        P[:, -1] = Q[:, -1] = 0.0
    penalty = np.append(np.full(r, 0.7), 1.3)
    left = fits.targets - fits.scale * np.sum(P[rows, :-1] * Q[cols, :-1], axis=1)
    left -= free * (P[rows, -1] + Q[cols, -1])
    before = 0.5 * left @ left + 0.5 * np.sum(penalty * P**2)
    assert fits.refit(P, Q, penalty, 40, compiled=compiled) == pytest.approx(before)
    for i in range(m):
        own = rows == i
        B = np.column_stack([fits.scale[own, None] * Q[cols[own], :-1], np.full(own.sum(), free)])
        right = fits.targets[own] - free * Q[cols[own], -1]
        best = np.linalg.solve(B.T @ B + np.diag(penalty), B.T @ right)
        np.testing.assert_allclose(P[i], best, atol=1e-9)


@BOTH
def test_entries_of_weight_0_have_no_effect(compiled):
    rows, _, fits = row_fits(25, 18, True)
    rng = np.random.default_rng(3)
    live = rng.random(rows.size) < 0.7
    P, Q = rng.normal(size=(25, 6)), rng.normal(size=(18, 6))
    some, without = P.copy(), P.copy()
    masked = RowFits(
        fits.indptr, fits.neighbour, fits.scale * live, fits.targets * live, True,
        live.astype(float),
    )  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[live], minlength=25))])
    left = RowFits(
        cpu.index_array(starts), fits.neighbour[live], fits.scale[live], fits.targets[live], True
    )
    lost = masked.refit(some, Q, np.ones(6), 3, compiled=compiled)
    assert left.refit(without, Q, np.ones(6), 3, compiled=compiled) == pytest.approx(lost)
    np.testing.assert_allclose(some, without, atol=1e-9)


def test_long_rows_are_processed_in_parts():
    """A row may have more entries than are processed at once."""
    count, rng = 2 * cpu.COLLECTED_ROWS + 7, np.random.default_rng(0)
    cols = cpu.index_array(rng.integers(0, 50, count))
    starts = cpu.index_array([0, count - 3, count])
    fits = RowFits(starts, cols, np.ones(count), rng.normal(size=count), True)
    start, Q = rng.normal(size=(2, 4)), rng.normal(size=(50, 4))
    plain, parts = start.copy(), start.copy()
    lost = fits.refit(plain, Q, np.ones(4), 3, compiled=False)
    assert fits.refit(parts, Q, np.ones(4), 3, compiled=True) == pytest.approx(lost)
    np.testing.assert_allclose(parts, plain, rtol=1e-9)


def test_squared_loss_with_scalar_weight_or_target_has_least_squares_form():
    for loss in (Squared(1.5), Squared(np.arange(3.0)), Squared(0.5, weight=np.arange(1.0, 4.0))):
        squares, z = loss.least_squares(), np.array([0.3, -1.0, 2.0])
        assert 0.5 * np.sum((squares.scale * z - squares.targets) ** 2) == pytest.approx(
            loss.value(z)
        )


def test_rows_are_independent_of_the_number_of_threads(monkeypatch):
    _, _, fits = row_fits(400, 300, True)
    rng = np.random.default_rng(1)
    start, Q = rng.normal(size=(400, 9)), rng.normal(size=(300, 9))
    answers = []
    monkeypatch.setattr(threads, "WORK", 1000)
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        P = start.copy()
        fits.refit(P, Q, np.ones(9), 3, compiled=True)
        answers.append(P)
    for P in answers[1:]:
        np.testing.assert_array_equal(P, answers[0])


@OFFSETS
def test_value_of_state_is_that_of_its_factor(ridge):
    problem = completion(ridge=ridge)
    halves = halves_of(problem.objective)
    L = np.random.default_rng(2).normal(size=(problem.order, 4))
    state = halves.state(L)
    assert halves.refit_upper(state, 0) == pytest.approx(problem.value(L))
    assert halves.refit_lower(state, 0) == pytest.approx(problem.value(L))
    np.testing.assert_array_equal(state[:, :-1], L)


@OFFSETS
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), rank=st.integers(1, 8))
def test_sweeps_never_raise_F(ridge, seed, rank):
    problem = completion(14, 11, ridge=ridge, seed=seed % 7)
    L = np.random.default_rng(seed).normal(size=(problem.order, rank))
    sweeps = Sweeps(problem, L, Settings(rank=None, tol=1e-6, rng=np.random.default_rng(0)))
    first, last = problem.value(L), np.inf
    for _ in range(15):
        value = problem.value(sweeps.take(1))
        assert value <= sweeps.value * (1 + 1e-9) <= min(first, last) * (1 + 1e-8)
        last = sweeps.value


@OFFSETS
@pytest.mark.parametrize("solver", ["alternating", "auto"])
def test_reaches_the_optimum_of_another_solver(ridge, solver, monkeypatch):
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    problem = completion(ridge=ridge)
    known = gm.minimize(problem, "staircase", tol=1e-9)
    found = gm.minimize(problem, solver, tol=1e-7)
    assert found.status is gm.Status.CONVERGED
    assert found.value == pytest.approx(known.value, rel=1e-6)
    assert found.certificate.lower_bound <= known.value * (1 + 1e-9)


def soft_threshold(R, lam):
    """min ½‖U − R‖² + λ‖U‖_*, from the singular values of R, and the rank of its solution."""
    s = np.linalg.svd(R, compute_uv=False)
    kept = np.maximum(s - lam, 0)
    return 0.5 * np.sum((kept - s) ** 2) + lam * kept.sum(), int(np.sum(kept > 0))


@pytest.mark.parametrize("first", [4, 120])
def test_auto_adds_columns_up_to_the_rank_of_the_optimum(first, monkeypatch):
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    monkeypatch.setattr("gramian.methods.sweeping.FIRST_COLUMNS", first)
    R = np.random.default_rng(0).normal(size=(60, 50))
    best, rank = soft_threshold(R, 2.0)
    rows, cols = np.indices(R.shape).reshape(2, -1)
    problem = problems.nuclear_completion(rows, cols, R.ravel(), R.shape, 2.0)
    result = gm.minimize(problem, tol=1e-6, random_state=0)
    assert result.certificate.relative_gap <= 1e-6 and result.rank >= rank > 4
    assert result.value == pytest.approx(best, rel=1e-6)
    assert result.certificate.lower_bound <= best


def test_optimum_is_0_if_the_weight_exceeds_all_singular_values(monkeypatch):
    """F does not decrease along any direction at 0: the optimum is 0, and this is proved."""
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    result = gm.minimize(completion(lam=1e3), tol=1e-6)
    assert result.status is gm.Status.CONVERGED
    assert np.sum(result.factor**2) <= 1e-12 and result.certificate.proved


def test_rejects_other_objectives():
    problem = problems.top_eigen(np.eye(4))
    with pytest.raises(ValueError, match="squares of some entries of a block"):
        gm.minimize(problem, "alternating")


@pytest.mark.parametrize("start", [None, 3])
def test_rough_factor_has_the_requested_rank_and_a_lower_F(start):
    problem = completion()
    rng = np.random.default_rng(0)
    factor = None if start is None else rng.normal(size=(problem.order, start))
    found = rough(problem, factor, rank=3, random_state=0)
    assert found.shape[1] == 3
    assert problem.value(found) < problem.value(np.zeros((problem.order, 1)))


def test_problem_with_another_weight_equals_a_new_problem():
    problem, other = completion(lam=1.5), completion(lam=0.4)
    L = np.random.default_rng(0).normal(size=(problem.order, 3))
    changed = problems.completion.trace_weighted(problem, 0.4)
    assert changed.value(L) == pytest.approx(other.value(L))
    assert changed.objective.loss is problem.objective.loss


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_include_roots_stiffness_and_gram_matrix(compiled, dtype):
    m, n, r = 25, 18, 4
    rows, cols, plain = row_fits(m, n, True)
    rng = np.random.default_rng(2)
    roots, stiffness = rng.uniform(0.5, 2, rows.size), rng.uniform(0.5, 2, m)
    fits = RowFits(
        plain.indptr, plain.neighbour, plain.scale.astype(dtype), plain.targets.astype(dtype), True,
        roots.astype(dtype), stiffness.astype(dtype),
    )  # fmt: skip
    P, Q = (rng.normal(size=(size, r + 1)).astype(dtype) for size in (m, n))
    gram, penalty = Q[:, :-1].T @ Q[:, :-1], np.append(np.full(r, 0.7), 1.3)
    fits.refit(P, Q, penalty, 60, gram=gram, compiled=compiled)
    assert P.dtype == dtype
    for i in range(m):
        own = rows == i
        B = np.column_stack([plain.scale[own, None] * Q[cols[own], :-1], roots[own]])
        ridge = np.diag(penalty * np.append(np.full(r, stiffness[i]), 1.0))
        ridge[:r, :r] += gram
        right = plain.targets[own] - roots[own] * Q[cols[own], -1]
        best = np.linalg.solve(B.T @ B + ridge, B.T @ right)
        np.testing.assert_allclose(P[i], best, atol=1e-8 if dtype == np.float64 else 1e-3)


@OFFSETS
def test_float32_sweeps_reach_the_optimum(ridge, monkeypatch):
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    problem = completion(ridge=ridge)
    known = gm.minimize(problem, "staircase", tol=1e-9)
    monkeypatch.setattr("gramian.methods.alternating.MAX_FLOAT64_ENTRIES", 0)
    found = gm.minimize(problem, "alternating", tol=1e-4)
    assert found.factor.dtype == np.float64 and found.status is gm.Status.CONVERGED
    assert found.value == pytest.approx(known.value, rel=1e-4)
    assert found.certificate.lower_bound <= known.value * (1 + 1e-9)


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
def test_sweeps_converge_to_zero_without_underflow(lam):
    """Changes become so small that their products underflow, so that sweeps cannot be combined."""
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((30, 20)) < 0.5)
    problem = problems.nuclear_completion(rows, cols, np.zeros(rows.size), (30, 20), lam, ridge=5.0)
    sweeps = Sweeps(problem, rng.normal(size=(50, 8)), Settings(rank=8, tol=1e-3, rng=rng))
    assert np.abs(sweeps.take(200)).max() < 1e-100


def test_repair_by_steps_raises_the_smallest_eigenvalue(monkeypatch):
    """The dual vector is repaired without a Hessian if that is large."""
    problem = completion(60, 40, ridge=1.0)
    rng = np.random.default_rng(0)
    sweeps = Sweeps(problem, rng.normal(size=(100, 8)), Settings(rank=None, tol=1e-6, rng=rng))
    image = problem.objective.image(sweeps.take(8))
    monkeypatch.setattr(repair, "MAX_ENTRIES", 0)
    moved = repair.repaired(problem.objective, image, rng)

    def lowest(at):
        w = problem.objective.dual(at)
        return np.linalg.eigvalsh(problem.objective.dual_operator(w).dense())[0]

    assert lowest(image) < 0
    assert lowest(moved) > 0.5 * lowest(image)
    assert problem.objective.value(moved) <= problem.objective.value(image)


def test_sweeps_in_float32_reach_a_proved_gap_with_repaired_dual_vectors(monkeypatch):
    monkeypatch.setattr("gramian.solvers.auto.MIN_COMPLETION_ORDER", 10)
    monkeypatch.setattr("gramian.methods.alternating.MIN_FLOAT32_ENTRIES", 1)
    monkeypatch.setattr(repair, "MAX_ENTRIES", 0)
    monkeypatch.setattr("gramian.methods.loop.EXACT_ORDER", 1)
    steps, blocks = [], Certifier._bottom_by_block

    def counted(*given):
        steps.append(1)
        return blocks(*given)

    monkeypatch.setattr(Certifier, "_bottom_by_block", counted)
    problem = completion(60, 40, ridge=1.0)
    known = gm.minimize(problem, "staircase", tol=1e-9)
    found = gm.minimize(problem, tol=1e-4, random_state=0)
    assert steps and found.status is gm.Status.CONVERGED and found.certificate.proved
    assert found.value <= known.value * (1 + 1e-4)
    assert found.certificate.lower_bound <= known.value * (1 + 1e-9)
