"""The NumPy error state of the library, independent of the caller's.

Several algorithms rely on numbers that underflow to 0 or overflow to infinity and check the result
themselves. With the caller's ``all="raise"`` such an operation would raise an exception, which
solvers treat as divergence. Public functions and methods therefore set their own state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, ParamSpec, TypeVar

import numpy as np

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def own_errstate() -> np.errstate:
    """NumPy's default state: nothing raises, and underflow is ignored.

    Ignored errors stay ignored, so that a public function that is called within a block of the
    library that ignores overflow does not change the state.
    """
    ignored = {kind: "ignore" for kind, action in np.geterr().items() if action == "ignore"}
    state: dict[str, Any] = {"divide": "warn", "over": "warn", "invalid": "warn"}
    return np.errstate(**(state | ignored | {"under": "ignore"}))


def under_own_errstate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Decorator of public functions: run under the library's error state."""

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Answer:
        with own_errstate():
            return function(*given, **named)

    return call


class OwnErrstate:
    """A mixin: the public methods of its subclasses run under the library's error state."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, cls._public(name, method))

    @classmethod
    def _public(cls, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The wrapped method."""
        return under_own_errstate(method)
