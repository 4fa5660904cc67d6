"""L-BFGS on a square factor of scaled columns: what `auto` begins with where terms are many."""

import numpy as np
import pytest

import gramian as gm
from gramian.methods.base import Settings
from gramian.methods.lbfgs import descend
from gramian.methods.square import EIGENVALUE_SHIFT, filled, lean, suits
from gramian.metric._impostors import _places
from gramian.objectives import Composite
from gramian.problem import Problem
from gramian.problems.local_metric import lmnn

rng = np.random.default_rng(0)
D = 6
Y = np.arange(90) % 3
X = rng.standard_normal((90, D)) * np.linspace(1.0, 2.0, D)
X[:, :2] += 2.0 * np.column_stack([Y == 0, Y == 1])


@pytest.fixture(scope="module")
def problem():
    return lmnn(X, Y, 2, 1.0)


@pytest.fixture(scope="module")
def best(problem):
    return gm.minimize(problem, "staircase", tol=1e-9)


def run(problem, **options):
    return gm.minimize(problem, init=np.eye(D), **options)


@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-7])
def test_the_optimum_within_the_tolerance(problem, best, tol):
    assert suits(problem, np.eye(D))
    found = run(problem, tol=tol)
    assert found.status.converged and found.certificate.relative_gap <= tol
    assert found.certificate.lower_bound <= best.value * (1 + 1e-9)
    assert best.value * (1 - 1e-9) <= found.value <= best.value * (1 + tol)


def test_a_start_of_low_rank_grows_and_the_answer_is_lean(problem, best):
    found = gm.minimize(problem, init=np.eye(D)[:, :1], tol=1e-5)
    assert found.value == pytest.approx(best.value, rel=1e-5)
    assert found.factor.shape[1] <= best.factor.shape[1] + 1


def test_optimal_start_is_returned(problem):
    first = run(problem, tol=1e-5)
    again = gm.minimize(problem, init=first.factor, tol=1e-5)
    assert len(again.history.records) == 1 and np.array_equal(again.factor, first.factor)


def test_float32_steps_end_with_a_certificate_in_float64(problem, best):
    found = run(problem, tol=1e-5, dtype="float32")
    assert found.factor.dtype == np.float64 and found.certificate.relative_gap <= 1e-5
    assert found.value == pytest.approx(best.value, rel=1e-5)


def test_finds_zero_optimum(problem):
    steep = Problem(Composite(problem.objective.map, problem.objective.loss, C=1e6))
    found = run(steep, tol=1e-4)
    assert found.status.converged and not np.any(found.factor)


def test_filled_has_orthogonal_columns_and_adds_the_floor():
    L = rng.standard_normal((D, 2))
    root, sizes = filled(L)
    gram = root.T @ root
    assert np.allclose(gram, np.diag(sizes**2))
    extra = root @ root.T - L @ L.T
    assert np.allclose(extra, EIGENVALUE_SHIFT * np.sum(L * L) / D * np.eye(D))


def test_lean_drops_only_negligible_columns(problem):
    strong = np.column_stack([np.eye(D), 1e-9 * np.ones((D, 2))])
    assert lean(problem, strong, 1e-6).factor.shape[1] == D
    assert lean(problem, np.diag([1.0, 1, 1, 1, 1, 1e-8]), 1e-6).factor.shape[1] == D - 1


def test_not_without_a_start_nor_in_a_slice_nor_with_few_terms(problem):
    assert not suits(problem, np.zeros((D, 0)))
    bounded = Problem(problem.objective, gm.Spectrahedron(1.0))
    assert not suits(bounded, np.eye(D))
    few = gm.problems.triplets(X, [[0, 3, 1], [1, 4, 2]], lam=1.0, mu=0.1)
    assert not suits(few, np.eye(D))


def test_scales_change_the_way_and_not_the_end(problem, best):
    settings = Settings(None, 1e-9, np.random.default_rng(0))
    rules = {"iterations": 300, "tol": 1e-8}
    plain = descend(problem.objective, np.eye(D), settings, **rules)
    scaled = descend(problem.objective, np.eye(D), settings, scales=np.linspace(1, 3, D), **rules)
    values = [problem.value(L) for L in (plain, scaled)]
    assert values == pytest.approx([best.value] * 2, rel=1e-7)


def test_who_watches_can_end_a_descent(problem):
    seen = []

    def watch(image):
        seen.append(image)
        return len(seen) == 3

    settings = Settings(None, 1e-9, np.random.default_rng(0))
    descend(problem.objective, np.eye(D), settings, iterations=50, watch=watch)
    assert len(seen) == 3


def test_places_are_those_of_nonzero():
    marks = rng.random((7, 5)) < 0.3
    for mine, known in zip(_places(marks), np.nonzero(marks), strict=True):
        assert np.array_equal(mine, known)
