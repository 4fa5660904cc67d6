"""Concatenation of several maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import namespace, zeros
from gramian.maps.base import Floats, LinearMap, check_order, check_weights


class Stack(LinearMap):
    """𝒜(M) = (𝒜₁(M), …, 𝒜_k(M)), with the adjoint Σ 𝒜_i*(w_i).

    Without maps the image is R⁰, as for a linear objective, and the order `n` is required.
    """

    def __init__(self, maps: Sequence[LinearMap], n: int | None = None) -> None:
        self.maps = tuple(maps)
        orders = {map.order for map in self.maps} | ({check_order(n)} if n is not None else set())
        if len(orders) != 1:
            raise ValueError(f"stacked maps need one order, got {sorted(orders)}")
        self.order = orders.pop()
        self.size = sum(map.size for map in self.maps)
        self._ends = [int(end) for end in np.cumsum([map.size for map in self.maps])[:-1]]

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        return self._joined([map.bilinear(U, V) for map in self.maps], U)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        total = namespace(V).zeros_like(V)
        for map, part in self.split(w):
            total += map.adjoint(part, V)
        return total

    def adjoint_matrix(self, w: Floats) -> Floats:
        total = np.zeros((self.order, self.order))
        for map, part in self.split(w):
            total += map.adjoint_matrix(part)
        return total

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        return self._joined([map.of_matrix(M) for map in self.maps], M)

    def columns(self, W: Floats) -> NDArray[np.float64]:
        k, xp = W.shape[1], namespace(W)
        rows = [map.columns(W) for map in self.maps]
        empty = xp.zeros((0, k * (k + 1) // 2), dtype=W.dtype)
        return xp.concat(rows, axis=0) if rows else empty

    def fixed(self, L: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """The functions of the maps, concatenated."""
        pairs = [map.fixed(L) for map in self.maps]

        def adjoint(w: Floats) -> Floats:
            total = namespace(L).zeros_like(L)
            for (_, back), (_, part) in zip(pairs, self.split(w), strict=True):
                total += back(part)
            return total

        return lambda D: self._joined([forward(D) for forward, _ in pairs], D), adjoint

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        return self._joined([map.error(L, part) for map, part in self.split(z)], L)

    def split(self, w: Floats) -> Iterator[tuple[LinearMap, Floats]]:
        """Each map with its part of a vector."""
        check_weights(self.size, w)
        starts = [0, *self._ends]
        parts = [w[a:b] for a, b in zip(starts, [*self._ends, self.size], strict=True)]
        return zip(self.maps, parts, strict=bool(self.maps))

    def identity_weights(self) -> NDArray[np.float64] | None:
        """Those of the first map that has identity weights."""
        for k, map in enumerate(self.maps):
            own = map.identity_weights()
            if own is not None:
                weights = [np.zeros(other.size) for other in self.maps]
                weights[k] = own
                return np.concatenate(weights)
        return None

    def _joined(self, parts: list[Floats], like: Floats) -> NDArray[np.float64]:
        xp = namespace(like)
        return xp.concat(parts) if parts else zeros((0,), like)
