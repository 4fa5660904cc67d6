"""What a fit that ends by the error held out has reached, on the disk."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock, storage
from gramian.completion._ratings import Ratings
from gramian.solvers.checkpoint import EVERY, place_for, write
from gramian.storage import StoredFileError

Array = NDArray[np.floating]
Held = NDArray[np.bool_]

PARAMETERS = (
    "lam", "biases", "bias_ridge", "weight_power", "rank", "alpha", "feature_weight", "mu",
    "thresholds",
)  # fmt: skip
"""What two fits must agree in for one to go on for the other, beside the ratings."""


class Progress:
    """Stages of a fit and their states, kept where `gm.checkpoints` says; nothing without it.

    `found` holds the ratings held out ("held", as bits), the λ tried and their errors ("lams",
    "errors"), the state of the last sweep and that of the least error ("state", "best"), and the
    stage that is done: "path" when λ is chosen ("lam"), "still" when the error held out is, and
    "whole" after the sweeps over all ratings.
    """

    def __init__(self, model: Any, ratings: Ratings) -> None:
        there = place_for(EVERY)
        self.path: Path | None = None if there is None else there[0]
        self.every: float = np.inf if there is None else there[1]
        self.found: dict[str, Any] = {}
        self._written = -np.inf
        if self.path is not None:
            self.mark = _mark(model, ratings)
            storage.remove_abandoned(self.path)
            if self.path.exists():
                self.found = self._stored()

    def done(self, stage: str) -> bool:
        """Whether an earlier call of the same fit has got beyond a stage."""
        order = ("path", "still", "whole")
        reached = self.found.get("stage")
        return reached in order and order.index(reached) >= order.index(stage)

    def held(self, drawn: Held) -> Held:
        """The ratings that are held out: those of the earlier call, or these."""
        if "held" not in self.found:
            self.keep(now=True, held=np.packbits(drawn))
            return drawn
        return np.unpackbits(self.found["held"], count=drawn.size).astype(bool)

    def keep(self, *, now: bool = False, **content: Any) -> None:
        """Note where the fit is, and write it when the last time was long enough ago.

        Arrays are noted as they are, and written as they have become by then.
        """
        if self.path is None:
            return
        self.found.update(content)
        if now or clock.elapsed(self._written) >= self.every:
            write(self.path, {"mark": self.mark, **self.found}, "between two sweeps")
            self._written = clock.now()

    def _stored(self) -> dict[str, Any]:
        assert self.path is not None
        found: dict[str, Any] = storage.read(self.path, "checkpoint")
        kept = found.pop("mark", None)
        if kept != self.mark:
            kept = kept if isinstance(kept, dict) else {}
            differ = [name for name, value in self.mark.items() if kept.get(name) != value]
            raise StoredFileError(
                f"checkpoint {self.path} is of another fit (other {', '.join(differ)}): remove it "
                "or name another folder"
            )
        return found


def _mark(model: Any, ratings: Ratings) -> dict[str, Any]:
    given = {name: getattr(model, name) for name in PARAMETERS if hasattr(model, name)}
    seed = model.random_state if isinstance(model.random_state, int) else None
    features = (each for each in vars(model).get("_features", ()) if each is not None)
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
