"""Parameters of estimators, declared once; they are keyword-only."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(cls: type[Class]) -> type[Class]:
    """Make the annotated attributes of a class the keyword-only parameters of its constructor.

    The signature, which scikit-learn's `clone` and `get_params` read, has them before those of the
    base classes. Annotate what is not a parameter with `ClassVar`. Parameters and attributes that
    the docstring of the class does not describe are described as in its base classes.
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
    return made


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
