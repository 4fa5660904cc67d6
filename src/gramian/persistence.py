"""Estimators that can be saved to a file, and read back without running anything from it.

Those of gramian, and pipelines of them with scikit-learn's `SimpleImputer`, `StandardScaler` and
`KNeighborsClassifier`, which go before and after a learned metric.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from gramian import clock, storage
from gramian.storage import StoredFileError

FAMILIES = ("completion", "kernel", "manifold", "metric", "spectral")


FITS = ("fit", "fit_pairs", "fit_triplets", "add_links", "update")
"""Methods that `time_limit` is the limit of, all their phases together."""


def _in_time(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with the estimator's `time_limit` for everything it does."""

    @wraps(method)
    def timed(self: Any, *given: Any, **named: Any) -> Any:
        limit = getattr(self, "time_limit", None)
        known = isinstance(limit, Real) and float(limit) > 0  # what is no limit is refused by the solve
        with clock.budget(float(limit) if known else None) as budget:  # type: ignore[arg-type]
            try:
                return method(self, *given, **named)
            except clock.TimeUpError:
                raise TimeoutError(
                    f"the time limit of {limit:g} s ended before {type(self).__name__} had "
                    f"anything to keep, at {budget.phase or 'its start'}: raise time_limit"
                ) from None

    return timed


class Kept:
    """A mixin for estimators: `save`, what `load` needs, `report`, and fits that end in time."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        storage.storable(cls)
        for name in FITS:
            if name in vars(cls):
                setattr(cls, name, _in_time(vars(cls)[name]))

    def save(self, path: str | Path) -> None:
        """Save the fitted estimator as arrays and JSON; `gramian.load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file, replaced only when the new one is whole. Nothing in it is executable.
        """
        save(self, path)

    def report(self, path: str | Path, X: Any = None, y: Any = None) -> Path:
        """Write an HTML page of the fitted estimator (needs plotly: gramian[report]).

        Parameters
        ----------
        path : str or Path
        X, y : samples and labels, optional
            A metric shows what it makes of them; an embedding is coloured by y.
        """
        check_is_fitted(self)
        written: Path = import_module("gramian.report").report_estimator(self, path, X, y)
        return written

    def _to_store(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> Any:
        made: Any = cls.__new__(cls)
        made.__init__()
        parameters = made.get_params(deep=False)
        for name, part in state.items():
            if name not in parameters and (not name.isidentifier() or hasattr(cls, name)):
                raise StoredFileError(f"{name!r} is not an attribute of a fitted {cls.__name__}")
            setattr(made, name, part)
        return made


def save(estimator: Any, path: str | Path) -> None:
    """Save a fitted estimator of gramian, or a pipeline with one; `load` reads it back.

    Parameters
    ----------
    estimator : a fitted estimator
        Beside gramian's own a Pipeline of them, SimpleImputer, StandardScaler and
        KNeighborsClassifier.
    path : str or Path
    """
    check_is_fitted(estimator)
    content = {"gramian": version("gramian"), "estimator": estimator}
    storage.write(Path(path), "model", content)


def load(path: str | Path) -> Any:
    """Read an estimator that was saved with `save`.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    StoredFileError
        For a file that is not a whole model of gramian. Nothing in it is run, ever.
    """
    for family in FAMILIES:  # their classes are known to the reader once they are imported
        import_module(f"gramian.{family}")
    content = storage.read(Path(path), "model")
    estimator = content.get("estimator") if isinstance(content, dict) else None
    if not isinstance(estimator, (Kept, Pipeline)):
        raise StoredFileError(f"{path} holds no estimator")
    return estimator


# --- what stands before and after our estimators ---------------------------------------

SCALER = ("mean_", "var_", "scale_", "n_samples_seen_", "n_features_in_", "feature_names_in_")


def _pipeline(steps: list[Any]) -> Pipeline:
    return Pipeline([(str(name), step) for name, step in steps])


def _scaler_parts(scaler: StandardScaler) -> dict[str, Any]:
    fitted = {name: getattr(scaler, name) for name in SCALER if hasattr(scaler, name)}
    return {"options": scaler.get_params(), "fitted": fitted}


def _scaler(options: dict[str, Any], fitted: dict[str, Any]) -> StandardScaler:
    scaler = StandardScaler(**options)
    for name in SCALER:
        if name in fitted:
            setattr(scaler, name, fitted[name])
    return scaler


def _neighbours_parts(model: KNeighborsClassifier) -> dict[str, Any]:
    options = model.get_params()
    return {"options": options, "X": model._fit_X, "y": np.asarray(model.classes_)[model._y]}


def _neighbours(options: dict[str, Any], X: Any, y: Any) -> KNeighborsClassifier:
    return KNeighborsClassifier(**options).fit(X, y)


def _imputer_parts(imputer: SimpleImputer) -> dict[str, Any]:
    names = getattr(imputer, "feature_names_in_", None)
    return {"options": imputer.get_params(), "statistics": imputer.statistics_, "names": names}


def _imputer(options: dict[str, Any], statistics: Any, names: Any) -> SimpleImputer:
    """Fitted to one row, the statistics themselves, it has them again."""
    imputer = SimpleImputer(**options).fit(np.asarray(statistics, dtype=float)[None])
    if names is not None:
        imputer.feature_names_in_ = names
    return imputer


storage.storable_as(Pipeline, lambda p: {"steps": [list(step) for step in p.steps]}, _pipeline)
storage.storable_as(SimpleImputer, _imputer_parts, _imputer)
storage.storable_as(StandardScaler, _scaler_parts, _scaler)
storage.storable_as(KNeighborsClassifier, _neighbours_parts, _neighbours)
