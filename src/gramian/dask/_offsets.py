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
from gramian.dask._looks import columns
from gramian.dask._rounds import Factor, Rounds
from gramian.dask._scene import Scene
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
        sums: Array = self.rounds.sum("offsets", _residual_sums, X, Y, targets)
        return self.solve(sums if targets else -sums)

    def of_columns(self, X: Array, Y: Array, widths: tuple[int, ...]) -> Array:
        """c of the targets and of the entries of each ½(XYᵀ + YXᵀ), a column each."""
        return self.solve(self.rounds.sum("offsets", _sums_of_columns, X, Y, widths))

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


def _residual_sums(scene: Scene, targets: bool) -> Array:
    return scene.residual_sums(scene.part(targets=targets), scene.z)


def _sums_of_columns(scene: Scene, widths: tuple[int, ...]) -> Array:
    loss: Any = scene.part(targets=False).loss
    sums = [-loss.column_sums(z) for z in columns(scene, widths)]
    return scene.whole(np.stack(sums, axis=1))


def _links(scene: Scene) -> tuple[sp.csr_array, Array]:
    """N of the block, and D: the ratings of each user, weighted, and κ."""
    block = scene.block
    weights = np.ones(block.values.size) if block.weights is None else block.weights
    N = sp.csr_array((weights, block.neighbour, block.starts), shape=scene.shape)
    return N, np.asarray(N.sum(axis=1)) + scene.model.ridge


def _schur_times(scene: Scene, c: Array) -> Array:
    """Nᵀ D⁻¹ N c."""
    N, mass = _links(scene)
    return scene.whole(N.T @ ((N @ scene.own(c)) / mass))


def _column_mass(scene: Scene) -> Array:
    return scene.whole(np.asarray(_links(scene)[0].sum(axis=0)))


def _schur(scene: Scene) -> Array:
    """Nᵀ D⁻¹ N among all items."""
    loss: Any = scene.part().loss
    found, items = (
        np.zeros((scene.model.cols.size,) * 2),
        scene.own(np.arange(scene.model.cols.size)),
    )
    found[np.ix_(items, items)] = loss.links.gram(0, 1.0 / loss.masses[0])
    return found


def _row_offsets(scene: Scene, c: Array | None) -> Array:
    loss: Any = scene.part(c).loss
    found: Array = loss.offsets(scene.z)[0]
    return found
