"""Methods for problems with linear constraints."""

from gramian.constrained.certify import certify
from gramian.constrained.rays import ContradictionError
from gramian.constrained.registry import METHODS

__all__ = ["METHODS", "ContradictionError", "certify"]
