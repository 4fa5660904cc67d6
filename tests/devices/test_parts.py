"""What the parts compute on a device, beside the host."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian.arrays import cpu
from gramian.arrays import places as arrays
from gramian.graph import neighbor_graph, smoothest
from gramian.linalg import krylov, leading_eigenpair, ritz_pairs
from gramian.linalg._lanczos import CountedOperator
from gramian.losses import Logistic, SoftMin, Squared
from gramian.maps import Entries, PairDistances, anchored_margins
from gramian.maps.whitened import DenseRoot
from gramian.metric import KTA, LMNN
from gramian.neighbours import nearest, search_mixtures
from gramian.objectives import Composite
from gramian.proofs import lost_by
from gramian.reductions.block_embedding import balanced
from gramian.spectral import top_eigen

RNG = np.random.default_rng(0)
ORDER, PAIRS = 60, 400
ROWS, COLS = RNG.integers(0, ORDER, PAIRS), RNG.integers(0, ORDER, PAIRS)
COLS[:5] = ROWS[:5]  # entries of the diagonal


@pytest.fixture
def place(device):
    return arrays.place(device)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["entries", "distances"])
@pytest.mark.parametrize("same", [True, False])
def test_gathers_and_scatters_are_those_of_the_host(kind, same, dtype, place):
    U = RNG.standard_normal((ORDER, 7)).astype(dtype)
    V = U if same else RNG.standard_normal((ORDER, 7)).astype(dtype)
    w = RNG.standard_normal(PAIRS)
    rows, cols = cpu.index_array(ROWS), cpu.index_array(COLS)
    pattern = cpu.Pattern.from_pairs(rows, cols, ORDER)
    there_U = place.put(U)
    there_V = there_U if same else place.put(V)
    library = arrays.backend(there_U)
    expected = getattr(cpu, f"gather_{kind}")(U, V, rows, cols)
    found = getattr(library, f"gather_{kind}")(there_U, there_V, place.put(rows), place.put(cols))
    digits = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(arrays.host(found), expected, rtol=digits, atol=digits)
    moved = arrays.moved(pattern, place)
    expected = getattr(cpu, f"scatter_{kind}")(w, V, pattern)
    found = getattr(library, f"scatter_{kind}")(place.put(w), there_V, moved)
    np.testing.assert_allclose(arrays.host(found), expected, rtol=digits, atol=10 * digits)


def test_a_row_of_thousands_of_entries_is_summed_in_pieces(place):
    matrix = sp.csr_array(RNG.standard_normal((3, 5000)) * (RNG.random((3, 5000)) < 0.9))
    V = RNG.standard_normal((5000, 3))
    there = place.sparse(matrix)
    np.testing.assert_allclose(arrays.host(there @ place.put(V)), matrix @ V, atol=1e-10)
    W = RNG.standard_normal((3, 2))
    np.testing.assert_allclose(arrays.host(there.T @ place.put(W)), matrix.T @ W, atol=1e-12)
    np.testing.assert_allclose(arrays.host(there.toarray()), matrix.toarray())


def test_eigenvalues_that_are_off_are_paid_for(place):
    """Whatever a device computes: what is left of its eigenpairs bounds how far they are off."""
    A = RNG.standard_normal((80, 80))
    G, xp = A + A.T, place.xp
    there, truth = place.put(G), float(np.linalg.eigvalsh(G)[0])
    values, vectors = xp.linalg.eigh(there)
    lost = lost_by(there, values, vectors)
    assert truth >= float(values[0]) - lost and lost < 1e-10 * np.linalg.norm(G)
    noise = place.put(1e-6 * RNG.standard_normal((80, 80)))
    assert lost_by(there, values, vectors + noise) > 1e-6
    wrong = values + 1e-3
    assert truth >= float(wrong[0]) - lost_by(there, wrong, vectors)
    assert lost_by(there, values, 0 * vectors) == np.inf


@pytest.mark.parametrize("kind", ["float64", "float32", "int32"])
def test_arrays_put_on_a_device_are_unchanged(place, monkeypatch, kind):
    from gramian.arrays import _torch_transfers as library

    monkeypatch.setattr(library, "STAGED", 1000)  # a GPU copies the longer ones in parts
    A = (100 * RNG.standard_normal((1_500_003, 3))).astype(kind)
    for array in (A, A[:999], A[1:], A[::2], A.T, A[:, 0]):
        np.testing.assert_array_equal(arrays.host(place.put(array)), array)


@pytest.mark.parametrize("block", [10, 1024])
@pytest.mark.parametrize("name", ["cholesky_ex", "solve_triangular"])
def test_inaccurate_cholesky_factor_is_not_used_for_a_proof(place, monkeypatch, block, name):
    import torch

    from gramian.arrays import _torch_dense as library

    monkeypatch.setattr(library, "CHOLESKY_BLOCK", block)
    scales = 10.0 ** RNG.uniform(-3, 3, 55)
    B = RNG.standard_normal((55, 55))
    plain = scales[:, None] * (B @ B.T + np.eye(55)) * scales
    A, b = place.put(plain), RNG.standard_normal(55)
    found = arrays.host(library.cholesky(A + 0)(place.put(b)))
    np.testing.assert_allclose(plain @ found, b, atol=1e-8)
    assert library.cholesky(-A) is None
    later = plain.copy()
    later[-1, -1] = 0.0
    assert library.cholesky(place.put(later)) is None
    exact = getattr(torch.linalg, name)

    def rough(*given, **named):
        found = exact(*given, **named)
        if name == "cholesky_ex":
            return found[0] * (1 + 1e-12), found[1]
        return found * (1 + 1e-12)

    monkeypatch.setattr(torch.linalg, name, rough)
    assert (library.cholesky(A) is None) == (name == "cholesky_ex" or block == 10)


def test_triangles_are_inverted_by_blocks(place, monkeypatch):
    from gramian.arrays import _torch_dense as library

    C = np.tril(RNG.standard_normal((119, 119))) + 12 * np.eye(119)
    monkeypatch.setattr(library, "INVERTED_DIRECTLY", 10)
    inverse = library.triangular_inverse(place.put(C))
    np.testing.assert_allclose(arrays.host(inverse), np.linalg.inv(C), atol=1e-12)


def test_a_dense_root_is_never_too_short(place):
    graph = neighbor_graph(RNG.standard_normal((120, 3)), 5, connect="mst")
    root = DenseRoot(graph.laplacian(), place)
    R = np.vstack([np.zeros((1, 119)), arrays.host(root.inverse).T])
    sizes = np.linalg.eigvalsh(R.T @ (graph.laplacian() @ R))
    assert sizes[0] >= 1.0 and sizes[-1] < 1 + 1e-8
    Y = place.put(RNG.standard_normal((119, 2)))
    np.testing.assert_allclose(arrays.host(root.coordinates(root @ Y)), arrays.host(Y), atol=1e-9)


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("asked", ["alone", "apart", "queries"])
def test_neighbours_are_those_of_the_host(asked, duplicates, device):
    X = RNG.standard_normal((700, 5))
    X = np.round(X) if duplicates else X
    y = RNG.integers(0, 3, 700)
    options = {"alone": {}, "apart": {"apart": y}, "queries": {"queries": X[:40] + 0.25}}[asked]
    host, there = nearest(X, 6, **options), nearest(X, 6, device=device, **options)
    np.testing.assert_array_equal(there.indices, host.indices)
    np.testing.assert_allclose(there.sq_distances, host.sq_distances, atol=1e-12)
    sparse = nearest(sp.csr_array(X), 6, device=device, **options)
    np.testing.assert_array_equal(sparse.indices, host.indices)


def test_neighbours_by_mixtures_are_those_of_the_host(device):
    spaces = [(RNG.standard_normal((300, d)), RNG.standard_normal((40, d))) for d in (3, 40)]
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.3]])
    (found, far), (there, distances) = (
        search_mixtures(spaces, weights, 5, device=where) for where in (None, device)
    )
    np.testing.assert_array_equal(there, found)
    np.testing.assert_allclose(distances, far, rtol=1e-12)


def test_held_out_errors_are_those_of_the_host(device):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 220)) + 0.4 * np.eye(3, 220)[y]
    for learner in (KTA, LMNN):
        host, there = (learner(device=where).fit(X, y).path_ for where in (None, device))
        np.testing.assert_allclose(there.errors, host.errors, atol=2.5 / y.size)  # two votes


def test_graphs_are_those_of_the_host(device):
    X = RNG.standard_normal((200, 3))
    np.testing.assert_array_equal(
        neighbor_graph(X, 4, connect="mst", device=device).edges,
        neighbor_graph(X, 4, connect="mst").edges,
    )


def test_leading_eigenpairs_of_dense_and_sparse_matrices(device, place):
    A = RNG.standard_normal((400, 400))
    K = A @ A.T
    host = top_eigen(K, 4)
    for given in (K, place.put(K)):
        found = top_eigen(given, 4, device=device)
        np.testing.assert_allclose(found.values, host.values, rtol=1e-9)
        assert isinstance(found.vectors, np.ndarray)
    S = sp.random_array((400, 400), density=0.05, rng=RNG)
    S = sp.csr_array(S + S.T)
    np.testing.assert_allclose(top_eigen(S, 3, device=device).values, top_eigen(S, 3).values)
    with pytest.raises(ValueError, match="symmetric"):
        top_eigen(A, 2, device=device)


def test_too_little_device_memory_is_reported_before_the_run(device, place, monkeypatch):
    monkeypatch.setattr(type(place), "free_memory", lambda self: 1e4)
    i, j = np.divmod(np.arange(2000), 50)
    problem = gm.problems.nuclear_completion(i, j, RNG.standard_normal(2000), (40, 50), 1.0)
    with pytest.raises(ValueError, match=r"GB of data and 90 rows, which here need .* the device"):
        gm.minimize(problem, device=device)


@pytest.mark.parametrize("name", ["cuda:97", "warp drive", 3.5])
def test_rejects_missing_device(name, device):
    with pytest.raises(ValueError, match="device"):
        gm.minimize(gm.problems.top_eigen(np.eye(3)), device=name)


def test_recorded_calls_give_the_same_results(place):
    """Calls of one shape are recorded; other shapes, and what asks for a number, are not."""
    A = place.put(RNG.standard_normal((30, 30)))
    b = place.put(RNG.standard_normal(30))
    xs = [place.put(RNG.standard_normal(30)) for _ in range(8)]
    product = arrays.recorded(lambda x: A @ x + b, place)
    asking = arrays.recorded(lambda x: x * float(place.xp.sum(x)), place)
    for x in xs:
        np.testing.assert_allclose(arrays.host(product(x)), arrays.host(A @ x + b))
        np.testing.assert_allclose(arrays.host(asking(x)), arrays.host(x * float(place.xp.sum(x))))
    first, second = product(xs[0]), product(xs[1])
    assert not np.allclose(arrays.host(first), arrays.host(second))
    wide = place.put(RNG.standard_normal((30, 30)))
    np.testing.assert_allclose(arrays.host(product(wide)), arrays.host(A @ wide + b))


class There:
    """A matrix on a device as an operator."""

    def __init__(self, A, place):
        self.A, self.place, self.shape = place.put(A), place, A.shape

    def __matmul__(self, v):
        return self.A @ v


@pytest.mark.parametrize("most", [0, 2**24])
def test_a_krylov_basis_is_that_of_the_host(most, place, monkeypatch):
    from gramian.linalg import _lanczos

    monkeypatch.setattr(_lanczos, "MAX_RECORDED_BASIS", most)
    A, start = RNG.standard_normal((80, 80)), RNG.standard_normal(80)
    A = A + A.T
    home = gm.problems.quadratic(None, None, 0.5 * A).objective
    both = (home, arrays.moved(home, place))
    operators = [CountedOperator(F.gradient(F.image(F.place.zeros((80, 0))))) for F in both]
    bases = [
        _lanczos.LanczosBasis.of(operator, operator.place.put(start), 30) for operator in operators
    ]
    for basis, operator in zip(bases, operators, strict=True):
        while not basis.full:
            basis.grow(operator)
        assert operator.products == 30
    np.testing.assert_allclose(bases[1].tridiagonal(), bases[0].tridiagonal(), atol=1e-9)
    np.testing.assert_allclose(arrays.host(bases[1].vectors), bases[0].vectors, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 3, 12])
def test_lanczos_of_an_invariant_space_ends_there(rank, place):
    """Entries that are read after the step that completed the space are ignored."""
    B = RNG.standard_normal((90, rank))
    found = ritz_pairs(There(B @ B.T, place), 2, steps=60, v0=place.put(B.sum(axis=1)))
    expected = np.linalg.eigvalsh(B @ B.T)[::-1][: min(2, rank)]
    np.testing.assert_allclose(found.values[: expected.size], expected, rtol=1e-9)


def test_lanczos_rejects_products_that_are_not_finite(place):
    operator = There(np.diag([1.0, 2.0, np.nan]), place)
    with pytest.raises(FloatingPointError, match="NaN"):
        ritz_pairs(operator, 1, steps=3, v0=place.put(np.ones(3)))


@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_leading_eigenvalue_after_restarts(tol, place, monkeypatch):
    monkeypatch.setattr(krylov, "LONGEST_BASIS", 20)
    values = np.append(np.linspace(-1.0, 1.0, 199), 1.02)
    Q = np.linalg.qr(RNG.standard_normal((200, 200)))[0]
    operator = There((Q * values) @ Q.T, place)
    found = leading_eigenpair(operator, tol=tol, random_state=0, max_iter=100)
    assert found.converged and found.products > 40
    assert found.value == pytest.approx(1.02, abs=tol)


def composite(kind, domain=None):
    w, targets = RNG.random(PAIRS - 5) + 0.5, RNG.random(PAIRS - 5)
    pairs = np.column_stack([ROWS, COLS])[5:]
    pairs = np.where(pairs[:, :1] == pairs[:, 1:], np.add(pairs, [0, 1]) % ORDER, pairs)
    made = {
        "distances": (PairDistances(pairs, ORDER), Squared(targets, weight=w)),
        "entries": (Entries(pairs, ORDER), Logistic(targets)),
        "soft-min": (PairDistances(pairs, ORDER), SoftMin(mu=0.1)),
    }
    return gm.Problem(Composite(*made[kind], np.diag(RNG.random(ORDER))), domain or gm.PSDCone())


def completion():
    cells = np.unique(RNG.integers(0, 40 * ORDER, 300))
    i, j = np.divmod(cells, ORDER)
    return gm.problems.nuclear_completion(
        i, j, RNG.standard_normal(i.size), (40, ORDER), 1.0, ridge=2.0
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: composite("distances"),
        lambda: composite("entries"),
        lambda: composite("soft-min", gm.Spectrahedron(2.0)),
        completion,
    ],
    ids=["distances", "entries", "soft-min", "completion"],
)
def test_an_evaluation_of_a_descent_transfers_nothing(make, place):
    """It can be recorded, and gives the value and the slope of the objective."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        transfers = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.transfers += "_local_scalar_dense" in str(function)
            return function(*args, **(kwargs or {}))

    problem = make()
    L, domain = RNG.standard_normal((problem.order, 4)), problem.domain
    there, moved = place.put(L), arrays.moved(problem.objective, place)
    moved.gradient_factor(moved.image(there))
    with Watch() as watch, arrays.unread():
        image = moved.image(domain.rescale(there))
        slope, value = moved.gradient_factor(image), moved.value(image)
    assert watch.transfers == 0 and not isinstance(value, float)
    assert isinstance(arrays.read(image).linear, float)
    here = problem.objective.image(domain.rescale(L))
    assert float(value) == pytest.approx(problem.objective.value(here), rel=1e-10)
    expected = problem.objective.gradient_factor(here)
    np.testing.assert_allclose(arrays.host(slope), expected, rtol=1e-8, atol=1e-8)


def test_triplet_maps_of_device_and_host_agree(place):
    """Triplets by their keys: the same map wherever it is made, with its adjoint and row sums."""
    near = np.array([[1, 2], [0, 2], [0, 1], [4, 5], [3, 5], [3, 4]])
    keys = np.sort(RNG.choice(18, 9, replace=False)) * 2 + RNG.integers(0, 2, 9)
    i, l = np.divmod(keys // 2, 6)
    keep = (i < 3) != (l < 3)
    keys = keys[keep] if keep.any() else np.array([3 * 2])
    here = anchored_margins(near, keys)
    there = anchored_margins(place.put(near), place.put(keys))
    L, w = RNG.standard_normal((6, 3)), RNG.standard_normal(keys.size)
    z = here.bilinear(L, L)
    i, l, j = keys // 2 // 6, keys // 2 % 6, near[keys // 2 // 6, keys % 2]
    expected = np.sum((L[i] - L[l]) ** 2, axis=1) - np.sum((L[i] - L[j]) ** 2, axis=1)
    np.testing.assert_allclose(z, expected)
    np.testing.assert_allclose(arrays.host(there.bilinear(place.put(L), place.put(L))), z)
    np.testing.assert_allclose(
        arrays.host(there.adjoint(place.put(w), place.put(L))), here.adjoint(w, L), atol=1e-12
    )
    assert np.sum(w * z) == pytest.approx(np.sum(L * here.adjoint(w, L)))
    for mine, reach in ((here, here.reach(w)), (there, there.reach(place.put(w)))):
        rows = np.abs(arrays.host(mine.adjoint_matrix(mine.place.put(w)))).sum(axis=1)
        assert np.all(rows <= arrays.host(reach[0]) + 1e-12)
    home = arrays.at_home(there)
    assert home.place.is_host
    np.testing.assert_allclose(home.bilinear(L, L), z)


def test_a_sparse_matrix_in_single_precision_on_a_device_is_found_on_the_host(place):
    laplacian = sp.csr_array(np.diag(np.full(5, 2.0)) - np.eye(5, k=1) - np.eye(5, k=-1))
    problem = gm.problems.npkl(laplacian, [[0, 1]], [[0, 4]], lam=1.0)
    single = arrays.in_single(arrays.moved(problem.objective.C, place))
    home = arrays.at_home(single)
    np.testing.assert_allclose(home.matrix.toarray(), laplacian.toarray())
    assert home.lower <= 0.0


def test_factors_are_balanced_on_the_device(place):
    L = np.random.default_rng(0).normal(size=(50, 6))
    here, found = balanced(L, 30), balanced(L, 30, place)
    np.testing.assert_allclose(found[:30] @ found[30:].T, L[:30] @ L[30:].T, atol=1e-12)
    np.testing.assert_allclose(np.abs(found), np.abs(here), atol=1e-12)


def test_smooth_eigenvectors_are_those_of_the_host(device):
    laplacian = neighbor_graph(RNG.standard_normal((400, 3)), 5, connect="mst").laplacian()
    values, vectors = smoothest(laplacian, 6)
    found, waves = smoothest(laplacian, 6, device=device)
    np.testing.assert_allclose(found, values, rtol=1e-8)
    np.testing.assert_allclose(np.abs(vectors.T @ waves), np.eye(6), atol=1e-3)
    apart = sp.block_diag([laplacian, laplacian])
    np.testing.assert_allclose(smoothest(apart, 2, device=device)[0][0], 0.0, atol=1e-8)
