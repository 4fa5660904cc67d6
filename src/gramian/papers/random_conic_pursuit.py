"""Random conic pursuit (Kleiner et al.) as BILGO §4 and §6.1 state it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import place_of
from gramian.methods.base import Run, Settings
from gramian.papers.greedy import greedy
from gramian.problem import Problem

Array = NDArray[np.floating]


def random_conic_pursuit(
    problem: Problem, factor: Array, settings: Settings, *, chi: float = 0.5
) -> Run:
    """M ← αM + βxxᵀ with x ~ N(0, (1 − χ)M + χI) and the best α, β ≥ 0."""
    if not 0 < chi <= 1:
        raise ValueError(f"chi must lie in (0, 1], got {chi}")

    def atom(image: Any, pair: Any) -> Array:
        L = image.factor
        place = place_of(L)
        inside = L @ place.normal(settings.rng, (L.shape[1],))
        outside = place.normal(settings.rng, (problem.order,))
        return float(np.sqrt(1 - chi)) * inside + float(np.sqrt(chi)) * outside

    return greedy(problem, factor, settings, atom=atom)
