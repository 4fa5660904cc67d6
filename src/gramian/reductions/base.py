"""What a reduction is: one problem written as another, and the ways between the two.

A problem min F(M) becomes min F̃(S), smaller or better conditioned. Whatever applies the reduction
takes the problem itself, or what its formula is made of (samples, links, a graph, some entries),
and what comes back is inverted here: the factor, and what is proved about it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner
from gramian.certificate import Certificate, relative

Array = NDArray[np.floating]

ROUNDED = 1e-15
"""What a value in other units can be off by, relatively to its terms."""


class Reduction(Protocol):
    """The ways between M = LLᵀ of a problem and S = YYᵀ of the one it becomes."""

    def factor(self, Y: Any) -> Array:
        """L, at which F has the value that F̃ has at Y."""

    def coordinates(self, L: Array) -> Any:
        """A Y that leads to L, or near it where none does."""

    def certificate(self, found: Any, L: Array) -> Certificate:
        """What a certificate of Y proves about L."""


def carried(
    found: Certificate, L: Array, *, scale: float = 1.0, constant: float = 0.0
) -> Certificate:
    """The certificate of a point whose F is `scale`·F̃ + `constant`, at the same optimum.

    Where M is linear in S, ⟨∇F, M⟩ is `scale`·⟨∇F̃, S⟩; eigenvalues are those of other coordinates,
    and so are not told. With a constant F̃(0) is at least 0.
    """
    value = scale * found.value + constant
    size = abs(scale * found.scale + constant)
    told = replace(
        found,
        value=value,
        lambda_min=np.nan,
        complementarity=scale * found.complementarity,
        trace=inner(L, L),
        scale=size,
    )
    if found.gap is None:
        return told
    moved = (scale, constant) != (1.0, 0.0)
    rounding = ROUNDED * (abs(scale * found.value) + abs(constant)) if moved else 0.0
    gap = scale * found.gap + rounding
    return replace(told, gap=gap, relative_gap=relative(gap, value, size))


def among_these(found: Certificate, L: Array) -> Certificate:
    """The certificate where only some M can be written so: others may be better."""
    return replace(carried(found, L), gap=None, relative_gap=None, method="none", proof="")


@dataclass(frozen=True)
class Substitution:
    """M = TSTᵀ for a matrix T, so that L = TY; None stands for the identity."""

    matrix: Any
    whole: ClassVar[bool] = True
    """Whether some optimum has this form, so that a bound on F̃ is one on F."""

    def factor(self, Y: Array) -> Array:
        """TY."""
        return Y if self.matrix is None else self.matrix @ Y

    def coordinates(self, L: Array) -> Array:
        """The Y of the TY nearest to L."""
        if self.matrix is None:
            return np.ascontiguousarray(L)
        nearest: Array = np.linalg.lstsq(self.matrix, L, rcond=None)[0]
        return nearest

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound, or none where others than these may be better."""
        return carried(found, L) if self.whole else among_these(found, L)
