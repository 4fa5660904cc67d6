"""scikit-learn's own steps in files: what goes before and after a learned metric.

Importing this module lets `storage` keep `SimpleImputer`, `StandardScaler`, `MinMaxScaler`,
`RobustScaler`, `PCA`, `OneHotEncoder`, `OrdinalEncoder`, `ColumnTransformer` and
`KNeighborsClassifier`, and pipelines of them with gramian's estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
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

from gramian import storage
from gramian.encoders import DateEncoder
from gramian.storage import StoredFileError

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
