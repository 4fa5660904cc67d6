"""Dual vectors that are not those of a point: repaired ones, and means of them."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.solvers.repair import repaired


def completion(seed):
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((30, 20)) < 0.4)
    values = (rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)))[i, j]
    return problems.nuclear_completion(i, j, values, (30, 20), 1.0, ridge=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_a_repaired_dual_vector_gives_a_true_bound_that_is_no_worse_near_the_optimum(seed):
    problem, rng = completion(seed), np.random.default_rng(seed)
    best = gm.minimize(problem, tol=1e-9)
    near = best.factor + 1e-3 * rng.normal(size=best.factor.shape)
    image = problem.objective.image(near)
    w = problem.objective.dual(repaired(problem.objective, image, rng))
    own, mended = gm.certify(problem, near), gm.certify(problem, near, dual=w)
    for certificate in (own, mended):
        assert certificate.lower_bound <= best.value * (1 + 1e-9)
    assert mended.gap <= own.gap


def test_the_dual_vector_of_an_unfolding_certifies_it_again():
    rng = np.random.default_rng(0)
    angle = np.sort(rng.uniform(0, 3, 60))
    points = np.column_stack([np.cos(angle), np.sin(angle), rng.uniform(0, 1, 60)])
    edges = np.array([(i, j) for i in range(60) for j in range(i + 1, min(i + 5, 60))])
    D = np.sum((points[edges[:, 0]] - points[edges[:, 1]]) ** 2, axis=1)
    problem = problems.mvu(edges, D, 60, 0.1)
    result = gm.minimize(problem, "whitened", tol=1e-4)
    assert result.status is gm.Status.CONVERGED
    assert result.dual is not None
    again = gm.certify(problem, result.factor, dual=result.dual)
    assert again.relative_gap <= 2e-4


def test_a_dual_vector_that_makes_no_sense_is_refused():
    problem = completion(0)
    with pytest.raises(ValueError, match="finite numbers, got shape"):
        gm.certify(problem, np.zeros((50, 1)), dual=[1.0, 2.0])
    quadratic = problems.quadratic(np.eye(3), None, np.eye(3))
    with pytest.raises(ValueError, match="has no dual vectors"):
        gm.certify(quadratic, np.eye(3), dual=np.ones(3))
