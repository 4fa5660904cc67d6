"""Detection of contradictory equations, reported by their rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import lsqr

from gramian.constrained.model import LSQR_PRODUCTS, Model, independent

MAX_NAMED_ROWS = 6
"""Maximum number of rows in a message."""


class ContradictionError(ValueError):
    """Equations without a solution; `combination` is y with 𝒜*(y) = 0 and y·b = 1."""

    def __init__(self, message: str, combination: NDArray[np.floating]) -> None:
        super().__init__(message)
        self.combination = combination


def check_rows(model: Model) -> None:
    """Raise ContradictionError for zero rows whose bounds exclude 0 and for contradictory rows.

    The residual r of the least squares 𝒜(M) = b over all symmetric M has 𝒜*(r) = 0 and r·b = ‖r‖²:
    if r is not 0, a combination of the rows implies 0 = ‖r‖².
    """
    bounds = model.bounds
    if model.rows is None:
        return
    rows = model.rows.matrix
    empty = (np.diff(rows.indptr) == 0) & ((bounds.lower > 0) | (bounds.upper < 0))
    if np.any(empty):
        k = int(np.argmax(empty))
        y = np.zeros(bounds.size)
        y[k] = 1.0 / (bounds.lower[k] if bounds.lower[k] > 0 else bounds.upper[k])
        raise ContradictionError(
            f"row {k} of the constraints multiplies every entry of M by 0, but must lie between "
            f"{bounds.lower[k]:g} and {bounds.upper[k]:g} (rows are counted from 0)",
            y,
        )
    equal = np.flatnonzero(bounds.lower == bounds.upper)
    b = bounds.lower[equal] / model.norms[equal]
    if not np.any(b):
        return
    scaled = rows[equal].multiply(1.0 / model.norms[equal][:, None]).tocsr()
    if independent(scaled):
        return
    M = lsqr(scaled, b, atol=1e-14, btol=1e-14, iter_lim=LSQR_PRODUCTS)[0]
    rest = b - scaled @ M
    size = float(np.linalg.norm(rest))
    if size <= 1e-7 * np.linalg.norm(b) or np.linalg.norm(scaled.T @ rest) > 1e-9 * size:
        return
    guilty = equal[np.abs(rest) > 1e-6 * np.max(np.abs(rest))]
    named = ", ".join(str(k) for k in guilty[:MAX_NAMED_ROWS])
    more = f" and {guilty.size - MAX_NAMED_ROWS} others" if guilty.size > MAX_NAMED_ROWS else ""
    y = np.zeros(bounds.size)
    y[equal] = rest / model.norms[equal] / size**2
    raise ContradictionError(
        f"rows {named}{more} of the constraints contradict each other: a combination of their "
        "matrices is 0, and the same one of their right-hand sides is not (rows are counted "
        "from 0)",
        y,
    )
