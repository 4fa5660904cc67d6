"""Moments of labelled samples for alignment, computed once: XᵀX, XᵀY and the class sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import HOST, Place, as_double, host, place, place_of
from gramian.arrays.samples import BLOCK, column_sums, near_origin
from gramian.arrays.threads import blas_threads_for
from gramian.common.types import Array
from gramian.objectives import GramOperator, LowRankPlusIdentity
from gramian.objectives.matrices import DENSE_ORDER, Dense, MatrixSum

FEW_CLASSES = 32
"""Number of classes up to which class sums of a block are a multithreaded dense product; for few
samples they are added one by one, as means are."""


COPIES = 4
"""Copies of the samples on a device: themselves, and results of their size."""


@dataclass(frozen=True)
class Moments:
    """XᵀX (d × d, formed only at moderate order), XᵀY (d × c), the class sizes (c), tr XᵀX."""

    gram: Dense | GramOperator | MatrixSum
    sums: Array
    counts: Array
    trace: float
    mean: Array | None = None
    """The mean that was subtracted from the samples, if they are centred."""
    place: Place = HOST
    """Where XᵀX is decomposed."""

    @property
    def order(self) -> int:
        return self.gram.order

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of XᵀX, computed once for all λ."""
        values, vectors = eigh(self.gram.dense(), self.place)
        return np.maximum(values, 0.0), vectors


def moments(
    X: Any,
    classes: NDArray[np.integer],
    *,
    center: bool = False,
    near: bool = False,
    weights: Array | None = None,
    device: Any = None,
) -> Moments:
    """The moments of X, dense or CSR, or of X minus its mean, which is never formed.

    `near` if X is known to be near the origin (`near_origin`); `weights` are the multiplicities of
    the samples, default 1. Dense samples are multiplied on the `device`, block by block, or whole
    if they are there (`sent`).
    """
    X = near_origin(X) if center and not near else X
    sums, counts = class_sums(X, classes, weights)
    mean = sums.sum(axis=1) / counts.sum() if center else None
    if mean is not None:
        sums = sums - np.outer(mean, counts)
    gram, there = gram_of(X, mean, weights, device), place(device)
    if isinstance(gram, Dense):
        return Moments(gram, sums, counts, float(np.trace(gram.array)), mean, there)
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    square = float(np.sum(np.ravel(squares) * (1.0 if weights is None else weights)))
    shift = 0.0 if mean is None else counts.sum() * float(mean @ mean)
    return Moments(gram, sums, counts, square - shift, mean, there)


def on_device(X: Any) -> bool:
    """Whether samples are a tensor."""
    return not (isinstance(X, np.ndarray) or sp.issparse(X))


def sent(X: Any, device: Any) -> Any:
    """Dense samples as a tensor of float64 on the device, if a fit has room for them there."""
    there = place(device)
    if there.is_host or not isinstance(X, np.ndarray) or X.shape[1] > DENSE_ORDER:
        return X
    fits = 8.0 * COPIES * X.size <= there.free_memory()
    return as_double(there.put(X)) if fits else X


def class_sums(
    X: Any, classes: NDArray[np.integer], weights: Array | None = None
) -> tuple[Array, Array]:
    """XᵀY and the class sizes, for class indices 0 … c − 1, in double precision."""
    c = int(classes.max()) + 1
    sums = np.zeros((c, X.shape[1]))
    w = np.ones(classes.size) if weights is None else weights
    if on_device(X):
        there, Y = place_of(X), _indicators(classes, w, c, False)
        Y = there.sparse(Y) if sp.issparse(Y) else there.put(Y)
        return np.ascontiguousarray(host(Y @ X).T), np.bincount(classes, w).astype(float)
    for (rows, labels), (_, weight) in zip(_blocks(X, classes), _blocks(X, w), strict=True):
        sums += _toarray(_indicators(labels, weight, c, sp.issparse(rows)) @ rows)
    return np.ascontiguousarray(sums.T), np.bincount(classes, w).astype(float)


def _indicators(labels: NDArray[np.integer], weight: Array, c: int, sparse: bool) -> Any:
    """Yᵀ (c × n) with the weights of the samples; dense if a product with it is faster."""
    n = labels.size
    if sparse or c > FEW_CLASSES or n < BLOCK:
        return sp.csr_array((weight, (np.arange(n), labels)), shape=(n, c)).T
    Y = np.zeros((c, n))
    Y[labels, np.arange(n)] = weight
    return Y


def column_means(X: Any, weights: Array | None = None) -> Array:
    """The mean of each feature."""
    if weights is None:
        return column_sums(X, squares=False)[0] / X.shape[0]
    alike = np.zeros(X.shape[0], dtype=np.intp)
    sums, total = class_sums(X, alike, weights)
    return sums[:, 0] / total[0]


def weighted_gram(X: Any, weights: Array | None = None, device: Any = None) -> Array:
    """Xᵀ diag(w) X in double precision, on the host without a second copy of X."""
    if on_device(X):
        weighted = X if weights is None else X * place_of(X).put(weights)[:, None]
        return np.asarray(host(X.T @ weighted))
    there = place(None if sp.issparse(X) else device)
    if there.is_host and weights is None and X.dtype == np.float64:
        with blas_threads_for(X.shape[0] * X.shape[1]):
            return _toarray(X.T @ X)
    gram = there.put(np.zeros((X.shape[1], X.shape[1])))
    for rows, weight in _blocks(X, np.ones(X.shape[0]) if weights is None else weights):
        if sp.issparse(rows):
            gram += (rows.T @ (sp.diags_array(weight) @ rows)).toarray()
        else:
            block = there.put(np.ascontiguousarray(rows))
            gram += block.T @ (block * there.put(weight)[:, None])
    return np.asarray(host(gram))


def _blocks(X: Any, along: NDArray[Any]) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Blocks of rows in double precision, each with its part of `along`."""
    for start in range(0, X.shape[0], BLOCK):
        yield X[start : start + BLOCK].astype(float, copy=False), along[start : start + BLOCK]


def gram_of(
    X: Any, mean: Array | None, weights: Array | None = None, device: Any = None
) -> Dense | GramOperator | MatrixSum:
    """XᵀX, or that of X minus its mean, formed only at moderate order."""
    d = X.shape[1]
    n = float(X.shape[0] if weights is None else weights.sum())
    if d <= DENSE_ORDER:
        gram = weighted_gram(X, weights, device)
        if mean is not None:
            gram -= n * np.outer(mean, mean)
        return Dense(gram, lower=0.0)
    whole = GramOperator(X, 1.0, weights)
    if mean is None:
        return whole
    return MatrixSum(whole, LowRankPlusIdentity(d, 0.0, mean[:, None], np.array([-n])), lower=0.0)


def _toarray(product: Any) -> Array:
    return product.toarray() if sp.issparse(product) else product
