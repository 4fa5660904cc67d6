"""Interior points of a quadratic that is written out: F(M) = ½sᵀPs + qᵀs, s = svec(M).

With an order of some dozens and any number of squares, P has a few thousand columns: it is one
product of the rows with themselves, and a Newton step one Cholesky factor. A dozen or two lead to
the optimum whatever its rank and the conditioning, which no method on the factor can say.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import contiguous
from gramian.bounds import certify_image
from gramian.common import clock
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

Array = NDArray[np.floating]

LARGEST = 100
"""The order up to which F is written out: a step then has 4e10 multiplications."""

ROOM = 20_000_000
"""Numbers that the rows may hold."""

NEAR = 0.1
"""The part of the tolerance that the gap inside the cone falls to before a certificate is made."""

FLAT = 1e-16
"""Curvature below this part of the largest is rounding."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why F is not written out."""
    objective = problem.objective
    if row_bound(objective) is None or not objective.place.is_host:
        return "it needs a quadratic objective, on the host"
    if problem.order > LARGEST:
        return f"it writes F out, up to order {LARGEST}, and this problem has {problem.order}"
    if objective.subspace_cost(problem.order) > ROOM:
        return "the rows of its squares would take too much memory"
    return no_rank_limit(problem, settings)


@entering("primal-dual")
def primal_dual(problem: Problem, factor: Array, settings: Settings) -> Run:
    """The path of Nesterov and Todd's direction, and certificates towards its end."""
    written = Written(problem)
    enough, point = np.inf, None
    for point in cone_path(written.P, written.q, np.zeros(written.q.size), written.within):
        clock.check()
        if settings.expired():
            break
        value = written.value(svec(point.S))
        enough = min(enough, NEAR * settings.tol * abs(value))
        if point.gap > enough:
            yield Step(partial(written.inside, point.S), value, None, {"rank": problem.order})
        else:
            yield written.step(point.S, settings.tol)
            enough = NEAR * point.gap
    assert point is not None
    yield written.step(point.S, settings.tol)
    return Status.STALLED


class Written:
    """½sᵀPs + qᵀs + constant, the same function as F."""

    def __init__(self, problem: Problem) -> None:
        """Multiply the rows with themselves."""
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
        """The slice of fixed trace, where there is one."""
        trace = self.problem.domain.trace
        return None if trace is None else Slice(np.eye(self.problem.order), trace)

    def value(self, s: Array) -> float:
        """F."""
        return float(0.5 * s @ (self.P @ s) + self.q @ s) + self.constant

    def step(self, S: Array, tol: float) -> Step:
        """The point at the edge of the cone that S leads to, with its certificate.

        Its own dual point is shifted into the cone. That of S often lies there.
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
        """A factor of S without the directions that F is better without.

        Leaving λvvᵀ out changes F by −λ⟨∇F, vvᵀ⟩ + ½λ²P(vvᵀ), to all orders.
        """
        order = self.problem.order
        i, j, scale = triangle(order)
        bend = np.diag(self.P)[i == j]
        weight = np.maximum(bend, FLAT * max(float(bend.max()), 1e-300)) ** 0.25
        values, vectors = eigh(S * np.outer(weight, weight))
        L = vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None]
        squares = scale[:, None] * L[i] * L[j]
        slopes = squares.T @ (self.P @ svec(S) + self.q)
        if self.within is not None:
            lengths = np.sum(L * L, axis=0)
            slopes = slopes - lengths * (np.sum(slopes) / np.sum(lengths))
        kept = slopes < 0.5 * np.sum(squares * (self.P @ squares), axis=0)
        return contiguous(L[:, kept])
