"""A primal-dual interior point method for programs of moderate order with few or dense rows.

The homogeneous embedding (Ye, Todd and Mizuno 1994; Xu, Hung and Ye 1996) of min c·x subject to
Ax = b, x ∈ K and its dual max b·y subject to Aᵀy + s = c, s ∈ K:

    Ax = bτ,    Aᵀy + s = cτ,    c·x − b·y + κ = 0,    x, s ∈ K,    τ, κ ≥ 0

always has a solution: with τ > 0 it is τ times an optimal pair; with κ > 0 it is a ray that proves
one of the two infeasible. Steps are in Nesterov and Todd's scaled coordinates, in which
GᵀSG = G⁻¹XG⁻ᵀ = Λ is diagonal (Todd, Toh and Tütüncü 1998): with Ã_k = GᵀA_kG, c̃ = GᵀCG and T the
right-hand side of x̃ + s̃ = T,

    ÃÃᵀ dy = (b + Ãc̃) dτ + η r_p − Ã(T − η r̃_d),    s̃ = η r̃_d + c̃ dτ − Ãᵀdy,    x̃ = T − s̃.

Instead of ÃÃᵀ, the method factorises Ãᵀ = QR, which loses half as many digits. Each iteration has a
predictor and a corrector (Mehrotra 1992) with that factor. S is never formed: the certificate is
computed from y. Residuals decrease at the same rate as the gap, so that C − 𝒜*(y) is indefinite by
about as much. Near the optimum C is replaced by C − εI, with an ε that costs a fraction of the
allowed gap: C − 𝒜*(y) is definite if the residuals are smaller than ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg

from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained import conic
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide
from gramian.constrained.standard_form import StandardForm
from gramian.linalg.svec import smat, svec, triangle_size
from gramian.methods.base import Settings
from gramian.objectives.matrices import FULL

MAX_ITERATION_PRODUCTS, MAX_ENTRIES = 1.5e9, 1.5e7
"""Maximum number of multiplications of an iteration, and of entries of A."""

MAX_ITERATIONS = 60

BOUNDARY_FRACTION = 0.99
"""Step length as a fraction of the distance to the boundary of the cone."""

MAX_SHORT_STEP, MAX_SHORT_STEPS = 1e-6, 8
"""Length below which a step counts as short, and the number of consecutive short steps, or steps
that do not reduce the gap, that end the run."""

MAX_RAY_RESIDUAL = 1e-7
"""Largest ratio of Ax to c·x, or of Aᵀy + s to b·y, at which a ray is examined."""

MAX_GAP_FOR_MARGIN, MARGIN_GAP_FRACTIONS = 1e-3, (0.2, 2e-3, 2e-5)
"""Relative gap and violation below which C − εI replaces C, and the fractions of the allowed gap
that ε costs: the next is used if one is too large. If no multipliers have a definite slack, the
last is small enough to prove that by a ray."""

MAX_FLAT_RATIO = 0.1
"""Ratio of ‖Ax‖ to −c·x below which only the margin makes c·x negative."""

FIRST_GAP_IN_TOLERANCES, GAP_RATIO, INFEASIBLE_GAP_IN_TOLERANCES = 0.5, 0.2, 0.01
"""Gap, in tolerances, at which the first point is yielded; ratio of gaps, or of residuals of a ray,
between points that are yielded; and gap, in tolerances, at which a point with infeasible
multipliers is yielded, since they may be repaired."""


def refusal(model: Model) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if model.linear is None:
        return "it needs a linear objective ⟨C, M⟩"
    if model.rows is None:
        return "it needs the matrices of the rows"
    work, numbers = _work(model)
    if work > MAX_ITERATION_PRODUCTS or numbers > MAX_ENTRIES:
        return "one iteration takes too many operations for this order and number of rows"
    return None


def preferred(model: Model) -> bool:
    """Whether `auto` uses it: dense rows, a small block, or several of them without Clarabel."""
    if refusal(model) is not None or model.rows is None:
        return False
    entries, largest = sum(len(rows) ** 2 for rows in model.blocks), len(model.blocks[0])
    if model.rows.matrix.nnz >= FULL * entries * model.bounds.size:
        return True
    one = 2 * largest**2 >= entries
    return largest <= conic.MAX_BLOCK_ROWS and (one or not conic.installed())


def _work(model: Model) -> tuple[float, float]:
    rows, sizes = model.bounds.size, [len(block) for block in model.blocks]
    entries = sum(size * (size + 1) / 2 for size in sizes)
    cubes = float(sum(size**3 for size in sizes))
    return rows * (2 * cubes + 2 * rows * entries) + 30 * cubes, 2 * rows * entries


def interior_point(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The path to the optimum; yields the points near its end, and rays."""
    form = StandardForm(model)
    path = InteriorPath(form, settings.tol, InteriorPoint.first(form))
    for margin in MARGIN_GAP_FRACTIONS:
        path = InteriorPath(form, settings.tol, path.near or path.point, margin)
        yield from path
        if path.near is None or clock.left() <= 0:
            break
    L, y = path.best.factor(form), path.best.multipliers(form)
    # Where no multipliers have a definite slack, the path with a margin follows a flat ray.
    ray = path.point.factor(form) if path.point.margin > 0 else None
    yield Candidate(L, y, flat_ray=ray, sure=True)


class InteriorPath:
    """The points from a given one, with a margin from the first point near an optimum."""

    def __init__(
        self,
        form: StandardForm,
        tol: float,
        point: InteriorPoint,
        margin: float = MARGIN_GAP_FRACTIONS[0],
    ) -> None:
        self.form, self.tol, self.point, self.margin = form, tol, point, margin
        self.best, self.error = point, np.inf
        self.near: InteriorPoint | None = None
        """The first point near an optimum, without a margin."""

    def __iter__(self) -> Iterator[Candidate]:
        offered, ray, short, worse = FIRST_GAP_IN_TOLERANCES * self.tol, MAX_RAY_RESIDUAL, 0, 0
        for iteration in range(MAX_ITERATIONS):
            if clock.left() <= 0:  # the best point so far is yielded at the end
                return
            step = self._step()
            record = {"steps": float(iteration), "violation": step.violation}
            if step.flat:
                return
            if min(step.rays) <= ray:
                ray = GAP_RATIO * min(step.rays)
                yield _ray(self.form, step, record)
            elif step.gap <= offered and (
                step.feasible or step.gap <= INFEASIBLE_GAP_IN_TOLERANCES * self.tol
            ):
                offered, worse = GAP_RATIO * step.gap, 0
                L, y = self.point.factor(self.form), self.point.multipliers(self.form)
                yield Candidate(L, y, record, sure=True)
            elif offered < FIRST_GAP_IN_TOLERANCES * self.tol:
                worse += 1
            try:
                self.point, length = step.taken()
            except (np.linalg.LinAlgError, ValueError):  # rounding errors left the cone
                return
            short = short + 1 if length < MAX_SHORT_STEP else 0
            if max(short, worse) >= MAX_SHORT_STEPS:
                return

    def _step(self) -> Iteration:
        step = Iteration(self.form, self.point)
        error = max(step.gap, step.violation)
        if error < self.error:
            self.best, self.error = self.point, error
        if step.near and not self.point.margin:
            self.near = self.point
            self.point = replace(self.point, margin=self.margin * self.tol * step.size)
            step = Iteration(self.form, self.point)
        return step


def _ray(form: StandardForm, step: Iteration, record: dict[str, float]) -> Candidate:
    """A candidate proof that there is no minimum, or no feasible point."""
    point = step.point
    L, y = point.factor(form), form.multipliers(point.y)
    falls = step.rays[0] <= step.rays[1]
    return Candidate(L, y, record, L if falls else None, None if falls else y)


@dataclass(frozen=True)
class InteriorPoint:
    """X = GΛGᵀ and S = G⁻ᵀΛG⁻¹ of every block, stacked by their size."""

    y: Array
    tau: float
    kappa: float
    G: Sequence[Array]
    values: Sequence[Array]
    """The diagonals of Λ."""
    margin: float = 0.0
    """ε: the slack of the multipliers is required to be at least εI."""

    @classmethod
    def first(cls, form: StandardForm) -> InteriorPoint:
        """X = S = I, y = 0."""
        G = [np.zeros_like(C) + np.eye(C.shape[-1]) for C in form.C]
        return cls(np.zeros(form.b.size), 1.0, 1.0, G, [np.ones(g.shape[:-1]) for g in G])

    def multipliers(self, form: StandardForm) -> Array:
        """y, in the units of the model."""
        return form.multipliers(self.y / self.tau)

    def roots(self) -> list[Array]:
        """R of X = RRᵀ."""
        return [g * np.sqrt(v)[:, None] for g, v in zip(self.G, self.values, strict=True)]

    def factor(self, form: StandardForm) -> Array:
        """L of M = LLᵀ, in the units of the model."""
        return form.factor(self.roots()) / np.sqrt(self.tau)


class Direction(NamedTuple):
    """A step in scaled coordinates."""

    x: Array
    s: Array
    y: Array
    tau: float
    kappa: float


class Iteration:
    """One iteration: the scaled data at a point, its residuals, and the step from it.

    c̃τ = Ãᵀy + Λ + r̃_d at every point. The component of c̃ orthogonal to the rows of Ã is therefore
    that of (Λ + r̃_d)/τ, which is small even if c̃ and Ãᵀy are not.
    """

    def __init__(self, form: StandardForm, point: InteriorPoint) -> None:
        self.form, self.point, self.b = form, point, form.b
        self.values = _joined(map(_diagonal, point.values))
        self.A, slack, cost = self._scaled()
        self.primal = self.b * point.tau - self.A @ self.values
        self.dual = slack - self.values
        self.cost, self.reach = cost, float(self.b @ point.y)
        self.balance = point.kappa + self.cost - self.reach
        product = float(self.values @ self.values) + point.tau * point.kappa
        self.mu = product / (form.order + 1)

    def _scaled(self) -> tuple[Array, Array, float]:
        """Ã with a row for each svec(GᵀA_kG), c̃τ − Ãᵀy, and c·x."""
        form, point = self.form, self.point
        A, slack, cost = [], [], 0.0
        for g, root, matrices, C, margin in zip(
            point.G, point.roots(), form.matrices, form.C, self._margins(), strict=True
        ):
            turned = np.swapaxes(g, 1, 2)
            A.append(svec(turned @ (matrices @ g)).reshape(self.b.size, -1))
            C = C - margin
            slack.append(turned @ (C * point.tau - np.tensordot(point.y, matrices, 1)) @ g)
            cost += float(np.sum(root * (C @ root)))
        return np.hstack(A), _joined(slack), cost

    def _margins(self) -> list[Array]:
        """εI for every stack of blocks of M, 0 for the slacks."""
        sizes = [group.shape[1] for group in self.form.groups]
        return [*(self.point.margin * np.eye(size) for size in sizes), np.zeros((1, 1))]

    @property
    def gap(self) -> float:
        """The relative difference of the primal and the dual value."""
        size = max(abs(self.cost), abs(self.reach))
        return abs(self.cost - self.reach) / size if size > 0 else 1.0

    @property
    def violation(self) -> float:
        """‖Ax − bτ‖/τ."""
        return float(np.linalg.norm(self.primal)) / self.point.tau

    @property
    def near(self) -> bool:
        """Whether the pair is nearly optimal."""
        rest = self.point.kappa / max(self.point.tau, abs(self.cost))
        off = max(self.gap, self.violation, rest)
        return off <= MAX_GAP_FOR_MARGIN

    @property
    def feasible(self) -> bool:
        """Whether C − 𝒜*(y) is positive definite, up to rounding."""
        parts = self._parts(self.values + self.dual)
        try:
            for g, part, margin in zip(self.point.G, parts, self._margins(), strict=True):
                if g.shape[-1] > 1:  # multipliers of scalars can be clipped
                    turned = np.swapaxes(g, 1, 2)
                    np.linalg.cholesky(part + self.point.tau * (turned @ margin @ g))
        except np.linalg.LinAlgError:
            return False
        return True

    @property
    def size(self) -> float:
        """|c·x| divided by tr X."""
        trace = sum(float(np.sum(root * root)) for root in self.point.roots()[:-1])
        return max(abs(self.cost), abs(self.reach)) / trace

    @property
    def flat(self) -> bool:
        """Whether x is a ray along which c·x decreases only by the margin, which ends the path."""
        far = self.point.margin > 0 and self.point.kappa > self.point.tau and self.cost < 0
        return far and float(np.linalg.norm(self.A @ self.values)) <= -MAX_FLAT_RATIO * self.cost

    @property
    def rays(self) -> tuple[float, float]:
        """‖Ax‖ relative to −c·x > 0, and ‖Aᵀy + s‖ relative to b·y > 0: 0 for a ray."""
        falls = (
            float(np.linalg.norm(self.A @ self.values)) / -self.cost if self.cost < 0 else np.inf
        )
        return falls, self.point.tau / self.reach if self.reach > 0 else np.inf

    @cached_property
    def R(self) -> Array:
        """R of Ãᵀ = QR."""
        return scipy.linalg.qr(self.A.T, mode="r")[0][: self.b.size]

    def solved(self, right: Array) -> Array:
        """(ÃÃᵀ)⁻¹ times a vector, with two iterative refinements."""
        u: Array = np.zeros_like(right)
        for _ in range(3):
            rest = right - self.A @ (self.A.T @ u)
            half = scipy.linalg.solve_triangular(self.R, rest, trans="T")
            u = u + scipy.linalg.solve_triangular(self.R, half)
        return u

    @cached_property
    def along(self) -> tuple[Array, Array, Array, Array]:
        """(ÃÃᵀ)⁻¹b, (ÃÃᵀ)⁻¹Ãc̃, the part of c̃ orthogonal to Ã, and the derivative of s̃ in τ."""
        rest = (self.values + self.dual) / self.point.tau
        lift, seen = self.solved(self.b), self.solved(self.A @ rest)
        beside = rest - self.A.T @ seen
        return lift, seen + self.point.y / self.point.tau, beside, beside - self.A.T @ lift

    def direction(self, T: Array, kappa: float, share: float) -> Direction:
        """The step that removes the fraction `share` of the residuals, with x̃ + s̃ = T."""
        point, A = self.point, self.A
        rest = T - share * self.dual
        u = self.solved(share * self.primal - A @ rest)
        lift, seen, beside, slope = self.along
        top = share * self.balance + kappa / point.tau - float(self.b @ u)
        top += float(beside @ rest) + share * float(seen @ self.primal)
        bottom = float(self.b @ lift) + float(beside @ beside) + point.kappa / point.tau
        tau = top / bottom
        s = share * self.dual + slope * tau - A.T @ u
        y = (lift + seen) * tau + u
        return Direction(T - s, s, y, tau, (kappa - point.kappa * tau) / point.tau)

    def taken(self) -> tuple[InteriorPoint, float]:
        """The next point, and the length of the step to it."""
        point = self.point
        product = point.tau * point.kappa
        first = self.direction(-self.values, -product, 1.0)
        sigma = (1.0 - min(1.0, self.length(first))) ** 3
        T = self._corrected(first, sigma * self.mu)
        kappa = sigma * self.mu - product - first.tau * first.kappa
        step = self.direction(T, kappa, 1.0 - sigma)
        length = min(1.0, BOUNDARY_FRACTION * self.length(step))
        return self._moved(step, length), length

    def _corrected(self, first: Direction, centre: float) -> Array:
        """T of Λ ∘ T = σμI − Λ² − the symmetric product of x̃ and s̃ of the predictor."""
        found = []
        for v, X, S in self._stacks(first):
            product = X @ S
            right = _diagonal(centre - v * v) - 0.5 * (product + np.swapaxes(product, 1, 2))
            found.append(2 * right / (v[:, :, None] + v[:, None, :]))
        return _joined(found)

    def length(self, step: Direction) -> float:
        """The longest step inside the cone."""
        falls = [1e-3, -step.tau / self.point.tau, -step.kappa / self.point.kappa]
        for v, X, S in self._stacks(step):
            root = np.sqrt(v)
            for part in (X, S):
                least = np.linalg.eigvalsh(part / root[:, :, None] / root[:, None, :])
                falls.append(float(np.max(-least, initial=0.0)))
        return 1.0 / max(falls)

    def _moved(self, step: Direction, length: float) -> InteriorPoint:
        point, G, values = self.point, [], []
        for g, (v, X, S) in zip(point.G, self._stacks(step), strict=True):
            Lx = np.linalg.cholesky(_diagonal(v) + length * X)
            Ls = np.linalg.cholesky(_diagonal(v) + length * S)
            _, lam, Vt = np.linalg.svd(np.swapaxes(Ls, 1, 2) @ Lx)
            G.append(g @ (Lx @ np.swapaxes(Vt, 1, 2)) / np.sqrt(lam)[:, None])
            values.append(lam)
        return replace(
            point,
            y=point.y + length * step.y,
            tau=point.tau + length * step.tau,
            kappa=point.kappa + length * step.kappa,
            G=G,
            values=values,
        )

    def _stacks(self, step: Direction) -> Iterator[tuple[Array, Array, Array]]:
        """Λ, and the step in x̃ and s̃, of every stack of blocks."""
        return zip(self.point.values, self._parts(step.x), self._parts(step.s), strict=True)

    def _parts(self, v: Array) -> list[Array]:
        """The matrices of every stack of blocks."""
        found, start = [], 0
        for count, size in (values.shape for values in self.point.values):
            entries = triangle_size(size)
            end = start + count * entries
            found.append(smat(v[start:end].reshape(count, entries), size))
            start = end
        return found


def _diagonal(v: Array) -> Array:
    """Diagonal matrices."""
    return v[:, :, None] * np.eye(v.shape[1])


def _joined(stacks: Iterable[Array]) -> Array:
    """svec of all blocks."""
    return np.concatenate([svec(stack).ravel() for stack in stacks])
