"""gramian as a solver of CVXPY: `prob.solve(solver=gm.cvxpy.Gramian())`; `gramian[cvxpy]`."""

from importlib import import_module
from typing import Any

__all__ = ["Gramian"]


def __getattr__(name: str) -> Any:
    if name == "Gramian":  # it is a subclass of one of CVXPY's, which may not be installed
        return import_module("gramian.cvxpy.solver").Gramian
    raise AttributeError(f"module 'gramian.cvxpy' has no attribute {name!r}")
