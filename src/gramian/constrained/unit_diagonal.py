"""MaxCut's programs: ⟨C, M⟩ with every diagonal entry given, by coordinate descent on the rows.

M_ii = d_i says that row i of L has the length √d_i. With the others held, the best is
l_i = −√d_i g/‖g‖, g = Σ_{j≠i} c_ij l_j (the mixing method of Wang, Chang and Kolter 2017). The
multipliers are then in closed form, y_i = c_ii + g·l_i/d_i, and M is feasible all along.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.unit_rows import sweep_rows
from gramian.common import clock
from gramian.constrained.augmented_lagrangian import rank_for
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide
from gramian.methods.base import Settings
from gramian.objectives.matrices import Dense, Sparse

Array = NDArray[np.floating]

COLUMNS = 20
"""Columns to begin with, where r(r + 1)/2 > n does not ask for fewer."""

SWEEPS, MORE, MOST = 25, 1.5, 400
"""Sweeps until the first point is told, how many times more until the next one, and the most."""

ALL = 20_000
"""Sweeps in all."""

STEP = 0.1
"""The length of a column that joins, beside the others."""


def _given_diagonal(model: Model) -> tuple[Array, Array] | None:
    """d, and what the row of the constraints weighs its entry by; None where not all are given.

    The rows have to be in the order of the diagonal, as `maxcut` and the files have them.
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
    """Why a problem is not of this kind."""
    if _given_diagonal(model) is None:
        return "it takes one equation for every diagonal entry, and nothing else"
    return None


def unit_diagonal(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """Sweeps over the rows, and a column more where the slack asks for one."""
    known = _given_diagonal(model)
    assert known is not None
    d, weight = known
    linear = model.linear
    C = sp.csr_array(linear.matrix if isinstance(linear, Sparse) else linear.array)
    diagonal = C.diagonal()
    others = sp.csr_array(C - sp.diags_array(diagonal))
    others.eliminate_zeros()
    lengths = np.sqrt(d)
    columns = settings.rank or min(rank_for(model.order), COLUMNS, model.order)
    start = factor if factor.shape[1] else settings.rng.standard_normal((model.order, columns))
    L = np.ascontiguousarray(_stretched(start, lengths), dtype=np.float64)
    done, sweeps = 0, SWEEPS
    while done < ALL:
        clock.check()
        sweep_rows(others, L, lengths, sweeps)
        done += sweeps
        along = np.einsum("ij,ij->i", others @ L, L) / d
        told = {"violation": 0.0, "steps": float(done)}
        yield Candidate(L.copy(), (diagonal + along) / weight, told)
        sweeps = min(int(MORE * sweeps), MOST)
        L = _with_column(L, lengths, settings, guide)


def _stretched(L: Array, lengths: Array) -> NDArray[np.float64]:
    """Rows of the lengths given; those that are 0 along the first axis."""
    norms = np.linalg.norm(L, axis=1)
    L = np.where((norms > 0)[:, None], L, np.eye(1, L.shape[1]))
    return L * (lengths / np.where(norms > 0, norms, 1.0))[:, None]


def _with_column(
    L: NDArray[np.float64], lengths: Array, settings: Settings, guide: Guide
) -> NDArray[np.float64]:
    """A column along the eigenvector that the slack has below 0, where all columns are in use."""
    vector = guide.negative()
    most = settings.rank or min(L.shape[0], rank_for(L.shape[0]))
    if vector is None or L.shape[1] >= most:
        return L
    values = np.linalg.eigvalsh(L.T @ L)
    if values[0] < 1e-6 * values[-1]:
        return L
    size = STEP * np.sqrt(values[0])
    return np.ascontiguousarray(_stretched(np.hstack([L, size * vector[:, None]]), lengths))
