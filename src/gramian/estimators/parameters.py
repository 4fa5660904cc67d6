"""Parameters of estimators, declared once; they are keyword-only."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(cls: type[Class]) -> type[Class]:
    """Make the annotated attributes of a class the keyword-only parameters of its constructor.

    The signature, which scikit-learn's `clone` and `get_params` read, has them before those of the
    base classes. Annotate what is not a parameter with `ClassVar`.
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
    return made


@with_parameters
class SolverParameters:
    """The parameters that a fit passes to `gramian.minimize`.

    Parameters
    ----------
    solver : str or callable
        A name of `gramian.solvers.available()`.
    tol : float
        The relative gap at which a fit stops.
    max_iter : int, optional
        Iterations at most.
    time_limit : float, optional
        Seconds of the whole fit at most.
    random_state : int, RandomState or None
    progress : bool
        Whether to show a progress bar.
    device : str, torch.device or None
        Where arrays live during the fit, "cuda" for a GPU.
    """

    solver: str = "auto"
    tol: Any = 1e-4
    max_iter: int | None = None
    time_limit: float | None = None
    random_state: Any = None
    progress: Any = False
    device: Any = None
