"""Distances along the edges of a graph, in coordinates where its Laplacian is the identity."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri
from scipy.sparse.csgraph import breadth_first_tree, dijkstra
from scipy.sparse.linalg import splu

from gramian.arrays.fronts import MIN_FRONT_POINTS, SYMMETRIC, Elimination, Fronts, elimination
from gramian.arrays.places import (
    Place,
    Placed,
    at_home,
    backend,
    eye,
    host,
    namespace,
    norm,
    precision,
)
from gramian.common import clock
from gramian.maps.base import Floats
from gramian.maps.congruence import Transformed
from gramian.maps.pairs import PairDistances

MAX_TRIAL_ENTRIES = 2_000_000
"""Number of entries of a root above which no larger one is tried, which has about three times as
many."""

TRIAL_TIME_GROWTH, MAX_TIME_FRACTION = 4, 0.5
"""Assumed growth factor of the time of a trial, and the share of the remaining time it may take."""

MAX_WHOLE_POINTS = 2000
"""Number of points up to which the full graph is factored for any fill-in."""

MAX_FRONT_ENTRIES = 64_000_000
"""Largest number of entries of a multifrontal root."""

MAX_SPLIT_ENTRIES = 100_000
"""Entries of sparse matrices that are multiplied in the time of a split inverse, up to which it is
used: 26,000 for 1,000 points of a surface, 58,000 for 1,000 digits with 12 neighbours."""

DENSE_ENTRIES_PER_SPARSE = 8
"""Entries of a dense block that are multiplied in the time of one entry of a sparse matrix (12
columns: 1.2 and 10 ns)."""


class GroundedRoot(Placed):
    """R (n × (n − 1)) with RᵀPR = I for the Laplacian P of a connected graph, and first row 0.

    P without its first row and column is CCᵀ, where C is sparse and lower triangular after a
    permutation: R = [0; C⁻ᵀ]. A factor Y of n − 1 rows gives the factor RY of n points with the
    first point at 0; up to translation every factor has this form.
    """

    def __init__(self, laplacian: Any, plan: Elimination | None = None) -> None:
        grounded = sp.csr_array(laplacian)[1:, 1:]
        self.triangle = _triangle(grounded, plan)
        self.n = laplacian.shape[0]
        self.order = self.n - 1
        self._last: tuple[Floats, Floats] | None = None

    def __matmul__(self, Y: Floats) -> Floats:
        """RY; the last product is cached, because one evaluation needs it several times."""
        xp, last = namespace(Y), self._last
        if last is None or last[0].shape != Y.shape or not bool(xp.all(last[0] == Y)):
            L = self.place.zeros((self.n, Y.shape[1]))
            L[1:] = self.triangle.backward(Y)
            self._last = last = (xp.asarray(Y, copy=True), L)
        return last[1]

    def transposed(self, V: Floats) -> Floats:
        """RᵀV."""
        return self.triangle.forward(V[1:])

    def congruence(self, *matrices: Any) -> Callable[[Floats], Floats]:
        """v ↦ Rᵀ(Σ matrices)Rv for a vector v."""

        def product(v: Floats) -> Floats:
            placed = (self @ v[:, None])[:, 0]
            total = sum(matrix @ placed for matrix in matrices)
            return self.transposed(total[:, None])[:, 0]

        return product

    def coordinates(self, L: Floats) -> Floats:
        """Y with RY = L minus its first row."""
        return self.triangle.transposed_times(L[1:] - L[0])


def _triangle(grounded: sp.csr_array, plan: Elimination | None) -> _Triangle | Fronts:
    """C of a Laplacian without its first row and column."""
    found: _Triangle | Fronts | None
    if plan is not None:
        found = Fronts(plan, grounded)
    elif grounded.shape[0] < MAX_WHOLE_POINTS:
        found = _SplitInverse.best(grounded)
    else:
        found = _Triangle.of(grounded)
    if found is None or (isinstance(found, Fronts) and (not found.usable or found.negative)):
        raise ValueError("the graph is not connected: its Laplacian has no such root")
    return found


class _Triangle:
    """C by columns and by rows, and the permutation of its rows."""

    def __init__(self, C: sp.csc_array, rows: NDArray[Any]) -> None:
        self.C, self.by_rows, self.rows = C, C.tocsr(), rows

    @classmethod
    def of(cls, grounded: sp.csr_array, order: Any = None) -> _Triangle | None:
        """C by SuperLU, in minimum degree order by default; None if the matrix is not positive
        definite.
        """
        options = SYMMETRIC
        if order is not None:
            grounded = grounded[order][:, order]
            options = SYMMETRIC | {"permc_spec": "NATURAL"}
        try:
            lu = splu(sp.csc_array(grounded), **options)
        except RuntimeError:  # exactly singular
            return None
        pivots = lu.U.diagonal()
        if not (np.array_equal(lu.perm_r, lu.perm_c) and bool(np.all(pivots > 0))):
            return None
        C = sp.csc_array(lu.L @ sp.diags_array(np.sqrt(pivots)))
        C.sort_indices()
        return cls(C, lu.perm_r if order is None else np.argsort(order)[lu.perm_r])

    @property
    def entries(self) -> int:
        return int(self.C.nnz)

    def backward(self, Y: Floats) -> Floats:
        """PᵀC⁻ᵀY."""
        return backend(Y).triangular_solve(self.C, Y, transposed=True)[self.rows]

    def forward(self, V: Floats) -> Floats:
        """C⁻¹PV."""
        B = namespace(V).empty_like(V)
        B[self.rows] = V
        return backend(V).triangular_solve(self.by_rows, B)

    def transposed_times(self, L: Floats) -> Floats:
        """CᵀPL."""
        Z = namespace(L).empty_like(L)
        Z[self.rows] = L
        return self.C.T @ Z


class _SplitInverse(_Triangle):
    """C⁻¹ of moderate order as products with a sparse A⁻¹, a sparse B and a dense D⁻¹.

        C = [A, 0; B, D],   C⁻¹v = [x; D⁻¹(w − Bx)] with x = A⁻¹u, v = [u; w]

    Column j of A⁻¹ has one entry for each of its ancestors in the elimination tree; the separators
    of the graph, where C is nearly full, are last. With 12 columns and 1,000 points of a Swiss roll
    C⁻¹v takes 0.25 ms, and 0.7 ms for 1,000 digits (12 neighbours); compiled triangular solves take
    0.2 and 1.2 ms, after 0.5 s for the import of the compiler.
    """

    def __init__(self, C: sp.csc_array, rows: NDArray[Any], cut: int) -> None:
        self.C, self.rows, self.cut = C, rows, cut
        self.order = np.argsort(rows)
        self.A = sp.csr_array(_inverse(C[:cut, :cut]))
        self.B = sp.csr_array(C[cut:, :cut])
        self.D = _inverse(C[cut:, cut:])
        self.A_transposed, self.B_transposed = self.A.T.tocsr(), self.B.T.tocsr()

    @classmethod
    def best(cls, grounded: sp.csr_array) -> _Triangle | None:
        """The faster one of two orders: minimum degree, and the same with separators last.

        C itself if both are slow, and None if the matrix is not positive definite.
        """
        found = _Triangle.of(grounded)
        if found is None:
            return None
        least, cut = _cut(found.C)
        order = _separators_last(grounded)
        other = None if order is None else _Triangle.of(grounded, order)
        if other is not None and _cut(other.C)[0] < least:
            found, (least, cut) = other, _cut(other.C)
        return cls(found.C, found.rows, cut) if least < MAX_SPLIT_ENTRIES else found

    def backward(self, Y: Floats) -> Floats:
        """PᵀC⁻ᵀY."""
        k = self.cut
        last = self.D.T @ Y[k:]
        first = self.A_transposed @ (Y[:k] - self.B_transposed @ last)
        return np.concatenate([first, last]).take(self.rows, axis=0)

    def forward(self, V: Floats) -> Floats:
        """C⁻¹PV."""
        k, V = self.cut, V.take(self.order, axis=0)
        first = self.A @ V[:k]
        return np.concatenate([first, self.D @ (V[k:] - self.B @ first)])


def _inverse(C: sp.csc_array) -> Floats:
    """The inverse of a lower triangular matrix, dense."""
    full = C.toarray(order="F")
    return np.ascontiguousarray(dtrtri(full, lower=1)[0]) if full.size else full


def _separators_last(grounded: sp.csr_array) -> NDArray[Any] | None:
    """An order of elimination in which every eighth level of a breadth-first search is last.

    None if there are no eight levels. Edges join points of the same or of consecutive levels, so
    that the points between two such levels are separated from the others.
    """
    levels = dijkstra(grounded != 0, directed=False, unweighted=True, indices=0)
    last = np.where(np.isfinite(levels), levels, 0) % 8 == 7
    if not last.any():
        return None
    inner = np.flatnonzero(~last)
    rough = splu(sp.csc_array(grounded[inner][:, inner]), **SYMMETRIC)
    return np.concatenate([inner[np.argsort(rough.perm_c)], np.flatnonzero(last)])


def _cut(C: sp.csc_array) -> tuple[float, int]:
    """The least time of products with A⁻¹, B and D⁻¹, and the order of A for which they take it.

    Row i of A⁻¹ has one entry for each descendant of i in the elimination tree, where the parent of
    j is the first row below the diagonal of column j. The time is in entries of sparse matrices.
    """
    n, ends = C.shape[0], C.indptr.tolist()
    descendants = [1] * n
    for j in range(n):
        if ends[j + 1] > ends[j] + 1:
            descendants[C.indices[ends[j] + 1]] += descendants[j]
    of_A = np.concatenate([[0], np.cumsum(descendants)])
    of_B = C.indptr - C.tocsr().indptr
    of_D = np.arange(n, -1, -1.0) ** 2 / DENSE_ENTRIES_PER_SPARSE
    costs = of_A + of_B + of_D
    return float(np.min(costs)), int(np.argmin(costs))


class DenseRoot(Placed):
    """The dense root of the Laplacian of all edges, on a device.

    P without its first row and column is CCᵀ by Cholesky, and R = [0; C⁻ᵀ] is dense. The deviation
    of RᵀPR from I is bounded, including rounding errors, and R is scaled up by it so that
    RᵀPR ⪰ I: identity weights then give a matrix that is at least I.
    """

    def __init__(self, laplacian: Any, place: Place) -> None:
        self.place, xp = place, place.xp
        self.n = laplacian.shape[0]
        self.order = self.n - 1
        grounded = place.sparse(sp.csr_array(laplacian)[1:, 1:])
        C = xp.linalg.cholesky(grounded.toarray())
        inverse = backend(C).triangular_inverse(C)
        off = self._off(grounded, inverse)
        if not off < 0.5:
            raise ValueError("the Laplacian is too ill-conditioned for a dense root")
        self.C, self.inverse = C * (1 - off) ** 0.5, inverse / (1 - off) ** 0.5

    def _off(self, grounded: Any, inverse: Floats) -> float:
        """Bound on ‖C⁻¹PC⁻ᵀ − I‖: its computed norm plus γ tr(C⁻¹ diag(|P|1) C⁻ᵀ) for rounding."""
        xp = namespace(inverse)
        reach = abs(grounded).row_sums()
        rounding = (2 * self.order + 8) * precision(inverse) * float(xp.sum(inverse**2 @ reach))
        computed = inverse @ (grounded @ inverse.T)
        return norm(computed - eye(self.order, self.place)) + rounding

    def __matmul__(self, Y: Floats) -> Floats:
        """RY."""
        xp = namespace(Y)
        return xp.concat([xp.zeros_like(Y[:1]), self.inverse.T @ Y])

    def transposed(self, V: Floats) -> Floats:
        """RᵀV."""
        return self.inverse @ V[1:]

    def dense(self) -> Floats:
        """R."""
        xp = namespace(self.inverse)
        return xp.concat([xp.zeros_like(self.inverse[:1]), self.inverse.T])

    def coordinates(self, L: Floats) -> Floats:
        """Y with RY = L minus its first row."""
        return self.C.T @ (L[1:] - L[0])


def sparse_root(
    distances: PairDistances, weights: Floats | float = 1.0
) -> tuple[GroundedRoot, NDArray[np.float64]]:
    """A root of the Laplacian of a subset of the edges, limited by its fill-in, and its weights.

    The subset is a breadth-first tree plus random edges, twice as many in each trial: with a few
    additional edges the condition number grows less with the graph than the fill-in does. A time
    limit reduces the number of trials.
    """
    n, p = distances.order, distances.size
    kept = np.ones(p) * np.asarray(weights, dtype=float)
    if n <= MAX_WHOLE_POINTS:
        return GroundedRoot(distances.adjoint_sparse(kept)), kept
    whole = _whole_root(distances, kept) if n > MIN_FRONT_POINTS else None
    if whole is not None:
        return whole, kept
    tree = _tree(distances)
    others = np.random.default_rng(0).permutation(np.flatnonzero(~tree))
    more = n // 4
    while True:
        clock.check()
        started = clock.now()
        chosen = tree.copy()
        chosen[others[:more]] = True
        kept = np.where(chosen, weights, 0.0)
        root = GroundedRoot(distances.adjoint_sparse(kept))
        if more >= others.size or root.triangle.entries > MAX_TRIAL_ENTRIES:
            return root, kept
        if TRIAL_TIME_GROWTH * clock.elapsed(started) > MAX_TIME_FRACTION * clock.left():
            return root, kept
        more *= 2


def _whole_root(distances: PairDistances, weights: Floats) -> GroundedRoot | None:
    """The multifrontal root of the Laplacian of all edges, None if it has too much fill-in."""
    clock.check()
    laplacian = distances.adjoint_sparse(weights)
    plan = elimination(sp.csr_array(laplacian)[1:, 1:])
    if plan.entries > MAX_FRONT_ENTRIES or plan.seconds > MAX_TIME_FRACTION * clock.left():
        return None
    return GroundedRoot(laplacian, plan)


def _tree(distances: PairDistances) -> NDArray[np.bool_]:
    """Mask of the edges of a breadth-first tree from the point with the most neighbours."""
    n = distances.order
    low = np.minimum(distances.rows, distances.cols).astype(np.int64)
    high = np.maximum(distances.rows, distances.cols)
    graph = sp.csr_array((np.ones(low.size), (low, high)), shape=(n, n))
    degree = np.bincount(low, minlength=n) + np.bincount(high, minlength=n)
    found = sp.coo_array(breadth_first_tree(graph, int(np.argmax(degree)), directed=False))
    i, j = np.minimum(*found.coords).astype(np.int64), np.maximum(*found.coords)
    first = np.unique(low * n + high, return_index=True)  # a pair may be repeated
    inside = np.zeros(low.size, dtype=bool)
    inside[first[1][np.searchsorted(first[0], i * n + j)]] = True
    return inside


class WhitenedDistances(Transformed):
    """𝒜(M) = the distances d(i, j) of RMRᵀ along the edges of a connected graph.

    R is the grounded root of its Laplacian, or of that of a subset of its edges if the fill-in is
    too large (`sparse_root`). `weights` (default 1) are those of the edges; with s equal to them
    on the subset and 0 elsewhere, 𝒜*(s) = RᵀPR = I.
    """

    kept: Any = None
    """s, None if no weights give the identity."""
    _home: Any

    def __init__(self, distances: PairDistances, weights: Floats | float = 1.0) -> None:
        root, kept = sparse_root(distances, weights)
        self._set(distances, root, kept)

    def _set(self, distances: PairDistances, root: Any, kept: Any) -> None:
        self.base = self.distances = distances
        self.X = self.root = root
        self.kept, self.place = kept, distances.place
        self.order, self.size = distances.order - 1, distances.size

    @classmethod
    def on(
        cls, distances: PairDistances, place: Place, weights: Floats | float = 1.0
    ) -> WhitenedDistances:
        """The map on a device, whitened by the Laplacian of all edges."""
        there, home = cls.__new__(cls), at_home(distances)
        kept = np.ones(home.size) * np.asarray(weights, dtype=float)
        there._set(distances, DenseRoot(home.adjoint_sparse(kept), place), place.put(kept))
        there.place = place
        there._home = WhitenedDistances.by(home, kept)
        return there

    @classmethod
    def by(cls, distances: PairDistances, kept: NDArray[np.float64]) -> WhitenedDistances:
        """A map without a root, for proofs: distances, and weights whose Laplacian becomes I."""
        found = cls.__new__(cls)
        found._set(distances, None, kept)
        return found

    def _back(self, Y: Floats) -> Floats:
        """RᵀY."""
        return self.root.transposed(Y)

    def adjoint_matrix(self, w: Floats) -> Floats:
        """Rᵀ𝒜*(w)R, by one dense product if R is dense."""
        if not isinstance(self.root, DenseRoot):
            return super().adjoint_matrix(w)
        return self.root.transposed(self.distances.adjoint(w, self.root.dense()))

    @cached_property
    def whitened_laplacian(self) -> Any:
        """The Laplacian that R whitens, without the first point."""
        home = at_home(self.distances)
        return self.place.sparse(home.adjoint_sparse(host(self.kept))[1:, 1:])

    def form_vectors(self) -> sp.csr_array:
        """e_i − e_j for every edge, without the first point, which is at 0."""
        ends = np.column_stack([self.distances.rows, self.distances.cols]).ravel()
        signs = np.tile([1.0, -1.0], self.size)
        starts = np.arange(0, 2 * self.size + 1, 2)
        shape = self.size, self.distances.order
        return sp.csr_array(sp.csr_array((signs, ends, starts), shape=shape)[:, 1:])

    def identity_weights(self) -> NDArray[np.float64] | None:
        return self.kept


class GroundedDistances(WhitenedDistances):
    """𝒜(M) = the distances of RMRᵀ for pairs, RᵀPR = I for the Laplacian P of another graph.

    The first point of that graph is at the origin.
    """

    def __init__(self, distances: PairDistances, laplacian: Any) -> None:
        self._set(distances, GroundedRoot(laplacian), None)
        self.unit = sp.csr_array(laplacian)[1:, 1:]

    def vector_product(self, w: Floats) -> Callable[[Floats], Floats]:
        return self.root.congruence(self.distances.adjoint_sparse(w))
