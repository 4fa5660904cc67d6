"""Nearest neighbour search, used for graphs, target neighbours, impostors and embeddings.

The result is exact by default: sorted by the float64 distance computed from differences, with ties
broken by the smaller index. The method depends on the size: a tree for few features (`_tree`),
NumPy for few samples (`_plain`), compiled tiles for many (`gramian.arrays.neighbours`), and an
optional approximate index for very many (`_approximate`).
"""

from gramian.neighbours._approximate import APPROXIMATE_FROM
from gramian.neighbours._plain import squared_distances
from gramian.neighbours.nearest import Neighbours, nearest, search_mixtures

__all__ = ["APPROXIMATE_FROM", "Neighbours", "nearest", "search_mixtures", "squared_distances"]
