"""The update rule of Journée et al. as BILGO §4 states it: M ← M + πvvᵀ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.linalg import Method
from gramian.methods.base import Run, Settings
from gramian.papers.greedy import greedy
from gramian.problem import Problem

Array = NDArray[np.floating]


def journee(
    problem: Problem, factor: Array, settings: Settings, *, eigen: Method = "krylov"
) -> Run:
    """Add the leading eigenvector of −∇F with the best π ≥ 0, without shrinking M.

    F stops decreasing at λ_max(−∇F) ≤ 0 although ⟨∇F, M⟩ may be far from 0: a reference for
    BILGO's Fig. 2, not recommended for use.
    """
    return greedy(
        problem,
        factor,
        settings,
        atom=lambda image, pair: pair.vector,
        fix_alpha=True,
        eigen=eigen,
    )
