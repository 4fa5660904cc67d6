"""Conversion of random_state."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a Generator, or a RandomState; None means seed 0."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be a whole number of at least 0, a numpy Generator or RandomState, "
            f"or None, got {random_state!r}"
        ) from None


def for_sklearn(random_state: Any) -> Any:
    """A random state for scikit-learn, which accepts no Generator and no seed beyond 32 bits."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < 2**32:
        return random_state
    return 0 if random_state is None else int(generator(random_state).integers(2**31 - 1))
