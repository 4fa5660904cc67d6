"""Loops over problems: constraints by the augmented Lagrangian and its relatives."""

from gramian.outer.certify import certify
from gramian.outer.minimize import minimize
from gramian.outer.registry import METHODS

__all__ = ["METHODS", "certify", "minimize"]
