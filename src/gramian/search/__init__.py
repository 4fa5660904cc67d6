"""Exact searches over two coefficients and along a line of factors."""

from gramian.search.bilateral import bilateral, box_quadratic
from gramian.search.cone_quadratic import Slice, cone_quadratic
from gramian.search.quartic import quartic
from gramian.search.quasi_newton import Point, quasi_newton

__all__ = [
    "Point",
    "Slice",
    "bilateral",
    "box_quadratic",
    "cone_quadratic",
    "quartic",
    "quasi_newton",
]
