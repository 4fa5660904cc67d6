"""NuclearCompletion of ratings on a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gramian import completion as home
from gramian.completion._quick import swept
from gramian.completion._recommender import Factorization, Offsets
from gramian.completion._selection import Solved
from gramian.dask._completion import Completed
from gramian.dask._folder import parts_of
from gramian.dask._precise import to_a_gap
from gramian.dask._recommend import OfRatings
from gramian.dask._scene import Model
from gramian.dask._spread import Spread
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding


class NuclearCompletion(OfRatings, home.NuclearCompletion):
    """`gramian.completion.NuclearCompletion` of ratings on a cluster, in blocks.

    Ratings are stored twice, by blocks of users and of items; sweeps, offsets, the path of λ and
    the certificate run over them by tasks, and factors stay on the workers in between. At the end
    they come to the driver, or are kept in the folder `factors` of `fit`, whatever their size: then
    `row_factors_`, `col_factors_` and `result_.factor` are read from there as they are asked for.
    """

    _far = True

    def _problem(self, ratings: Any, lam: float, offsets: Offsets | None = None) -> Problem:
        if not ratings.remote:
            return super()._problem(ratings, lam, offsets)
        mean = (offsets or self._offsets(ratings)).mean
        ridge = float(self.bias_ridge) if self.biases else None
        return Problem(
            Completed(ratings, Model(mean, ridge, *self._scales(ratings)), lam),
            name=self._problem_name,
            formula="½ Σ (U_ij + b_i + c_j − R_ij)² + λ ‖A^½UB^½‖_*",
            variable="[P U; Uᵀ Q]",
        )

    def _sweeps_pay(self, ratings: Any) -> bool:
        return getattr(ratings, "home", None) is not None or super()._sweeps_pay(ratings)

    def _solved(self, ratings: Any) -> Solved:
        plain = self.tol == "auto" and self.max_iter is None
        if plain or getattr(ratings, "home", None) is None:
            return super()._solved(ratings)
        start = swept(self, ratings)
        problem = self._problem(ratings, start.lam, start.offsets)
        return Solved(to_a_gap(self, problem, start.factor), problem, start)

    def _best_offsets(self, problem: Problem, factor: Any, block: Any, given: Offsets) -> Offsets:
        objective = problem.objective
        if not (self.biases and isinstance(objective, Completed)):
            return super()._best_offsets(problem, factor, block, given)
        image = objective.image(block)
        rows = objective.row_offsets(image)
        assert image.offsets is not None
        return replace(given, rows=rows, cols=image.offsets)

    def _factorized(
        self, ratings: Any, problem: Problem | None, factor: Any, offsets: Offsets
    ) -> Factorization:
        if problem is None or not isinstance(factor, Spread):
            return super()._factorized(ratings, problem, factor, offsets)
        there: Any = factor
        offsets = self._best_offsets(problem, there, there, offsets)
        scales = self._scales(ratings)
        if ratings.home is None:
            kept: Any = factor.gathered()
            own, other = BlockEmbedding(*scales).halves(kept)
        else:
            kept = ratings.home.kept(factor)
            parts: Any = parts_of(kept, scales)
            own, other = parts
        self.result_ = replace(self.result_, factor=kept)
        return Factorization(own, other, offsets)
