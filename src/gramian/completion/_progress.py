"""What a fit that ends by the held-out error has reached, on disk."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.checkpoint import Progress
from gramian.completion._ratings import Ratings

Held = NDArray[np.bool_]

STAGES = ("path", "still", "whole")

PARAMETERS = (
    "lam", "biases", "bias_ridge", "weight_power", "rank", "alpha", "feature_weight", "mu",
    "thresholds",
)  # fmt: skip
"""What two fits must agree in for one to resume the other, beside the ratings."""


class StagedProgress(Progress):
    """Stages of a fit and their states.

    `found` holds the held-out ratings ("held", as bits), the λ tried and their errors ("lams",
    "errors"), the state of the last sweep and that of the least error ("state", "best"), and the
    last stage that is done: "path" when λ is chosen ("lam", "path"), "still" when the held-out
    error no longer decreases, and "whole" after the sweeps over all ratings.
    """

    def __init__(self, model: Any, ratings: Ratings) -> None:
        super().__init__(lambda: _mark(model, ratings))

    def done(self, stage: str) -> bool:
        """Whether an earlier call of the same fit has finished a stage."""
        reached = self.found.get("stage")
        return reached in STAGES and STAGES.index(reached) >= STAGES.index(stage)

    def held(self, drawn: Held) -> Held:
        """The ratings that are held out: those of the earlier call, or these."""
        if "held" not in self.found:
            self.keep(now=True, held=np.packbits(drawn))
            return drawn
        return np.unpackbits(self.found["held"], count=drawn.size).astype(bool)


def _mark(model: Any, ratings: Ratings) -> dict[str, Any]:
    given = {name: getattr(model, name) for name in PARAMETERS if hasattr(model, name)}
    seed = model.random_state if isinstance(model.random_state, int) else None
    features = (each for each in ratings.features if each is not None)
    sums = [ratings.rows, ratings.cols, ratings.values, *features]
    sums += [] if ratings.weights is None else [ratings.weights]
    check = 0
    for each in sums:
        check = zlib.crc32(np.ascontiguousarray(each).data, check)
    return {
        "estimator": type(model).__name__,
        **given,
        "random_state": seed,
        "shape": list(ratings.shape),
        "ratings": check,
    }
