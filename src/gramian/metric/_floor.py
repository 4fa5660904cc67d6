"""A lower bound on the eigenvalues of a whitened metric, S ⪰ ρ (tr S/d) I, for two learners."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.common.parameters import ABOVE_ZERO, BELOW_ONE, or_auto
from gramian.metric._local import LOCAL_RULES, ridge_for
from gramian.metric._shrinkage import ShrunkLearner
from gramian.reductions.floor import Floor
from gramian.reductions.scatter_whitening import ScatterWhitening
from gramian.reductions.span import Span

Array = NDArray[np.floating]

LEARNED, ENOUGH = 0.3, 10
"""The learned part 1 − ρ of S, with this many samples per direction."""

CLEAR = 16
"""Largest number of columns of a rough starting point. For USPS it has 63 where the optimum has 10,
and doubles the number of evaluations, each of which takes four times as long."""


class FlooredLearner(ShrunkLearner):
    """A learner of local metrics with a floor and a smoothing."""

    _rules: ClassVar = {
        **LOCAL_RULES,
        "mu": or_auto(ABOVE_ZERO),
        "floor": or_auto(BELOW_ONE),
    }
    floor: Any
    ridge: Any

    def _check_sizes(self, n_samples: int) -> None:
        super()._check_sizes(n_samples)
        if self.floor != "auto":
            self._refuse_full_rank("floor", float(self.floor), n_samples)

    def _amounts(self, samples: Array) -> dict[str, float]:
        """The ridge and the floor for this many samples, also used for subsets."""
        return {
            "ridge": ridge_for(self.ridge, samples),
            "floor": floor_for(self.floor, samples, self.rank),
        }

    def _above(
        self, floor: Floor, span: Span, rough: Array | None, white: ScatterWhitening
    ) -> Array | None:
        """A starting point above the floor; None if the rough one mostly consists of the floor of
        other pairs."""
        start = floor.coordinates(self._begin(span, rough, white))
        blurred = self.init is None and start is not None and start.shape[1] > CLEAR
        return None if blurred else start


def floor_for(floor: float | str, X: Array, rank: int | None = None) -> float:
    """ρ; "auto" learns a smaller part of S if there are few samples per direction.

    It is 0 with a rank limit, because a metric above a floor has full rank.
    """
    if floor != "auto":
        return float(floor)
    if rank is not None:
        return 0.0
    n, d = X.shape
    return 1.0 - LEARNED * min(1.0, n / (ENOUGH * d))
