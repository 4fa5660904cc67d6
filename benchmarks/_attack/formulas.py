"""The displayed formula of a problem, written out in extended precision without the library.

This module does not import gramian. A map is a function of one column v that returns the numbers
vᵀA_e v, so that 𝒜(LLᵀ) is a sum over the columns of L and no matrix M is formed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks._attack.losses import Loss

LD = np.longdouble
Forms = Callable[[np.ndarray], np.ndarray]
"""V of shape (n, r) ↦ the numbers vᵀA_e v, of shape (p, r)."""

TERMS, INSIDE, SQUARES = 1e-9, 1e-12, 1e-14
PRODUCTS = 1e-15 / INSIDE
TINY = 1e-290
WIDE, SLICED, SLICES = 100_000, 10**8, 3
"""Allowed rounding: of the terms of F, of what cancels within a term, where it is squared, and of
a product with a sample in multiples of `INSIDE`.

Below `TINY` numbers lose their digits. Above `WIDE` entries absolute values are kept in float64,
above `SLICED` multiplications a product is made of slices.
"""


@dataclass(frozen=True)
class Valued:
    """F at a factor, and the error that an evaluation in double precision may have."""

    value: Any
    slack: Any


@dataclass(frozen=True)
class Term:
    """A loss of 𝒜(M)."""

    loss: Loss
    forms: Forms
    sizes: Forms | None = None
    """The same with absolute values, if the terms of a column can cancel."""


@dataclass(frozen=True)
class Formula:
    """F(M) = tr((AM)² + BM²) + Σ losses + ⟨C, M⟩ + constant, over M ⪰ 0 or a fixed trace."""

    order: int
    terms: Sequence[Term] = ()
    C: Any = None
    """An array, a sparse matrix, or a number for that multiple of I."""
    A: Any = None
    B: Any = None
    constant: Any = 0.0
    trace: float | None = None
    linear: Callable[[np.ndarray], np.ndarray] | None = None
    """A further part of ⟨C, M⟩ for a C that is not formed: V ↦ numbers with this sum."""
    cache: dict[str, Any] = field(default_factory=dict, compare=False)

    def __call__(self, factor: np.ndarray) -> Valued:
        """F(LLᵀ); a factor is scaled to the exact trace if it is fixed."""
        L = np.asarray(factor, dtype=LD)
        if not L.shape[1]:
            L = np.zeros((self.order, 1), dtype=LD)
        if self.trace is not None:
            L = L * np.sqrt(LD(self.trace) / np.sum(L * L))
        parts = [self._gram(L), self._linear(L), *(_of_term(term, L) for term in self.terms)]
        constant = LD(self.constant)
        value = sum((part.value for part in parts), constant)
        return Valued(value, sum((part.slack for part in parts), TINY + LD(TERMS) * abs(constant)))

    def at_zero(self) -> Any:
        """|F(0)|, the scale of the relative gap that `minimize` uses for an optimum of 0."""
        zero = np.zeros((self.order, 1), dtype=LD)
        return abs(sum((_of_term(term, zero).value for term in self.terms), LD(self.constant)))

    def unit(self) -> Any:
        """The size of F, also if F(0) = 0: differences below 1e-15 times it are rounding errors."""
        if "unit" not in self.cache:
            bends = sum(term.loss.unit for term in self.terms)
            self.cache["unit"] = self.at_zero() + bends + self._fall()
        return self.cache["unit"]

    def _fall(self) -> Any:
        """a²/4b for F(tvvᵀ) = F(0) + at + bt² along a random v, or b if F(0) and a are 0."""
        if self.trace is not None:
            return LD(0)
        v = np.random.default_rng(0).standard_normal((self.order, 1)).astype(LD)
        once, twice, zero = (self(np.sqrt(LD(t)) * v).value for t in (1, 2, 0))
        b = (twice - 2 * once + zero) / 2
        a = once - zero - b
        if b <= 1e-15 * abs(a):  # what extended precision leaves of b
            return LD(0)
        return b if zero == 0 and abs(a) <= 1e-12 * b else a * a / (4 * b)

    def _linear(self, L: np.ndarray) -> Valued:
        value, size = LD(0), LD(0)
        if self.C is not None:
            C = self._extended("C")
            value = np.sum(L * _product(C, L))
            size = np.sum(np.abs(L) * _product(self._absolute("C"), np.abs(L)))
        if self.linear is not None:
            more = self.linear(L)
            value, size = value + np.sum(more), size + np.sum(np.abs(more))
        return Valued(value, TERMS * size)

    def _gram(self, L: np.ndarray) -> Valued:
        """tr((AM)²) = ‖LᵀAL‖² and tr(BM²) = ⟨LᵀBL, LᵀL⟩."""
        total = Valued(LD(0), LD(0))
        rough = np.abs(L).astype(float) if L.size > WIDE else np.abs(L)
        for name, other in (("A", "A"), ("B", None)):
            if getattr(self, name) is None:
                continue
            inner = dense_product(L.T, _product(self._extended(name), L))
            right = inner if other else dense_product(L.T, L)
            size = rough.T @ _product(self._absolute(name), rough)
            outer = size if other else rough.T @ rough
            value = np.sum(inner * right)
            inside = np.sum(np.abs(inner) * outer + size * np.abs(right))
            slack = TERMS * value + INSIDE * inside + SQUARES * np.sum(size * outer)
            total = Valued(total.value + value, total.slack + slack)
        return total

    def _extended(self, name: str) -> Any:
        if name not in self.cache:
            self.cache[name] = extended(getattr(self, name))
        return self.cache[name]

    def _absolute(self, name: str) -> Any:
        key = f"|{name}|"
        if key not in self.cache:
            matrix = self._extended(name)
            large = sp.issparse(matrix) or np.size(matrix) > WIDE
            self.cache[key] = abs(matrix).astype(float) if large else abs(matrix)
        return self.cache[key]


def extended(matrix: Any) -> Any:
    """A matrix or number in extended precision."""
    if sp.issparse(matrix):
        return sp.csr_array(matrix).astype(LD)
    return np.asarray(matrix, dtype=LD)


def _product(C: Any, V: np.ndarray) -> np.ndarray:
    if sp.issparse(C):
        return C @ V
    return C * V if np.ndim(C) == 0 else dense_product(C, V)


def dense_product(P: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """PQ; a large one from slices whose products are exact in float64.

    Extended precision has no BLAS, and some 40 s for one product of order 1,550 would be counted
    against the library. Slices of b bits with 2b + log₂k ≤ 53 multiply without rounding (Ozaki et
    al. 2012); three of them hold the 63 bits below the largest entry of a row of P, a column of Q.
    """
    inner = P.shape[1]
    if P.dtype != LD or P.shape[0] * inner * Q.shape[1] < SLICED:
        return np.asarray(P @ Q)
    bits = int((53 - np.ceil(np.log2(inner))) // 2)
    left, rows = _slices(P, bits)
    right, columns = _slices(Q.T, bits)
    total = np.zeros((P.shape[0], Q.shape[1]), dtype=LD)
    for depth in reversed(range(SLICES)):
        for s in range(depth + 1):
            total += np.ldexp(LD(1), -(depth + 2) * bits) * (left[s] @ right[depth - s].T)
    return np.ldexp(total, rows[:, None] + columns)


def _slices(P: np.ndarray, bits: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Matrices of whole numbers N_s and exponents e with rows P_i = 2^eᵢ Σ_s 2^(−s·bits) N_s,i."""
    _, exponents = np.frexp(np.max(np.abs(P), axis=1, initial=0))
    rest, parts = np.ldexp(P, -exponents[:, None]), []
    for _ in range(SLICES):
        rest = np.ldexp(rest, bits)
        part = np.rint(rest)
        rest = rest - part
        parts.append(part.astype(float))
    return parts, exponents


def _of_term(term: Term, L: np.ndarray) -> Valued:
    columns = term.forms(L)
    sizes = term.sizes(np.abs(L)) if term.sizes else np.abs(columns)
    z, size = columns.sum(axis=1), sizes.sum(axis=1)
    values, slope = term.loss.terms(z), np.abs(term.loss.slope(z))
    reach = size + np.abs(term.loss.centre)
    slack = TERMS * np.sum(np.abs(values)) + INSIDE * np.sum(slope * reach)
    return Valued(np.sum(values), slack + SQUARES * np.sum(term.loss.bend * reach * reach))


# --- maps ----------------------------------------------------------------------------


def entries(i: np.ndarray, j: np.ndarray) -> Forms:
    """M_ij."""
    return lambda V: V[i] * V[j]


def outer(left: Any = None, right: Any = None) -> Forms:
    """All entries of PMQᵀ, P and Q the identity unless given."""

    def forms(V: np.ndarray) -> np.ndarray:
        P = V if left is None else left @ V
        Q = V if right is None else right @ V
        return (P[:, None, :] * Q[None, :, :]).reshape(-1, V.shape[1])

    return forms


def distances(i: np.ndarray, j: np.ndarray) -> Forms:
    """M_ii + M_jj − 2M_ij."""
    return lambda V: (V[i] - V[j]) ** 2


def sample_distances(X: Any, i: np.ndarray, j: np.ndarray) -> Forms:
    """(x_i − x_j)ᵀM(x_i − x_j), the differences taken first."""
    X = extended(X)
    D = X[i] - X[j]
    return lambda V: (D @ V) ** 2


def margins(X: Any, triplets: np.ndarray) -> Forms:
    """d_M(i, l) − d_M(i, j) for the rows (i, j, l)."""
    i, j, l = triplets.T
    far, near = sample_distances(X, i, l), sample_distances(X, i, j)
    return lambda V: np.hstack([far(V), -near(V)])


def difference_sizes(X: Any, *pairs: tuple[np.ndarray, np.ndarray]) -> Forms:
    """The sizes of ((x_i − x_j)ᵀv)², with what it loses if x_iᵀv and x_jᵀv are rounded first."""
    X = extended(X)
    apart = [abs(X[i] - X[j]) for i, j in pairs]
    far = [abs(X[i]) + abs(X[j]) for i, j in pairs]
    return lambda V: np.hstack(
        [(D @ V) * (D @ V + PRODUCTS * (A @ V)) for D, A in zip(apart, far, strict=True)]
    )


def stacked(*parts: Forms) -> Forms:
    """One map after another."""

    def forms(V: np.ndarray) -> np.ndarray:
        columns = [part(V) for part in parts]
        width = max(block.shape[1] for block in columns)
        return np.vstack([np.pad(c, ((0, 0), (0, width - c.shape[1]))) for c in columns])

    return forms
