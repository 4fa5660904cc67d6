"""Storage of scikit-learn's preprocessing steps and classifiers.

Importing this module lets `storage` store pipelines of gramian's estimators and of the classes that
are registered at its end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from gramian.app import encoders  # noqa: F401
from gramian.common import storage
from gramian.common.storage import COPIES_ALLOWED, StoredFileError

SEEN = ("n_samples_seen_", "n_features_in_", "feature_names_in_")

FITTED: dict[type, tuple[str, ...]] = {
    StandardScaler: ("mean_", "var_", "scale_", *SEEN),
    MinMaxScaler: ("min_", "scale_", "data_min_", "data_max_", "data_range_", *SEEN),
    RobustScaler: ("center_", "scale_", *SEEN),
    PCA: (
        "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_",
        "mean_", "n_components_", "n_samples_", "noise_variance_", *SEEN,
    ),
    TruncatedSVD: (
        "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_",
        *SEEN,
    ),
    MaxAbsScaler: ("max_abs_", "scale_", *SEEN),
    Normalizer: SEEN,
    Binarizer: SEEN,
    VarianceThreshold: ("variances_", *SEEN),
    QuantileTransformer: ("quantiles_", "references_", "n_quantiles_", *SEEN),
    PowerTransformer: ("lambdas_", "_scaler", *SEEN),
    KBinsDiscretizer: ("bin_edges_", "n_bins_", "_encoder", *SEEN),
    TfidfTransformer: ("idf_", *SEEN),
    HashingVectorizer: SEEN,
}  # fmt: skip
"""The stored attributes of fitted steps; private ones are other steps."""

NUMBERS = {"float64": np.float64, "float32": np.float32, "int64": np.int64}
"""The allowed output types of encoders and vectorizers."""

HIGHEST_DEGREE = 32
"""Largest degree of polynomials in a file."""

COLUMN_BYTES = 256
"""Upper bound on the memory per column when a ColumnTransformer is fitted."""

WIDEST = COPIES_ALLOWED // COLUMN_BYTES // 2
"""Largest number of columns of a ColumnTransformer without names."""


def _options(step: Any, *without: str) -> dict[str, Any]:
    """The parameters of a step; an output type is stored by its name."""
    options = {
        name: value for name, value in step.get_params(deep=False).items() if name not in without
    }
    if options.get("dtype") is not None:
        options["dtype"] = np.dtype(options["dtype"]).name
    return options


def _with_type(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("dtype") is None:
        return options
    return {**options, "dtype": NUMBERS[options["dtype"]]}


def _plain_parts(step: Any) -> dict[str, Any]:
    fitted = {name: getattr(step, name) for name in FITTED[type(step)] if hasattr(step, name)}
    return {"options": _options(step), "fitted": fitted}


def _plain(cls: type, options: dict[str, Any], fitted: dict[str, Any]) -> Any:
    step = cls(**_with_type(options))
    for name in FITTED[cls]:
        if name in fitted:
            setattr(step, name, fitted[name])
    return step


def _pipeline(steps: list[Any]) -> Pipeline:
    return Pipeline([(str(name), step) for name, step in steps])


def _check_vector(what: str, value: Any) -> None:
    """Raise an error unless the value is a 1-D array: others may become arrays of any size."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise StoredFileError(f"{what} are not an array of one dimension")


def _neighbours_parts(model: KNeighborsClassifier) -> dict[str, Any]:
    options = model.get_params()
    return {"options": options, "X": model._fit_X, "y": np.asarray(model.classes_)[model._y]}


def _neighbours(options: dict[str, Any], X: Any, y: Any) -> KNeighborsClassifier:
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        raise StoredFileError("the samples of a KNeighborsClassifier are not an array")
    _check_vector("the labels of a KNeighborsClassifier", y)
    return KNeighborsClassifier(**options).fit(X, y)


def _imputer_parts(imputer: SimpleImputer) -> dict[str, Any]:
    names = getattr(imputer, "feature_names_in_", None)
    return {"options": imputer.get_params(), "statistics": imputer.statistics_, "names": names}


def _imputer(options: dict[str, Any], statistics: Any, names: Any) -> SimpleImputer:
    """Restored by fitting to one row, the statistics themselves.

    Uses the strategy "mean", because some strategies take a millisecond per column.
    """
    _check_vector("the statistics of a SimpleImputer", statistics)
    imputer = SimpleImputer(**{**options, "strategy": "mean"})
    imputer.fit(np.asarray(statistics, dtype=float)[None])
    imputer.strategy = options.get("strategy", "mean")
    if names is not None:
        imputer.feature_names_in_ = names
    return imputer


def _encoder_parts(encoder: Any) -> dict[str, Any]:
    options = _options(encoder, "categories")  # the fitted categories are stored instead
    if options.get("min_frequency") is not None or options.get("max_categories") is not None:
        raise StoredFileError(
            "an encoder that groups infrequent categories cannot be stored: disable that"
        )
    names = getattr(encoder, "feature_names_in_", None)
    return {"options": options, "categories": list(encoder.categories_), "names": names}


def _encoder(cls: Any, options: dict[str, Any], categories: list[Any], names: Any) -> Any:
    """Restored by fitting to one row, the first of each category."""
    row = np.empty((1, len(categories)), dtype=object)
    for column, own in enumerate(categories):
        _check_vector("the categories of an encoder", own)
        row[0, column] = own[0]
    encoder = cls(categories=categories, **_with_type(options)).fit(row)
    encoder.categories_ = categories  # with their original dtypes
    if names is not None:
        encoder.feature_names_in_ = names
    return encoder


def _columns_parts(columns: ColumnTransformer) -> dict[str, Any]:
    options = columns.get_params(deep=False)
    kept = ("remainder", "sparse_threshold", "verbose_feature_names_out")
    if not isinstance(options["remainder"], str) or options["transformer_weights"] is not None:
        raise StoredFileError("a ColumnTransformer needs remainder 'drop' or 'passthrough'")
    steps = [
        [name, step, _column_names(chosen)]
        for name, step, chosen in columns.transformers_
        if name != "remainder"
    ]
    names = getattr(columns, "feature_names_in_", None)
    if names is None and columns.n_features_in_ > WIDEST:
        raise StoredFileError(
            f"a ColumnTransformer of more than {WIDEST:,} columns cannot be stored without their "
            "names: fit it to a data frame"
        )
    return {
        "options": {name: options[name] for name in kept},
        "steps": steps,
        "width": columns.n_features_in_,
        "names": names,
        "sparse": bool(getattr(columns, "sparse_output_", False)),
        "outputs": {
            name: [place.start, place.stop]
            for name, place in getattr(columns, "output_indices_", {}).items()
        },
    }


def _column_names(chosen: Any) -> list[Any]:
    if isinstance(chosen, (slice, str)) or callable(chosen):
        raise StoredFileError("the columns of a ColumnTransformer must be given as lists")
    return [part.item() if isinstance(part, np.generic) else part for part in chosen]


def _columns_cost(state: dict[str, Any]) -> int:
    """scikit-learn processes every column once for each step."""
    each = COLUMN_BYTES + 8 * len(state["steps"])
    return each * max(int(state["width"]), 0) + storage.array_bytes(state)


def _columns(
    options: dict[str, Any],
    steps: list[Any],
    width: int,
    names: Any,
    sparse: bool,
    outputs: dict[str, list[int]],
) -> ColumnTransformer:
    """Restored by fitting to a row of zeros with passthrough steps; the steps are set afterwards.

    The steps themselves are not run: their arrays come from the file and can have any shape.
    """
    places = {} if names is None else _places(names)
    idle = [
        (
            str(name),
            "drop" if isinstance(step, str) and step == "drop" else "passthrough",
            [places[column] if isinstance(column, str) else column for column in chosen],
        )
        for name, step, chosen in steps
    ]
    made = ColumnTransformer(idle, **options).fit(np.zeros((1, int(width))))
    rest = made.transformers_[len(steps) :]
    if names is not None:
        made.feature_names_in_ = names
        rest = [(name, step, names[columns].tolist()) for name, step, columns in rest]
    made.transformers = [(str(name), step, chosen) for name, step, chosen in steps]
    made.transformers_ = [*made.transformers, *rest]
    made.sparse_output_ = bool(sparse)
    made.output_indices_ = {str(name): slice(*place) for name, place in outputs.items()}
    return made


def _places(names: Any) -> dict[str, int]:
    _check_vector("the names of columns", names)
    if not all(isinstance(name, str) for name in names):
        raise StoredFileError("the names of columns are not strings")
    return {name: place for place, name in enumerate(names)}


def _words_parts(vectorizer: Any) -> dict[str, Any]:
    words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    return {
        "options": _options(vectorizer, "vocabulary"),
        "words": words,
        "fixed": bool(vectorizer.fixed_vocabulary_),
        "weights": getattr(vectorizer, "_tfidf", None),
    }


def _words(cls: Any, options: dict[str, Any], words: list[str], fixed: bool, weights: Any) -> Any:
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
        raise StoredFileError("the words of a vectorizer are not a list of strings")
    vectorizer = cls(**_with_type(options))
    vectorizer.vocabulary_ = {word: place for place, word in enumerate(words)}
    vectorizer.fixed_vocabulary_ = bool(fixed)
    if fixed:
        vectorizer.vocabulary = dict(vectorizer.vocabulary_)
    if weights is not None:
        vectorizer._tfidf = weights
    return vectorizer


def _powers_parts(powers: PolynomialFeatures) -> dict[str, Any]:
    names = getattr(powers, "feature_names_in_", None)
    return {"options": _options(powers), "width": powers.n_features_in_, "names": names}


def _powers(options: dict[str, Any], width: int, names: Any) -> PolynomialFeatures:
    """Restored by fitting to a row of zeros, which counts the products."""
    if np.max(options.get("degree", 2)) > HIGHEST_DEGREE:
        raise StoredFileError(f"polynomials in a file have a degree of at most {HIGHEST_DEGREE}")
    made = PolynomialFeatures(**options).fit(np.zeros((1, int(width))))
    if names is not None:
        made.feature_names_in_ = names
    return made


def _union_parts(union: FeatureUnion) -> dict[str, Any]:
    return {"steps": [list(step) for step in union.transformer_list],
            "weights": union.transformer_weights}  # fmt: skip


def _union(steps: list[Any], weights: Any) -> FeatureUnion:
    return FeatureUnion([(str(name), step) for name, step in steps], transformer_weights=weights)


storage.storable_as(Pipeline, lambda p: {"steps": [list(step) for step in p.steps]}, _pipeline)
storage.storable_as(FeatureUnion, _union_parts, _union)
storage.storable_as(SimpleImputer, _imputer_parts, _imputer)
storage.storable_as(KNeighborsClassifier, _neighbours_parts, _neighbours)
storage.storable_as(ColumnTransformer, _columns_parts, _columns, _columns_cost)
for _encodes in (OneHotEncoder, OrdinalEncoder):
    storage.storable_as(_encodes, _encoder_parts, partial(_encoder, _encodes))
storage.storable_as(
    PolynomialFeatures, _powers_parts, _powers, lambda state: 64 * max(int(state["width"]), 0)
)
for _counts in (CountVectorizer, TfidfVectorizer):
    storage.storable_as(_counts, _words_parts, partial(_words, _counts))
for _scales in FITTED:
    storage.storable_as(_scales, _plain_parts, partial(_plain, _scales))
