"""The smallest eigenvalue of every block of a slack matrix, from below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.objectives import SymmetricOperator
from gramian.outer.model import Model
from gramian.proofs import EXACT_ORDER, PATIENCE, Bottom, SparseForm, lowest

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Bottoms:
    """A lower bound on λ_min of each block, in the order of `model.blocks`."""

    values: Array
    how: str
    miss: float
    vector: Array | None = None
    """An approximate eigenvector of the lowest of them."""

    @property
    def least(self) -> float:
        return float(np.min(self.values))


def bottoms(
    model: Model,
    operator: Any,
    *,
    wanted: float | None = None,
    seconds: float = PATIENCE,
    prove: bool = True,
) -> Bottoms:
    """λ_min of every block of a matrix with the blocks of the model."""
    blocks = model.blocks
    if len(blocks) == 1:
        if model.order <= EXACT_ORDER:
            return _dense(operator.dense(), operator.slack(), blocks)
        found = lowest(operator, wanted=wanted, seconds=seconds, prove=prove)
        return Bottoms(np.array([found.value]), found.how, found.miss, found.vector)
    if model.order <= EXACT_ORDER:
        return _dense(operator.dense(), operator.slack(), blocks)
    form = operator.form()
    if not isinstance(form, SparseForm) or form.weights.size:
        found = lowest(operator, wanted=wanted, seconds=seconds, prove=prove)
        return Bottoms(np.full(len(blocks), found.value), found.how, found.miss, found.vector)
    return _sparse(form.S, operator.slack(), blocks, wanted, seconds, prove)


def _dense(G: Array, slack: Array, blocks: Sequence[Any]) -> Bottoms:
    if not np.all(np.isfinite(G)):
        raise FloatingPointError("the slack matrix is not finite")
    diagonal = np.diagonal(G) - slack
    values = np.empty(len(blocks))
    best: tuple[float, Array | None] = (np.inf, None)
    for k, rows in enumerate(blocks):
        if len(rows) == 1:
            values[k] = diagonal[rows[0]]
            continue
        part = G[np.ix_(rows, rows)]
        eigenvalues, vectors = scipy.linalg.eigh(part, subset_by_index=[0, 0], check_finite=False)
        lost = 16 * np.finfo(float).eps / 2 * np.linalg.norm(part) + np.sum(slack[rows])
        values[k] = eigenvalues[0] - lost
        if values[k] < best[0]:
            vector = np.zeros(G.shape[0])
            vector[rows] = vectors[:, 0]
            best = values[k], vector
    return Bottoms(values, "eigenvalues", 0.0, best[1])


def _sparse(
    S: sp.csr_array,
    slack: Array,
    blocks: Sequence[Any],
    wanted: float | None,
    seconds: float,
    prove: bool,
) -> Bottoms:
    diagonal = S.diagonal() - slack
    values, found = np.empty(len(blocks)), []
    best: tuple[float, Array | None] = (np.inf, None)
    for k, rows in enumerate(blocks):
        if len(rows) == 1:
            values[k] = diagonal[rows[0]]
            continue
        part = _part(sp.csr_array(S[rows][:, rows]), slack[rows])
        bottom = lowest(part, wanted=wanted, seconds=seconds, prove=prove)
        values[k] = bottom.value
        found.append(bottom)
        if bottom.vector is not None and bottom.value < best[0]:
            vector = np.zeros(S.shape[0])
            vector[rows] = bottom.vector
            best = bottom.value, vector
    worst = max(found, key=lambda b: b.miss, default=Bottom(0.0, "eigenvalues"))
    return Bottoms(values, worst.how, worst.miss, best[1])


def _part(S: sp.csr_array, slack: Array) -> SymmetricOperator:
    """One block of a sparse matrix, as a proof takes it."""
    return SymmetricOperator(
        S.shape[0], lambda v: S @ v, S.toarray, lambda: SparseForm(S), lambda: slack
    )
