"""Arrays that hold a square matrix for each of several batches of points, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gramian.arrays.places import namespace


def batches_of(z: Any, sizes: Sequence[int]) -> Iterator[Any]:
    """The b × b matrix of each batch, as views."""
    first = 0
    for size in sizes:
        yield namespace(z).reshape(z[first : first + size * size], (size, size))
        first += size * size
