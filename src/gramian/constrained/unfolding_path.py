"""Exact unfoldings along the central path of their dual.

max ⟨W, M⟩ subject to d_M(e) = D_e, M ⪰ 0 has one multiplier per edge and an order of some hundred
points: a Newton step (`Barrier`) takes (edges)³ operations, and a hundred of them give an accurate
solution. Three techniques are needed:

- M = VRVᵀ with V orthogonal to the constants and to the null vectors of all cliques (`face_of`), in
  coordinates in which the Laplacian of 1/D_e is the identity. A dual point of R is converted to one
  of M by weights in the null space of V, at no cost, including the squares of those null vectors;
- relative lengths may deviate by b_e times the multiplier, with b decreasing as √μ: this bounds the
  remaining multipliers;
- the last points are polished until their edges hold (`polish`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg

from gramian.common.types import Array
from gramian.constrained.cliques import face_of
from gramian.constrained.model import Model
from gramian.constrained.points import MIN_EIGENVALUE_RATIO, Candidate, Guide, factor_of
from gramian.maps import PairDistances
from gramian.methods.barrier import MU_RATIO, Barrier
from gramian.methods.base import Settings
from gramian.reductions.squared_forms import SquaredForms

MAX_POINTS, MAX_EDGES = 500, 2500
"""Maximum number of points and edges: a step then takes about a second."""

MAX_YIELDED_GAP = 3e-2
"""Largest gap, relative to the value, of a point that is yielded."""

LAST_MU_RATIO, MIN_SOFTNESS, MIN_SOFTNESS_MU_RATIO = 1e-4, 1e-10, 1e-6
"""The last μ relative to the tolerance and to the first μ, the smallest b, and the ratio to the
first μ below which that b is used."""

SQUARE_MULTIPLE = 2.0
"""Multiple of the required squares of null vectors that is added."""

SLACK_IN_TOLERANCES = 0.1
"""Fraction of the tolerance spent on a slack well inside the cone of the face."""

EQUAL_VECTORS_RATIO = 1e-6
"""Relative difference below which null vectors count as equal."""


def refusal(model: Model) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if model.linear is None or not all(isinstance(m, PairDistances) for m in model.bounds.map.maps):
        return "it needs constraints on distances only, and a linear objective ⟨C, M⟩"
    if model.order > MAX_POINTS or model.bounds.size > MAX_EDGES:
        return f"it accepts at most {MAX_POINTS} points and {MAX_EDGES} edges"
    lower, upper = model.bounds.lower, model.bounds.upper
    if not np.array_equal(lower, upper) or not np.all(lower > 0) or len(model.blocks) > 1:
        return "it needs fixed distances above 0 along a connected graph"
    ones = np.ones((model.order, 1))
    sums = model.linear @ ones
    level = float(np.mean(sums))
    if not level > 0 or np.linalg.norm(sums - level) > 1e-12 * level * model.order:
        return "C needs the constants as an eigenvector above 0"
    return None


def unfolding_path(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The points of the path with a small gap, down to a fraction of the tolerance."""
    path = _Path(model)
    barrier, n = path.barrier, model.order
    mu = float(np.sum(barrier.w)) / n
    first, last = mu, LAST_MU_RATIO * settings.tol * mu
    while mu > last:
        path.soften(MIN_SOFTNESS * np.sqrt(max(1.0, mu / (MIN_SOFTNESS_MU_RATIO * first))))
        R = barrier.centre(mu, settings.expired)
        if R is None:
            return
        if mu * n <= MAX_YIELDED_GAP * float(np.sum(barrier.w)):
            yield Candidate(
                path.factor(R), path.multipliers(SLACK_IN_TOLERANCES * settings.tol), {"mu": mu}
            )
        mu *= MU_RATIO


class _Path:
    """The problem in coordinates of its face, and the inverse transformation."""

    def __init__(self, model: Model) -> None:
        self.model, self.D, n = model, model.bounds.lower, model.order
        maps = [m for m in model.bounds.map.maps if isinstance(m, PairDistances)]
        self.edges = np.vstack([np.column_stack([m.rows, m.cols]) for m in maps])
        self.face = face_of(self.edges, self.D, n)
        basis, sizes, _ = np.linalg.svd(np.hstack([np.ones((n, 1)), self.face.vectors]))
        rank = int(np.sum(sizes > EQUAL_VECTORS_RATIO * sizes[0]))
        self.V = basis[:, rank:]
        self.beyond = scipy.linalg.orth(self.face.vectors, rcond=EQUAL_VECTORS_RATIO)
        U = self._differences(self.V)
        root = np.linalg.cholesky(U.T @ U)
        self.V = scipy.linalg.solve_triangular(root, self.V.T, lower=True).T
        U = scipy.linalg.solve_triangular(root, U.T, lower=True).T
        C = self.V.T @ model.linear.dense() @ self.V
        self.unseen = _null_space((U @ U.T) ** 2) / self.D[:, None]
        one = np.ones(len(self.D))
        self.barrier = Barrier(SquaredForms(U, one, one, 0.5 * (C + C.T), one), one)

    def _differences(self, V: Array) -> Array:
        i, j = self.edges.T
        return (V[i] - V[j]) / np.sqrt(self.D)[:, None]

    def soften(self, softness: float) -> None:
        """Let relative lengths deviate by `softness` times their multiplier."""
        b = np.full(len(self.D), softness)
        self.barrier.forms = replace(self.barrier.forms, softness=b)

    def factor(self, R: Array) -> Array:
        """L with LLᵀ = VRVᵀ."""
        return np.ascontiguousarray(self.V @ factor_of(*np.linalg.eigh(R)))

    def multipliers(self, spare: float) -> Array:
        """y whose slack is that of the barrier plus `spare` on the face, and PSD on the complement.

        On the complement (2) of the face (1), S must be above S₂₁S₁₁⁻¹S₁₂. Weights in the null
        space of the face make that small, and squares of null vectors provide the rest.
        """
        w, Z = (self.barrier.w + spare) / self.D, self.beyond
        if not Z.shape[1]:
            return -w
        S = self.model.slack(None, -w).dense()
        root = np.linalg.cholesky(self.V.T @ S @ self.V)
        half = scipy.linalg.solve_triangular(root, self.V.T, lower=True)
        w = w + self._least_across(half, half @ S @ Z)
        S = self.model.slack(None, -w).dense()
        across = half @ S @ Z
        missing, squares = across.T @ across - Z.T @ S @ Z, self.face.vectors.T @ Z
        most = scipy.linalg.eigh(missing, squares.T @ squares, eigvals_only=True)[-1]
        return -w - SQUARE_MULTIPLE * max(float(most), 0.0) * self.face.weights

    def _least_across(self, half: Array, across: Array) -> Array:
        """Weights in the null space of the face that minimise the off-diagonal part."""
        i, j = self.edges.T
        inside, outside = half[:, i] - half[:, j], self.beyond[i] - self.beyond[j]
        moved = [inside @ (column[:, None] * self.unseen) for column in outside.T]
        right = -np.concatenate(list(across.T))
        found: Array = (
            self.unseen @ np.linalg.lstsq(np.vstack(moved), right, rcond=MIN_EIGENVALUE_RATIO)[0]
        )
        return found


def _null_space(G: Array) -> Array:
    """Vectors of the smallest eigenvalues: edges whose squares u_eu_eᵀ add up to 0."""
    values, vectors = np.linalg.eigh(G)
    return vectors[:, values <= MIN_EIGENVALUE_RATIO * values[-1]]
