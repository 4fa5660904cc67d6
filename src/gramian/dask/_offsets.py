"""Offsets of users and items, eliminated: F = min over b and c of what is left beside them.

A block of users has all ratings of its rows, so that their offsets b are eliminated there; those
of the items solve (D_c − Σ_k N_kᵀ D_k⁻¹ N_k) c = g on the driver: by Cholesky's factor where they
are few, by conjugate gradients, a round a step, beyond, and by the factor after all where those
have taken many rounds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.places import norm
from gramian.dask._ratings import Block
from gramian.dask._rounds import Factor, Rounds
from gramian.dask._scene import Model, columns, dense_product, images, scene_of
from gramian.linalg import conjugate_gradient

Array = NDArray[np.floating]

SMALL, DIRECT = 500, 2000
"""Items up to which their offsets are found by Cholesky's factor at once, and up to which it comes
into question: 32 MB of every block."""

ROUNDS = 100
"""Steps of conjugate gradients after which it is made; eight were counted for a solution. For 10⁶
ratings of 4,000 items a step costs 0.1 s and the factor 12 s."""

ACCURACY, MOST_STEPS = 1e-13, 500
"""The residual that conjugate gradients end at beyond that, relatively, and their steps."""


class Offsets:
    """b and c of a completion with a ridge κ on them."""

    def __init__(self, rounds: Rounds, ridge: float) -> None:
        self.rounds, self.ridge = rounds, ridge
        self._steps = 0
        """Rounds that conjugate gradients have taken so far."""

    def of(self, X: Factor, Y: Factor, *, targets: bool) -> Array:
        """c beside ½(XYᵀ + YXᵀ): of what is left of the targets, or of the entries themselves."""
        return self.solve(self.rounds.sum("offsets", _right, X, Y, targets)[:, 0])

    def of_columns(self, X: Array, Y: Array, widths: tuple[int, ...]) -> Array:
        """c of the targets and of the entries of each ½(XYᵀ + YXᵀ), a column each."""
        return self.solve(self.rounds.sum("offsets", _rights, X, Y, widths))

    def of_rows(self, X: Factor, Y: Factor, c: Array) -> Array:
        """b that belongs to c."""
        nodes = self.rounds.tasks("offsets", _row_offsets, X, Y, c)
        return np.concatenate(self.rounds.cluster.gather(nodes))

    def solve(self, right: Array) -> Array:
        """c of the equations with this right side, or with several."""
        items = self.rounds.rated.shape[1]
        if items <= SMALL or (items <= DIRECT and self._steps >= ROUNDS):
            found: Array = scipy.linalg.cho_solve(self._factor, right)
            return found
        if right.ndim == 2:
            return np.column_stack([self.solve(column) for column in right.T])
        return conjugate_gradient(
            self._product,
            right,
            steps=MOST_STEPS,
            precondition=lambda c: c / self._mass,
            residual=ACCURACY * norm(right),
        ).x

    def _product(self, c: Array) -> Array:
        self._steps += 1
        there = self.rounds.cluster.shared("vectors", c)
        lost = self.rounds.sum_plain("offsets", _schur_times, there)
        return np.asarray(self._mass * c - lost)

    @cached_property
    def _mass(self) -> Array:
        """D_c: the ratings of each item, weighted, and κ."""
        return np.asarray(self.rounds.sum_plain("offsets", _column_mass) + self.ridge)

    @cached_property
    def _factor(self) -> Any:
        size = 8.0 * self.rounds.rated.shape[1] ** 2
        schur = np.diag(self._mass) - self.rounds.sum_plain("offsets", _schur, size=size)
        return scipy.linalg.cho_factor(schur, lower=True, overwrite_a=True, check_finite=False)


# --- what tasks do -----------------------------------------------------------------------


def _right(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    targets: bool,
) -> Array:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    z = images(scene, top2, low2)
    return scene.whole(scene.right(scene.targets - z if targets else z)[:, None])


def _rights(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    widths: tuple[int, ...],
) -> Array:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    E = columns(scene, top2, low2, widths)
    return scene.whole(np.column_stack([scene.right(e) for e in E.T]))


def _schur_times(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array,
) -> Array:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    N = scene.links()
    return scene.whole(N.T @ ((N @ scene.own(c)) / scene.mass))


def _column_mass(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = scene_of(block, model, ends, reached, top, low)
    return scene.whole(scene.by_col(np.ones(scene.rows.size)))


def _schur(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    """Nᵀ D⁻¹ N among all items."""
    scene = scene_of(block, model, ends, reached, top, low)
    N = scene.links()
    weighted = sp.csr_array(sp.diags_array(1.0 / scene.mass) @ N)
    found, items = np.zeros((model.cols.size,) * 2), scene.own(np.arange(model.cols.size))
    found[np.ix_(items, items)] = dense_product(N, weighted)
    return found


def _row_offsets(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> Array:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    return scene.fitted(scene.targets - images(scene, top2, low2), c)[0]
