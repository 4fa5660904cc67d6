"""LMNN, the triplet hinge, DML-eig and LMNN-eig: formulas, optima and input validation."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize
from scipy.special import logsumexp

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient, check_hessian
from gramian.constraints import local_pairs, local_triplets, same_class_neighbors
from gramian.methods.base import Settings
from gramian.objectives.dense import value_dense
from gramian.problems import local_metric
from gramian.problems.local_metric import (
    dml_eig_whitened,
    lmnn_eig_whitened,
    lmnn_of_triplets,
    pair_scatter,
    whitening,
)
from gramian.solvers.registry import SOLVERS
from tests.conic import Term, _Model, add, conic_minimum
from tests.slow import slow

rng = np.random.default_rng(11)
N, D, K = 18, 4, 2
Y = np.arange(N) % 3
CENTRES = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
X = rng.standard_normal((N, D)) * [0.6, 0.7, 0.8, 2.0] + CENTRES[Y]
LAM, MU, GAMMA = 0.3, 0.02, 0.1
SIMILAR, DISSIMILAR = local_pairs(X, Y, K)
TRIPLETS = local_triplets(X, Y, K)
L = 0.7 * rng.standard_normal((D, 2))
M = L @ L.T
SLACKED = rng.standard_normal((D + 1, 2))
FORMS = {
    "dense": X,
    "list": X.tolist(),
    "fortran": np.asfortranarray(X),
    "csr": sp.csr_array(X),
    "csc-matrix": sp.csc_matrix(X),
}
EVERY_FORM = pytest.mark.parametrize("samples", FORMS.values(), ids=FORMS)


def distance(i, j, metric=M):
    return float((X[i] - X[j]) @ metric @ (X[i] - X[j]))


def margin(i, j, l, metric=M):
    return distance(i, l, metric) - distance(i, j, metric)


def scatter(pairs=SIMILAR):
    """X_S, one pair at a time."""
    return sum(np.outer(X[i] - X[j], X[i] - X[j]) for i, j in pairs)


def whitened_metric(S):
    """M = G⁻ᵀSG⁻¹ with X_S = GGᵀ."""
    inverse = np.linalg.inv(np.linalg.cholesky(scatter()))
    return inverse.T @ S @ inverse


@cache
def all_impostors():
    """(i, j, l) for the K nearest j of the class of i and every l of another."""
    found = []
    for i in range(N):
        mine = [j for j in range(N) if j != i and Y[j] == Y[i]]
        for j in sorted(mine, key=lambda j: distance(i, j, np.eye(D)))[:K]:
            found += [(i, j, l) for l in range(N) if Y[l] != Y[i]]
    return found


def check(problem, factor, expected):
    assert problem.value(factor) == pytest.approx(expected)
    assert value_dense(problem.objective, factor @ factor.T) == pytest.approx(expected)
    check_gradient(problem.objective, factor)
    check_hessian(problem.objective, factor)


# --- each is its formula -------------------------------------------------------------


@EVERY_FORM
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_lmnn_is_its_formula_over_all_impostors(samples, size):
    pull = sum(distance(i, j, size * M) for i, j in {t[:2] for t in all_impostors()})
    push = sum(max(0.0, 1 - margin(*t, size * M)) ** 2 for t in all_impostors())
    problem = problems.lmnn(samples, Y, K, LAM)
    check(problem, np.sqrt(size) * L, pull + LAM * push)
    assert problem.order == D and problem.domain.trace is None and problem.name == "lmnn"


def test_lmnn_of_given_triplets_is_its_formula():
    given = np.array(all_impostors())[::3]
    push = sum(max(0.0, 1 - margin(*t)) ** 2 for t in given)
    check(lmnn_of_triplets(X, SIMILAR, given, LAM), L, np.sum(scatter() * M) + LAM * push)
    check(lmnn_of_triplets(X, SIMILAR, given, LAM, pull=0.7), L, 0.7 * np.trace(M) + LAM * push)


@EVERY_FORM
def test_triplets_are_their_formula(samples):
    def hinge(s, mu=0.4):
        return 0.0 if s <= 0 else s * s / (2 * mu) if s <= mu else s - mu / 2

    total = sum(hinge(1 - margin(*t)) for t in TRIPLETS)
    problem = problems.triplets(samples, TRIPLETS, LAM, 0.4)
    check(problem, L, np.trace(M) + LAM * total)
    assert problem.domain.trace is None and problem.name == "triplets"


@EVERY_FORM
def test_dml_eig_is_its_formula(samples):
    metric = whitened_metric(M)
    values = np.array([distance(i, j, metric) for i, j in DISSIMILAR])
    problem = problems.dml_eig(samples, SIMILAR, DISSIMILAR, MU)
    check(problem, L, MU * logsumexp(-values / MU))
    assert problem.domain.trace == 1.0 and problem.name == "dml_eig"


def test_dml_eig_with_a_ridge_whitens_the_scatter_with_it():
    ridged = scatter() + 0.3 * np.trace(scatter()) / D * np.eye(D)
    inverse = np.linalg.inv(np.linalg.cholesky(ridged))
    values = np.array([distance(i, j, inverse.T @ M @ inverse) for i, j in DISSIMILAR])
    problem = problems.dml_eig(X, SIMILAR, DISSIMILAR, MU, ridge=0.3)
    assert problem.value(L) == pytest.approx(MU * logsumexp(-values / MU))


def test_dml_eig_adds_its_offset_to_the_distances():
    offset = np.linspace(0, 1, len(DISSIMILAR))
    values = np.array([distance(i, j) for i, j in DISSIMILAR]) + offset
    problem = dml_eig_whitened(X, DISSIMILAR, MU, offset=offset)
    check(problem, L, MU * logsumexp(-values / MU))


def least_soft_min(c, budget, mu):
    """min μ ln Σ exp(−(c + ξ)/μ) over ξ ≥ 0 with Σ ξ = budget, by SLSQP."""
    return minimize(
        lambda xi: mu * logsumexp(-(c + xi) / mu),
        np.full(len(c), budget / len(c)),
        method="SLSQP",
        bounds=[(0, None)] * len(c),
        constraints=[LinearConstraint(np.ones((1, len(c))), budget, budget)],
        options={"ftol": 1e-14, "maxiter": 1000},
    ).fun


@pytest.mark.parametrize("gamma", [0.1, 0.4, 0.8])
@pytest.mark.parametrize("samples", [X, sp.csr_array(X)], ids=["dense", "csr"])
def test_lmnn_eig_is_its_formula_with_the_best_slack(samples, gamma):
    few = TRIPLETS[::5]
    whole = SLACKED @ SLACKED.T
    metric = whitened_metric(whole[:D, :D])
    c = np.array([margin(*t, metric) for t in few])
    expected = least_soft_min(c, gamma * whole[D, D] / (1 - gamma), 0.5)
    problem = problems.lmnn_eig(samples, SIMILAR, few, gamma, 0.5)
    assert problem.value(SLACKED) == pytest.approx(expected, rel=1e-6)
    check(problem, SLACKED, problem.value(SLACKED))
    assert problem.order == D + 1 and problem.domain.trace == pytest.approx(1 / gamma)


def test_lmnn_eig_counts_plain_margins_by_the_trace_of_s():
    """tr S = 1/γ − M_dd on the domain, so the factor must have its trace."""
    few, plain = TRIPLETS[::5], np.linspace(-1, 1, len(TRIPLETS[::5]))
    factor = SLACKED / np.sqrt(GAMMA * np.sum(SLACKED**2))
    S, slack = factor[:D] @ factor[:D].T, float(np.sum(factor[D] ** 2))
    c = np.array([margin(*t, S) for t in few]) + plain * np.trace(S)
    expected = least_soft_min(c, GAMMA * slack / (1 - GAMMA), 0.5)
    problem = lmnn_eig_whitened(X, few, GAMMA, 0.5, plain=plain)
    assert problem.value(factor) == pytest.approx(expected, rel=1e-6)
    check(problem, factor, problem.value(factor))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_hold_at_random_factors(seed):
    for problem in TABLE.values():
        check_gradient(problem().objective, rank=D, random_state=seed)


def test_single_precision_samples_have_the_values_of_their_numbers():
    single = X.astype(np.float32)
    double = single.astype(float)
    for make in (
        lambda X: problems.lmnn(X, Y, K, LAM),
        lambda X: problems.triplets(X, TRIPLETS, LAM, 0.4),
        lambda X: problems.dml_eig(X, SIMILAR, DISSIMILAR, MU),
    ):
        assert make(single).value(L) == pytest.approx(make(double).value(L), rel=1e-5)


# --- optima --------------------------------------------------------------------------

ACTIVE = np.array(all_impostors())
INVERSE = np.linalg.inv(np.linalg.cholesky(scatter()))
TABLE = {
    "lmnn": lambda: problems.lmnn(X, Y, K, LAM),
    "triplets": lambda: problems.triplets(X, TRIPLETS, LAM, 0.4),
    "dml_eig": lambda: problems.dml_eig(X, SIMILAR, DISSIMILAR, MU),
    "lmnn_eig": lambda: problems.lmnn_eig(X, SIMILAR, TRIPLETS[::3], GAMMA, MU),
}


def pair_image(pairs, P=np.eye(D)):  # noqa: B008
    differences = (X[pairs[:, 0]] - X[pairs[:, 1]]) @ P.T
    return lambda M: np.einsum("pi,ij,pj->p", differences, M, differences)


def margin_image(triplets, P=np.eye(D)):  # noqa: B008
    far, near = pair_image(triplets[:, [0, 2]], P), pair_image(triplets[:, :2], P)
    return lambda M: far(M) - near(M)


def with_slack():
    """LMNN-eig as the paper writes it, with one ξ for each triplet."""
    clarabel = pytest.importorskip("clarabel")
    model = _Model(D)
    margins = model.of_M(margin_image(TRIPLETS[::3], INVERSE))
    xi = model.variables(len(margins))
    model.nonnegative(xi)
    budget = add(
        GAMMA * model.of_M(lambda S: np.array([np.trace(S)])),
        (1 - GAMMA) * xi.sum(axis=0)[None],
    )
    model.constrain(budget, [-1.0], "zero")
    t, p = model.variables(1), model.variables(len(margins))
    model.add_linear(MU * t[0])
    model.nonnegative(-p.sum(axis=0)[None], 1.0)
    for e in range(len(margins)):
        model.exponential(-add(add(margins[[e]], xi[[e]]) / MU, t)[0], 0.0, p[e])
    return model.minimum(clarabel)


@cache
def optimum(name):
    """The minimum by Clarabel, from formulas written out here."""
    if name == "lmnn":
        return conic_minimum(D, [Term("squared-hinge", margin_image(ACTIVE), 1.0, LAM)], scatter())
    if name == "triplets":
        term = Term("smoothed-hinge", margin_image(TRIPLETS), 1.0, LAM, 0.4)
        return conic_minimum(D, [term], np.eye(D))
    if name == "dml_eig":
        return conic_minimum(
            D, [Term("soft-min", pair_image(DISSIMILAR, INVERSE), mu=MU)], trace=1.0
        )
    return with_slack()


def accepts(solver, problem):
    settings = Settings(rank=None, tol=1e-6, rng=np.random.default_rng(0))
    return SOLVERS[solver].refusal(problem, settings) is None


LONG_RUNS = [("admm", "lmnn"), ("admm", "triplets"), ("gd", "triplets")]
PAIRS = [
    (solver, name)
    for name in TABLE
    for solver in gm.solvers.available()
    if solver not in ("journee", "random-conic-pursuit") and accepts(solver, TABLE[name]())
]


@pytest.mark.parametrize(
    ("solver", "name"),
    [slow(*pair) if pair in LONG_RUNS else pair for pair in PAIRS],
    ids=["-".join(pair) for pair in PAIRS],
)
def test_every_solver_reaches_the_optimum(solver, name):
    problem = TABLE[name]()
    result = gm.minimize(problem, solver, tol=1e-6)
    assert result.value == pytest.approx(optimum(name), rel=2e-6)
    assert result.certificate.lower_bound <= optimum(name) + 1e-8
    assert problem.value(result.factor) == pytest.approx(result.value, rel=1e-9)
    assert result.status is gm.Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-6
    assert np.linalg.eigvalsh(result.matrix())[-2] > 1e-3  # the optimum is no corner
    if problem.domain.trace is not None:
        assert np.sum(result.factor**2) == pytest.approx(problem.domain.trace)


@pytest.mark.parametrize("name", TABLE)
def test_several_solvers_of_each_kind_take_every_problem(name):
    able = {solver for solver, problem in PAIRS if problem == name}
    assert {"auto", "staircase", "frank-wolfe", "projected-gradient"} <= able
    assert ({"bilgo", "lro", "lbfgs"} <= able) == (name in ("lmnn", "triplets"))


# --- scatter and whitening -----------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_pair_scatter_is_a_sum_over_pairs(form):
    np.testing.assert_allclose(pair_scatter(form(X), SIMILAR), scatter(), rtol=1e-10)
    weights = np.linspace(-1, 2, len(SIMILAR))
    expected = sum(
        w * np.outer(X[i] - X[j], X[i] - X[j]) for w, (i, j) in zip(weights, SIMILAR, strict=True)
    )
    found = pair_scatter(form(X), SIMILAR, weights=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_repeated_pairs_are_counted_in_both_orders():
    once = pair_scatter(X, [[0, 1]])
    np.testing.assert_allclose(pair_scatter(X, [[0, 1], [1, 0], [0, 1]]), 3 * once, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_whitening_makes_the_scatter_the_identity(form):
    R = whitening(form(X), SIMILAR).matrix
    np.testing.assert_allclose(pair_scatter(X @ R, SIMILAR), np.eye(D), atol=1e-12)
    mean = np.trace(scatter()) / D
    R = whitening(form(X), SIMILAR, ridge=0.1).matrix
    np.testing.assert_allclose(
        pair_scatter(X @ R, SIMILAR) + 0.1 * mean * R.T @ R, np.eye(D), atol=1e-12
    )


SINGULAR = {
    "a constant feature": np.column_stack([X, np.ones(N)]),
    "a feature twice": np.column_stack([X, X[:, 0]]),
    "a feature of the classes": np.column_stack([X, Y]),
    "all alike": np.column_stack([X[:, :1], np.zeros((N, 2))]),
}


@pytest.mark.parametrize("samples", SINGULAR.values(), ids=SINGULAR)
def test_singular_scatter_needs_a_ridge(samples):
    for make in (
        lambda **ridge: problems.dml_eig(samples, SIMILAR, DISSIMILAR, MU, **ridge),
        lambda **ridge: problems.lmnn_eig(samples, SIMILAR, TRIPLETS, GAMMA, MU, **ridge),
    ):
        with pytest.raises(ValueError, match=r"X_S of the similar pairs is singular.*ridge=1e-3"):
            make()
        problem = make(ridge=1e-3)
        assert gm.minimize(problem, tol=1e-4).certificate.relative_gap <= 1e-4


# --- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf, "1"])
def test_rejects_lam_that_is_not_positive(lam):
    with pytest.raises(ValueError, match="lam must be a finite number above 0"):
        problems.lmnn(X, Y, K, lam)
    with pytest.raises(ValueError, match="lam must be a finite number above 0"):
        problems.triplets(X, TRIPLETS, lam, 0.4)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, np.nan, "half"])
def test_rejects_gamma_outside_its_range(gamma):
    with pytest.raises(ValueError, match="gamma must be between 0 and 1"):
        problems.lmnn_eig(X, SIMILAR, TRIPLETS, gamma, MU)


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan])
def test_rejects_mu_that_is_not_positive(mu):
    for make in (
        lambda: problems.triplets(X, TRIPLETS, LAM, mu),
        lambda: problems.dml_eig(X, SIMILAR, DISSIMILAR, mu),
        lambda: problems.lmnn_eig(X, SIMILAR, TRIPLETS, GAMMA, mu),
    ):
        with pytest.raises(ValueError, match="mu must be a finite number above 0"):
            make()


@pytest.mark.parametrize("ridge", [-1.0, np.nan])
def test_rejects_negative_ridge(ridge):
    with pytest.raises(ValueError, match="ridge must be a finite number"):
        problems.dml_eig(X, SIMILAR, DISSIMILAR, MU, ridge=ridge)


BAD_SAMPLES = {
    "NaN": (np.where(X > 2, np.nan, X), "NaN"),
    "one dimension": (X[:, 0], "2D"),
    "one sample": (X[:1], "minimum of 2"),
}


@pytest.mark.parametrize(("samples", "message"), BAD_SAMPLES.values(), ids=BAD_SAMPLES)
def test_rejects_bad_samples(samples, message):
    for make in (
        lambda: problems.lmnn(samples, Y, K, LAM),
        lambda: problems.triplets(samples, TRIPLETS, LAM, 0.4),
        lambda: problems.dml_eig(samples, SIMILAR, DISSIMILAR, MU),
        lambda: problems.lmnn_eig(samples, SIMILAR, TRIPLETS, GAMMA, MU),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_rejects_bad_constraints():
    for triplets, message in (
        ([[0, 1, N]], "outside 0"),
        ([[0, 1, 0]], "three different points"),
        (SIMILAR, "triplets"),
    ):
        with pytest.raises(ValueError, match=message):
            problems.triplets(X, triplets, LAM, 0.4)
    with pytest.raises(ValueError, match="joins a point to itself"):
        problems.dml_eig(X, SIMILAR, [[3, 3]], MU)
    with pytest.raises(ValueError, match="pairs"):
        problems.dml_eig(X, [[0, -1]], DISSIMILAR, MU)
    with pytest.raises(ValueError, match="inconsistent"):
        problems.lmnn(X, Y[:-1], K, LAM)
    with pytest.raises(ValueError, match="too few for 8 neighbours"):
        problems.lmnn(X, Y, 8, LAM)


def test_lmnn_rejects_too_many_triplets(monkeypatch):
    monkeypatch.setattr(local_metric, "MOST_TRIPLETS", len(all_impostors()) - 1)
    with pytest.raises(ValueError, match=r"432 triplets, too many.*gramian\.metric\.LMNN"):
        problems.lmnn(X, Y, K, LAM)
    monkeypatch.setattr(local_metric, "MOST_TRIPLETS", len(all_impostors()))
    assert problems.lmnn(X, Y, K, LAM).objective.map.size == 432


def test_targets_of_lmnn_are_the_nearest_of_the_class():
    near = same_class_neighbors(X, Y, K)
    assert {(i, j) for i, j, _ in all_impostors()} == {
        (i, int(j)) for i in range(N) for j in near[i]
    }
