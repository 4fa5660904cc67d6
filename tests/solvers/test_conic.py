"""Three formulations × two backends, against each other and against known optima."""

import os
import sys
import time

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.losses import Squared
from gramian.maps import Congruence, Entries, PairDistances
from gramian.methods import conic, conic_call
from gramian.methods.base import Settings
from gramian.objectives import Composite
from gramian.result import Status
from tests.cases import (
    A2,
    B2,
    BY_NAME,
    C0,
    CASES,
    EDGES,
    LENGTHS,
    SPARSE_EDGES,
    N,
    distances,
    gram_terms,
    psd,
)
from tests.conic import Term, conic_minimum

pytest.importorskip("clarabel")
pytest.importorskip("scs")

FORMULATIONS = {"sqlp": conic.sqlp, "scsdp": conic.scsdp, "conic": conic.conic}
BACKENDS = ("clarabel", "scs")
EVERY = [
    pytest.param(name, backend, id=f"{name}-{backend}")
    for name in FORMULATIONS
    for backend in BACKENDS
]


def settings(rank=None, seconds=np.inf):
    return Settings(rank, 1e-7, np.random.default_rng(0), time.perf_counter() + seconds)


def steps(name, problem, told=None, **options):
    """The one step of a formulation, or none, and the status it ends with."""
    run = FORMULATIONS[name](problem, np.zeros((problem.order, 0)), told or settings(), **options)
    found = []
    while True:
        try:
            found.append(next(run))
        except StopIteration as done:
            return found, done.value


def solve(name, problem, **options):
    found, status = steps(name, problem, **options)
    assert len(found) == 1
    assert status is Status.STALLED
    return found[0]


QUADRATIC = [case for case in CASES if conic.refusal(case.problem, settings()) is None]


def test_all_quadratic_cases_are_tested():
    assert len(QUADRATIC) == 9


@pytest.mark.parametrize(("name", "backend"), EVERY)
@pytest.mark.parametrize("case", QUADRATIC, ids=str)
def test_the_optimum_is_found(case, name, backend):
    step = solve(name, case.problem, backend=backend)
    assert step.value == pytest.approx(case.optimum, rel=1e-9, abs=1e-9)
    assert step.value == pytest.approx(case.problem.value(step.factor), rel=1e-12)
    assert step.certificate.relative_gap <= 1e-5
    assert step.certificate.lower_bound <= case.optimum + 1e-9 * (1 + abs(case.optimum))
    assert step.trace["conic_iterations"] > 0
    assert step.trace["conic_seconds"] >= 0


@pytest.mark.parametrize(("name", "backend"), EVERY)
@pytest.mark.parametrize("accuracy", [1e-4, 1e-8])
def test_accuracy_is_passed_on(name, backend, accuracy):
    case = BY_NAME["squared-entries"]
    step = solve(name, case.problem, backend=backend, accuracy=accuracy)
    exact = solve(name, case.problem, backend=backend)
    assert step.value == pytest.approx(case.optimum, rel=100 * accuracy)
    assert step.trace["conic_iterations"] <= exact.trace["conic_iterations"]


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_the_eigenbasis_split_agrees(name, backend):
    """An alignment of 15 features whose cone constraint binds."""
    rng = np.random.default_rng(2)
    problem = problems.kta(
        rng.standard_normal((40, 15)), rng.integers(0, 3, 40), 1e-2, regularizer="frobenius"
    )
    split = gm.minimize(problem, "eigenbasis", tol=1e-11)
    step = solve(name, problem, backend=backend)
    assert step.value == pytest.approx(split.value, rel=1e-9)
    assert step.rank < 15


@pytest.mark.parametrize(("name", "backend"), EVERY)
@pytest.mark.parametrize("trace", [0.01, 1.0, 100.0])
def test_a_fixed_trace_is_kept(name, backend, trace):
    objective = Composite(PairDistances(EDGES, N), Squared(LENGTHS), 0.2)
    problem = gm.Problem(objective, gm.Spectrahedron(trace))
    optimum = conic_minimum(
        N, [Term("squared", distances(EDGES), LENGTHS)], 0.2 * np.eye(N), trace=trace
    )
    step = solve(name, problem, backend=backend)
    assert np.sum(step.factor**2) == pytest.approx(trace, rel=1e-12)
    assert step.value == pytest.approx(optimum, rel=1e-7)
    assert step.certificate.gap <= 1e-3 * abs(optimum)


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_a_gram_quadratic_of_fixed_trace(name, backend):
    problem = gm.Problem(problems.quadratic(A2, B2, C0).objective, gm.Spectrahedron(2.0))
    optimum = conic_minimum(N, gram_terms(A2, B2), 2 * C0, trace=2.0)
    assert solve(name, problem, backend=backend).value == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_linear_objectives_over_a_slice_give_the_least_eigenvalue(name, backend):
    problem = gm.Problem(problems.quadratic(None, None, C0).objective, gm.Spectrahedron(3.0))
    step = solve(name, problem, backend=backend)
    assert step.value == pytest.approx(6.0 * np.linalg.eigvalsh(C0)[0], rel=1e-7)
    assert step.rank == 1


@pytest.mark.parametrize(("name", "backend"), EVERY)
@pytest.mark.parametrize(("target", "optimum"), [(2.0, 0.0), (-3.0, 9.0)])
def test_order_one(name, backend, target, optimum):
    problem = gm.Problem(Composite(Entries([[0, 0]], 1), Squared([target])))
    assert solve(name, problem, backend=backend).value == pytest.approx(optimum, abs=1e-8)


@pytest.mark.parametrize(("name", "backend"), EVERY)
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("points", [5, 12])
def test_fewer_and_more_rows_than_the_triangle(name, backend, compress, points):
    """10 or 66 rows for the 10 numbers of a matrix of order 4."""
    rng = np.random.default_rng(points)
    X = rng.standard_normal((points, 4))
    pairs = np.array([(i, j) for i in range(points) for j in range(i)])
    lengths = rng.uniform(0.5, 2.0, len(pairs))
    objective = Composite(Congruence(PairDistances(pairs, points), X), Squared(lengths), 0.1)
    optimum = conic_minimum(
        4,
        [Term("squared", lambda M: distances(pairs)(X @ M @ X.T), lengths)],
        0.1 * np.eye(4),
    )
    step = solve(name, gm.Problem(objective), backend=backend, compress=compress)
    assert step.value == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("decompose", [True, False])
def test_the_schur_complement_whole_or_in_parts(decompose):
    case = BY_NAME["quadratic-non-commuting"]
    step = solve("scsdp", case.problem, decompose=decompose)
    assert step.value == pytest.approx(case.optimum, rel=1e-8)


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_badly_scaled_problems_are_scaled(name, backend):
    """Congruence by diag(1, …, 1e4) and a factor 1e8 change the numbers, not the optimum."""
    rng = np.random.default_rng(1)
    X, stretch = rng.standard_normal((15, 5)), np.logspace(0, 4, 5)
    pairs = np.array([(i, j) for i in range(15) for j in range(i)])
    lengths = rng.uniform(0.5, 2.0, len(pairs))
    plain, wild = (
        gm.Problem(
            Composite(Congruence(PairDistances(pairs, 15), data), Squared(lengths, weight=w))
        )
        for data, w in ((X, 1.0), (X * stretch, 1e8))
    )
    expected = solve("conic", plain).value
    assert solve(name, wild, backend=backend).value == pytest.approx(1e8 * expected, rel=1e-7)


# --- endings -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_unbounded_problem_is_reported(name, backend):
    """−tr M with distances alone: every row of L may be shifted for nothing."""
    objective = Composite(PairDistances(SPARSE_EDGES, N), Squared(1.0), -1.0)
    found, status = steps(name, gm.Problem(objective), backend=backend)
    assert status is Status.UNBOUNDED
    assert found == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_deadline_is_the_time_limit_of_the_backend(backend, monkeypatch):
    limits = []
    monkeypatch.setattr(
        "gramian.methods.conic_backends.call", lambda name, data, seconds: limits.append(seconds)
    )
    steps("sqlp", BY_NAME["top-eigen"].problem, settings(seconds=50.0), backend=backend)
    assert len(limits) == 1 and 0 < limits[0] <= 50.0


def test_an_optimum_at_zero_has_no_columns():
    problem = problems.quadratic(None, 1.0, psd(np.random.default_rng(0), 5) + np.eye(5))
    for name in FORMULATIONS:
        step = solve(name, problem)
        assert step.value == pytest.approx(0.0, abs=1e-12)
        assert step.rank == 0


# --- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize("refuse", [conic.refusal, conic.schur_refusal])
@pytest.mark.parametrize("case", ["logistic-distances", "squared-hinge-triplets", "sum"])
def test_rejects_losses_other_than_squared(refuse, case):
    assert "not squared" in refuse(BY_NAME[case].problem, settings())


@pytest.mark.parametrize("refuse", [conic.refusal, conic.schur_refusal])
def test_rejects_large_orders_and_rank_limits(refuse):
    n = conic.MAX_ORDER + 1
    large = problems.top_eigen(np.eye(n))
    assert str(n) in refuse(large, settings())
    small = BY_NAME["top-eigen"].problem
    assert "rank" in refuse(small, settings(rank=2))
    assert refuse(small, settings(rank=N)) is None


def test_only_the_schur_complement_rejects_many_rows():
    problem = problems.top_eigen(np.eye(40))
    assert conic.refusal(problem, settings()) is None
    assert "cone of order 821" in conic.schur_refusal(problem, settings())


def test_clarabel_states_its_largest_order():
    problem = problems.top_eigen(np.eye(conic.MAX_CLARABEL_ORDER + 1))
    with pytest.raises(ValueError, match="use backend='scs'"):
        steps("conic", problem)


@pytest.mark.parametrize("backend", BACKENDS)
def test_missing_backend_error_has_install_command(monkeypatch, backend):
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(ImportError, match=r"pip install 'gramian\[conic\]'"):
        steps("sqlp", BY_NAME["top-eigen"].problem, backend=backend)


def test_error_names_unknown_backend():
    with pytest.raises(ValueError, match="backend must be one of clarabel, scs, got 'mosek'"):
        steps("sqlp", BY_NAME["top-eigen"].problem, backend="mosek")


# --- limits of time ------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_a_call_with_a_limit_gives_the_answer_of_one_without(backend):
    pytest.importorskip(backend)
    case = BY_NAME["squared-entries"]
    free = gm.minimize(case.problem, "conic", backend=backend)
    limited = gm.minimize(case.problem, "conic", backend=backend, time_limit=60.0)
    assert limited.value == pytest.approx(free.value, rel=1e-9)


@pytest.mark.parametrize("n", [48, 90])
def test_time_limit_ends_a_long_call(n):
    """One iteration of Clarabel, or the rows of n = 90, take tens of seconds here."""
    pytest.importorskip("clarabel")
    A = np.random.default_rng(0).normal(size=(n, n))
    problem = gm.problems.quadratic(A @ A.T, np.eye(n), A + A.T)
    before = os.times()
    result = gm.minimize(problem, "conic", time_limit=1.0)
    assert result.status is gm.Status.TIME_LIMIT
    assert sum(os.times()[:4]) - sum(before[:4]) < 15.0  # of the processor, whatever its load
    assert result.certificate.value == pytest.approx(problem.value(result.factor))


def test_reports_error_of_a_solver_process():
    with pytest.raises(RuntimeError, match=r"clarabel failed: .*KeyError"):
        conic_call.call("clarabel", {}, 30.0)


def test_failure_of_a_solver_gives_status_stalled(monkeypatch):
    """Clarabel's panics are no `Exception`: they would go through every handler of a user."""

    class PanicException(BaseException):  # the name that Rust's bindings give it
        pass

    def broken(*arguments):
        raise PanicException("Eigval error: Eigen(1)")

    clarabel = pytest.importorskip("clarabel")
    monkeypatch.setattr(clarabel, "DefaultSolver", broken)
    result = gm.minimize(BY_NAME["squared-distances"].problem, "conic")
    assert result.status is Status.STALLED
    assert np.isfinite(result.value)
