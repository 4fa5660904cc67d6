"""Small semidefinite programs solved by Clarabel's interior point method, which is faster there."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide, factor_of
from gramian.methods.base import Settings
from gramian.methods.conic_call import call

MAX_BLOCK_ROWS, MAX_ENTRIES = 50, 20_000
"""Maximum number of rows of the largest block, and of entries of all blocks."""

MAX_QUICK_ENTRIES = 1000
"""Entries up to which a call takes less than a second."""

CLARABEL_TOLERANCE = 1e-9
"""Tolerance of the first calls; the last one uses a hundredth of it."""

MARGIN_GAP_FRACTIONS, MIN_DIAGONAL_RATIO = (0.4, 0.1), 1e-6
"""Fractions of the allowed gap that margins cost in coordinates with M_ii = 1, and the smallest
M_ii used there, relative to the largest."""

MIN_MARGIN = 10 * CLARABEL_TOLERANCE
"""Minimum margin of the slack, relative to C: larger than the error of Clarabel."""


def refusal(model: Model) -> str | None:
    """Why Clarabel does not accept a problem; None if it does."""
    if model.linear is None:
        return "it needs a linear objective ⟨C, M⟩"
    if not installed():
        return "the package clarabel is missing: pip install 'gramian[conic]'"
    if not is_small(model):
        return (
            f"it is for blocks of {MAX_BLOCK_ROWS} rows at most, and {MAX_ENTRIES} entries in all"
        )
    return None


def installed() -> bool:
    """Whether the package is installed."""
    return find_spec("clarabel") is not None


def is_small(model: Model) -> bool:
    """Whether the rows are known and the blocks small enough."""
    sizes = [len(rows) for rows in model.blocks]
    return model.rows is not None and sizes[0] <= MAX_BLOCK_ROWS and _entries(sizes) <= MAX_ENTRIES


def clarabel(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The solution, at first without a margin, then with the margin that a dual point needs.

    A margin εI costs ε tr M of the value. In coordinates with M_ii = 1, S ⪰ εD⁻² with d_i² = M_ii
    costs εn, which is set to a fraction of the allowed gap.
    """
    plain, small, L = ConicForm(model), MIN_MARGIN * model.left, factor
    for wish in ("nothing", "small", *MARGIN_GAP_FRACTIONS, "asked"):
        form, margin, accuracy = plain, small, CLARABEL_TOLERANCE
        if isinstance(wish, float):
            form = ConicForm(model, _lengths(L))
            margin = wish * settings.tol * abs(model.problem.value(L)) / model.order
        elif wish == "nothing":
            margin = 0.0
        elif wish == "asked":
            margin, accuracy = max(guide.margin, small), 1e-2 * CLARABEL_TOLERANCE
        # A call of less than a second needs no separate process.
        left = np.inf if form.q.size <= MAX_QUICK_ENTRIES else clock.left()
        found = call("clarabel", form.data(margin, accuracy), left)
        if found is None:
            return
        multipliers = form.multipliers(np.asarray(found.z, dtype=float))
        L = form.factor(np.asarray(found.x, dtype=float))
        yield Candidate(
            L,
            multipliers,
            {"steps": float(found.iterations)},
            L if found.unbounded else None,
            multipliers if found.infeasible else None,
        )


def _lengths(L: Array) -> Array:
    squares = np.sum(L * L, axis=1)
    largest = float(np.max(squares, initial=0.0))
    if not 0 < largest < np.inf:
        return np.ones(squares.size)
    return np.sqrt(np.maximum(squares, MIN_DIAGONAL_RATIO * largest))


def _entries(sizes: list[int]) -> int:
    return sum(size * (size + 1) // 2 for size in sizes)


class ConicForm:
    """min qᵀx over x = svec of every block, each in its cone, and the rows in their bounds.

    In the coordinates N of M = DND.
    """

    def __init__(self, model: Model, d: Array | None = None) -> None:
        assert model.rows is not None
        d = np.ones(model.order) if d is None else d
        self.model, n = model, model.order
        places, roots, self.cones = [], [], []
        for rows in model.blocks:
            j, i = np.tril_indices(len(rows))
            places.append(rows[i].astype(np.int64) * n + rows[j])
            roots.append(np.where(i == j, 1.0, np.sqrt(2.0)))
            alone = len(rows) == 1
            self.cones.append(("nonnegative", 1) if alone else ("semidefinite", len(rows)))
        self.place, root = np.concatenate(places), np.concatenate(roots)
        stretch = d[self.place // n] * d[self.place % n]
        self.weight, scale = stretch / root, stretch * root
        self.eye = np.where(self.place % (n + 1) == 0, 1.0, 0.0)
        # Rows in their own units: a conic solver has one tolerance for all rows.
        self.unit = model.bounds.unit
        scaled = sp.diags_array(1.0 / self.unit) @ model.rows.whole()
        self.A = sp.csr_array(scaled.tocsc()[:, self.place] @ sp.diags_array(scale))
        self.q = model.linear.dense().ravel()[self.place] * scale
        self.equal, self.low, self.high = model.bounds.sides

    def data(self, margin: float, accuracy: float) -> dict[str, object]:
        """The arguments of the call: Ax + s = b with s in the cones."""
        model, size = self.model, self.q.size
        lower, upper = model.bounds.lower / self.unit, model.bounds.upper / self.unit
        A = [-self.A[self.equal], -self.A[self.low], self.A[self.high], -sp.eye_array(size)]
        b = [-lower[self.equal], -lower[self.low], upper[self.high], np.zeros(size)]
        cones = [
            ("zero", self.equal.size),
            ("nonnegative", self.low.size),
            ("nonnegative", self.high.size),
            *self.cones,
        ]
        return {
            "P": sp.csc_matrix((size, size)),
            "q": self.q - margin * self.eye,
            "A": sp.csc_matrix(sp.vstack(A)),
            "b": np.concatenate(b),
            "cones": [cone for cone in cones if cone[1]],
            "accuracy": accuracy,
            "decompose": True,
        }

    def multipliers(self, z: Array) -> Array:
        """y of q = Aᵀy + S: the multipliers of the rows, those of ≤ with the opposite sign."""
        y = np.zeros(self.model.bounds.size)
        ends = np.cumsum([self.equal.size, self.low.size, self.high.size])
        y[self.equal], y[self.low] = z[: ends[0]], z[ends[0] : ends[1]]
        y[self.high] -= z[ends[1] : ends[2]]
        return self.model.bounds.signed(y / self.unit)

    def factor(self, x: Array) -> Array:
        """A factor of M, block by block."""
        n = self.model.order
        flat = np.zeros(n * n)
        flat[self.place] = x * self.weight
        parts, M = [], flat.reshape(n, n)
        for rows in self.model.blocks:
            part = M[np.ix_(rows, rows)]
            part = part + np.triu(part, 1).T + np.tril(part, -1).T
            parts.append(factor_of(*np.linalg.eigh(part)))
        return self.model.side_by_side(self.model.blocks, parts)
