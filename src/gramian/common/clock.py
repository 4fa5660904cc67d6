"""One clock for everything that a run does, however deep inside it, and what it is doing.

A run sets its deadline once; products of eigenvalue computations, factorisations and certificates
ask before they begin, and `TimeUpError` takes the run back to its best point. A fit of several
phases (neighbours, the path of λ, solves, clusters) has a budget for all of them together, and
tells whoever watches which it has come to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

ENDLESS = float("inf")

_deadline: ContextVar[float] = ContextVar("deadline", default=ENDLESS)


def now() -> float:
    """Seconds of the clock that all deadlines are given in."""
    return time.perf_counter()


def elapsed(started: float) -> float:
    """Seconds since a moment of `now`."""
    return now() - started


def passed(deadline: float) -> bool:
    """Whether a moment of `now` has come."""
    return now() >= deadline


def last_deadline(started: float, deadline: float) -> float:
    """When the last certificate of a run must be there: a fifth of its limit late, and 0.5 s."""
    return max(deadline, now() + 0.2 * (deadline - started) + 0.5)


class TimeUpError(Exception):
    """The time of the run is up, or what comes next would not fit into it."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Set the deadline, in seconds of `now`; never later than one set outside."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check(seconds: float = 0.0) -> None:
    """Refuse to go on where what takes about so many seconds would end after the deadline."""
    deadline = _end()
    if deadline != ENDLESS and now() + seconds >= deadline:
        raise TimeUpError


def left() -> float:
    """The seconds that are left."""
    return _end() - now()


def _end() -> float:
    """The deadline of the run, or of the fit between its runs.

    A run has its own, which is no later but for its last certificate.
    """
    deadline = _deadline.get()
    return budget_end() if deadline == ENDLESS else deadline


# --- a whole fit -----------------------------------------------------------------------


@dataclass
class Budget:
    """The time of a fit, all its phases together."""

    deadline: float = ENDLESS
    interrupted: bool = False
    """Whether the keyboard ended it."""
    phase: str = ""
    """What it has come to."""


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(seconds: float | None) -> Iterator[Budget]:
    """Give a fit so many seconds; a fit inside another has no more than that one."""
    outer = _budget.get()
    deadline = ENDLESS if seconds is None else now() + seconds
    own = Budget(deadline if outer is None else min(deadline, outer.deadline))
    token = _budget.set(own)
    try:
        yield own
    finally:
        _budget.reset(token)
        if outer is not None:
            outer.phase = own.phase or outer.phase
            if own.interrupted:
                outer.deadline, outer.interrupted = own.deadline, True


def share(part: float) -> AbstractContextManager[Budget]:
    """Give a phase this part of the time that is left of the fit; all phases inside share it."""
    return budget(part * max(left(), 0.0))


def reserve(seconds: float) -> AbstractContextManager[Budget]:
    """Keep so many seconds of the time that is left for what follows the phase."""
    return budget(max(left() - seconds, 0.0))


def budget_end() -> float:
    """When the fit has to end, in seconds of `now`."""
    own = _budget.get()
    return ENDLESS if own is None else own.deadline


def grace() -> AbstractContextManager[None]:
    """Let a phase without which a fit has nothing to keep end half a second late."""
    return until(max(budget_end(), now()) + 0.5)


def interrupt() -> None:
    """End the fit with what it has: the keyboard asked, and every later phase keeps short."""
    own = _budget.get()
    if own is not None:
        own.deadline, own.interrupted = min(own.deadline, now()), True


def interrupted() -> bool:
    """Whether the keyboard has ended the fit."""
    own = _budget.get()
    return own is not None and own.interrupted


# --- who watches -----------------------------------------------------------------------


class Watcher:
    """Someone who is told what a fit is doing; each method may be left as it is."""

    def phase(self, name: str) -> None:
        """A phase begins."""

    def step(self, state: Any) -> None:
        """A solver has taken a step: a `gramian.State`."""

    def frame(self, places: Callable[[], Any]) -> None:
        """The samples have moved; where to is found if it is asked for."""


class Watchers(Watcher):
    """Several of them, or None for one that is not there."""

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
    """Who watches, None where nobody does."""
    return _watcher.get()


@contextmanager
def watched_by(watcher: Watcher | None) -> Iterator[None]:
    """Tell this one what the fits inside the block do."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def phase(name: str) -> None:
    """Tell that a phase begins, "the neighbours of 1,000 samples" say."""
    own, watcher = _budget.get(), _watcher.get()
    if own is not None:
        own.phase = name
    if watcher is not None:
        watcher.phase(name)


def on_step() -> Callable[[Any], None] | None:
    """What to tell the steps of a solver, None where nobody watches."""
    watcher = _watcher.get()
    return None if watcher is None else watcher.step


_placing: ContextVar[Callable[[Any], Any] | None] = ContextVar("placing", default=None)


@contextmanager
def placing(place: Callable[[Any], Any] | None) -> Iterator[None]:
    """Say how the factors of the solves inside the block are places of samples; None: they are not.

    Only those are shown as frames: a solve in other coordinates has factors of no meaning to the
    eye.
    """
    token = _placing.set(place)
    try:
        yield
    finally:
        _placing.reset(token)


def on_frame() -> Callable[[Callable[[], Any]], None] | None:
    """What to show factors to, None where nobody watches or they are no places."""
    watcher, place = _watcher.get(), _placing.get()
    if watcher is None or place is None:
        return None
    return lambda factor: watcher.frame(lambda: place(factor()))
