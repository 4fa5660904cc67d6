"""Clarabel and SCS with one interface: a conic model in, its solution out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.common.types import Array
from gramian.linalg.svec import svec, triangle
from gramian.methods.conic_call import Answer, call


@dataclass(frozen=True)
class ConeBlock:
    """Gx + h ∈ a cone: "zero", "second-order", or "semidefinite" (in the order of svec)."""

    kind: str
    G: sp.csr_array
    h: Array
    order: int = 0


@dataclass(frozen=True)
class ConicModel:
    """min ½xᵀPx + qᵀx subject to blocks; x starts with svec(M)."""

    P: sp.csc_array
    q: Array
    blocks: tuple[ConeBlock, ...]

    def with_trace(self, diagonal: Array, trace: float) -> ConicModel:
        """Add ⟨diag, M⟩ = trace."""
        s = svec(np.diag(diagonal))
        row = sp.csr_array(np.concatenate([s, np.zeros(self.q.size - s.size)])[None])
        return ConicModel(
            self.P, self.q, (*self.blocks, ConeBlock("zero", row, np.array([-trace])))
        )


Backend = Callable[[ConicModel, float, float, bool], Answer | None]


def load_backend(name: str) -> Backend:
    """The backend of that name; raises an error that states how to install it."""
    if name not in _DATA:
        raise ValueError(f"backend must be one of {', '.join(_DATA)}, got {name!r}")
    try:
        import_module(name)
    except ImportError as error:
        raise ImportError(
            f"backend {name!r} needs the package {name}: pip install 'gramian[conic]'"
        ) from error

    def solve(model: ConicModel, accuracy: float, seconds: float, decompose: bool) -> Answer | None:
        options = {"accuracy": accuracy, "decompose": decompose}
        found = call(name, _DATA[name](model) | options, seconds)
        return None if found is None else found._replace(x=np.asarray(found.x, dtype=float))

    return solve


def _for_clarabel(model: ConicModel) -> dict[str, Any]:
    """Clarabel reads the upper triangle of a semidefinite block by columns, as svec does."""
    G, h = _joined(model.blocks)
    cones = [(b.kind, b.order if b.kind == "semidefinite" else b.h.size) for b in model.blocks]
    return {"P": sp.csc_matrix(model.P), "q": model.q, "A": -G, "b": h, "cones": cones}


def _for_scs(model: ConicModel) -> dict[str, Any]:
    """SCS takes the cones in a fixed order, and the lower triangle by columns."""
    kinds = ("zero", "second-order", "semidefinite")
    blocks = [_lower(b) for kind in kinds for b in model.blocks if b.kind == kind]
    G, h = _joined(tuple(blocks))
    cones = {
        "z": sum(b.h.size for b in blocks if b.kind == "zero"),
        "q": [b.h.size for b in blocks if b.kind == "second-order"],
        "s": [b.order for b in blocks if b.kind == "semidefinite"],
    }
    return {"P": sp.csc_matrix(model.P), "q": model.q, "A": -G, "b": h, "cones": cones}


_DATA: dict[str, Callable[[ConicModel], dict[str, Any]]] = {
    "clarabel": _for_clarabel,
    "scs": _for_scs,
}


def _joined(blocks: tuple[ConeBlock, ...]) -> tuple[sp.csc_matrix, Array]:
    G = sp.csc_matrix(sp.vstack([block.G for block in blocks]))
    return G, np.concatenate([block.h for block in blocks])


def _lower(block: ConeBlock) -> ConeBlock:
    """A semidefinite block with its rows in the order of the lower triangle by columns."""
    if block.kind != "semidefinite":
        return block
    i, j, _ = triangle(block.order)
    turned = np.lexsort((j, i))
    return ConeBlock(block.kind, block.G[turned], block.h[turned], block.order)
