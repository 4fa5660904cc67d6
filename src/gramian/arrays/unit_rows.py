"""Coordinate descent over the rows of a factor with prescribed row norms."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.cpu import index_array

Array = NDArray[np.float64]


def sweep_rows(C: Any, L: Array, lengths: Array, sweeps: int) -> None:
    """l_i ← −√d_i g/‖g‖ with g = Σ_{j≠i} c_ij l_j, for every row in turn, in place.

    Each minimises ⟨C, LLᵀ⟩ over its row. `C` is CSR without its diagonal.
    """
    kernels = importlib.import_module("gramian.arrays._unit_kernels")
    kernels.sweep_rows(index_array(C.indptr), index_array(C.indices), C.data, lengths, sweeps, L)
