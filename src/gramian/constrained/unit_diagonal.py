"""MaxCut relaxations: ⟨C, M⟩ with a fixed diagonal, by coordinate descent on the rows.

M_ii = d_i implies that row i of L has the length √d_i. With the other rows fixed, the optimum is
l_i = −√d_i g/‖g‖, g = Σ_{j≠i} c_ij l_j (the mixing method of Wang, Chang and Kolter 2017). The
multipliers have a closed form, y_i = c_ii + g·l_i/d_i, and M is always feasible.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.cpu import sweep_rows
from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.augmented_lagrangian import rank_for
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide
from gramian.methods.base import Settings
from gramian.objectives.matrices import Dense, Sparse

FIRST_COLUMNS = 20
"""Initial number of columns, unless the smallest r with r(r + 1)/2 > n is smaller."""

FIRST_SWEEPS, SWEEPS_GROWTH, MAX_SWEEPS_PER_POINT = 25, 1.5, 400
"""Sweeps before the first point, growth of the sweeps per point, and their maximum."""

MAX_SWEEPS = 20_000
"""Maximum total number of sweeps."""

ADDED_COLUMN_LENGTH = 0.1
"""Length of an added column relative to the others."""


def _given_diagonal(model: Model) -> tuple[Array, Array] | None:
    """d, and the weight of each entry in its row; None if the diagonal is not fixed.

    The rows must be in the order of the diagonal, as in `maxcut` and in SDPA files.
    """
    rows, bounds, n = model.rows, model.bounds, model.order
    if rows is None or bounds.size != n or not isinstance(model.linear, Sparse | Dense):
        return None
    order = np.arange(n)
    one_each = np.array_equal(rows.matrix.indptr, np.arange(n + 1))
    if not one_each or not np.array_equal(rows.places, order * (n + 1)):
        return None
    in_order = np.array_equal(rows.matrix.indices, order)
    if not in_order or not np.array_equal(bounds.lower, bounds.upper):
        return None
    d = bounds.lower / rows.matrix.data
    return (d, rows.matrix.data) if np.all(d > 0) else None


def refusal(model: Model) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if _given_diagonal(model) is None:
        return "it needs one equation for every diagonal entry and no other constraints"
    return None


def unit_diagonal(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """Sweeps over the rows; a column is added if the slack has a negative eigenvalue."""
    known = _given_diagonal(model)
    assert known is not None
    d, weight = known
    linear = model.linear
    C = sp.csr_array(linear.matrix if isinstance(linear, Sparse) else linear.array)
    diagonal = C.diagonal()
    others = sp.csr_array(C - sp.diags_array(diagonal))
    others.eliminate_zeros()
    lengths = np.sqrt(d)
    columns = settings.rank or min(rank_for(model.order), FIRST_COLUMNS, model.order)
    start = factor if factor.shape[1] else settings.rng.standard_normal((model.order, columns))
    L = np.ascontiguousarray(_stretched(start, lengths), dtype=np.float64)
    done, sweeps = 0, FIRST_SWEEPS
    while done < MAX_SWEEPS:
        clock.check()
        sweep_rows(others, L, lengths, sweeps)
        done += sweeps
        along = np.einsum("ij,ij->i", others @ L, L) / d
        record = {"violation": 0.0, "steps": float(done)}
        yield Candidate(L.copy(), (diagonal + along) / weight, record)
        sweeps = min(int(SWEEPS_GROWTH * sweeps), MAX_SWEEPS_PER_POINT)
        L = _with_column(L, lengths, settings, guide)


def _stretched(L: Array, lengths: Array) -> NDArray[np.float64]:
    """Rows scaled to the given lengths; zero rows are set along the first axis."""
    norms = np.linalg.norm(L, axis=1)
    L = np.where((norms > 0)[:, None], L, np.eye(1, L.shape[1]))
    return L * (lengths / np.where(norms > 0, norms, 1.0))[:, None]


def _with_column(
    L: NDArray[np.float64], lengths: Array, settings: Settings, guide: Guide
) -> NDArray[np.float64]:
    """Add a column along the negative eigenvector of the slack if all columns are in use."""
    vector = guide.negative()
    most = settings.rank or min(L.shape[0], rank_for(L.shape[0]))
    if vector is None or L.shape[1] >= most:
        return L
    values = np.linalg.eigvalsh(L.T @ L)
    if values[0] < 1e-6 * values[-1]:
        return L
    size = ADDED_COLUMN_LENGTH * np.sqrt(values[0])
    return np.ascontiguousarray(_stretched(np.hstack([L, size * vector[:, None]]), lengths))
