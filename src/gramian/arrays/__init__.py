"""The few gather and scatter kernels that touch every observed pair, and nothing else."""

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
