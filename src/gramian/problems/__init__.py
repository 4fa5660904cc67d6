"""The problems of the papers, from formula to `Problem`."""

from gramian.problems.metric import kta, linear_separation
from gramian.problems.spectral import quadratic, top_eigen

__all__ = ["kta", "linear_separation", "quadratic", "top_eigen"]
