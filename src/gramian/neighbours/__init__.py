"""Nearest neighbours: the one search that graphs, targets, impostors and placements go through.

Exact unless asked otherwise: nearest first by the distance in float64 from the differences, of
equally near samples the one of the smaller index. Four ways lead there, by size: a tree for few
features (`_tree`), plain numpy for few samples (`_plain`), compiled tiles for many
(`gramian.arrays.neighbours`), and an approximate index, an extra, for very many (`_approximate`).
"""

from gramian.neighbours._approximate import APPROXIMATE_FROM
from gramian.neighbours._plain import search_mixtures
from gramian.neighbours.nearest import Neighbours, nearest

__all__ = ["APPROXIMATE_FROM", "Neighbours", "nearest", "search_mixtures"]
