"""MVU and RegMVU: formulas, duplicate edges and input validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient
from gramian.objectives import LowRankPlusIdentity
from gramian.objectives.dense import value_dense
from gramian.result import Status

rng = np.random.default_rng(3)
N, NU = 7, 0.4
EDGES = np.array([(0, 1), (1, 2), (3, 2), (3, 4), (5, 4), (5, 6), (6, 0), (1, 5)])
LENGTHS = rng.uniform(0.2, 2.0, len(EDGES))
H = np.eye(N) - 1 / N
LABELS = np.eye(3)[[0, 1, 1, 2, 0, 2, 1]]
KERNEL = rng.standard_normal((N, N))
KERNEL = KERNEL + KERNEL.T
L = rng.standard_normal((N, 3)) + 5.0
BASIS = rng.standard_normal((N, 4))
TARGETS = {
    "dense": (KERNEL, KERNEL),
    "list": (KERNEL.tolist(), KERNEL),
    "csr": (sp.csr_array(KERNEL), KERNEL),
    "operator": (aslinearoperator(KERNEL), KERNEL),
    "labels": (LowRankPlusIdentity(N, 0.0, LABELS), LABELS @ LABELS.T),
    "labels-and-identity": (
        LowRankPlusIdentity(N, 0.3, LABELS, np.array([1.0, -2.0, 0.5])),
        0.3 * np.eye(N) + (LABELS * [1.0, -2.0, 0.5]) @ LABELS.T,
    ),
    "number": (2.0, 2.0 * np.eye(N)),
}


def misfit(M, edges=EDGES, lengths=LENGTHS):
    return sum(
        (M[i, i] + M[j, j] - 2 * M[i, j] - length) ** 2
        for (i, j), length in zip(edges, lengths, strict=True)
    )


def check(problem, factor, expected):
    assert problem.value(factor) == pytest.approx(expected)
    assert value_dense(problem.objective, factor @ factor.T) == pytest.approx(expected)
    check_gradient(problem.objective)


def test_mvu_is_its_formula():
    M = L @ L.T
    problem = problems.mvu(EDGES, LENGTHS, N, NU)
    check(problem, L, misfit(M) - NU * np.trace(H @ M))
    assert problem.name == "mvu" and "tr(HM)" in problem.formula


@pytest.mark.parametrize(("target", "K"), TARGETS.values(), ids=TARGETS)
def test_colored_mvu_is_its_formula_for_every_kind_of_target(target, K):
    M = L @ L.T
    problem = problems.mvu(EDGES, LENGTHS, N, NU, target)
    check(problem, L, misfit(M) - NU * np.trace(H @ K @ H @ M))
    assert "tr(HKHM)" in problem.formula
    np.testing.assert_allclose(problem.objective.C.dense(), -NU * H @ K @ H, atol=1e-12)
    assert problem.objective.C.lower <= np.linalg.eigvalsh(-NU * H @ K @ H)[0] + 1e-12


@pytest.mark.parametrize("basis", [BASIS, BASIS.tolist(), sp.csr_array(BASIS)])
def test_reg_mvu_is_its_formula(basis):
    Y = L[:4] @ L[:4].T
    problem = problems.reg_mvu(basis, EDGES, LENGTHS, 30.0)
    check(problem, L[:4], 30.0 * misfit(BASIS @ Y @ BASIS.T) - np.trace(Y))
    assert problem.name == "reg_mvu" and problem.order == 4


def test_invariant_to_translation():
    problem = problems.mvu(EDGES, LENGTHS, N, NU)
    assert problem.value(L + 2.0) == pytest.approx(problem.value(L))


def test_duplicate_edges_are_counted_once():
    edges, lengths = np.vstack([EDGES, EDGES[:3, ::-1]]), np.append(LENGTHS, LENGTHS[:3])
    once, twice = problems.mvu(EDGES, LENGTHS, N, NU), problems.mvu(edges, lengths, N, NU)
    assert twice.value(L) == pytest.approx(once.value(L))
    assert twice.objective.map.size == len(EDGES)


def test_recovers_planar_points():
    """All distances of a planar set, ν → 0: the set itself, up to an isometry."""
    points = rng.standard_normal((N, 2))
    pairs = np.column_stack(np.triu_indices(N, 1))
    D = np.sum((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2, axis=1)
    result = gm.minimize(problems.mvu(pairs, D, N, 1e-6), "lbfgs", rank=2, max_iter=50)
    found = np.sum((result.factor[pairs[:, 0]] - result.factor[pairs[:, 1]]) ** 2, axis=1)
    np.testing.assert_allclose(found, D, rtol=1e-4)


def test_disconnected_graph_is_unbounded():
    result = gm.minimize(problems.mvu(EDGES[:3], LENGTHS[:3], N, NU), "lbfgs", rank=3)
    assert result.status is Status.UNBOUNDED


BAD = {
    "edges-shape": ({"edges": EDGES.ravel()}, r"edges must have shape \(p, 2\)"),
    "edges-range": ({"edges": EDGES + 1}, r"edges\[5\] = \[6, 7\] has an index outside 0..6"),
    "edges-floats": ({"edges": EDGES + 0.5}, "edges must be integers"),
    "edges-empty": ({"edges": np.empty((0, 2), int)}, "edges must not be empty"),
    "loop": ({"edges": EDGES * 0}, r"edges\[0\] = \[0, 0\] joins a point to itself"),
    "distances-shape": ({"sq_distances": LENGTHS[:-1]}, "one number for each of 8 edges"),
    "distances-nan": ({"sq_distances": LENGTHS * np.nan}, r"sq_distances\[0\] = nan is not finite"),
    "distances-sign": ({"sq_distances": 1.0 - np.arange(8)}, r"sq_distances\[2\] = -1.0 is neg"),
    "two-distances": (
        {"edges": EDGES[[0, 1, 2, 3, 4, 5, 6, 0]]},
        r"edges\[7\] = \[0, 1\] is given twice, with different distances",
    ),
    "nu-zero": ({"nu": 0.0}, "nu must be a finite number above 0, got 0.0"),
    "nu-nan": ({"nu": np.nan}, "nu must be a finite number above 0"),
    "nu-text": ({"nu": "auto"}, "nu must be a finite number above 0, got 'auto'"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_rejects_bad_input(change, message):
    arguments = {"edges": EDGES, "sq_distances": LENGTHS, "nu": NU} | change
    with pytest.raises(ValueError, match=message):
        problems.mvu(**arguments, n=N)
    with pytest.raises(ValueError, match=message):
        problems.reg_mvu(BASIS, **arguments)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (BASIS[:, 0], "2D array"),
        (BASIS * np.nan, "basis contains NaN"),
        (BASIS[:5], r"edges\[4\] = \[5, 4\] has an index outside 0..4"),
    ],
)
def test_a_basis_is_checked(basis, message):
    with pytest.raises(ValueError, match=message):
        problems.reg_mvu(basis, EDGES, LENGTHS, NU)


def test_a_target_and_an_order_are_checked():
    with pytest.raises(ValueError, match="target must be symmetric"):
        problems.mvu(EDGES, LENGTHS, N, NU, np.triu(KERNEL))
    with pytest.raises(ValueError, match="target has order 5, but the problem has order 7"):
        problems.mvu(EDGES, LENGTHS, N, NU, KERNEL[:5, :5])
    with pytest.raises(ValueError, match="n must be a positive integer"):
        problems.mvu(EDGES, LENGTHS, 0, NU)
