"""Methods for problems with linear constraints."""

from gramian.constrained.certify import certify
from gramian.constrained.registry import METHODS
from gramian.constrained.sanity import ContradictionError

__all__ = ["METHODS", "ContradictionError", "certify"]
