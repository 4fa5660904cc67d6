"""Gradient descent on the factor with the exact step, a baseline of BiS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.methods.base import Run, Settings
from gramian.papers.lro import line_searched
from gramian.problem import Problem

Array = NDArray[np.floating]


def gd(problem: Problem, factor: Array, settings: Settings, *, check: int = 20) -> Run:
    """L ← L − μ ∂F/∂L with μ the best step along the line (BiS §IV)."""
    return line_searched(problem, factor, settings, check=check, conjugate=False)
