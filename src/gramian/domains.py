"""The domain of M: the PSD cone, or its slice of a given trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays.places import host, inner, namespace, root
from gramian.common.types import Array


class Domain:
    """A set of PSD matrices that is invariant to rotations; by default the whole cone."""

    trace: float | None = None
    """The trace of all members, None if it is free."""

    @property
    def bounded(self) -> bool:
        """Whether the domain contains no ray: the trace is fixed, and 0 is not a member."""
        return self.trace is not None

    def project_eigenvalues(self, eigenvalues: Array) -> Array:
        """The eigenvalues of the nearest member."""
        return np.maximum(eigenvalues, 0.0)

    def rescale(self, L: Array) -> Array:
        """L scaled to be a factor of a member."""
        return L

    def tangent(self, D: Array, L: Array) -> Array:
        """The component of a direction D at the factor L that is tangent to the domain."""
        return D

    def level(self, along: float) -> float:
        """λ with ∇F − λI ⪰ 0 at an optimum, given ⟨∇F, M⟩ = `along`."""
        return 0.0

    def vertex(self, slope: float, v: Array, reach: float) -> Array:
        """A factor of the member of trace at most `reach` that maximises ⟨−∇F, ·⟩.

        v is the leading eigenvector of −∇F, as a column, and `slope` its eigenvalue. Zero if there
        is no descent direction.
        """
        return float(np.sqrt(reach)) * v if slope > 0 else v[:, :0]

    def least(self, bottom: float) -> float:
        """A lower bound on ⟨G, ·⟩ for G ⪰ `bottom`·I."""
        return 0.0 if bottom >= 0 else -np.inf


@dataclass(frozen=True)
class PSDCone(Domain):
    """M ⪰ 0."""

    def __str__(self) -> str:
        return "M ⪰ 0"


@dataclass(frozen=True)
class Spectrahedron(Domain):
    """M ⪰ 0, tr M = τ."""

    trace: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.trace) and self.trace > 0):
            raise ValueError(f"a spectrahedron needs a positive trace, got {self.trace}")

    def project_eigenvalues(self, eigenvalues: Array) -> Array:
        """Projection on the simplex Σ = τ: a shift, then the positive part."""
        # The result is invariant to shifts; relative to the largest, rounding does not lose τ.
        eigenvalues = eigenvalues - np.max(eigenvalues)
        descending = np.sort(eigenvalues)[::-1]
        shifts = (np.cumsum(descending) - self.trace) / np.arange(1, descending.size + 1)
        kept = np.flatnonzero(descending > shifts)[-1]
        return np.maximum(eigenvalues - shifts[kept], 0.0)

    def rescale(self, L: Array) -> Array:
        return L * root(self.trace / inner(L, L))

    def tangent(self, D: Array, L: Array) -> Array:
        """The projection on the tangent plane of the sphere ‖L‖² = τ."""
        return D - (inner(D, L) / self.trace) * L

    def level(self, along: float) -> float:
        return along / self.trace

    def vertex(self, slope: float, v: Array, reach: float) -> Array:
        return float(np.sqrt(self.trace)) * v

    def least(self, bottom: float) -> float:
        return self.trace * bottom

    def __str__(self) -> str:
        return f"M ⪰ 0, tr M = {self.trace:g}"


def project(domain: Domain, M: Array) -> tuple[Array, Array]:
    """The nearest member of the domain to a symmetric matrix, as (eigenvalues, eigenvectors).

    The eigenvalues are on the host, the eigenvectors on the device of M.
    """
    values, vectors = namespace(M).linalg.eigh(M)
    return domain.project_eigenvalues(host(values)), vectors
