"""Rules for parameters. An estimator lists its rules in a table, `_rules`; an error states the
first rule that is violated and the value given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any


@dataclass(frozen=True)
class Rule:
    """A condition on a value, and its description."""

    words: str
    holds: Callable[[Any], bool]

    def check(self, value: Any, name: str) -> None:
        """Raise ValueError if the value violates the rule."""
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.words}, got {value!r}")


def _number(words: str, holds: Callable[[float], bool]) -> Rule:
    def valid(value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool) and holds(float(value))

    return Rule(words, valid)


FINITE = _number("a finite number", lambda value: -inf < value < inf)
ABOVE_ZERO = _number("a finite number above 0", lambda value: 0 < value < inf)
NOT_NEGATIVE = _number("a finite number of at least 0", lambda value: 0 <= value < inf)
SHARE = _number("between 0 and 1", lambda value: 0 <= value <= 1)
INSIDE = _number("between 0 and 1, both excluded", lambda value: 0 < value < 1)
BELOW_ONE = _number("at least 0 and below 1", lambda value: 0 <= value < 1)
TOLERANCE = _number("a number in [0, 1)", lambda value: 0 <= value < 1)
COUNT = Rule(
    "a whole number of at least 1",
    lambda value: isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1,
)

FLAG = Rule("True or False", lambda value: type(value).__name__ == "bool")  # or NumPy's


def one_of(*words: str) -> Rule:
    """One of a few words."""
    *first, last = (f'"{word}"' for word in words)
    listed = f"{', '.join(first)} or {last}"
    return Rule(listed, lambda value: isinstance(value, str) and value in words)


def or_auto(rule: Rule) -> Rule:
    """Also allow "auto"."""
    return Rule(
        f'{rule.words}, or "auto"',
        lambda value: value == "auto" if isinstance(value, str) else rule.holds(value),
    )


def or_none(rule: Rule) -> Rule:
    """Also allow None."""
    return Rule(f"{rule.words}, or None", lambda value: value is None or rule.holds(value))


def check_made(value: Any, has: str, name: str, kind: str) -> None:
    """Raise TypeError unless the value is an object with this method, not its class."""
    if isinstance(value, type):
        raise TypeError(
            f"{name} is the class {value.__name__}: pass an object of it, {value.__name__}(…)"
        )
    if not hasattr(value, has):
        raise TypeError(f"{name} must be {kind}, got {type(value).__name__}")


def check_rules(estimator: Any) -> None:
    """Raise ValueError if a parameter violates a rule of the estimator's class or its bases."""
    rules: dict[str, Rule] = {}
    for cls in reversed(type(estimator).__mro__):
        rules |= vars(cls).get("_rules", {})
    for name, value in estimator.get_params(deep=False).items():
        if name in rules:
            rules[name].check(value, name)


def positive(value: float, name: str, *, zero: bool = False) -> float:
    """A finite number above 0, or 0 if allowed."""
    (NOT_NEGATIVE if zero else ABOVE_ZERO).check(value, name)
    return float(value)


def whole_number(value: int, name: str) -> int:
    """A whole number of at least 1."""
    COUNT.check(value, name)
    return int(value)
