"""Solvers × problems × known optimum."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.linalg import METHODS
from gramian.methods.base import Settings
from gramian.solvers.registry import SOLVERS
from tests.cases import BY_NAME, CASES, K0, N, digits_bound, digits_kta, psd, symmetric
from tests.slow import slow

REFERENCE = ("journee", "random-conic-pursuit")
"""They descend, and need not converge."""

SLOW = ("projected-gradient", "gd", "admm", "bis")
"""They reach the optimum, but the last digits of their gap take longer than the limit here."""


def accepts(name, problem):
    settings = Settings(rank=None, tol=1e-6, rng=np.random.default_rng(0))
    return SOLVERS[name].refusal(problem, settings) is None


LONG_RUNS = {
    *("admm-class-collapse", "admm-kta-frobenius", "admm-linear-separation"),
    *("admm-smoothed-hinge-triplets", "admm-squared-distances", "admm-squared-entries"),
    *("admm-squared-hinge-triplets", "admm-sum"),
    *("bis-kta-frobenius", "bis-smoothed-hinge-triplets", "bis-squared-distances"),
    "bis-squared-hinge-triplets",
    *("gd-class-collapse", "gd-kta-frobenius", "gd-smoothed-hinge-triplets"),
    *("gd-squared-distances", "gd-squared-entries", "gd-squared-hinge-triplets"),
}
"""Baselines that take more than half a second; each has other cases."""
TABLE = [
    pytest.param(name, case, id=f"{name}-{case}")
    for case in CASES
    for name in gm.solvers.available()
    if accepts(name, case.problem)
]
CONVERGING = [
    row._replace(marks=[pytest.mark.slow]) if row.id in LONG_RUNS else row
    for row in TABLE
    if row.values[0] not in REFERENCE
]
DESCENDING = [row for row in TABLE if row.values[0] in (*REFERENCE, "bilgo", "lro")]


def assert_feasible(problem, result):
    """LLᵀ is PSD by its form; what is left is that it is finite and has its trace."""
    assert result.factor.shape[0] == problem.order
    assert np.all(np.isfinite(result.factor))
    assert problem.value(result.factor) == pytest.approx(result.value, rel=1e-9, abs=1e-9)
    if problem.domain.trace is not None:
        assert np.trace(result.matrix()) == pytest.approx(problem.domain.trace)


@pytest.mark.parametrize(("name", "case"), CONVERGING)
def test_every_solver_reaches_the_optimum(name, case):
    limit = 300 if name == "projected-gradient" else None
    result = gm.minimize(case.problem, name, tol=1e-7, max_iter=limit)
    assert result.value == pytest.approx(case.optimum, rel=2e-7, abs=2e-7)
    if name not in SLOW:
        assert result.status in (gm.Status.CONVERGED, gm.Status.STALLED)
    assert_feasible(case.problem, result)


@pytest.mark.parametrize(("name", "case"), DESCENDING)
def test_values_decrease_monotonically(name, case):
    result = gm.minimize(case.problem, name, tol=1e-9, max_iter=40)
    values = result.history["value"]
    assert np.all(np.diff(values) <= 1e-12 * (1 + np.abs(values[:-1])))
    assert result.value == pytest.approx(values.min(), rel=1e-11)
    assert result.value < values[0] or len(values) == 1
    assert result.value >= case.optimum - 1e-8 * (1 + abs(case.optimum))
    assert_feasible(case.problem, result)


@pytest.mark.parametrize("name", ["squared-entries", slow("squared-hinge-triplets")])
def test_projected_gradient_stops_if_rounding_prevents_progress(name):
    """If rounding prevents progress, it stops with this status long before its iteration limit."""
    result = gm.minimize(BY_NAME[name].problem, "projected-gradient", tol=1e-9, max_iter=2000)
    assert result.status is not gm.Status.MAX_ITER


BILGO_OPTIONS = {
    "plain": {"local": None},
    "cg": {"local": "cg"},
    "lbfgs": {"local": "lbfgs"},
    "capped": {"cap_alpha": True},
    "often": {"local_every": 1, "local_iterations": 5},
    **{f"eigen-{method}": {"eigen": method, "eigen_tol": 1e-6} for method in METHODS},
}


@pytest.mark.parametrize("options", BILGO_OPTIONS.values(), ids=BILGO_OPTIONS)
@pytest.mark.parametrize(
    "name", ["quadratic-non-commuting", "squared-entries", "logistic-distances"]
)
def test_bilgo_reaches_the_optimum_with_every_option(name, options):
    case = BY_NAME[name]
    plain = options.get("local", "lbfgs") is None
    result = gm.minimize(case.problem, "bilgo", tol=1e-2 if plain else 1e-7, **options)
    assert result.status is gm.Status.CONVERGED
    gap = result.value - case.optimum
    assert -1e-8 <= gap <= (1e-2 if plain else 1e-6) * abs(case.optimum)


def test_cap_alpha_limits_alpha_to_one():
    result = gm.minimize(BY_NAME["sum"].problem, "bilgo", local=None, cap_alpha=True, max_iter=30)
    assert np.nanmax(result.history["alpha"]) <= 1.0
    assert np.nanmin(result.history["beta"]) >= 0.0


def test_journee_keeps_alpha_at_one():
    result = gm.minimize(BY_NAME["sum"].problem, "journee", max_iter=10)
    assert np.all(result.history["alpha"][1:] == 1.0)


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        ("bilgo", {"local": "newton"}, r"local must be None or one of \['cg', 'lbfgs'\]"),
        ("bilgo", {"eigen": "power"}, "unknown method 'power'"),
        ("random-conic-pursuit", {"chi": 0.0}, r"chi must lie in \(0, 1\]"),
    ],
)
def test_rejects_bad_options(solver, options, message):
    with pytest.raises(ValueError, match=message):
        gm.minimize(BY_NAME["top-eigen"].problem, solver, **options)


# --- rank limits ---------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("solver", ["auto", "bilgo", "lro", "lbfgs"])
def test_top_eigen_of_limited_rank_is_the_truncated_optimum(solver, rank):
    values = np.sort(np.linalg.eigvalsh(K0))[::-1]
    kept = np.maximum(values[:rank], 0.0)
    optimum = np.sum(K0 * K0) - np.sum(kept**2)
    problem = problems.top_eigen(K0)
    result = gm.minimize(problem, solver, rank=rank)
    assert result.rank <= rank
    assert result.status.converged
    assert result.value == pytest.approx(optimum, rel=1e-6)
    least = np.sum(np.minimum(values, 0.0) ** 2)
    assert result.certificate.lower_bound <= least + 1e-9
    if rank == 3:  # K0 has three positive eigenvalues: the limit costs nothing
        assert result.value == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("columns", [0, 1, 2, 5])
def test_large_order_is_solved_at_limited_rank_from_any_start(columns, monkeypatch):
    """Beyond LARGE all missing columns of a start are taken from the gradient at once."""
    monkeypatch.setattr("gramian.solvers.auto.EXPLICIT_ORDER", 5)
    values = np.sort(np.linalg.eigvalsh(K0))[::-1]
    start = np.random.default_rng(0).standard_normal((len(K0), columns))
    result = gm.minimize(problems.top_eigen(K0), rank=2, init=start if columns else None)
    assert result.rank <= 2
    assert result.value == pytest.approx(np.sum(K0 * K0) - np.sum(values[:2] ** 2), rel=1e-6)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_rank_limit_is_respected_or_rejected(name):
    problem = BY_NAME["squared-entries"].problem
    if name in ("eigenbasis", "whitened", "interior", "alternating"):
        with pytest.raises(ValueError, match="cannot solve"):
            gm.minimize(BY_NAME["top-eigen"].problem, name, rank=2)
        return
    try:
        result = gm.minimize(problem, name, rank=2, max_iter=30)
    except ValueError as refusal:
        assert "rank" in str(refusal)
    else:
        assert result.rank <= 2


def test_rank_limit_at_fixed_trace_is_respected_or_rejected():
    """The minimiser I/n of ‖M‖² over tr M = 1 has full rank."""
    objective = problems.quadratic(None, 1.0, np.zeros((5, 5))).objective
    problem = gm.Problem(objective, gm.Spectrahedron(1.0))
    try:
        result = gm.minimize(problem, rank=2, init=np.eye(5, 2), max_iter=30)
    except ValueError as refusal:
        assert "rank" in str(refusal)
    else:
        assert result.rank <= 2


@pytest.mark.slow
def test_digits_kta_of_rank_20_comes_within_1e_4_of_the_best_known():
    result = gm.minimize(digits_kta(), rank=20)
    assert result.rank <= 20
    assert result.value == pytest.approx(247.904275, abs=1e-4)
    assert result.certificate.lower_bound <= 247.7373706638145 + 1e-9


@pytest.mark.parametrize(
    ("make", "optimum", "rank"),
    [(digits_kta, 247.7373706638145, 64), (digits_bound, 188.915697258213, 9)],
)
def test_digits_reach_their_known_optimum(make, optimum, rank):
    result = gm.minimize(make(), tol=1e-9)
    assert result.status is gm.Status.CONVERGED
    assert result.value == pytest.approx(optimum, rel=1e-9)
    assert result.rank == rank


def test_rank_limited_run_with_zero_tolerance_stops_at_max_iter():
    """The unlimited run before the truncation must not continue until the gap is exactly 0."""
    problem = BY_NAME["quadratic-commuting"].problem
    result = gm.minimize(problem, rank=2, tol=0.0, max_iter=3, time_limit=2.0)
    assert result.status is not gm.Status.TIME_LIMIT


# --- starts --------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "bilgo", "lro", "lbfgs", "projected-gradient"])
def test_run_starts_at_the_warm_start(solver):
    case = BY_NAME["squared-entries"]
    first = gm.minimize(case.problem, "lbfgs", tol=1e-8)
    for init in (first, first.factor, first.factor.astype(np.float32), first.factor.tolist()):
        again = gm.minimize(case.problem, solver, init=init, max_iter=0)
        assert again.value <= first.value + 1e-6


def test_a_warm_start_never_makes_the_result_worse():
    case = BY_NAME["sum"]
    init = 0.3 * np.random.default_rng(0).standard_normal((N, 2))
    for solver in gm.solvers.available():
        if accepts(solver, case.problem):
            result = gm.minimize(case.problem, solver, init=init, max_iter=2)
            assert result.value <= case.problem.value(init)


def test_warm_start_is_truncated_to_the_rank_limit():
    init = np.random.default_rng(0).standard_normal((N, 5))
    result = gm.minimize(BY_NAME["top-eigen"].problem, "lbfgs", rank=2, init=init)
    assert result.rank <= 2


@pytest.mark.parametrize("solver", ["bilgo", "lro", "lbfgs", "random-conic-pursuit"])
def test_same_seed_gives_same_run(solver):
    problem = BY_NAME["squared-hinge-triplets"].problem
    runs = [
        gm.minimize(problem, solver, max_iter=8, random_state=seed)
        for seed in (5, 5, np.random.default_rng(5), 6)
    ]
    np.testing.assert_array_equal(runs[0].factor, runs[1].factor)
    np.testing.assert_array_equal(runs[0].factor, runs[2].factor)
    assert not np.array_equal(runs[0].factor, runs[3].factor) or solver == "bilgo"


def test_default_seed_is_fixed_and_random_state_is_accepted():
    problem = BY_NAME["squared-entries"].problem
    runs = [gm.minimize(problem, "lro", max_iter=3) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].factor, runs[1].factor)
    states = [
        gm.minimize(problem, "lro", max_iter=3, random_state=np.random.RandomState(4))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(states[0].factor, states[1].factor)


# --- the edges of what is allowed ----------------------------------------------------


ANY_QUADRATIC = [
    name
    for name in gm.solvers.available()
    if name not in ("whitened", "interior", "alternating", "central-path")
]
"""The solvers that take Gram quadratics: not those for graphs, blocks and losses of a map."""


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("solver", ANY_QUADRATIC)
def test_tiny_orders_work(solver, order):
    rng = np.random.default_rng(order)
    K = symmetric(rng, order) + np.eye(order)
    result = gm.minimize(problems.top_eigen(K), solver, max_iter=200)
    optimum = np.sum(np.minimum(np.linalg.eigvalsh(K), 0.0) ** 2)
    if solver not in REFERENCE:
        assert result.value == pytest.approx(optimum, abs=1e-6)
    assert result.value >= optimum - 1e-12


@pytest.mark.parametrize("solver", ANY_QUADRATIC)
def test_finds_optimum_at_zero(solver):
    """The minimiser of F(M) = ‖M‖² + 2⟨C, M⟩ with C ≻ 0 is M = 0."""
    problem = problems.quadratic(None, 1.0, psd(np.random.default_rng(0), 5) + np.eye(5))
    result = gm.minimize(problem, solver, max_iter=500)
    assert result.value == pytest.approx(0.0, abs=1e-6)
    assert result.status is not gm.Status.DIVERGED


@pytest.mark.parametrize("max_iter", [0, 1, 50])
def test_result_has_the_fixed_trace_even_if_zero_is_better(max_iter):
    """The minimum of ‖M‖² over tr M = 1 is 1/n; M = 0 has a smaller value but trace 0."""
    objective = problems.quadratic(None, 1.0, np.zeros((4, 4))).objective
    problem = gm.Problem(objective, gm.Spectrahedron(1.0))
    result = gm.minimize(problem, tol=0.0, max_iter=max_iter)
    assert np.trace(result.matrix()) == pytest.approx(1.0)
    assert result.value == pytest.approx(0.25, abs=1.0 if max_iter < 50 else 1e-6)


@pytest.mark.parametrize("zero", ["A", "B"])
def test_zero_linear_term_equals_none(zero):
    rng = np.random.default_rng(0)
    parts = {"A": psd(rng, 4) + np.eye(4), "B": psd(rng, 4) + np.eye(4), "C": symmetric(rng, 4)}
    none = gm.minimize(problems.quadratic(**{**parts, zero: None}))
    zeros = gm.minimize(problems.quadratic(**{**parts, zero: np.zeros((4, 4))}))
    assert zeros.value == pytest.approx(none.value, rel=1e-6)
