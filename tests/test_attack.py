"""The attack on certificates: its judge, its formulas, its processes, and a small fixed part."""

import json
import time
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from benchmarks import attack
from benchmarks._attack import large, run, small, summary
from benchmarks._attack.examine import SMALL, draw, examine, order_class
from benchmarks._attack.formulas import LD, Formula, Term, entries, outer
from benchmarks._attack.judge import (
    FALSE_CONVERGED,
    FALSE_GAP,
    FALSE_UNBOUNDED,
    FALSE_VALUE,
    HANG,
    Claim,
    Truth,
    judge,
)
from benchmarks._attack.losses import Squares
from benchmarks._attack.oracles import points
from benchmarks._attack.run import Plan

# --- the judge -----------------------------------------------------------------------

K = np.diag([2.0, -1.0, 0.5])
"""‖M − K‖² over M ⪰ 0 has its least value, 1, at diag(2, 0, ½)."""
FORMULA = Formula(3, [Term(Squares(K.ravel()), outer())])
ANSWER = np.diag(np.sqrt([2.0, 0.0, 0.5]))
ZERO = np.zeros((3, 1))


def verdicts(claim: Claim, *, bounded: bool | None = True) -> list[str]:
    truth = Truth(FORMULA)
    truth.offer("a planted point", ANSWER)
    return [alarm["kind"] for alarm in judge([claim], truth, bounded)[0]]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim("true", ANSWER, 1.0, 0.0), []),
        (Claim("true", ZERO, 5.25, 4.25), []),
        (Claim("no bound", ZERO, 5.25, None), []),
        (Claim("to rounding", ANSWER, 1.0 + 1e-12, 0.0), []),
        (Claim("too small a gap", ZERO, 5.25, 4.2), [FALSE_GAP]),
        (Claim("no number", ZERO, 5.25, np.nan), [FALSE_GAP]),
        (Claim("value of another point", ZERO, 5.0, 5.0), [FALSE_VALUE]),
        (Claim("too high a value", ANSWER, 1.01, 0.0), [FALSE_VALUE, FALSE_GAP]),
        (Claim("not finite", np.full((3, 1), np.nan), np.nan, None), [FALSE_VALUE]),
        (Claim("bounded", ZERO, 5.25, None, status="UNBOUNDED"), [FALSE_UNBOUNDED]),
        (Claim("true", ANSWER, 1.0, 1e-7, status="CONVERGED", tol=1e-6), []),
        (Claim("own gap", ANSWER, 1.0, 1e-3, status="CONVERGED", tol=1e-6), [FALSE_CONVERGED]),
        (Claim("no bound", ZERO, 5.25, None, status="CONVERGED", tol=1e-6), [FALSE_CONVERGED]),
        (Claim("of rank 1", ZERO, 5.25, None, "", "CONVERGED", 1e-6, True), []),
    ],
    ids=lambda value: value.by if isinstance(value, Claim) else None,
)
def test_judge(claim, expected):
    assert verdicts(claim) == expected


def test_judge_of_unbounded_objectives():
    claim = Claim("lost", ANSWER, 1.0, 0.0, status="CONVERGED", tol=1e-6)
    assert verdicts(claim, bounded=False) == [FALSE_CONVERGED]
    assert verdicts(Claim("right", ANSWER, 1.0, None, status="UNBOUNDED"), bounded=False) == []


def test_a_value_that_cancels_is_seen_in_extended_precision():
    i = np.zeros(1, dtype=int)
    formula = Formula(1, [Term(Squares(LD(0)), entries(i, i))], C=-2e8)
    found = formula(np.array([[1e4]]))
    assert found.value == LD(1e16) - LD(2e16)
    assert 0 < found.slack < 1e8


# --- formulas and oracles ------------------------------------------------------------


def drawn(family: str, count: int):
    for index in range(30 * count):
        if count == 0:
            return
        try:
            instance = draw(5, index, 0.0, family)
        except ValueError:
            continue
        if "shifted" not in instance.twists:
            count -= 1
            yield instance


@pytest.mark.parametrize("family", SMALL)
def test_formulas_are_those_of_the_library(family):
    for instance in drawn(family, 4):
        problem = instance.problem
        rng = np.random.default_rng(0)
        L = rng.standard_normal((problem.order, 2))
        if problem.domain.trace is not None:
            L *= np.sqrt(problem.domain.trace / np.sum(L * L))
        found = instance.formula(L)
        assert abs(problem.value(L) - found.value) <= found.slack
        assert found.slack <= 1e-5 * abs(found.value) + 1e-9


@pytest.mark.parametrize("family", ["loud_triplets", "cluster", "heavy_entry", "loud_kernel"])
def test_large_probes_are_not_optimal(family):
    instance = draw(0, 3, 1.0, family)
    assert order_class(instance.problem.order) == "over 1500"
    better, probe = instance.formula(instance.better[0]), instance.formula(instance.probes[0])
    assert better.value + better.slack < probe.value - probe.slack
    assert abs(instance.problem.value(instance.better[0]) - better.value) <= better.slack


def test_oracles_find_the_optimum():
    found = [float(FORMULA(factor).value) for _, factor in points(FORMULA, [ANSWER * 0.1], 5.0)]
    assert min(found) == pytest.approx(1.0, rel=1e-9)


# --- processes -----------------------------------------------------------------------


def sleeper(seed: int, index: int, *_: object) -> dict:
    """A task for workers: the second instance never ends."""
    if index == 1:
        time.sleep(60)
    return {"seed": seed, "index": index, "family": "sleep", "alarms": [], "seconds": 0.0}


@pytest.mark.slow
def test_runs_resume_and_survive_a_hang(tmp_path, capsys):
    out = tmp_path / "attack.jsonl"
    plan = Plan(3, limit=0.2, only="npkl", task="tests.test_attack:sleeper")
    records = run.attack(plan, out, workers=1)
    assert [[alarm["kind"] for alarm in record["alarms"]] for record in records] == [[], [HANG], []]
    with out.open("a") as file:
        file.write('{"cut o')
    before = out.read_text()
    assert run.attack(plan, out, workers=1) == [json.loads(x) for x in _sorted(before)]
    assert out.read_text() == before
    assert attack.main(["--summary", str(out)]) == 1
    assert "no answer after 0.6 s" in capsys.readouterr().out


def _sorted(text: str) -> list[str]:
    return sorted(text.splitlines()[:3], key=lambda line: json.loads(line)["index"])


def test_instances_are_determined_by_seed_and_index():
    one, two = (draw(3, 11, 0.1) for _ in range(2))
    assert (one.family, one.twists) == (two.family, two.twists)
    L = np.ones((one.problem.order, 1))
    assert one.problem.value(L) == two.problem.value(L)


def test_summary_counts_instances():
    alarm = {"kind": FALSE_GAP, "by": "auto {}", "reason": "why"}
    record = {"index": 0, "family": "kta", "order_class": "up to 15", "seconds": 0.1}
    records = [{**record, "alarms": [alarm, alarm], "certified": 2}, {**record, "alarms": []}]
    by_family, by_order, alarms = summary.tables(records)
    assert by_family.rows[0][:5] == ("kta", 2, 0, 2, 1)
    assert by_order.rows[-1][0] == "all" and len(alarms.rows) == 1
    assert summary.false(records) == 1


# --- a fixed part of the attack ------------------------------------------------------


@pytest.mark.parametrize("family", [f for f in SMALL if f not in ("lmnn", "quadratic")])
def test_small_part(family):
    record = examine(2, 0, 0.0, family)
    assert record["alarms"] == []


def loud() -> tuple[gm.Problem, np.ndarray, np.ndarray]:
    """Loud features hide a quiet one that helps."""
    d, k = 1600, 30
    X = np.zeros((90, d))
    X[1::3, :k] = np.diag(1e4 * np.linspace(0.1, 1, k))
    X[2:45:3, 777] = 0.316
    better = np.zeros((d, 1))
    better[777] = 3.16
    problem = gm.problems.triplets(X, np.arange(90).reshape(k, 3), 1.0, 0.1)
    return problem, np.zeros((d, 1)), better


def orthogonal_to_the_start() -> tuple[gm.Problem, np.ndarray, np.ndarray]:
    """I − 2uuᵀ with u orthogonal to the first random vector of seed 0."""
    n = 3200
    x = np.random.default_rng(0).standard_normal(n)
    u = np.zeros((n, 1))
    u[:2, 0] = x[1], -x[0]
    u /= np.linalg.norm(u)
    C = sp.eye_array(n, format="csr") - 2 * sp.csr_array(u) @ sp.csr_array(u.T)
    return gm.problems.quadratic(None, 1.0, C), np.zeros((n, 1)), u


def lone_cell() -> tuple[gm.Problem, np.ndarray, np.ndarray]:
    """A chain whose singular values stay below λ, and a cell above it."""
    instance = draw(0, 2, 1.0, "heavy_sign")
    return instance.problem, instance.probes[0], instance.better[0]


def flat_alignment() -> tuple[gm.Problem, np.ndarray, np.ndarray]:
    """Fewer samples than features: the Hessian is flat where the eigenbasis is not exact."""
    X = np.random.default_rng(20).normal(size=(4, 6))
    problem = gm.problems.kta(X, np.arange(4) % 2, 10.0, regularizer="trace")
    result = gm.minimize(problem, tol=1e-9)
    better = gm.minimize(problem, "lbfgs", tol=1e-12, max_iter=3000)
    assert result.certificate.gap is None or (
        result.value - result.certificate.gap <= better.value * (1 + 1e-9)
    )
    return problem, result.factor, better.factor


def offsets_of_a_chain() -> tuple[gm.Problem, np.ndarray, np.ndarray]:
    """Offsets that take many steps to find: F(0) must not depend on who asked before."""
    N = 400
    k = np.repeat(np.arange(N), 2)
    i, j = k[1:], k[:-1]
    R = 5 + np.random.default_rng(0).normal(size=i.size)
    problem = gm.problems.nuclear_completion(i, j, R, (N, N), 50.0, ridge=1e-6)
    zero = np.zeros((2 * N, 1))
    formula = small.completion_formula(i, j, R, (N, N), 50.0, 1e-6, np.ones(i.size))
    found = formula(zero)
    assert abs(problem.value(zero) - found.value) <= found.slack
    return problem, zero, zero


PLANTED: dict[str, Callable[[], tuple[gm.Problem, np.ndarray, np.ndarray]]] = {
    make.__name__: make
    for make in (loud, orthogonal_to_the_start, lone_cell, flat_alignment, offsets_of_a_chain)
}


def ill_scaled() -> gm.Problem:
    r, n = np.random.default_rng(3), 8
    U = np.linalg.qr(r.normal(size=(n, n)))[0]
    A = (U * np.logspace(-2, 4, n)) @ U.T
    v, C = r.normal(size=(n, 2)), r.normal(size=(n, n))
    return gm.problems.quadratic((A + A.T) / 2, v @ v.T, C + C.T)


def few_samples() -> gm.Problem:
    r = np.random.default_rng(2)
    n = int(r.integers(4, 7))
    X = r.normal(size=(n, int(r.integers(n + 1, 14))))
    return gm.problems.lmnn(X, np.arange(n) % 2, 1, float(10 ** r.uniform(-3, 2)))


BOUNDED = {make.__name__: make for make in (ill_scaled, few_samples)}


def small_samples() -> gm.Problem:
    X = np.random.default_rng(0).normal(size=(6, 2)) * 1e-3
    return gm.problems.kta(X, np.arange(6) % 3, 1.0, regularizer="trace")


def uneven_samples() -> gm.Problem:
    """Features of very different sizes, so that XᵀX has eigenvalues next to 0; F(0) = 22."""
    r = np.random.default_rng(11)
    X = r.normal(size=(8, 6)) * 10.0 ** r.uniform(-3, 3, 6) * 1e-4
    return gm.problems.kta(X, np.arange(8) % 3, 1.0, regularizer="trace")


CONVERGENT = {make.__name__: make for make in (small_samples, uneven_samples)}


@pytest.mark.parametrize("name", PLANTED)
def test_no_gap_above_a_better_point(name):
    problem, point, better = PLANTED[name]()
    found = gm.certify(problem, point)
    least = problem.value(better)
    assert found.gap is None or found.value - found.gap <= least + 1e-9 * abs(least)


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_problems_are_not_called_unbounded(name):
    assert gm.minimize(BOUNDED[name]()).status is not gm.Status.UNBOUNDED


@pytest.mark.parametrize("name", CONVERGENT)
def test_converged_runs_have_a_gap_within_the_tolerance(name):
    problem = CONVERGENT[name]()
    result = gm.minimize(problem, tol=1e-6)
    assert result.value <= problem.value(np.zeros((problem.order, 1))) * (1 + 1e-12)
    assert result.status is not gm.Status.CONVERGED or result.certificate.relative_gap <= 1e-6


def test_every_large_family_draws():
    for family in large.FAMILIES:
        if family != "planted_quadratic":  # its matrix may be refused, see the report
            assert draw(0, 0, 1.0, family).family == family
