"""Values, adjoints and input checks of every map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gramian.arrays import cpu
from gramian.linalg.svec import svec
from gramian.maps import (
    BatchDistances,
    BlockEntries,
    Congruence,
    Entries,
    GroundedDistances,
    GroundedRoot,
    LinearMap,
    Mix,
    PairDistances,
    Squares,
    Stack,
    WhitenedDistances,
    anchored_margins,
    inner_products,
    rows_of,
    triplet_margins,
)


def pairs_of(rng, n, p):
    return rng.integers(0, n, (p, 2))


def distinct_of(rng, n, p, width):
    return np.array([rng.choice(n, width, replace=False) for _ in range(p)])


def make_entries(rng, n, p):
    return Entries(pairs_of(rng, n, p), n)


def make_distances(rng, n, p):
    return PairDistances(distinct_of(rng, n, p, 2), n)


def make_mix(rng, n, p):
    weights = sparse.random_array((p + 2, p), density=0.5, rng=rng)
    return Mix(make_entries(rng, n, p), weights)


def make_triplets(rng, n, p):
    return triplet_margins(distinct_of(rng, n, p, 3), n)


def make_anchored(rng, n, p):
    """Triplets given by their keys, some with a common pair."""
    k = 2
    near = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    anchor, other = distinct_of(rng, n, p, 2).T
    keys = np.unique((anchor * n + other) * k + rng.integers(0, k, p))
    return anchored_margins(near, keys)


def make_congruence(rng, n, p):
    return Congruence(make_distances(rng, n, p), rng.standard_normal((n, 4)))


def make_sparse_congruence(rng, n, p):
    X = sparse.random_array((n, 9), density=0.4, format="csc", rng=rng)
    return Congruence(make_triplets(rng, n, p), X)


def make_whitened(rng, n, p):
    """Edges that connect all points: a path, and others."""
    path = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    pairs = np.vstack([path, distinct_of(rng, n, p, 2)])
    distances = PairDistances(np.unique(np.sort(pairs, axis=1), axis=0), n)
    return WhitenedDistances(distances)


def make_grounded(rng, n, p):
    """Pairs that differ from the edges of the whitening graph."""
    star = np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)])
    edges = PairDistances(np.vstack([star, distinct_of(rng, n, p, 2) + 1]), n + 1)
    pairs = PairDistances(distinct_of(rng, n, p, 2) + 1, n + 1)
    return GroundedDistances(pairs, edges.adjoint_sparse(rng.uniform(0.1, 1, edges.size)))


def make_block_entries(rng, n, p):
    rows, cols = np.sort(rng.integers(0, 2, p)), rng.integers(0, n - 2, p)
    return BlockEntries(rows, cols, (2, n - 2))


def make_batches(rng, n, p):
    """Batches of different sizes, the last of one point."""
    return BatchDistances((n // 2, n - n // 2 - 1, 1))


def make_squares(rng, n, p):
    return Squares(rng.standard_normal((n, p)))


def make_stack(rng, n, p):
    return Stack([make_entries(rng, n, p), make_squares(rng, n, 3), make_distances(rng, n, p)])


def make_inner_products(rng, n, p):
    """Sparse matrices, and two full ones of rank one."""
    G = rng.standard_normal((p, n, n)) * (rng.random((p, n, n)) < 0.3)
    return inner_products(sparse.csr_array((G + G.transpose(0, 2, 1)).reshape(p, n * n)), n)


def laplacian(distances):
    return distances.adjoint_sparse(np.ones(distances.size))


MAKERS = [
    make_entries,
    make_distances,
    make_mix,
    make_triplets,
    make_anchored,
    make_congruence,
    make_sparse_congruence,
    make_whitened,
    make_grounded,
    make_block_entries,
    make_batches,
    make_squares,
    make_stack,
    make_inner_products,
]
EVERY_MAP = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[5:])


def assert_adjoint(linear_map: LinearMap, rng: np.random.Generator, rank: int) -> None:
    """⟨𝒜(½ (UVᵀ + VUᵀ)), w⟩ = ⟨U, 𝒜*(w) V⟩, as 𝒜*(w) is symmetric."""
    U, V = rng.standard_normal((2, linear_map.order, rank))
    w = rng.standard_normal(linear_map.size)
    left = linear_map.bilinear(U, V) @ w
    np.testing.assert_allclose(left, np.sum(U * linear_map.adjoint(w, V)), rtol=1e-9, atol=1e-9)


@EVERY_MAP
def test_columns_are_the_map_of_small_matrices(make):
    """𝒜(W S Wᵀ) = columns(W) svec(S)."""
    rng = np.random.default_rng(5)
    linear_map = make(rng, 8, 15)
    W = rng.standard_normal((linear_map.order, 3))
    B = rng.standard_normal((3, 2))
    expected = linear_map.of_factor(W @ B)
    np.testing.assert_allclose(linear_map.columns(W) @ svec(B @ B.T), expected, atol=1e-9)
    np.testing.assert_allclose(LinearMap.columns(linear_map, W), linear_map.columns(W), atol=1e-10)


@EVERY_MAP
def test_fixed_agrees_with_bilinear_and_adjoint(make):
    rng = np.random.default_rng(6)
    linear_map = make(rng, 8, 15)
    L, D = rng.standard_normal((2, linear_map.order, 3))
    w = rng.standard_normal(linear_map.size)
    bilinear, adjoint = linear_map.fixed(L)
    np.testing.assert_allclose(bilinear(D), linear_map.bilinear(L, D), atol=1e-10)
    np.testing.assert_allclose(adjoint(w), linear_map.adjoint(w, L), atol=1e-10)


@EVERY_MAP
def test_seen_agrees_with_bilinear_and_adjoint(make):
    rng = np.random.default_rng(7)
    linear_map = make(rng, 8, 15)
    L, w = rng.standard_normal((linear_map.order, 3)), rng.standard_normal(linear_map.size)
    seen = linear_map.seen(L)
    np.testing.assert_allclose(linear_map.of_seen(seen, seen), linear_map.of_factor(L), atol=1e-10)
    adjoint = linear_map.adjoint_of_seen(w, seen)
    np.testing.assert_allclose(adjoint, linear_map.adjoint_matrix(w) @ L, atol=1e-9)


@EVERY_MAP
@settings(max_examples=25)
@given(
    n=st.integers(3, 12), p=st.integers(1, 20), rank=st.integers(1, 5), seed=st.integers(0, 10**6)
)
def test_adjoint_identity(make, n, p, rank, seed):
    rng = np.random.default_rng(seed)
    assert_adjoint(make(rng, n, p), rng, rank)


@pytest.mark.parametrize("make", [make_entries, make_distances, make_triplets])
def test_adjoint_identity_in_compiled_code(make, monkeypatch):
    monkeypatch.setattr(cpu, "COMPILED_WORK", 0)
    rng = np.random.default_rng(0)
    assert_adjoint(make(rng, 50, 300), rng, 6)


@EVERY_MAP
def test_bilinear_is_symmetric_and_bilinear(make):
    rng = np.random.default_rng(1)
    linear_map = make(rng, 10, 15)
    U, V, W = rng.standard_normal((3, linear_map.order, 3))
    f = linear_map.bilinear
    np.testing.assert_allclose(f(U, V), f(V, U), atol=1e-12)
    np.testing.assert_allclose(f(U, 2 * V - 3 * W), 2 * f(U, V) - 3 * f(U, W), atol=1e-11)


@EVERY_MAP
def test_dense_and_factored_values_agree(make):
    rng = np.random.default_rng(2)
    linear_map = make(rng, 10, 15)
    U, V = rng.standard_normal((2, linear_map.order, 3))
    M = (U @ V.T + V @ U.T) / 2
    z = linear_map.bilinear(U, V)
    assert z.shape == (linear_map.size,)
    np.testing.assert_allclose(linear_map.of_matrix(M), z, atol=1e-11)
    np.testing.assert_allclose(linear_map.of_factor(U), linear_map.of_matrix(U @ U.T), atol=1e-11)


@EVERY_MAP
def test_adjoint_matrix_is_symmetric_and_agrees_with_the_operator(make):
    rng = np.random.default_rng(3)
    linear_map = make(rng, 10, 15)
    w = rng.standard_normal(linear_map.size)
    V = rng.standard_normal((linear_map.order, 2))
    A = linear_map.adjoint_matrix(w)
    assert A.shape == (linear_map.order, linear_map.order)
    np.testing.assert_allclose(A, A.T, atol=1e-12)
    np.testing.assert_allclose(A @ V, linear_map.adjoint(w, V), atol=1e-11)


@EVERY_MAP
def test_float32_factors_keep_a_float64_image(make):
    rng = np.random.default_rng(4)
    linear_map = make(rng, 10, 15)
    L = rng.standard_normal((linear_map.order, 3)).astype(np.float32)
    z = linear_map.of_factor(L)
    assert z.dtype == np.float64
    np.testing.assert_allclose(z, linear_map.of_factor(L.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("make", [make_entries, make_distances])
def test_adjoint_sparse_is_the_adjoint_matrix(make):
    rng = np.random.default_rng(5)
    linear_map = make(rng, 10, 30)
    w = rng.standard_normal(linear_map.size)
    matrix = linear_map.adjoint_sparse(w)
    assert matrix.format == "csr"
    np.testing.assert_allclose(matrix.toarray(), linear_map.adjoint_matrix(w), atol=1e-13)


def test_values_equal_manual_computation():
    L = np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    assert Entries([[1, 1], [1, 2]], 3).of_factor(L).tolist() == [25.0, 3.0]
    assert PairDistances([[0, 1], [2, 0]], 3).of_factor(L).tolist() == [25.0, 1.0]
    assert triplet_margins([[0, 2, 1], [0, 1, 2]], 3).of_factor(L).tolist() == [24.0, -24.0]


def test_triplets_share_their_distances():
    margins = triplet_margins([[0, 1, 2], [1, 0, 2], [2, 1, 0]], 3)
    assert margins.base.size == 3
    assert margins.size == 3
    assert repr(margins) == "Mix(order=3, size=3)"


@pytest.mark.parametrize("build", [Entries, PairDistances])
@pytest.mark.parametrize(
    ("pairs", "n", "message"),
    [
        ([0, 1], 3, r"shape \(p, 2\)"),
        ([[0, 1, 2]], 3, r"shape \(p, 2\)"),
        (np.empty((0, 2), int), 3, "empty"),
        ([[0.5, 1.0]], 3, "integers"),
        ([[0, 1], [-1, 2]], 3, r"pairs\[1\] = \[-1, 2\] .* 0\.\.2"),
        ([[0, 1], [0, 3], [9, 9]], 3, r"pairs\[1\] = \[0, 3\]"),
        ([[0, 1]], 0, "positive integer"),
        ([[0, 1]], 2.0, "positive integer"),
        ([[0, 1]], 2**31, "below"),
    ],
)
def test_error_names_bad_pair(build, pairs, n, message):
    with pytest.raises(ValueError, match=message):
        build(pairs, n)


def test_rejects_pair_of_equal_points():
    with pytest.raises(ValueError, match=r"pairs\[1\] = \[2, 2\] joins a point to itself"):
        PairDistances([[0, 1], [2, 2]], 3)


@pytest.mark.parametrize("triplet", [[0, 0, 1], [0, 1, 0], [0, 1, 1]])
def test_rejects_triplet_without_three_points(triplet):
    with pytest.raises(ValueError, match=r"triplets\[1\] .* three different points"):
        triplet_margins([[0, 1, 2], triplet], 3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.eye(2), "scipy sparse"),
        (sparse.csr_array((3, 5)), r"\(q, 2\)"),
        (sparse.csr_array((0, 2)), "q ≥ 1"),
        (sparse.csr_array(np.array([[np.nan, 0.0]])), "finite"),
    ],
)
def test_rejects_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        Mix(Entries([[0, 1], [1, 1]], 2), weights)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((3, 2)), "X has 3 rows, but the map is over 2 points"),
        (np.ones(2), "matrix"),
        (np.ones((2, 0)), "matrix"),
        ([[1.0, np.inf], [0.0, 1.0]], "finite"),
        (sparse.csr_array([[np.nan, 1.0], [0.0, 1.0]]), "finite"),
        ([["a"], ["b"]], "real numbers"),
        ([[1j], [2j]], "real numbers"),
    ],
)
def test_rejects_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        Congruence(Entries([[0, 1]], 2), X)


@EVERY_MAP
def test_rejects_wrong_shapes(make):
    rng = np.random.default_rng(6)
    linear_map = make(rng, 10, 15)
    n, p = linear_map.order, linear_map.size
    L, w = np.ones((n, 2)), np.ones(p)
    for call in (
        lambda: linear_map.bilinear(L[1:], L[1:]),
        lambda: linear_map.bilinear(L, L[:, :1]),
        lambda: linear_map.adjoint(w[1:], L),
        lambda: linear_map.adjoint(w, L[1:]),
        lambda: linear_map.adjoint(w, L[:, 0]),
        lambda: linear_map.adjoint_matrix(w[1:]),
        lambda: linear_map.of_matrix(np.eye(n + 1)),
    ):
        with pytest.raises(ValueError, match="shape"):
            call()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**16), n=st.integers(2, 30), p=st.integers(1, 40))
def test_the_grounded_root_makes_the_laplacian_the_identity(seed, n, p):
    rng = np.random.default_rng(seed)
    whitened = make_whitened(rng, n, p)
    root, P = whitened.root, laplacian(whitened.distances).toarray()
    R = root @ np.eye(n - 1)
    np.testing.assert_allclose(R.T @ P @ R, np.eye(n - 1), atol=1e-9)
    np.testing.assert_allclose(whitened.adjoint_matrix(np.ones(whitened.size)), np.eye(n - 1),
                               atol=1e-9)  # fmt: skip
    V = rng.standard_normal((n, 3))
    np.testing.assert_allclose(root.transposed(V), R.T @ V, atol=1e-9)
    np.testing.assert_allclose(root @ root.coordinates(V), V - V[0], atol=1e-9)


def test_the_grounded_root_of_a_ring_has_a_small_dense_part():
    n, steps = 1000, np.arange(1, 7)
    ends = np.repeat(np.arange(n), steps.size)
    pairs = np.column_stack([ends, (ends + np.tile(steps, n)) % n])
    P = laplacian(PairDistances(pairs, n))
    root = GroundedRoot(P)
    R = root @ np.eye(n - 1)
    np.testing.assert_allclose(R.T @ P.toarray() @ R, np.eye(n - 1), atol=1e-9)
    assert n - root.triangle.cut < n / 4


def test_rejects_disconnected_graph():
    distances = PairDistances(np.array([[0, 1], [2, 3]]), 4)
    with pytest.raises(ValueError, match="not connected"):
        GroundedRoot(laplacian(distances))


@EVERY_MAP
def test_vector_product_agrees_with_adjoint(make):
    rng = np.random.default_rng(7)
    linear_map = make(rng, 8, 15)
    w, v = rng.standard_normal(linear_map.size), rng.standard_normal(linear_map.order)
    product = linear_map.vector_product(w)
    if product is None:
        assert not isinstance(linear_map, BlockEntries)
    else:
        np.testing.assert_allclose(product(v), linear_map.adjoint(w, v[:, None])[:, 0], atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1.0 + 1e-6])
def test_identity_weights_of_orthonormal_congruence(scale):
    rng = np.random.default_rng(8)
    Q = scale * np.linalg.qr(rng.standard_normal((9, 4)))[0]
    pairs = np.vstack([np.column_stack([np.arange(9)] * 2), [[0, 3], [2, 5]]])
    weights = Congruence(Entries(pairs, 9), Q).identity_weights()
    if scale != 1.0:
        assert weights is None
        return
    image = Congruence(Entries(pairs, 9), Q).adjoint_matrix(weights)
    np.testing.assert_allclose(image, np.eye(4), atol=1e-9)
    assert np.linalg.eigvalsh(image)[0] >= 1.0


@EVERY_MAP
def test_rows_agree_with_adjoint_matrices(make):
    rng = np.random.default_rng(8)
    linear_map = make(rng, 8, 15)
    rows = rows_of(linear_map)
    G = rng.standard_normal((linear_map.order, linear_map.order))
    M = G + G.T
    np.testing.assert_allclose(rows.whole() @ M.ravel(), linear_map.of_matrix(M), atol=1e-9)


def test_full_matrices_of_rank_one_become_squares():
    n = 30
    v = np.random.default_rng(0).standard_normal(n)
    A = np.array([np.outer(v, v), -np.ones((n, n)), np.eye(n)])
    found = inner_products(sparse.csr_array(A.reshape(3, -1)), n)
    assert isinstance(found.base, Stack)
    assert found.base.maps[1].size == 2
    assert found.base.maps[0].size == n
    M = np.cov(np.random.default_rng(1).standard_normal((n, 40)))
    np.testing.assert_allclose(found.of_matrix(M), [np.sum(a * M) for a in A], atol=1e-9)


def test_empty_stack_requires_order():
    empty = Stack((), 4)
    assert empty.size == 0
    assert empty.bilinear(np.ones((4, 2)), np.ones((4, 2))).shape == (0,)
    assert not np.any(empty.adjoint(np.zeros(0), np.ones((4, 2))))
    with pytest.raises(ValueError, match="one order"):
        Stack(())
