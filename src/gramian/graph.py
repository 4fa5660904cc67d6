"""Neighbour graphs for manifold and kernel learning.

A graph consists of edges i < j without duplicates, with their squared lengths. Neighbours are found
by `gramian.neighbours`, without n × n distances.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg, splu

from gramian.arrays import cpu
from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.fronts import SYMMETRIC
from gramian.arrays.places import Place, Placed, host, namespace, norm, place
from gramian.arrays.samples import checked_samples
from gramian.common import clock
from gramian.common.parameters import whole_number
from gramian.common.random_state import generator
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.linalg import block_lanczos, conjugate_gradient
from gramian.maps import PairDistances, sparse_root
from gramian.maps.pairs import MAX_PLAIN_NUMBERS
from gramian.maps.whitened import DenseRoot
from gramian.neighbours import nearest, squared_distances
from gramian.objectives.matrices import DENSE_ORDER
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.proofs.sparse import SparseForm

__all__ = ["Graph", "neighbor_graph", "normalized_laplacian", "smoothest"]


CONNECT = ("error", "mst", "components")

FACTORED = 20_000
"""Number of points above which a Laplacian is not factored: its fill-in can grow quadratically."""

MIN_TRIED_POINTS = 5000
"""Number of points above which fill-in is first tested on a subset of the edges."""

TIME_SAFETY = 3.0
"""Ratio of the actual to the estimated time of a sparse factorisation, at most: 20,000 points of 5
dimensions take 49 s, estimated as 16 s, and 5,000 of 50 dimensions 1.5 s, estimated as 0.6 s."""

WAVES_SHARE = 0.5
"""Fraction of the remaining time for the eigenvectors of a starting point."""

LANCZOS_BLOCK, WAVES_TOL = 8, 1e-6
"""Vectors of a block of the Lanczos run, for which a factor is read once, and the tolerance of the
residuals relative to 1/λ₂."""

DENSE_ROOT_BYTES = 24.0
"""Bytes of memory of a dense root, per entry of the Laplacian."""

SHIFT_RATIO = 1e-6
"""The shift of a shift-inverted Laplacian, relative to its mean diagonal entry."""


@storable
@dataclass(frozen=True)
class Graph:
    """Edges between n points, each once with i < j, and their squared lengths.

    Attributes
    ----------
    n : int
        The number of points.
    edges : array of shape (p, 2)
    sq_distances : array of shape (p,)
    recall : float
        The fraction of the nearest neighbours found: 1 unless the search was approximate.
    """

    n: int
    edges: Indices
    sq_distances: Array
    recall: float = 1.0

    @cached_property
    def labels(self) -> Indices:
        """The connected component of each point."""
        return connected_components(self.adjacency(), directed=False)[1]

    @property
    def n_parts(self) -> int:
        """Number of connected components."""
        return int(self.labels.max()) + 1

    def renumbered(self, order: Indices) -> tuple[Graph, Indices]:
        """The graph whose point k is point order[k] of this one, and the old index of each edge."""
        ends = np.sort(np.argsort(order)[self.edges], axis=1)
        sorting = np.argsort(ends[:, 0] * self.n + ends[:, 1])
        return Graph(self.n, ends[sorting], self.sq_distances[sorting], self.recall), sorting

    def squares_at(self, places: Array) -> Array:
        """The squared lengths of the edges between points at the given places."""
        i, j = self.edges.T
        return np.sum((places[i] - places[j]) ** 2, axis=1)

    def weights(self, bandwidth: float | str = "auto") -> Array:
        """Gaussian weights exp(−D_e/σ²) of the edges; "auto" uses σ² = median of D_e."""
        return np.exp(-self.sq_distances / self.square_bandwidth(bandwidth))

    def square_bandwidth(self, bandwidth: float | str = "auto") -> float:
        """σ²; the mean if the median is 0, and 1 if all edges have length 0."""
        if bandwidth == "auto":
            D = self.sq_distances
            return float(np.median(D)) or float(np.mean(D)) or 1.0
        if isinstance(bandwidth, (int, float)) and np.isfinite(bandwidth) and bandwidth > 0:
            return float(bandwidth) ** 2
        raise ValueError(f'bandwidth must be a number above 0 or "auto", got {bandwidth!r}')

    def adjacency(self, weights: ArrayLike | None = None) -> sp.csr_array:
        """The symmetric matrix of the weights, default 1."""
        w = np.ones(len(self.edges)) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (len(self.edges),) or not np.all((w >= 0) & np.isfinite(w)):
            raise ValueError(
                f"weights must be {len(self.edges)} finite numbers of at least 0, got shape "
                f"{w.shape}" + (f" with {w.min()} to {w.max()}" if w.size else "")
            )
        i, j = self.edges.T
        half = sp.coo_array((w, (i, j)), shape=(self.n, self.n)).tocsr()
        return sp.csr_array(half + half.T)

    def laplacian(
        self, weights: ArrayLike | None = None, *, normalized: bool = False
    ) -> sp.csr_array:
        """D − W, or I − D^{-1/2} W D^{-1/2}, W the adjacency and D its row sums."""
        W = self.adjacency(weights)
        if normalized:
            return normalized_laplacian(W)
        return sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)


@under_own_errstate
def neighbor_graph(
    X: Any,
    n_neighbors: int = 6,
    *,
    approximate: bool = False,
    connect: str = "error",
    device: Any = None,
) -> Graph:
    """The symmetric graph that joins each sample to its nearest neighbours.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    n_neighbors : int
        An edge joins two samples if one is among the nearest neighbours of the other.
    approximate : bool
        Allow missed neighbours if there are at least `gramian.neighbours.APPROXIMATE_FROM` samples;
        needs the extra ``gramian[neighbours]``. `recall` of the graph is the fraction found.
    connect : {"error", "mst", "components"}
        How to treat a disconnected graph: raise an error, join its components by the shortest
        edges, or leave it unchanged.
    device : None, "cpu", "cuda" or similar
        Device of the search.
    """
    X = checked_samples(X, ensure_min_samples=2)
    k, n = whole_number(n_neighbors, "n_neighbors"), X.shape[0]
    if k >= n:
        raise ValueError(f"{n} samples have at most {n - 1} neighbours each, got n_neighbors={k}")
    _check_connect(connect)
    near = nearest(X, k, approximate=approximate, device=device)
    pairs = np.column_stack([np.repeat(np.arange(n), k), near.indices.ravel()])

    def of_pairs(pairs: Indices) -> Graph:
        return _graph(X, pairs, near.recall)

    def nearest_outside(asking: Indices, labels: Indices) -> tuple[Indices, Array]:
        found = nearest(X, 1, queries=X[asking], apart=(labels, labels[asking]), device=device)
        return found.indices[:, 0], found.sq_distances[:, 0]

    return connected(of_pairs(pairs), k, connect, of_pairs, nearest_outside)


def connected(
    graph: Graph,
    k: int,
    connect: str,
    of_pairs: Callable[[Indices], Graph],
    nearest_outside: Callable[[Indices, Indices], tuple[Indices, Array]],
) -> Graph:
    """A graph of k neighbours as it is, joined by the shortest edges, or an error: see `connect`.

    In each round every component but the largest adds its shortest edge to another one (Borůvka),
    so distances are computed only from points outside the largest component. `nearest_outside`
    returns the nearest point of another component for some points, and its distance.
    """
    _check_connect(connect)
    if connect == "error" and graph.n_parts > 1:
        sizes = np.sort(np.bincount(graph.labels))[::-1]
        shown = ", ".join(map(str, sizes[:4])) + (", …" if sizes.size > 4 else "")
        raise ValueError(
            f"the graph of {k} nearest neighbours falls into {graph.n_parts} components of {shown} "
            'points: pass connect="mst" to join them by the shortest edges, connect="components" '
            "to treat each separately, or increase n_neighbors"
        )
    while connect == "mst" and graph.n_parts > 1:
        labels = graph.labels
        asking = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
        there, length = nearest_outside(asking, labels)
        order = np.lexsort((length, labels[asking]))
        chosen = order[np.unique(labels[asking][order], return_index=True)[1]]
        bridges = np.column_stack([asking[chosen], there[chosen]])
        graph = of_pairs(np.vstack([graph.edges, bridges]))
    return graph


def _check_connect(connect: str) -> None:
    if connect not in CONNECT:
        raise ValueError(f"connect must be one of {CONNECT}, got {connect!r}")


@under_own_errstate
def canonical_order(X: Any) -> Indices:
    """An order of samples, or of the points of a symmetric matrix, independent of their own order.

    Random draws and splits in this order do not depend on the numbering of the rows. The order is
    invariant to translation, scaling and rotation of samples: it is computed from inner products of
    the centred rows, first their squared norms k and then, three times, ⟨x_i, Σ_j √k_j x_j⟩, which
    distinguishes rows of equal norm.
    """
    rows: Any = sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)
    mean = np.ravel(np.asarray(rows.mean(axis=0)))
    if sp.issparse(rows):
        squares = np.ravel(np.asarray(rows.multiply(rows).sum(axis=1)))
        key = squares - 2 * (rows @ mean) + float(mean @ mean)
    else:
        rows, mean = rows - mean, np.zeros(mean.size)
        key = np.einsum("ij,ij->i", rows, rows)
    unit = float(np.mean(np.abs(key))) or 1.0
    key = key / unit
    for _ in range(3):
        v = np.sqrt(np.abs(key))
        along = rows.T @ v - float(np.sum(v)) * mean
        key = key + (rows @ along - float(mean @ along)) / (unit * rows.shape[0])
    return np.argsort(key, kind="stable")


@under_own_errstate
def normalized_laplacian(W: sp.csr_array) -> sp.csr_array:
    """I − D^{-1/2} W D^{-1/2}, D the row sums of symmetric affinities W; 0 for isolated points."""
    as_symmetric(W, "W")
    if W.min() < 0:
        raise ValueError(f"W has negative affinities, down to {W.min():g}")
    degree = np.asarray(W.sum(axis=1)).ravel()
    root = np.zeros(degree.size)
    np.divide(1.0, np.sqrt(degree), out=root, where=degree > 0)
    scale = sp.diags_array(root)
    return sp.csr_array(sp.diags_array((degree > 0).astype(float)) - scale @ W @ scale)


@under_own_errstate
def smoothest(
    laplacian: Any,
    m: int,
    *,
    constant: bool = False,
    random_state: int | None = 0,
    device: Any = None,
) -> tuple[Array, Array]:
    """The m smallest eigenvalues of a Laplacian and their eigenvectors.

    Without the first of them unless `constant`: for D − W of a connected graph it is the constant
    vector, with the eigenvalue 0.

    By shift-and-invert Lanczos, with one sparse factorisation, or a dense one on a `device` with
    enough memory. If the fill-in is too large (samples of many dimensions) by LOBPCG,
    preconditioned by a subset of the edges, to a residual of 10⁻⁴ of the mean degree or at most a
    hundred steps.
    """
    as_symmetric(laplacian, "laplacian")
    L = sp.csc_array(laplacian, copy=True)  # factorisations sort it in place
    n = L.shape[0]
    m = whole_number(m, "m")
    first = 0 if constant else 1
    if m + first > n:
        raise ValueError(f"a graph of {n} points has {n - first} such eigenvectors, got m={m}")
    if m >= n - 2 or n <= 200:
        values, vectors = np.linalg.eigh(L.toarray())
        return values[first : m + first], vectors[:, first : m + first]
    clock.phase(f"the {m} smoothest waves of a graph of {n:,} points")
    clock.check()
    rng = generator(random_state)
    constant_vanishes = np.abs(L.sum(axis=0)).max() <= 1e-10 * L.diagonal().max()
    there = place(device)
    if not there.is_host and not constant and constant_vanishes:
        inverse = _dense_inverse(L, there)
        if inverse is not None:
            return _inverted(inverse, m, rng)
    filled, root = _fill(L)
    if root is not None and not constant and constant_vanishes:
        return _preconditioned(L, m, root, rng) if filled else _inverted(root, m, rng)
    start = rng.standard_normal(n)
    shift = -SHIFT_RATIO * float(L.diagonal().mean())
    try:
        if filled:
            top = 2.0 * float(L.diagonal().max())  # an upper bound on the eigenvalues
            turned = in_time(L.shape, sp.csc_array(top * sp.eye_array(n) - L).__matmul__)
            values, vectors = eigsh(turned, m + first, which="LA", v0=start, tol=1e-6)
            values = top - values
        else:
            values, vectors = _lowest(L, m + first, shift, start)
    except ArpackNoConvergence as stopped:
        raise RuntimeError(
            f"only {stopped.eigenvalues.size} of {m} eigenvectors were found"
        ) from None
    order = np.argsort(values)[first:]
    return np.maximum(values[order], 0.0), np.ascontiguousarray(vectors[:, order])


def _lowest(L: sp.csc_array, count: int, shift: float, start: Array) -> tuple[Array, Array]:
    """The lowest eigenpairs by shift-and-invert Lanczos.

    If the affinities of distant samples are tiny, the graph is disconnected up to rounding, and
    there are more eigenvalues near 0 than a short Krylov space can separate: the iteration does not
    converge. Then a larger space, and for small graphs a full decomposition, is used.
    """
    n = L.shape[0]
    wide = {"ncv": min(n, max(160, 4 * count)), "tol": 1e-10}
    factor = splu(sp.csc_array(L - shift * sp.eye_array(n)), **SYMMETRIC)
    inverse = in_time(L.shape, factor.solve)
    for way in ({"maxiter": 100}, wide):
        try:
            found = eigsh(L, count, sigma=shift, v0=start, OPinv=inverse, **way)
            return cast(tuple[Array, Array], found)
        except ArpackNoConvergence:
            if way is wide and n > DENSE_ORDER:
                raise
    values, vectors = np.linalg.eigh(L.toarray())
    return values[:count], vectors[:, :count]


def _fill(L: sp.csc_array) -> tuple[bool, LinearOperator | None]:
    """Whether the factor of a Laplacian has too much fill-in, and P̃⁺ of `_partial_root` if tested.

    A factor that would take too much of the remaining time counts as such.
    """
    n, left = L.shape[0], clock.left()
    small = n <= min(MIN_TRIED_POINTS, FACTORED)
    connected = connected_components(L, directed=False)[0] == 1
    if small or not connected:
        # A sparse factorisation cannot be interrupted.
        timed = left < clock.ENDLESS and n > DENSE_ORDER
        late = timed and TIME_SAFETY * SparseForm(L).seconds > left
        if not (late and connected):
            return late or n > FACTORED, None
    root, whole = _partial_root(L)
    return not whole, root


@under_own_errstate
def solve_laplacian(laplacian: Any, B: Array) -> Array:
    """P⁺B for columns of mean 0, P the Laplacian of a connected graph, by conjugate gradients."""
    root, _ = _partial_root(laplacian)
    options: Any = {"steps": 1000, "precondition": root.matvec}
    return np.column_stack([
        conjugate_gradient(laplacian.__matmul__, b, residual=1e-6 * norm(b), **options).x
        for b in B.T
    ])  # fmt: skip


def _inverted(inverse: Any, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The smoothest eigenvectors by block Lanczos with P⁺, which excludes the constant vector."""
    values, vectors, _ = block_lanczos(
        inverse, m, block=LANCZOS_BLOCK, tol=WAVES_TOL, random_state=rng
    )
    return 1.0 / values, np.ascontiguousarray(host(vectors))


class _DenseInverse(Placed):
    """P⁺ = (HR)(HR)ᵀ of the Laplacian of a connected graph by a dense root on a device."""

    def __init__(self, L: sp.csc_array, there: Place) -> None:
        self.place, self.root, self.shape = there, DenseRoot(L, there), L.shape

    def __matmul__(self, V: Array) -> Array:
        W = self.root @ self.root.transposed(V - self._means(V))
        return W - self._means(W)

    def _means(self, V: Array) -> Array:
        return namespace(V).sum(V, axis=0) / V.shape[0]


def _dense_inverse(L: sp.csc_array, there: Place) -> _DenseInverse | None:
    """P⁺ on a device, None for a graph that is not connected or too large."""
    if DENSE_ROOT_BYTES * L.shape[0] ** 2 > there.free_memory() / 2:
        return None
    if connected_components(L, directed=False)[0] > 1:
        return None
    try:
        return _DenseInverse(L, there)
    except (ValueError, RuntimeError):  # weights of very different sizes
        return None


def _preconditioned(
    L: sp.csc_array, m: int, root: LinearOperator, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The smoothest eigenvectors by LOBPCG, orthogonal to the constant vector."""
    block = rng.standard_normal((L.shape[0], m + max(5, m // 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # spare vectors may be inaccurate
        values, vectors = lobpcg(
            L, block, M=root, Y=np.ones((L.shape[0], 1)), largest=False,
            tol=1e-4 * float(L.diagonal().mean()), maxiter=100,
        )  # fmt: skip
    order = np.argsort(values)[:m]
    return np.maximum(values[order], 0.0), np.ascontiguousarray(vectors[:, order])


def in_time(shape: tuple[int, int], product: Callable[[Array], Array]) -> LinearOperator:
    """The symmetric operator of a product that checks the deadline first."""

    def checked(V: Array) -> Array:
        clock.check()
        return product(V)

    return LinearOperator(shape, matvec=checked, matmat=checked, dtype=float)


def _partial_root(laplacian: Any) -> tuple[LinearOperator, bool]:
    """P̃⁺, P̃ the Laplacian of a subset of edges limited by fill-in, and whether it is complete."""
    n = laplacian.shape[0]
    upper = sp.coo_array(sp.triu(laplacian, k=1))
    root, kept = sparse_root(PairDistances(np.column_stack(upper.coords), n), -upper.data)

    def product(V: Array) -> Array:
        columns = V.reshape(n, -1)
        W = root @ root.transposed(columns - columns.mean(axis=0))
        return (W - W.mean(axis=0)).reshape(V.shape)

    return in_time((n, n), product), bool(kept.all())


def _graph(X: Any, pairs: Indices, recall: float) -> Graph:
    """The edges of the pairs without duplicates, and their squared lengths."""
    n = X.shape[0]
    keys = np.sort(pairs.min(axis=1).astype(np.int64) * n + pairs.max(axis=1))
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: keys.size]]
    edges = np.column_stack(np.divmod(keys, n))
    i, j = (cpu.index_array(end) for end in edges.T)
    if sp.issparse(X):
        lengths = squared_distances(X, X, i, j)
    else:
        compiled = i.size * X.shape[1] > MAX_PLAIN_NUMBERS
        lengths = cpu.gather_distances(X, X, i, j, compiled=compiled)
    return Graph(n, edges, lengths, recall)
