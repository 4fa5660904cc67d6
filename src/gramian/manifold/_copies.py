"""Duplicate rows are merged into one point that counts with their multiplicity.

An edge of length 0 does not keep two points together: the derivative of its penalty is 0 there, and
each such pair would separate in a new direction, hundreds of them for data with few distinct rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.common.storage import storable
from gramian.graph import Graph
from gramian.reductions.merge import Merge

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@storable
@dataclass(frozen=True)
class Copies:
    """The first row of each group of equal rows, and the group of each row."""

    first: Indices
    kind: Indices

    @classmethod
    def of(cls, X: Any) -> Copies:
        """The groups of an array or a CSR matrix."""
        seen: dict[bytes, int] = {}
        kind = np.array([seen.setdefault(key, len(seen)) for key in _keys(X)], dtype=np.int64)
        return cls(np.unique(kind, return_index=True)[1], kind)

    @classmethod
    def at_zero(cls, D: Array) -> Copies:
        """Groups of samples connected by distances of 0."""
        kind = connected_components(sp.csr_array(D == 0), directed=False)[1].astype(np.int64)
        return cls(np.unique(kind, return_index=True)[1], kind)

    @classmethod
    def none(cls, n: int) -> Copies:
        """n distinct samples."""
        return cls(np.arange(n), np.arange(n))

    @property
    def any(self) -> bool:
        return self.first.size < self.kind.size

    @property
    def mass(self) -> Array:
        """The number of rows in each group."""
        return self.merge.counts

    @property
    def merge(self) -> Merge:
        """The rows of a group as one point."""
        return Merge(self.kind)

    def summed(self, side: Array) -> Array:
        """Centred side information of the rows, summed over each group."""
        total = np.zeros((self.first.size, side.shape[1]))
        np.add.at(total, self.kind, side - side.mean(axis=0))
        return total

    def joined(self, graph: Graph) -> Graph:
        """The graph of all rows: that of the distinct ones, with edges of length 0 to copies."""
        copies = np.flatnonzero(self.first[self.kind] != np.arange(self.kind.size))
        pairs = np.column_stack([self.first[self.kind[copies]], copies])
        edges = np.vstack([np.sort(self.first[graph.edges], axis=1), pairs])
        lengths = np.concatenate([graph.sq_distances, np.zeros(len(pairs))])
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        return Graph(self.kind.size, edges[order], lengths[order], graph.recall)


def _keys(X: Any) -> Any:
    """A key for each row, the same for equal rows."""
    if not sp.issparse(X):
        rows = np.ascontiguousarray(X) + 0.0  # -0.0 is 0.0
        return (blake2b(row.data, digest_size=16).digest() for row in rows)
    rows = sp.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    ends = rows.indptr
    indices = rows.indices.astype(np.int64)
    return (
        blake2b(indices[a:b].tobytes() + rows.data[a:b].tobytes(), digest_size=16).digest()
        for a, b in pairwise(ends)
    )
