"""Held-out errors of metrics: votes of neighbours, order of pairs, satisfied triplets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian.arrays.places import place
from gramian.arrays.threads import blas_threads_for
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.constraints import EQUAL
from gramian.estimators.path import NEIGHBOURS, earned, misplaced
from gramian.neighbours import search_mixtures

MANY = 2000
FITTED, HELD_OUT, WORK, BESIDE = 1800, 3000, 2e9, 100
"""With more samples than `MANY` one split is used instead of folds: the number of samples to fit
to, the largest number to evaluate, the largest number of multiplications, and the cost of a pair of
samples in features. Neighbours are searched among four times as many samples as are held out."""

SUM_DIGITS = 6
"""Digits of a sum of keys, each at most 1; further digits may be rounding errors."""

SOUGHT = 12
"""Number of nearest samples computed for a query if the last one that votes has ties."""

SHARED = 7
"""Number of neighbours for the comparison of learners. Whether 3 neighbours outvote a sample is one
bit; the share of other classes among 7 varies less. On 14 data sets, one split each with 240
samples for training, the learner with the smallest share has a mean rank of 2.57 (the best single
one 3.89), that with the smallest error 3.71 (3.75); with 30 noise features 3.54 (4.27) and 3.81
(4.19)."""

SINGLE = 1e-5
"""`EQUAL` for squared distances in float32."""

FOLDS, FEW_FOLDS, ENOUGH = 3, 2, 400
"""Number of folds with few samples, and with at least `ENOUGH`."""

PATH_FOLDS = 5
"""Number of folds if one eigenbasis gives the metrics of a whole path."""

ROUGH = 1e-2
"""The tolerance of metrics for selection only."""

TIME_SHARE = 0.5
"""Fraction of the remaining time for a selection, and of that for the fit of a fold."""

REPEATS, FEW = 3, 500
"""Number of repetitions of the folds with fewer samples than this."""

FEWEST = 20
"""Smallest number of held-out items for an evaluation."""

Loss = Callable[[Indices, Array, Indices, Indices, float], Array]
"""The loss of each query: its nearest samples, their squared distances, the classes, those of the
queries, and the relative difference of distances that counts as none."""

Search = Callable[[Any, int], tuple[Indices, Array]]
"""The given number of nearest samples of some queries, and their squared distances, of shape
(candidates, queries, samples)."""

PLAIN = "the Euclidean metric"
NEIGHBOUR_SHARE = f"share of other classes among {SHARED} nearest neighbours"
PAIR_ERROR = "1 − AUC of pairs"
TRIPLET_ERROR = "share of triplets that are broken"


@dataclass(frozen=True)
class Split:
    """Rows to fit to, held-out rows, and rows among which their neighbours are searched."""

    kept: Indices
    held: Indices
    reference: Indices


def splits(
    keys: Array, classes: Indices, folds: int, width: int = 1, repeats: int = 1
) -> list[Split]:
    """Stratified splits that depend only on the samples; `width` features.

    Samples are ordered by class and then by key. Classes are ordered by size and the sum of their
    keys, so the splits do not depend on the names of the classes or the order of the rows. Folds
    are made in `repeats` different ways.
    """
    order = np.lexsort((keys, class_ranks(keys, classes)[classes]))
    return list(_splits(order, folds, width, repeats))


def class_ranks(keys: Array, classes: Indices) -> Indices:
    """The rank of each class by size, ties broken by the sum of the keys."""
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
    """At most `most` of the rows, evenly spaced."""
    if rows.size <= most:
        return rows
    return rows[np.linspace(0, rows.size - 1, most).astype(int)]


def judged(folds: list[Split], losses: Callable[[Split], list[Array]]) -> list[Array] | None:
    """The losses of all folds: for each kind of held-out item a row for every candidate.

    After a keyboard interrupt or a time limit only earlier folds are returned, None if there are
    none.
    """
    found: list[list[Array]] = []
    try:
        for split in folds:
            clock.check()
            found.append(losses(split))
    except KeyboardInterrupt as error:
        clock.caught(error)
    except clock.TimeUpError:
        pass
    if not found:
        return None
    return [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]


def mean_losses(
    folds: list[Split], losses: Callable[[Split], list[Array]], *, complete: bool = False
) -> Array | None:
    """The mean loss of each sample, one row per candidate.

    None if no fold was evaluated, or not all folds if they have to be `complete`.
    """
    found = judged(folds, losses)
    every = sum(split.held.size for split in folds)
    if found is None or (complete and found[0].shape[1] < every):
        return None
    return per_sample(found[0], folds)


def per_sample(losses: Array, folds: list[Split]) -> Array:
    """The mean loss of each sample over all folds that held it out, one row per candidate."""
    held = np.concatenate([split.held for split in folds])[: losses.shape[1]]
    _, place, times = np.unique(held, return_inverse=True, return_counts=True)
    return np.array([np.bincount(place, row) for row in losses]) / times


@dataclass(frozen=True)
class Trial:
    """Labelled samples, and the splits on which metrics are compared by votes of neighbours."""

    samples: Array
    classes: Indices
    folds: list[Split]
    device: Any = None
    """The device of the search for neighbours."""

    @classmethod
    def of(
        cls, samples: Array, classes: Indices, folds: int = FOLDS, device: Any = None
    ) -> Trial | None:
        """The samples of classes with two of them for each of at most `folds` folds; None if they
        are too few."""
        kept = np.flatnonzero(np.bincount(classes)[classes] >= 2 * folds)
        named = np.unique(classes[kept], return_inverse=True)[1]
        if kept.size < FEWEST or named.max() == 0:
            return None
        points, count = samples[kept], kept.size
        keys = sample_keys(points)
        parts = splits(
            keys, named, min(folds, folds_for(count)), points.shape[1], repeats_for(count)
        )
        return cls(points, named, parts, device)

    def part(self, split: Split) -> tuple[Array, Indices]:
        """The samples of a split to fit to, and their classes."""
        return self.samples[split.kept], self.classes[split.kept]

    def votes(
        self,
        metrics: Callable[[Split], Candidates],
        *,
        complete: bool = False,
        loss: Loss | None = None,
    ) -> Array | None:
        """`mean_losses` of neighbours, `wrong_shares` by default."""

        def losses(split: Split) -> list[Array]:
            return self.judge(split, metrics(split), loss)

        return mean_losses(self.folds, losses, complete=complete)

    def judge(self, split: Split, candidates: Candidates, loss: Loss | None = None) -> list[Array]:
        """The loss of each held-out sample by its neighbours, for each candidate."""
        there, classes = place(self.device), self.classes
        factors = [None if L is None else there.put(L) for L in candidates.factors]
        kept, held = (there.put(self.samples[rows]) for rows in (split.reference, split.held))
        spaces = [(mapped(kept, L), mapped(held, L)) for L in factors]

        def search(rows: Any, k: int) -> tuple[Indices, Array]:
            some = [(offered, queries[rows]) for offered, queries in spaces]
            return search_mixtures(some, candidates.weights, k, device=self.device)

        asked = classes[split.held]
        return [losses_of_votes(search, classes[split.reference], asked, loss or wrong_shares)]


def outvoting(losses: Sequence[Array]) -> int:
    """The candidate that is `earned` by votes, if it wins by more than one vote.

    A single vote can depend on rounding, through samples at nearly equal distances.
    """
    place = earned(losses)
    won = sum(float(np.sum(part[0] - part[place])) for part in losses)
    return place if won > 1.0 + EQUAL else 0


def folds_for(count: int) -> int:
    """The number of folds for this many samples."""
    return FOLDS if count < ENOUGH else FEW_FOLDS


def repeats_for(count: int) -> int:
    """How often folds of this many samples are repeated, to reduce the variance for few samples."""
    return REPEATS if count < FEW else 1


def sample_keys(samples: Array) -> Array:
    """A number per sample that is invariant to rotation, translation and scaling.

    Its distance from the mean, and from the mean along the leading direction, rounded to the
    accuracy of the arithmetic.
    """
    centred = samples - samples.mean(axis=0)
    last, gram = samples.shape[1] - 1, centred.T @ centred
    with blas_threads_for(gram.size):
        along = scipy.linalg.eigh(gram, subset_by_index=[last, last])[1][:, 0]
    key = np.einsum("ij,ij->i", centred, centred) + np.sqrt(2.0) * (centred @ along) ** 2
    return np.round(key / max(float(key.max()), np.finfo(float).tiny), 9)


@dataclass(frozen=True)
class Candidates:
    """Candidate metrics: each row of `weights` is a combination Σ_p w_p L_pL_pᵀ of the factors.

    Squared distances combine likewise, so those of the factors are shared by all candidates. None
    is the Euclidean metric.
    """

    factors: Sequence[Array | None]
    weights: Array

    @classmethod
    def alone(cls, factors: Sequence[Array]) -> Candidates:
        """One candidate per factor."""
        return cls(factors, np.eye(len(factors)))

    def squares(self, samples: Array, pairs: Indices) -> Array:
        """d(i, j) of the pairs, one row per candidate."""
        mixed: Array = self.weights @ [_squares(samples, pairs, L) for L in self.factors]
        return mixed


def losses_of_votes(
    search: Search, classes: Indices, asked: Indices, loss: Loss, equal: float = EQUAL
) -> Array:
    """The loss of each query, one row per candidate, from its `NEIGHBOURS` or `SHARED` votes.

    Two samples more than these are computed, and `SOUGHT` for queries where all of them tie.
    """
    voters = SHARED if loss is other_shares else NEIGHBOURS
    few, many = (min(count, classes.size) for count in (voters + 2, SOUGHT))

    def judge(rows: Any, k: int) -> tuple[Array, Array]:
        found, squares = search(rows, k)
        parts = zip(found, squares, strict=True)
        return squares, np.array([loss(*part, classes, asked[rows], equal) for part in parts])

    squares, losses = judge(slice(None), few)
    near, last = squares[..., -1], squares[..., min(voters, few) - 1]
    tied = np.flatnonzero(np.any(near - last <= equal * last, axis=0))
    if tied.size and few < many:
        losses[:, tied] = judge(tied, many)[1]
    return losses


def wrong_shares(
    near: Indices, squares: Array, classes: Indices, asked: Indices, equal: float
) -> Array:
    """The fraction of the vote of its nearest samples that each query loses: 1 if all are wrong.

    Samples at equal distances share the remaining votes, and classes with equally many votes share
    the win, so the result does not depend on the order of the samples, rounding, or the numbers of
    the classes. Squared distances with a relative difference of at most `equal` count as equal.
    """
    weights = _vote_weights(squares, min(NEIGHBOURS, near.shape[1]), equal)
    votes = np.zeros((near.shape[0], int(max(classes.max(), asked.max())) + 1))
    rows = np.arange(near.shape[0])
    for column, weight in zip(near.T, weights.T, strict=True):
        votes[rows, classes[column]] += weight
    won = votes >= votes.max(axis=1, keepdims=True) - EQUAL
    return np.asarray(1.0 - won[rows, asked] / won.sum(axis=1))


def other_shares(
    near: Indices, squares: Array, classes: Indices, asked: Indices, equal: float
) -> Array:
    """The share of other classes among the `SHARED` nearest samples of each query."""
    k = min(SHARED, near.shape[1])
    weights = _vote_weights(squares, k, equal)
    found: Array = np.sum(weights * (classes[near] != asked[:, None]), axis=1) / k
    return found


def _vote_weights(squares: Array, k: int, equal: float) -> Array:
    """The votes of the nearest samples, k in all; those as far as the last share what remains."""
    last = squares[:, k - 1 : k]
    room = equal * last
    inside, beside = squares < last - room, np.abs(squares - last) <= room
    left = k - inside.sum(axis=1, keepdims=True)
    weights: Array = inside + beside * (left / np.maximum(1, beside.sum(axis=1, keepdims=True)))
    return weights


def of_pairs(
    samples: Array, pairs: Indices, alike: NDArray[np.bool_], candidates: Candidates
) -> list[Array]:
    """For each candidate and pair the fraction of pairs of the other kind in the wrong order: first
    the similar pairs, then the dissimilar ones.
    """
    parts = [misplaced(d[alike], d[~alike]) for d in candidates.squares(samples, pairs)]
    return [np.array(part) for part in zip(*parts, strict=True)]


def of_triplets(samples: Array, triplets: Indices, candidates: Candidates) -> list[Array]:
    """The fraction of triplets (i, j, l) with d(i, l) ≤ d(i, j), per candidate and anchor."""
    _, place, count = np.unique(triplets[:, 0], return_inverse=True, return_counts=True)
    far, near = (candidates.squares(samples, triplets[:, [0, k]]) for k in (2, 1))
    return [np.array([np.bincount(place, one) / count for one in far <= near])]


def joined_pairs(similar: Indices, dissimilar: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """All pairs, and the mask of similar ones."""
    alike = np.repeat([True, False], [len(similar), len(dissimilar)])
    return np.vstack([similar, dissimilar]), alike


def pair_splits(
    samples: Array, pairs: Indices, alike: NDArray[np.bool_], folds: int
) -> list[Split]:
    """Splits of pairs, in an order determined by their samples."""
    keys = sample_keys(samples)[pairs].sum(axis=1)
    return splits(keys, alike.astype(np.intp), folds)


def _squares(samples: Array, pairs: Indices, factor: Array | None) -> Array:
    """‖Lᵀ(x_i − x_j)‖² of the pairs."""
    places = mapped(samples, factor)
    gaps = places[pairs[:, 0]] - places[pairs[:, 1]]
    return np.einsum("ij,ij->i", gaps, gaps)


def mapped(samples: Array, factor: Array | None) -> Array:
    """XL, or X itself for the Euclidean metric."""
    return samples if factor is None else samples @ factor
