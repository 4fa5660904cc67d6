"""Parameters of estimators, declared once; they are keyword-only."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Any, ClassVar, TypeVar, dataclass_transform

from gramian.common.parameters import FLAG
from gramian.common.warnings import warn

Class = TypeVar("Class")


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(cls: type[Class]) -> type[Class]:
    """Make the annotated attributes of a class the keyword-only parameters of its constructor.

    The signature, which scikit-learn's `clone` and `get_params` read, has them before those of the
    base classes. Annotate what is not a parameter with `ClassVar`. Parameters and attributes that
    the docstring of the class does not describe are described as in its base classes.

    `_renamed`, a dictionary, lists deprecated names of parameters and fitted attributes with their
    present names. Deprecated names are accepted with a FutureWarning, and without one in models
    that earlier versions saved.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    signature = inspect.signature(made.__init__)
    introduced = {
        name: depth
        for depth, base in enumerate(made.__mro__)
        for name in vars(base).get("__annotations__", {})
        if is_dataclass(base)
    }
    ordered = sorted(signature.parameters.values(), key=lambda one: introduced.get(one.name, -1))
    made.__init__.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    if made.__doc__ is not None and len(ordered) > 1:
        made.__doc__ = _completed(made, [one.name for one in ordered[1:]])
    if hasattr(made, "_renamed"):
        _accept_former_names(made)
    return made


def present_names(cls: type, given: dict[str, Any], *, warn: bool = False) -> dict[str, Any]:
    """The given values by present names; ValueError if one is given by both of its names."""
    renamed: dict[str, str] = getattr(cls, "_renamed", {})
    for old in [name for name in given if name in renamed]:
        if renamed[old] in given:
            raise ValueError(
                f"{old} is the deprecated name of {renamed[old]} of {cls.__name__}: "
                f"pass {renamed[old]} only"
            )
        if warn:
            _warn_of(cls, old, renamed[old])
    return {renamed.get(name, name): value for name, value in given.items()}


def _warn_of(cls: type, old: str, new: str) -> None:
    warn(f"{old} of {cls.__name__} is deprecated and will be removed: use {new}", FutureWarning)


def _accept_former_names(cls: Any) -> None:
    """Add the deprecated names of `_renamed` to the constructor, `set_params` and attributes."""

    def renaming(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, /, **given: Any) -> Any:
            return method(self, **present_names(type(self), given, warn=True))

        return call

    restore = cls.__setstate__

    def restore_renamed(self: Any, state: dict[str, Any]) -> None:
        restore(self, present_names(type(self), state))

    cls.__init__, cls.set_params = renaming(cls.__init__), renaming(cls.set_params)
    cls.__setstate__ = restore_renamed
    for old, new in cls._renamed.items():
        setattr(cls, old, _former_attribute(old, new))


def _former_attribute(old: str, new: str) -> property:
    def get(self: Any) -> Any:
        value = getattr(self, new)
        _warn_of(type(self), old, new)
        return value

    def set(self: Any, value: Any) -> None:
        _warn_of(type(self), old, new)
        setattr(self, new, value)

    return property(get, set, doc=f"Deprecated name of `{new}`.")


def _completed(cls: type, names: list[str]) -> str:
    """The docstring of a class, with the missing entries of its parameters and attributes."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    for section in ("Parameters", "Attributes"):
        own, known = _entries(doc, section), dict[str, str]()
        for base in reversed(cls.__mro__[1:]):
            known |= _entries(inspect.cleandoc(base.__doc__ or ""), section)
        if section == "Parameters":
            known = {name: known[name] for name in names if name in known}
        missing = [text for name, text in known.items() if name not in own]
        if own and missing:
            listed = "\n".join(dict.fromkeys([*own.values(), *missing]))
            head, _, rest = doc.partition(_heading(section))
            doc = head + _heading(section) + listed + rest[len(_body(rest)) :]
    return doc


def _entries(doc: str, section: str) -> dict[str, str]:
    """The text of each parameter or attribute in a section of a numpydoc docstring, by its name."""
    entries = re.split(r"\n(?=\S)", _body(doc.partition(_heading(section))[2]))
    names = [entry.split(" :")[0].split(", ") for entry in entries]
    return {
        name: entry for each, entry in zip(names, entries, strict=True) for name in each if name
    }


def _heading(section: str) -> str:
    return f"\n{section}\n{'-' * len(section)}\n"


def _body(text: str) -> str:
    """The text up to the next empty line, at which a section ends."""
    return text.partition("\n\n")[0]


@with_parameters
class SolverParameters:
    """The parameters that a fit passes to `gramian.minimize`.

    Parameters
    ----------
    solver : str or callable
        A name of `gramian.solvers.available()`, as in `gramian.minimize`.
    tol : float
        The relative gap at which a fit stops.
    max_iter : int, optional
        Maximum number of iterations.
    time_limit : float, optional
        Maximum time of the whole fit, in seconds.
    random_state : int, RandomState or None
    progress : bool
        Whether to show a progress bar.
    device : str, torch.device or None
        Device of the arrays during the fit, "cuda" for a GPU.
    """

    solver: str = "auto"
    tol: Any = 1e-4
    max_iter: int | None = None
    time_limit: float | None = None
    random_state: Any = None
    progress: Any = False
    device: Any = None

    _rules: ClassVar = {"progress": FLAG}
