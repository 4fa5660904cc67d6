"""Relative tolerances and limits of iterations that several modules share."""

ROUNDING = 1e-13
"""Relative size of the rounding errors of a short computation in float64."""

ZERO = 1e-10
"""Fraction of the largest eigenvalue, singular value or coefficient below which one counts as 0."""

MAX_STEPS = 200
"""Limit on safeguarded iterations in one variable, which converge in far fewer steps."""
