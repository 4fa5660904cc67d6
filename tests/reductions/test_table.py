"""Reductions × problems: equal F, equal optimum, and valid bounds on both sides.

The formulas of the reduced problems are written out here, and their optima are computed in another
way: by a conic model, or by a method in the original variable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp

import gramian as gm
from gramian import problems
from gramian.certificate import relative
from gramian.linalg.svec import smat
from gramian.losses import Squared
from gramian.maps import Entries, PairDistances, Stack
from gramian.maps.matrices import inner_products
from gramian.objectives import Composite
from gramian.objectives.quadratic_form import quadratic_form
from gramian.problem import Problem
from gramian.problems.kernel import npkl_to
from gramian.problems.local_metric import (
    dml_eig_whitened,
    lmnn_eig_whitened,
    lmnn_of_triplets,
    pair_scatter,
)
from gramian.reductions.attraction import attraction
from gramian.reductions.base import carried
from gramian.reductions.block_embedding import BlockEmbedding, balanced
from gramian.reductions.conic_scaling import conic_scaling
from gramian.reductions.floor import Floor
from gramian.reductions.graph_whitening import centred_whitening, graph_whitening
from gramian.reductions.merge import Merge
from gramian.reductions.parts import Components
from gramian.reductions.scatter_whitening import scatter_whitening
from gramian.reductions.slack import SlackRow
from gramian.reductions.span import Span, kernel_span, span_of
from gramian.reductions.units import Units
from gramian.reductions.waves import Waves
from tests.conic import Term, _Model, conic_minimum

RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Case:
    """A reduction, the reduced problem, and the original one."""

    name: str
    reduction: Any
    reduced: Problem
    F: Callable[[np.ndarray], float]
    """The original objective at L."""
    reference: Callable[[], float] | None
    """The original optimum."""
    whole: bool = True
    """Whether the reduced problem has the same optimum, not a larger one."""
    point: Callable[[np.ndarray], np.ndarray] = lambda Y: Y
    """Maps a random Y to a point at which both are compared."""

    @cached_property
    def optimum(self) -> float:
        return self.reference()

    def random(self, seed: int) -> np.ndarray:
        """A factor of the reduced problem in its domain."""
        rng, trace = np.random.default_rng(seed), self.reduced.domain.trace
        Y = self.point(rng.standard_normal((self.reduced.order, 3)))
        return Y if trace is None else Y * np.sqrt(trace / np.sum(Y * Y))

    def __str__(self) -> str:
        return self.name


def distances(M: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """d_M of the rows of the identity."""
    i, j = pairs.T
    return M[i, i] + M[j, j] - 2 * M[i, j]


def among(X: np.ndarray, pairs: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """M ↦ d_M of pairs of samples."""
    D = X[pairs[:, 0]] - X[pairs[:, 1]]
    return lambda M: np.einsum("ei,ij,ej->e", D, M, D)


def margins(X: np.ndarray, triplets: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """M ↦ d_M(i, l) − d_M(i, j)."""
    far, near = among(X, triplets[:, [0, 2]]), among(X, triplets[:, :2])
    return lambda M: far(M) - near(M)


# --- completion ------------------------------------------------------------------------


def block_embedding() -> Case:
    m, n, lam = 5, 4, 0.3
    i, j = np.divmod(np.arange(m * n)[RNG.random(m * n) < 0.7], n)
    T, a, b = RNG.standard_normal(i.size), RNG.uniform(0.5, 2, m), RNG.uniform(0.5, 2, n)

    def F(L: np.ndarray) -> float:
        U = L[:m] @ L[m:].T
        norm = np.linalg.norm(np.sqrt(a)[:, None] * U * np.sqrt(b), "nuc")
        return 0.5 * float(np.sum((U[i, j] - T) ** 2)) + lam * float(norm)

    def optimum() -> float:
        """Proximal gradient on A^½UB^½ itself."""
        s = (a[i] * b[j]) ** -0.5
        V, step = np.zeros((m, n)), 1 / float(np.max(s * s))
        for _ in range(5000):
            V[i, j] -= step * s * (s * V[i, j] - T)
            left, values, right = np.linalg.svd(V, full_matrices=False)
            V = left * np.maximum(values - step * lam, 0.0) @ right
        return 0.5 * float(np.sum((s * V[i, j] - T) ** 2)) + lam * float(np.linalg.norm(V, "nuc"))

    reduced = problems.nuclear_completion(i, j, T, (m, n), lam, row_scale=a, col_scale=b)
    point = lambda Y: balanced(Y, m)  # noqa: E731
    return Case("block embedding", BlockEmbedding(a, b), reduced, F, optimum, point=point)


# --- graphs ----------------------------------------------------------------------------

N, NU = 13, 0.2
PLACES = RNG.standard_normal((N, 3))
EDGES = np.array([(i, j) for i in range(N) for j in range(i) if i - j == 1 or RNG.random() < 0.3])
D = 0.5 * np.sum((PLACES[EDGES[:, 0]] - PLACES[EDGES[:, 1]]) ** 2, axis=1)
H = np.eye(N) - 1 / N


def unfolded(C: np.ndarray = -NU * H) -> float:
    return conic_minimum(N, [Term("squared", lambda M: distances(M, EDGES), D)], C)


def whitened_graph() -> Case:
    problem = problems.mvu(EDGES, D, N, NU)
    white = graph_whitening(problem)
    return Case("graph whitening of MVU", white, white.problem, problem.value, unfolded)


def whitened_colored() -> Case:
    K = PLACES @ PLACES.T
    problem = problems.mvu(EDGES, D, N, NU, K)
    white = graph_whitening(problem)
    optimum = lambda: unfolded(-NU * H @ K @ H)  # noqa: E731
    return Case("graph whitening of colored MVU", white, white.problem, problem.value, optimum)


def pulled_together() -> Case:
    pairs = np.array([(i, j) for i in range(N) for j in range(i) if (i + j) % 2])
    problem = problems.neighbor_layout(EDGES, pairs, N, weights=D, gravity=0.05)
    reduction = attraction(problem)

    def optimum() -> float:
        """L-BFGS over all of L, at places as they are."""

        def F(x: np.ndarray) -> tuple[float, np.ndarray]:
            image = problem.objective.image(x.reshape(N, N))
            return problem.objective.value(image), problem.objective.gradient_factor(image).ravel()

        start = np.random.default_rng(0).standard_normal(N * N)
        return float(minimize(F, start, jac=True, options={"gtol": 1e-9, "maxiter": 5000}).fun)

    return Case("attraction of a layout", reduction, reduction.problem, problem.value, optimum)


def units() -> Case:
    problem, u = problems.mvu(EDGES, D, N, NU), float(D.mean())
    reduction = Units(u)
    reduced = problems.mvu(EDGES, reduction.lengths(D), N, NU / u)
    return Case("units of MVU", reduction, reduced, problem.value, unfolded)


def waves() -> Case:
    P = np.zeros((N, N))
    for i, j in EDGES:
        P[[i, j, i, j], [i, j, j, i]] += [1, 1, -1, -1]
    Q = np.linalg.eigh(P)[1][:, 1:5]
    problem = problems.mvu(EDGES, D, N, NU)
    reduced = problems.reg_mvu(Q, EDGES, D, 1 / NU)
    return Case(
        "waves of MVU", Waves(Q), reduced, lambda L: problem.value(L) / NU,
        lambda: unfolded() / NU, whole=False,
    )  # fmt: skip


def merge() -> Case:
    P = np.diag(np.full(8, 2.0)) - np.roll(np.eye(8), 1, 0) - np.roll(np.eye(8), -1, 0)
    groups = np.array([0, 0, 1, 2, 2, 2, 3, 4])
    pairs = np.array([(0, 1), (3, 4), (4, 5), (0, 6), (2, 7), (1, 5)])
    entries = np.vstack([np.column_stack([np.arange(8)] * 2), pairs])
    targets = np.append(np.ones(8), [1.0, 1, 1, 0, 0, 0])
    weights = RNG.uniform(1, 2, targets.size)
    reduction = Merge(groups)
    reduced = npkl_to(reduction.summed(P), *reduction.entries(entries, targets, weights))
    i, j = entries.T
    optimum = lambda: conic_minimum(  # noqa: E731
        8, [Term("squared", lambda M: M[i, j], targets, weights)], P
    )
    given = npkl_to(P, entries, targets, weights)
    return Case("merging of NPKL", reduction, reduced, given.value, optimum, whole=False)


# --- metrics ---------------------------------------------------------------------------

SAMPLES = RNG.standard_normal((9, 4)) * [1.0, 2.0, 0.5, 1.5]
TRIPLETS = np.array([RNG.choice(9, 3, replace=False) for _ in range(20)])
SIMILAR = np.unique(TRIPLETS[:, :2], axis=0)
FAR = np.array([(i, j) for i in range(9) for j in range(i)])[::3]
LAM, MU, GAMMA, RHO = 0.7, 0.3, 0.4, 0.6


def whitened_scatter() -> Case:
    scatter = pair_scatter(SAMPLES, SIMILAR)
    white = scatter_whitening(scatter)
    reduced = lmnn_of_triplets(white.samples(SAMPLES), SIMILAR, TRIPLETS, LAM, pull=1.0)
    given = lmnn_of_triplets(SAMPLES, SIMILAR, TRIPLETS, LAM)
    term = Term("squared-hinge", margins(SAMPLES, TRIPLETS), 1.0, LAM)
    optimum = lambda: conic_minimum(4, [term], scatter)  # noqa: E731
    return Case("scatter whitening of LMNN", white, reduced, given.value, optimum)


WIDE = RNG.standard_normal((5, 9))
OF_WIDE = np.array([RNG.choice(5, 3, replace=False) for _ in range(12)])


def widely() -> float:
    term = Term("smoothed-hinge", margins(WIDE, OF_WIDE), 1.0, LAM, MU)
    return conic_minimum(9, [term], np.eye(9))


def linear_span() -> Case:
    span = span_of(WIDE, center=True)
    reduced = problems.triplets(span.X, OF_WIDE, LAM, MU)
    given = problems.triplets(WIDE, OF_WIDE, LAM, MU)
    return Case("span of triplets", span, reduced, given.value, widely)


def feature_span() -> Case:
    """The same with a linear kernel: L is of weights of the samples."""
    rows, W = kernel_span(WIDE @ WIDE.T, center=False)
    given = problems.triplets(WIDE, OF_WIDE, LAM, MU)
    reduced = problems.triplets(rows, OF_WIDE, LAM, MU)
    F = lambda L: given.value(WIDE.T @ L)  # noqa: E731
    return Case("span of a kernel of triplets", Span(W, rows, False), reduced, F, widely)


def alignment() -> Case:
    """KTA with ‖M‖², which is 0 outside of the span."""
    y, options = np.array([0, 1, 1, 0, 2]), {"regularizer": "frobenius"}
    Y = np.eye(3)[y]
    terms = [
        Term("squared", lambda M: WIDE @ M @ WIDE.T, (Y @ Y.T).ravel(), LAM),
        Term("squared", lambda M: M),
    ]
    span = span_of(WIDE, center=False)
    reduced, given = (problems.kta(X, y, LAM, **options) for X in (span.X, WIDE))
    return Case("span of KTA", span, reduced, given.value, lambda: conic_minimum(9, terms))


def floor() -> Case:
    plain = among(SAMPLES, FAR)(np.eye(4) / 4)
    reduction, given = Floor(RHO), dml_eig_whitened(SAMPLES, FAR, MU)
    reduced = dml_eig_whitened(reduction.samples(SAMPLES), FAR, MU, offset=RHO * plain)
    above = lambda M: (1 - RHO) * M + RHO * np.trace(M) / 4 * np.eye(4)  # noqa: E731
    term = Term("soft-min", lambda M: among(SAMPLES, FAR)(above(M)), mu=MU)
    optimum = lambda: conic_minimum(4, [term], trace=1.0)  # noqa: E731
    return Case("floor of DML-eig", reduction, reduced, given.value, optimum)


def slack() -> Case:
    reduced = lmnn_eig_whitened(SAMPLES, TRIPLETS, GAMMA, MU)
    image = margins(SAMPLES, TRIPLETS)

    def F(L: np.ndarray) -> float:
        """At the best ξ: the least margins are raised to one level."""
        z, budget = image(L @ L.T), (1 - GAMMA * np.sum(L * L)) / (1 - GAMMA)
        level = brentq(lambda t: np.sum(np.maximum(t - z, 0)) - budget, z.min(), z.max() + budget)
        return MU * float(logsumexp(-np.maximum(z, level) / MU))

    return Case("slack of LMNN-eig", SlackRow(GAMMA), reduced, F, lambda: with_slack(image))


def with_slack(image: Callable[[np.ndarray], np.ndarray]) -> float:
    """min μ ln Σ exp(−(ξ + z)/μ) with γ tr S + (1 − γ) 1ᵀξ = 1, ξ ≥ 0."""
    clarabel = pytest.importorskip("clarabel")
    model = _Model(4)
    z, trace = model.of_M(image), model.of_M(lambda M: np.array([np.trace(M)]))[0]
    xi, t, p = model.variables(len(z)), model.variables(1), model.variables(len(z))
    model.nonnegative(xi)
    budget = (1 - GAMMA) * xi.sum(axis=0)
    budget[: trace.size] += GAMMA * trace
    model.constrain(budget[None], [-1.0], "zero")
    model.add_linear(MU * t[0])
    model.nonnegative(-p.sum(axis=0)[None], 1.0)
    for e in range(len(z)):
        raised = np.pad(z[e], (0, xi.shape[1] - z.shape[1])) + xi[e]
        exponent = -np.pad(raised / MU, (0, t.shape[1] - xi.shape[1])) - t[0]
        model.exponential(exponent, 0.0, p[e])
    return model.minimum(clarabel)


# --- conic solvers ---------------------------------------------------------------------


def scaled_for_cones() -> Case:
    """Numbers of very different sizes, and F̂ as a composite of its rows."""
    pairs = np.array([(i, j) for i in range(5) for j in range(i + 1)])
    sizes = np.logspace(-2, 2, 5)
    targets = np.where(pairs[:, 0] == pairs[:, 1], 1.0, 0.3) * np.prod(sizes[pairs], axis=1)
    weights = 1 / np.prod(sizes[pairs], axis=1) ** 2
    C = np.diag(0.1 / sizes**2)
    given = Problem(Composite(Entries(pairs, 5), Squared(targets, weight=weights), C, constant=2.5))
    scaled = conic_scaling(quadratic_form(given.objective), None)
    B = np.asarray(scaled.form.B.toarray() if sp.issparse(scaled.form.B) else scaled.form.B)
    rows = sp.csr_array(np.array([smat(row, 5).ravel() for row in B]))
    reduced = Problem(
        Composite(inner_products(rows, 5), Squared(scaled.form.t), smat(scaled.form.c, 5))
    )
    i, j = pairs.T
    term = Term("squared", lambda M: (sizes[:, None] * M * sizes)[i, j], targets, weights)
    optimum = lambda: 2.5 + conic_minimum(5, [term], sizes[:, None] * C * sizes)  # noqa: E731
    return Case("conic scaling of entries", scaled, reduced, given.value, optimum)


CASES = [
    make()
    for make in (
        block_embedding,
        whitened_graph,
        whitened_colored,
        pulled_together,
        units,
        waves,
        merge,
        whitened_scatter,
        linear_span,
        feature_span,
        alignment,
        floor,
        slack,
        scaled_for_cones,
    )
]
TABLE = pytest.mark.parametrize("case", CASES, ids=str)


@TABLE
@pytest.mark.parametrize("seed", range(2))
def test_values_agree(case, seed):
    Y = case.random(seed)
    L = case.reduction.factor(Y)
    carried = case.reduction.certificate(gm.certify(case.reduced, Y), L)
    assert carried.value == pytest.approx(case.F(L), rel=1e-9)
    assert carried.trace == pytest.approx(np.sum(L * L))


@TABLE
def test_complementarity_agrees(case):
    Y, step = case.random(4), 1e-5
    L = case.reduction.factor(Y)
    told = case.reduction.certificate(gm.certify(case.reduced, Y), L).complementarity
    if isinstance(case.reduction, Floor | SlackRow):
        assert np.isnan(told)
        return
    ends = [case.F(np.sqrt(1 + h) * L) for h in (step, -step)]
    assert told == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


@TABLE
def test_coordinates_invert_factor(case):
    L = case.reduction.factor(case.random(5))
    Y = case.reduction.coordinates(L)
    again = case.reduction.factor(Y)
    assert case.F(again) == pytest.approx(case.F(L), rel=1e-7)
    found = gm.certify(case.reduced, Y)
    assert case.reduction.certificate(found, again).value == pytest.approx(case.F(L), rel=1e-7)


@TABLE
def test_optima_agree(case):
    found = gm.minimize(case.reduced, tol=1e-8, random_state=0)
    L = case.reduction.factor(found.factor)
    value = case.reduction.certificate(found.certificate, L).value
    assert value == pytest.approx(case.F(L), rel=1e-7)
    if case.whole:
        assert value == pytest.approx(case.optimum, rel=2e-6, abs=1e-8)
    else:
        assert value >= case.optimum - 1e-8 * abs(case.optimum)


@TABLE
@pytest.mark.parametrize("tol", [0.3, 1e-6])
def test_inverted_certificate_is_valid(case, tol):
    found = gm.minimize(case.reduced, tol=tol, random_state=0)
    for Y in (found.factor, case.random(8)):
        L = case.reduction.factor(Y)
        inverted = case.reduction.certificate(gm.certify(case.reduced, Y), L)
        if not case.whole:
            assert inverted.gap is None and inverted.relative_gap is None
            continue
        sure = 1e-7 * abs(case.optimum)
        assert inverted.lower_bound <= case.optimum + sure
        assert inverted.gap >= case.F(L) - case.optimum - sure


def test_identity_outside_of_the_span():
    """‖M − I‖² of KTA: M is the identity outside of the span of the samples."""
    y = np.array([0, 1, 1, 0, 2])
    span = span_of(WIDE, center=False)
    others = np.linalg.svd(WIDE)[2][5:].T
    Y = RNG.standard_normal((span.X.shape[1], 3))
    L = np.hstack([span.factor(Y), others])
    reduced, given = (problems.kta(X, y, LAM) for X in (span.X, WIDE))
    assert given.value(L) == pytest.approx(reduced.value(Y))
    found = gm.minimize(reduced, tol=1e-8)
    assert found.value == pytest.approx(gm.minimize(given, tol=1e-8).value, rel=1e-7)


def test_parts_are_solved_separately():
    labels = np.array([0, 1, 0, 1, 1, 0, 0])
    parts = Components(labels)
    ring = lambda n: np.array([(i, (i + 1) % n) for i in range(n)])  # noqa: E731
    each = [problems.mvu(ring(n), np.linspace(1, 2, n), n, NU) for n in (4, 3)]
    found = [gm.minimize(problem, tol=1e-8) for problem in each]
    L = parts.factor([result.factor for result in found])
    certificate = parts.certificate([result.certificate for result in found], L)
    rows = parts.coordinates(L)
    values = [problem.value(part) for problem, part in zip(each, rows, strict=True)]
    assert certificate.value == pytest.approx(sum(values))
    assert certificate.trace == pytest.approx(np.sum(L * L))
    optimum = sum(
        conic_minimum(
            n,
            [Term("squared", lambda M, n=n: distances(M, ring(n)), np.linspace(1, 2, n))],
            -NU * (np.eye(n) - 1 / n),
        )
        for n in (4, 3)
    )
    assert certificate.lower_bound <= optimum + 1e-8
    assert certificate.gap >= certificate.value - optimum - 1e-8


def test_whitening_with_weight_on_the_centre():
    """C1 = c1 with c > 0: the centre is at the origin, where the term is 0."""
    C = -NU * H + 0.5 * np.ones((N, N)) / N
    objective = Composite(Stack([PairDistances(EDGES, N)]), Squared(D), C)
    white = centred_whitening(objective)
    Y = RNG.standard_normal((N - 1, 3))
    L = white.factor(Y)
    assert Problem(white.objective).value(Y) == pytest.approx(Problem(objective).value(L))
    np.testing.assert_allclose(L.mean(axis=0), 0.0, atol=1e-12)


def test_whitening_does_not_apply():
    assert graph_whitening(problems.top_eigen(np.eye(N))) is None
    assert graph_whitening(problems.mvu(EDGES[EDGES[:, 0] < 6], D[EDGES[:, 0] < 6], N, NU)) is None


def test_certificate_of_a_multiple_plus_a_constant():
    """F = 2F̃ − 7: the gap doubles, and is relative to the size of F."""
    A = np.diag([3.0, 2.0, -1.0])
    found = gm.certify(gm.problems.nearest(A), np.eye(3, 1))
    moved = carried(found, np.eye(3, 1), scale=2.0, constant=-7.0)
    assert moved.value == pytest.approx(2 * found.value - 7)
    assert moved.scale == pytest.approx(abs(2 * found.scale - 7))
    assert moved.gap == pytest.approx(2 * found.gap)
    assert moved.relative_gap == pytest.approx(relative(moved.gap, moved.value, moved.scale))
