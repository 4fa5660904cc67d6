"""gramian as a CVXPY solver: `prob.solve(solver=gm.cvxpy.Gramian())`; needs `gramian[cvxpy]`."""

from importlib import import_module
from typing import Any

__all__ = ["Gramian"]


def __getattr__(name: str) -> Any:
    if name == "Gramian":  # a subclass of a CVXPY class, which may not be installed
        return import_module("gramian.cvxpy.solver").Gramian
    raise AttributeError(f"module 'gramian.cvxpy' has no attribute {name!r}")
