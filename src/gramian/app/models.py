"""Loading saved models, without executing code from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from gramian import completion, kernel, manifold, metric, spectral  # noqa: F401
from gramian.common import storage
from gramian.common.storage import StoredFileError
from gramian.estimators.persistence import Kept


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
