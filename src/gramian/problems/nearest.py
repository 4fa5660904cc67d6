"""The PSD matrix nearest to given entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix, check_size, real_numbers
from gramian.common.types import Array
from gramian.domains import PSDCone, Spectrahedron
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.objectives import Composite
from gramian.problem import Problem

ASYMMETRY = 1e-8
"""Tolerance of asymmetry, relative to the largest entry."""


@under_own_errstate
def nearest(T: Any, *, weights: Any = None, C: Any = None, trace: float | None = None) -> Problem:
    """min ½ Σ W_ij (M_ij − T_ij)² + ⟨C, M⟩ over M ⪰ 0; the sum is over the known entries.

    Parameters
    ----------
    T : symmetric array, with NaN or a mask for unknown entries, or sparse matrix, whose stored
        entries are known
    weights : symmetric array or sparse matrix, optional
        W ≥ 0, for all entries of T; default 1.
    C : symmetric array, sparse matrix or number, optional
        A number is that multiple of the identity, a weight of tr M.
    trace : float, optional
        Fixes tr M.
    """
    i, j, t = _known(T, "T")
    n = np.shape(T)[0]
    check_matrix(C, "C")
    w = np.where(i == j, 0.5, 1.0)  # an off-diagonal entry occurs twice
    if weights is not None:
        w = w * _matched(weights, i, j, n)
        if w.any():  # an entry of weight 0 is unknown
            i, j, t, w = (part[w > 0] for part in (i, j, t, w))
    domain = PSDCone() if trace is None else Spectrahedron(trace)
    if trace is not None:
        check_size(float(trace), "the trace", least=0.0)
    objective = Composite(Entries(np.column_stack([i, j]), n), Squared(t, weight=w), C)
    formula = "½ Σ W_ij (M_ij − T_ij)²" + ("" if C is None else " + ⟨C, M⟩")
    return Problem(objective, domain, name="nearest", formula=formula)


def _known(matrix: Any, name: str) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """The known entries i ≤ j, after a test of symmetry."""
    array = matrix if sp.issparse(matrix) else _with_gaps(matrix, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {array.shape}")
    if sp.issparse(array):
        coo = sp.coo_array(sp.csr_array(array))
        (i, j), values = coo.coords, real_numbers(coo.data, name)
    else:
        i, j = np.nonzero(~np.isnan(array))
        values = array[i, j]
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} has entries that are not finite")
    check_size(values, name)
    upper, lower = i <= j, i >= j
    same = np.flatnonzero(upper)[np.lexsort((j[upper], i[upper]))]
    mirror = np.flatnonzero(lower)[np.lexsort((i[lower], j[lower]))]
    if same.size == 0:
        raise ValueError(f"{name} has no known entries")
    agree = same.size == mirror.size and bool(
        np.all((i[same] == j[mirror]) & (j[same] == i[mirror]))
        and np.all(np.abs(values[same] - values[mirror]) <= ASYMMETRY * np.abs(values).max())
    )
    if not agree:
        raise ValueError(f"{name} must be symmetric: the entry (j, i) known and equal to (i, j)")
    return i[same], j[same], values[same]


def _with_gaps(matrix: Any, name: str) -> Array:
    """An array of numbers, with NaN for masked entries."""
    if not isinstance(matrix, np.ma.MaskedArray):
        return real_numbers(matrix, name)
    array: Array = np.array(real_numbers(matrix.data, name))
    array[np.ma.getmaskarray(matrix)] = np.nan
    return array


def _matched(weights: Any, i: NDArray[Any], j: NDArray[Any], n: int) -> Array:
    """The weights of the entries (i, j)."""
    weights = weights if sp.issparse(weights) else _with_gaps(weights, "weights")
    if np.shape(weights) != (n, n):
        raise ValueError(f"weights must have the shape of T, ({n}, {n}), got {np.shape(weights)}")
    rows, cols, values = _known(weights, "weights")
    keys, asked = rows * n + cols, i * n + j
    place = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    if np.any(keys[place] != asked):
        raise ValueError("weights must be given for every known entry of T")
    if np.any(values[place] < 0):
        raise ValueError("weights must not be negative")
    return values[place]
