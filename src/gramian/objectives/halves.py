"""F(LLᵀ) of a block PQᵀ as least squares in P for a given Q, and in Q for a given P."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, singledispatch
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays.blocks import mapped, summed
from gramian.arrays.cpu import (
    COMPILED_ROW_WORK,
    Floats,
    Indices,
    gather_products,
    refit_rows,
    sparse_product,
    worth_compiling,
)
from gramian.common.types import Array
from gramian.linalg import conjugate_gradient
from gramian.linalg.filtered import leading_singular
from gramian.losses import Loss, SquaredWithOffsets
from gramian.losses.base import LeastSquares, least_squares_of
from gramian.maps import BlockEntries
from gramian.objectives.base import Objective, once
from gramian.objectives.composite import Composite
from gramian.objectives.matrices import is_multiple_of_identity

Mask = NDArray[np.bool_]

OVERSHOOT = 1.2
"""Size of new columns along singular vectors, in units of the best common size: a sweep reduces
long columns faster than it extends short ones. On MovieLens 1M, 1.0, 1.2 and 1.35 end at gaps of
2.8, 2.5 and 2.4 % and an RMSE of 0.8416, 0.8418 and 0.8420."""

MAX_PLAIN_ENTRIES = 250_000
"""Number of entries up to which new columns are computed without compiled products: the products of
MovieLens 100K take 25 ms compiled and 50 ms otherwise, and the compilation 0.9 s."""

LEAST_FLOOR = 1e-3
"""Smallest λ, relative to the Frobenius norm of the residuals, for which filters of their singular
values do not overflow in float32."""

POWER_STEPS, LIPSCHITZ_MARGIN = 4, 1.1
"""Power iterations for the largest curvature of F along given vectors, and the factor by which
their result, a lower estimate, is increased."""

NEW_COLUMNS = 1.0
"""The norm of new random columns of a state, in units of that of its own columns."""


@dataclass(frozen=True, eq=False)
class RowFits:
    """Least squares of every row of P for fixed rows of Q.

    ½ Σ_e (s_e p_i·q_j + r_e (b_i + c_j) − t_e)² + ½ Σ_k penalty_k p_ik² + ½ p_iᵀ G p_i, the offsets
    b and c are in the last columns of P and Q, if any (`free`); the penalty of a row, except that
    of its offset, is multiplied by `stiffness`. All in one precision, float32 or float64.
    """

    indptr: Indices  # (m + 1,) the entries of row i
    neighbour: Indices  # (p,) their j
    scale: Floats | None  # (p,) s; default 1
    targets: Floats  # (p,) t
    free: bool
    roots: Floats | None = None  # (p,) r; default 1
    stiffness: Floats | None = None  # (m,); default 1

    def refit(
        self,
        P: Floats,
        Q: Floats,
        penalty: Floats,
        steps: int,
        *,
        gram: Floats | None = None,
        compiled: bool | None = None,
    ) -> float:
        """Take a few conjugate gradient steps on each row of P, in place.

        They start from the current row and are scaled by the diagonal of its system. Returns the
        sum before the steps, including the penalties of P.
        """
        dtype, m = P.dtype, P.shape[0]
        penalty = np.asarray(penalty, dtype=dtype)
        gram = np.zeros((0, 0), dtype) if gram is None else np.asarray(gram, dtype=dtype, order="C")
        stiffness = np.ones(m, dtype) if self.stiffness is None else self.stiffness
        work = int(self.indptr[-1]) * P.shape[1]
        if not worth_compiling(compiled, work, COMPILED_ROW_WORK):
            return self._refit_plain(P, Q, penalty, stiffness, gram, steps)
        roots = np.zeros(0, dtype) if self.roots is None else self.roots
        scale = np.zeros(0, dtype) if self.scale is None else self.scale
        data = (self.indptr, self.neighbour, scale, self.targets, roots)
        return refit_rows(P, Q, steps, *data, penalty, stiffness, gram, self.free)

    def residuals(self, P: Floats, Q: Floats, rows: Indices) -> Floats:
        """t_e − s_e p_i·q_j − r_e (b_i + c_j) for all entries, whose rows are given."""
        z = gather_products(P[:, :-1], Q[:, :-1], rows, self.neighbour)
        offsets = P[rows, -1] + Q[self.neighbour, -1]
        z *= 1.0 if self.scale is None else self.scale
        z += float(self.free) * offsets if self.roots is None else self.roots * offsets
        return (self.targets - z).astype(P.dtype)

    def _refit_plain(
        self, P: Floats, Q: Floats, penalty: Floats, stiffness: Floats, gram: Floats, steps: int
    ) -> float:
        """`refit` for all rows of P at once: two sparse products per step."""
        m, one = P.shape[0], P.dtype.type(self.free)
        counts, k = np.diff(self.indptr), gram.shape[0]
        rows, others = np.repeat(np.arange(m, dtype=np.int32), counts), Q[:, :-1]
        scale = np.ones(rows.size, P.dtype) if self.scale is None else self.scale
        roots = np.full(rows.size, one) if self.roots is None else self.roots
        ridge = np.tile(penalty, (m, 1))
        ridge[:, :-1] *= stiffness[:, None]

        def forward(V: Floats) -> Floats:
            z = scale * gather_products(V[:, :-1], others, rows, self.neighbour)
            return z + roots * V[rows, -1]

        def adjoint(weights: Floats, Z: Floats) -> Floats:
            shape = (m, Q.shape[0])
            return sparse.csr_array((weights, self.neighbour, self.indptr), shape=shape) @ Z

        def backward(y: Floats) -> Floats:
            sums = np.bincount(rows, roots * y, minlength=m)
            return np.column_stack([adjoint(scale * y, others), sums])

        def penalised(V: Floats) -> Floats:
            bent = ridge * V
            bent[:, :k] += V[:, :k] @ gram
            return bent

        left = self.targets - roots * Q[self.neighbour, -1] - forward(P)
        masses = np.bincount(rows, roots**2, minlength=m)
        mass = ridge + np.column_stack([adjoint(scale**2, others**2), masses])
        mass[:, :k] += np.diagonal(gram)
        bent = penalised(P)
        before = 0.5 * float(np.vdot(left, left) + np.vdot(P, bent))
        found = conjugate_gradient(
            lambda V: backward(forward(V)) + penalised(V),
            backward(left) - bent,
            steps=steps,
            precondition=lambda residual: residual / mass,
            axis=1,
        )
        P += found.x.astype(P.dtype)
        return before


class StatesByRow:
    """Operations on states of sweeps: arrays, or `Blocks` whose rows may be on other machines."""

    lam: float
    ridge: float
    units: Array | None
    offsets: Callable[[Any], Array]
    """The optimal b and c of a factor, concatenated."""
    dtype: Any

    pace: ClassVar[int] = 1
    """Number of sweeps that make as much progress as one sweep of least squares."""

    @property
    def noise(self) -> Array | None:
        """Scale of the rows of random columns, uniform in the factor; None if it is 1."""
        if self.units is None:
            return None
        return (1.0 / self.units).astype(self.dtype)

    def state(self, factor: Any) -> Any:
        """A new state [P b; Q c] with the optimal offsets."""
        given = column(self.units), column(self.offsets(factor))
        return mapped(_with_offsets, factor, *given, self.dtype)

    def factor(self, state: Any) -> Any:
        """[P; Q] of a state, in float64."""
        return mapped(_without_offsets, state, column(self.units))

    def widened(self, state: Any, rank: int, rng: np.random.Generator) -> Any:
        """The state with random columns added, up to a rank."""
        own = state.shape[1] - 1
        if rank <= own:
            return state
        more, size = _normal(state, rank - own, rng), column(self.noise)
        squares = summed(_squares, state, more, size)
        length = NEW_COLUMNS * float(np.sqrt(squares[0] / squares[1]))
        return mapped(widened, state, more, size, max(length, 1e-6))

    def change(self, before: Any, after: Any) -> Any:
        return after - before

    def products(self, changes: Sequence[Any]) -> Array:
        """⟨d_k, d_l⟩ for the differences d of each change from the last, with ⟨d_k, last change⟩
        as an additional column.
        """
        if len(changes) == 1:
            return np.zeros((0, 1))
        return summed(_products, *changes)

    def mixture(self, points: Sequence[Any], weights: Array) -> Any:
        """The last point minus the weighted differences of consecutive points."""
        return mapped(_mixture, weights, *points)


@dataclass(frozen=True, eq=False)
class Halves(StatesByRow):
    """½ Σ_e (s_e p_i·q_j + r_e (b_i + c_j) − t_e)² + λ/2 (‖P‖² + ‖Q‖²) + κ/2 (‖b‖² + ‖c‖²).

    A *state* is [P b; Q c], with one column more than the factor, which is 0 without offsets.
    With one half fixed, every row of the other is a separate small problem. If all entries of the
    block count, F includes ω/2 ‖PQᵀ‖² (`everywhere`). With `units` the rows of a state are those of
    the factor divided by them, and the entries have no scale.
    """

    split: int
    """Number of rows of P."""
    upper: RowFits
    lower: RowFits
    lam: float
    ridge: float
    offsets: Callable[[Array], Array]
    everywhere: float = 0.0
    constant: float = 0.0
    units: Array | None = None

    @classmethod
    def of(
        cls, map: BlockEntries, loss: Loss, squares: LeastSquares, lam: float, dtype: Any = float
    ) -> Halves:
        """The halves of a sum of squares of some entries plus λ/2 tr M."""

        def offsets(factor: Array) -> Array:
            if not isinstance(loss, SquaredWithOffsets):
                return np.zeros(map.order)
            return np.concatenate(loss.offsets(map.bilinear(factor, factor)))

        free, dtype = squares.ridge is not None, np.dtype(dtype)
        scale, units = _scale_and_units(map, squares, dtype)
        roots = None if squares.roots is None else squares.roots.astype(dtype)
        targets = _one_each(squares.targets, map.rows.shape, dtype)
        stiffness = None if units is None else np.square(units).astype(dtype)
        m = map.shape[0]
        upper, lower = (
            RowFits(
                starts,
                neighbour,
                _taken(scale, entry),
                targets[entry],
                free,
                _taken(roots, entry),
                None if stiffness is None else stiffness[own],
            )
            for (starts, neighbour, entry), own in (
                (map.by_row(), slice(None, m)),
                (map.by_column(), slice(m, None)),
            )
        )
        ridge = 1.0 if squares.ridge is None else squares.ridge
        return cls(m, upper, lower, lam, ridge, offsets, units=units)

    @property
    def noise(self) -> Array | None:
        return None if self.everywhere else super().noise

    @property
    def dtype(self) -> Any:
        return self.upper.targets.dtype

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(self.upper.targets.size)

    @property
    def plain(self) -> bool:
        """Whether F consists of squares of known entries and the trace of M alone."""
        return type(self) is Halves and not self.everywhere

    def scattered(self, rng: np.random.Generator, rank: int) -> Array:
        """A state of random Q, of the size that products as large as the targets need."""
        rows = self.split + self.lower.indptr.size - 1
        state = np.zeros((rows, rank + 1), dtype=self.dtype)
        targets, scale = self.upper.targets, self.upper.scale
        square = float(np.mean(1.0 if scale is None else np.square(scale)))
        Q = state[self.split :, :-1]
        Q[:] = scattered_size(float(np.mean(np.square(targets))), square, rank)
        Q *= rng.standard_normal(Q.shape, dtype=np.float32)
        if self.noise is not None:
            Q *= self.noise[self.split :, None]
        return state

    def without(self, by_row: Mask, by_column: Mask) -> Halves:
        """These halves without the held-out entries, whose squares get weight 0.

        The masks are in the order of each half. Targets are changed in place: the original halves
        must not be used afterwards.
        """
        upper, lower = _without(self.upper, by_row), _without(self.lower, by_column)
        return replace(self, upper=upper, lower=lower)

    def with_falling(self, state: Array, count: int, rng: np.random.Generator) -> Array:
        """The state with up to `count` columns along which F decreases.

        They are singular vectors of the matrix of residuals, scaled by their values minus λ.
        """
        fits, (P, Q) = self.upper, self._parted(state)
        m, n = P.shape[0], Q.shape[0]
        rows = np.repeat(np.arange(m, dtype=np.int32), np.diff(fits.indptr))
        units = np.ones(m + n, self.dtype) if self.units is None else self.units.astype(self.dtype)
        scale = 1.0 if fits.scale is None else fits.scale
        left = fits.residuals(P, Q, rows)
        data = scale * left / (units[rows] * units[m + fits.neighbour])
        floor = max(self.lam, LEAST_FLOOR * float(np.linalg.norm(data)))
        A = sparse.csr_array(
            (np.asarray(data / floor, np.float32), fits.neighbour, fits.indptr), shape=(m, n)
        )
        product = partial(sparse_product, compiled=A.nnz > MAX_PLAIN_ENTRIES)
        U, sizes, V = leading_singular(
            partial(product, A),
            partial(product, sparse.csr_array(A.T)),
            rng.standard_normal((n, min(count, m, n)), dtype=np.float32),
        )
        sizes = floor * sizes
        steep = sizes > self.lam
        lengths = sizes[steep] - self.lam
        more = np.vstack([U[:, steep], V[:, steep]]) * np.sqrt(lengths) / units[:, None]
        change = scale * gather_products(more[:m], more[m:], rows, fits.neighbour)
        fall = float(np.vdot(left, change)) - self.lam * float(np.sum(lengths))
        if not fall > 0:
            return state
        more *= np.sqrt(OVERSHOOT * fall / float(np.vdot(change, change)))
        return np.hstack([state[:, :-1], more, state[:, -1:]], dtype=self.dtype)

    def raised(self, V: Array, slope: Array, steps: int) -> Array:
        """About argmin over S ⪰ 0 of F(M + VSVᵀ), for the offsets of M and Vᵀ∇F(M)V = `slope`.

        Accelerated proximal gradients with restarts, in float32. Their cost grows with the number
        of vectors, that of an explicit Hessian with its fourth power.
        """
        m, fits = self.split, self.upper
        units = 1.0 if self.units is None else self.units[:, None]
        own = np.ascontiguousarray(V / units, dtype=np.float32)
        left, right = own[:m], own[m:]
        rows = np.repeat(np.arange(m, dtype=np.int32), np.diff(fits.indptr))

        def bent(S: Array) -> Array:
            z = gather_products((left @ S).astype(np.float32), right, rows, fits.neighbour)
            z *= 1.0 if fits.scale is None else np.square(fits.scale)
            z = z.astype(np.float32)
            shape = (m, V.shape[0] - m)
            entries = sparse.csr_array((z, fits.neighbour, fits.indptr), shape=shape)
            found: Array = left.T @ sparse_product(entries, right)
            return 0.5 * (found + found.T).astype(float)

        return _proximal_descent(bent, slope, steps)

    def alone(self) -> Halves:
        """A copy for sweeps only, without references to the problem."""
        return replace(self, offsets=_unknown)

    def refit_upper(self, state: Array, steps: int) -> float:
        """Improve P and b for fixed Q and c, in place; returns F before."""
        return self._refit(self.upper, self.lower, *self._parted(state), steps)

    def refit_lower(self, state: Array, steps: int) -> float:
        """Improve Q and c for fixed P and b, in place; returns F before."""
        return self._refit(self.lower, self.upper, *self._parted(state)[::-1], steps)

    def lower_of(self, state: Array) -> Array:
        """A copy of [Q c] of a state."""
        return state[self.split :].copy()

    def set_lower(self, state: Array, lower: Array) -> None:
        state[self.split :] = lower

    def _parted(self, state: Array) -> tuple[Array, Array]:
        return state[: self.split], state[self.split :]

    def _refit(self, fits: RowFits, held: RowFits, own: Array, other: Array, steps: int) -> float:
        penalty = np.full(own.shape[1], self.lam)
        penalty[-1] = self.ridge
        beside = penalty_of(other, held.stiffness, self.lam, self.ridge)
        gram = self.everywhere * (other[:, :-1].T @ other[:, :-1]) if self.everywhere else None
        return self.constant + beside + fits.refit(own, other, penalty, steps, gram=gram)


def _proximal_descent(bent: Callable[[Array], Array], slope: Array, steps: int) -> Array:
    """About argmin over S ⪰ 0 of ½⟨S, H(S)⟩ + ⟨slope, S⟩ (FISTA; Beck and Teboulle 2009)."""
    probe: Array = np.eye(len(slope))
    curvature = 0.0
    for _ in range(POWER_STEPS):
        probe = bent(probe / np.linalg.norm(probe))
        curvature = LIPSCHITZ_MARGIN * float(np.linalg.norm(probe))
    if not curvature > 0:
        return np.zeros_like(slope)
    S = bent_S = np.zeros_like(slope)
    ahead, bent_ahead, momentum = S, bent_S, 1.0
    for _ in range(steps):
        values, turn = np.linalg.eigh(ahead - (bent_ahead + slope) / curvature)
        further = (turn * np.maximum(values, 0.0)) @ turn.T
        bent_further = bent(further)
        if np.vdot(ahead - further, further - S) > 0:
            momentum = 1.0
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        share = (momentum - 1.0) / after
        ahead = further + share * (further - S)
        bent_ahead = bent_further + share * (bent_further - bent_S)
        S, bent_S, momentum = further, bent_further, after
    return S


def column(numbers: Array | None) -> Array | None:
    """A number for each row, as a matrix."""
    return None if numbers is None else numbers[:, None]


def _with_offsets(factor: Array, units: Array | None, offsets: Array, dtype: Any) -> Array:
    """Rows of a state, by those of a factor and their units and offsets."""
    own = factor if units is None else factor / units
    return np.hstack([own, offsets]).astype(dtype, copy=False)


def _without_offsets(rows: Array, units: Array | None) -> Array:
    """Rows of a factor in float64, by those of a state."""
    own = np.array(rows[:, :-1], dtype=float, order="C")
    return own if units is None else own * units


def _normal(state: Any, columns: int, rng: np.random.Generator) -> Any:
    """Random numbers for each row of a state."""
    if hasattr(state, "normal"):
        return state.normal(columns, rng)
    return rng.standard_normal((state.shape[0], columns), dtype=np.float32)


def _squares(state: Array, more: Array, size: Array | None) -> Array:
    """The squares of a state in units of its size, and those of its new columns."""
    own = state[:, :-1] if size is None else state[:, :-1] / size
    return np.array([np.vdot(own, own), np.vdot(more, more)], dtype=float)


def widened(state: Array, more: Array, size: Array | None, length: float) -> Array:
    """The state with further columns before its offsets."""
    own, wide = state.shape[1] - 1, state.shape[1] + more.shape[1]
    found = np.empty((state.shape[0], wide), dtype=state.dtype)
    found[:, :own], found[:, -1] = state[:, :-1], state[:, -1]
    found[:, own:-1] = length * more if size is None else length * size * more
    return found


def _products(*changes: Array) -> Array:
    steps = [b - a for a, b in pairwise(changes)]
    found = np.empty((len(steps), len(steps) + 1), dtype=changes[-1].dtype)
    for k, step in enumerate(steps):
        found[k] = [np.vdot(step, other) for other in (*steps, changes[-1])]
    return found


def _mixture(weights: Array, *points: Array) -> Array:
    found = points[-1].copy()
    for weight, (a, b) in zip(weights, pairwise(points), strict=True):
        found -= weight * (b - a)
    return found


def penalty_of(rows: Array, stiffness: Array | None, lam: float, ridge: float) -> float:
    """λ/2 Σ a_i ‖p_i‖² + κ/2 ‖b‖² for rows [p_i b_i] of a state, added up in float64."""
    squares = np.einsum("ij,ij->i", rows[:, :-1], rows[:, :-1], dtype=float)
    own = squares.sum() if stiffness is None else stiffness @ squares
    return 0.5 * float(lam * own + ridge * np.sum(np.square(rows[:, -1], dtype=float)))


def scattered_size(targets: float, scale: float, rank: int) -> float:
    """The size of random numbers of Q, by the mean squares of targets and scales."""
    ratio = float(np.sqrt(targets / max(scale, 1e-300)))
    return float(np.sqrt(max(ratio, 1e-30)) / rank**0.25)


@singledispatch
def halves_of(objective: Objective, dtype: Any = float) -> Any:
    """F as least squares in each half of the factor's rows (`Halves`), None if it has no such form.

    Objectives with their own form register it.
    """
    return None


@halves_of.register
def _(objective: Composite, dtype: Any = float) -> Halves | None:
    """Squares of some entries of a block plus a multiple of the trace; on the host."""
    if not objective.place.is_host:
        return None
    key, known = np.dtype(dtype), _halves_by_dtype(objective)
    if key not in known:
        known[key] = _composite_halves(objective, key)
    return known[key]


@once
def _halves_by_dtype(objective: Composite) -> dict[Any, Halves | None]:
    return {}


def _composite_halves(objective: Composite, dtype: np.dtype[Any]) -> Halves | None:
    squares, C, map = least_squares_of(objective.loss, dtype), objective.C, objective.map
    even = is_multiple_of_identity(C) and C.scale > 0
    if squares is None or not even or not isinstance(map, BlockEntries):
        return None
    return Halves.of(map, objective.loss, squares, 2.0 * C.lower, dtype)


def _scale_and_units(
    map: BlockEntries, squares: LeastSquares, dtype: np.dtype[Any]
) -> tuple[Array | None, Array | None]:
    """The scale of each entry, None for 1, and units of the factor's rows.

    In float32, used to save memory, the factors of rows and columns are such units.
    """
    if squares.sides is None:
        every = np.broadcast_to(squares.scale, map.rows.shape)
        return np.ascontiguousarray(every, dtype), None
    by_row, by_col = squares.sides
    if dtype == np.float32:
        alone = None if np.ndim(squares.scale) == 0 else np.asarray(squares.scale, dtype)
        return alone, 1.0 / np.concatenate([by_row, by_col])
    every = squares.scale * (by_row[map.rows] * by_col[map.cols])
    return np.ascontiguousarray(every, dtype), None


def _one_each(given: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A writable array of this shape; the given one if possible."""
    if given.shape == shape and given.dtype == dtype and given.flags.writeable:
        return given
    return np.array(np.broadcast_to(given, shape), dtype)


def _unknown(factor: Array) -> Array:
    raise ValueError("these halves are for sweeps only and cannot compute offsets of a factor")


def _without(fits: RowFits, held: Mask) -> RowFits:
    """Row fits with weight 0 for some entries."""
    live: Array = np.logical_not(held).astype(fits.targets.dtype)
    np.multiply(fits.targets, live, out=fits.targets)
    scale = live if fits.scale is None else fits.scale * live
    roots = live if fits.roots is None else fits.roots * live
    return replace(fits, scale=scale, roots=roots if fits.free else None)


def _taken(each: Array | None, entry: Any) -> Array | None:
    return None if each is None else each[entry]
