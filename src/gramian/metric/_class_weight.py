"""Class weights as sample weights, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common.parameters import NOT_NEGATIVE, Rule
from gramian.constraints import plainly

Array = NDArray[np.floating]

BALANCED = "balanced"

CLASS_WEIGHT = Rule(
    f'"{BALANCED}", a mapping of classes to weights, or None',
    lambda value: value is None or isinstance(value, Mapping) or is_balanced(value),
)


def is_balanced(class_weight: Any) -> bool:
    """Whether all classes have equal total weight."""
    return isinstance(class_weight, str) and class_weight == BALANCED


def weights_of_classes(
    class_weight: Any, names: NDArray[Any], classes: NDArray[np.integer], counts: Array
) -> Array:
    """Weight of each sample due to its class.

    Parameters
    ----------
    class_weight : "balanced" or a mapping
        "balanced" gives all classes equal total weight, n/(k n_c) for each of the n_c samples of a
        class among n samples of k classes; a mapping gives weights by class name, default 1. Names
        that do not occur in y are allowed, because a subset of the samples may lack classes.
    names : the classes
    classes : the class of each sample
    counts : array of shape (n_samples,)
        Given weights of the samples.
    """
    CLASS_WEIGHT.check(class_weight, "class_weight")
    if is_balanced(class_weight):
        sizes = np.bincount(classes, weights=counts, minlength=len(names))
        there = np.maximum(sizes, np.finfo(float).tiny)
        return np.asarray(sizes.sum() / (np.count_nonzero(sizes) * there))[classes]
    known = {plainly(name) for name in names}
    others = [name for name in class_weight if name not in known]
    if others and known - set(class_weight):
        raise ValueError(f"class_weight has a weight for {others[0]!r}, which is no class of y")
    for name, weight in class_weight.items():
        NOT_NEGATIVE.check(weight, f"class_weight[{name!r}]")
    return np.array([float(class_weight.get(plainly(name), 1.0)) for name in names])[classes]
