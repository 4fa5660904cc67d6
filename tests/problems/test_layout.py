"""The neighbour layout: formula, optimum and input validation."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient
from gramian.objectives.dense import value_dense
from gramian.reductions.attraction import attraction

N = 8
EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (0, 4)])
PAIRS = np.array([(i, j) for i in range(N) for j in range(i)])
WEIGHTS = np.linspace(0.2, 1.0, len(EDGES))


def distances(M, pairs):
    i, j = pairs.T
    return M[i, i] + M[j, j] - 2 * M[i, j]


def test_value_agrees_with_formula():
    L = np.random.default_rng(0).standard_normal((N, 3))
    M = L @ L.T
    problem = problems.neighbor_layout(EDGES, PAIRS, N, weights=WEIGHTS, repulsion=0.7, gravity=0.3)
    pushed = np.sum(np.log1p(1 / (0.01 + distances(M, PAIRS))))
    expected = WEIGHTS @ distances(M, EDGES) + 0.3 * np.trace(M) + 0.7 * pushed
    assert problem.value(L) == pytest.approx(expected)
    assert value_dense(problem.objective, M) == pytest.approx(expected)
    check_gradient(problem.objective)


def test_optimum_is_certified_and_has_low_rank():
    rng = np.random.default_rng(1)
    n = 300
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    pairs = np.column_stack([np.arange(n), (np.arange(n) + rng.integers(2, n - 1, n)) % n])
    problem = problems.neighbor_layout(ring, np.vstack([pairs, pairs[::-1] // 2 * 2 + [[0, 1]]]), n)
    reduction = attraction(problem)
    found = gm.minimize(reduction.problem, tol=1e-5)
    assert found.status is gm.Status.CONVERGED and found.rank < 30
    L = reduction.factor(found.factor)
    assert problem.value(L) == pytest.approx(found.value)
    for seed in range(5):
        other = L + 0.1 * np.random.default_rng(seed).standard_normal(L.shape)
        assert problem.value(other) >= found.certificate.lower_bound


def test_sparse_pencil_proof_is_valid():
    reduced = attraction(problems.neighbor_layout(EDGES, PAIRS, N, weights=WEIGHTS)).problem
    for seed in range(4):
        w = -np.random.default_rng(seed).uniform(0, 2, len(PAIRS))
        operator = reduced.objective.dual_operator(w)
        least = np.linalg.eigvalsh(operator.dense())[0]
        form = operator.form()
        size = 1e-6 * abs(least)
        assert form.above(least - size).definite and not form.above(least + size).definite


def test_bound_with_weights_of_different_scales():
    weights = np.geomspace(1e-6, 1e3, len(EDGES))
    problem = problems.neighbor_layout(EDGES, PAIRS, N, weights=weights, gravity=1e-4)
    reduction = attraction(problem)
    found = gm.minimize(reduction.problem, tol=1e-7)
    L = reduction.factor(found.factor)
    carried = reduction.certificate(found.certificate, L)
    assert carried.value == problem.value(L) and carried.relative_gap < 1e-6
    assert carried.lower_bound <= problem.value(L)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0]}, "expected a weight for each of 8 edges"),
        ({"weights": -WEIGHTS}, "weights.* is not a finite number"),
        ({"repulsion": 0}, "repulsion must be"),
        ({"gravity": np.inf}, "gravity must be"),
        ({"pairs": [[0, 0]]}, "joins a point to itself"),
        ({"edges": [[0, N]]}, "edges|pairs"),
    ],
)
def test_rejects_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        problems.neighbor_layout(**{"edges": EDGES, "pairs": PAIRS, "n": N} | arguments)


def test_attraction_does_not_apply_to_other_problems():
    assert attraction(problems.mvu(EDGES, np.ones(len(EDGES)), N, 0.1)) is None
    assert attraction(problems.top_eigen(np.eye(3))) is None


def test_each_pair_may_have_its_own_repulsion():
    L = np.random.default_rng(0).standard_normal((N, 3))
    c = np.linspace(0.0, 2.0, len(PAIRS))
    problem = problems.neighbor_layout(EDGES, PAIRS, N, weights=WEIGHTS, repulsion=c, gravity=0.3)
    pushed = c @ np.log1p(1 / (0.01 + distances(L @ L.T, PAIRS)))
    pulled = WEIGHTS @ distances(L @ L.T, EDGES) + 0.3 * np.sum(L * L)
    assert problem.value(L) == pytest.approx(pulled + pushed)
    with pytest.raises(ValueError, match="expected a repulsion for each of"):
        problems.neighbor_layout(EDGES, PAIRS, N, repulsion=c[1:])
    with pytest.raises(ValueError, match=r"repulsion\[0\] = -1.0 is no number"):
        problems.neighbor_layout(EDGES, PAIRS, N, repulsion=c - 1)
