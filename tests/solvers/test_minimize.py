"""The contract of `minimize`: limits, interruptions, failures, histories and refusals."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import gramian as gm
from gramian import problems
from gramian.common import clock
from gramian.losses import Logistic, SmoothedHinge, Squared, SquaredHinge
from gramian.maps import Entries, PairDistances
from gramian.objectives import Composite, Sum
from gramian.result import History, Status
from tests.cases import BY_NAME, EDGES, LABELS, PAIRS, TARGET, N, X, psd, symmetric

PROBLEM = BY_NAME["squared-entries"].problem
CONE_SOLVERS = ["auto", "bilgo", "lro", "lbfgs", "projected-gradient", "journee"]
EVERY_CONE_SOLVER = pytest.mark.parametrize("solver", CONE_SOLVERS)


class Interrupting(Squared):
    """A squared loss that is interrupted once, at the `left`-th value or gradient."""

    def __init__(self, left, what):
        super().__init__(TARGET)
        self.left, self.what = left, what

    def value(self, z):
        return self._count("value", super().value(z))

    def gradient(self, z):
        return self._count("gradient", super().gradient(z))

    def _count(self, what, result):
        if what == self.what:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return result


class NaNBeyond(Squared):
    """A squared loss whose value or gradient is NaN where an entry of z exceeds `reach`."""

    def __init__(self, reach, what):
        super().__init__(TARGET)
        self.reach, self.what = reach, what

    def value(self, z):
        return super().value(z) * self._fault("value", z)

    def gradient(self, z):
        return super().gradient(z) * self._fault("gradient", z)

    def _fault(self, what, z):
        return np.nan if what == self.what and np.max(np.abs(z)) > self.reach else 1.0


def over_entries(loss):
    return gm.Problem(Composite(Entries(PAIRS, N), loss, 0.3))


VALUE_AND_GRADIENT = pytest.mark.parametrize("what", ["value", "gradient"])


def assert_usable(result):
    assert np.isfinite(result.value)
    assert np.all(np.isfinite(result.factor))
    assert result.value <= PROBLEM.value(np.zeros((N, 0))) * 2 + 1e-9  # weight 1 here, ½ there
    assert result.certificate is not None


# --- limits --------------------------------------------------------------------------


@EVERY_CONE_SOLVER
@pytest.mark.parametrize("max_iter", [0, 1, 4])
def test_iteration_limit_is_kept(solver, max_iter):
    result = gm.minimize(PROBLEM, solver, tol=0.0, max_iter=max_iter)
    assert len(result.history) <= max_iter + 1
    assert result.iterations == len(result.history) - 1
    assert result.value == pytest.approx(PROBLEM.value(result.factor))
    if len(result.history) == max_iter + 1:
        assert result.status is Status.MAX_ITER


@EVERY_CONE_SOLVER
def test_time_limit_is_kept(solver, ticking):
    """At most 50 readings of the clock, and those of the last certificate."""
    ticking(1e-3)
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 80, (400, 2))
    problem = gm.Problem(Composite(Entries(edges, 80), Squared(rng.standard_normal(400)), 1e-6))
    result = gm.minimize(problem, solver, tol=0.0, time_limit=0.05)
    assert result.status in (Status.TIME_LIMIT, Status.STALLED)
    assert result.seconds < 0.1
    assert np.isfinite(result.value)


def test_best_point_is_returned_not_the_last():
    result = gm.minimize(PROBLEM, "projected-gradient", tol=0.0, max_iter=60)
    assert result.value == pytest.approx(result.history["value"].min(), rel=1e-11)


# --- callbacks and interruption ------------------------------------------------------


@EVERY_CONE_SOLVER
def test_a_callback_sees_every_iteration_and_may_stop(solver):
    seen = []

    def callback(state):
        seen.append(state)
        return state.iteration == 1

    result = gm.minimize(PROBLEM, solver, tol=0.0, callback=callback)
    assert result.status is Status.STOPPED
    assert [state.iteration for state in seen] == [0, 1]
    for state, record in zip(seen, result.history, strict=True):
        assert state.record == record
        assert state.value == record["value"] == pytest.approx(PROBLEM.value(state.factor))


@pytest.mark.parametrize(("answer", "stops"), [(np.True_, True), (None, False), ("no", False)])
def test_only_true_stops_and_numpy_true_is_true(answer, stops):
    result = gm.minimize(PROBLEM, "lro", tol=0.0, max_iter=3, callback=lambda state: answer)
    assert (result.status is Status.STOPPED) == stops


@EVERY_CONE_SOLVER
def test_an_interrupt_in_a_callback_returns_the_best_point(solver):
    def callback(state):
        if state.iteration == 1:
            raise KeyboardInterrupt

    result = gm.minimize(PROBLEM, solver, tol=0.0, callback=callback)
    assert result.status is Status.INTERRUPTED
    assert len(result.history) == 2
    assert_usable(result)


@EVERY_CONE_SOLVER
@VALUE_AND_GRADIENT
def test_an_interrupt_in_the_objective_returns_the_best_point(solver, what):
    result = gm.minimize(over_entries(Interrupting(9, what)), solver, tol=0.0)
    assert result.status is Status.INTERRUPTED
    assert_usable(result)


@EVERY_CONE_SOLVER
@VALUE_AND_GRADIENT
@pytest.mark.parametrize("reach", [0.1, 0.9])
def test_an_objective_that_turns_nan_ends_with_a_finite_best(solver, what, reach):
    """The optimum has entries above 1; a search may also stay where F is defined, and stall."""
    result = gm.minimize(over_entries(NaNBeyond(reach, what)), solver, tol=0.0, max_iter=200)
    assert result.status in (Status.DIVERGED, Status.STALLED)
    assert_usable(result)


def test_a_run_that_fails_at_once_has_no_iterations():
    result = gm.minimize(over_entries(Interrupting(3, "value")), "lbfgs")
    assert result.status is Status.INTERRUPTED
    assert len(result.history) == 0
    assert result.iterations == 0


@EVERY_CONE_SOLVER
def test_a_gradient_that_is_nan_from_the_start_ends_as_diverged(solver):
    result = gm.minimize(over_entries(NaNBeyond(-1.0, "gradient")), solver)
    assert result.status is Status.DIVERGED
    assert_usable(result)


FALLING = {
    "linear": lambda: problems.quadratic(None, None, -np.eye(4)),
    "flat direction": lambda: problems.quadratic(
        np.diag([1.0, 1.0, 0.0, 0.0]), None, np.diag([1.0, -1.0, 1.0, -1.0])
    ),
    "separation by trace": lambda: problems.linear_separation(X, LABELS, 10.0, regularizer="trace"),
    "squared": lambda: gm.Problem(Composite(Entries([[0, 1]], 4), Squared(1.0), -1.0)),
    "squared hinge": lambda: gm.Problem(Composite(PairDistances(EDGES, N), SquaredHinge(), -1.0)),
    "smoothed hinge": lambda: gm.Problem(Composite(PairDistances(EDGES, N), SmoothedHinge(), -1.0)),
    "logistic": lambda: gm.Problem(Composite(PairDistances(EDGES, N), Logistic(), -1.0)),
}


@pytest.mark.parametrize("solver", ["auto", "bilgo"])
@pytest.mark.parametrize("make", FALLING.values(), ids=FALLING)
def test_an_objective_without_a_minimum_is_said_to_have_none(make, solver):
    result = gm.minimize(make(), solver, time_limit=1.0)
    assert result.status is Status.UNBOUNDED
    assert np.isfinite(result.value)


@pytest.mark.parametrize("solver", ["lro", "lbfgs", "projected-gradient"])
@pytest.mark.parametrize("name", FALLING)
def test_an_objective_without_a_minimum_never_looks_solved(name, solver):
    """Local methods need not prove it, but must neither fail nor claim that they are done."""
    result = gm.minimize(FALLING[name](), solver, time_limit=0.5)
    running = (Status.UNBOUNDED, Status.DIVERGED, Status.MAX_ITER, Status.TIME_LIMIT)
    assert result.status in running
    assert np.isfinite(result.value)


# --- what is printed and recorded ----------------------------------------------------


def test_runs_are_silent(capfd):
    for solver in CONE_SOLVERS:
        gm.minimize(PROBLEM, solver, max_iter=5)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_value_rank_and_gap(capfd):
    pytest.importorskip("tqdm")
    result = gm.minimize(PROBLEM, "bilgo", max_iter=6, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "problem by bilgo" in err or f"{PROBLEM.name} by bilgo" in err
    assert "F=" in err and "rank=" in err and "gap=" in err
    assert result.status is Status.CONVERGED


def test_progress_without_tqdm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"install gramian\[progress\]"):
        gm.minimize(PROBLEM, progress=True)


@pytest.mark.parametrize(
    ("solver", "columns"),
    [
        ("bilgo", {"gap", "lambda_min", "lambda_max", "slack", "alpha", "beta"}),
        ("journee", {"gap", "lambda_min", "lambda_max", "slack", "alpha", "beta"}),
        ("lro", {"gap", "lambda_min", "gradient_norm"}),
        ("lbfgs", {"gap", "lambda_min"}),
        ("projected-gradient", {"gap", "lambda_min"}),
    ],
)
def test_history_has_the_columns_of_its_solver(solver, columns):
    history = gm.minimize(PROBLEM, solver, tol=1e-9, max_iter=10).history
    assert {"iteration", "time", "value", "rank", *columns} == set(history.columns)
    np.testing.assert_array_equal(history["iteration"], np.arange(len(history)))
    assert np.all(np.diff(history["time"]) >= 0)
    assert np.all(history["rank"] <= N)


def test_history_of_the_split_tells_penalty_and_rank():
    result = gm.minimize(BY_NAME["quadratic-commuting"].problem, "eigenbasis")
    assert {"penalty", "rank", "gap"} <= set(result.history.columns)
    assert result.history["rank"][-1] == result.rank


def test_history_fills_gaps_and_names_its_columns():
    history = History()
    history.append({"value": 1.0, "gap": None})
    history.append({"value": 0.5, "gap": 0.1})
    assert history.columns == ["value", "gap"]
    np.testing.assert_array_equal(history["gap"], [np.nan, 0.1])
    assert len(history) == 2
    assert list(history)[1] == {"value": 0.5, "gap": 0.1}
    with pytest.raises(KeyError, match=r"no column 'rank' in this history; it has \['value'"):
        history["rank"]


def test_result_tells_its_story():
    result = gm.minimize(PROBLEM, "bilgo")
    text = str(result)
    assert result.status.sentence in text
    assert f"rank {result.rank}" in text and "by bilgo" in text
    assert "above the optimum" in text
    summary = result.summary()
    assert summary["status"] == "CONVERGED" and summary["solver"] == "bilgo"
    assert summary["value"] == result.value == result.certificate.value
    assert summary["rank"] == result.rank == result.factor.shape[1]
    assert summary["iterations"] == len(result.history) - 1
    np.testing.assert_allclose(result.matrix(), result.factor @ result.factor.T)


def test_every_status_has_a_sentence_of_its_own():
    sentences = [status.sentence for status in Status]
    assert len(set(sentences)) == len(Status)
    assert all(len(sentence.split()) > 5 for sentence in sentences)
    done = {Status.CONVERGED, Status.LOCAL, Status.SETTLED}
    assert {status for status in Status if status.converged} == done


def test_problem_prints_its_formula_and_domain():
    assert str(problems.top_eigen(np.eye(3))) == (
        "top_eigen: min ‖M − K‖²  subject to M ⪰ 0  (order 3)"
    )
    links = np.array([[0, 1]])
    assert problems.npkl(np.eye(3), links, links[:0], 1.0).displayed.endswith("subject to Z ⪰ 0")
    whitened = problems.dml_eig(np.eye(3), links, np.array([[1, 2]]), 0.1, ridge=1.0)
    assert whitened.displayed.endswith("subject to S ⪰ 0, tr S = 1")


# --- refusals ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "solver", "reason"),
    [
        ("soft-min-spectrahedron", "bilgo", "works over the whole cone"),
        ("soft-min-spectrahedron", "eigenbasis", "solves tr"),
        ("squared-entries", "eigenbasis", r"solves tr\(\(AM\)² \+ BM² \+ 2CM\) only"),
        ("quadratic-non-commuting", "eigenbasis", "A and B do not commute"),
    ],
)
def test_a_refusal_gives_the_reason_and_names_solvers_that_work(problem, solver, reason):
    with pytest.raises(ValueError, match=reason) as refusal:
        gm.minimize(BY_NAME[problem].problem, solver)
    assert f"solver {solver!r} cannot take" in str(refusal.value)
    able = str(refusal.value).split("These can: ")[1].split(", ")
    assert "auto" in able and "projected-gradient" in able and solver not in able
    for name in able:
        gm.minimize(BY_NAME[problem].problem, name, max_iter=1)


def test_a_refusal_comes_before_the_first_evaluation():
    problem = gm.Problem(over_entries(Interrupting(1, "value")).objective, gm.Spectrahedron(1.0))
    with pytest.raises(ValueError, match="cannot take"):
        gm.minimize(problem, "bilgo")


BAD_CALLS = {
    "rank 0": ({"rank": 0}, ValueError, "between 1 and the order of M, 6, got 0"),
    "rank above n": ({"rank": 7}, ValueError, "between 1 and the order of M, 6, got 7"),
    "negative rank": ({"rank": -1}, ValueError, "between 1 and"),
    "float rank": ({"rank": 2.0}, ValueError, "rank must be a whole number, got 2.0"),
    "boolean rank": ({"rank": True}, ValueError, "rank must be a whole number"),
    "text rank": ({"rank": "2"}, ValueError, "rank must be a whole number"),
    "negative tol": ({"tol": -1e-6}, ValueError, r"tol must be a number in \[0, 1\)"),
    "tol of one": ({"tol": 1.0}, ValueError, "tol must be"),
    "NaN tol": ({"tol": np.nan}, ValueError, "tol must be"),
    "text tol": ({"tol": "small"}, ValueError, "tol must be"),
    "negative max_iter": ({"max_iter": -1}, ValueError, "max_iter must be a whole number"),
    "float max_iter": ({"max_iter": 1.5}, ValueError, "max_iter must be a whole number"),
    "zero time": ({"time_limit": 0}, ValueError, "time_limit must be"),
    "negative time": ({"time_limit": -1.0}, ValueError, "time_limit must be"),
    "NaN time": ({"time_limit": np.nan}, ValueError, "time_limit must be"),
    "text time": ({"time_limit": "1s"}, ValueError, "time_limit must be"),
    "capitals": ({"solver": "BILGO"}, ValueError, "did you mean 'bilgo'"),
    "longer option": ({"tolerance": 1e-3}, TypeError, r"did you mean tol\?"),
    "unknown solver": ({"solver": "bligo"}, ValueError, "did you mean 'bilgo'"),
    "solver in capitals": ({"solver": "LBFGS"}, ValueError, "available: auto, staircase, whitened"),
    "solver of a wrong type": ({"solver": 3}, ValueError, "unknown solver 3"),
    "unknown option": (
        {"solver": "bilgo", "locl": None},
        TypeError,
        r"has no option locl; did you mean local\?",
    ),
    "option of another": ({"local": None}, TypeError, "'auto' has no option local"),
    "init of wrong rows": ({"init": np.ones((5, 2))}, ValueError, r"\(6, r\), got \(5, 2\)"),
    "flat init": ({"init": np.ones(6)}, ValueError, r"shape \(6, r\), got \(6,\)"),
    "NaN init": ({"init": np.full((6, 1), np.nan)}, ValueError, "factor contains NaN"),
    "complex init": ({"init": np.ones((6, 1)) * 1j}, ValueError, "real numbers"),
    "object init": ({"init": np.ones((6, 1)).astype(object)}, ValueError, "real numbers"),
}


@pytest.mark.parametrize(("options", "error", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_calls_are_refused_with_a_telling_message(options, error, message):
    with pytest.raises(error, match=message):
        gm.minimize(PROBLEM, **options)


@pytest.mark.parametrize("problem", [PROBLEM.objective, np.eye(3), None, "kta"])
def test_what_is_not_a_problem_is_refused(problem):
    with pytest.raises(
        TypeError, match=f"expected a gramian Problem, got {type(problem).__name__}"
    ):
        gm.minimize(problem)


def test_a_count_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="local_every"):
        gm.minimize(PROBLEM, "bilgo", local_every=0)


ROWS = np.random.default_rng(0).standard_normal((6, 3))
TWO = np.array([0, 0, 0, 1, 1, 1])
BAD_SAMPLES = {
    "NaN": (np.where(ROWS[0, 0] == ROWS, np.nan, ROWS), TWO, "NaN"),
    "infinity": (np.where(ROWS[0, 0] == ROWS, np.inf, ROWS), TWO, "infinity"),
    "sparse NaN": (sp.csr_array(np.where(ROWS[0, 0] == ROWS, np.nan, ROWS)), TWO, "NaN"),
    "one class": (ROWS, np.zeros(6), "only one class"),
    "single sample": (ROWS[:1], TWO[:1], "minimum of 2"),
    "mismatched": (ROWS, TWO[:5], "inconsistent numbers of samples"),
    "two columns of labels": (ROWS, np.column_stack([TWO, TWO]), "one label per sample"),
    "NaN label": (ROWS, np.array([0, 0, 0, 1, 1, np.nan]), "NaN"),
    "complex": (ROWS * 1j, TWO, "[Cc]omplex"),
    "words": (np.full((6, 3), "x", dtype=object), TWO, "could not convert|real"),
    "flat": (ROWS[:, 0], TWO, "2D array"),
    "no samples": (ROWS[:0], TWO[:0], "0 sample|minimum of 2"),
    "no features": (ROWS[:, :0], TWO, "0 feature"),
}


@pytest.mark.parametrize("make", [problems.kta, problems.linear_separation])
@pytest.mark.parametrize(("rows", "labels", "message"), BAD_SAMPLES.values(), ids=BAD_SAMPLES)
def test_bad_samples_are_refused(make, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        make(rows, labels, 1.0)


@pytest.mark.parametrize("make", [problems.kta, problems.linear_separation])
@pytest.mark.parametrize("lam", [-1.0, np.nan, np.inf, "auto", None, [1.0]])
def test_a_weight_that_is_not_a_number_of_at_least_0_is_refused(make, lam):
    with pytest.raises(ValueError, match="lam must be a finite number of at least 0"):
        make(ROWS, TWO, lam)


@pytest.mark.parametrize("make", [problems.kta, problems.linear_separation])
def test_an_unknown_regularizer_is_refused(make):
    with pytest.raises(ValueError, match="'frobenius', 'identity', 'trace'"):
        make(ROWS, TWO, 1.0, regularizer="ridge")


EYE = np.eye(3)
BAD_QUADRATICS = {
    "A not symmetric": ((np.triu(np.ones((3, 3))), 1.0, EYE), "A must be symmetric"),
    "C not symmetric": ((EYE, 1.0, np.triu(np.ones((3, 3)))), "C must be symmetric"),
    "A not square": ((np.ones((3, 2)), 1.0, EYE), "A must be a square matrix"),
    "B of another order": ((EYE, np.eye(2), EYE), "B has order 2, but the problem has order 3"),
    "C of another order": ((EYE, 1.0, np.eye(4)), "C has order 4, but the problem has order 3"),
    "operator not square": ((EYE, aslinearoperator(np.ones((3, 2))), EYE), "B must be a square"),
    "A not PSD": ((-EYE, 1.0, EYE), "A must be positive semidefinite"),
    "B not PSD": ((EYE, -1.0, EYE), "B must be positive semidefinite"),
    "NaN": ((EYE * np.nan, 1.0, EYE), "A contains NaN"),
    "infinite": ((EYE, np.inf, EYE), "B is inf"),
    "complex": ((EYE, 1.0, 1j * EYE), "C must hold real numbers"),
    "complex number": ((EYE, 1j, EYE), "B"),
    "object": ((EYE.astype(object), 1.0, EYE), "A must hold real numbers"),
    "text": ((EYE, "one", EYE), "B"),
    "empty": ((np.zeros((0, 0)), 1.0, None), "A is empty"),
    "no matrix": ((1.0, None, 2.0), "at least one of A, B, C must be a matrix"),
}


@pytest.mark.parametrize(("parts", "message"), BAD_QUADRATICS.values(), ids=BAD_QUADRATICS)
def test_bad_matrices_are_refused_by_name(parts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        problems.quadratic(*parts)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.triu(np.ones((3, 3))), "K must be symmetric"),
        (np.ones((3, 2)), "K must be a square matrix"),
        (np.zeros((0, 0)), "K is empty"),
        (np.full((2, 2), np.nan), "K contains NaN"),
        (1j * np.eye(2), "K must hold real numbers"),
        (2.0, "K"),
        (None, "K"),
    ],
)
def test_bad_kernels_are_refused_by_name(K, message):
    with pytest.raises(ValueError, match=message):
        problems.top_eigen(K)


def test_sum_over_a_slice_goes_to_the_solver_that_keeps_the_trace():
    rng = np.random.default_rng(0)
    quadratic = problems.quadratic(psd(rng, N), 1.0, symmetric(rng, N)).objective
    problem = gm.Problem(Sum([quadratic, PROBLEM.objective]), gm.Spectrahedron(2.0))
    result = gm.minimize(problem, tol=1e-6)
    assert result.status is Status.CONVERGED
    assert np.trace(result.matrix()) == pytest.approx(2.0)


ROUTES = {
    "kta-identity": ("eigenbasis",),
    "quadratic-non-commuting": ("staircase",),
    "squared-distances": ("primal-dual",),
}


@pytest.mark.parametrize("name", ROUTES)
def test_a_result_says_which_methods_ran(name):
    result = gm.minimize(BY_NAME[name].problem)
    assert result.route == ROUTES[name]
    assert f"by auto ({ROUTES[name][0]})" in str(result)
    assert result.summary()["route"] == ROUTES[name][0]


def test_a_solver_asked_for_by_name_is_its_own_route():
    result = gm.minimize(BY_NAME["squared-distances"].problem, "lro")
    assert result.route == ("lro",) and "by lro:" in str(result)
    assert gm.minimize(BY_NAME["squared-distances"].problem, rank=2).route == ("bilgo",)


def test_a_method_that_hands_over_is_named_before_the_next():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    i, j = np.triu_indices(40, 1)
    near = np.linalg.norm(X[i] - X[j], axis=1) < 2.0
    edges = np.column_stack([i, j])[near]
    lengths = np.sum((X[edges[:, 0]] - X[edges[:, 1]]) ** 2, axis=1)
    result = gm.minimize(gm.problems.mvu(edges, lengths, 40, 1.0), tol=1e-11, max_iter=60)
    assert result.route[0] == "interior" and set(result.route[1:]) <= {"whitened", "staircase"}


def test_a_descent_that_is_cut_off_before_its_first_certificate_is_not_lost(monkeypatch):
    problem, asked = BY_NAME["squared-entries"].make(), 0

    def late(*given, **named):
        nonlocal asked
        asked += 1
        raise clock.TimeUpError

    monkeypatch.setattr("gramian.methods.lbfgs.certify_image", late)
    result = gm.minimize(problem, "lbfgs", rank=3, random_state=0)
    assert asked == 1
    assert result.status is gm.Status.TIME_LIMIT
    assert result.rank == 3
    assert result.value < problem.value(np.zeros((problem.order, 0)))
