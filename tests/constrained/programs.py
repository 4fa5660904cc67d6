"""Random semidefinite programs of small order, and their optima by Clarabel without gramian."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

KINDS = ("interior", "complementary", "infeasible", "unbounded")


@dataclass(frozen=True)
class Instance:
    """min ⟨C, M⟩ subject to ⟨A_k, M⟩ = b_k, ⟨B_k, M⟩ ≤ h_k; blocks by a mask of allowed entries."""

    kind: str
    seed: int
    C: np.ndarray
    A: np.ndarray
    b: np.ndarray
    B: np.ndarray
    h: np.ndarray
    optimum: float | None
    """Where it is known by construction."""


def instance(seed: int, largest: int = 15) -> Instance:
    """The instance of a seed: kinds take turns, all else is random."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)] if seed % 3 else "interior"
    n = int(rng.integers(2, largest + 1))
    mask = _mask(rng, n)
    rows = int(rng.integers(1, min(n * (n + 1) // 2, 2 * n) + 1))
    below = int(rng.integers(0, n + 1)) if rng.random() < 0.5 else 0
    A = np.array([_symmetric(rng, n) * mask for _ in range(rows)])
    B = np.array([_symmetric(rng, n) * mask for _ in range(below)]).reshape(below, n, n)
    make = {"infeasible": _infeasible, "unbounded": _unbounded}.get(kind)
    if make is not None:
        return make(rng, seed, mask, A, B)
    return _solvable(rng, kind, seed, mask, A, B)


def _solvable(rng, kind, seed, mask, A, B):
    """M and S definite, or complementary: then ⟨C, M⟩ is the optimum."""
    n = len(mask)
    basis = _block_orthogonal(rng, mask)
    if kind == "interior":
        M, S = (_with(basis, rng.uniform(0.2, 2.0, n)) for _ in range(2))
    else:
        inside = rng.random(n) < 0.4
        M = _with(basis, np.where(inside, rng.uniform(0.2, 2.0, n), 0.0))
        S = _with(basis, np.where(inside, 0.0, rng.uniform(0.2, 2.0, n)))
    y, active = rng.standard_normal(len(A)), rng.random(len(B)) < 0.5
    slopes = -rng.uniform(0.1, 1.0, len(B)) * active
    C = S + np.tensordot(y, A, 1) + np.tensordot(slopes, B, 1)
    h = _products(B, M) + np.where(active, 0.0, rng.uniform(0.1, 1.0, len(B)))
    b = _products(A, M)
    known = None if kind == "interior" else float(np.sum(C * M))
    return Instance(kind, seed, C, A, b, B, h, known)


def _infeasible(rng, seed, mask, A, B):
    """−Σ y_k A_k is definite, and y·b = 1."""
    y = rng.standard_normal(len(A)) + np.sign(rng.standard_normal(len(A))) * 0.5
    Z = _with(_block_orthogonal(rng, mask), rng.uniform(0.5, 2.0, len(mask)))
    A = A.copy()
    A[0] = -(Z + np.tensordot(y[1:], A[1:], 1)) / y[0]
    b = rng.standard_normal(len(A))
    b[0] = (1.0 - y[1:] @ b[1:]) / y[0]
    C = _symmetric(rng, len(mask)) * mask
    return Instance("infeasible", seed, C, A, b, B[:0], np.zeros(0), None)


def _unbounded(rng, seed, mask, A, B):
    """A ray D ⪰ 0 with 𝒜(D) = 0 and ⟨C, D⟩ < 0, beside a definite feasible M."""
    n = len(mask)
    basis = _block_orthogonal(rng, mask)
    D = _with(basis, np.where(np.arange(n) == 0, 1.0, 0.0))
    A = np.array([a - np.sum(a * D) / np.sum(D * D) * D for a in A])
    M = _with(_block_orthogonal(rng, mask), rng.uniform(0.2, 2.0, n))
    C = _symmetric(rng, n) * mask
    C = C - (np.sum(C * D) + 1.0) * D
    return Instance("unbounded", seed, C, A, _products(A, M), B[:0], np.zeros(0), None)


def _mask(rng, n):
    """1 inside the blocks: one as a rule, or a block and entries of their own."""
    if rng.random() < 0.6:
        return np.ones((n, n))
    label = np.sort(rng.integers(0, max(2, n // 2), n))
    return (label[:, None] == label).astype(float)


def _block_orthogonal(rng, mask):
    """Orthonormal columns, each inside a block."""
    values, vectors = np.linalg.eigh(mask * _symmetric(rng, len(mask)))
    del values
    return vectors


def _with(basis, values):
    return (basis * values) @ basis.T


def _symmetric(rng, n):
    G = rng.standard_normal((n, n)) * (rng.random((n, n)) < rng.uniform(0.3, 1.0))
    return (G + G.T) / 2


def _products(A, M):
    return np.array([np.sum(a * M) for a in A])


def optimum(given: Instance) -> tuple[str, float]:
    """("solved", ⟨C, M⟩), ("infeasible", inf), ("unbounded", −inf), or ("unsure", NaN)."""
    clarabel = pytest.importorskip("clarabel")
    n = len(given.C)
    j, i = np.tril_indices(n)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))

    def svec(M):
        return scale * M[..., i, j]

    size = scale.size
    rows = [svec(given.A).reshape(-1, size), svec(given.B).reshape(-1, size), -np.eye(size)]
    cones = [clarabel.ZeroConeT(len(given.b)), clarabel.PSDTriangleConeT(n)]
    if len(given.h):
        cones.insert(1, clarabel.NonnegativeConeT(len(given.h)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    found = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)),
        svec(given.C),
        sp.csc_matrix(np.vstack(rows)),
        np.concatenate([given.b, given.h, np.zeros(size)]),
        cones,
        options,
    ).solve()
    status = str(found.status)
    if status in ("Solved", "AlmostSolved"):
        return "solved", float(found.obj_val)
    words = {"PrimalInfeasible": ("infeasible", np.inf), "DualInfeasible": ("unbounded", -np.inf)}
    return words.get(status.removeprefix("Almost"), ("unsure", np.nan))
