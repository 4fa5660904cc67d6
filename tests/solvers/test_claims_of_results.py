"""What every result must keep, on data of extreme scales."""

from dataclasses import replace

import numpy as np
import pytest

import gramian as gm
from gramian import problems


def tight_graph(seed):
    """A connected graph of 8 to 23 points whose squared distances are far from the weight ν."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 24))
    points = rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(-8, 2)
    nu = 10.0 ** rng.uniform(-4, 4)
    if seed % 4 == 0:
        edges = np.array([(i, j) for i in range(n) for j in (i + 1, i + 2) if j < n])
        return problems.mvu(edges, np.zeros(len(edges)), n, nu)
    graph = gm.graph.neighbor_graph(points, 3, connect="mst")
    return problems.mvu(graph.edges, graph.sq_distances, n, nu)


@pytest.mark.parametrize("seed", range(12))
def test_a_connected_graph_is_never_unbounded(seed):
    result = gm.minimize(tight_graph(seed), time_limit=60)
    assert result.status is gm.Status.CONVERGED, result
    assert result.certificate.relative_gap <= 1e-6


def test_a_graph_of_two_parts_is_unbounded_with_its_ray():
    edges = np.array([(0, 1), (1, 2), (3, 4), (4, 5)])
    problem = problems.mvu(edges, np.full(4, 1e-9), 6, 1e-3)
    result = gm.minimize(problem)
    assert result.status is gm.Status.UNBOUNDED
    assert problem.value(1e8 * result.ray) < -1e3 * max(problem.scale, 1e-3)


@pytest.mark.parametrize("seed", [40, 42, 57])
def test_bilgo_does_not_end_above_its_start(seed):
    """F is 1e24 and more where its gradient overwhelms the values of F near 0."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(int(rng.integers(5, 25)), 3)) * 10.0 ** rng.uniform(-8, 8)
    graph = gm.graph.neighbor_graph(points, 3, connect="mst")
    nu = 10.0 ** rng.uniform(-6, 6)
    problem = problems.mvu(graph.edges, graph.sq_distances, len(points), nu)
    result = gm.minimize(problem, "bilgo", time_limit=0.5)
    assert result.value <= problem.scale * (1 + 1e-8)


@pytest.mark.parametrize("solver", ["auto", "projected-gradient", "lbfgs", "bilgo"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_terms_above_zero_has_no_value_below(solver, seed):
    """Fewer pairs than features of size 1e7: M may be very large where the scatter vanishes."""
    rng = np.random.default_rng(seed)
    X, y = 1e7 * rng.normal(size=(10, 18)), np.arange(10) % 2
    problem = problems.lmnn(X, y, 1, 10.0 ** rng.uniform(-3, 2))
    result = gm.minimize(problem, solver, time_limit=0.5)
    assert result.value >= 0
    again, small = problem.value(result.factor), 1e-12 * problem.scale
    assert again == pytest.approx(result.value, rel=1e-9, abs=small)
    assert result.value <= problem.scale * (1 + 1e-8)


def test_no_value_is_shown_where_there_is_no_optimum():
    apart = gm.minimize(problems.sdp(np.eye(2), [np.diag([1.0, 0.0])], [-1.0]))
    assert repr(apart) == "<Result of sdp by auto: INFEASIBLE>"
    falling = gm.minimize(problems.sdp(-np.eye(2), [np.diag([1.0, 0.0])], [1.0]))
    assert repr(falling) == "<Result of sdp by auto: UNBOUNDED>"
    for found in (apart, falling):
        for shown in (str(found), found._repr_html_()):
            assert "there is no optimal value; `ray` proves it" in shown and "F = " not in shown


def test_violation_is_shown_without_a_bound():
    problem = problems.sdp(np.eye(2), [np.diag([1.0, 0.0])], [1.0])
    certificate = replace(gm.minimize(problem).certificate, gap=None, violation=0.25)
    assert str(certificate).endswith(", violation 2.5e-01")
