"""Estimators that can be saved to a file, and read back without running anything from it.

Those of gramian, and pipelines of them with scikit-learn's `SimpleImputer`, `StandardScaler`,
`MinMaxScaler`, `RobustScaler`, `PCA`, `OneHotEncoder`, `OrdinalEncoder`, `ColumnTransformer` and
`KNeighborsClassifier`, which go before and after a learned metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import isfunction
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from gramian import clock, storage
from gramian.backends.arrays import host
from gramian.backends.threads import few_blas_threads
from gramian.encoders import DateEncoder
from gramian.storage import StoredFileError

FAMILIES = ("completion", "kernel", "manifold", "metric", "spectral")


FITS = ("fit", "fit_pairs", "fit_triplets", "add_links", "update")
"""Methods that `time_limit` is the limit of, all their phases together."""

HOST_MEMORY = (1, 3)
"""What DLPack calls the memory of the processor, pinned or not."""

USES = ("transform", "predict")
"""Other methods that take samples."""


def _in_time(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with the estimator's `time_limit` for everything it does."""

    @wraps(method)
    def timed(self: Any, *given: Any, **named: Any) -> Any:
        there = _device_of((*given, *named.values()))
        given, named = _at_hand(given), {name: _at_hand(part) for name, part in named.items()}
        limit = getattr(self, "time_limit", None)
        known = isinstance(limit, Real) and float(limit) > 0  # the solve refuses others
        seconds = float(limit) if known else None  # type: ignore[arg-type]
        with clock.budget(seconds) as budget, few_blas_threads(), _computing_on(self, there):
            try:
                return method(self, *given, **named)
            except clock.TimeUpError:
                raise TimeoutError(
                    f"the time limit of {limit:g} s ended before {type(self).__name__} had "
                    f"anything to keep, at {budget.phase or 'its start'}: raise time_limit"
                ) from None

    return timed


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method for tensors too."""

    @wraps(method)
    def taking(self: Any, *given: Any, **named: Any) -> Any:
        return method(
            self, *_at_hand(given), **{name: _at_hand(part) for name, part in named.items()}
        )

    return taking


def _at_hand(given: Any) -> Any:
    """What is given, with arrays of the host for tensors and their like, wherever they are."""
    if isinstance(given, tuple):
        return tuple(_at_hand(part) for part in given)
    if type(given).__module__.split(".")[0] == "torch":
        return host(given)
    told = getattr(given, "__dlpack_device__", None)
    if told is None or told()[0] in HOST_MEMORY:  # NumPy reads those itself
        return given
    return host(import_module("gramian.backends.torch").lent(given))


def _device_of(given: Any) -> Any:
    """The GPU that one of the tensors given lives on, None where none does."""
    if isinstance(given, tuple):
        found = (_device_of(part) for part in given)
        return next((device for device in found if device is not None), None)
    return given.device if getattr(given, "is_cuda", False) is True else None


@contextmanager
def _computing_on(estimator: Any, device: Any) -> Iterator[None]:
    """With data on a GPU and no device named, a fit computes where the data are."""
    if device is None or getattr(estimator, "device", device) is not None:
        yield
        return
    estimator.device = device
    try:
        yield
    finally:
        estimator.device = None


class Kept:
    """A mixin for estimators: `save`, what `load` needs, `report`, and fits that end in time."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        storage.storable(cls)
        for name in FITS:
            if name in vars(cls):
                setattr(cls, name, _in_time(vars(cls)[name]))
        for name in USES:
            if isfunction(vars(cls).get(name)):
                setattr(cls, name, _taking_tensors(vars(cls)[name]))

    def save(self, path: str | Path) -> None:
        """Save the fitted estimator as arrays and JSON; `gramian.load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file, replaced only when the new one is whole. Nothing in it is executable.
        """
        save(self, path)

    def report(self, path: str | Path, X: Any = None, y: Any = None) -> Path:
        """Write an HTML page of the fitted estimator, which needs no network.

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
        Beside gramian's own a Pipeline of them with SimpleImputer, StandardScaler, MinMaxScaler,
        RobustScaler, PCA, OneHotEncoder, OrdinalEncoder, ColumnTransformer, KNeighborsClassifier.
    path : str or Path
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "at_home"):  # one of a cluster is read where there is none
        estimator = estimator.at_home()
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

SEEN = ("n_samples_seen_", "n_features_in_", "feature_names_in_")

FITTED: dict[type, tuple[str, ...]] = {
    StandardScaler: ("mean_", "var_", "scale_", *SEEN),
    MinMaxScaler: ("min_", "scale_", "data_min_", "data_max_", "data_range_", *SEEN),
    RobustScaler: ("center_", "scale_", *SEEN),
    PCA: (
        "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_",
        "mean_", "n_components_", "n_samples_", "noise_variance_", *SEEN,
    ),
}  # fmt: skip
"""What a fitted step has of plain attributes, all of them public."""

NUMBERS = {"float64": np.float64, "float32": np.float32}
"""The types that encoders may give."""

DAY = "1970-01-01"


def _plain_parts(step: Any) -> dict[str, Any]:
    fitted = {name: getattr(step, name) for name in FITTED[type(step)] if hasattr(step, name)}
    return {"options": step.get_params(deep=False), "fitted": fitted}


def _plain(cls: type) -> Callable[..., Any]:
    def made(options: dict[str, Any], fitted: dict[str, Any]) -> Any:
        step = cls(**options)
        for name in FITTED[cls]:
            if name in fitted:
                setattr(step, name, fitted[name])
        return step

    return made


def _pipeline(steps: list[Any]) -> Pipeline:
    return Pipeline([(str(name), step) for name, step in steps])


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


def _encoder_parts(encoder: Any) -> dict[str, Any]:
    options = encoder.get_params()
    if options.get("min_frequency") is not None or options.get("max_categories") is not None:
        raise StoredFileError(
            "an encoder that joins rare categories cannot be kept: leave that out"
        )
    del options["categories"]  # those of the fit are kept, whichever way they came
    options["dtype"] = np.dtype(options["dtype"]).name
    names = getattr(encoder, "feature_names_in_", None)
    return {"options": options, "categories": list(encoder.categories_), "names": names}


def _encoder(cls: type) -> Callable[..., Any]:
    def made(options: dict[str, Any], categories: list[Any], names: Any) -> Any:
        """Fitted to rows that have every category, it has them again."""
        options = {**options, "dtype": NUMBERS[options["dtype"]]}
        most = max(len(own) for own in categories)
        rows = np.empty((most, len(categories)), dtype=object)
        for column, own in enumerate(categories):
            rows[:, column] = [own[min(k, len(own) - 1)] for k in range(most)]
        encoder = cls(categories=categories, **options).fit(rows)
        if names is not None:
            encoder.feature_names_in_ = names
        return encoder

    return made


def _columns_parts(columns: ColumnTransformer) -> dict[str, Any]:
    options = columns.get_params(deep=False)
    kept = ("remainder", "sparse_threshold", "verbose_feature_names_out")
    if not isinstance(options["remainder"], str) or options["transformer_weights"] is not None:
        raise StoredFileError("a ColumnTransformer is kept with remainder 'drop' or 'passthrough'")
    steps = [
        [name, step, _column_names(chosen)]
        for name, step, chosen in columns.transformers_
        if name != "remainder"
    ]
    return {
        "options": {name: options[name] for name in kept},
        "steps": steps,
        "width": columns.n_features_in_,
        "names": getattr(columns, "feature_names_in_", None),
    }


def _column_names(chosen: Any) -> list[Any]:
    if isinstance(chosen, (slice, str)) or callable(chosen):
        raise StoredFileError("the columns of a ColumnTransformer are kept as lists: name them so")
    return [part.item() if isinstance(part, np.generic) else part for part in chosen]


def _columns(options: dict[str, Any], steps: list[Any], width: int, names: Any) -> Any:
    """Fitted to one row by steps that stay as they are."""
    row = np.zeros((1, int(width)), dtype=object)
    known = None if names is None else [str(name) for name in names]
    for _, step, chosen in steps:
        places = [known.index(c) if isinstance(c, str) and known else int(c) for c in chosen]
        row[0, places] = _a_row(step, len(places))
    given = row if known is None else import_module("pandas").DataFrame(row, columns=known)
    frozen = [
        (str(name), step if isinstance(step, str) else FrozenEstimator(step), chosen)
        for name, step, chosen in steps
    ]
    made = ColumnTransformer(frozen, **options)
    made.fit(given)
    made.transformers_ = [
        (name, step.estimator if isinstance(step, FrozenEstimator) else step, chosen)
        for name, step, chosen in made.transformers_
    ]
    made.transformers = [(name, step, chosen) for name, step, chosen in steps]
    return made


def _a_row(step: Any, width: int) -> list[Any]:
    """Cells that a fitted step takes."""
    first = step[0] if isinstance(step, Pipeline) else step
    if hasattr(first, "categories_"):
        return [own[0] for own in first.categories_]
    return [DAY if isinstance(first, DateEncoder) else 0.0] * width


storage.storable_as(Pipeline, lambda p: {"steps": [list(step) for step in p.steps]}, _pipeline)
storage.storable_as(SimpleImputer, _imputer_parts, _imputer)
storage.storable_as(KNeighborsClassifier, _neighbours_parts, _neighbours)
storage.storable_as(ColumnTransformer, _columns_parts, _columns)
for _encodes in (OneHotEncoder, OrdinalEncoder):
    storage.storable_as(_encodes, _encoder_parts, _encoder(_encodes))
for _scales in FITTED:
    storage.storable_as(_scales, _plain_parts, _plain(_scales))
