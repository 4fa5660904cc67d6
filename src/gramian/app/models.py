"""Save fitted estimators and pipelines to files, and load them without executing anything."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gramian import completion, kernel, manifold, metric, spectral  # noqa: F401
from gramian.app import pipelines  # noqa: F401  registers the steps of pipelines
from gramian.common import storage
from gramian.common.storage import StoredFileError
from gramian.estimators.persistence import Kept


def save(estimator: Any, path: str | Path) -> None:
    """Save a fitted estimator of gramian, or a pipeline with one; `gramian.load` reads it back.

    Parameters
    ----------
    estimator : a fitted estimator
        An estimator of gramian, or a Pipeline with these steps of scikit-learn: StandardScaler,
        MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer, Binarizer, KBinsDiscretizer,
        PowerTransformer, QuantileTransformer, PolynomialFeatures, SimpleImputer, OneHotEncoder,
        OrdinalEncoder, VarianceThreshold, PCA, TruncatedSVD, CountVectorizer, HashingVectorizer,
        TfidfVectorizer, TfidfTransformer, ColumnTransformer, FeatureUnion, KNeighborsClassifier.
    path : str or Path
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "at_home"):  # a model of a cluster is stored as a local one
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
        For a file that is not a complete gramian model. Nothing in a file is executed, and reading
        n bytes takes at most 64 MB + 64 n bytes of memory, and time in proportion to n.
    """
    content = storage.read(Path(path), "model")
    estimator = content.get("estimator") if isinstance(content, dict) else None
    if not isinstance(estimator, (Kept, Pipeline)):
        raise StoredFileError(f"{path} holds no estimator")
    return estimator
