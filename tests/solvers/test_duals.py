"""Dual vectors that are not those of a point: repaired ones, and means of them."""

import numpy as np
import pytest

import gramian as gm
from gramian import problems
from gramian.bounds import known_bound
from gramian.methods.pencil import PencilBounds
from gramian.methods.repair import repaired, repaired_along, spare_along
from gramian.objectives.pencil import whitening
from gramian.problem import Problem
from gramian.proofs import Bottom, lowest
from tests.slow import slow_except


def completion(seed):
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((30, 20)) < 0.4)
    values = (rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)))[i, j]
    return problems.nuclear_completion(i, j, values, (30, 20), 1.0, ridge=0.1)


@pytest.mark.parametrize("seed", slow_except(range(4), 0))
def test_repaired_dual_vector_gives_valid_bound_not_worse_near_the_optimum(seed):
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


def test_rejects_bad_dual_vector():
    problem = completion(0)
    with pytest.raises(ValueError, match="finite numbers, got shape"):
        gm.certify(problem, np.zeros((50, 1)), dual=[1.0, 2.0])
    quadratic = problems.quadratic(np.eye(3), None, np.eye(3))
    with pytest.raises(ValueError, match="has no dual vectors"):
        gm.certify(quadratic, np.eye(3), dual=np.ones(3))


def unfolding(n=300, tol=1e-2, share=1.0):
    """A problem of points in three dimensions, white, and the image of a multiple of a solution."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    graph = gm.graph.neighbor_graph(X, 5, connect="mst")
    D = graph.sq_distances / graph.sq_distances.mean()
    problem = gm.problems.mvu(graph.edges, D, n, 0.02)
    white = whitening(problem.objective)
    L = share * gm.minimize(problem, tol=tol, random_state=0).factor
    return problem, white, white.objective.image(white.coordinates(L))


def test_the_lowest_of_a_pencil_are_found_and_proved():
    _, white, image = unfolding()
    w = white.objective.dual(image)
    operator = white.objective.dual_operator(w)
    values, vectors = np.linalg.eigh(operator.dense())
    bottoms = PencilBounds(np.random.default_rng(0))
    form = operator.form()
    far = bottoms.look(form, float(np.abs(w).max()), 1e-12)
    assert far.value == pytest.approx(values[0], rel=1e-3)
    found = bottoms.look(form, float(np.abs(w).max()), 1e-12)  # from where the last one was
    assert found.value == pytest.approx(values[0], rel=1e-6)
    proof = bottoms.proved(form, found, 1e-12)
    assert proof.proved and 1.1 * values[0] <= proof.value <= values[0]
    V = white.coordinates(np.vstack([np.zeros((1, found.vectors.shape[1])), found.vectors]))
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-8)
    assert np.linalg.norm(V[:, :5].T @ vectors[:, :5]) ** 2 == pytest.approx(5, rel=1e-3)


@pytest.mark.slow
def test_spare_part_of_a_dual_vector_improves_the_bound():
    """At a fixed distance from the optimum: on the way there it depends on the point."""
    _, white, image = unfolding(tol=1e-6, share=0.999)
    even = Problem(white.objective)
    bounds = []
    values, V = np.linalg.eigh(white.objective.gradient(image).dense())
    V = np.ascontiguousarray(V[:, :20])
    spare = spare_along(image.factor, V, 1e-7)
    least = np.linalg.eigvalsh(image.factor @ image.factor.T - V @ spare @ V.T)[0]
    assert least >= -1e-6 * np.sum(image.factor**2)
    for part in (None, spare):
        moved = repaired_along(white.objective, image, V, part)
        w = white.objective.dual(moved)
        bottom = lowest(white.objective.dual_operator(w))
        bounds.append(known_bound(even, w, bottom).value)
    plain = known_bound(even, white.objective.dual(image), Bottom(float(values[0]), "")).value
    assert plain < bounds[0] < bounds[1] <= white.objective.value(image)
