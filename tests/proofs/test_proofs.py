"""Bounds on λ_min: every form compared with all eigenvalues, including hard cases."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.common import clock
from gramian.proofs import (
    Bipartite,
    Bottom,
    DenseForm,
    LowRank,
    SparseForm,
    estimated,
    gershgorin,
    lowest,
    rounded_sum,
    search,
)
from gramian.proofs.estimate import _miss


@dataclass
class Matrix:
    """A matrix with the interface of `lowest`."""

    array: np.ndarray
    structure: Any = None

    @property
    def order(self):
        return self.array.shape[0]

    def __matmul__(self, V):
        return self.array @ V

    def dense(self):
        return self.array

    def form(self):
        return self.structure

    def slack(self):
        return np.zeros(self.order)


def symmetric(rng, n):
    A = rng.standard_normal((n, n))
    return (A + A.T) / 2


def sparse_symmetric(rng, n, density=0.05):
    A = sp.random_array((n, n), density=density, rng=rng, data_sampler=rng.standard_normal)
    return sp.csr_array(A + A.T + sp.diags_array(rng.uniform(0.5, 3.0, n)))


def dense(rng, n):
    A = symmetric(rng, n)
    return A, DenseForm(A, np.zeros(n))


def sparse(rng, n):
    A = sparse_symmetric(rng, n)
    return A.toarray(), SparseForm(A)


def bordered(rng, n):
    A, U = sparse_symmetric(rng, n), rng.standard_normal((n, 3))
    weights = np.array([2.0, -1.0, 0.0])
    return A.toarray() + (U * weights) @ U.T, SparseForm(A, U, weights)


def low_rank(rng, n):
    U, W = rng.standard_normal((n, 5)), symmetric(rng, 5)
    return 0.3 * np.eye(n) + U @ W @ U.T, LowRank(0.3, U, W)


def blocks(rng, n):
    B = sp.random_array((n // 3, n - n // 3), density=0.2, rng=rng)
    A = sp.block_array([[None, B], [B.T, None]]).toarray() + 0.7 * np.eye(n)
    return A, Bipartite(0.7, B)


FORMS = {f.__name__: f for f in (dense, sparse, bordered, low_rank, blocks)}


@pytest.fixture
def small_limit(monkeypatch):
    """Use the methods for large orders above order 10."""
    monkeypatch.setattr(search, "EXACT_ORDER", 10)


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_bound_is_below_and_near_smallest_eigenvalue(make, seed, small_limit):
    A, form = make(np.random.default_rng(seed), 80)
    true = np.linalg.eigvalsh(A)[0]
    found = lowest(Matrix(A, form), wanted=1e-8)
    assert found.proved
    assert true - 2e-3 * abs(true) - 1e-6 <= found.value <= true + 1e-13 * np.linalg.norm(A)


@pytest.mark.parametrize("name", ["dense", "sparse", "bordered"])
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), below=st.floats(1e-9, 1.0))
def test_shift_above_smallest_eigenvalue_is_not_proved(name, seed, below):
    """A shift above λ_min is never proved, a shift slightly below always."""
    A, form = FORMS[name](np.random.default_rng(seed), 40)
    true = np.linalg.eigvalsh(A)[0]
    assert not form.above(true + 1e-9 * below).definite
    assert form.above(true - 1e-7 * (1 + below)).definite


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), loud=st.sampled_from([1e2, 1e4, 1e6]))
def test_rows_of_different_scale(seed, loud):
    """diag(s) A diag(s): each row has its own error bound."""
    rng = np.random.default_rng(seed)
    A = symmetric(rng, 30)
    A += (0.01 - np.linalg.eigvalsh(A)[0]) * np.eye(30)
    scale = np.where(rng.random(30) < 0.3, loud, 1.0)
    scaled = A * np.outer(scale, scale)
    true = np.linalg.eigvalsh(scaled)[0] + 1e-14 * np.abs(scaled).max()
    for form in (DenseForm(scaled, np.zeros(30)), SparseForm(sp.csr_array(scaled))):
        assert form.above(0.0).definite
        assert not form.above(true + 0.02).definite


def test_slack_lowers_the_bound(small_limit):
    """Errors of the entries are subtracted."""
    A = np.diag(np.linspace(1.0, 2.0, 40))
    exact, rough = DenseForm(A, np.zeros(40)), DenseForm(A, np.full(40, 1e-3))
    assert exact.above(0.999).definite
    assert not rough.above(0.999).definite
    assert rough.above(0.95).definite


def test_finds_eigenvalue_orthogonal_to_start(small_limit):
    """Large eigenvalues, except −1 on one coordinate."""
    A = np.diag(np.append(np.linspace(1e6, 1e8, 199), -1.0))
    for form in (DenseForm(A, np.zeros(200)), SparseForm(sp.csr_array(A))):
        found = lowest(Matrix(A, form), wanted=1e-6, seconds=10)
        assert found.proved and -1.1 <= found.value <= -1.0
        assert abs(found.vector[-1]) > 0.9


def test_gershgorin_proves_laplacian():
    W = sp.random_array((50, 50), density=0.1, rng=np.random.default_rng(0))
    W = W + W.T
    laplacian = sp.csr_array(sp.diags_array(W.sum(axis=1)) - W)
    assert -1e-13 <= gershgorin(laplacian) <= 0
    assert gershgorin(sp.csr_array(laplacian + sp.eye_array(50))) == pytest.approx(1.0)


def test_pencil_with_other_matrix_than_identity():
    """S ⪰ tP for a P other than the identity."""
    rng = np.random.default_rng(0)
    S, P = sparse_symmetric(rng, 30), sp.diags_array(rng.uniform(0.1, 5.0, 30))
    root = np.sqrt(P.diagonal())
    true = np.linalg.eigvalsh(S.toarray() / np.outer(root, root))[0]
    form = SparseForm(S, unit=P)
    assert form.above(true - 1e-6).definite
    assert not form.above(true + 1e-6).definite


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_pencil_with_fill_in_uses_dense_factor(scale):
    rng, n = np.random.default_rng(2), 200
    links = sp.random_array((n, n), density=0.05, rng=rng)
    S = scale * sp.csr_array(links + links.T - sp.eye_array(n))
    P = sp.diags_array(1e3 * rng.uniform(0.5, 2.0, n))
    form = SparseForm(S, unit=P)
    assert form.as_dense
    least = float(scipy.linalg.eigh(S.toarray(), P.toarray(), eigvals_only=True)[0])
    proof = form.above(least * (1 + 1e-7))
    assert proof.definite and not form.above(least * (1 - 1e-12)).definite
    value, _ = form.next_to(least * (1 + 1e-7), proof.solve)
    assert value == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("weights", [None, [0.5], [-0.2, 1.0]])
def test_pencil_of_many_points_uses_fronts(weights, monkeypatch):
    monkeypatch.setattr("gramian.proofs.sparse.MIN_FRONT_POINTS", 50)
    rng = np.random.default_rng(1)
    S, P = sparse_symmetric(rng, 300, 0.01), sp.diags_array(rng.uniform(0.1, 5.0, 300))
    U = None if weights is None else 0.3 * rng.standard_normal((300, len(weights)))
    dense = S.toarray() if U is None else S.toarray() + (U * weights) @ U.T
    root = np.sqrt(P.diagonal())
    true = np.linalg.eigvalsh(dense / np.outer(root, root))[0]
    form = SparseForm(S, U, None if weights is None else np.array(weights), unit=P)
    assert form.plan is not None and 0 < form.seconds < 1
    for _ in range(2):  # the second time uses the errors of the first
        assert form.above(true - 1e-6).definite
        assert not form.above(true + 1e-6).definite
    b, found = rng.standard_normal((300, 2)), form.tried(true - 1.0)
    shifted = dense - (true - 1.0) * P.toarray()
    np.testing.assert_allclose(shifted @ found.solve(b), b, atol=1e-8)
    np.testing.assert_allclose(found.solve(b[:, 0]), found.solve(b)[:, 0], atol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 1e8])
def test_estimate_reports_probability_of_miss(spread):
    rng = np.random.default_rng(0)
    A = np.diag(np.append(rng.uniform(0.5, spread, 499), -0.5))
    found = estimated(Matrix(A), 5e-2)
    assert not found.proved and 0 < found.miss <= 1
    assert (found.miss < 1e-4) == (spread == 1.0)
    if spread == 1.0:
        assert -0.56 <= found.value <= -0.5


def test_estimate_is_reproducible():
    A = Matrix(symmetric(np.random.default_rng(0), 300))
    assert estimated(A, 1e-9).value == estimated(A, 1e-9).value


def test_refuted_guess_gives_no_bound():
    """All shifts tried are above λ_min: the bound is −∞."""
    A = Matrix(np.diag(np.append(np.ones(39), -1e30)))
    guess = Bottom(0.5, "Lanczos", 1.0, np.eye(40)[0])
    found = search._proved(A, DenseForm(A.array, np.zeros(40)), guess, 1e-9, np.inf)
    assert found.value == -np.inf and found.proved


def test_probability_of_miss_is_monotone():
    assert _miss(100, 200, 1e-2) < _miss(100, 100, 1e-2) < _miss(10_000, 100, 1e-2) <= 1.0
    assert _miss(100, 10, 1e-12) == 1.0


def test_no_time_gives_estimate(small_limit):
    A, form = sparse(np.random.default_rng(0), 60)
    assert lowest(Matrix(A, form), seconds=0.0).how == "Lanczos"
    assert lowest(Matrix(A, form), prove=False).how == "Lanczos"


def test_deadline_during_proof(small_limit):
    A = symmetric(np.random.default_rng(0), 60)
    with clock.until(0.0), pytest.raises(clock.TimeUpError):
        lowest(Matrix(A), prove=False)


def test_rejects_matrix_that_is_not_finite():
    A = np.full((4, 4), np.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        lowest(Matrix(A))


def test_dense_factor_only_for_graph_with_fill_in(monkeypatch):
    monkeypatch.setattr("gramian.proofs.search.EXACT_ORDER", 10)
    rng, n = np.random.default_rng(0), 300
    ends = {"links": rng.integers(0, n, (2, 4 * n)), "path": np.array([range(n - 1), range(1, n)])}
    for name, (i, j) in ends.items():
        A = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n)).tocsr()
        A = sp.csr_array(A + A.T)
        S = sp.csr_array(sp.diags_array(np.asarray(A.sum(axis=1)).ravel() + 1.0) - A)
        matrix = Matrix(S.toarray(), SparseForm(S))
        assert lowest(matrix, seconds=0.5).proved
        with monkeypatch.context() as cramped:
            cramped.setattr("gramian.proofs.search._dense_fits", lambda order, seconds: False)
            assert lowest(matrix).how == "sparse Cholesky"
        bottom = lowest(matrix)
        assert bottom.how == ("Cholesky" if name == "links" else "sparse Cholesky")
        assert bottom.value <= np.linalg.eigvalsh(S.toarray())[0] <= bottom.value + 1e-6


@pytest.mark.slow
def test_trial_factorisations_are_limited():
    """Trials on small subgraphs predict a long factorisation of a graph with fill-in."""
    rng, n = np.random.default_rng(0), 20_000
    i, j = rng.integers(0, n, (2, 4 * n))
    A = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n)).tocsr()
    A = sp.csr_array(A + A.T + 40 * sp.eye_array(n))
    started = time.process_time()
    assert SparseForm(A).seconds > 10
    assert time.process_time() - started < 20  # minutes once


def test_small_graph_with_fill_in_is_not_underestimated():
    """There is no trial for so few nodes: a run with a time limit would wait for the proof."""
    rng, n = np.random.default_rng(0), 1800
    links = sp.random_array((n, n), density=0.01, rng=rng)
    assert SparseForm(sp.csr_array(links + links.T + 10 * sp.eye_array(n))).seconds > 1.0
    path = sp.diags_array([np.ones(n - 1), 3 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    assert SparseForm(sp.csr_array(path)).seconds <= 0.1


def test_resolution_equals_the_shift_subtracted_by_a_dense_proof():
    A, v = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, -1.0]) / np.sqrt(2)
    exact, blurred = DenseForm(A, np.zeros(2)), DenseForm(A, np.full(2, 1e-3))
    assert 0 < exact.resolution(v, -1.0) < exact.resolution(v, -2.0)
    lost = blurred.resolution(v, -1.0)
    assert blurred.above(-1.0 - lost).definite
    assert not blurred.above(-1.0 - 0.25 * lost).definite


def test_rounded_sum_bounds_worst_case():
    """Each addition to 1 loses half an ulp of 1: a deterministic worst case."""
    terms = 10_000
    unit = float(np.finfo(float).eps) / 2
    total = 1.0
    for _ in range(terms):
        total += unit
    error = (1.0 + terms * unit) - total
    assert total == 1.0
    assert error <= rounded_sum(terms + 1) * (1.0 + terms * unit)
