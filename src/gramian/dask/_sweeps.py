"""Half-sweeps of a completion by tasks, one for each block of users or of items.

A task receives the blocks of the other side that its ratings refer to from the workers that hold
them, and its new rows stay on its worker. The driver receives a few numbers of each block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from gramian.arrays import cpu
from gramian.arrays.blocks import mapped
from gramian.bounds import proved_certificate
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.dask._completion import Completed, CompletionModel
from gramian.dask._ratings import ClusterRatings, HeldOut, RatingBlock, StoredSide
from gramian.dask._spread import SWEEPS, SpreadMatrix, balanced, spread
from gramian.methods.alternating import SWEEPS_PER_CERTIFICATE, certified
from gramian.methods.base import Settings
from gramian.methods.quick import Quick
from gramian.objectives.halves import (
    RowFits,
    StatesByRow,
    column,
    halves_of,
    penalty_of,
    scattered_size,
    widened,
)
from gramian.problem import Problem
from gramian.proofs import PATIENCE
from gramian.result import Result, Status

CERTIFICATES = 100
"""Default number of certificates of a fit to a tolerance."""


@dataclass(frozen=True)
class ShardedHalves(StatesByRow):
    """Half-sweeps over a state [P b; Q c] on the workers; see `Halves`.

    The rows of a state are those of the factor divided by their `units`, in float32.
    """

    objective: Completed
    rated: ClusterRatings
    """The entries of the sweeps."""
    lam: float
    ridge: float
    """κ; 1 without offsets."""
    units: Array
    dtype: Any

    def offsets(self, factor: Any) -> Array:
        return np.concatenate(self.objective.offsets(factor))

    def without(self, held: HeldOut) -> ShardedHalves:
        """These halves without the held-out entries."""
        return replace(self, rated=self.rated.part(~held))

    def state(self, factor: Array | SpreadMatrix) -> Any:
        return super().state(spread(self.rated, factor))

    def scattered(self, rng: np.random.Generator, rank: int) -> Any:
        """A state with random Q, whose products are about as large as the targets."""
        targets = self.rated.mean_square(self.objective.model.mean)
        empty = spread(self.rated, np.zeros((self.units.size, 1), dtype=self.dtype))
        more = empty.normal(rank, rng, upper=False)
        length = scattered_size(targets, 1.0, rank)
        return mapped(widened, empty, more, column(self.noise), length)

    def refit_upper(self, state: SpreadMatrix, steps: int) -> None:
        """Improve P and b for fixed Q and c."""
        rows = self._refits(_refitted, state.upper, state.lower, self.rated.users, steps)
        state.upper = self.rated.cluster.keep(rows)

    def refit_lower(self, state: SpreadMatrix, steps: int) -> float:
        """Improve Q and c for fixed P and b; returns F before the update."""
        rated, cluster, count = self.rated, self.rated.cluster, len(state.lower)
        both = self._refits(_refit, state.lower, state.upper, rated.items, steps)
        before = cluster.each(
            "norm", _upper_penalty, rated.users.blocks, self.objective.loss.model_there,
            state.upper, (self.lam, self.ridge),
        )  # fmt: skip
        parts = [cluster.each("half-sweep", itemgetter(k), both) for k in (1, 0)]
        asked = cluster.keep([*parts[0], *parts[1], *before])
        state.lower, value = asked[:count], float(sum(cluster.gather(asked[count:])))
        state.age += 1
        if state.age >= SWEEPS:
            state.__dict__.update(rated.home.replanted(state).__dict__)
        return value

    def _refits(
        self, function: Any, own: list[Any], other: list[Any], side: StoredSide, steps: int
    ) -> list[Any]:
        """`_refit` or `_refitted` of each block of a side."""
        return self.rated.cluster.each(
            "half-sweep", function, side.blocks, self.objective.loss.model_there,
            side is self.rated.items, own, side.near(other), (self.lam, self.ridge), steps,
        )  # fmt: skip

    def lower_of(self, state: SpreadMatrix) -> SpreadMatrix:
        """[Q c] of a state."""
        return replace(state, upper=[], lower=list(state.lower))

    def set_lower(self, state: SpreadMatrix, lower: SpreadMatrix) -> None:
        state.lower, state.roots = list(lower.lower), state.roots | lower.roots


@halves_of.register
def _(objective: Completed, dtype: Any = float) -> ShardedHalves:
    model = objective.model
    units = np.sqrt(np.concatenate([model.rows, model.cols]))
    ridge = 1.0 if model.ridge is None else model.ridge
    return ShardedHalves(objective, objective.rated, objective.lam, ridge, units, np.dtype(dtype))


# --- sweeps to a tolerance ---------------------------------------------------------------


def to_a_gap(model: Any, problem: Problem, factor: Any) -> Result:
    """The result of sweeps from a factor until the certified relative gap is at most `tol`.

    Sweeps that no longer decrease F continue with twice as many columns, unless `rank` limits them.
    """
    tol, started, most = model._tolerance, clock.now(), min(factor.rated.shape)
    bar = model._progress_bar(clock.left())
    sweeps = Quick(generator(model.random_state), started + clock.left(), started, watch=bar)
    settings = Settings(rank=None, tol=tol, rng=sweeps.rng, deadline=sweeps.deadline)

    def proved(problem: Problem, image: Any) -> Certificate:
        return proved_certificate(problem, image, tol=tol, seconds=PATIENCE)[0]

    left, status = model.max_iter or CERTIFICATES, None
    try:
        while status is None:
            run = certified(problem, factor, settings, SWEEPS_PER_CERTIFICATE, proved)
            for step in islice(run, left):
                factor, left = step.factor, left - 1
                sweeps.tell(step, factor.shape[1])
                if step.certificate is not None and step.certificate.within(tol):
                    status = Status.CONVERGED
                elif sweeps.expired():
                    status = Status.TIME_LIMIT
                if status is not None:
                    break
            else:
                if left == 0:
                    status = Status.MAX_ITER
                elif model.rank is not None or factor.columns >= most:
                    status = Status.LOCAL
                else:
                    halves: ShardedHalves = halves_of(problem.objective)
                    columns, state = min(2 * factor.columns, most), halves.state(factor)
                    factor = halves.factor(halves.widened(state, columns, sweeps.rng))
    finally:
        if bar is not None:
            bar.close()
    turned: Any = balanced(factor)
    return replace(
        sweeps.certified(problem, problem.objective.image(turned), tol=tol, seconds=PATIENCE),
        status=status,
    )


# --- tasks -------------------------------------------------------------------------------


def _refit(
    block: RatingBlock, model: CompletionModel, turned: bool, own: Array, other: list[Array],
    weights: tuple[float, float], steps: int,
) -> tuple[float, Array]:  # fmt: skip
    """F of a block, and its rows after conjugate gradient steps on each."""
    dtype = own.dtype
    stiffness = (model.cols if turned else model.rows)[slice(*block.ends)]
    free, roots = model.ridge is not None, None
    targets = (block.values - model.mean).astype(dtype, copy=False)
    if block.weights is not None:
        roots = np.sqrt(block.weights).astype(dtype)
        targets = targets * roots
    fits = RowFits(
        cpu.index_array(block.starts), cpu.index_array(block.neighbour), roots, targets,
        free, roots if free else None, stiffness.astype(dtype),
    )  # fmt: skip
    P = own.copy()
    penalty = np.full(P.shape[1], weights[0])
    penalty[-1] = weights[1]
    return fits.refit(P, np.concatenate(other), penalty, steps), P


def _refitted(*arguments: Any) -> Array:
    """The rows of a block after the steps."""
    return _refit(*arguments)[1]


def _upper_penalty(
    block: RatingBlock, model: CompletionModel, rows: Array, weights: tuple[float, float]
) -> float:
    return penalty_of(rows, model.rows[slice(*block.ends)], *weights)
