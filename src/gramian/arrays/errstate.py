"""The error state of NumPy that the library computes under, whatever the caller has set.

`np.errstate` and `np.seterr` belong to the code that calls the library. Several algorithms rely on
a number that underflows to 0 or overflows to infinity, and look at the outcome themselves. With the
caller's ``all="raise"`` such an operation would end in an exception, which solvers take for
divergence. Public functions and methods therefore set a state of their own.
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

    What the caller ignores stays ignored, so that the state within a block of the library that
    ignores overflow is not changed by a call of another public function.
    """
    ignored = {kind: "ignore" for kind, action in np.geterr().items() if action == "ignore"}
    state: dict[str, Any] = {"divide": "warn", "over": "warn", "invalid": "warn"}
    return np.errstate(**(state | ignored | {"under": "ignore"}))


def under_own_errstate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Decorate a public function: it computes under the library's error state."""

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Answer:
        with own_errstate():
            return function(*given, **named)

    return call


class OwnErrstate:
    """A mixin: the public methods of its subclasses compute under the library's error state."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, cls._public(name, method))

    @classmethod
    def _public(cls, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method as it is called from outside."""
        return under_own_errstate(method)
