"""The state passed to callbacks, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gramian.arrays.places import host
from gramian.common import clock
from gramian.common.types import Array


class _Step(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def factor(self) -> Array: ...


@dataclass(frozen=True)
class State:
    """One iteration, as passed to a callback. Returning True from the callback stops the run."""

    iteration: int
    step: _Step
    record: dict[str, float]
    """The row added to the history: time, rank, and values specific to the solver."""

    @property
    def value(self) -> float:
        """F(M)."""
        return self.step.value

    @property
    def factor(self) -> Array:
        """L of shape (n, r)."""
        return host(self.step.factor)


Callback = Callable[[State], Any]


class CallbackError(Exception):
    """An exception raised by a callback, not by the solver."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


def says_stop(watchers: list[Any], state: State) -> bool:
    """Pass the state to all callbacks; True if one returns exactly True, because callbacks may
    return anything.
    """
    framed = clock.on_frame()
    if framed is not None:
        framed(lambda: state.factor)
    try:
        answers = [watch(state) for watch in watchers]
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise CallbackError(error) from error
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


SURE = 1.0
"""Decrease of the logarithm of the gap from which the remaining time is estimated."""


class ProgressBar:
    """One line with iteration, objective, certified gap, rank and time left, in notebooks too.

    The remaining time is estimated from the limits on iterations and seconds and from the rate at
    which the gap decreases, whichever ends the run first.
    """

    def __init__(
        self, label: str, tol: float, max_iter: int | None = None, seconds: float = np.inf
    ) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as missing:
            raise ImportError(
                "progress=True needs tqdm: install gramian[progress], or use progress=False"
            ) from missing
        self._bar = tqdm(desc=label, bar_format="{desc}: {n_fmt} steps, {elapsed}{postfix}")
        self._tol, self._max_iter, self._seconds = tol, max_iter, seconds
        self._started = clock.now()
        self._first: tuple[float, float] | None = None

    def __call__(self, state: State) -> None:
        shown = {"F": f"{state.value:.6g}"}
        if "gap" in state.record:
            shown["gap"] = f"{state.record['gap']:.1e}"
        shown["rank"] = f"{int(state.record['rank'])}"
        left = self._left(state)
        if np.isfinite(left):
            shown["left"] = f"{left:.0f} s"
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update(state.iteration - self._bar.n)

    def _left(self, state: State) -> float:
        """Estimated seconds until the end of the run, infinite if unknown."""
        passed = clock.elapsed(self._started)
        left = [max(0.0, self._seconds - passed)]
        if self._max_iter is not None and state.iteration:
            left.append(passed * (self._max_iter / state.iteration - 1))
        gap = state.record.get("gap", 0.0)
        relative = gap / max(abs(state.value), abs(state.value - gap), 1e-300)
        if relative > 0 and self._first is None:
            self._first = passed, np.log(relative)
        elif relative > 0 and self._first is not None and self._tol > 0:
            since, log_first = self._first
            fallen = log_first - np.log(relative)
            still = np.log(relative / self._tol)
            if fallen > SURE and still > 0:
                left.append((passed - since) * still / fallen)
        return float(min(left))

    def close(self) -> None:
        self._bar.close()
