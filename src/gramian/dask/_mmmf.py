"""MMMF of ratings on a cluster: signs by blocks of users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import completion as home
from gramian.certificate import relative
from gramian.completion._margins import MOST_LEVELS, all_thresholds, checked_levels
from gramian.completion.mmmf import LAM_PER_SIGN
from gramian.dask._completion import Completed
from gramian.dask._objective import Sharded
from gramian.dask._rating_sums import errors, scores
from gramian.dask._ratings import Block, Rated
from gramian.dask._recommend import OfRatings
from gramian.dask._rounds import Rounds
from gramian.dask._scene import Model
from gramian.objectives import Linear, Objective
from gramian.problem import Problem

Array = NDArray[np.floating]


class MMMF(OfRatings, home.MMMF):
    """`gramian.completion.MMMF` of ratings on a cluster; thresholds of more than two levels fixed.

    Learned thresholds couple all ratings of a level: pass thresholds="fixed" for more than two.
    """

    def _look_at(self, ratings: Any) -> None:
        self.classes_ = checked_levels(ratings.values)

    def _prepare(self, rated: Rated) -> None:
        self.classes_ = checked_levels(rated.levels(MOST_LEVELS))
        if self._learned:
            raise ValueError(
                'thresholds="learned" couples all ratings, which is done at home only: pass '
                'thresholds="fixed"'
            )
        self.mean_ = 0.0
        self._row_offsets: Array = np.zeros(rated.shape[0])
        self._col_offsets: Array = np.zeros(rated.shape[1])

    def _offsets_on(self, rated: Rated, train: bool) -> None:
        """The offsets of the levels by least squares, beside which the signs are told."""
        if not self.biases:
            return
        rows, cols = (np.ones(size) for size in rated.shape)
        model = Model(0.0, float(self.bias_ridge), rows, cols, train, self.classes_)
        count, total = scores(Rounds(rated, model))
        self.mean_ = float(total / count)
        objective = Completed(rated, replace(model, mean=self.mean_), 1.0)
        image = objective.image(np.zeros((objective.order, 0)))
        self._row_offsets = objective.row_offsets(image)
        assert image.offsets is not None
        self._col_offsets = image.offsets

    def _of(self, rated: Rated, lam: float, *, train: bool = False, like: Any = None) -> Problem:
        if like is None:
            self._offsets_on(rated, train)
        rows, cols = self._scales_of(rated, train)
        cluster, users = rated.cluster, rated.users
        facts = {
            "mean": self.mean_, "mu": self.mu, "classes": self.classes_,
            "thresholds": self._midway(), "row_offsets": self._row_offsets,
            "col_offsets": self._col_offsets, "rows": rows, "cols": cols, "train": train,
        }  # fmt: skip
        shared = cluster.shared("model", facts)
        share = lam / len(users.blocks)
        ranges = users.ranges(rated.items)
        nodes = cluster.each("signs", _signs, users.blocks, shared, users.ends(), ranges, share)
        objective = Sharded(cluster, cluster.keep(nodes), wide=True)
        return Problem(
            objective,
            name="mmmf",
            formula="Σ h_μ(m − Y_ij X_ij) + λ ‖A^½XB^½‖_*",
            variable="[P X; Xᵀ Q]",
        )

    def _guess_on(self, rated: Rated, train: bool) -> float:
        rows, cols = rated.counts(train)
        m, n = (int(np.sum(side > 0)) for side in (rows, cols))
        size = float(np.sum(rows)) * (self.classes_.size - 1.0)
        return LAM_PER_SIGN * float(np.sqrt(size / m) + np.sqrt(size / n))

    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        rows, cols = self._scales_of(rated, True)
        model = Model(self.mean_, None, rows, cols, True, self.classes_)
        offsets = np.concatenate([self._row_offsets, self._col_offsets])
        state = np.column_stack([factor, offsets])
        count, off = errors(Rounds(rated, model), state, None)
        return float(off / max(count, 1.0))

    def _unpack_on(self, rated: Rated, problem: Problem, factor: Array) -> None:
        self._factors(rated, factor)
        self.row_biases_, self.col_biases_ = self._row_offsets, self._col_offsets
        self.thresholds_ = self._midway()
        objective: Any = problem.objective
        L = rated.cluster.shared("factor", factor)
        value = float(rated.cluster.sum("hinge", _sharp, objective.parts, L))
        self.hinge_gap_ = relative(value - self.certificate_.lower_bound, value)


# --- what tasks do -----------------------------------------------------------------------


def _signs(
    block: Block, facts: dict[str, Any], ends: list[int], reached: list[list[int]], lam: float
) -> Objective:
    """Σ h_μ(m_e − Y_e X_e) over the ratings of a block, and its share of λ/2 tr M."""
    block = block.part(facts["train"])
    if not block.values.size:
        return Linear(0.5 * lam, facts["rows"].size + facts["cols"].size)
    items = np.concatenate([np.arange(a, b) for a, b in reached])
    rows, cols = block.row_of() + ends[0], items[block.neighbour]
    places = np.searchsorted(facts["classes"], block.values)
    return all_thresholds(
        rows, cols, places, (facts["rows"].size, facts["cols"].size), lam,
        offset=facts["mean"] + facts["row_offsets"][rows] + facts["col_offsets"][cols],
        thresholds=facts["thresholds"], weights=block.weights, mu=facts["mu"],
        row_scale=facts["rows"], col_scale=facts["cols"],
    ).objective  # fmt: skip


def _sharp(part: Any, L: Array) -> float:
    """The hinge itself in the place of the smoothed one."""
    image = part.image(L)
    if isinstance(part, Linear):
        return float(part.value(image))
    return float(part.loss.smoothed(1e-12).value(image.z) + image.linear)
