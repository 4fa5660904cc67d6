"""Loops over problems: constraints by the augmented Lagrangian and its relatives."""

from gramian.outer.certify import certify
from gramian.outer.registry import METHODS
from gramian.outer.sanity import ContradictionError

__all__ = ["METHODS", "ContradictionError", "certify"]
