"""Where M lives: the PSD cone, or its slice of a given trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import host, namespace

Array = NDArray[np.floating]


class Domain(Protocol):
    """A set of PSD matrices that is closed under rotation, so that eigenvalues tell it all."""

    @property
    def trace(self) -> float | None:
        """The trace every member has, None where it is free."""

    def project_eigenvalues(self, eigenvalues: Array) -> Array:
        """The eigenvalues of the nearest member."""


@dataclass(frozen=True)
class PSDCone:
    """M ⪰ 0."""

    @property
    def trace(self) -> None:
        return None

    def project_eigenvalues(self, eigenvalues: Array) -> Array:
        return np.maximum(eigenvalues, 0.0)

    def __str__(self) -> str:
        return "M ⪰ 0"


@dataclass(frozen=True)
class Spectrahedron:
    """M ⪰ 0, tr M = τ."""

    trace: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.trace) and self.trace > 0):
            raise ValueError(f"a spectrahedron needs a trace above 0, got {self.trace}")

    def project_eigenvalues(self, eigenvalues: Array) -> Array:
        """Onto the simplex Σ = τ: a shift, then the positive part."""
        # Shifting all eigenvalues changes nothing; from the largest, no rounding loses τ.
        eigenvalues = eigenvalues - np.max(eigenvalues)
        descending = np.sort(eigenvalues)[::-1]
        shifts = (np.cumsum(descending) - self.trace) / np.arange(1, descending.size + 1)
        kept = np.flatnonzero(descending > shifts)[-1]
        return np.maximum(eigenvalues - shifts[kept], 0.0)

    def __str__(self) -> str:
        return f"M ⪰ 0, tr M = {self.trace:g}"


def project(domain: Domain, M: Array) -> tuple[Array, Array]:
    """The nearest member of the domain to a symmetric matrix, as (eigenvalues, eigenvectors).

    The eigenvalues are on the host, the vectors where M is.
    """
    values, vectors = namespace(M).linalg.eigh(M)
    return domain.project_eigenvalues(host(values)), vectors
