"""A compiled loop over the dense tiles of some queries, including the products.

There is no Python code between tiles, so that threads do not wait for the GIL: a tile of a hundred
features takes 0.5 ms, and the Python overhead would be 0.05 ms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled
from gramian.arrays.neighbours._pools import CHUNK, offer
from gramian.arrays.neighbours._tiles import columns_below, rows_below


@compiled
def sweep(
    tiles: Any, start: int, both: bool, references: Any, queries: Any, left: Any, right: Any,
    square: float, states: Any, asking: Any, offered: Any, marks: Any,
) -> None:  # fmt: skip
    """Pass the references of every tile, from `first` to `stop`, to the queries from `start`.

    If `both`, the queries are also candidates for the references.
    """
    width, longest = queries.shape[0], 0
    for t in range(tiles.shape[0]):
        longest = max(longest, tiles[t, 1] - tiles[t, 0])
    room = np.empty((longest, width), dtype=np.float32)
    most = max(longest * -(-width // CHUNK), width * -(-longest // CHUNK))
    hits = np.empty((most, 2), dtype=np.int32)
    for t in range(tiles.shape[0]):
        first, stop = tiles[t]
        scores = room[: stop - first]
        np.dot(references[first:stop], queries.T, scores)
        count = columns_below(scores, first, start, states[0], asking, offered, hits)
        offer(scores, first, start, False, hits, count, left, right, square, states,
              asking, offered, marks)  # fmt: skip
        if both:
            count = rows_below(scores, first, start, states[0], asking, offered, hits)
            offer(scores, first, start, True, hits, count, left, right, square, states,
                  asking, offered, marks)  # fmt: skip
