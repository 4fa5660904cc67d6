"""Solvers: each works on an objective and a domain, independently of the data."""

from gramian.checkpoint import CheckpointError, checkpoints
from gramian.solvers.registry import available

__all__ = ["CheckpointError", "available", "checkpoints"]
