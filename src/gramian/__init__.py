"""gramian: learn positive semidefinite matrices at scale, with a certificate.

Every problem here is min F(M) subject to M ⪰ 0, solved in factored form M = LLᵀ.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gramian.common import application as pages

if TYPE_CHECKING:  # for type checkers and editors; at run time names are resolved on first access
    from gramian import (
        checks,
        completion,
        cvxpy,
        dask,
        graph,
        io,
        kernel,
        manifold,
        metric,
        problems,
        solvers,
        spectral,
    )
    from gramian.app import datasets
    from gramian.app.explorer import explore
    from gramian.app.models import load
    from gramian.app.report import CalledModule
    from gramian.callbacks import State
    from gramian.certificate import Certificate
    from gramian.checkpoint import checkpoints
    from gramian.common.storage import StoredFileError
    from gramian.constrained.certify import certify
    from gramian.domains import PSDCone, Spectrahedron
    from gramian.estimators.persistence import save
    from gramian.linear_constraints import Constraint
    from gramian.problem import Problem
    from gramian.result import History, Result, Status
    from gramian.run import minimize

    report: CalledModule

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "certificate",
    "Constraint": "constrained",
    "History": "result",
    "PSDCone": "domains",
    "Problem": "problem",
    "Result": "result",
    "Spectrahedron": "domains",
    "State": "callbacks",
    "Status": "result",
    "StoredFileError": "storage",
    "certify": "outer",
    "checkpoints": "solvers",
    "explore": "explorer",
    "load": "models",
    "minimize": "run",
    "save": "persistence",
}
"""The module of each public name. NumPy, SciPy and scikit-learn take a second to import, so
modules are imported on first access."""

__all__ = [
    "Certificate",
    "Constraint",
    "History",
    "PSDCone",
    "Problem",
    "Result",
    "Spectrahedron",
    "State",
    "Status",
    "StoredFileError",
    "certify",
    "checkpoints",
    "checks",
    "completion",
    "cvxpy",
    "dask",
    "datasets",
    "explore",
    "graph",
    "io",
    "kernel",
    "load",
    "manifold",
    "metric",
    "minimize",
    "problems",
    "report",
    "save",
    "solvers",
    "spectral",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(import_module(f"gramian.{_HOMES[name]}"), name)
        globals()[name] = found  # cached for the next access
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"gramian.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"gramian.{name}":
                raise
    raise AttributeError(f"module 'gramian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


pages.written_by(lambda *given: import_module("gramian.report").report(*given))
