"""The deadline of a run, the time budget of a fit, and progress notifications.

A run sets its deadline once. Eigenvalue computations, factorisations and certificates check it
before they start, and `TimeUpError` returns the run to its best point. A fit of several phases
(neighbours, the path of λ, solves, clusters) has one budget for all of them, and notifies watchers
of the current phase.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gramian.common.context import setting

ENDLESS = float("inf")

_deadline: ContextVar[float] = ContextVar("deadline", default=ENDLESS)


def now() -> float:
    """Seconds of the clock in which all deadlines are given."""
    return time.perf_counter()


def cpu() -> float:
    """CPU seconds of this process, for a decision that must not depend on other processes."""
    return time.process_time()


def elapsed(started: float) -> float:
    """Seconds since a time of `now`."""
    return now() - started


def passed(deadline: float) -> bool:
    """Whether a time of `now` has passed."""
    return now() >= deadline


def last_deadline(started: float, deadline: float) -> float:
    """The deadline of the last certificate of a run: 20 % of its limit plus 0.5 s later."""
    return max(deadline, now() + 0.2 * (deadline - started) + 0.5)


class TimeUpError(Exception):
    """The time of the run is up, or the next operation would exceed it."""


def until(deadline: float) -> AbstractContextManager[None]:
    """Set the deadline, in seconds of `now`; never later than an outer one."""
    return setting(_deadline, min(deadline, _deadline.get()))


def check(seconds: float = 0.0) -> None:
    """Raise TimeUpError if an operation of about `seconds` would end after the deadline."""
    deadline = _end()
    if deadline != ENDLESS and now() + seconds >= deadline:
        raise TimeUpError


def left() -> float:
    """The remaining seconds."""
    return _end() - now()


def _end() -> float:
    """The deadline of the run, or of the fit between its runs.

    That of a run is not later than that of the fit, except for its last certificate.
    """
    deadline = _deadline.get()
    return budget_end() if deadline == ENDLESS else deadline


# --- a whole fit -----------------------------------------------------------------------


@dataclass
class Budget:
    """The time of a fit, shared by all its phases."""

    deadline: float = ENDLESS
    interrupted: bool = False
    """Whether it was interrupted from the keyboard."""
    phase: str = ""
    """The current phase."""


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(seconds: float | None) -> Iterator[Budget]:
    """Limit a fit to `seconds`; a nested fit cannot exceed the outer limit."""
    outer = _budget.get()
    deadline = ENDLESS if seconds is None else now() + seconds
    own = Budget(deadline)
    if outer is not None:
        own = Budget(min(deadline, outer.deadline), outer.interrupted)
    try:
        with setting(_budget, own):
            yield own
    finally:
        if outer is not None:
            outer.phase = own.phase or outer.phase
            if own.interrupted:
                outer.deadline, outer.interrupted = own.deadline, True


def share(part: float) -> AbstractContextManager[Budget]:
    """Limit a phase to this fraction of the remaining time of the fit."""
    return budget(part * max(left(), 0.0))


def reserve(seconds: float) -> AbstractContextManager[Budget]:
    """Reserve seconds of the remaining time for operations after the phase."""
    return budget(max(left() - seconds, 0.0))


def budget_end() -> float:
    """When the fit has to end, in seconds of `now`."""
    own = _budget.get()
    return ENDLESS if own is None else own.deadline


def grace() -> AbstractContextManager[None]:
    """Allow a phase that is essential for a fit to end half a second late."""
    return until(max(budget_end(), now()) + 0.5)


def interrupt() -> None:
    """Record a keyboard interrupt: the fit ends with its current result, later phases are short."""
    own = _budget.get()
    if own is not None:
        own.deadline, own.interrupted = min(own.deadline, now()), True


class EndedError(KeyboardInterrupt):
    """Raised by a phase of a fit after an earlier keyboard interrupt."""


def caught(error: KeyboardInterrupt) -> None:
    """Record a keyboard interrupt; the second one of a fit is raised again."""
    if interrupted() and not isinstance(error, EndedError):
        raise error
    interrupt()


def interrupted() -> bool:
    """Whether the fit was interrupted from the keyboard."""
    own = _budget.get()
    return own is not None and own.interrupted


# --- watchers --------------------------------------------------------------------------


class Watcher:
    """Receives notifications of a fit; all methods are optional."""

    def phase(self, name: str) -> None:
        """A phase starts."""

    def step(self, state: Any) -> None:
        """A solver has taken a step: a `gramian.State`."""

    def frame(self, places: Callable[[], Any]) -> None:
        """The samples have moved; `places` computes their positions on request."""


class Watchers(Watcher):
    """Several watchers; None is ignored."""

    def __init__(self, *watchers: Watcher | None) -> None:
        self.watchers = [watcher for watcher in watchers if watcher is not None]

    def phase(self, name: str) -> None:
        for watcher in self.watchers:
            watcher.phase(name)

    def step(self, state: Any) -> None:
        for watcher in self.watchers:
            watcher.step(state)

    def frame(self, places: Callable[[], Any]) -> None:
        for watcher in self.watchers:
            watcher.frame(places)


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def watcher() -> Watcher | None:
    """The current watcher, or None."""
    return _watcher.get()


def watched_by(watcher: Watcher | None) -> AbstractContextManager[None]:
    """Notify this watcher of all fits inside the block."""
    return setting(_watcher, watcher)


def phase(name: str) -> None:
    """Notify that a phase starts, for example "the neighbours of 1,000 samples"."""
    own, watcher = _budget.get(), _watcher.get()
    if own is not None:
        own.phase = name
    if watcher is not None:
        watcher.phase(name)


_placing: ContextVar[Callable[[Any], Any] | None] = ContextVar("placing", default=None)


def placing(place: Callable[[Any], Any] | None) -> AbstractContextManager[None]:
    """Define how factors inside the block give positions of samples; None if they do not.

    Only these are shown as frames: factors in other coordinates are not meaningful pictures.
    """
    return setting(_placing, place)


def on_frame() -> Callable[[Callable[[], Any]], None] | None:
    """The function that shows factors, None without a watcher or if they are not positions."""
    watcher, place = _watcher.get(), _placing.get()
    if watcher is None or place is None:
        return None
    return lambda factor: watcher.frame(lambda: place(factor()))
