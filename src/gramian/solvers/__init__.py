"""Solvers: each sees an objective and a domain, never a data set."""

from gramian.checkpoint import CheckpointError, checkpoints
from gramian.solvers.registry import available

__all__ = ["CheckpointError", "available", "checkpoints"]
