"""Matrices completed from some of their entries."""

from gramian.completion.mmmf import MMMF
from gramian.completion.nuclear_completion import NuclearCompletion

__all__ = ["MMMF", "NuclearCompletion"]
