"""What tasks tell of F over a block of users, by the objective at home for given offsets c."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.dask._scene import Scene

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Told:
    """What a round tells of F at a point: sums over blocks of users."""

    value: float
    """F of the block."""
    rounding: float
    with_point: float
    """⟨w, z⟩."""
    square: float
    linear: float
    """g*(sw) = s² square + s linear for the loss of the block."""
    by_col: Array
    """What the ratings of each item leave, weighted."""
    lower: Array
    """The rows of 𝒜*(w)X that belong to items."""

    def __add__(self, other: Told) -> Told:
        return Told(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))


def _fields(told: Told) -> tuple[Any, ...]:
    return tuple(getattr(told, name) for name in told.__dataclass_fields__)


def look(scene: Scene, c: Array | None, sloping: bool) -> tuple[Told, Array]:
    """F of a block and, where that is asked for, the rows of 𝒜*(w)X."""
    part = scene.part(c)
    image = part.image(scene.X) if scene.Y is scene.X else part.pair_image(scene.X, scene.Y)
    w = part.dual(image)
    support = part.dual_support(w)
    assert support.shrunk is not None
    once, twice = -support.value, -support.shrunk(2.0)
    square = 0.5 * twice - once
    linear = once - square
    lower, upper = _slope(scene, w, scene.X if sloping else scene.X[:, :0])
    numbers = part.value(image), part.rounding(image), float(w @ image.z), square, linear
    return Told(*numbers, scene.residual_sums(part, image.z), lower), upper


def _slope(scene: Scene, w: Array, X: Array) -> tuple[Array, Array]:
    """The rows of 𝒜*(w)X that belong to items, among all, and those of users."""
    if not X.shape[1]:
        return np.zeros((scene.model.cols.size, 0)), X[: scene.block.rows]
    slope = scene.map.adjoint(w, X)
    return scene.whole(slope[scene.block.rows :]), slope[: scene.block.rows]


def bent(scene: Scene, c: Array | None) -> tuple[Array, Array]:
    """The rows of 𝒜*(∇²g 𝒜(sym(XYᵀ)))X, items and users."""
    part = scene.part(None if c is None else -c, targets=False)
    return _slope(scene, part.loss.gradient(scene.z), scene.X)


def columns(scene: Scene, widths: tuple[int, ...]) -> list[Array]:
    """The targets, and the entries of each of several ½(XYᵀ + YXᵀ) side by side, as z."""
    units = scene.embedding.units(scene.map.rows, scene.map.cols)
    found: list[Array] = [(scene.block.values - scene.model.mean) / units]
    ends = np.cumsum([0, *widths])
    for a, b in itertools.pairwise(ends):
        X, Y = (np.ascontiguousarray(side[:, a:b]) for side in (scene.X, scene.Y))
        found.append(scene.map.bilinear(X, Y))
    return found


def products(scene: Scene, widths: tuple[int, ...], C: Array | None) -> Array:
    """⟨z_k, ∇²g z_l⟩ of all columns, with the offsets of items in those of C."""
    found = columns(scene, widths)
    slopes = [
        scene.part(None if C is None else -C[:, k], targets=False).loss.gradient(z)
        for k, z in enumerate(found)
    ]
    return np.stack(found) @ np.stack(slopes, axis=1)


def residual(scene: Scene, c: Array | None) -> sp.csr_array:
    """The block ½G of 𝒜*(w) among all items."""
    part = scene.part(c)
    G = scene.map.matrix(0.5 * part.loss.gradient(scene.z))
    items = scene.own(np.arange(scene.model.cols.size)).astype(np.int32)
    shape = scene.block.rows, scene.model.cols.size
    return sp.csr_array((G.data, items[G.indices], G.indptr), shape=shape)
