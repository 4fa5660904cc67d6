"""The front of the search: what is asked, and which way answers it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import Place, place
from gramian.arrays.samples import far_means, shifted, with_short_indices
from gramian.common import clock
from gramian.common.memory import check_memory
from gramian.neighbours import _approximate, _plain, _tree

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

PLAIN_WORK, COMPILING = 1e10, 8e10
"""Pairs of samples, times 100 more than they have features, up to which numpy searches: that takes
about a second, as loading numba and its kernels does. The second is what numpy does in the time
that compiling them takes, once on a machine: up to there a process does not."""

SEARCHED, FEWEST = 8, 1024
"""What a search on a device has there of each sample (itself, a query, both about their mean, for
a product), and the samples that it must have room for."""

FULL, SMALL = 0.3, 20_000_000
"""Share of entries above which CSR is searched as a dense array; with few samples, as many as
these in all are."""


@dataclass(frozen=True)
class Neighbours:
    """What a search has found.

    Attributes
    ----------
    indices : array of shape (n_queries, k)
        Nearest first.
    sq_distances : array of shape (n_queries, k)
    recall : float
        The share of the true neighbours that is here: 1 of an exact search, otherwise estimated
        on a sample of the queries that is searched exactly too.
    """

    indices: Indices
    sq_distances: Array
    recall: float = 1.0


def nearest(
    X: Any,
    k: int,
    *,
    queries: Any = None,
    apart: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    approximate: bool = False,
    device: Any = None,
) -> Neighbours:
    """The k nearest rows of X to each query, nearest first, of equals the smaller index first.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features), checked before
    k : int
    queries : the same with other rows, optional
        By default the rows of X, each without itself.
    apart : integer labels of shape (n_samples,), or of both the samples and the queries, optional
        A query has no neighbours of its own label.
    approximate : bool
        Allow some neighbours to be missed where there are `APPROXIMATE_FROM` samples or more, which
        needs the extra ``gramian[neighbours]``. With `apart` the search is exact.
    device : None, "cpu", "cuda" or the like
        Where to search; on a device every search is exact.
    """
    alone = queries is None
    X, queries = _alike(X, X if alone else queries)
    marks = _marks(X, queries, alone, apart)
    clock.phase(f"the neighbours of {queries.shape[0]:,} samples")
    _check_enough(marks, k, alone and apart is None)
    labelled, there = apart is not None, place(device)
    if not there.is_host:
        return Neighbours(*_on_device(X, queries, k, marks, there, alone=not labelled))
    if approximate and not labelled and X.shape[0] >= _approximate.APPROXIMATE_FROM:
        found, squares, recall = _approximate.search(X, queries, k, marks)
        return Neighbours(found, squares, recall)
    if not labelled and _tree.fits(X):
        return Neighbours(*_tree.search(X, queries, k, marks))
    return Neighbours(*exact(X, queries, k, marks))


def _on_device(
    X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], there: Place, *, alone: bool
) -> tuple[Indices, Array]:
    """By brute force there, sparse rows as dense ones, as many at a time as it has room for."""
    each, free = 8.0 * SEARCHED * (X.shape[1] + 1), there.free_memory()
    check_memory(
        min(X.shape[0], FEWEST) * each,
        f"samples of {X.shape[1]:,} features are searched as dense arrays on a device",
        "search on the processor (device=None), or project the features first",
        free,
    )
    found: tuple[Indices, Array] = import_module("gramian.arrays.torch").nearest(
        X, queries, k, marks, there.device, int(min(free / each, 2**31)), alone=alone
    )
    return found


def exact(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k nearest rows of X to each query, except those of equal marks, by brute force."""
    if _is_plain(X, queries):
        return _plain.search(X, queries, k, marks)
    kernels = import_module("gramian.arrays.neighbours")
    if not sp.issparse(X) and not kernels.ready() and _waits.taken(_work(X, queries)):
        return _plain.search(X, queries, k, marks)
    found: tuple[Indices, Array] = kernels.search(X, queries, k, marks)
    return found


class _Waits:
    """Work that numpy has done because kernels were not compiled."""

    def __init__(self) -> None:
        self.spent = 0.0

    def taken(self, work: float) -> bool:
        """Whether numpy does this too, which must not cost more than compiling in the end."""
        if self.spent + work > COMPILING:
            return False
        self.spent += work
        return True


_waits = _Waits()


def _alike(X: Any, queries: Any) -> tuple[Any, Any]:
    """Both dense or both CSR in order, of one dtype; the very same where they are the same."""
    same = queries is X
    forms = (X,) if same else (X, queries)
    if not all(sp.issparse(rows) for rows in forms) or _as_dense(X, queries):
        forms = tuple(_dense(rows) for rows in forms)
    else:
        shift = far_means(X)  # products of what lies far from the origin cancel
        if shift.any():
            forms = tuple(shifted(rows, shift) for rows in forms)
        forms = tuple(_in_order(rows) for rows in forms)
    if len({rows.dtype for rows in forms}) > 1:
        forms = tuple(rows.astype(np.float64) for rows in forms)
    return forms[0], forms[-1]


def _marks(X: Any, queries: Any, alone: bool, apart: Any) -> tuple[Indices, Indices]:
    """Two numbers for each pair, which is left out where they are equal."""
    if apart is not None:
        if isinstance(apart, tuple):
            return np.asarray(apart[0], dtype=np.int32), np.asarray(apart[1], dtype=np.int32)
        labels = np.asarray(apart, dtype=np.int32)
        return labels, labels
    own = np.arange(X.shape[0], dtype=np.int32)
    return own, own if alone else np.full(queries.shape[0], -1, dtype=np.int32)


def _check_enough(marks: tuple[Indices, Indices], k: int, alone: bool) -> None:
    """Refuse more neighbours than there are."""
    if alone:
        most = marks[0].size - 1
    else:
        known, counts = np.unique(marks[0], return_counts=True)
        of_own = np.zeros(marks[1].size, dtype=np.intp)
        place = np.minimum(np.searchsorted(known, marks[1]), known.size - 1)
        met = known[place] == marks[1]
        of_own[met] = counts[place[met]]
        most = marks[0].size - int(of_own.max(initial=0))
    if not 1 <= k <= most:
        raise ValueError(f"there are {most} other samples at least, which have not {k} nearest")


def _is_plain(X: Any, queries: Any) -> bool:
    return _work(X, queries) <= PLAIN_WORK


def _work(X: Any, queries: Any) -> float:
    return float(X.shape[0] * queries.shape[0] * (X.shape[1] + 100.0))


def _as_dense(X: Any, queries: Any) -> bool:
    """Whether CSR is so full, or so small, that it is searched as a dense array."""
    entries = X.shape[0] * X.shape[1]
    return X.nnz > FULL * entries or (_is_plain(X, queries) and entries <= SMALL)


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def _in_order(X: Any) -> Any:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return with_short_indices(X)
