"""Exact nearest rows by tiles of float32 products and a compiled selection, in threads.

The samples are moved and scaled so that float32 loses little and multiplied tile by tile; the
kernels keep for every query what may be among its k nearest and compute those distances again in
float64, from the differences (`_pools` says why that is exact).
"""

from gramian.arrays.neighbours.search import nearest_among, ready, search

__all__ = ["nearest_among", "ready", "search"]
