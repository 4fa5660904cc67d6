"""Exact searches over two coefficients and along a line of factors."""

from gramian.search.bilateral import bilateral, box_quadratic
from gramian.search.cone_quadratic import Slice, cone_quadratic
from gramian.search.quartic import quartic

__all__ = ["Slice", "bilateral", "box_quadratic", "cone_quadratic", "quartic"]
