"""Quadratic objectives solved by a conic solver: three formulations, two backends.

Every formulation rewrites the problem as

    min ½xᵀPx + qᵀx   subject to   Gx + h ∈ K₁ × K₂ × …,   x = (svec(M̂), …),

calls the backend, and converts its x to a factor. SQLP and SCSDP are those of Wu's thesis (2011),
§3.3 and §3.2; the third keeps the quadratic in the objective.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from gramian.bounds import certify_image
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg.svec import svec, triangle_size
from gramian.methods.base import Run, Settings, Step
from gramian.methods.conic_backends import ConeBlock, ConicModel, load_backend
from gramian.objectives.quadratic_form import (
    FLOPS,
    QuadraticForm,
    quadratic_form,
    row_bound,
)
from gramian.objectives.quadratic_form import compress as compress_rows
from gramian.problem import Problem
from gramian.reductions.conic_scaling import column_norms, conic_scaling
from gramian.result import Status

MAX_ORDER = 300
"""Largest order that SCS solves in minutes."""

MAX_CLARABEL_ORDER = 120
"""Clarabel factors a dense block of order n(n+1)/2 for M ⪰ 0: over a gigabyte at order 100."""

MAX_SCHUR_ROWS = 600
"""Maximum number of rows of B: the second cone of SCSDP has this order plus one."""

BACKEND_TOLERANCES = {"clarabel": 1e-11, "scs": 1e-9}
"""Default tolerances of the backends: SCS is very slow at smaller ones."""


# --- accepted problems ---------------------------------------------------------------


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why `sqlp` and `conic` do not accept a problem; None if they accept it."""
    if row_bound(problem.objective) is None:
        return "it needs a quadratic objective, and a loss of this one is not squared"
    if problem.order > MAX_ORDER:
        return f"it keeps M dense, up to order {MAX_ORDER}, and this problem has {problem.order}"
    if settings.rank is not None and settings.rank < problem.order:
        return "a conic solver cannot limit the rank"
    return None


def schur_refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why `scsdp`, whose second cone grows with the rows, does not accept a problem."""
    if reason := refusal(problem, settings):
        return reason
    rows = row_bound(problem.objective)
    if rows is not None and rows > MAX_SCHUR_ROWS:
        return (
            f"its Schur complement is a semidefinite cone of order {rows + 1}, "
            f"and the limit is {MAX_SCHUR_ROWS + 1}; sqlp and conic do not need it"
        )
    return None


# --- the solvers ---------------------------------------------------------------------


def sqlp(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    backend: str = "clarabel",
    compress: bool = True,
    accuracy: float | None = None,
) -> Run:
    """SQLP eqs. (3.17)–(3.20): min μ + cᵀs with z = Bs − t, zᵀz ≤ μ, M ⪰ 0.

    zᵀz ≤ μ is a second-order cone of r + 2 dimensions by Theorem 5. `compress` reduces the r
    rows of B to n(n+1)/2; `accuracy` is the tolerance of the `backend`, clarabel or scs.
    """
    return _run(problem, settings, second_order_cone, backend, compress, accuracy)


def scsdp(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    backend: str = "clarabel",
    compress: bool = True,
    accuracy: float | None = None,
    decompose: bool = True,
) -> Run:
    """SCSDP eqs. (3.15), (3.16): min μ + cᵀs with [[I, z], [zᵀ, μ]] ⪰ 0, z = Bs − t, M ⪰ 0.

    The second cone has order r + 1 and arrow structure, which Clarabel can `decompose` into r cones
    of order 2; without decomposition it works on the whole cone, as the thesis did.
    """
    return _run(problem, settings, schur_complement, backend, compress, accuracy, decompose)


def conic(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    backend: str = "clarabel",
    compress: bool = True,
    accuracy: float | None = None,
) -> Run:
    """min ‖Bs − t‖² + cᵀs over M ⪰ 0, with the quadratic in the objective.

    `compress` forms P = 2BᵀB if that has fewer entries; otherwise every row has a variable.
    """
    formulation = folded if compress else direct
    return _run(problem, settings, formulation, backend, compress, accuracy)


def _run(
    problem: Problem,
    settings: Settings,
    formulation: Callable[[QuadraticForm], ConicModel],
    backend: str,
    compress: bool,
    accuracy: float | None,
    decompose: bool = True,
) -> Run:
    solve = load_backend(backend)
    if backend == "clarabel" and problem.order > MAX_CLARABEL_ORDER:
        raise ValueError(
            f"Clarabel takes matrices up to order {MAX_CLARABEL_ORDER} here, "
            f"and this problem has {problem.order}; use backend='scs'"
        )
    form = quadratic_form(problem.objective)
    assert form is not None
    trace = problem.domain.trace
    scaled = conic_scaling(compress_rows(form) if compress else form, trace)
    model = formulation(scaled.form)
    if trace is not None:
        model = model.with_trace(scaled.d**2, trace / scaled.alpha)
    started = clock.now()
    tolerance = BACKEND_TOLERANCES[backend] if accuracy is None else accuracy
    answer = solve(model, tolerance, settings.deadline - started, decompose)
    seconds = clock.elapsed(started)
    if answer is None:
        return Status.TIME_LIMIT
    if not np.all(np.isfinite(answer.x)):
        return Status.UNBOUNDED if answer.unbounded else Status.STALLED
    s = answer.x[: triangle_size(problem.order)]
    ray = not answer.solved and not problem.domain.bounded and _falls(scaled.form, s)
    if answer.unbounded or ray:
        return Status.UNBOUNDED
    L = problem.domain.rescale(scaled.factor(scaled.without_falling(s, trace)))
    certificate = certify_image(problem, problem.objective.image(L))
    record = {"conic_iterations": float(answer.iterations), "conic_seconds": seconds}
    yield Step(L, certificate.value, certificate, record)
    return Status.STALLED


def _falls(form: QuadraticForm, s: Array) -> bool:
    """Whether F decreases along s without curvature, to six digits.

    Rounding errors of P hide such a ray from a backend with a quadratic objective.
    """
    curvature = float(np.linalg.norm(form.B @ s))
    flat = curvature <= 1e-6 * float(np.max(column_norms(form.B))) * float(np.linalg.norm(s))
    return flat and float(form.c @ s) < -1e-6 * float(np.linalg.norm(form.c) * np.linalg.norm(s))


# --- formulations --------------------------------------------------------------------


def direct(form: QuadraticForm) -> ConicModel:
    """x = (s, z): P = 2I on z, z = Bs − t."""
    rows, size = form.B.shape
    z = sp.eye_array(rows)
    return ConicModel(
        sp.csc_array(sp.block_diag([sp.csc_array((size, size)), 2 * z])),
        np.concatenate([form.c, np.zeros(rows)]),
        (
            ConeBlock("zero", sp.csr_array(sp.hstack([sp.csr_array(form.B), -z])), -form.t),
            _semidefinite(form.order, rows),
        ),
    )


def folded(form: QuadraticForm) -> ConicModel:
    """x = s: P = 2BᵀB, q = c − 2Bᵀt, unless the rows of B have fewer entries than P."""
    if not sp.issparse(form.B):
        clock.check(2.0 * form.B.shape[0] * form.B.shape[1] ** 2 / FLOPS)
    P = sp.csc_array(sp.triu(sp.csc_array(2 * form.B.T @ form.B)))
    if sp.csr_array(form.B).nnz < P.nnz:
        return direct(form)
    return ConicModel(P, form.c - 2 * (form.B.T @ form.t), (_semidefinite(form.order, 0),))


def second_order_cone(form: QuadraticForm) -> ConicModel:
    """x = (s, μ): u = ((1 + μ)/2, (1 − μ)/2, Bs − t) in the second-order cone, Theorem 5."""
    rows, size = form.B.shape
    mu = sp.csr_array(([0.5, -0.5], ([0, 1], [size, size])), shape=(2, size + 1))
    z = sp.hstack([sp.csr_array(form.B), sp.csr_array((rows, 1))])
    u = ConeBlock(
        "second-order",
        sp.csr_array(sp.vstack([mu, z])),
        np.concatenate([[0.5, 0.5], -form.t]),
    )
    return ConicModel(
        _no_quadratic(size + 1), np.append(form.c, 1.0), (u, _semidefinite(form.order, 1))
    )


def schur_complement(form: QuadraticForm) -> ConicModel:
    """x = (s, μ): [[I, Bs − t], [(Bs − t)ᵀ, μ]] ⪰ 0, eq. (3.16)."""
    rows, size = form.B.shape
    above = triangle_size(rows)
    last_column = sp.block_diag([np.sqrt(2.0) * sp.csr_array(form.B), sp.eye_array(1)])
    arrow = ConeBlock(
        "semidefinite",
        sp.csr_array(sp.vstack([sp.csr_array((above, size + 1)), last_column])),
        np.concatenate([svec(np.eye(rows)), -np.sqrt(2.0) * form.t, [0.0]]),
        rows + 1,
    )
    return ConicModel(
        _no_quadratic(size + 1), np.append(form.c, 1.0), (arrow, _semidefinite(form.order, 1))
    )


def _semidefinite(order: int, others: int) -> ConeBlock:
    """M ⪰ 0, where `others` variables follow svec(M)."""
    size = triangle_size(order)
    G = sp.csr_array(sp.eye_array(size, size + others))
    return ConeBlock("semidefinite", G, np.zeros(size), order)


def _no_quadratic(size: int) -> sp.csc_array:
    return sp.csc_array((size, size))
