"""Lower bounds on the smallest eigenvalue of every block of a slack matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.constrained.model import Model
from gramian.objectives import SymmetricOperator
from gramian.proofs import EXACT_ORDER, PATIENCE, Bottom, SparseForm, lowest

Array = NDArray[np.floating]


@dataclass(frozen=True)
class BlockBounds:
    """A lower bound on λ_min of each block, in the order of `model.blocks`."""

    values: Array
    how: str
    miss: float
    vector: Array | None = None
    """An approximate eigenvector of the lowest eigenvalue."""

    @property
    def least(self) -> float:
        return float(np.min(self.values))


def block_bounds(
    model: Model,
    operator: Any,
    *,
    wanted: float | None = None,
    seconds: float = PATIENCE,
    prove: bool = True,
) -> BlockBounds:
    """λ_min of every block of a matrix with the blocks of the model."""

    def look(part: Any) -> Bottom:
        return lowest(part, wanted=wanted, seconds=seconds, prove=prove)

    blocks = model.blocks
    if model.order <= EXACT_ORDER:
        G = operator.dense()
        if not np.all(np.isfinite(G)):
            raise FloatingPointError("the slack matrix is not finite")
        slack = operator.slack()
        return _by_blocks(
            blocks, np.diagonal(G) - slack, lambda rows: _exact(G[np.ix_(rows, rows)], slack[rows])
        )
    form = operator.form() if len(blocks) > 1 else None
    if not isinstance(form, SparseForm) or form.weights.size:
        found = look(operator)
        return BlockBounds(np.full(len(blocks), found.value), found.how, found.miss, found.vector)
    S, slack = form.S, operator.slack()
    return _by_blocks(
        blocks,
        S.diagonal() - slack,
        lambda rows: look(_part(sp.csr_array(S[rows][:, rows]), slack[rows])),
    )


def _by_blocks(
    blocks: Sequence[Any], diagonal: Array, look: Callable[[Any], Bottom]
) -> BlockBounds:
    """The bounds of all blocks; a block of one row is its entry of the diagonal."""
    found = {k: look(rows) for k, rows in enumerate(blocks) if len(rows) > 1}
    values = np.array([
        found[k].value if k in found else diagonal[rows[0]] for k, rows in enumerate(blocks)
    ])  # fmt: skip
    vector = None
    known = [k for k, bottom in found.items() if bottom.vector is not None]
    if known:
        least = min(known, key=lambda k: found[k].value)
        vector = np.zeros(diagonal.size)
        vector[blocks[least]] = found[least].vector
    worst = max(found.values(), key=lambda b: b.miss, default=Bottom(0.0, "eigenvalues"))
    return BlockBounds(values, worst.how, worst.miss, vector)


def _exact(G: Array, slack: Array) -> Bottom:
    """λ_min of a dense block, minus bounds on its rounding and that of its entries."""
    values, vectors = scipy.linalg.eigh(G, subset_by_index=[0, 0], check_finite=False)
    lost = 16 * np.finfo(float).eps / 2 * np.linalg.norm(G) + np.sum(slack)
    return Bottom(float(values[0] - lost), "eigenvalues", vector=vectors[:, 0])


def _part(S: sp.csr_array, slack: Array) -> SymmetricOperator:
    """One block of a sparse matrix, as an operator for `lowest`."""
    return SymmetricOperator(
        S.shape[0], lambda v: S @ v, S.toarray, lambda: SparseForm(S), lambda: slack
    )
