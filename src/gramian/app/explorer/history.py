"""The history of a session: all states are kept, and any earlier one can be restored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, TypeVar

from gramian.common import clock

State = TypeVar("State")


@dataclass(frozen=True)
class Step(Generic[State]):
    """A change in words, and the state after it."""

    text: str
    state: State


class History(Generic[State]):
    """The states of a session in the order in which they were made; one of them is current.

    A subclass calls `_begin` with its first state, `_commit` after each change, reads `_now`, and
    lists the actions that a page may request in `_actions`.
    """

    version = 0
    """Number of changes and restored states so far; a page with a smaller number is out of date."""
    seconds = 0.0
    """Duration of the last change."""

    def _begin(self, state: State) -> None:
        self.lock = RLock()
        self._steps, self._at = [Step("", state)], 0

    @property
    def _now(self) -> State:
        return self._steps[self._at].state

    def _commit(self, text: str, state: State, started: float) -> None:
        """Make a new state the current one; states that were undone are dropped."""
        self._steps = [*self._steps[: self._at + 1], Step(text, state)]
        self._at += 1
        self.version += 1
        self.seconds = clock.elapsed(started)

    def go_to(self, place: Any) -> None:
        """Restore the state after the given number of changes; nothing is computed again."""
        with self.lock:
            whole = isinstance(place, int) and not isinstance(place, bool)
            if not whole or not 0 <= place < len(self._steps):
                raise ValueError(f"the history has the states 0 to {len(self._steps) - 1}")
            self._at = place
            self.version += 1

    def change(self, action: str, given: dict[str, Any]) -> None:
        """Perform an action that a page has requested."""
        with self.lock:
            if action == "go":
                seen = given.get("version")  # an outdated page must not undo anything
                if isinstance(seen, bool) or seen != self.version:
                    raise ValueError(
                        "a change was made on another page: look at the current state before you "
                        "undo it"
                    )
                self.go_to(given.get("to"))
            elif action in self._actions():
                self._actions()[action](given)
            else:
                raise ValueError(f"unknown action {action!r}")

    def _actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        """The part of a page's state that all sessions have."""
        return {
            "version": self.version,
            "at": self._at,
            "history": [step.text for step in self._steps[1:]],
            "seconds": round(self.seconds, 3),
        }
