"""gramian: learn positive semidefinite matrices at scale, with a certificate.

Every problem here is min F(M) subject to M ⪰ 0, solved in factored form M = LLᵀ.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gramian.common import application

if TYPE_CHECKING:  # for type checkers and editors; at run time names are resolved on first access
    from gramian import (
        checks,
        completion,
        constraints,
        cvxpy,
        dask,
        graph,
        io,
        kernel,
        losses,
        manifold,
        maps,
        metric,
        neighbours,
        objectives,
        problems,
        solvers,
        spectral,
    )
    from gramian.app import datasets
    from gramian.app.explorer import explore
    from gramian.app.models import load, save
    from gramian.app.report import CalledModule
    from gramian.callbacks import State
    from gramian.certificate import Certificate
    from gramian.checkpoint import checkpoints
    from gramian.common.storage import StoredFileError
    from gramian.constrained.certify import certify
    from gramian.domains import PSDCone, Spectrahedron
    from gramian.linear_constraints import Constraint
    from gramian.problem import Problem
    from gramian.result import History, Result, Status
    from gramian.run import minimize

    report: CalledModule

__version__ = "0.1.0"

_HOMES = {
    "Certificate": "certificate",
    "Constraint": "linear_constraints",
    "History": "result",
    "PSDCone": "domains",
    "Problem": "problem",
    "Result": "result",
    "Spectrahedron": "domains",
    "State": "callbacks",
    "Status": "result",
    "StoredFileError": "common.storage",
    "certify": "constrained",
    "checkpoints": "checkpoint",
    "explore": "app.explorer",
    "load": "app.models",
    "minimize": "run",
    "save": "app.models",
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
    "constraints",
    "cvxpy",
    "dask",
    "datasets",
    "explore",
    "graph",
    "io",
    "kernel",
    "load",
    "losses",
    "manifold",
    "maps",
    "metric",
    "minimize",
    "neighbours",
    "objectives",
    "problems",
    "report",
    "save",
    "solvers",
    "spectral",
]


class _ApplicationAlias(MetaPathFinder, Loader):
    """Import the public modules of the application by their short names.

    `gramian.datasets` is the module `gramian.app.datasets` itself, and so for all of `SHORT`.
    """

    SHORT = ("cli", "datasets", "encoders", "explorer", "files", "report", "verdict")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package != __name__ or rest.partition(".")[0] not in self.SHORT:
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"gramian.app.{spec.name.partition('.')[2]}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias = module.__spec__  # set by the import system
        module.__spec__ = alias and alias.loader_state


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(import_module(f"gramian.{_HOMES[name]}"), name)
        globals()[name] = found  # the next lookup is an ordinary one
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"gramian.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"gramian.{name}":
                raise
    near = import_module("difflib").get_close_matches(name, __all__, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"module 'gramian' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _application(module: str, function: str) -> Any:
    return lambda *given: getattr(import_module(f"gramian.app.{module}"), function)(*given)


# First, or the folders of the application would be searched for the names of its parts.
sys.meta_path.insert(0, _ApplicationAlias())
application.register(report=_application("report", "report"), save=_application("models", "save"))
