"""Squared distances between all points of a batch, by products of dense blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import as_double, batches_of, namespace, precision
from gramian.common.parameters import whole_number
from gramian.maps.base import (
    ROUNDINGS,
    Floats,
    LinearMap,
    check_factors,
    check_matrix,
    check_weights,
)


class BatchDistances(LinearMap):
    """𝒜(K)_ik = K_ii + K_kk − 2 K_ik for all ordered pairs (i, k) within each batch of points.

    Batches are runs of consecutive points, `sizes` their lengths. The image holds one b × b matrix
    for each of them, row by row, with zeros on its diagonal. With `single` the image has the
    precision of the factors, for descents in float32; certificates need float64.
    """

    def __init__(self, sizes: Sequence[int], *, single: bool = False) -> None:
        self.single = single
        self.sizes = tuple(whole_number(size, "the size of a batch") for size in sizes)
        self.order = sum(self.sizes)
        self.size = sum(size * size for size in self.sizes)

    def _points(self) -> Iterator[slice]:
        """The points of each batch."""
        ends = np.cumsum((0, *self.sizes)).tolist()
        yield from (slice(first, last) for first, last in pairwise(ends))

    def _each(self, w: Floats) -> Iterator[tuple[slice, Floats]]:
        """The points of each batch, and its matrix in an image w."""
        check_weights(self.size, w)
        yield from zip(self._points(), batches_of(w, self.sizes), strict=True)

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """(u_i − u_k)·(v_i − v_k) for every pair."""
        check_factors(self.order, U, V)
        xp, found = namespace(U), []
        for points in self._points():
            u, v = U[points], V[points]
            squares = xp.sum(u * v, axis=1)
            block = (-2.0 * u) @ v.T if V is U else -(u @ v.T + v @ u.T)
            block += squares[:, None]
            block += squares[None, :]
            found.append(_without_diagonal(block))
        image: Any = xp.concat(found) if len(found) > 1 else found[0]
        return image if self.single else as_double(image)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """Σ w_ik (e_i − e_k)(e_i − e_k)ᵀ V."""
        check_factors(self.order, V)
        xp, found = namespace(V), []
        for points, block in self._each(w):
            v = V[points]
            block, ones = xp.astype(block, v.dtype, copy=False), xp.ones_like(v[:, :1])
            wide = xp.concat([v, ones], axis=1)
            both = block @ wide + block.T @ wide
            found.append(both[:, -1:] * v - both[:, :-1])
        return xp.concat(found) if len(found) > 1 else found[0]

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """M_ii + M_kk − 2 M_ik for every pair."""
        check_matrix(self.order, M)
        M, found = as_double(M), []
        xp = namespace(M)
        for points in self._points():
            block = M[points, points]
            diagonal = xp.linalg.diagonal(block)
            found.append(_without_diagonal(diagonal[:, None] + diagonal - 2.0 * block))
        return xp.concat(found)

    def reach(self, w: Floats) -> tuple[Floats, float]:
        """2 Σ |w_ik + w_ki| over the pairs of a point."""
        xp = namespace(w)
        sums = [xp.sum(xp.abs(block + block.T), axis=1) for _, block in self._each(w)]
        return 2.0 * xp.concat(sums), float(max(self.sizes)) + 1.0

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        """A multiple of both squared lengths, which are rounded even if the points are close."""
        xp = namespace(L)
        squares = as_double(xp.sum(L * L, axis=1))
        found = [
            xp.reshape(squares[points][:, None] + squares[points], (-1,))
            for points in self._points()
        ]
        return ROUNDINGS * (L.shape[1] + 1) * precision(L) * xp.concat(found)


def _without_diagonal(block: Floats) -> Floats:
    """The entries row by row, those of the diagonal 0."""
    flat: Floats = namespace(block).reshape(block, (-1,))
    flat[:: block.shape[0] + 1] = 0.0
    return flat
