"""Weights of classes as weights of samples, in the convention of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.constraints import plainly

Array = NDArray[np.floating]

BALANCED = "balanced"


def weights_of_classes(
    class_weight: Any, names: NDArray[Any], classes: NDArray[np.integer], counts: Array
) -> Array:
    """How often each sample counts for its class.

    Parameters
    ----------
    class_weight : "balanced" or a mapping
        "balanced" makes all classes count alike, n/(k n_c) for each of the n_c samples of a class
        among n of k classes; a mapping has weights by the names of classes, 1 where it has none.
    names : the classes
    classes : the class of each sample
    counts : array of shape (n_samples,)
        How often each sample counts already.
    """
    if isinstance(class_weight, str) and class_weight == BALANCED:
        sizes = np.bincount(classes, weights=counts, minlength=len(names))
        there = np.maximum(sizes, np.finfo(float).tiny)
        return np.asarray(sizes.sum() / (np.count_nonzero(sizes) * there))[classes]
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f'class_weight must be None, "{BALANCED}" or a mapping of classes to weights, got '
            f"{class_weight!r}"
        )
    known = {plainly(name) for name in names}
    for name, weight in class_weight.items():
        if name not in known:
            raise ValueError(f"class_weight has a weight for {name!r}, which is no class of y")
        if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise ValueError(
                f"class_weight[{name!r}] must be a finite number of at least 0, got {weight!r}"
            )
    return np.array([float(class_weight.get(plainly(name), 1.0)) for name in names])[classes]
