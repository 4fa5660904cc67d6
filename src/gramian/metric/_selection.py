"""The weight λ of alignment by held-out neighbours: a whole path from one eigenbasis.

Both ends of the path can be right. With a small λ the metric stays near Euclid's, with a large
one it tends to a discriminant; in between, directions of little variance are left large and the
error is usually worse. So a few values are tried from each end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.metric._base import principal_columns
from gramian.neighbours import nearest
from gramian.problems.metric import REGULARIZERS
from gramian.problems.moments import Moments, class_sums, column_means

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

PATH = (1e-1, 1e3, 1e4, 1e6)
"""λ in units of 1/ḡ², ḡ the mean eigenvalue of XᵀX over its rank."""

EUCLID = 1e-2
"""The first λ tried, in units of 1/g² with g the largest eigenvalue: M is then within 1 % of I."""

NEIGHBOURS = 3
FOLDS = 5
MANY_SAMPLES = 2000
HELD_OUT, REFERENCE = 600, 1800
"""With many samples one split of this size serves instead of folds."""


def unit(data: Moments, n: int) -> float:
    """1/ḡ², in which λ has no scale."""
    mean = data.trace / max(1, min(n - 1, data.order))
    return 1.0 / mean**2 if mean > 0 else 1.0


def choose_weight(
    data: Moments,
    X: Any,
    classes: Indices,
    *,
    centered: bool,
    regularizer: str,
    n_components: int | None,
    rank: int | None,
) -> float:
    """The smallest λ whose errors of 3 nearest neighbours on held-out samples are near the fewest.

    Near is within one standard error of a count, √errors: labels have to earn their weight.
    The moments without the held-out samples come by subtraction, and one eigendecomposition of
    them serves the whole path. The answer depends neither on the order of the samples nor on
    chance.
    """
    mean = column_means(X) if centered else np.zeros(X.shape[1])
    return weigh(
        data,
        classes,
        raw_keys(X, data.spectrum[1][:, -1], mean),
        lambda rows: _dense_rows(X, rows) - mean,
        regularizer=regularizer,
        n_components=n_components,
        rank=rank,
    )


def weigh(
    data: Moments,
    classes: Indices,
    keys: Array,
    rows_of: Callable[[Indices], Array],
    *,
    regularizer: str,
    n_components: int | None,
    rank: int | None,
) -> float:
    """`choose_weight` by the keys of the samples and a way to some of them, less their mean."""
    largest = float(data.spectrum[0][-1])
    weights = np.array(PATH) * unit(data, classes.size)
    if largest > 0:
        weights = np.append(EUCLID / largest**2, weights)
    errors = np.zeros(weights.size)
    rounded = np.round(keys / max(float(keys.max()), np.finfo(float).tiny), 9)
    for kept, held in _splits(rounded, classes):
        rows = np.concatenate([kept, held])
        samples = rows_of(rows)
        out = samples[kept.size :]
        g, V = np.linalg.eigh(data.gram.dense() - out.T @ out)
        sums = V.T @ (data.sums - _class_sums(out, classes[held], data.counts.size))
        rotated = samples @ V
        for i, lam in enumerate(weights):
            L = _factor(_unconstrained(np.maximum(g, 0.0), sums, lam, regularizer), rank)
            if n_components is not None:
                L = principal_columns(L, g[:, None] * L)[:, :n_components]
            errors[i] += _error(rotated @ L, classes[rows], kept.size)
    tolerable = errors.min() + np.sqrt(errors.min())
    return float(weights[int(np.argmax(errors <= tolerable))])


def _unconstrained(g: Array, sums: Array, lam: float, regularizer: str) -> Array:
    """−C/H, the minimiser without the cone, in the eigenbasis of XᵀX."""
    _, b, c = REGULARIZERS[regularizer]
    H = lam * np.outer(g, g) + b
    H = np.maximum(H, 1e-12 * np.max(H))
    M: Array = (lam * sums @ sums.T - c * np.eye(g.size)) / H
    return M


def _factor(M: Array, rank: int | None) -> Array:
    """A factor of P₊(M), or of its leading part of a rank: any will do where M ≻ 0 already."""
    if rank is None:
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(M)
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :rank]


def _error(mapped: Array, classes: Indices, kept: int) -> int:
    """How many of the held-out rows, those after the kept ones, their neighbours get wrong."""
    near = nearest(mapped[:kept], min(NEIGHBOURS, kept), queries=mapped[kept:]).indices
    votes = np.zeros((near.shape[0], int(classes.max()) + 1), dtype=int)
    np.add.at(votes, (np.arange(near.shape[0])[:, None], classes[near]), 1)
    return int(np.sum(votes.argmax(axis=1) != classes[kept:]))


def raw_keys(X: Any, along: Array, mean: Array) -> Array:
    """A number for each sample that neither turning nor shifting the features changes.

    Its distance from the mean, and from it along the leading direction; rounded where the
    arithmetic is before samples are put in their order.
    """
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    far = np.ravel(np.asarray(squares, dtype=float)) - 2 * (X @ mean) + mean @ mean
    key: Array = far + np.sqrt(2.0) * (X @ along - mean @ along) ** 2
    return key


def _splits(keys: Array, classes: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Kept and held-out rows, stratified, by an order that the samples themselves decide."""
    order = np.lexsort((keys, classes))
    if order.size <= MANY_SAMPLES:
        folds = min(FOLDS, order.size)
        for fold in range(folds):
            held = np.arange(order.size) % folds == fold
            yield order[~held], order[held]
        return
    spread = np.linspace(0, order.size - 1, min(order.size, HELD_OUT + REFERENCE)).astype(int)
    held = np.arange(spread.size) % 4 == 0
    yield order[spread[~held]], order[spread[held]]


def _class_sums(samples: Array, classes: Indices, c: int) -> Array:
    """XᵀY over all c classes, of which some may be absent."""
    sums, counts = class_sums(samples, classes)
    return np.pad(sums, ((0, 0), (0, c - counts.size)))


def _dense_rows(X: Any, rows: Indices) -> Array:
    chosen = X[rows]
    return chosen.toarray() if sp.issparse(chosen) else np.asarray(chosen, dtype=float)
