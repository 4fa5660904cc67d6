"""Linear maps 𝒜 from symmetric matrices to vectors; a loss depends on M only through 𝒜(M)."""

from gramian.maps.base import LinearMap
from gramian.maps.batch_distances import BatchDistances
from gramian.maps.block_entries import BlockEntries, RepeatedEntries
from gramian.maps.congruence import Congruence
from gramian.maps.matrices import Squares, inner_products
from gramian.maps.mix import Mix, anchored_margins, triplet_margins
from gramian.maps.pairs import Entries, PairDistances
from gramian.maps.rows import Rows, rows_of
from gramian.maps.stack import Stack
from gramian.maps.whitened import (
    GroundedDistances,
    GroundedRoot,
    WhitenedDistances,
    sparse_root,
)

__all__ = [
    "BatchDistances",
    "BlockEntries",
    "Congruence",
    "Entries",
    "GroundedDistances",
    "GroundedRoot",
    "LinearMap",
    "Mix",
    "PairDistances",
    "RepeatedEntries",
    "Rows",
    "Squares",
    "Stack",
    "WhitenedDistances",
    "anchored_margins",
    "inner_products",
    "rows_of",
    "sparse_root",
    "triplet_margins",
]
