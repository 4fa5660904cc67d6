"""Each kernel, in NumPy and compiled, against its definition with dense matrices."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from gramian.arrays import cpu, threads

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
SHAPES = pytest.mark.parametrize(
    ("n", "p", "r"),
    [(1, 1, 1), (2, 1, 1), (7, 30, 1), (30, 12, 3), (40, 500, 8), (1_000, 9_000, 37)],
)


def random_pairs(n, p, seed=0):
    """Pairs with repeats in both orders, and a diagonal one."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, (2, p))
    rows[: p // 4], cols[: p // 4] = cols[-(p // 4) or p :], rows[-(p // 4) or p :]
    cols[0] = rows[0]
    return rows, cols


def random_factors(n, r, dtype, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((2, n, r)).astype(dtype)


def tolerance(dtype):
    return 1e-12 if dtype == np.float64 else 1e-4


@BOTH
@DTYPES
@SHAPES
def test_gather_entries(n, p, r, dtype, compiled):
    rows, cols = random_pairs(n, p)
    U, V = random_factors(n, r, dtype)
    K = (U @ V.T.astype(np.float64) + V @ U.T.astype(np.float64)) / 2
    z = cpu.gather_entries(U, V, rows, cols, compiled=compiled)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, K[rows, cols], rtol=1e-12, atol=1e-12)


@BOTH
@DTYPES
@SHAPES
def test_gather_distances(n, p, r, dtype, compiled):
    rows, cols = random_pairs(n, p)
    U, V = random_factors(n, r, dtype)
    u, v = U.astype(np.float64), V.astype(np.float64)
    expected = ((u[rows] - u[cols]) * (v[rows] - v[cols])).sum(axis=1)
    z = cpu.gather_distances(U, V, rows, cols, compiled=compiled)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, expected, rtol=1e-12, atol=1e-12)


@BOTH
@DTYPES
@pytest.mark.parametrize("gather", [cpu.gather_entries, cpu.gather_distances])
def test_same_factor_gives_same_values(gather, dtype, compiled):
    rows, cols = random_pairs(40, 500)
    U, _ = random_factors(40, 9, dtype)
    same = gather(U, U, rows, cols, compiled=compiled)
    np.testing.assert_allclose(
        same, gather(U, U.copy(), rows, cols, compiled=compiled), rtol=1e-13, atol=1e-13
    )


def dense_entries(w, rows, cols, n):
    A = np.zeros((n, n))
    np.add.at(A, (rows, cols), w / 2)
    return A + A.T


def dense_laplacian(w, rows, cols, n):
    A = 2 * dense_entries(w, rows, cols, n)
    return np.diag(A.sum(axis=1)) - A


SCATTERS = pytest.mark.parametrize(
    ("scatter", "dense"),
    [(cpu.scatter_entries, dense_entries), (cpu.scatter_distances, dense_laplacian)],
    ids=["entries", "distances"],
)


@BOTH
@DTYPES
@SHAPES
@SCATTERS
def test_scatter(scatter, dense, n, p, r, dtype, compiled):
    rows, cols = random_pairs(n, p)
    w = np.random.default_rng(2).standard_normal(p)
    V, _ = random_factors(n, r, dtype)
    product = scatter(w, V, cpu.Pattern.from_pairs(rows, cols, n), compiled=compiled)
    assert product.dtype == dtype
    tol = tolerance(dtype)
    np.testing.assert_allclose(product, dense(w, rows, cols, n) @ V, rtol=tol, atol=tol)


@BOTH
@DTYPES
@SCATTERS
def test_scatter_of_weights_that_are_mostly_zero(scatter, dense, dtype, compiled):
    rows, cols = random_pairs(40, 500)
    rng = np.random.default_rng(3)
    w = rng.standard_normal(500) * (rng.random(500) < 0.2)
    V, _ = random_factors(40, 9, dtype)
    product = scatter(w, V, cpu.Pattern.from_pairs(rows, cols, 40), compiled=compiled)
    tol = tolerance(dtype)
    np.testing.assert_allclose(product, dense(w, rows, cols, 40) @ V, rtol=tol, atol=tol)


@BOTH
def test_differences_and_their_transpose(compiled):
    rng = np.random.default_rng(4)
    values, w = rng.standard_normal(30), rng.standard_normal(200) * (rng.random(200) < 0.5)
    more, less = rng.integers(0, 30, (2, 200)).astype(np.int32)
    found = cpu.differences(values, more, less, compiled=compiled)
    np.testing.assert_array_equal(found, values[more] - values[less])
    back = cpu.sums_of_differences(w, more, less, 30, compiled=compiled)
    np.testing.assert_allclose(back @ values, w @ found, rtol=1e-12)


@pytest.mark.parametrize(
    ("assemble", "dense"),
    [(cpu.entries_matrix, dense_entries), (cpu.laplacian_matrix, dense_laplacian)],
    ids=["entries", "laplacian"],
)
def test_sparse_matrices_are_canonical_copies(assemble, dense):
    n, p = 20, 200
    rows, cols = random_pairs(n, p)
    w = np.random.default_rng(2).standard_normal(p)
    pattern = cpu.Pattern.from_pairs(rows, cols, n)
    before = pattern.neighbour.copy()
    matrix = assemble(w, pattern)
    np.testing.assert_allclose(matrix.toarray(), dense(w, rows, cols, n), atol=1e-13)
    assert matrix.has_canonical_format
    np.testing.assert_array_equal(pattern.neighbour, before)


def test_pattern_sorts_half_edges():
    pattern = cpu.Pattern.from_pairs([2, 0, 2], [0, 1, 2], 4)
    assert (pattern.order, pattern.size) == (4, 3)
    assert pattern.indptr.tolist() == [0, 2, 3, 6, 6]
    assert pattern.neighbour.tolist() == [1, 2, 0, 0, 2, 2]
    assert pattern.edge.tolist() == [1, 0, 1, 0, 2, 2]


def test_pattern_rejects_int32_overflow(monkeypatch):
    monkeypatch.setattr(cpu, "MAX_EDGES", 2)
    with pytest.raises(ValueError, match="at most 2 pairs"):
        cpu.Pattern.from_pairs([0, 0, 0], [1, 1, 1], 2)


@SCATTERS
def test_results_do_not_depend_on_the_number_of_threads(scatter, dense, monkeypatch):
    rows, cols = random_pairs(500, 20_000)
    w = np.random.default_rng(2).standard_normal(20_000)
    U, V = random_factors(500, 5, np.float64)
    pattern = cpu.Pattern.from_pairs(rows, cols, 500)
    answers = []
    monkeypatch.setattr(threads, "WORK", 1000)
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        z = cpu.gather_entries(U, V, rows, cols, compiled=True)
        answers.append((z, scatter(w, V, pattern, compiled=True)))
    for z, product in answers[1:]:
        np.testing.assert_array_equal(z, answers[0][0])
        np.testing.assert_array_equal(product, answers[0][1])


@BOTH
def test_layout_dtype_and_read_only_inputs_are_accepted(compiled):
    rows, cols = random_pairs(30, 60)
    U, V = random_factors(30, 4, np.float64)
    expected = cpu.gather_entries(U, V, rows, cols)
    fortran, single = np.asfortranarray(U), V.astype(np.float32)
    fortran.flags.writeable = False
    z = cpu.gather_entries(fortran, V, rows.astype(np.int64), cols, compiled=compiled)
    np.testing.assert_allclose(z, expected, rtol=1e-13, atol=1e-13)
    mixed = cpu.gather_entries(U, single, rows, cols, compiled=compiled)
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


@BOTH
def test_nan_propagates(compiled):
    U = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert np.isnan(cpu.gather_entries(U, U, [0], [1], compiled=compiled)).all()


def test_only_large_work_is_compiled(monkeypatch):
    launched = []
    monkeypatch.setattr(cpu, "_launch", lambda name, *_: launched.append(name))
    monkeypatch.setattr(cpu, "COMPILED_WORK", 100)
    U = np.ones((10, 10))
    cpu.gather_entries(U, U, np.zeros(10, int), np.ones(10, int))
    assert launched == []
    cpu.gather_entries(U, U, np.zeros(11, int), np.ones(11, int))
    assert launched == ["gather_products"]


@pytest.mark.parametrize("density", [0.02, 0.6])
def test_gram_matrix_of_few_and_of_many_entries(density):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(90, 40)) * (rng.random((90, 40)) < density)
    np.testing.assert_allclose(cpu.gram(sparse.csr_array(dense)), dense.T @ dense, atol=1e-12)


def test_import_does_not_import_numba():
    script = "import sys, gramian.arrays.cpu, gramian.maps; assert 'numba' not in sys.modules"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": path}
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_threads_after_fork():
    before = threads._pool()
    child = os.fork()
    if child == 0:
        os._exit(0 if threads._pool() is not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("size", [0, 7, 300_000])
def test_taken_agrees_with_indexing(size):
    rng = np.random.default_rng(size)
    values, places = rng.standard_normal(1000), rng.integers(0, 1000, size).astype(np.int32)
    np.testing.assert_array_equal(cpu.taken(values, places), values[places])
