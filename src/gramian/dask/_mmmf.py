"""MMMF of ratings on a cluster: signs by blocks of users."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import completion as home
from gramian.completion._margins import MOST_LEVELS, all_thresholds, checked_levels
from gramian.completion._recommender import Offsets
from gramian.dask._completion import Completed
from gramian.dask._objective import Sharded
from gramian.dask._ratings import Block, Rated
from gramian.dask._recommend import OfRatings
from gramian.dask._scene import Model
from gramian.objectives import Linear, Objective
from gramian.problem import Problem

Array = NDArray[np.floating]


class MMMF(OfRatings, home.MMMF):
    """`gramian.completion.MMMF` of ratings on a cluster; thresholds of more than two levels fixed.

    Learned thresholds couple all ratings of a level: pass thresholds="fixed" for more than two
    levels of more ratings than the driver takes.
    """

    def _look_at(self, ratings: Any) -> None:
        if not ratings.remote:
            return super()._look_at(ratings)
        self.classes_ = checked_levels(ratings.levels(MOST_LEVELS))
        if self._learned:
            raise ValueError(
                'thresholds="learned" couples all ratings, which is done at home only: pass '
                'thresholds="fixed"'
            )

    def _sweeps_pay(self, ratings: Any) -> bool:
        return not ratings.remote and super()._sweeps_pay(ratings)

    def _offsets(self, ratings: Any) -> Offsets:
        if not (self.biases and ratings.remote):
            return super()._offsets(ratings)
        scored, (m, n) = ratings.scored(self.classes_), ratings.shape
        model = Model(scored.mean, float(self.bias_ridge), np.ones(m), np.ones(n))
        objective = Completed(scored, model, 1.0)
        image = objective.image(np.zeros((m + n, 0)))
        rows = objective.row_offsets(image)
        assert image.offsets is not None
        return Offsets(scored.mean, rows, image.offsets)

    def _problem(self, ratings: Any, lam: float, offsets: Offsets | None = None) -> Problem:
        if not ratings.remote:
            return super()._problem(ratings, lam, offsets)
        rows, cols = self._scales(ratings)
        facts = {
            "offsets": offsets or self._offsets(ratings), "mu": self.mu, "classes": self.classes_,
            "thresholds": self._midway(), "rows": rows, "cols": cols,
        }  # fmt: skip
        return Problem(
            Signs(ratings, facts, lam),
            name=self._problem_name,
            formula="Σ h_μ(m − Y_ij X_ij) + λ ‖A^½XB^½‖_*",
            variable="[P X; Xᵀ Q]",
        )

    def _sharp_value(self, objective: Any) -> float:
        if not isinstance(objective, Signs):
            return super()._sharp_value(objective)
        L = objective.cluster.shared("factor", self.result_.factor)
        return float(objective.cluster.sum("hinge", _sharp, objective.parts, L))


class Signs(Sharded):
    """The hinges of ratings by blocks of users, each with its share of λ/2 tr M."""

    def __init__(self, rated: Rated, facts: dict[str, Any], lam: float) -> None:
        self.rated, self.model = rated, facts
        cluster, users = rated.cluster, rated.users
        shared, share = cluster.shared("model", facts), lam / len(users.blocks)
        ranges = users.ranges(rated.items)
        nodes = cluster.each("signs", _signs, users.blocks, shared, users.ends(), ranges, share)
        super().__init__(cluster, cluster.keep(nodes), wide=True)

    def trace_weighted(self, lam: float) -> Signs:
        """The same with another λ."""
        return Signs(self.rated, self.model, lam)


# --- what tasks do -----------------------------------------------------------------------


def _signs(
    block: Block, facts: dict[str, Any], ends: list[int], reached: list[list[int]], lam: float
) -> Objective:
    """Σ h_μ(m_e − Y_e X_e) over the ratings of a block, and its share of λ/2 tr M."""
    if not block.values.size:
        return Linear(0.5 * lam, facts["rows"].size + facts["cols"].size)
    items = np.concatenate([np.arange(a, b) for a, b in reached])
    rows, cols = block.row_of() + ends[0], items[block.neighbour]
    places = np.searchsorted(facts["classes"], block.values)
    offsets: Offsets = facts["offsets"]
    return all_thresholds(
        rows, cols, places, (facts["rows"].size, facts["cols"].size), lam,
        offset=offsets.mean + offsets.rows[rows] + offsets.cols[cols],
        thresholds=facts["thresholds"], weights=block.weights, mu=facts["mu"],
        row_scale=facts["rows"], col_scale=facts["cols"],
    ).objective  # fmt: skip


def _sharp(part: Any, L: Array) -> float:
    """The hinge itself in the place of the smoothed one."""
    image = part.image(L)
    if isinstance(part, Linear):
        return float(part.value(image))
    return float(part.loss.smoothed(1e-12).value(image.z) + image.linear)
