"""Concatenation of several maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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
        seen = self.seen(U)
        return self.of_seen(seen, seen if V is U else self.seen(V))

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        return self.adjoint_of_seen(w, self.seen(V))

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

    def seen(self, L: Floats) -> Any:
        """L, and the parts of all maps."""
        return L, [map.seen(L) for map in self.maps]

    def of_seen(self, seen: Any, other: Any) -> NDArray[np.float64]:
        parts = zip(self.maps, seen[1], other[1], strict=True)
        return self._joined([map.of_seen(one, two) for map, one, two in parts], seen[0])

    def adjoint_of_seen(self, w: Floats, seen: Any) -> Floats:
        total = namespace(seen[0]).zeros_like(seen[0])
        for (map, part), own in zip(self.split(w), seen[1], strict=True):
            total += map.adjoint_of_seen(part, own)
        return total

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        return self._joined([map.error(L, part) for map, part in self.split(z)], L)

    def split(self, w: Floats) -> Iterator[tuple[LinearMap, Floats]]:
        """Each map with its part of a vector."""
        check_weights(self.size, w)
        starts = [0, *self._ends]
        parts = [w[a:b] for a, b in zip(starts, [*self._ends, self.size], strict=True)]
        return zip(self.maps, parts, strict=bool(self.maps))

    def identity_weights(self) -> NDArray[np.float64] | None:
        """The identity weights of the first map that has them, and 0 for the other maps."""
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
