"""Exact searches over two coefficients and along a line of factors."""

from gramian.search.bilateral import bilateral, box_quadratic
from gramian.search.quartic import quartic

__all__ = ["bilateral", "box_quadratic", "quartic"]
