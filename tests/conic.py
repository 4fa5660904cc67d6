"""An independent optimum: the same problem as a small conic model, solved by Clarabel.

Nothing here uses gramian: a term is a loss of an image M ↦ z written out by the test itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

Image = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Term:
    """Σ_e ω_e φ(z_e, c_e), with φ named by a key of _TERMS."""

    kind: str
    image: Image
    centre: Any = 0.0
    weight: Any = 1.0
    mu: float = 1.0


def conic_minimum(
    order: int, terms: Sequence[Term], C: Any = None, *, trace: float | None = None
) -> float:
    """min Σ terms + ⟨C, M⟩ over M ⪰ 0, with tr M fixed where a trace is given."""
    clarabel = pytest.importorskip("clarabel")
    model = _Model(order)
    if C is not None:
        model.add_linear(model.of_M(lambda M: np.array([np.sum(C * M)]))[0])
    if trace is not None:
        model.constrain(model.of_M(lambda M: np.array([np.trace(M)])), [-trace], "zero")
    for term in terms:
        _TERMS[term.kind](model, term)
    return model.minimum(clarabel)


class _Model:
    """½xᵀPx + qᵀx + constant with Gx + h in cones; x starts with the scaled triangle of M."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.basis = []
        for j in range(order):
            for i in range(j + 1):
                E = np.zeros((order, order))
                E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
                self.basis.append(E)
        self.size = len(self.basis)
        self.quadratic: list[tuple[np.ndarray, np.ndarray]] = []
        self.linear: list[np.ndarray] = []
        self.constant = 0.0
        self.rows: list[tuple[np.ndarray, np.ndarray, str]] = []
        self.constrain(np.eye(self.size), np.zeros(self.size), "psd")

    def of_M(self, image: Image) -> np.ndarray:
        return np.column_stack([np.ravel(image(E)) for E in self.basis])

    def variables(self, count: int) -> np.ndarray:
        """The rows that select `count` new variables."""
        rows = np.zeros((count, self.size + count))
        rows[:, self.size :] = np.eye(count)
        self.size += count
        return rows

    def add_linear(self, coefficients: np.ndarray) -> None:
        self.linear.append(coefficients)

    def add_squares(self, rows: np.ndarray, weight: Any, target: Any = 0.0) -> None:
        """Σ ω (row·x − t)²."""
        weight, target = np.broadcast_to(weight, len(rows)), np.broadcast_to(target, len(rows))
        self.quadratic.append((rows, 2 * weight))
        self.linear.append(-2 * (weight * target) @ rows)
        self.constant += float(weight @ target**2)

    def constrain(self, rows: np.ndarray, offset: Any, cone: str) -> None:
        self.rows.append((rows, np.asarray(offset, dtype=float), cone))

    def nonnegative(self, rows: np.ndarray, offset: Any = 0.0) -> None:
        self.constrain(rows, np.broadcast_to(offset, len(rows)), "nonnegative")

    def exponential(self, exponent: np.ndarray, offset: float, bound: np.ndarray) -> None:
        """exp(exponent·x + offset) ≤ bound·x."""
        rows = add(exponent[None], np.zeros((3, self.size))) * [[1.0], [0.0], [0.0]]
        rows[2] = add(bound[None], np.zeros((1, self.size)))[0]
        self.constrain(rows, [offset, 1.0, 0.0], "exponential")

    def minimum(self, clarabel: Any) -> float:
        P = np.zeros((self.size, self.size))
        for rows, weight in self.quadratic:
            full = add(rows, np.zeros((1, self.size)))
            P += (full.T * weight) @ full
        q = sum(add(c[None], np.zeros((1, self.size)))[0] for c in self.linear)
        G = np.vstack([add(rows, np.zeros((1, self.size))) for rows, _, _ in self.rows])
        h = np.concatenate([offset for _, offset, _ in self.rows])
        cones = {
            "psd": lambda m: clarabel.PSDTriangleConeT(self.order),
            "zero": clarabel.ZeroConeT,
            "nonnegative": clarabel.NonnegativeConeT,
            "exponential": lambda m: clarabel.ExponentialConeT(),
        }
        data = (
            sp.csc_matrix(np.triu(P)),
            q,
            sp.csc_matrix(-G),
            h,
            [cones[cone](len(offset)) for _, offset, cone in self.rows],
        )
        best = None
        for ways in WAYS:
            solution = clarabel.DefaultSolver(*data, _settings(clarabel, ways)).solve()
            if best is None or _doubt(solution) < _doubt(best):
                best = solution
            if str(best.status) == "Solved":
                break
        assert str(best.status) in ("Solved", "AlmostSolved"), best.status
        return float(best.obj_val) + self.constant


WAYS = (
    {},
    {"equilibrate_enable": False},
    {"max_step_fraction": 0.9},
    {"iterative_refinement_max_iter": 30, "iterative_refinement_reltol": 1e-15},
)
"""Settings to try in turn: from machine to machine another one stops short of its tolerance."""


def _settings(clarabel: Any, ways: dict[str, Any]) -> Any:
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    for name, value in ways.items():
        setattr(options, name, value)
    return options


def _doubt(solution: Any) -> float:
    """How far apart the primal and the dual value are; endless where it did not get near."""
    near = str(solution.status) in ("Solved", "AlmostSolved")
    return abs(solution.obj_val - solution.obj_val_dual) if near else np.inf


def add(*parts: np.ndarray) -> np.ndarray:
    """The sum of rows over x of different ages: older ones are padded with zeros."""
    width = max(part.shape[1] for part in parts)
    return sum(np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts)


def _squared(model: _Model, term: Term) -> None:
    model.add_squares(model.of_M(term.image), term.weight, term.centre)


def _squared_hinge(model: _Model, term: Term) -> None:
    """u ≥ m − z, u ≥ 0, min Σ ω u²."""
    z = model.of_M(term.image)
    u = model.variables(len(z))
    model.add_squares(u, term.weight)
    model.nonnegative(u)
    model.nonnegative(add(u, z), -np.broadcast_to(term.centre, len(z)))


def _smoothed_hinge(model: _Model, term: Term) -> None:
    """a + b ≥ m − z, a, b ≥ 0, min Σ ω (a²/2μ + b)."""
    z = model.of_M(term.image)
    a, b = model.variables(len(z)), model.variables(len(z))
    weight = np.broadcast_to(term.weight, len(z))
    model.add_squares(a, weight / (2 * term.mu))
    model.add_linear(weight @ b)
    model.nonnegative(a)
    model.nonnegative(b)
    model.nonnegative(add(a, b, z), -np.broadcast_to(term.centre, len(z)))


def _logistic(model: _Model, term: Term) -> None:
    """exp(m − z − t) + exp(−t) ≤ 1, min Σ ω t."""
    z = model.of_M(term.image)
    centre = np.broadcast_to(term.centre, len(z))
    t, p, q = (model.variables(len(z)) for _ in range(3))
    model.add_linear(np.broadcast_to(term.weight, len(z)) @ t)
    model.nonnegative(-add(p, q), 1.0)
    for e in range(len(z)):
        model.exponential(-add(z[[e]], t[[e]])[0], centre[e], p[e])
        model.exponential(-t[e], 0.0, q[e])


def _soft_min(model: _Model, term: Term) -> None:
    """Σ exp(−z/μ − t) ≤ 1, min μ t."""
    z = model.of_M(term.image)
    t, p = model.variables(1), model.variables(len(z))
    model.add_linear(term.mu * t[0])
    model.nonnegative(-p.sum(axis=0)[None], 1.0)
    for e in range(len(z)):
        model.exponential(-add(z[[e]] / term.mu, t)[0], 0.0, p[e])


_TERMS = {
    "squared": _squared,
    "squared-hinge": _squared_hinge,
    "smoothed-hinge": _smoothed_hinge,
    "logistic": _logistic,
    "soft-min": _soft_min,
}
