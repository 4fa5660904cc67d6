"""Feasible dual points from multipliers: rigorous lower bounds on the optimum.

For S = ∇F − 𝒜*(y) ⪰ 0 no feasible M has a value below F(M₀) − ⟨∇F, M₀⟩ + y⁺·l − y⁻·u. The y of a
solver leaves S slightly indefinite, by δ_k on its block k. It is repaired by one scalar:

- along u with 𝒜*(u) ⪰ 0, which a diagonal or a trace provides: y − tu, with the smallest t that
  makes every block PSD;
- towards y₀ with a definite slack, such as y = 0 if C ≻ 0, or equal large weights on rows with
  A_k ⪰ 0: y₀ + s(y − y₀), s < 1.

For a nonlinear F the slope ∇F can also be moved, as without constraints: shifted along I, or scaled
towards its linear term together with y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common.types import Array
from gramian.constrained.corner import corner_point
from gramian.constrained.model import Model, least_squares
from gramian.linalg.tolerances import ROUNDING
from gramian.maps import Entries, LinearMap, PairDistances, Stack
from gramian.objectives import LowerBound, SymmetricOperator
from gramian.objectives.parts import adjoint_parts, parts_of
from gramian.proofs import EXACT_ORDER, PATIENCE, Bottom, SparseForm, gershgorin, lowest
from gramian.proofs.dense import rounding_of

NULL_SLACK_RATIO = 1e6
"""Slack along null vectors of M, in units of its size."""

INTERIOR_GROWTH = 8.0
"""The factor between the eight points that are tried for a definite slack."""

REPAIRED = "repaired dual point"


@dataclass(frozen=True)
class BlockBounds:
    """A lower bound on λ_min of each block, in the order of `model.blocks`."""

    values: Array
    how: str
    miss: float
    vector: Array | None = None
    """An approximate eigenvector of the lowest eigenvalue."""

    @property
    def least(self) -> float:
        return float(np.min(self.values))


def block_bounds(
    model: Model,
    operator: Any,
    *,
    wanted: float | None = None,
    seconds: float = PATIENCE,
    prove: bool = True,
) -> BlockBounds:
    """λ_min of every block of a matrix with the blocks of the model."""

    def look(part: Any) -> Bottom:
        return lowest(part, wanted=wanted, seconds=seconds, prove=prove)

    blocks = model.blocks
    if model.order <= EXACT_ORDER:
        G = operator.dense()
        if not np.all(np.isfinite(G)):
            raise FloatingPointError("the slack matrix is not finite")
        slack = operator.slack()
        return _by_blocks(
            blocks, np.diagonal(G) - slack, lambda rows: _exact(G[np.ix_(rows, rows)], slack[rows])
        )
    form = operator.form() if len(blocks) > 1 else None
    if not isinstance(form, SparseForm) or form.weights.size:
        found = look(operator)
        return BlockBounds(np.full(len(blocks), found.value), found.how, found.miss, found.vector)
    S, slack = form.S, operator.slack()
    return _by_blocks(
        blocks,
        S.diagonal() - slack,
        lambda rows: look(_part(sp.csr_array(S[rows][:, rows]), slack[rows])),
    )


def _by_blocks(
    blocks: Sequence[Any], diagonal: Array, look: Callable[[Any], Bottom]
) -> BlockBounds:
    """The bounds of all blocks; a block of one row is its entry of the diagonal."""
    found = {k: look(rows) for k, rows in enumerate(blocks) if len(rows) > 1}
    values = np.array([
        found[k].value if k in found else diagonal[rows[0]] for k, rows in enumerate(blocks)
    ])  # fmt: skip
    vector = None
    known = [k for k, bottom in found.items() if bottom.vector is not None]
    if known:
        least = min(known, key=lambda k: found[k].value)
        vector = np.zeros(diagonal.size)
        vector[blocks[least]] = found[least].vector
    worst = max(found.values(), key=lambda b: b.miss, default=Bottom(0.0, "eigenvalues"))
    return BlockBounds(values, worst.how, worst.miss, vector)


def _exact(G: Array, slack: Array) -> Bottom:
    """λ_min of a dense block, minus bounds on its rounding and that of its entries."""
    values, vectors = scipy.linalg.eigh(G, subset_by_index=[0, 0], check_finite=False)
    return Bottom(float(values[0]) - rounding_of(G, slack), "eigenvalues", vector=vectors[:, 0])


def _part(S: sp.csr_array, slack: Array) -> SymmetricOperator:
    """One block of a sparse matrix, as an operator for `lowest`."""
    return SymmetricOperator(
        S.shape[0], lambda v: S @ v, S.toarray, lambda: SparseForm(S), lambda: slack
    )


@dataclass
class Repair:
    """Converts multipliers to dual points; keeps the most interior one so far."""

    model: Model
    inner: list[tuple[Array, Array]] = field(default_factory=list)
    """(y₀, λ_min of every block of its slack), for a linear F."""
    least: float = -np.inf
    """λ_min of the last slack, before the repair."""
    vector: Array | None = None
    """The corresponding eigenvector."""

    def __call__(
        self,
        image: Any,
        y: Array,
        *,
        wanted: float | None = None,
        seconds: float = PATIENCE,
        prove: bool = True,
    ) -> LowerBound | None:
        """The best of the dual points near y; None if there is none."""
        model = self.model
        if model.corner is not None:
            return self._at_corner(image)
        y = self._clipped(self._raised(image, model.bounds.signed(y)))
        found = block_bounds(
            model, model.slack(image, y), wanted=wanted, seconds=seconds, prove=prove
        )
        self.least, self.vector = found.least, found.vector
        if model.linear is not None and found.miss == 0 and found.least > 0:
            self._remember(y, found.values)
        if found.least >= 0:
            return LowerBound(
                model.dual_value(image, y), "dual point", how=found.how, miss=found.miss, dual=y
            )
        points = [
            LowerBound(model.dual_value(image, moved), REPAIRED, how=how, miss=miss, dual=moved)
            for moved, how, miss in self._moved(y, found)
        ]
        points += self._of_other_slopes(image, y, found)
        points = [point for point in points if np.isfinite(point.value)]
        return max(points, key=lambda point: point.value, default=None)

    def _at_corner(self, image: Any) -> LowerBound | None:
        """Also moves the multipliers of the loss: those of the corner alone do not suffice."""
        model = self.model
        assert model.corner is not None
        found = corner_point(model.corner, model.bounds, image, model.objective.constant)
        self.least, self.vector = found.least, found.vector
        if not np.isfinite(found.value):
            return None
        return LowerBound(found.value, REPAIRED, how="sparse Cholesky", dual=found.y)

    def _moved(self, y: Array, found: BlockBounds) -> Iterator[tuple[Array, str, float]]:
        if self.direction is not None:
            u, lifts, miss = self.direction
            # y − tu is rounded: the resulting change of the slack is subtracted.
            values, lifts = found.values - self._rounded(y), lifts - self._rounded(u)
            low = values < 0
            if np.all(lifts[low] > 0):
                t = float(np.max(-values[low] / lifts[low])) * (1 + ROUNDING)
                if np.all(values + t * lifts >= 0):
                    yield y - t * u, found.how, max(found.miss, miss)
        for inner, floors in self._interior():
            lost = self._rounded(y) + self._rounded(inner)
            values, floors = found.values - lost, floors - lost
            low = values < 0
            if np.all(floors[low] > 0):
                s = float(np.min(floors[low] / (floors[low] - values[low]))) * (1 - ROUNDING)
                if np.all((1 - s) * floors + s * values >= 0):
                    yield inner + s * (y - inner), found.how, found.miss

    def _of_other_slopes(self, image: Any, y: Array, found: BlockBounds) -> Iterator[LowerBound]:
        """The bounds of a nonlinear F with its slope shifted along I, or scaled towards its C."""
        model, bottom = self.model, found.least - self._rounded(y)
        support = None if model.linear is not None else model.objective.support(image)
        if support is None or not np.isfinite(bottom):
            return
        others: list[tuple[float, Array]] = []
        if support.shifted is not None:
            others.append((support.shifted(-bottom), y))
        if support.floor > 0 and support.shrunk is not None:
            s = support.floor / (support.floor - bottom) * (1 - ROUNDING)
            others.append((support.shrunk(s), s * y))
        lost = model.objective.rounding(image)
        for base, moved in others:
            value = model.with_reach(base - lost, moved)
            yield LowerBound(value, REPAIRED, how=found.how, miss=found.miss, dual=moved)

    def _rounded(self, y: Array) -> float:
        """Largest change of the slack if every y has an error of a few units of rounding."""
        return 4 * float(np.finfo(float).eps) * float(np.abs(y) @ self.model.norms)

    def _remember(self, y: Array, floors: Array) -> None:
        if not self.inner or float(np.min(floors)) > float(np.min(self.inner[-1][1])):
            self.inner[:] = [(y, floors)]

    def _interior(self) -> Iterator[tuple[Array, Array]]:
        if self.model.linear is None:
            return
        yield from self.inner
        if self.lifts_all:
            return
        if self.origin is not None:
            yield np.zeros(self.model.bounds.size), self.origin
        if self.outward is not None:
            yield self.outward

    @cached_property
    def origin(self) -> Array | None:
        """λ_min of every block of C, if some are positive and all are proved."""
        zero = np.zeros(self.model.bounds.size)
        found = block_bounds(self.model, self.model.slack(None, zero))
        return found.values if found.miss == 0 and np.any(found.values > 0) else None

    @cached_property
    def outward(self) -> tuple[Array, Array] | None:
        """y₀ = −t on the rows with A_k ⪰ 0, 0 elsewhere, with t such that the slack is definite."""
        model = self.model
        rows = psd_rows(model.bounds.map) / model.norms
        if not np.any(rows) or not np.isfinite(model.bounds.reach(-rows)):
            return None
        lifted = block_bounds(model, model.adjoint(rows))
        size = float(np.linalg.norm(model.adjoint(rows) @ np.ones((model.order, 1)))) or 1.0
        t = model.left / max(float(np.max(lifted.values)), 1e-6 * size)
        for _ in range(8):
            found = block_bounds(model, model.slack(None, -t * rows))
            if found.least > 0 and found.miss == 0:
                # A larger t hardly increases the fraction of y that is kept.
                y = -INTERIOR_GROWTH * t * rows
                found = block_bounds(model, model.slack(None, y))
                return (y, found.values) if found.least > 0 and found.miss == 0 else None
            t *= INTERIOR_GROWTH
        return None

    @cached_property
    def direction(self) -> tuple[Array, Array, float] | None:
        """u with 𝒜*(u) ≈ I, with λ_min of every block of 𝒜*(u)."""
        u = self._identity()
        if u is None or not np.isfinite(self.model.bounds.reach(-u)):
            return None
        parts = adjoint_parts(self.model.bounds.map, u)
        if parts is not None and parts.sparse is not None and not parts.columns:
            discs = gershgorin(parts.sparse)
            if discs > 0:  # usually a diagonal
                return u, np.full(len(self.model.blocks), discs), 0.0
        found = block_bounds(self.model, self.model.adjoint(u))
        return (u, found.values, found.miss) if np.any(found.values > 0) else None

    @property
    def lifts_all(self) -> bool:
        """Whether every slack can be shifted into the cone."""
        return self.direction is not None and bool(np.all(self.direction[1] > 0))

    def _identity(self) -> Array | None:
        model = self.model
        known = model.bounds.map.identity_weights()
        if known is not None:
            return known
        if model.rows is None:
            return None
        flat = model.rows.diagonal.astype(float)
        if np.sum(flat) < model.order:  # an entry of the diagonal that is in no row
            return None
        rows = sp.csr_array(model.rows.matrix.T)
        found = least_squares(rows, flat)
        # Rows with a bound on one side only permit one sign.
        return model.bounds.signed(-found) * -1.0

    def _raised(self, image: Any, y: Array) -> Array:
        """y with a slack that is large along the null space of all feasible M, at no cost."""
        if self.model.face is None:
            return y
        _, u = self.model.face
        kept = np.where(u != 0, 0.0, y)
        probe = np.random.default_rng(0).standard_normal((self.model.order, 1))
        size = np.linalg.norm(self.model.slack(image, kept) @ probe) / np.linalg.norm(probe)
        return kept - NULL_SLACK_RATIO * size * u

    def _clipped(self, y: Array) -> Array:
        """y such that the slack of entries in a single row is not negative."""
        if self._lone is None:
            return y
        owner, weight, cost = self._lone
        slack = cost - weight * y[owner]
        low = slack < 0
        moved = y.copy()
        moved[owner[low]] = cost[low] / weight[low]
        return moved

    @cached_property
    def _lone(self) -> tuple[NDArray[np.intp], Array, Array] | None:
        """Single entries of M that occur in one row: that row, their weight in it, and in C."""
        model = self.model
        if model.rows is None or model.linear is None or not model.single.size:
            return None
        C = parts_of(model.linear)
        if C is None:
            return None
        rows = model.rows
        seen = np.isin(model.single * (model.order + 1), rows.places)
        single = model.single[seen]
        column = np.searchsorted(rows.places, single * (model.order + 1))
        entries = rows.matrix.tocsc()[:, column]
        once = np.flatnonzero(np.diff(entries.indptr) == 1)
        first = entries.indptr[once]
        cost = C.diagonal()[single[once]]
        return entries.indices[first].astype(np.intp), entries.data[first], cost


def psd_rows(map: LinearMap) -> Array:
    """1 for every row whose matrix is positive semidefinite by its form, 0 for the others."""
    if isinstance(map, Entries):
        return (map.rows == map.cols).astype(float)
    if isinstance(map, Stack):
        return np.concatenate([psd_rows(part) for part in map.maps] or [np.zeros(0)])
    return np.full(map.size, 1.0 if isinstance(map, PairDistances) else 0.0)
