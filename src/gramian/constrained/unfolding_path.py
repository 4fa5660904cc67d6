"""Exact unfoldings along the central path of their dual.

max ⟨W, M⟩ subject to d_M(e) = D_e, M ⪰ 0 has as many multipliers as edges, and an order of some
hundred points: a step of Newton's method (`Barrier`) takes (edges)³ operations, and a hundred of
them lead to many digits. Three things make that work:

- M = VRVᵀ with V orthogonal to the constants and to the null vectors of all cliques (`face_of`), in
  coordinates where the Laplacian of 1/D_e is the identity. A dual point of R becomes one of M by
  weights that V does not see, at no cost, the squares of those null vectors among them;
- relative lengths may be off by b_e times the multiplier, b falling as √μ: what is left of the dual
  runs away no further than that;
- the last points are moved until their edges hold (`polish`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian.constrained.cliques import face_of
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide, factor_of
from gramian.maps import PairDistances
from gramian.methods.barrier import Barrier
from gramian.methods.base import Settings
from gramian.reductions.squared_forms import SquaredForms

Array = NDArray[np.floating]

ORDER, EDGES = 500, 2500
"""Points and edges at most: a step then takes about a second."""

SHRINK = 0.1
"""μ from one point of the path to the next."""

TOLD = 3e-2
"""The part of the value that the gap of a point must be below to be told of."""

LAST, SOFT, SOFTEST = 1e-4, 1e-10, 1e-6
"""The last μ beside the tolerance and the first μ, the least b, and the part of the first μ from
which on it is that."""

SPARE = 2.0
"""How many times what is needed of the squares of null vectors is added."""

SHARE = 0.1
"""The part of the tolerance that is spent on a slack well inside the face's cone."""

UNSEEN = 1e-12
"""The part of the largest eigenvalue of (UUᵀ)∘² below which weights are not seen by the face."""

SAME = 1e-6
"""Null vectors that differ by this part only are one."""


def refusal(model: Model) -> str | None:
    """Why a problem has no such path."""
    if model.linear is None or not all(isinstance(m, PairDistances) for m in model.bounds.map.maps):
        return "it takes distances with a linear objective ⟨C, M⟩ only"
    if model.order > ORDER or model.bounds.size > EDGES:
        return f"it takes {ORDER} points and {EDGES} edges at most"
    lower, upper = model.bounds.lower, model.bounds.upper
    if not np.array_equal(lower, upper) or not np.all(lower > 0) or len(model.blocks) > 1:
        return "it takes given distances above 0 along a connected graph"
    ones = np.ones((model.order, 1))
    sums = model.linear @ ones
    level = float(np.mean(sums))
    if not level > 0 or np.linalg.norm(sums - level) > 1e-12 * level * model.order:
        return "C needs the constants as an eigenvector above 0"
    return None


def unfolding_path(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The points of the path whose gap is small, down to the tolerance and further."""
    path = _Path(model)
    barrier, n = path.barrier, model.order
    mu = float(np.sum(barrier.w)) / n
    first, last = mu, LAST * settings.tol * mu
    while mu > last:
        path.soften(SOFT * np.sqrt(max(1.0, mu / (SOFTEST * first))))
        R = barrier.centre(mu, settings.expired)
        if R is None:
            return
        if mu * n <= TOLD * float(np.sum(barrier.w)):
            yield Candidate(path.factor(R), path.multipliers(SHARE * settings.tol), {"mu": mu})
        mu *= SHRINK


class _Path:
    """The problem in coordinates of its face, and the way back."""

    def __init__(self, model: Model) -> None:
        self.model, self.D, n = model, model.bounds.lower, model.order
        maps = [m for m in model.bounds.map.maps if isinstance(m, PairDistances)]
        self.edges = np.vstack([np.column_stack([m.rows, m.cols]) for m in maps])
        self.face = face_of(self.edges, self.D, n)
        basis, sizes, _ = np.linalg.svd(np.hstack([np.ones((n, 1)), self.face.vectors]))
        rank = int(np.sum(sizes > SAME * sizes[0]))
        self.V = basis[:, rank:]
        self.beyond = scipy.linalg.orth(self.face.vectors, rcond=SAME)
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
        """Let relative lengths be off by that times their multiplier."""
        b = np.full(len(self.D), softness)
        self.barrier.forms = replace(self.barrier.forms, softness=b)

    def factor(self, R: Array) -> Array:
        """L with LLᵀ = VRVᵀ."""
        return np.ascontiguousarray(self.V @ factor_of(*np.linalg.eigh(R)))

    def multipliers(self, spare: float) -> Array:
        """y whose slack is the barrier's on the face, `spare` above it, and above 0 beyond.

        S beyond the face is large enough where it is above S₂₁S₁₁⁻¹S₁₂, 1 the face and 2 the rest:
        weights that the face does not see bring that near to 0, and squares do the rest.
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
        return -w - SPARE * max(float(most), 0.0) * self.face.weights

    def _least_across(self, half: Array, across: Array) -> Array:
        """Weights that the face does not see, at which the part across is least."""
        i, j = self.edges.T
        inside, outside = half[:, i] - half[:, j], self.beyond[i] - self.beyond[j]
        moved = [inside @ (column[:, None] * self.unseen) for column in outside.T]
        right = -np.concatenate(list(across.T))
        found: Array = self.unseen @ np.linalg.lstsq(np.vstack(moved), right, rcond=UNSEEN)[0]
        return found


def _null_space(G: Array) -> Array:
    """Those of the least eigenvalues: edges whose squares u_eu_eᵀ add up to 0."""
    values, vectors = np.linalg.eigh(G)
    found: Array = vectors[:, values <= UNSEEN * values[-1]]
    return found
