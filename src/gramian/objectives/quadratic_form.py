"""A quadratic objective as explicit rows, as input of a conic solver.

M is written as s = svec(M), its upper triangle by columns with the entries off the diagonal
multiplied by √2, so that ⟨M, N⟩ = svec(M)ᵀ svec(N).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from gramian.arrays.dense import eigh
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg.svec import svec, triangle, triangle_size
from gramian.losses import Squared
from gramian.maps import Entries, LinearMap, Mix, PairDistances, Stack, rows_of
from gramian.objectives.base import Objective
from gramian.objectives.composite import Composite
from gramian.objectives.gram_quadratic import GramQuadratic
from gramian.objectives.matrices import SymmetricMatrix, is_multiple_of_identity
from gramian.objectives.total import Sum

FLOPS = 2e10
"""Approximate floating-point operations per second of a dense factorisation."""


@dataclass(frozen=True)
class QuadraticForm:
    """F(M) = ‖B s − t‖² + cᵀs + constant, s = svec(M); B is dense or sparse."""

    B: Any
    t: Array
    c: Array
    constant: float
    order: int

    def value(self, s: Array) -> float:
        """F at s = svec(M)."""
        residual = self.B @ s - self.t
        return float(residual @ residual + self.c @ s) + self.constant


def quadratic_form(objective: Objective) -> QuadraticForm | None:
    """The rows of a quadratic objective, None if it is not known to be one.

    - Composite with the squared loss Σ_e ω_e (⟨A_e, M⟩ − t_e)²: rows √ω_e svec(A_e).
    - GramQuadratic: tr((AM)²) = ‖A^½ M A^½‖² and tr(BM²) = ‖B^½ M‖².
    - Sum: the rows of all its parts.
    """
    if isinstance(objective, Composite) and isinstance(objective.loss, Squared):
        return _of_composite(objective, objective.loss)
    if isinstance(objective, GramQuadratic):
        return _of_gram_quadratic(objective)
    if isinstance(objective, Sum):
        forms = [quadratic_form(part) for part in objective.parts]
        known = [form for form in forms if form is not None]
        return _total(known) if len(known) == len(forms) else None
    return None


def row_bound(objective: Objective) -> int | None:
    """Upper bound on the number of rows of the compressed form, None if there is no form."""
    full = triangle_size(objective.order)
    if isinstance(objective, Composite) and isinstance(objective.loss, Squared):
        return min(objective.map.size, full)
    if isinstance(objective, GramQuadratic):
        return full
    if isinstance(objective, Sum):
        bounds = [row_bound(part) for part in objective.parts]
        known = [bound for bound in bounds if bound is not None]
        return min(sum(known), full) if len(known) == len(bounds) else None
    return None


def compress(form: QuadraticForm) -> QuadraticForm:
    """The same function with at most n(n+1)/2 rows, by a QR factorisation of (B, t).

    ‖B s − t‖² = ‖R s − (Qᵀt)‖² plus the squared part of t outside the range of Q. Sparse rows with
    fewer entries than R are not changed.
    """
    rows, size = form.B.shape
    if rows <= size or (sp.issparse(form.B) and form.B.nnz <= triangle_size(size)):
        return form
    clock.check(2.0 * rows * size**2 / FLOPS)
    dense = form.B.toarray() if sp.issparse(form.B) else form.B
    R = scipy.linalg.qr(np.column_stack([dense, form.t]), mode="r", check_finite=False)[0]
    rest = float(np.sum(R[size : size + 1, size] ** 2))
    B, t = np.ascontiguousarray(R[:size, :size]), R[:size, size].copy()
    return QuadraticForm(B, t, form.c, form.constant + rest, form.order)


def _total(forms: list[QuadraticForm]) -> QuadraticForm:
    return QuadraticForm(
        _stack([form.B for form in forms]),
        np.concatenate([form.t for form in forms]),
        np.sum([form.c for form in forms], axis=0),
        sum(form.constant for form in forms),
        forms[0].order,
    )


def _stack(blocks: list[Any]) -> Any:
    if all(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.vstack(blocks))
    return np.vstack([block.toarray() if sp.issparse(block) else block for block in blocks])


def _of_composite(objective: Composite, loss: Squared) -> QuadraticForm:
    size = objective.map.size
    root = np.sqrt(np.broadcast_to(loss.weight, size))
    A = map_rows(objective.map)
    B = sp.csr_array(sp.diags_array(root) @ A) if sp.issparse(A) else root[:, None] * A
    t = root * np.broadcast_to(loss.centre, size)
    return QuadraticForm(B, t, svec(objective.C.dense()), objective.constant, objective.order)


def map_rows(map: LinearMap) -> Any:
    """The rows svec(𝒜*(e_e)) of a map: sparse if 𝒜 selects entries, dense otherwise."""
    rows = rows_of(map) if isinstance(map, Entries | PairDistances | Mix | Stack) else None
    if rows is None:
        return map.columns(np.eye(map.order))
    i, j = np.divmod(rows.places, map.order)
    upper = i <= j
    i, j = i[upper], j[upper]
    matrix = sp.coo_array(rows.matrix[:, upper] * np.where(i < j, np.sqrt(2.0), 1.0))
    k, column = matrix.coords
    places = (k, (j * (j + 1) // 2 + i)[column])
    return sp.csr_array((matrix.data, places), shape=(map.size, triangle_size(map.order)))


def _of_gram_quadratic(objective: GramQuadratic) -> QuadraticForm:
    B = _stack([_congruence_rows(objective.A), _product_rows(objective.B)])
    linear = 2 * svec(objective.C.dense())
    return QuadraticForm(B, np.zeros(B.shape[0]), linear, objective.constant, objective.order)


def _congruence_rows(A: SymmetricMatrix) -> Any:
    """s ↦ svec(A^½ M A^½)."""
    if is_multiple_of_identity(A):
        return _multiple(A.order, A.scale)
    root = _root(A)
    i, j, scale = triangle(A.order)
    columns = np.empty((i.size, i.size))
    for k in range(i.size):
        clock.check()
        left, right = root[:, i[k]], root[:, j[k]]
        columns[:, k] = 0.5 * scale[k] * scale * (left[i] * right[j] + left[j] * right[i])
    return columns


def _product_rows(B: SymmetricMatrix) -> sp.csr_array:
    """s ↦ vec(B^½ M), n rows for each column of M."""
    order = B.order
    if is_multiple_of_identity(B):
        return _multiple(order, np.sqrt(max(B.scale, 0.0)))
    entry = np.arange(order * order)
    vec = Entries(np.column_stack([entry % order, entry // order]), order)
    return sp.csr_array(sp.kron(sp.eye_array(order), _root(B)) @ map_rows(vec))


def _multiple(order: int, scale: float) -> sp.csr_array:
    """A multiple of s itself; no rows for a zero multiple."""
    size = triangle_size(order)
    return sp.csr_array(scale * sp.eye_array(size if scale else 0, size))


def _root(A: SymmetricMatrix) -> Array:
    """A^½ of a PSD matrix."""
    values, vectors = eigh(A.dense())
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
