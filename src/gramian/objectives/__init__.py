"""Objectives: what a solver sees of a problem."""

from gramian.objectives.base import Blend, Line, LowerBound, Objective, SymmetricOperator
from gramian.objectives.composite import Composite
from gramian.objectives.gram_quadratic import Eigenbasis, GramQuadratic
from gramian.objectives.linear import Linear
from gramian.objectives.matrices import GramOperator, LowRankPlusIdentity
from gramian.objectives.total import Sum

__all__ = [
    "Blend",
    "Composite",
    "Eigenbasis",
    "GramOperator",
    "GramQuadratic",
    "Line",
    "Linear",
    "LowRankPlusIdentity",
    "LowerBound",
    "Objective",
    "Sum",
    "SymmetricOperator",
]
