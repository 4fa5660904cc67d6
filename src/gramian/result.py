"""The result of a solver: the factor, its value, its certificate, and the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from gramian.certificate import Certificate
from gramian.common import application, html
from gramian.common.storage import storable
from gramian.common.types import Array


@storable
class Status(Enum):
    """How a run ended, with a sentence for users."""

    CONVERGED = "the optimum was reached to the tolerance asked for"
    LOCAL = "no better point of this rank was found nearby; the certificate bounds its cost"
    SETTLED = (
        "the held-out error no longer decreases; the certificate bounds the distance to the optimum"
    )
    STALLED = "no step decreases the objective further, and the tolerance was not reached"
    MAX_ITER = "the iteration limit was reached first; raise max_iter or tol"
    TIME_LIMIT = "the time limit was reached first; this is the best point so far"
    STOPPED = "the callback asked to stop; this is the best point so far"
    INTERRUPTED = "interrupted from the keyboard; this is the best point so far"
    DIVERGED = "values became NaN or infinite; this is the best point before that"
    ROUNDING = "the tolerance is below the accuracy of float64 here; the gap states what is proved"
    UNBOUNDED = "the objective has no minimum: it is unbounded below along a ray of PSD matrices"
    UNATTAINED = (
        "no bound can be proved, and the infimum may not be attained: along a ray of PSD matrices "
        "neither the objective nor the constraints change"
    )
    INFEASIBLE = (
        "no matrix of a reasonable size satisfies all constraints: a combination of them "
        "contradicts M ⪰ 0"
    )

    @property
    def sentence(self) -> str:
        return self.value

    @property
    def converged(self) -> bool:
        """Whether the solver reached its goal: the optimum, a local optimum of limited rank, or a
        held-out error that no longer decreases.
        """
        return self in (Status.CONVERGED, Status.LOCAL, Status.SETTLED)

    @property
    def without_optimum(self) -> bool:
        """Whether the problem has no optimum, so that F of the last point means nothing."""
        return self in (Status.INFEASIBLE, Status.UNBOUNDED)


@storable
@dataclass
class History:
    """The trace of a run: one record per iteration, columns by name.

    ``history["value"]`` is an array with NaN for records without that entry; iterating gives
    the records. All solvers provide the columns iteration, time, value and rank.
    """

    records: list[dict[str, float]] = field(default_factory=list)

    def append(self, record: Mapping[str, float | None]) -> None:
        self.records.append({k: v for k, v in record.items() if v is not None})

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for record in self.records for name in record))

    def __getitem__(self, column: str) -> Array:
        if column not in self.columns:
            raise KeyError(f"no column {column!r} in this history; it has {self.columns}")
        return np.array([record.get(column, np.nan) for record in self.records])

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


@storable
@dataclass(frozen=True)
class Result:
    """The result of `gramian.minimize`."""

    factor: Array
    """L of shape (n, r); M = LLᵀ."""
    value: float
    """F(M)."""
    status: Status
    certificate: Certificate
    history: History
    solver: str
    problem: str
    seconds: float
    formula: str = ""
    """The problem as displayed."""
    route: tuple[str, ...] = ()
    """The methods that ran, in order; `solver` is the requested one."""
    dual: Array | None = None
    """w of the dual point behind the certificate, if it is not that of the factor itself:
    `certify(problem, factor, dual=w)` gives the same gap. With constraints it holds their
    multipliers y, with ∇F − 𝒜*(y) ⪰ 0."""
    ray: Array | None = None
    """If the status is UNBOUNDED: V with F(tVVᵀ) → −∞ for t → ∞. If it is INFEASIBLE: y with
    −𝒜*(y) ⪰ 0 and y·𝒜(M) > 0 for every M that satisfies the constraints. If it is UNATTAINED:
    V with ⟨C, VVᵀ⟩ = 0 and 𝒜(VVᵀ) = 0."""
    dimacs: tuple[float, ...] | None = None
    """The six DIMACS errors of a problem with constraints (Mittelmann 2003)."""
    hint: str = ""
    """A likely reason why a problem with constraints did not converge, and what to change."""

    @property
    def rank(self) -> int:
        return self.factor.shape[1]

    @property
    def iterations(self) -> int:
        return max(0, len(self.history) - 1)

    def matrix(self) -> Array:
        """M = LLᵀ as a dense array."""
        return self.factor @ self.factor.T

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page of this result; returns its path."""
        return application.report(self, path)

    def summary(self) -> dict[str, Any]:
        """The figures of the run as plain values."""
        return {
            "problem": self.problem,
            "solver": self.solver,
            "route": " → ".join(self.route),
            "status": self.status.name,
            "value": self.value,
            "gap": self.certificate.gap,
            "relative_gap": self.certificate.relative_gap,
            "rank": self.rank,
            "iterations": self.iterations,
            "seconds": self.seconds,
            **self._constrained(),
        }

    def _constrained(self) -> dict[str, Any]:
        """The figures of constraints, empty if there are none."""
        if self.dimacs is None:
            return {}
        return {"violation": self.certificate.violation, "dimacs": list(self.dimacs)}

    @property
    def _found(self) -> str:
        """The certificate, or that there is no optimum to which F could be compared."""
        if self.status.without_optimum:
            return "there is no optimal value" + ("" if self.ray is None else "; `ray` proves it")
        return str(self.certificate)

    def __repr__(self) -> str:
        value = "" if self.status.without_optimum else f", F = {self.value:.6g}"
        return f"<Result of {self.problem} by {self.solver}: {self.status.name}{value}>"

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        shown = {
            "how it ended": self._ended(),
            "certificate": self._found,
            "methods that ran": " → ".join(self.route),
            "rank of M": self.rank,
            "iterations": self.iterations,
            "seconds": self.seconds,
        }
        return html.facts(f"{self.problem} by {self.solver}", shown)

    def _ended(self) -> str:
        return f"{self.status.sentence}{'. ' if self.hint else ''}{self.hint}"

    def __str__(self) -> str:
        went = "" if self.route in ((), (self.solver,)) else f" ({' → '.join(self.route)})"
        return (
            f"{self.problem} by {self.solver}{went}: {self._ended()}\n"
            f"  {self._found}\n"
            f"  rank {self.rank}, {self.iterations} iterations, {self.seconds:.3g} s"
        )
