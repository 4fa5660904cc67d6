"""What is held out says of metrics: neighbours of samples, order of pairs, triplets met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.samples import row_squares
from gramian.common import clock
from gramian.estimators.path import NEIGHBOURS, earned, misplaced
from gramian.neighbours import search_mixtures

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

MANY = 2000
FITTED, HELD_OUT, WORK, BESIDE = 1800, 3000, 2e9, 100
"""With more than so many, one split serves instead of folds: a fit to so few, judged on so many at
most, with four times as many to seek neighbours among and so many products, beside which each pair
of samples costs as much as this many features."""

SUM_DIGITS = 6
"""Digits after the point of a sum of keys, each at most 1: the others may be rounding."""

SOUGHT = 8
"""Nearest samples that are looked at, for some may be as near as the last that votes."""

EQUAL, SINGLE = 1e-9, 1e-5
"""Relative differences of squared distances, in float64 and in float32, that may be rounding."""

ONE_VOTE = 1.0 + 1e-9

REPEATS, FEW = 3, 500
"""Folds are made so often where samples are fewer than this."""

FEWEST = 20
"""What has to be held out for a judgement; of less nothing can be said."""

PAIR_ERROR = "1 − AUC of pairs"
TRIPLET_ERROR = "share of triplets that are broken"


@dataclass(frozen=True)
class Split:
    """Rows to fit to, rows held out, and rows that neighbours of those are sought among."""

    kept: Indices
    held: Indices
    reference: Indices


def splits(
    keys: Array, classes: Indices, folds: int, width: int = 1, repeats: int = 1
) -> list[Split]:
    """Stratified splits that depend on the samples alone; `width` features.

    Samples are ordered by class and then by key. Classes are ordered by their size and the sum of
    their keys, so that neither the names of the classes nor the order of the rows matters. Folds
    are `repeats` times made in different ways.
    """
    order = np.lexsort((keys, class_ranks(keys, classes)[classes]))
    return list(_splits(order, folds, width, repeats))


def class_ranks(keys: Array, classes: Indices) -> Indices:
    """The place of each class in the order by size, and by the sum of the keys among equals."""
    sums = np.round(np.bincount(classes, keys), SUM_DIGITS)
    order = np.lexsort((sums, np.bincount(classes)))
    ranks = np.empty_like(order)
    ranks[order] = np.arange(order.size)
    return ranks


def _splits(order: Indices, folds: int, width: int, repeats: int) -> Iterator[Split]:
    if order.size <= MANY:
        folds, place = min(folds, order.size), np.arange(order.size)
        for repeat, fold in product(range(repeats), range(folds)):
            held = (place + repeat * (place // folds)) % folds == fold
            yield Split(order[~held], order[held], order[~held])
        return
    last = np.arange(order.size) % 3 == 0
    others, count = order[~last], int(min(HELD_OUT, np.sqrt(WORK / (4 * (width + BESIDE)))))
    yield Split(_spread(others, FITTED), _spread(order[last], count), _spread(others, 4 * count))


def _spread(rows: Indices, most: int) -> Indices:
    """So many of the rows at most, evenly over all of them."""
    if rows.size <= most:
        return rows
    return rows[np.linspace(0, rows.size - 1, most).astype(int)]


def judged(folds: list[Split], losses: Callable[[Split], list[Array]]) -> list[Array] | None:
    """The losses of all folds, for each kind of what is held out a row for every candidate.

    An interrupt from the keyboard, or the end of the time, leaves the folds before it: None where
    there are none.
    """
    found: list[list[Array]] = []
    try:
        for split in folds:
            clock.check()
            found.append(losses(split))
    except KeyboardInterrupt:
        clock.interrupt()
    except clock.TimeUpError:
        pass
    if not found:
        return None
    return [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]


def per_sample(losses: Array, folds: list[Split]) -> Array:
    """The mean loss of each sample over the times that it was held out, a row a candidate."""
    held = np.concatenate([split.held for split in folds])[: losses.shape[1]]
    _, place, times = np.unique(held, return_inverse=True, return_counts=True)
    return np.array([np.bincount(place, row) for row in losses]) / times


def outvoting(losses: Sequence[Array]) -> int:
    """The candidate that is `earned` by votes, if it wins more than one of them.

    A single vote is decided by samples at nearly equal distances, and so by rounding.
    """
    place = earned(losses)
    won = sum(float(np.sum(part[0] - part[place])) for part in losses)
    return place if won > ONE_VOTE else 0


def repeats_for(count: int) -> int:
    """How often folds of so many samples are made: few samples judge by chance otherwise."""
    return REPEATS if count < FEW else 1


def sample_keys(samples: Array) -> Array:
    """A number for each sample that neither turning nor shifting nor scaling them changes.

    Its distance from the mean, and from it along the leading direction, rounded where the
    arithmetic is.
    """
    centred = samples - samples.mean(axis=0)
    along = eigh(centred.T @ centred)[1][:, -1]
    key = np.einsum("ij,ij->i", centred, centred) + np.sqrt(2.0) * (centred @ along) ** 2
    return np.round(key / max(float(key.max()), np.finfo(float).tiny), 9)


@dataclass(frozen=True)
class Candidates:
    """Metrics to judge: each row of `weights` a mixture Σ_p w_p L_pL_pᵀ of those of the factors.

    Squared distances mix likewise, so that those of the factors serve all candidates. None stands
    for Euclid's metric.
    """

    factors: Sequence[Array | None]
    weights: Array

    @classmethod
    def alone(cls, factors: Sequence[Array]) -> Candidates:
        """Each factor a candidate."""
        return cls(factors, np.eye(len(factors)))

    def squares(self, samples: Array, pairs: Indices) -> Array:
        """d(i, j) of the pairs, a row for each candidate."""
        mixed: Array = self.weights @ [_squares(samples, pairs, L) for L in self.factors]
        return mixed


def of_neighbours(
    samples: Array, classes: Indices, split: Split, candidates: Candidates
) -> list[Array]:
    """For each candidate and held-out sample what it loses by the vote of its neighbours."""
    kept, held = split.reference, split.held
    spaces = [(mapped(samples[kept], L), mapped(samples[held], L)) for L in candidates.factors]
    near = search_mixtures(spaces, candidates.weights, min(SOUGHT, kept.size))
    losses = []
    for found, weights in zip(near, candidates.weights, strict=True):
        squares = np.zeros(found.shape)
        for part in np.flatnonzero(weights):
            among, asked = spaces[part]
            for column, place in enumerate(found.T):
                squares[:, column] += weights[part] * row_squares(among[place] - asked)
        losses.append(wrong_shares(found, squares, classes[kept], classes[held], EQUAL))
    return [np.array(losses)]


def wrong_shares(
    near: Indices, squares: Array, classes: Indices, asked: Indices, equal: float
) -> Array:
    """The share of the vote of its nearest samples that each query loses: 1 where all is wrong.

    Samples at equal distances share the votes that are left for them, and classes with equally
    many votes share the win. So neither the order of the samples, nor rounding, nor the numbers of
    the classes decide. Squared distances are `equal` where they differ by no more than this part.
    """
    k = min(NEIGHBOURS, near.shape[1])
    last = squares[:, k - 1 : k]
    room = equal * last
    inside, beside = squares < last - room, np.abs(squares - last) <= room
    left = k - inside.sum(axis=1, keepdims=True)
    weights = inside + beside * (left / np.maximum(1, beside.sum(axis=1, keepdims=True)))
    votes = np.zeros((near.shape[0], int(max(classes.max(), asked.max())) + 1))
    rows = np.arange(near.shape[0])
    for column, weight in zip(near.T, weights.T, strict=True):
        votes[rows, classes[column]] += weight
    won = votes >= votes.max(axis=1, keepdims=True) - EQUAL
    return np.asarray(1.0 - won[rows, asked] / won.sum(axis=1))


def of_pairs(
    samples: Array, pairs: Indices, alike: NDArray[np.bool_], candidates: Candidates
) -> list[Array]:
    """For each candidate and pair the share of pairs of the other kind that it is the wrong side
    of. The similar pairs, then the dissimilar ones.
    """
    parts = [misplaced(d[alike], d[~alike]) for d in candidates.squares(samples, pairs)]
    return [np.array(part) for part in zip(*parts, strict=True)]


def of_triplets(samples: Array, triplets: Indices, candidates: Candidates) -> list[Array]:
    """For each candidate and anchor the share of its triplets (i, j, l) with d(i, l) ≤ d(i, j)."""
    _, place, count = np.unique(triplets[:, 0], return_inverse=True, return_counts=True)
    far, near = (candidates.squares(samples, triplets[:, [0, k]]) for k in (2, 1))
    return [np.array([np.bincount(place, one) / count for one in far <= near])]


def _squares(samples: Array, pairs: Indices, factor: Array | None) -> Array:
    """‖Lᵀ(x_i − x_j)‖² of the pairs."""
    places = mapped(samples, factor)
    gaps = places[pairs[:, 0]] - places[pairs[:, 1]]
    return np.einsum("ij,ij->i", gaps, gaps)


def mapped(samples: Array, factor: Array | None) -> Array:
    """XL, or X itself where the metric is Euclid's."""
    return samples if factor is None else samples @ factor
