"""Losses: the convex, smooth functions g of F(M) = g(𝒜(M)) + ⟨C, M⟩."""

from gramian.losses.augmented import Augmented
from gramian.losses.base import Loss, Separable
from gramian.losses.collapse import Collapse
from gramian.losses.offsets import SquaredWithOffsets
from gramian.losses.separable import (
    Logistic,
    Repulsion,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from gramian.losses.signed import Signed
from gramian.losses.soft_min import FilledSoftMin, SoftMin
from gramian.losses.thresholds import WithThresholds

__all__ = [
    "Augmented",
    "Collapse",
    "FilledSoftMin",
    "Logistic",
    "Loss",
    "Repulsion",
    "Separable",
    "Signed",
    "SmoothedHinge",
    "SoftMin",
    "Squared",
    "SquaredHinge",
    "SquaredWithOffsets",
    "WithThresholds",
]
