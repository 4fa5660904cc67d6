"""The default solver on a thousand random problems of every kind: what it gets wrong, if anything.

Each problem of `benchmarks.random_problems` goes to ``gm.minimize(problem, tol=1e-6)``. The point
returned is then set against the lowest value that anybody finds: points planted by construction,
a conic solver at small orders, the library's other solvers, and a descent from the best of them.
That value is an upper bound on F*, so a certificate whose lower bound lies above it is false.
"""

import signal
import statistics
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from benchmarks.random_problems import SEEDS, SEEDS_QUICK, RandomProblem, random_problem
from gramian.linalg.svec import smat, svec
from gramian.losses import Logistic, SmoothedHinge, SoftMin, SquaredHinge
from gramian.objectives import Composite, GramQuadratic, Objective, Sum
from gramian.objectives.dense import gradient_dense
from gramian.objectives.quadratic_form import QuadraticForm, quadratic_form

TITLE = "Robustness: the default solver on random problems of every kind"
PAPER = "No table of a paper"

TOLERANCE = 1e-6
SECONDS = 20.0
PATIENCE = 2.0
"""A solver still running after so many times its time limit hangs."""
LATE = 1.1
"""A solver that returns after so many times its limit, and a second, is late."""
BLOCK = 25

ROUNDING = 1e-9
"""A bound may lie this much above a value found, relative to the size of F: see `Sizes`."""
EVALUATION = 64 * np.finfo(float).eps
"""What a value can be off by, relative to the terms it is summed from at its own point."""
DOUBTFUL = 1e-12
"""Beyond this much it is listed all the same: summing F alone would not explain it."""
SLACK = 100.0
"""Without a gap, convergence is a statement on residuals; F may be off by more than they are."""

CONIC_ORDER = 25
CONIC_ROWS = 1000
REFERENCE_SECONDS, POLISH_SECONDS = 2.0, 0.3
AGREED = 1e-8
"""Once another solver is this close to the value found, or below it, no more are asked."""

CERTIFIED, NO_GAP, UNBOUNDED, HONEST, FALSE, WRONG, HANG, ERROR = VERDICTS = (
    "certified",
    "converged, no gap known",
    "unbounded, rightly",
    "not converged, and says so",
    "FALSE CERTIFICATE",
    "WRONG",
    "HANG",
    "ERROR",
)


@dataclass(frozen=True)
class Sizes:
    """What the numbers of a problem are measured by.

    F is a sum of terms that may cancel: with the constant, and within a loss that fits numbers as
    large as its targets, whose size F(0) shows. What cancels at a point of its own, however far
    out it lies, is in `magnitude`.
    """

    at_zero: float
    """|F(0)|: the scale of `Certificate.within`."""
    all: float
    """max(|F|, |best|, |F(0)|, |constant|): what rounding is relative to."""
    noise: float
    """What is left of rounding where all of these vanish: see `fall`."""


@dataclass
class Reference:
    """The lowest value anybody found, rounding added to it, and who."""

    value: float = np.inf
    by: str = "nobody"
    factor: np.ndarray | None = None
    others: float = np.inf
    """The lowest value of those who did not start from the answer under examination."""


@dataclass
class Examined:
    """One problem, solved and judged."""

    seed: int
    kind: str = ""
    twists: tuple[str, ...] = ()
    order: int = 0
    verdict: str = ERROR
    reason: str = ""
    status: str = ""
    value: float = np.nan
    gap: float | None = None
    """The certified gap in the measure that the tolerance is in."""
    above: float = np.nan
    """(value − best)/size."""
    excess: float = -np.inf
    """(lower bound − best)/size: not above 0, but for rounding, where the certificate is true."""
    best: float = np.nan
    by: str = ""
    others: float = np.nan
    """(best of the others − value)/size: how far the check is from the value it checks."""
    seconds: float = np.nan
    warned: list[str] = field(default_factory=list)


class HangError(Exception):
    """A solver did not come back; not an interrupt, which `minimize` would take for Ctrl-C."""


# --- one problem ---------------------------------------------------------------------


def examine(
    random: RandomProblem,
    *,
    seconds: float = SECONDS,
    reference_seconds: float = REFERENCE_SECONDS,
    guarded: bool = False,
) -> Examined:
    """Solve a problem by the default solver, find out what is true, and judge."""
    found = Examined(random.seed, random.kind, random.twists, random.order)
    guard = PATIENCE * seconds if guarded else None
    try:
        with warnings.catch_warnings(record=True) as raised, alarm(guard):
            warnings.simplefilter("always")
            result = gm.minimize(random.problem, tol=TOLERANCE, time_limit=seconds)
    except HangError:
        found.verdict, found.reason = HANG, f"still running after {guard:g} s"
        return found
    except Exception as error:
        found.verdict, found.reason = ERROR, _where(error)
        return found
    found.warned = sorted({f"{w.category.__name__}: {w.message}" for w in raised if _counts(w)})
    found.status, found.value = result.status.name, result.value
    found.seconds = result.seconds
    if flaw := broken(random.problem, result):
        found.verdict, found.reason = WRONG, flaw
        return found
    reference = find_reference(random, result, reference_seconds, guard)
    judge(found, random, result, reference)
    return found


def broken(problem: gm.Problem, result: gm.Result) -> str | None:
    """What is wrong with a result by itself."""
    if not np.isfinite(result.value):
        return f"the value is {result.value}"
    if not np.all(np.isfinite(result.factor)):
        return "the factor is not finite"
    value, trace = problem.value(result.factor), problem.domain.trace
    size = sizes(problem, result.value, value)
    allowed = ROUNDING * size.all + size.noise
    if abs(value - result.value) > allowed:
        return f"the value is {result.value:.12g}, but that of its factor {value:.12g}"
    if abs(result.certificate.value - result.value) > allowed:
        return f"the certificate is that of another point, with value {result.certificate.value}"
    if trace is not None and abs(np.sum(result.factor**2) - trace) > ROUNDING * trace:
        return f"the trace is {np.sum(result.factor**2):.12g} instead of {trace:.12g}"
    return None


def judge(found: Examined, random: RandomProblem, result: gm.Result, reference: Reference) -> None:
    """Fill in what the result is worth against the best value known."""
    certificate, status, problem = result.certificate, result.status, random.problem
    size = sizes(problem, result.value, reference.value)
    found.best, found.by = reference.value, reference.by
    found.above = _share(result.value - reference.value, size.all)
    found.others = _share(reference.others - result.value, size.all)
    optimal = certificate.within(TOLERANCE)
    if certificate.gap is not None:
        excess = certificate.lower_bound - reference.value - size.noise
        found.excess = _share(excess, size.all)
        measure = max(abs(result.value), abs(certificate.lower_bound), 1e-6 * size.at_zero)
        found.gap = _share(certificate.gap, measure)
    found.verdict, found.reason = _verdict(found, random, status, optimal, size)


def _verdict(
    found: Examined, random: RandomProblem, status: gm.Status, optimal: bool, size: Sizes
) -> tuple[str, str]:
    converged = status is gm.Status.CONVERGED
    if found.excess > ROUNDING:
        return FALSE, f"the lower bound is {found.excess:.1e} of F above the value of {found.by}"
    if status is gm.Status.UNBOUNDED and not random.bounded:
        return UNBOUNDED, ""
    if status is gm.Status.UNBOUNDED and "singular to rounding" in random.twists:
        return HONEST, "called unbounded, as the rounding of its data may be"
    if status is gm.Status.UNBOUNDED:
        return WRONG, "called unbounded, and is not"
    if converged and not random.bounded:
        return WRONG, "called converged, and has no minimum"
    if converged and not optimal:
        return WRONG, "called converged, against its own certificate"
    if found.gap is not None and optimal:
        return CERTIFIED, ""
    if not converged:
        return HONEST, f"{status.name}, {_gap_words(found.gap)}"
    allowed = SLACK * TOLERANCE * max(abs(found.value), 1e-6 * size.at_zero) + ROUNDING * size.all
    if found.value - found.best > allowed:
        return WRONG, f"called converged, but {found.by} is {found.above:.1e} of F lower"
    return NO_GAP, "converged by its residuals, no bound known"


def sizes(problem: gm.Problem, *values: float) -> Sizes:
    """The scale of a problem at points of these values."""
    at_zero = abs(problem.value(np.zeros((problem.order, 0))))
    known = at_zero, abs(problem.objective.constant), *map(abs, values)
    return Sizes(at_zero, max(known), 8 * EVALUATION * fall(problem))


def fall(problem: gm.Problem) -> float:
    """How far a quadratic falls along its steepest line at 0, were there no cone.

    Where M* = 0 and F has no constant, only this says what size its numbers have.
    """
    objective = problem.objective
    if problem.domain.trace is not None or not objective.facts.quadratic:
        return 0.0
    G = gradient_dense(objective, np.zeros((problem.order,) * 2))
    bend = float(np.sum(G * (gradient_dense(objective, G) - G)))
    slope = float(np.sum(G * G))
    return slope * slope / (2 * bend) if bend > 1e-12 * slope else 0.0


def magnitude(objective: Objective, L: np.ndarray) -> float:
    """The size of the terms that make up F at a factor: its value is rounded relative to them."""
    if isinstance(objective, Sum):
        return sum(magnitude(part, L) for part in objective.parts)
    image, M = objective.image(L), float(np.sum(L * L))
    if isinstance(objective, GramQuadratic):
        linear = 2 * float(np.linalg.norm(objective.C.dense(), 2)) * M
        quadratic = objective.value(image) - objective.constant - 2 * float(np.sum(L * image.CL))
        return abs(quadratic) + linear + abs(objective.constant)
    assert isinstance(objective, Composite)
    slope = objective.loss.gradient(image.z)
    linear = float(np.linalg.norm(objective.C.dense(), 2)) * M
    loss = abs(objective.loss.value(image.z)) + float(np.abs(slope) @ np.abs(image.z))
    return loss + linear + abs(objective.constant)


# --- what is true --------------------------------------------------------------------


def find_reference(
    random: RandomProblem, result: gm.Result, seconds: float, guard: float | None = None
) -> Reference:
    """The lowest value found by anybody, the examined point included."""
    reference, problem = Reference(), random.problem
    for factor in (_centre(problem), *map(random.from_plain, random.planted)):
        _offer(reference, problem, factor, "a planted point")
    if random.bounded:
        for name, solve in _solvers(random, seconds):
            size = sizes(problem, result.value).all
            if reference.value <= result.value + AGREED * size:
                break
            _offer(reference, problem, _attempt(solve, guard), name)
    reference.others = reference.value
    _offer(reference, problem, result.factor, "the answer itself")
    if random.bounded:
        polish = _polish(random, reference, min(POLISH_SECONDS, seconds))
        _offer(reference, problem, _attempt(polish, guard), f"a descent from {reference.by}")
    return reference


def _centre(problem: gm.Problem) -> np.ndarray:
    """M = 0, or the multiple of I that has the trace."""
    trace = problem.domain.trace
    if trace is None:
        return np.zeros((problem.order, 0))
    return np.sqrt(trace / problem.order) * np.eye(problem.order)


def _offer(reference: Reference, problem: gm.Problem, factor: Any, by: str) -> None:
    """Take a factor where it is better, moved onto the domain first."""
    if factor is None or not np.all(np.isfinite(factor)):
        return
    trace = problem.domain.trace
    if trace is not None and not factor.any():
        return
    if trace is not None:
        factor = factor * np.sqrt(trace / np.sum(factor * factor))
    value = problem.value(factor) + EVALUATION * magnitude(problem.objective, factor)
    if value < reference.value:
        reference.value, reference.by, reference.factor = value, by, factor


def _solvers(
    random: RandomProblem, seconds: float
) -> list[tuple[str, Callable[[], np.ndarray | None]]]:
    """The others, the most exact first; all see the problem in its plain scales."""
    plain = random.plain

    def by(name: str) -> Callable[[], np.ndarray]:
        settings = {"tol": 1e-10, "max_iter": 10**6, "time_limit": seconds}
        return lambda: random.from_plain(gm.minimize(plain, name, **settings).factor)

    def by_model() -> np.ndarray | None:
        factor = conic_factor(plain, seconds)
        return None if factor is None else random.from_plain(factor)

    small = plain.order <= CONIC_ORDER
    quadratic = quadratic_form_exists(plain.objective)
    exact = [("conic", by("conic") if quadratic else by_model)] if small else []
    factored = ["lbfgs", "bilgo"] if plain.domain.trace is None else ["frank-wolfe"]
    return [*exact, *((name, by(name)) for name in (*factored, "projected-gradient"))]


def _polish(
    random: RandomProblem, reference: Reference, seconds: float
) -> Callable[[], np.ndarray | None]:
    """Projected gradient from the lowest point known, in the plain scales."""

    def descend() -> np.ndarray | None:
        assert reference.factor is not None
        start = random.to_plain(reference.factor)
        settings = {"tol": 0.0, "max_iter": 10**6, "time_limit": seconds, "init": start}
        return random.from_plain(gm.minimize(random.plain, "projected-gradient", **settings).factor)

    return descend


def _attempt(solve: Callable[[], np.ndarray | None], guard: float | None) -> np.ndarray | None:
    """What a reference solver finds; whatever happens to it is not under examination."""
    try:
        with warnings.catch_warnings(), alarm(guard), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return solve()
    except Exception:
        return None


@contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Raise `HangError` after some seconds, where a limit is given."""

    def ring(*_: Any) -> None:
        raise HangError

    if seconds is None:
        yield
        return
    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}: {error}"


def _counts(warning: warnings.WarningMessage) -> bool:
    """A warning that the tolerance was not reached is an honest one."""
    return "Convergence" not in warning.category.__name__


def _share(part: float, whole: float) -> float:
    return 0.0 if part == 0 else part / max(whole, np.finfo(float).tiny)


def _gap_words(gap: float | None) -> str:
    return "nothing proved" if gap is None else f"gap {gap:.1e}"


# --- losses that are not squares, as conic models ------------------------------------


def quadratic_form_exists(objective: Objective) -> bool:
    if isinstance(objective, Sum):
        return all(quadratic_form_exists(part) for part in objective.parts)
    return objective.facts.quadratic


def conic_factor(problem: gm.Problem, seconds: float) -> np.ndarray | None:
    """A factor from Clarabel, None where it is not there or the model is too large for it."""
    try:
        import clarabel
    except ImportError:
        return None
    if _rows(problem.objective) > CONIC_ROWS:
        return None
    model = ConicModel(problem.order)
    model.add(problem.objective)
    if problem.domain.trace is not None:
        model.constrain("zero", [(0, svec(np.eye(problem.order))[None])], -problem.domain.trace)
    x = model.solve(clarabel, seconds)
    values, vectors = np.linalg.eigh(smat(x[: model.triangle], problem.order))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _rows(objective: Objective) -> int:
    if isinstance(objective, Sum):
        return sum(_rows(part) for part in objective.parts)
    return objective.map.size if isinstance(objective, Composite) else 0


Blocks = list[tuple[int, Any]]
"""Coefficients of consecutive variables: (the first of them, a matrix)."""


class ConicModel:
    """½xᵀPx + qᵀx with Gx + h in cones; x starts with svec(M)."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.triangle = self.size = order * (order + 1) // 2
        self.squares: list[tuple[int, Any, Any]] = []
        self.linear: list[tuple[int, np.ndarray]] = []
        self.rows: list[tuple[str, Blocks, np.ndarray]] = []
        self.constrain("semidefinite", [(0, np.eye(self.size))])

    def variables(self, count: int) -> int:
        """Make room for new variables and say where they start."""
        self.size += count
        return self.size - count

    def constrain(self, cone: str, blocks: Blocks, offset: Any = 0.0) -> None:
        count = blocks[0][1].shape[0]
        self.rows.append((cone, blocks, np.broadcast_to(np.asarray(offset, float), count)))

    def add(self, objective: Objective) -> None:
        """A part of F, up to constants."""
        if isinstance(objective, Sum):
            for part in objective.parts:
                self.add(part)
        elif objective.facts.quadratic:
            form = quadratic_form(objective)
            assert form is not None
            self._add_form(form)
        else:
            assert isinstance(objective, Composite)
            self.linear.append((0, svec(objective.C.dense())))
            units = np.eye(self.triangle)
            images = [objective.map.of_matrix(smat(unit, self.order)) for unit in units]
            _LOSSES[type(objective.loss)](self, objective.loss, np.column_stack(images))

    def _add_form(self, form: QuadraticForm) -> None:
        self.squares.append((0, form.B, np.full(form.B.shape[0], 2.0)))
        self.linear.append((0, form.c - 2 * (form.B.T @ form.t)))

    def solve(self, clarabel: Any, seconds: float) -> np.ndarray:
        P = sum(
            (B.T @ sp.diags_array(weight) @ B for B, weight in self._placed_squares()),
            sp.csc_array((self.size, self.size)),
        )
        q = np.zeros(self.size)
        for start, coefficients in self.linear:
            q[start : start + coefficients.size] += coefficients
        G = sp.vstack([sum(self._place(*block) for block in blocks) for _, blocks, _ in self.rows])
        h = np.concatenate([offset for _, _, offset in self.rows])
        cones = {
            "semidefinite": lambda rows: [clarabel.PSDTriangleConeT(self.order)],
            "zero": lambda rows: [clarabel.ZeroConeT(rows)],
            "nonnegative": lambda rows: [clarabel.NonnegativeConeT(rows)],
            "exponential": lambda rows: [clarabel.ExponentialConeT()] * (rows // 3),
        }
        chosen = [cone for kind, _, offset in self.rows for cone in cones[kind](offset.size)]
        options = clarabel.DefaultSettings()
        options.verbose, options.time_limit = False, seconds
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(sp.triu(P)), q, sp.csc_matrix(-G), h, chosen, options
        )
        return np.asarray(solver.solve().x)

    def _placed_squares(self) -> Iterator[tuple[Any, Any]]:
        for start, B, weight in self.squares:
            yield self._place(start, B), weight

    def _place(self, start: int, matrix: Any) -> sp.csr_array:
        """The coefficients over all of x."""
        entries = sp.coo_array(matrix)
        row, column = entries.coords
        shape = entries.shape[0], self.size
        return sp.csr_array((entries.data, (row, column + start)), shape=shape)


def _squared_hinge(model: ConicModel, loss: SquaredHinge, z: np.ndarray) -> None:
    """u ≥ m − z, u ≥ 0, min Σ ω u²."""
    unit = sp.eye_array(len(z))
    u = model.variables(len(z))
    model.squares.append((u, unit, 2 * np.broadcast_to(loss.weight, len(z))))
    model.constrain("nonnegative", [(u, unit)])
    model.constrain("nonnegative", [(0, z), (u, unit)], -loss.centre)


def _smoothed_hinge(model: ConicModel, loss: SmoothedHinge, z: np.ndarray) -> None:
    """a + b ≥ m − z, a, b ≥ 0, min Σ ω (a²/2μ + b)."""
    unit, weight = sp.eye_array(len(z)), np.broadcast_to(loss.weight, len(z))
    a, b = model.variables(len(z)), model.variables(len(z))
    model.squares.append((a, unit, weight / loss.mu))
    model.linear.append((b, weight))
    model.constrain("nonnegative", [(a, unit)])
    model.constrain("nonnegative", [(b, unit)])
    model.constrain("nonnegative", [(0, z), (a, unit), (b, unit)], -loss.centre)


def _logistic(model: ConicModel, loss: Logistic, z: np.ndarray) -> None:
    """exp(m − z − t) ≤ p, exp(−t) ≤ q, p + q ≤ 1, min Σ ω t."""
    count, unit = len(z), sp.eye_array(len(z))
    t, p, q = (model.variables(count) for _ in range(3))
    model.linear.append((t, np.broadcast_to(loss.weight, count)))
    model.constrain("nonnegative", [(p, -unit), (q, -unit)], 1.0)
    _below(model, [(0, -z), (t, -unit)], loss.centre, p)
    _below(model, [(t, -unit)], 0.0, q)


def _soft_min(model: ConicModel, loss: SoftMin, z: np.ndarray) -> None:
    """exp(−z/μ − t) ≤ p, Σ p ≤ 1, min μ t."""
    count = len(z)
    t, p = model.variables(1), model.variables(count)
    model.linear.append((t, np.array([loss.mu])))
    model.constrain("nonnegative", [(p, -np.ones((1, count)))], 1.0)
    _below(model, [(0, -z / loss.mu), (t, -np.ones((count, 1)))], 0.0, p)


def _below(model: ConicModel, exponents: Blocks, offset: Any, bounds: int) -> None:
    """exp(exponent + offset) ≤ bound, row by row: (exponent + offset, 1, bound) in the cone."""
    count = exponents[0][1].shape[0]
    first, last = (sp.kron(sp.eye_array(count), column) for column in _FIRST_AND_LAST)
    blocks = [(start, first @ sp.csr_array(matrix)) for start, matrix in exponents]
    h = np.tile([0.0, 1.0, 0.0], count)
    h[::3] = offset
    model.constrain("exponential", [*blocks, (bounds, last)], h)


_FIRST_AND_LAST = (np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [0.0], [1.0]]))

_LOSSES: dict[type, Callable[[ConicModel, Any, np.ndarray], None]] = {
    SquaredHinge: _squared_hinge,
    SmoothedHinge: _smoothed_hinge,
    Logistic: _logistic,
    SoftMin: _soft_min,
}


# --- all problems --------------------------------------------------------------------


def run(ctx: Context) -> Report:
    """Every seed, in blocks that have a process of their own."""
    seeds = list(SEEDS_QUICK if ctx.quick else SEEDS)
    examined: list[Examined] = []
    for start in range(0, len(seeds), BLOCK):
        examined += examine_block(ctx, seeds[start : start + BLOCK])
    tables = [
        _by("verdict on all", examined, lambda e: ["all"]),
        _by("kind", examined, lambda e: [e.kind]),
        _by("twist", examined, lambda e: e.twists or ("none",)),
        _by("order", examined, lambda e: [_band(e.order)]),
        _faults(examined),
        _uncertified(examined),
        _slowest(examined),
    ]
    return ctx.report(tables, _notes(examined))


def measure(seeds: Sequence[int], seconds: float) -> list[Examined]:
    """A block of problems: what a child process does."""
    return [examine(random_problem(seed), seconds=seconds, guarded=True) for seed in seeds]


def examine_block(ctx: Context, seeds: list[int]) -> list[Examined]:
    """A block; if its process fails, its problems one by one to see which of them it was."""
    child = _child(ctx, seeds)
    if child.ok:
        return child.value
    if len(seeds) > 1:
        return [examined for seed in seeds for examined in examine_block(ctx, [seed])]
    random = random_problem(seeds[0])
    return [
        Examined(
            random.seed,
            random.kind,
            random.twists,
            random.order,
            HANG if child.timed_out else ERROR,
            str(child.error),
        )
    ]


def _child(ctx: Context, seeds: list[int]) -> Any:
    """The guard inside stops what Python can stop; the time-out here stops the rest."""
    kwargs = {"seeds": seeds, "seconds": SECONDS}
    most = len(seeds) * (PATIENCE * SECONDS + 10 * REFERENCE_SECONDS) + 60.0
    return ctx.in_child("benchmarks.robustness:measure", kwargs, most, threads=1)


def _by(name: str, examined: list[Examined], groups: Callable[[Examined], Sequence[str]]) -> Table:
    """How many of each verdict, for each group that a problem belongs to."""
    table = Table(
        f"By {name}", [name, "problems", *VERDICTS, "% certified", "median s", "longest s"]
    )
    members: dict[str, list[Examined]] = {}
    for one in examined:
        for group in groups(one):
            members.setdefault(group, []).append(one)
    for group, some in sorted(members.items()):
        counts = Counter(one.verdict for one in some)
        seconds = [one.seconds for one in some if np.isfinite(one.seconds)] or [np.nan]
        table.add(
            group,
            len(some),
            *(counts[verdict] for verdict in VERDICTS),
            100 * counts[CERTIFIED] / len(some),
            statistics.median(seconds),
            max(seconds),
        )
    return table


def _band(order: int) -> str:
    limits = (1, 2, 5, 10, 25, 60)
    below = next(limit for limit in limits if order <= limit)
    return f"≤ {below:2d}"


def _is_fault(one: Examined) -> bool:
    bad = one.verdict in (FALSE, WRONG, HANG, ERROR)
    return bad or bool(one.warned) or one.excess > DOUBTFUL


def _faults(examined: list[Examined]) -> Table:
    table = Table(
        "Faults: false certificates, wrong answers, hangs, errors, warnings, and bounds above the "
        f"best value by more than {DOUBTFUL:g} of F",
        ["seed", "kind", "twists", "order", "verdict", "reason", "bound − best", "status"],
    )
    for one in filter(_is_fault, examined):
        reason = "; ".join(filter(None, [one.reason, *one.warned]))
        twists = ", ".join(one.twists)
        table.add(one.seed, one.kind, twists, one.order, one.verdict, reason, one.excess,
                  one.status)  # fmt: skip
    return table


def _uncertified(examined: list[Examined]) -> Table:
    table = Table(
        "Not certified, without a fault",
        ["seed", "kind", "twists", "order", "reason", "(F − best)/size", "best by", "s"],
    )
    for one in examined:
        if one.verdict in (HONEST, NO_GAP):
            twists = ", ".join(one.twists)
            table.add(one.seed, one.kind, twists, one.order, one.reason, one.above, one.by,
                      one.seconds)  # fmt: skip
    return table


def _slowest(examined: list[Examined]) -> Table:
    table = Table("The slowest ten", ["seed", "kind", "twists", "order", "verdict", "gap", "s"])
    timed = [one for one in examined if np.isfinite(one.seconds)]
    for one in sorted(timed, key=lambda one: -one.seconds)[:10]:
        twists = ", ".join(one.twists)
        table.add(one.seed, one.kind, twists, one.order, one.verdict, one.gap, one.seconds)
    return table


def _notes(examined: list[Examined]) -> list[str]:
    counts = Counter(one.verdict for one in examined)
    judged = [one for one in examined if np.isfinite(one.others)]
    agreed = sum(one.others <= TOLERANCE for one in judged)
    late = sum(one.seconds > LATE * SECONDS + 1 for one in examined)
    total = sum(one.seconds for one in examined if np.isfinite(one.seconds))
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    return [
        f"{len(examined)} problems, tolerance {TOLERANCE:g}, time limit {SECONDS:g} s: {verdicts}.",
        f"In {agreed} of {len(judged)} problems somebody who did not start from the answer came "
        f"within {TOLERANCE:g} of its value or below it; in the others the check is weaker.",
        f"A certificate is called false where its lower bound lies above the best value by more "
        f"than {ROUNDING:g}·max(|F|, |best|, |F(0)|, |constant|); the best value counts with the "
        "rounding of its own terms added.",
        f"Certified: the gap is at most {TOLERANCE:g}·max(|F|, |lower bound|, 1e-6·|F(0)|), as "
        f"the solvers stop. Without a gap, F may lie {SLACK:g} times that above the best value.",
        f"{late} runs returned later than {LATE:g} times the limit and a second; the runs took "
        f"{total:.0f} s in all.",
    ]
