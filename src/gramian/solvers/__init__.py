"""Solvers: each sees an objective and a domain, never a data set."""

from gramian.solvers.minimize import minimize
from gramian.solvers.registry import available

__all__ = ["available", "minimize"]
