"""Exact neighbours on a device: scores by blocks of one product, then refined candidates."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any

BLOCK = 2**27
"""Scores of a block: 1 GB of float64."""

MAX_BLOCK = 2**30
"""Scores of a block on a device with large memory: 8 GB."""

FOLD = 64
"""Columns per group in the first selection, which uses the smallest score of each group."""

SPARE = 8
"""Candidates beyond k, to allow for rounding errors of the scores."""


def search(
    X: Tensor, queries: Tensor, k: int, marks: tuple[Tensor, Tensor], *, alone: bool
) -> tuple[Any, Any]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    Pairs of equal marks are excluded; `alone` if each mark is the index of its row of X. Scores
    ‖y‖² − 2x·y are one product in float64. The distances of the candidates are recomputed from
    their differences, and queries whose candidates may be incomplete, within the rounding error of
    the last one, are searched again with more candidates.
    """
    X, queries = X.double(), queries.double()
    task = _Search(X, X.mean(dim=0), k, marks[0], alone)
    found = torch.empty((queries.shape[0], k), dtype=torch.int64, device=X.device)
    distances = torch.empty((queries.shape[0], k), dtype=torch.float64, device=X.device)
    step = max(1, _block(X, queries.shape[0]) // X.shape[0])
    for start in range(0, queries.shape[0], step):
        part, count = slice(start, start + step), min(k + SPARE, X.shape[0])
        found[part], distances[part], sure = task.candidates(queries[part], marks[1][part], count)
        rows = start + torch.nonzero(~sure)[:, 0]
        while rows.shape[0]:
            count = min(8 * count, X.shape[0])
            found[rows], distances[rows], sure = task.candidates(
                queries[rows], marks[1][rows], count
            )
            rows = rows[~sure]
    return found, distances


def _block(X: Tensor, queries: int) -> int:
    """Scores of a block: larger blocks use a large device better."""
    if not X.is_cuda or X.shape[0] * queries <= BLOCK:
        return BLOCK
    return max(BLOCK, min(MAX_BLOCK, torch.cuda.mem_get_info(X.device)[0] // 64))


class _Search:
    """Data shared by all blocks of queries: the centred samples, prepared for one product."""

    def __init__(self, X: Tensor, origin: Tensor, k: int, marks: Tensor, alone: bool) -> None:
        self.X, self.origin, self.k, self.marks, self.alone = X, origin, k, marks, alone
        moved = X - origin
        squares = (moved * moved).sum(dim=1)
        self.peak = squares.max().sqrt()
        self.right = torch.cat([-2.0 * moved, squares[:, None]], dim=1).T.contiguous()

    def candidates(
        self, queries: Tensor, marks: Tensor, count: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The k nearest of `count` candidates, and the mask of queries for which they are exact."""
        k, few = self.k, queries - self.origin
        scores = torch.cat([few, torch.ones_like(few[:, :1])], dim=1) @ self.right
        self._leave_out(scores, marks)
        values, places = _smallest(scores, count)
        del scores
        exact = _distances(self.X, queries, places)
        exact[values == torch.inf] = torch.inf
        places, order = torch.sort(places, dim=1)
        exact, by_distance = torch.sort(exact.gather(1, order), dim=1, stable=True)
        reach = ((few * few).sum(dim=1).sqrt() + self.peak) ** 2
        room = 4.04 * torch.finfo(torch.float64).eps * (self.X.shape[1] + 4) * reach
        sure = values[:, -1] > values[:, k - 1] + room
        if count == self.X.shape[0]:
            sure = torch.ones_like(sure)
        return places.gather(1, by_distance)[:, :k], exact[:, :k], sure

    def _leave_out(self, scores: Tensor, marks: Tensor) -> None:
        """Set the scores of pairs with equal marks to infinity."""
        if self.alone:  # a negative mark equals none: its score in column 0 is kept
            own = marks.clamp(min=0).long()[:, None]
            kept = torch.where(marks[:, None] < 0, scores.gather(1, own), torch.inf)
            scores.scatter_(1, own, kept)
        else:
            scores.masked_fill_(marks[:, None] == self.marks[None, :], torch.inf)


def _smallest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The smallest scores of each row, ascending, and their indices.

    First selects the groups of `FOLD` columns with the smallest minima, as many as scores are
    wanted: these contain all of them. This needs one pass over the scores.
    """
    columns = scores.shape[1]
    if columns < 4 * FOLD * count:
        return torch.topk(scores, count, dim=1, largest=False)
    whole = columns // FOLD * FOLD
    least = scores[:, :whole].unflatten(1, (-1, FOLD)).amin(dim=2)
    groups = torch.topk(least, count, dim=1, largest=False).indices
    within = torch.arange(FOLD, device=scores.device)
    places = (groups[:, :, None] * FOLD + within).flatten(1)
    rest = torch.arange(whole, columns, device=scores.device).expand(scores.shape[0], -1)
    places = torch.cat([places, rest], dim=1)
    values, chosen = torch.topk(scores.gather(1, places), count, dim=1, largest=False)
    return values, places.gather(1, chosen)


def _distances(X: Tensor, queries: Tensor, places: Tensor) -> Tensor:
    """‖x − y‖² of every query and its candidates, from their differences."""
    found = torch.empty(places.shape, dtype=torch.float64, device=X.device)
    step = max(1, BLOCK // (places.shape[1] * X.shape[1]))
    for start in range(0, places.shape[0], step):
        part = slice(start, start + step)
        gaps = X[places[part]] - queries[part, None, :]
        found[part] = (gaps * gaps).sum(dim=2)
    return found
