"""Quadratics that are written out: optima of an independent model, true bounds, and the route."""

import numpy as np
import pytest

import gramian as gm
from gramian.domains import PSDCone, Spectrahedron
from gramian.linalg.cone_quadratic import cone_path
from gramian.linalg.svec import svec, symmetric_kron, triangle_size, with_square
from gramian.losses import Squared
from gramian.maps import Congruence, Entries, PairDistances
from gramian.objectives import Composite, GramQuadratic
from tests.conic import Term, conic_minimum

POINTS = 40


def waves(order, kind, pairs=150, seed=0):
    """Squares of distances or of entries of QYQᵀ, and the minimum by Clarabel."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((POINTS, order)))[0]
    i, j = rng.integers(POINTS, size=(2, pairs))
    i, j = i[i != j], j[i != j]
    targets = rng.uniform(-0.5, 1.0, i.size)
    linear = -1.0 if kind is PairDistances else 0.1
    map = Congruence(kind(np.column_stack([i, j]), POINTS), Q)
    objective = Composite(map, Squared(targets, weight=10.0), linear)

    def image(M):
        K = Q @ M @ Q.T
        return K[i, i] + K[j, j] - 2 * K[i, j] if kind is PairDistances else K[i, j]

    terms = [Term("squared", image, targets, 10.0)]
    return objective, lambda trace=None: conic_minimum(
        order, terms, linear * np.eye(order), trace=trace
    )


@pytest.mark.parametrize("kind", [PairDistances, Entries])
@pytest.mark.parametrize("order", [1, 4, 9])
@pytest.mark.parametrize("trace", [None, 3.0])
def test_the_optimum_is_that_of_the_model(kind, order, trace):
    objective, minimum = waves(order, kind)
    domain = PSDCone() if trace is None else Spectrahedron(trace)
    problem = gm.Problem(objective, domain)
    result = gm.minimize(problem, "primal-dual", tol=1e-9)
    assert result.status is gm.Status.CONVERGED
    assert result.value == pytest.approx(minimum(trace), rel=1e-6)
    assert result.certificate.lower_bound <= minimum(trace) + 1e-6 * abs(result.value)


@pytest.mark.parametrize("pairs", [120, 2000])
@pytest.mark.parametrize("kind", [PairDistances, Entries])
def test_auto_writes_small_squares_out(kind, pairs):
    """Fewer rows than unknowns, and many more; beside the staircase."""
    objective, _ = waves(18, kind, pairs)
    problem = gm.Problem(objective)
    result = gm.minimize(problem, tol=1e-8)
    other = gm.minimize(problem, "staircase", tol=1e-8)
    if other.status is gm.Status.CONVERGED:
        assert result.status is gm.Status.CONVERGED
        assert result.route[0] == "primal-dual"
        assert result.value == pytest.approx(other.value, rel=2e-8)
    else:
        assert result.status is other.status


def test_given_start_is_used_by_the_staircase():
    objective, _ = waves(9, Entries)
    first = gm.minimize(gm.Problem(objective), tol=1e-3)
    again = gm.minimize(gm.Problem(objective), tol=1e-8, init=first)
    assert again.route == ("staircase",)
    assert again.value <= first.value + 1e-12


def test_rejects_large_orders():
    rng = np.random.default_rng(0)
    map = Congruence(Entries([[0, 1]], 200), rng.standard_normal((200, 120)))
    with pytest.raises(ValueError, match="it accepts orders up to"):
        gm.minimize(gm.Problem(Composite(map, Squared(1.0), 1.0)), "primal-dual")


def test_auto_reports_unbounded_problem():
    """Distances with a trace to be gained, and a wave that no pair sees."""
    Q = np.eye(5)[:, :3]
    problem = gm.Problem(Composite(Congruence(PairDistances([[0, 1]], 5), Q), Squared(1.0), -1.0))
    assert gm.minimize(problem).status is gm.Status.UNBOUNDED


@pytest.mark.parametrize("order", [1, 2, 7])
def test_the_square_is_added_to_the_lower_triangle(order):
    rng = np.random.default_rng(order)
    P, H = rng.standard_normal((order, order)), rng.standard_normal((triangle_size(order),) * 2)
    P, H = P + P.T, H + H.T
    expected = np.tril(H + symmetric_kron(P, P))
    np.testing.assert_allclose(np.tril(with_square(H, P)), expected, atol=1e-12)


def test_gap_of_interior_point_decreases_to_that_of_the_optimum():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, triangle_size(6)))
    g = svec(np.eye(6)) - A.T @ rng.standard_normal(40)
    path = list(cone_path(A.T @ A, g, np.zeros(g.size)))

    def value(S):
        return 0.5 * np.sum((A @ svec(S)) ** 2) + g @ svec(S)

    for point in path:
        assert np.linalg.eigvalsh(point.S)[0] > 0
        assert value(point.S) >= value(path[-1].S) - 1e-9
    assert path[-1].gap < 1e-9 * path[0].gap


@pytest.mark.parametrize("slope", [0.7, -0.7, 0.0])
def test_one_feature_at_a_fixed_trace(slope):
    """Removing any direction changes nothing to first order, but the trace must remain."""
    objective = GramQuadratic(None, None, slope * np.eye(1))
    result = gm.minimize(gm.Problem(objective, Spectrahedron(3.0)), "primal-dual")
    assert result.status.converged
    np.testing.assert_allclose(result.value, 6.0 * slope, atol=1e-12)
    np.testing.assert_allclose(result.matrix(), [[3.0]])
