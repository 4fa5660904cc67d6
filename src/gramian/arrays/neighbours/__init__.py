"""Exact nearest rows by tiles of float32 products and a compiled selection, in threads.

The samples are shifted and scaled to reduce float32 rounding and multiplied tile by tile. The
kernels keep for every query the samples that may be among its k nearest and recompute their
distances in float64 from the differences (`_pools` explains why the result is exact).
"""

from gramian.arrays.neighbours.search import nearest_among, ready, search

__all__ = ["nearest_among", "ready", "search"]
