"""Certificates are valid bounds: the gap is never smaller than the distance to the optimum."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramian as gm
from gramian import problems
from gramian.bounds import certify_image
from gramian.losses import SoftMin, Squared
from gramian.maps import Congruence, Entries, PairDistances
from gramian.objectives import Composite, GramQuadratic, Sum, gram_quadratic
from gramian.objectives.dense import gradient_dense, value_dense
from gramian.problems import metric, moments
from tests.cases import (
    BY_NAME,
    CASES,
    EDGES,
    K0,
    LABELS,
    PAIRS,
    TARGET,
    Case,
    N,
    X,
    digits_bound,
    digits_kta,
    symmetric,
)
from tests.conic import Term, conic_minimum

DIGITS = [
    Case("digits-kta", digits_kta, lambda: 247.7373706638145),
    Case("digits-bound", digits_bound, lambda: 188.915697258213),
]
EVERY_CASE = pytest.mark.parametrize("case", [*CASES, *DIGITS], ids=str)


def slack(case):
    """Error of the reference value."""
    return 1e-9 * max(1.0, abs(case.optimum))


def assert_true_bound(case, certificate):
    assert certificate.gap is not None and certificate.gap >= 0
    assert certificate.value - case.optimum <= certificate.gap + slack(case)
    assert certificate.lower_bound <= case.optimum + slack(case)


def random_factor(problem, rng, rank, scale):
    L = scale * rng.standard_normal((problem.order, rank))
    if problem.domain.trace is not None:
        L *= np.sqrt(problem.domain.trace / np.sum(L * L))
    return L


@EVERY_CASE
def test_bound_is_true_at_random_factors(case):
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        for rank in (1, 3, case.problem.order):
            L = random_factor(case.problem, rng, rank, scale)
            assert_true_bound(case, gm.certify(case.problem, L))
    if case.problem.domain.trace is None:
        assert_true_bound(case, gm.certify(case.problem, L[:, :0]))


@EVERY_CASE
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("auto", {}),
        ("bilgo", {"local": None}),
        ("bilgo", {}),
        ("lbfgs", {"chunk": 2}),
        ("lro", {"check": 1}),
        ("projected-gradient", {"certify_every": 1}),
    ],
    ids=["auto", "bilgo-plain", "bilgo", "lbfgs", "lro", "projected-gradient"],
)
def test_bound_is_true_along_every_run(case, solver, options):
    if solver not in accepting(case.problem):
        with pytest.raises(ValueError, match="cannot solve"):
            gm.minimize(case.problem, solver)
        return
    result = gm.minimize(case.problem, solver, tol=1e-8, max_iter=25, **options)
    gaps, values = result.history["gap"], result.history["value"]
    known = np.isfinite(gaps)
    assert known.any()
    assert np.all(values[known] - gaps[known] <= case.optimum + slack(case))
    assert np.all(values >= case.optimum - slack(case))
    assert_true_bound(case, result.certificate)


def accepting(problem):
    """The solvers that accept a problem."""
    cone_only = {"bilgo", "lbfgs", "lro"}
    return set(gm.solvers.available()) - (cone_only if problem.domain.trace is not None else set())


def assert_claims_hold(problem, result):
    """λ_min from below, complementarity and value as the dense formulas give them."""
    objective, M, claim = problem.objective, result.matrix(), result.certificate
    G = gradient_dense(objective, M)
    size = np.linalg.norm(G) + np.linalg.norm(gradient_dense(objective, 0 * M))
    assert claim.value == pytest.approx(result.value, rel=1e-12)
    assert result.value == pytest.approx(value_dense(objective, M), rel=1e-9, abs=1e-9)
    assert claim.lambda_min <= np.linalg.eigvalsh(G)[0] + 1e-12 * size
    reach = 1e-9 * (1 + size * np.trace(M))
    assert claim.complementarity == pytest.approx(np.sum(G * M), abs=reach)


@EVERY_CASE
@pytest.mark.parametrize("max_iter", [0, 3])
def test_result_agrees_with_its_factor(case, max_iter):
    assert_claims_hold(case.problem, gm.minimize(case.problem, tol=0.0, max_iter=max_iter))


@pytest.mark.parametrize("max_iter", [0, 1, 3])
@pytest.mark.parametrize("seed", [14, 51, 79])
def test_splitting_with_ill_conditioned_hessian(seed, max_iter):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    A = (V * 10 ** rng.uniform(-1, 2, 6)) @ V.T
    problem = problems.quadratic((A + A.T) / 2, 0.1, 10 * symmetric(rng, 6))
    result = gm.minimize(problem, "eigenbasis", tol=0.0, max_iter=max_iter)
    assert_claims_hold(problem, result)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), lam=st.floats(0.05, 2.0), kind=st.sampled_from("ed"))
def test_bound_is_true_for_random_squared_problems(seed, lam, kind):
    """Σ (z − t)² + λ tr M over entries or distances, against a conic solver."""
    rng = np.random.default_rng(seed)
    n, p = 5, 8
    i, j = np.array([rng.choice(n, 2, replace=False) for _ in range(p)]).T
    target = rng.standard_normal(p)
    make, image = {
        "e": (Entries, lambda M: M[i, j]),
        "d": (PairDistances, lambda M: M[i, i] + M[j, j] - 2 * M[i, j]),
    }[kind]
    problem = gm.Problem(Composite(make(np.column_stack([i, j]), n), Squared(target), lam))
    optimum = conic_minimum(n, [Term("squared", image, target)], lam * np.eye(n))
    case = Case("random", lambda: problem, lambda: optimum)
    result = gm.minimize(problem, "projected-gradient", tol=1e-8, max_iter=5000, certify_every=50)
    assert_true_bound(case, result.certificate)
    assert result.value == pytest.approx(optimum, abs=1e-6)
    assert_true_bound(case, gm.certify(problem, rng.standard_normal((n, 2))))


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), trace=st.floats(0.1, 10.0))
def test_frank_wolfe_gap_is_true_over_the_spectrahedron(seed, trace):
    """min ‖M − K‖² over tr M = τ is the projection of K, known from its eigenvalues."""
    rng = np.random.default_rng(seed)
    K = symmetric(rng, 5)
    values = np.linalg.eigvalsh(K)
    domain = gm.Spectrahedron(trace)
    optimum = float(np.sum((domain.project_eigenvalues(values) - values) ** 2))
    objective = GramQuadratic(None, 1.0, -K, constant=float(np.sum(K * K)))
    case = Case("slice", lambda: gm.Problem(objective, domain), lambda: optimum)
    for rank in (1, 5):
        L = random_factor(case.problem, rng, rank, 1.0)
        assert_true_bound(case, gm.certify(case.problem, L))


@pytest.mark.parametrize("name", ["kta-identity", "kta-frobenius", "quadratic-non-commuting"])
def test_bounds_are_tight_at_the_optimum(name):
    case = BY_NAME[name]
    result = gm.minimize(case.problem, "lbfgs", tol=1e-12)
    assert gm.certify(case.problem, result.factor).relative_gap < 1e-6


@pytest.mark.parametrize("regularizer", ["identity", "frobenius"])
def test_structured_bound_at_large_order_is_true(regularizer, monkeypatch):
    """Above DENSE_ORDER no matrix is formed; here that limit is lowered below d = 5."""
    case = BY_NAME[f"kta-{regularizer}"]
    for module in (gram_quadratic, metric, moments):
        monkeypatch.setattr(module, "DENSE_ORDER", 2)
    problem = problems.kta(X, LABELS, 1e-2, regularizer=regularizer)
    large = Case("large", lambda: problem, lambda: case.optimum)
    rng = np.random.default_rng(0)
    for rank in (0, 1, 4, 5):
        L = rng.standard_normal((5, rank))
        assert problem.value(L) == pytest.approx(case.problem.value(L))
        certificate = gm.certify(problem, L)
        assert_true_bound(large, certificate)
    best = gm.minimize(case.problem, tol=1e-10).factor
    certificate = gm.certify(problem, best)
    assert certificate.method == "strong convexity"
    assert_true_bound(large, certificate)
    assert certificate.relative_gap < 1e-3


NO_BOUND = {
    "a linear term that may fall": Composite(PairDistances(EDGES, N), Squared(1.0), -0.1),
    "soft-min over the cone": Composite(PairDistances(EDGES, N), SoftMin(mu=1.0)),
}


def test_a_sum_is_bounded_by_the_strong_convexity_of_a_part():
    problem = BY_NAME["sum"].problem
    convex = gm.Problem(Sum([GramQuadratic(None, 1.0, -K0), *problem.objective.parts]))
    assert convex.objective.modulus >= 1.0
    result = gm.minimize(convex, tol=1e-8)
    for factor in (result.factor, result.factor[:, :1]):
        (bound,) = convex.objective.lower_bounds(convex.objective.image(factor), -np.inf)
        assert bound.method == "strong convexity"
        assert bound.value <= result.value + 1e-9 * abs(result.value)
    (bound,) = convex.objective.lower_bounds(convex.objective.image(result.factor), -np.inf)
    assert bound.value == pytest.approx(result.value, rel=1e-6)


def test_no_bound_if_null_spaces_differ():
    """M₂₂ is not observed and C₂₂ < 0: F is unbounded, however large the rest of ∇F is."""
    C = np.diag([1.0, 1.0, -0.1])
    objective = Composite(Entries([[0, 0], [1, 1], [0, 1]], 3), Squared(1.0), C)
    for size in (1.0, 1e6, 1e12):
        L = np.diag([size, size, size])
        assert gm.certify(gm.Problem(objective), L).gap is None


def test_terms_bound_the_objective_without_trace_term():
    """A sum of squares is not negative, and neither is ⟨C, M⟩ if C ⪰ 0."""
    problem = gm.Problem(Composite(Entries(PAIRS[:4], N), Squared(TARGET[:4]), constant=3.0))
    certificate = gm.certify(problem, np.random.default_rng(0).standard_normal((N, 2)))
    assert certificate.method == "sum of the minima of the terms"
    assert certificate.lower_bound == pytest.approx(3.0)


@pytest.mark.parametrize("objective", NO_BOUND.values(), ids=NO_BOUND)
def test_certificate_without_bound(objective):
    L = np.random.default_rng(0).standard_normal((N, 2))
    certificate = gm.certify(gm.Problem(objective), L)
    assert certificate.gap is None and certificate.relative_gap is None
    assert certificate.method == "none"
    assert certificate.lower_bound == -np.inf
    assert "no bound on the gap is known" in str(certificate)


def test_psd_gradient_at_zero_is_a_dual_point():
    """C ⪰ 0 and no data: M = 0 is optimal, and the dual point w = ∇g(0) proves it."""
    problem = gm.Problem(Composite(Entries([[0, 1]], 2), Squared(0.0), 1.0))
    certificate = gm.certify(problem, np.zeros((2, 0)))
    assert certificate.gap == 0.0
    assert certificate.relative_gap == 0.0


def test_certificate_as_text():
    case = BY_NAME["squared-entries"]
    certificate = gm.certify(case.problem, np.ones((N, 1)))
    text = str(certificate)
    assert f"{certificate.value:.8g}" in text
    assert "above the optimum, by" in text and certificate.method in text
    expected = certificate.gap / max(abs(certificate.value), abs(certificate.lower_bound))
    assert certificate.relative_gap == pytest.approx(expected)


def test_certify_validates_factor():
    problem = BY_NAME["squared-entries"].problem
    with pytest.raises(ValueError, match=r"shape \(6, r\)"):
        gm.certify(problem, np.ones((5, 2)))
    L = np.random.default_rng(0).standard_normal((N, 2))
    single, double = gm.certify(problem, L.astype(np.float32)), gm.certify(problem, L)
    assert single.gap == pytest.approx(double.gap, rel=1e-5)


def test_rejects_gradient_that_is_not_finite():
    class NaNLoss(Squared):
        def gradient(self, z):
            return np.full_like(z, np.nan)

    problem = gm.Problem(Composite(Entries([[0, 1]], 2), NaNLoss(), 1.0))
    with pytest.raises(FloatingPointError, match="gradient is not finite"):
        certify_image(problem, problem.objective.image(np.ones((2, 1))))


def test_a_shift_along_all_edges_certifies_a_reduced_unfolding():
    """ν Σ (d − D)² − tr Y has no trace bound; 𝒜*(1) = QᵀLQ is definite and gives a dual point."""
    rng = np.random.default_rng(3)
    n, m = 12, 4
    edges = np.array([(i, i + 1) for i in range(n - 1)] + [(0, 5), (3, 9), (2, 11)])
    basis = np.linalg.qr(rng.standard_normal((n, m)))[0]
    basis -= basis.mean(axis=0)
    lengths = rng.uniform(0.5, 2.0, len(edges))
    map = Congruence(PairDistances(edges, n), basis)
    problem = gm.Problem(Composite(map, Squared(lengths, weight=10.0), -1.0))
    best = gm.minimize(problem, "lbfgs", tol=1e-12)
    reference = gm.minimize(problem, "projected-gradient", tol=1e-11)
    assert best.certificate.method == "Fenchel dual point"
    assert best.certificate.relative_gap < 1e-8
    assert best.value == pytest.approx(reference.value, rel=1e-7)
    for scale in (0.1, 1.0, 3.0):
        factor = best.factor * scale + 0.1 * rng.standard_normal(best.factor.shape)
        certificate = gm.certify(problem, factor)
        assert certificate.lower_bound <= reference.value + 1e-9 * abs(reference.value)
        assert np.isfinite(certificate.gap)


def test_value_of_an_image_that_has_drifted_is_computed_again():
    case = BY_NAME["squared-entries"]
    factor = gm.minimize(case.problem, tol=1e-8).factor
    image = case.problem.objective.image(factor)
    found = certify_image(case.problem, replace(image, linear=image.linear - 1e-3))
    assert found.value == case.problem.value(factor)
    assert found.gap is not None and found.lower_bound <= case.optimum + 1e-9
