"""What is held out says of metrics: neighbours of samples, order of pairs, triplets met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.backends.dense import eigh
from gramian.neighbours import search_mixtures
from gramian.outer.path import NEIGHBOURS, misplaced, outvoted

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

MANY = 2000
FITTED, HELD_OUT, WORK, BESIDE = 1800, 3000, 2e9, 100
"""With more than so many, one split serves instead of folds: a fit to so few, judged on so many at
most, with four times as many to seek neighbours among and so many products, beside which each pair
of samples costs as much as this many features."""

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


def splits(keys: Array, classes: Indices, folds: int, width: int = 1) -> list[Split]:
    """Stratified splits, by an order that the samples themselves decide; `width` features."""
    return list(_splits(np.lexsort((keys, classes)), folds, width))


def _splits(order: Indices, folds: int, width: int) -> Iterator[Split]:
    if order.size <= MANY:
        folds = min(folds, order.size)
        for fold in range(folds):
            held = np.arange(order.size) % folds == fold
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
    """For each candidate and held-out sample 1 where its neighbours vote wrong."""
    kept, held = split.reference, split.held
    spaces = [(mapped(samples[kept], L), mapped(samples[held], L)) for L in candidates.factors]
    near = search_mixtures(spaces, candidates.weights, min(NEIGHBOURS, kept.size))
    return [np.array([outvoted(one, classes[kept], classes[held]) for one in near])]


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
