"""Saving of gramian's estimators and of pipelines with them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from gramian.arrays.errstate import OwnErrstate, own_errstate, under_own_errstate
from gramian.arrays.places import host
from gramian.arrays.threads import blas_threads_for_fit
from gramian.common import application, clock, storage
from gramian.common.parameters import ABOVE_ZERO, TOLERANCE, Rule, check_rules, or_none
from gramian.common.storage import StoredFileError
from gramian.estimators.parameters import present_names

FITS = ("fit", "fit_pairs", "fit_triplets", "partial_fit", "add_links", "update")
"""Methods limited by `time_limit`, including all their phases."""

HOST_MEMORY = (1, 3)
"""DLPack codes of host memory, plain and pinned."""

USES = ("transform", "predict")
"""Other methods that accept samples."""


def _in_time(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method limited by the estimator's `time_limit`, also for tensors."""

    @wraps(method)
    def timed(self: Any, *given: Any, **named: Any) -> Any:
        there = _device_of((*given, *named.values()))
        given, named = _at_hand(given), {name: _at_hand(part) for name, part in named.items()}
        limit = getattr(self, "time_limit", None)
        known = isinstance(limit, Real) and float(limit) > 0  # the solve rejects other values
        seconds = float(limit) if known else None  # type: ignore[arg-type]
        threads = blas_threads_for_fit(*given, *named.values())
        with own_errstate(), clock.budget(seconds) as budget, threads:
            try:
                if there is None or getattr(self, "device", there) is not None:
                    return method(self, *given, **named)
                return _computed_on(there, method, self, *given, **named)
            except clock.TimeUpError:
                if budget.interrupted:
                    raise KeyboardInterrupt from None
                if seconds is None:  # the limit of an outer fit, which reports it
                    raise
                raise TimeoutError(
                    f"the time limit of {limit:g} s ended before {type(self).__name__} had "
                    f"a result, at {budget.phase or 'its start'}: increase time_limit"
                ) from None

    return timed


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with support for tensors."""

    @wraps(method)
    def taking(self: Any, *given: Any, **named: Any) -> Any:
        given, named = _at_hand(given), {name: _at_hand(part) for name, part in named.items()}
        with own_errstate():
            return method(self, *given, **named)

    return taking


def _at_hand(given: Any) -> Any:
    """The argument, with tensors and similar arrays copied to the host."""
    if isinstance(given, tuple):
        return tuple(_at_hand(part) for part in given)
    if type(given).__module__.split(".")[0] == "torch":
        return host(given)
    dlpack_device = getattr(given, "__dlpack_device__", None)
    if dlpack_device is None or dlpack_device()[0] in HOST_MEMORY:  # NumPy can read these
        return given
    return host(import_module("gramian.arrays.torch").lent(given))


def _device_of(given: Any) -> Any:
    """The GPU of one of the given tensors, or None."""
    if isinstance(given, tuple):
        found = (_device_of(part) for part in given)
        return next((device for device in found if device is not None), None)
    return given.device if getattr(given, "is_cuda", False) is True else None


def _computed_on(
    device: Any, method: Callable[..., Any], estimator: Any, *given: Any, **named: Any
) -> Any:
    """Run the method on the device of the data, if the estimator does not set a device.

    A copy of the estimator with that device runs it; the estimator then takes its attributes.
    """
    there = copy(estimator)
    there.device = device
    found = method(there, *given, **named)
    estimator.__dict__ = {**vars(there), "device": None}
    return estimator if found is there else found


class Kept(OwnErrstate):
    """A mixin for estimators: `save`, `load`, `report`, and fits limited in time."""

    _rules: ClassVar[dict[str, Rule]] = {"tol": TOLERANCE, "time_limit": or_none(ABOVE_ZERO)}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        storage.storable(cls)

    @classmethod
    def _public(cls, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name in FITS:
            return _in_time(method)
        return _taking_tensors(method) if name in USES else under_own_errstate(method)

    def save(self, path: str | Path) -> None:
        """Save the fitted estimator as arrays and JSON; `gramian.load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file, replaced only when the new one is complete. It contains no executable code.
        """
        application.save(self, path)

    def report(self, path: str | Path, X: Any = None, y: Any = None) -> Path:
        """Write a self-contained HTML page of the fitted estimator.

        Parameters
        ----------
        path : str or Path
        X, y : samples and labels, optional
            A metric shows its effect on them; an embedding is coloured by y, and shows X under
            the pointer if it contains images, of shape (n_samples, height, width).
        """
        return application.report(self, path, X, y)

    def _check_parameters(self) -> None:
        """Raise ValueError for invalid parameters."""
        check_rules(self)

    def _to_store(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> Any:
        made: Any = cls.__new__(cls)
        made.__init__()
        parameters = made.get_params(deep=False)
        for name, part in present_names(cls, state).items():
            if name not in parameters and (not name.isidentifier() or hasattr(cls, name)):
                raise StoredFileError(f"{name!r} is not an attribute of a fitted {cls.__name__}")
            setattr(made, name, part)
        return made
