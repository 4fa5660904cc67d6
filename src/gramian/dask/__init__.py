"""The estimators on a Dask cluster: the same names, parameters and certificates."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "KTA": "_alignment",
    "LinearSeparation": "_alignment",
    "DMLEig": "_tuples",
    "ImplicitCompletion": "_recommend",
    "LMNN": "_tuples",
    "LMNNEig": "_driver",
    "MVU": "_driver",
    "NeighborLayout": "_driver",
    "RegPCP": "_driver",
    "TripletMetric": "_tuples",
    "NPKL": "_driver",
    "MMMF": "_recommend",
    "NuclearCompletion": "_recommend",
    "ClusterError": "_cluster",
}
"""The module of each name, imported on first access: workers only import what their tasks need."""

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gramian.dask' has no attribute {name!r}")
    try:
        found = getattr(import_module(f"gramian.dask.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] not in ("dask", "distributed"):
            raise
        raise ModuleNotFoundError(
            "gramian.dask needs Dask: pip install 'gramian[dask]'", name=missing.name
        ) from None
    globals()[name] = found
    return found
