"""Clarabel and SCS behind one call: a conic model in, its solution out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.objectives.quadratic_form import svec, triangle

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Block:
    """Gx + h ∈ a cone: "zero", "second-order", or "semidefinite" (in the order of svec)."""

    kind: str
    G: sp.csr_array
    h: Array
    order: int = 0


@dataclass(frozen=True)
class Model:
    """min ½xᵀPx + qᵀx subject to blocks; x starts with svec(M)."""

    P: sp.csc_array
    q: Array
    blocks: tuple[Block, ...]

    def with_trace(self, diagonal: Array, trace: float) -> Model:
        """Add ⟨diag, M⟩ = trace."""
        s = svec(np.diag(diagonal))
        row = sp.csr_array(np.concatenate([s, np.zeros(self.q.size - s.size)])[None])
        return Model(self.P, self.q, (*self.blocks, Block("zero", row, np.array([-trace]))))


@dataclass(frozen=True)
class Answer:
    """What a backend found, and whether it says that this is an optimum or a ray."""

    x: Array
    iterations: int
    solved: bool
    unbounded: bool


Backend = Callable[[Model, float, float, bool], Answer]


def load_backend(name: str) -> Backend:
    """The backend of that name with its module loaded, or an error that says how to get it."""
    if name not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(_BACKENDS)}, got {name!r}")
    try:
        module = import_module(name)
    except ImportError as error:
        raise ImportError(
            f"backend {name!r} needs the package {name}: pip install 'gramian[conic]'"
        ) from error
    return partial(_BACKENDS[name], module)


def _clarabel(
    clarabel: Any, model: Model, accuracy: float, seconds: float, decompose: bool
) -> Answer:
    """Clarabel reads the upper triangle of a semidefinite block by columns, as svec does."""
    cones = {
        "zero": lambda block: clarabel.ZeroConeT(block.h.size),
        "second-order": lambda block: clarabel.SecondOrderConeT(block.h.size),
        "semidefinite": lambda block: clarabel.PSDTriangleConeT(block.order),
    }
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.time_limit = max(seconds, 0.0)
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = accuracy
    options.chordal_decomposition_enable = decompose
    G, h = _joined(model.blocks)
    found = clarabel.DefaultSolver(
        sp.csc_matrix(model.P), model.q, -G, h, [cones[b.kind](b) for b in model.blocks], options
    ).solve()
    status = clarabel.SolverStatus
    return Answer(
        np.asarray(found.x),
        found.iterations,
        found.status == status.Solved,
        found.status == status.DualInfeasible,
    )


def _scs(scs: Any, model: Model, accuracy: float, seconds: float, decompose: bool) -> Answer:
    """SCS takes the cones in a fixed order, and the lower triangle by columns."""
    kinds = ("zero", "second-order", "semidefinite")
    blocks = [_lower(b) for kind in kinds for b in model.blocks if b.kind == kind]
    G, h = _joined(tuple(blocks))
    cone = {
        "z": sum(b.h.size for b in blocks if b.kind == "zero"),
        "q": [b.h.size for b in blocks if b.kind == "second-order"],
        "s": [b.order for b in blocks if b.kind == "semidefinite"],
    }
    found = scs.SCS(
        {"P": sp.csc_matrix(model.P), "A": -G, "b": h, "c": model.q},
        cone,
        verbose=False,
        eps_abs=accuracy,
        eps_rel=accuracy,
        adaptive_scale=False,  # it has been scaled, and changes late in a run undo its progress
        time_limit_secs=0.0 if np.isinf(seconds) else max(seconds, 1e-3),
    ).solve()
    info = found["info"]
    status = info["status_val"]
    return Answer(
        np.asarray(found["x"]), info["iter"], status == scs.SOLVED, status == scs.UNBOUNDED
    )


_BACKENDS: dict[str, Callable[..., Answer]] = {"clarabel": _clarabel, "scs": _scs}


def _joined(blocks: tuple[Block, ...]) -> tuple[sp.csc_matrix, Array]:
    G = sp.csc_matrix(sp.vstack([block.G for block in blocks]))
    return G, np.concatenate([block.h for block in blocks])


def _lower(block: Block) -> Block:
    """A semidefinite block with its rows in the order of the lower triangle by columns."""
    if block.kind != "semidefinite":
        return block
    i, j, _ = triangle(block.order)
    turned = np.lexsort((j, i))
    return Block(block.kind, block.G[turned], block.h[turned], block.order)
