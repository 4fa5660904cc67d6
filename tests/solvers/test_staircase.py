"""The staircase beyond the table: large orders, high ranks, slices, and what it promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_swiss_roll
from sklearn.neighbors import kneighbors_graph

import gramian as gm
from gramian import problems
from gramian.graph import neighbor_graph, normalized_laplacian
from gramian.losses import SmoothedHinge, SoftMin, Squared
from gramian.maps import Entries, PairDistances, triplet_margins
from gramian.methods import staircase_bounds, staircase_steps
from gramian.methods.base import Settings
from gramian.methods.columns import compress
from gramian.methods.cone_search import MAX_COLUMNS
from gramian.methods.lowest_eigenpairs import estimated_eigenpairs, factored_eigenpairs
from gramian.methods.staircase import _StaircaseRun
from gramian.methods.staircase_bounds import SLOW_CERTIFICATES
from gramian.methods.staircase_steps import MIN_LARGE_ORDER
from gramian.objectives import Composite
from gramian.objectives.curvature import row_preconditioner
from gramian.proofs import EXACT_ORDER
from tests.cases import BY_NAME, psd, symmetric
from tests.slow import slow


def noisy_entries(n, rank, count, seed=0, C=2.0):
    """Σ (M_ij − T_ij)² + c tr M over the diagonal and `count` more entries of a noisy T."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, rank))
    pairs = rng.integers(0, n, (count, 2))
    pairs = np.vstack([pairs, np.column_stack([np.arange(n)] * 2)])
    target = np.sum(P[pairs[:, 0]] * P[pairs[:, 1]], axis=1)
    target += 0.1 * rng.standard_normal(target.size)
    return gm.Problem(Composite(Entries(pairs, n), Squared(target), C))


@pytest.fixture(scope="module")
def large():
    return noisy_entries(EXACT_ORDER + 100, 4, 20_000, C=20.0)


@pytest.fixture(scope="module")
def large_result(large):
    return gm.minimize(large, tol=1e-6)


@pytest.mark.slow
def test_a_large_order_is_certified_and_its_rank_found(large, large_result):
    assert large_result.status is gm.Status.CONVERGED
    assert large_result.certificate.relative_gap <= 1e-6
    assert large_result.rank < 20
    assert large.value(large_result.factor) == pytest.approx(large_result.value, rel=1e-10)
    other = gm.minimize(large, "lro", rank=30, tol=1e-7, max_iter=300, check=300)
    assert other.value >= large_result.certificate.lower_bound
    assert large_result.value <= other.value * (1 + 1e-6)


def test_a_warm_start_takes_a_fraction_of_the_rounds(large, large_result):
    again = gm.minimize(large, tol=1e-6, init=large_result)
    assert again.status is gm.Status.CONVERGED
    assert len(again.history) <= 2 < len(large_result.history)


@pytest.mark.parametrize("where", [slow("far"), "near"])
def test_the_estimated_ground_lies_below_the_true_one(large, large_result, where):
    """Beside the range of L, then joined to it: never above the smallest eigenvalue of ∇F."""
    rng = np.random.default_rng(1)
    factor = large_result.factor
    if where == "far":
        factor = factor + 0.3 * rng.standard_normal(factor.shape)
    below = _StaircaseRun(large, Settings(rank=None, tol=1e-6, rng=rng)).bounds
    image = large.objective.image(factor)
    truth = np.linalg.eigvalsh(large.objective.gradient(image).dense())[0]
    for steps in (20, 60, 200):
        eigenpairs = below.eigenpairs(image, steps)
        assert eigenpairs.bound <= truth + 1e-10
        assert eigenpairs.bound <= eigenpairs.hope


@pytest.mark.slow
def test_a_start_that_passed_the_lowest_eigenvector_by_does_not_end_the_run(large, large_result):
    """From an eigenvector in the middle a few Lanczos steps see nothing below it."""
    below = _StaircaseRun(large, Settings(rank=None, tol=0.5, rng=np.random.default_rng(2))).bounds
    image = large.objective.image(0.97 * large_result.factor)
    values, vectors = np.linalg.eigh(large.objective.gradient(image).dense())
    below.vector = vectors[:, values.size // 2]
    certificate = below.certify(image, below.eigenpairs(image, 2))
    assert certificate.lambda_min <= values[0] + 1e-10
    assert certificate.lower_bound <= large_result.value
    assert below.bounds.best is None


def test_ranks_beyond_the_widest_search_are_reached():
    """‖M − K‖² on a slice, with more positive eigenvalues than a search has columns."""
    n = 2 * MAX_COLUMNS + 10
    rng = np.random.default_rng(2)
    A, B = psd(rng, n) + 0.1 * np.eye(n), psd(rng, n) + 0.1 * np.eye(n)
    problem = problems.quadratic(A, B, symmetric(rng, n))
    result = gm.minimize(problem, "staircase", tol=1e-6)
    reference = gm.minimize(problem, "projected-gradient", tol=1e-9, max_iter=3000)
    assert result.status is gm.Status.CONVERGED
    assert result.rank > MAX_COLUMNS
    assert result.value == pytest.approx(reference.value, rel=2e-6)


@pytest.mark.parametrize("order", [5, 40])
@pytest.mark.parametrize("loss", ["soft-min", "smoothed-hinge", "squared"])
def test_slices_of_every_loss_are_certified(order, loss):
    rng = np.random.default_rng(order)
    triplets = np.array([rng.choice(order, 3, replace=False) for _ in range(4 * order)])
    edges = triplets[:, :2]
    objective = {
        "soft-min": lambda: Composite(PairDistances(edges, order), SoftMin(mu=0.05)),
        "smoothed-hinge": lambda: Composite(
            triplet_margins(triplets, order), SmoothedHinge(1.0, mu=0.1), 0.2
        ),
        "squared": lambda: Composite(PairDistances(edges, order), Squared(1.0)),
    }[loss]()
    problem = gm.Problem(objective, gm.Spectrahedron(3.0))
    result = gm.minimize(problem, "staircase", tol=1e-6)
    assert result.status is gm.Status.CONVERGED
    assert np.trace(result.matrix()) == pytest.approx(3.0)
    other = gm.minimize(problem, "frank-wolfe", tol=1e-4, max_iter=200)
    assert result.certificate.lower_bound <= other.value
    assert result.value <= other.value + 1e-6 * (1 + abs(other.value))


def test_unfolding_is_certified():
    """The Laplacian of the edges is singular along the constants, and so is the gradient."""
    X, _ = make_swiss_roll(120, random_state=2)
    graph = kneighbors_graph(X, 6)
    edges = np.column_stack(sp.triu(graph.maximum(graph.T)).nonzero())
    D = np.sum((X[edges[:, 0]] - X[edges[:, 1]]) ** 2, axis=1)
    result = gm.minimize(problems.mvu(edges, D, 120, 5.0), tol=1e-7)
    assert result.status is gm.Status.CONVERGED
    assert result.certificate.method == "Fenchel dual point"
    assert result.rank < 10


def test_small_problems_without_a_trace_bound_are_certified():
    """A is singular and B zero: no trace bound, but a dual point where F has no curvature."""
    rng = np.random.default_rng(3)
    A, C = np.diag([1.0, 2.0, 3.0, 0.0, 0.0]), symmetric(rng, 5)
    C[3:, 3:] += 5 * np.eye(2)
    problem = problems.quadratic(A, None, C)
    result = gm.minimize(problem, tol=1e-8)
    reference = gm.minimize(problem, "conic", tol=1e-9)
    assert result.status is gm.Status.CONVERGED
    assert result.certificate.method in ("convexity", "Fenchel dual point")
    assert result.certificate.lower_bound <= reference.value + 1e-9
    assert result.value == pytest.approx(reference.value, rel=1e-7)


def test_the_order_of_the_rounds_is_the_same_for_a_seed():
    problem = noisy_entries(MIN_LARGE_ORDER + 50, 3, 4000, C=10.0)
    runs = [gm.minimize(problem, tol=1e-5, random_state=seed) for seed in (1, 1)]
    np.testing.assert_array_equal(runs[0].factor, runs[1].factor)


def test_values_decrease_in_each_round():
    for name in ("squared-hinge-triplets", "sum", "soft-min-spectrahedron"):
        values = gm.minimize(BY_NAME[name].problem, "staircase", tol=1e-10).history["value"]
        assert np.all(np.diff(values) <= 1e-12 * (1 + np.abs(values[:-1])))


def test_rejects_rank_below_that_of_the_optimum():
    with pytest.raises(ValueError, match="it finds the rank of the optimum"):
        gm.minimize(BY_NAME["sum"].problem, "staircase", rank=2)


@pytest.mark.slow
def test_stiff_links_are_solved_by_rows(monkeypatch):
    """λ = 30 makes plain conjugate gradient crawl; the preconditioner takes over and is enough."""
    rng = np.random.default_rng(0)
    n = 700
    places = rng.standard_normal((n, 2))
    graph = kneighbors_graph(places, 6, mode="connectivity")
    laplacian = normalized_laplacian(sp.csr_array(graph.maximum(graph.T)))
    side = places[:, 0] > 0
    pairs = rng.integers(0, n, (800, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = side[pairs[:, 0]] == side[pairs[:, 1]]
    problem = problems.npkl(laplacian, pairs[same], pairs[~same], 30.0)
    asked = []
    monkeypatch.setattr(
        staircase_steps,
        "row_preconditioner",
        lambda *given: asked.append(1) or row_preconditioner(*given),
    )
    result = gm.minimize(problem, tol=1e-6)
    assert asked
    assert result.status is gm.Status.CONVERGED
    assert result.certificate.proved
    wide = gm.minimize(problem, "lbfgs", rank=30, tol=1e-6, max_iter=2, chunk=300)
    assert result.value <= wide.value * (1 + 1e-6) <= result.value * (1 + 1e-3)
    assert result.certificate.lower_bound <= wide.value


def blobs_with_links(n=400, parts=12, seed=0):
    """Kernel learning on the graph of clouds that are hardly joined."""
    rng = np.random.default_rng(seed)
    width = rng.uniform(0.05, 0.2, parts)
    X, y = make_blobs(n, 4, centers=parts, cluster_std=width, center_box=(-3, 3), random_state=seed)
    graph = neighbor_graph(X, 6, connect="components")
    pairs = rng.integers(0, n, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] % 5 == y[pairs[:, 1]] % 5
    laplacian = graph.laplacian(graph.weights("auto"), normalized=True)
    return problems.npkl(laplacian, pairs[same], pairs[~same], 10.0)


def test_sparse_factor_resolves_clustered_eigenvalues():
    problem = blobs_with_links()
    factor = gm.minimize(problem, tol=1e-2).factor
    gradient = problem.objective.gradient(problem.objective.image(factor))
    values, vectors = np.linalg.eigh(gradient.dense())
    start = np.random.default_rng(0).standard_normal(problem.order)
    for guess in (values[0] - 1e-6, 0.5 * values[0]):
        found = factored_eigenpairs(gradient.form(), 6, guess=guess, start=start)
        np.testing.assert_allclose(found.values, values[:6], atol=1e-9)
        assert found.bound <= values[0] + 1e-12 and found.hope - found.bound < 1e-7
        assert np.linalg.norm(vectors[:, :1].T @ found.vectors) == pytest.approx(1.0, abs=1e-6)
    rough = estimated_eigenpairs(gradient, factor, 0.0, 6, steps=40, start=start)
    assert rough.hope - rough.bound > 1e-5


def test_gaps_that_stay_near_are_closed_by_a_repaired_dual_vector(monkeypatch):
    """The optimum without its smallest column: F hardly rises, and λ_min(∇F) is far below 0."""
    problem = blobs_with_links(600, 30)
    best = gm.minimize(problem, tol=1e-6)
    point = problem.objective.image(compress(best.factor, best.rank - 1))
    monkeypatch.setattr(staircase_bounds, "EXACT_ORDER", 100)
    below = _StaircaseRun(
        problem, Settings(rank=None, tol=5e-3, rng=np.random.default_rng(0))
    ).bounds
    for _ in range(SLOW_CERTIFICATES):
        certificate = below.certify(point, below.eigenpairs(point))
        assert certificate.relative_gap > 0.1 and below.dual is None
    repaired = below.certify(point, below.eigenpairs(point))
    assert repaired.relative_gap <= 5e-3 and below.dual is not None
    proved = gm.certify(problem, point.factor, dual=below.dual)
    assert proved.proved and proved.relative_gap <= 5e-3
    assert proved.lower_bound <= best.value


@pytest.mark.slow
def test_steps_that_crawl_come_to_the_optimum(monkeypatch):
    problem = blobs_with_links(600, 30)
    monkeypatch.setattr(staircase_bounds, "EXACT_ORDER", 100)
    quick = gm.minimize(problem, "staircase", tol=1e-4)
    monkeypatch.setattr(staircase_steps, "row_preconditioner", lambda *given: None)
    slow = gm.minimize(problem, "staircase", tol=1e-4)
    for result in (quick, slow):
        assert result.status is gm.Status.CONVERGED and result.certificate.proved
        bound = result.certificate.lower_bound
        assert bound <= min(quick.value, slow.value) and result.value <= bound * (1 + 1e-4)


def test_a_slice_of_a_large_order_begins_with_columns_to_spare(monkeypatch):
    """34 evaluations, where growing by a few columns at a time took 216."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60)) * np.linspace(1.0, 2.0, 60)
    problem = problems.dml_eig(X, rng.integers(0, 200, (900, 2)) * 2 + [0, 1], _pairs(rng), 1e-3)
    images, image = [], Composite.image
    monkeypatch.setattr(Composite, "image", lambda self, L: images.append(L) or image(self, L))
    found = gm.minimize(problem, "staircase", tol=1e-4)
    assert found.certificate.relative_gap <= 1e-4
    assert found.rank > 5 and len(images) < 80


def _pairs(rng):
    i = rng.integers(0, 400, 3000)
    return np.column_stack([i, (i + rng.integers(1, 399, 3000)) % 400])
