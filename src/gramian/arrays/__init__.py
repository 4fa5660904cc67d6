"""Array libraries and devices, and the gather and scatter kernels over all pairs."""

from gramian.arrays.cpu import (
    Pattern,
    entries_matrix,
    gather_distances,
    gather_entries,
    laplacian_matrix,
    scatter_distances,
    scatter_entries,
)

__all__ = [
    "Pattern",
    "entries_matrix",
    "gather_distances",
    "gather_entries",
    "laplacian_matrix",
    "scatter_distances",
    "scatter_entries",
]
