"""Values, ids and weights of ratings that are none, refused with the first of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian._samples import is_missing, real_numbers

Array = NDArray[np.floating]


def refuse_values(values: NDArray[Any]) -> Array:
    """Finite numbers, or an error that names the first that is not."""
    if values.dtype.kind == "c":
        raise ValueError(f"ratings must be numbers, got {values.dtype}")
    try:
        numbers = values.astype(float, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"ratings must be numbers, got {values.dtype}") from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(f"rating {first} is {numbers[first]}: leave out what is not known")
    return numbers


def checked_weights(given: Any, count: int) -> Array:
    """So many weights, finite and none below 0."""
    weights = real_numbers(given, "sample_weight")
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must have shape ({count},), got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and not below 0")
    if not np.any(weights > 0):
        raise ValueError("every sample_weight is zero: nothing is left to fit")
    return weights


def refuse_missing(ids: NDArray[Any], name: str) -> None:
    """NaN and None name nothing."""
    if ids.dtype == object:
        missing = np.array([is_missing(g) for g in ids.tolist()], dtype=bool)
    else:
        missing = np.isnan(ids) if ids.dtype.kind == "f" else np.zeros(ids.shape, dtype=bool)
    if missing.any():
        raise ValueError(f"rating {int(missing.argmax())} has no {name} id")
