"""Primal-dual interior points of an explicit quadratic: F(M) = ½sᵀPs + qᵀs, s = svec(M).

For an order of some dozens and any number of squares, P has a few thousand columns: it is one
product of the rows with themselves, and a Newton step is one Cholesky factorisation. One or two
dozen steps reach the optimum, independently of its rank and of the conditioning.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from gramian.arrays.dense import eigh
from gramian.arrays.places import contiguous
from gramian.bounds import certify_image
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg.cone_quadratic import Slice, cone_path
from gramian.linalg.svec import svec, triangle
from gramian.methods.base import Run, Settings, Step, entering, no_rank_limit
from gramian.objectives.quadratic_form import (
    FLOPS,
    quadratic_form,
    row_bound,
)
from gramian.problem import Problem
from gramian.result import Status

MAX_ORDER = 100
"""Maximum order: a step then takes 4e10 multiplications."""

MAX_ROW_ENTRIES = 20_000_000
"""Maximum number of entries of the rows."""

CERTIFIED_GAP_IN_TOLERANCES = 0.1
"""Gap inside the cone at which a certificate is computed, as a fraction of the tolerance."""

CURVATURE_ROUNDING = 1e-16
"""Curvature below this fraction of the largest counts as rounding."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it."""
    objective = problem.objective
    if row_bound(objective) is None or not objective.place.is_host:
        return "it needs a quadratic objective, on the host"
    if problem.order > MAX_ORDER:
        return f"it accepts orders up to {MAX_ORDER}, and this problem has {problem.order}"
    if objective.subspace_cost(problem.order) > MAX_ROW_ENTRIES:
        return "the rows of its squares would take too much memory"
    return no_rank_limit(problem, settings)


@entering("primal-dual")
def primal_dual(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The path of Nesterov and Todd's direction, with certificates near its end."""
    written = ExplicitQuadratic(problem)
    enough, point = np.inf, None
    for point in cone_path(written.P, written.q, np.zeros(written.q.size), written.within):
        clock.check()
        if settings.expired():
            break
        value = written.value(svec(point.S))
        enough = min(enough, CERTIFIED_GAP_IN_TOLERANCES * settings.tol * abs(value))
        if point.gap > enough:
            yield Step(partial(written.inside, point.S), value, None, {"rank": problem.order})
        else:
            yield written.step(point.S, settings.tol)
            enough = CERTIFIED_GAP_IN_TOLERANCES * point.gap
    assert point is not None
    yield written.step(point.S, settings.tol)
    return Status.STALLED


class ExplicitQuadratic:
    """½sᵀPs + qᵀs + constant, equal to F."""

    def __init__(self, problem: Problem) -> None:
        """Form P from the rows."""
        form = quadratic_form(problem.objective)
        assert form is not None
        rows, size = form.B.shape
        clock.check(rows * size**2 / FLOPS)
        P = form.B.T @ form.B
        self.problem, self.P = problem, P.toarray() if sp.issparse(P) else P
        self.P *= 2.0
        self.q = form.c - 2.0 * (form.B.T @ form.t)
        self.constant = form.constant + float(form.t @ form.t)

    @property
    def within(self) -> Slice | None:
        """The slice of fixed trace; None over the whole cone."""
        trace = self.problem.domain.trace
        return None if trace is None else Slice(np.eye(self.problem.order), trace)

    def value(self, s: Array) -> float:
        """F."""
        return float(0.5 * s @ (self.P @ s) + self.q @ s) + self.constant

    def step(self, S: Array, tol: float) -> Step:
        """The rounded point of S on the boundary of the cone, with its certificate.

        Its own dual point is shifted into the cone; the dual point of S often lies inside.
        """
        problem, objective = self.problem, self.problem.objective
        L = problem.domain.rescale(self._edge(S))
        image = objective.image(L)
        certificate = certify_image(problem, image)
        if certificate.within(tol):
            return Step(L, certificate.value, certificate)
        inside = certify_image(problem, objective.image(self.inside(S)))
        if inside.lower_bound > certificate.lower_bound:
            certificate = certify_image(problem, image, known=inside.bound)
        return Step(L, certificate.value, certificate)

    def inside(self, S: Array) -> Array:
        """A factor of S itself."""
        values, vectors = eigh(S)
        root = contiguous(vectors * np.sqrt(np.maximum(values, 0.0)))
        return self.problem.domain.rescale(root)

    def _edge(self, S: Array) -> Array:
        """A factor of S without the directions whose removal decreases F.

        Removing λvvᵀ changes F by exactly −λ⟨∇F, vvᵀ⟩ + ½λ²P(vvᵀ).
        """
        order = self.problem.order
        i, j, scale = triangle(order)
        bend = np.diag(self.P)[i == j]
        weight = np.maximum(bend, CURVATURE_ROUNDING * max(float(bend.max()), 1e-300)) ** 0.25
        values, vectors = eigh(S * np.outer(weight, weight))
        L = vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None]
        squares = scale[:, None] * L[i] * L[j]
        slopes = squares.T @ (self.P @ svec(S) + self.q)
        if self.within is not None:
            lengths = np.sum(L * L, axis=0)
            slopes = slopes - lengths * (np.sum(slopes) / np.sum(lengths))
        kept = slopes < 0.5 * np.sum(squares * (self.P @ squares), axis=0)
        if (
            self.within is not None and not kept.any()
        ):  # all slopes are equal: any direction is best
            kept[np.argmax(np.sum(L * L, axis=0))] = True
        return contiguous(L[:, kept])
