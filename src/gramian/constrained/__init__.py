"""Loops over problems: constraints by the augmented Lagrangian and its relatives."""

from gramian.constrained.certify import certify
from gramian.constrained.registry import METHODS
from gramian.constrained.sanity import ContradictionError

__all__ = ["METHODS", "ContradictionError", "certify"]
