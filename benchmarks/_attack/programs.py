"""Semidefinite programs with known optima: dense rows, mixed scales, dependent rows, all statuses.

Each program is made from a known primal-dual pair (M, y, S) with MS = 0, or from a known ray. The
data are then changed in ways that do not change the answer: features and rows in other units, rows
that are combinations of others, a common offset of the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gramian as gm

ORDER, ROWS = (5, 90), (3, 120)
"""The range of the order, and of the number of rows."""


@dataclass
class Facts:
    """The data, and the optimum or the reason why there is none.

    `end` is "optimal", "unattained" (a finite infimum), "infeasible" or "unbounded".
    """

    end: str
    optimum: float | None
    C: Any
    A: Any
    b: Any
    A_ub: Any = None
    b_ub: Any = None

    def problem(self) -> gm.Problem:
        below = {} if self.A_ub is None else {"A_ub": list(self.A_ub), "b_ub": self.b_ub}
        return gm.problems.sdp(self.C, list(self.A), self.b, **below)


def _symmetric(rng: Any, m: int, n: int) -> Any:
    A = rng.standard_normal((m, n, n))
    return (A + A.transpose(0, 2, 1)) / 2


def _sizes(rng: Any) -> tuple[int, int]:
    n = int(np.exp(rng.uniform(*np.log(ORDER))))
    most = min(ROWS[1], n * (n + 1) // 2 - 1)
    return n, int(rng.integers(ROWS[0], most + 1))


def _pair(rng: Any, n: int, m: int, lost: int = 0, mask: Any = None) -> tuple[Any, Any]:
    """M and S with MS = 0, of ranks r and n − r − lost, 0 where the mask of blocks is.

    m rows determine an M of that rank: otherwise other optima exist, without bound as a rule.
    """
    most = int((np.sqrt(8 * m + 1) - 1) / 2) - lost  # (r + lost)(r + lost + 1)/2 ≤ m
    r = int(rng.integers(1, max(2, min(n - lost, most + 1))))
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    if mask is not None:
        Q = rng.permutation(np.linalg.eigh(mask * _symmetric(rng, 1, n)[0])[1], axis=1)
    U, V = Q[:, :r], Q[:, r + lost :]
    return (U * rng.uniform(0.5, 2, r)) @ U.T, (V * rng.uniform(0.5, 2, V.shape[1])) @ V.T


def dense(rng: Any, lost: int = 0, offset: float = 0.0, *, blocks: bool = False) -> Facts:
    """Random dense rows."""
    n, m = _sizes(rng)
    label = np.sort(rng.integers(0, max(2, n // 2), n)) if blocks else np.zeros(n)
    mask = label[:, None] == label
    M, S = _pair(rng, n, m, lost if m >= 6 else 0, mask if blocks else None)
    A = (_symmetric(rng, m, n) + offset * _symmetric(rng, 1, n)) * mask
    y = rng.standard_normal(m)
    b = np.einsum("kij,ij->k", A, M)
    return Facts("optimal", float(b @ y), S + np.tensordot(y, A, 1), A, b)


def degenerate(rng: Any) -> Facts:
    """Strict complementarity fails: the ranks of M and S do not add up to the order."""
    return dense(rng, lost=int(rng.integers(1, 3)))


def offset(rng: Any) -> Facts:
    """A common matrix added to every row."""
    return dense(rng, offset=10 ** rng.uniform(0, 3))


def blocks(rng: Any) -> Facts:
    """M falls into blocks, some of which are single entries."""
    return dense(rng, blocks=True)


def features(rng: Any) -> Facts:
    """Each feature in its own unit, from 1e-6 to 1e6: M ↦ DMD."""
    facts = dense(rng)
    d = 10 ** rng.uniform(-6, 6, 200)[: len(facts.C)]
    facts.C, facts.A = facts.C / np.outer(d, d), facts.A / np.outer(d, d)
    return facts


def units(rng: Any) -> Facts:
    """C, b and each row in its own unit, from 1e-6 to 1e6."""
    facts = dense(rng)
    row = 10 ** rng.uniform(-6, 6, len(facts.b))
    cost, right = 10 ** rng.uniform(-6, 6, 2)
    facts.A, facts.b = facts.A * row[:, None, None], facts.b * row * right
    facts.C, facts.optimum = facts.C * cost, facts.optimum * cost * right
    return facts


def dependent(rng: Any) -> Facts:
    """A third more rows, as combinations of the others."""
    facts = dense(rng)
    mix = rng.standard_normal((max(1, len(facts.b) // 3), len(facts.b)))
    facts.A = np.concatenate([facts.A, np.tensordot(mix, facts.A, 1)])
    facts.b = np.concatenate([facts.b, mix @ facts.b])
    return facts


def inequalities(rng: Any) -> Facts:
    """Half of the rows are ≤: some active with a multiplier, the others inactive."""
    n, m = _sizes(rng)
    half = m // 2
    M, S = _pair(rng, n, half)
    A, y = _symmetric(rng, m, n), rng.standard_normal(m)
    z = np.einsum("kij,ij->k", A, M)
    tight = rng.random(m - half) < 0.5
    y[half:] = np.where(tight, -np.abs(y[half:]), 0.0)
    room = np.where(tight, 0.0, rng.uniform(0.1, 2, m - half))
    C = S + np.tensordot(y, A, 1)
    return Facts("optimal", float(z @ y), C, A[:half], z[:half], A[half:], z[half:] + room)


def unattained(rng: Any) -> Facts:
    """A program with a known optimum plus min N_11 with N_12 = 1, with infimum 0, not attained."""
    facts = dense(rng)
    n = len(facts.C)
    grown = [np.pad(part, ((0, 0), (0, 2), (0, 2))) for part in (facts.A, facts.C[None])]
    link = np.zeros((1, n + 2, n + 2))
    link[0, n, n + 1] = link[0, n + 1, n] = 0.5
    C = grown[1][0]
    C[n, n] = 1.0
    Q = np.linalg.qr(rng.standard_normal((n + 2, n + 2)))[0]
    A = Q @ np.concatenate([grown[0], link]) @ Q.T
    return Facts("unattained", facts.optimum, _even(Q @ C @ Q.T), _even(A), np.r_[facts.b, 1.0])


def infeasible(rng: Any) -> Facts:
    """Some combination of the rows is negative definite, and that of b is above 0."""
    facts = dense(rng)
    y = rng.standard_normal(len(facts.b))
    M, S = _pair(rng, len(facts.C), len(facts.b))
    k = int(np.argmax(np.abs(y)))
    A = facts.A.copy()
    A[k] -= (np.tensordot(y, A, 1) + S + 0.1 * M) / y[k]
    b = facts.b + y * (1.0 - facts.b @ y) / (y @ y)
    return Facts("infeasible", None, facts.C, A, b)


def unbounded(rng: Any) -> Facts:
    """V VᵀA = 0 for every row, and ⟨C, VVᵀ⟩ < 0."""
    facts = dense(rng)
    n = len(facts.C)
    V = np.linalg.qr(rng.standard_normal((n, max(1, n // 5))))[0]
    N = V @ V.T / np.sum(V * V)
    A = facts.A - np.einsum("kij,ij->k", facts.A, N)[:, None, None] * N / np.sum(N * N)
    M = _pair(rng, n, len(facts.b))[0] + 0.1 * np.eye(n)
    C = facts.C - (np.sum(facts.C * N) + 1.0) * N / np.sum(N * N)
    return Facts("unbounded", None, C, A, np.einsum("kij,ij->k", A, M))


def _even(A: Any) -> Any:
    return (A + np.swapaxes(A, -1, -2)) / 2


KINDS: tuple[Callable[..., Facts], ...] = (
    dense, features, units, dependent, inequalities, blocks, offset, degenerate, unattained,
    infeasible, unbounded, inequalities,
)  # fmt: skip
