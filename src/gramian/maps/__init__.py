"""Linear maps 𝒜 from symmetric matrices to vectors; a loss depends on M only through 𝒜(M)."""

from gramian.maps.base import LinearMap
from gramian.maps.batch_distances import BatchDistances
from gramian.maps.block_entries import BlockEntries
from gramian.maps.congruence import Congruence
from gramian.maps.distances import PairDistances
from gramian.maps.entries import Entries
from gramian.maps.grounded import GroundedDistances
from gramian.maps.matrices import inner_products
from gramian.maps.mix import Mix, anchored_margins, triplet_margins
from gramian.maps.repeated_entries import RepeatedEntries
from gramian.maps.rows import Rows, rows_of
from gramian.maps.squares import Squares
from gramian.maps.stack import Stack
from gramian.maps.whitened import GroundedRoot, WhitenedDistances, sparse_root

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
