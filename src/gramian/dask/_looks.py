"""What tasks tell of F over a block of users: its value, its gradient, products with both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays import cpu
from gramian.dask._ratings import Block
from gramian.dask._scene import Model, columns, dense_product, images, scene_of

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Told:
    """What a round tells of F at a point; sums over blocks, but for `upper`, one array a block."""

    loss: float
    """½ Σ ω ρ² + κ/2 ‖b‖², ρ what is left of the ratings; that of c is the driver's."""
    along: float
    """Σ |w z|."""
    with_point: float
    """Σ w z."""
    square: float
    """½ Σ ω ρ²."""
    against: float
    """Σ ω ρ t."""
    by_row: float
    """‖Σ_j ω ρ‖²."""
    by_col: Array
    """Σ_i ω ρ, a number for each item."""
    lower: Array
    """The rows of ∇F·V that belong to items."""

    def __add__(self, other: Told) -> Told:
        return Told(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))


def _fields(told: Told) -> tuple[Any, ...]:
    return tuple(getattr(told, name) for name in told.__dataclass_fields__)


def look(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None, sloping: bool,
) -> tuple[Told, Array]:  # fmt: skip
    """F of a block and, where that is asked for, the rows of ∇F·V."""
    scene = scene_of(block, model, ends, reached, top, low)
    z, t = images(scene, top2, low2), scene.targets
    b, left = scene.fitted(t - z, c)
    weighted = scene.omega * left
    square = 0.5 * float(left @ weighted)
    loss = square + (0.0 if model.ridge is None else 0.5 * model.ridge * float(b @ b))
    rows, cols = scene.by_row(left), scene.by_col(left)
    sizes = float(np.abs(weighted) @ np.abs(z)), -float(weighted @ z)
    told = (loss, *sizes, square, float(weighted @ t))
    G, columns = scene.gradient(-weighted), slice(None) if sloping else slice(0)
    upper = cpu.sparse_product(G, scene.low[:, columns])
    lower = scene.whole(G.T @ scene.top[:, columns])
    return Told(*told, float(rows @ rows), scene.whole(cols), lower), upper


def products(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    widths: tuple[int, ...], C: Array | None,
) -> Array:  # fmt: skip
    """Σ ω e_k e_l + κ ⟨b_k, b_l⟩ of what is left of each column."""
    scene = scene_of(block, model, ends, reached, top, low)
    E = columns(scene, top2, low2, widths)
    B = np.zeros((scene.block.rows, E.shape[1]))
    for k in range(E.shape[1]):
        B[:, k], E[:, k] = scene.fitted(E[:, k], None if C is None else C[:, k])
    omega = scene.omega if scene.block.weights is None else scene.block.weights[:, None]
    ridge = 0.0 if model.ridge is None else model.ridge
    return E.T @ (omega * E) + ridge * (B.T @ B)


def residual(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> sp.csr_array:  # fmt: skip
    """½G of a block among all items."""
    scene = scene_of(block, model, ends, reached, top, low)
    _, left = scene.fitted(scene.targets - images(scene, top2, low2), c)
    items = scene.own(np.arange(model.cols.size))
    data = -0.5 * scene.scale * (scene.omega * left)
    indices = items[scene.block.neighbour].astype(np.int32)
    shape = scene.block.rows, model.cols.size
    return sp.csr_array((data, indices, scene.block.starts), shape=shape)


def bent(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> tuple[Told, Array]:  # fmt: skip
    """𝒜*(∇²g 𝒜(sym(LDᵀ)))L of a block."""
    scene = scene_of(block, model, ends, reached, top, low)
    _, left = scene.fitted(images(scene, top2, low2), c)
    G = scene.gradient(scene.omega * left)
    lower = scene.whole(G.T @ scene.top)
    nothing = np.zeros(model.cols.size)
    return Told(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, nothing, lower), cpu.sparse_product(G, scene.low)


def times(G: sp.csr_array, top: Array, low: Array) -> tuple[Array, Array]:
    return G.T @ top, G @ low


def gram_times(G: sp.csr_array, V: Array) -> Array:
    """GᵀGV."""
    return np.asarray(G.T @ (G @ V))


def gram(G: sp.csr_array, first: int, last: int) -> Array:
    """Some columns of GᵀG."""
    return dense_product(G, sp.csr_array(G[:, first:last]))
