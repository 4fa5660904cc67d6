"""Cholesky factors and triangular inverses of tensors."""

from __future__ import annotations

from typing import Any

import torch

Tensor = Any

UNIT = torch.finfo(torch.float64).eps / 2
"""The unit roundoff u."""

CHOLESKY_BLOCK = 1024
"""Columns of a block of a Cholesky factorisation."""

INVERTED_DIRECTLY = 1024
"""Order up to which a triangle is inverted by a triangular solve."""


def cholesky_factor(A: Tensor) -> Tensor | None:
    """The lower triangular factor; None if the matrix is not positive definite."""
    L, failed = torch.linalg.cholesky_ex(A)
    return None if int(failed) else L


def cholesky(A: Tensor) -> Any:
    """b ↦ A⁻¹b by Cholesky, None if there is no factor or it is too inaccurate; A is overwritten.

    For the columns J of a block and the rows from it on, with L = L[:, :J] already known:

        S = A[:, J] − L L[J]ᵀ,    S[J] = CCᵀ,    P Cᵀ = S below,    L[:, J] = [C; P]

    A device may compute C and P by inverses of diagonal blocks, to which Higham's Theorem 10.3
    does not apply: the residual S − [C; P]Cᵀ is therefore computed. If it is at most
    (n + 2)u/2 √(a_ii a_jj), then |A − LLᵀ| is at most 3/2 (n + 2)u √(a_ii a_jj), since the
    products add (n + 1)u (Higham, Lemma 8.4, for any order of summation). A proof subtracts
    2(n + 2)u.
    """
    n, root = A.shape[0], A.diagonal().sqrt()
    worst = torch.zeros((), dtype=A.dtype, device=A.device)
    for first in range(0, n, CHOLESKY_BLOCK):
        J = slice(first, first + CHOLESKY_BLOCK)
        S = A[first:, J]
        if first:
            S.addmm_(A[first:, :first], A[J, :first].T, alpha=-1)
        b = S.shape[1]
        C, info = torch.linalg.cholesky_ex(S[:b])
        if int(info):
            return None
        L = torch.cat([C, torch.linalg.solve_triangular(C.T, S[b:], upper=True, left=False)])
        S.addmm_(L, C.T, alpha=-1).div_(root[first:, None]).div_(root[J])
        S[:b].tril_()  # the upper triangle of A was not updated
        worst = torch.maximum(worst, S.abs_().max())
        S.copy_(L)
    if not float(worst) <= (n + 2) * UNIT / 2:
        return None
    return lambda b: torch.cholesky_solve(b[:, None], A)[:, 0]


def inverse_factor(A: Tensor) -> Tensor | None:
    """K with KᵀK = A⁻¹, without a bound on its error; None if A has no Cholesky factor."""
    L = cholesky_factor(A)
    return None if L is None else triangular_inverse(L)


def definite_inverse(A: Tensor) -> Tensor | None:
    """A⁻¹ by Cholesky, None if there is no factor: products are not sequential over rows."""
    L = cholesky_factor(A)
    return None if L is None else torch.cholesky_inverse(L)


def triangular_inverse(C: Tensor) -> Tensor:
    """C⁻¹ of a lower triangular C: products are faster than sequential triangular solves.

    [A, 0; B, D]⁻¹ = [A⁻¹, 0; −D⁻¹BA⁻¹, D⁻¹], repeatedly: two thirds of n³ operations in products.
    """
    found = torch.zeros_like(C)
    _invert_triangle(C, found)
    return found


def _invert_triangle(C: Tensor, found: Tensor) -> None:
    """Write C⁻¹ to the lower triangle of `found`."""
    n, half = C.shape[0], C.shape[0] // 2
    if n <= INVERTED_DIRECTLY:
        identity = torch.eye(n, dtype=C.dtype, device=C.device)
        found.copy_(torch.linalg.solve_triangular(C, identity, upper=False))
        return
    A, D = found[:half, :half], found[half:, half:]
    _invert_triangle(C[:half, :half], A)
    _invert_triangle(C[half:, half:], D)
    torch.mm(D, C[half:, :half] @ A, out=found[half:, :half])
    found[half:, :half].neg_()
