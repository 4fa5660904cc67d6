"""Objectives: the interface between problems and solvers."""

from gramian.objectives.base import Blend, Line, Objective, SymmetricOperator
from gramian.objectives.composite import Composite, Linear
from gramian.objectives.everywhere import BlockSquares, Everywhere
from gramian.objectives.featured import Featured, Prior
from gramian.objectives.gram_quadratic import GramQuadratic
from gramian.objectives.matrices import GramOperator, LowRankPlusIdentity
from gramian.objectives.quadratic_bounds import Eigenbasis
from gramian.objectives.supports import LowerBound
from gramian.objectives.total import Sum

__all__ = [
    "Blend",
    "BlockSquares",
    "Composite",
    "Eigenbasis",
    "Everywhere",
    "Featured",
    "GramOperator",
    "GramQuadratic",
    "Line",
    "Linear",
    "LowRankPlusIdentity",
    "LowerBound",
    "Objective",
    "Prior",
    "Sum",
    "SymmetricOperator",
]
