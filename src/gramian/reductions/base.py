"""Reductions: one problem written as another, and the maps between the two.

A problem min F(M) becomes min F̃(S), smaller or better conditioned. A reduction is applied to the
problem itself or to its data (samples, links, a graph, some entries). This module inverts it for
the factor and for the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from gramian.arrays.places import inner
from gramian.certificate import Certificate, relative
from gramian.common.types import Array
from gramian.proofs.base import UNIT


class Reduction(Protocol):
    """The maps between M = LLᵀ of a problem and S = YYᵀ of the reduced one."""

    def factor(self, Y: Any) -> Array:
        """L, with F(L) = F̃(Y)."""

    def coordinates(self, L: Array) -> Any:
        """A Y that is mapped to L, or close to it if there is none."""

    def certificate(self, found: Any, L: Array) -> Certificate:
        """The certificate of L that follows from one of Y."""


def carried(
    found: Certificate, L: Array, *, scale: float = 1.0, constant: float = 0.0
) -> Certificate:
    """The certificate of a point whose F is `scale`·F̃ + `constant`, at the same optimum.

    If M is linear in S, ⟨∇F, M⟩ is `scale`·⟨∇F̃, S⟩. Eigenvalues are omitted, because they refer to
    other coordinates. With a constant, F̃(0) is at least 0.
    """
    value = scale * found.value + constant
    size = abs(scale * found.scale + constant)
    transformed = replace(
        found,
        value=value,
        lambda_min=np.nan,
        complementarity=scale * found.complementarity,
        trace=inner(L, L),
        scale=size,
    )
    if found.gap is None:
        return transformed
    moved = (scale, constant) != (1.0, 0.0)
    # A product, a sum and the roundings of both factors.
    rounding = 8 * UNIT * (abs(scale * found.value) + abs(constant)) if moved else 0.0
    gap = scale * found.gap + rounding
    return replace(transformed, gap=gap, relative_gap=relative(gap, value, size))


def among_these(found: Certificate, L: Array) -> Certificate:
    """The certificate if only some M have this form: other M may be better."""
    return replace(carried(found, L), gap=None, relative_gap=None, method="none", proof="")


@dataclass(frozen=True)
class Substitution:
    """M = TSTᵀ for a matrix T, so that L = TY; None means the identity."""

    matrix: Any
    whole: ClassVar[bool] = True
    """Whether some optimum has this form, so that a bound on F̃ is one on F."""

    def factor(self, Y: Array) -> Array:
        """TY."""
        return Y if self.matrix is None else self.matrix @ Y

    def coordinates(self, L: Array) -> Array:
        """The Y that minimises ‖TY − L‖."""
        if self.matrix is None:
            return np.ascontiguousarray(L)
        return np.linalg.lstsq(self.matrix, L, rcond=None)[0]

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound, or none if M of another form may be better."""
        return carried(found, L) if self.whole else among_these(found, L)
