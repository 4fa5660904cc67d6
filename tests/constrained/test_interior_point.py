"""Dense programs with known optima converge; the rays of others are verified independently."""

import numpy as np
import pytest

import gramian as gm
from benchmarks._attack import programs as planted
from gramian.constrained.interior_point import InteriorPoint, Iteration
from gramian.constrained.model import Model
from gramian.constrained.standard_form import StandardForm
from gramian.linalg.svec import svec
from gramian.reductions.feature_scaling import feature_scaling
from tests.constrained.programs import instance


def dense_of(order, rows, seed=0, rank=3):
    """C, A, b of a program with a known optimal pair, and its optimum."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((order, order)))[0]
    sizes = rng.uniform(0.5, 2, order)
    M = (Q[:, :rank] * sizes[:rank]) @ Q[:, :rank].T
    S = (Q[:, rank:] * sizes[rank:]) @ Q[:, rank:].T
    A = rng.standard_normal((rows, order, order))
    A = A + A.transpose(0, 2, 1)
    y = rng.standard_normal(rows)
    b = np.einsum("kij,ij->k", A, M)
    return S + np.tensordot(y, A, 1), A, b, float(b @ y)


def check_optimal(found, best, tol=1e-6):
    assert found.status is gm.Status.CONVERGED
    assert found.certificate.proved and found.certificate.relative_gap <= tol
    assert found.certificate.violation <= tol
    assert found.value == pytest.approx(best, rel=3 * tol)
    assert found.certificate.lower_bound <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("solver", ["auto", "interior-point"])
@pytest.mark.parametrize(("order", "rows"), [(11, 20), (51, 40), (66, 60)])
def test_dense_programs_end_with_a_proved_gap(order, rows, solver):
    C, A, b, best = dense_of(order, rows)
    check_optimal(gm.minimize(gm.problems.sdp(C, list(A), b), solver), best)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", planted.KINDS, ids=lambda kind: kind.__name__)
def test_planted_programs_of_every_kind(kind, seed, monkeypatch):
    monkeypatch.setattr(planted, "ORDER", (5, 30))
    facts = kind(np.random.default_rng([seed, 7]))
    found = gm.minimize(facts.problem(), tol=1e-6)
    if facts.end == "optimal":
        check_optimal(found, facts.optimum)
    elif facts.end == "unattained":
        assert found.status in (gm.Status.UNATTAINED, gm.Status.CONVERGED)
        assert found.value == pytest.approx(facts.optimum, rel=1e-3)
    else:
        assert found.status.name == facts.end.upper()
    check_ray(found, facts)


def check_ray(found, facts):
    """Verify a ray from the data alone."""
    if found.status in (gm.Status.UNBOUNDED, gm.Status.UNATTAINED):
        N = found.ray @ found.ray.T
        sizes = np.linalg.norm(facts.A, axis=(1, 2))
        assert np.trace(N) == pytest.approx(1.0)
        np.testing.assert_allclose(np.einsum("kij,ij->k", facts.A, N) / sizes, 0.0, atol=1e-7)
        slope = np.sum(facts.C * N) / np.linalg.norm(facts.C)
        assert slope < -1e-3 if found.status is gm.Status.UNBOUNDED else abs(slope) <= 1e-9
    elif found.status is gm.Status.INFEASIBLE:
        assert found.ray @ facts.b == pytest.approx(1.0)
        assert np.linalg.eigvalsh(np.tensordot(found.ray, facts.A, 1))[-1] <= 1e-7


def test_invariant_to_units_of_features():
    C, A, b, best = dense_of(20, 25)
    d = 10.0 ** np.linspace(-6, 6, 20)
    units = np.outer(d, d)
    problem = gm.problems.sdp(C / units, list(A / units), b)
    found = gm.minimize(problem)
    check_optimal(found, best)
    again = gm.certify(problem, found.factor, dual=found.dual)
    assert again.relative_gap <= 1e-6 and again.proved
    assert again.lower_bound == pytest.approx(found.certificate.lower_bound, rel=1e-12)


def test_feature_scaling_keeps_values_and_multipliers():
    C, A, b, _ = dense_of(8, 6)
    d = 10.0 ** np.linspace(-4, 4, 8)
    problem = gm.problems.sdp(C / np.outer(d, d), list(A / np.outer(d, d)), b)
    scaling = feature_scaling(problem)
    assert scaling.d is not None and np.all(np.log2(scaling.d) % 1 == 0)
    L = np.random.default_rng(0).standard_normal((8, 3)) * d[:, None]
    Y = scaling.coordinates(L)
    np.testing.assert_array_equal(scaling.factor(Y), L)
    assert scaling.problem.value(Y) == pytest.approx(problem.value(L), rel=1e-12)
    seen, known = (p.bounds.map.bilinear(K, K) for p, K in ((scaling.problem, Y), (problem, L)))
    np.testing.assert_allclose(seen, known, rtol=1e-10)
    even = gm.problems.sdp(C, list(A), b)
    assert feature_scaling(even).problem is even


def test_callback_receives_factors_in_the_coordinates_of_the_problem():
    C, A, b, _ = dense_of(8, 6)
    d = 10.0 ** np.linspace(-4, 4, 8)
    problem = gm.problems.sdp(C / np.outer(d, d), list(A / np.outer(d, d)), b)
    seen = []
    gm.minimize(problem, callback=lambda state: seen.append(state.factor))
    off = problem.bounds.violation(problem.bounds.map.bilinear(seen[-1], seen[-1]))
    assert off <= 1e-6


def test_dependent_rows_have_multiplier_zero():
    C, A, b, best = dense_of(12, 10)
    A, b = np.concatenate([A, A[:3] + A[3:6]]), np.concatenate([b, b[:3] + b[3:6]])
    problem = gm.problems.sdp(C, list(A), b)
    assert StandardForm(Model.of(problem)).source.size == 10
    check_optimal(gm.minimize(problem, "interior-point"), best)


def test_blocks_single_entries_and_bounds_on_both_sides():
    rng = np.random.default_rng(3)
    C = [np.diag([1.0, 2.0, 3.0]), np.array([0.5, 2.0])]
    A = [[rng.standard_normal((3, 3)), rng.standard_normal(2)] for _ in range(3)]
    A = [[(a + a.T) / 2, v] for a, v in A]
    M, x = np.eye(3), np.ones(2)
    b = np.array([np.sum(a * M) + v @ x for a, v in A])
    both = {"A_ub": [*A[1:], *([-a, -v] for a, v in A[1:])]}
    bounds = np.concatenate([b[1:] + 0.1, 0.1 - b[1:]])
    problem = gm.problems.sdp(C, A[:1], b[:1], **both, b_ub=bounds)
    found = gm.minimize(problem, "interior-point")
    assert found.status is gm.Status.CONVERGED and found.certificate.proved
    other = gm.minimize(problem, "augmented-lagrangian")
    assert found.value == pytest.approx(other.value, rel=1e-4)


def test_step_reduces_every_residual_by_its_fraction():
    C, A, b, _ = dense_of(9, 7)
    form = StandardForm(Model.of(gm.problems.sdp(C, list(A), b)))
    step = Iteration(form, InteriorPoint.first(form))
    move = step.direction(-step.values, -1.0, 1.0)
    np.testing.assert_allclose(step.A @ move.x - form.b * move.tau, step.primal, atol=1e-10)
    cost = np.concatenate([svec(c).ravel() for c in form.C])
    left = step.A.T @ move.y + move.s - cost * move.tau
    np.testing.assert_allclose(left, step.dual, atol=1e-10)
    balance = form.b @ move.y - cost @ move.x - move.kappa
    assert balance == pytest.approx(step.balance, abs=1e-10)


def test_not_converged_without_a_dual_point():
    """A program whose slack is never definite: the value is right, and no bound can be proved."""
    C, link = np.diag([1.0, 0.0]), np.array([[0.0, 0.5], [0.5, 0.0]])
    found = gm.minimize(gm.problems.sdp(C, [link], [1.0]), time_limit=10)
    assert found.status is not gm.Status.CONVERGED or found.certificate.relative_gap <= 1e-6


@pytest.mark.slow
def test_rejects_programs_that_are_too_large():
    order = 400
    A = [np.eye(order)[:, [k]] @ np.eye(order)[[k]] for k in range(300)]
    problem = gm.problems.sdp(np.eye(order) + 1.0, A, np.ones(300))
    with pytest.raises(ValueError, match="too many operations"):
        gm.minimize(problem, "interior-point")


def test_infeasibility_is_found_although_the_cost_is_negative():
    given = instance(14)
    problem = gm.problems.sdp(given.C, list(given.A), given.b)
    found = gm.minimize(problem, "interior-point")
    assert found.status is gm.Status.INFEASIBLE
    S = np.tensordot(found.ray, given.A, 1)
    assert found.ray @ given.b == pytest.approx(1.0) and np.linalg.eigvalsh(S)[-1] <= 1e-6


@pytest.mark.parametrize(("C", "status"), [([1.0, 2.0], "CONVERGED"), ([1.0, -1.0], "UNBOUNDED")])
def test_rows_of_zeros_are_ignored(C, status):
    nothing = [np.zeros((2, 2))] * 2
    result = gm.minimize(gm.problems.sdp(np.diag(C), nothing, [0.0, 0.0]))
    assert (result.status.name, result.value) == (status, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_detects_that_no_multipliers_have_a_definite_slack(seed):
    """C + vB ⪰ 0 for one v only, because B is indefinite where C + vB is singular."""
    rng = np.random.default_rng(seed)
    W, B = rng.standard_normal((6, 2)), rng.standard_normal((6, 6))
    B = B + B.T
    result = gm.minimize(
        gm.problems.sdp(W @ W.T - B, A_ub=[B], b_ub=[1.0]), "interior-point", time_limit=60
    )
    assert result.status.name == "UNATTAINED" and result.certificate.gap is None
    assert result.value == pytest.approx(-1.0, abs=1e-5)
    assert abs(np.sum(result.ray * ((W @ W.T - B) @ result.ray))) < 1e-9


@pytest.mark.parametrize(
    ("order", "rank", "seed"),
    [(20, 6, 0), (20, 6, 2), (20, 6, 3), (20, 8, 1), (35, 8, 11), (35, 8, 20), (35, 10, 4)],
)
def test_detects_that_the_optima_are_unbounded(order, rank, seed):
    """An optimum of a rank that ten equations do not determine: others are arbitrarily far away."""
    C, A, b, best = dense_of(order, 10, seed, rank=rank)
    found = gm.minimize(gm.problems.sdp(C, list(A), b), tol=1e-6, time_limit=60)
    assert found.value == pytest.approx(best, rel=1e-5)
    if found.status is not gm.Status.CONVERGED:
        assert found.status is gm.Status.UNATTAINED and found.route == ("interior-point",)
        assert np.linalg.norm(np.einsum("kij,ip,jp->k", A, found.ray, found.ray)) < 1e-8


def test_reports_that_the_infimum_may_not_be_attained():
    """M₁₁ → 0 needs M₂₂ → ∞, because M₁₂ = 1."""
    cost, row = np.diag([1.0, 0.0]), np.array([[0.0, 0.5], [0.5, 0.0]])
    found = gm.minimize(gm.problems.sdp(cost, [row], [1.0]), "clarabel")
    assert not found.status.converged and found.value < 1e-6
    assert "infimum may not be attained; a constraint tr M ≤ t" in str(found)
    bounded = gm.problems.sdp(cost, [row], [1.0], A_ub=[np.eye(2)], b_ub=[1e3])
    attained = gm.minimize(bounded, "interior-point")
    assert attained.status is gm.Status.CONVERGED and attained.hint == ""
