"""What watches a run: the state handed to callbacks, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class _Step(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def factor(self) -> Array: ...


@dataclass(frozen=True)
class State:
    """One iteration, as a callback sees it. Returning True from the callback stops the run."""

    iteration: int
    step: _Step
    record: dict[str, float]
    """The row added to the history: time, rank, and what the solver tells besides."""

    @property
    def value(self) -> float:
        """F(M)."""
        return self.step.value

    @property
    def factor(self) -> Array:
        """L of shape (n, r)."""
        return self.step.factor


Callback = Callable[[State], Any]


class ProgressBar:
    """A bar with iteration, objective, certified gap and rank, for ``progress=True``."""

    def __init__(self, total: int | None, label: str) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as missing:
            raise ImportError(
                "progress=True needs tqdm: install gramian[progress], or leave progress off"
            ) from missing
        self._bar = tqdm(total=total, desc=label, unit="it")

    def __call__(self, state: State) -> None:
        shown = {"F": f"{state.value:.6g}", "rank": int(state.record["rank"])}
        if "gap" in state.record:
            shown["gap"] = f"{state.record['gap']:.1e}"
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update(state.iteration - self._bar.n)

    def close(self) -> None:
        self._bar.close()
