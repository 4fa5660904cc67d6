"""Splits of ratings with times: hold out the newest of all, or the last of each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.common.parameters import whole_number
from gramian.completion._ratings import Ids
from gramian.completion._reading import refuse_missing

Mask = NDArray[np.bool_]


def temporal_split(times: ArrayLike, *, share: float = 0.1) -> Mask:
    """Hold out the newest ratings.

    Parameters
    ----------
    times : array of shape (p,)
        Values that can be ordered; of equal times, those given later count as newer.
    share : float
        The share of the ratings to hold out, between 0 and 1.

    Returns
    -------
    array of bool, shape (p,)
        True for the ratings to hold out.
    """
    when = _one_dimensional(times, "times")
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    held = np.zeros(when.size, dtype=bool)
    held[np.argsort(when, kind="stable")[when.size - round(share * when.size) :]] = True
    return held


def leave_last_out(rows: ArrayLike, times: ArrayLike, *, n: int = 1) -> Mask:
    """Hold out the last n ratings of each row.

    Rows with n or fewer ratings have none held out, since none would be left for the fit.

    Parameters
    ----------
    rows : array of shape (p,)
        The row (for example the user) of each rating.
    times : array of shape (p,)
        Values that can be ordered; of equal times, those given later count as later.
    n : int

    Returns
    -------
    array of bool, shape (p,)
        True for the ratings to hold out.
    """
    given, when = _one_dimensional(rows, "rows"), _one_dimensional(times, "times")
    if given.size != when.size:
        raise ValueError(f"rows and times must be as many, got {given.size} and {when.size}")
    last = whole_number(n, "n")
    _, group = Ids.of(given)
    by_time = np.argsort(when, kind="stable")
    order = by_time[np.argsort(group[by_time], kind="stable")]
    counts = np.bincount(group)
    ends = np.cumsum(counts)[group[order]]
    held = np.zeros(given.size, dtype=bool)
    late = ends - np.arange(given.size) <= last
    held[order] = late & (counts[group[order]] > last)
    return held


def _one_dimensional(given: ArrayLike, name: str) -> NDArray[np.generic]:
    array = np.asarray(given)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have one entry for each rating, got shape {array.shape}")
    refuse_missing(array, name)
    return array
