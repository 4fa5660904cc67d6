"""gramian: learn positive semidefinite matrices at scale, with a certificate.

Every problem here is min F(M) subject to M ⪰ 0, solved in factored form M = LLᵀ.
"""

from importlib import import_module
from typing import Any

from gramian import solvers
from gramian.callbacks import State
from gramian.certificate import Certificate
from gramian.constrained import Constraint
from gramian.domains import PSDCone, Spectrahedron
from gramian.outer import certify, minimize
from gramian.problem import Problem
from gramian.result import History, Result, Status
from gramian.solvers import checkpoints
from gramian.storage import StoredFileError

__version__ = "0.1.0"

_ON_DEMAND = (
    "checks",
    "completion",
    "cvxpy",
    "datasets",
    "graph",
    "io",
    "kernel",
    "manifold",
    "metric",
    "problems",
    "report",
    "spectral",
)
"""Loaded when first named: the estimators bring scikit-learn along, which takes a while."""

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
    "datasets",
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
    if name in _ON_DEMAND:
        return import_module(f"gramian.{name}")
    if name in ("load", "save"):
        return getattr(import_module("gramian.persistence"), name)
    raise AttributeError(f"module 'gramian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
