"""One rule for every random_state."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """From a seed, a Generator, or the RandomState that scikit-learn passes on; None is seed 0."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(0 if random_state is None else random_state)


def for_sklearn(random_state: Any) -> Any:
    """The same rule for scikit-learn, which takes no Generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return 0 if random_state is None else random_state
