"""Points found without the library: any upper bound on F* can expose a false gap.

A conic model for Clarabel where that is installed, and a descent on the factor. Both work in
double precision on a dense matrix of the map over svec(M); what their points are worth is then
evaluated by the formula in extended precision, so that no error of theirs can raise an alarm.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from benchmarks._attack.formulas import Formula, Term, outer
from benchmarks._attack.losses import Squares

CONIC_ORDER, CONIC_ROWS, DENSE_SIZE = 12, 300, 2_000_000
DESCENTS = 120


def points(formula: Formula, starts: Sequence[np.ndarray], seconds: float) -> Iterator[Any]:
    """Factors that may be better than the known ones, with the name of the method."""
    if formula.order > 60:
        return
    dense = DenseForm(formula)
    if dense.rows > DENSE_SIZE / dense.triangle:
        return
    if formula.order <= CONIC_ORDER and dense.rows <= CONIC_ROWS:
        factor = _quietly(lambda: conic_factor(dense, seconds))
        if factor is not None:
            yield "a conic model", factor
            starts = [factor, *starts]
    for start in starts:
        factor = _quietly(lambda start=start: descent(dense, start))
        if factor is not None:
            yield "a descent", factor


def _quietly(find: Any) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"):
            factor = find()
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Clarabel's own
            raise
        return None
    return factor if factor is not None and np.all(np.isfinite(factor)) else None


class DenseForm:
    """F over s = svec(M): losses of Rs, a linear term, a constant."""

    def __init__(self, formula: Formula) -> None:
        n = self.order = formula.order
        self.formula, self.trace = formula, formula.trace
        self.j, self.i = np.tril_indices(n)
        self.scale = np.where(self.i == self.j, 1.0, np.sqrt(2.0))
        self.triangle = self.i.size
        self.terms = [*formula.terms, *_gram_terms(formula)]
        self.images = [self._image(term) for term in self.terms]
        self.rows = sum(len(R) for R in self.images)
        self.c = self._linear()

    def _image(self, term: Term) -> np.ndarray:
        """The matrix of svec(M) ↦ 𝒜(M), by polarisation."""
        unit = np.eye(self.order)
        single = term.forms(unit).astype(float)
        both = term.forms(unit[:, self.i] + unit[:, self.j]).astype(float)
        cross = both.reshape(len(single), -1, self.triangle).sum(axis=1)
        single = single.reshape(len(single), -1, self.order).sum(axis=1)
        pairs = (cross - single[:, self.i] - single[:, self.j]) / 2
        return pairs * self.scale

    def _linear(self) -> np.ndarray:
        C = self.formula.C
        n = self.order
        M = np.zeros((n, n))
        if C is not None:
            M += C.toarray() if sp.issparse(C) else C * np.eye(n) if np.ndim(C) == 0 else C
        return self.scale * M[self.i, self.j].astype(float)

    def svec(self, M: np.ndarray) -> np.ndarray:
        return self.scale * M[self.i, self.j]

    def smat(self, s: np.ndarray) -> np.ndarray:
        M = np.zeros((self.order, self.order))
        M[self.i, self.j] = M[self.j, self.i] = s / self.scale
        return M

    def value_gradient(self, M: np.ndarray) -> tuple[float, np.ndarray]:
        s = self.svec(M)
        value, slope = float(self.c @ s), self.c.copy()
        for term, R in zip(self.terms, self.images, strict=True):
            z = R @ s
            value += float(np.sum(term.loss.terms(z)))
            slope += R.T @ np.asarray(term.loss.slope(z), dtype=float)
        return value, self.smat(slope)


def _gram_terms(formula: Formula) -> Iterator[Term]:
    """tr((AM)²) = ‖A^½MA^½‖² and tr(BM²) = ‖B^½M‖²."""
    n = formula.order
    if formula.A is not None:
        yield Term(Squares(), outer(_root(formula.A, n), _root(formula.A, n)))
    if formula.B is not None:
        yield Term(Squares(), outer(_root(formula.B, n)))


def _root(matrix: Any, n: int) -> np.ndarray:
    full = matrix.toarray() if sp.issparse(matrix) else matrix
    full = full * np.eye(n) if np.ndim(full) == 0 else np.asarray(full, dtype=float)
    values, vectors = np.linalg.eigh(full)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def descent(dense: DenseForm, start: np.ndarray) -> np.ndarray:
    """L-BFGS on a full factor, scaled to the size of the start."""
    n = dense.order
    rng = np.random.default_rng(0)
    size = float(np.linalg.norm(start)) or 1.0
    L0 = np.zeros((n, n))
    L0[:, : min(n, start.shape[1])] = start[:, :n] / size
    L0 += 1e-6 * rng.standard_normal((n, n))
    F0 = abs(dense.value_gradient(size * size * L0 @ L0.T)[0]) or 1.0

    def of(x: np.ndarray) -> tuple[float, np.ndarray]:
        L = x.reshape(n, n)
        scale, shrink = size, 1.0
        if dense.trace is not None:
            shrink = float(np.sqrt(np.sum(L * L)))
            scale = float(np.sqrt(dense.trace)) / shrink
        value, G = dense.value_gradient(scale * scale * L @ L.T)
        slope = 2 * scale * scale * (G @ L)
        if dense.trace is not None:
            slope -= L * (np.sum(slope * L) / shrink**2)
        return value / F0, slope.ravel() / F0

    options = {"maxiter": DESCENTS, "ftol": 0.0, "gtol": 1e-14, "maxcor": 20}
    x = scipy.optimize.minimize(of, L0.ravel(), jac=True, method="L-BFGS-B", options=options).x
    L = x.reshape(n, n)
    return L * (size if dense.trace is None else np.sqrt(dense.trace / np.sum(L * L)))


# --- the conic model -----------------------------------------------------------------


def conic_factor(dense: DenseForm, seconds: float) -> np.ndarray | None:
    """Clarabel's solution, projected onto the cone; None if it is not installed or fails."""
    try:
        import clarabel
    except ImportError:
        return None
    model = ConicModel(dense)
    for term, R in zip(dense.terms, dense.images, strict=True):
        term.loss.model(model, R)
    s = model.solve(clarabel, seconds)
    if s is None:
        return None
    values, vectors = np.linalg.eigh(dense.smat(s))
    factor: np.ndarray = vectors * np.sqrt(np.maximum(values, 0.0))
    return factor if dense.trace is None or factor.any() else None


class ConicModel:
    """½xᵀPx + qᵀx with Gx + h in cones; x starts with svec(M)."""

    def __init__(self, dense: DenseForm) -> None:
        self.order, self.size = dense.order, dense.triangle
        self.squares: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.linear = [dense.c]
        self.rows: list[tuple[str, np.ndarray, np.ndarray]] = []
        self._constrain("psd", [np.eye(self.size)])
        if dense.trace is not None:
            self.zero([dense.svec(np.eye(dense.order))[None]], -dense.trace)

    def variables(self, count: int) -> np.ndarray:
        """The rows that select `count` new variables."""
        rows = np.zeros((count, self.size + count))
        rows[:, self.size :] = np.eye(count)
        self.size += count
        return rows

    def sum(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The sum of rows over different numbers of variables."""
        total = np.zeros((len(parts[0]), self.size))
        for part in parts:
            total[:, : part.shape[1]] += part.astype(float)
        return total

    def add_linear(self, coefficients: np.ndarray) -> None:
        self.linear.append(np.asarray(coefficients, dtype=float))

    def add_squares(self, rows: np.ndarray, weight: Any, target: Any = 0.0) -> None:
        weight, target = (np.broadcast_to(v, len(rows)).astype(float) for v in (weight, target))
        self.squares.append((np.asarray(rows, dtype=float), weight, target))

    def nonnegative(self, parts: Sequence[np.ndarray], offset: Any = 0.0) -> None:
        self._constrain("nonnegative", parts, offset)

    def zero(self, parts: Sequence[np.ndarray], offset: Any = 0.0) -> None:
        self._constrain("zero", parts, offset)

    def exponentials(
        self, exponents: Sequence[np.ndarray], bounds: np.ndarray, offset: Any = 0.0
    ) -> None:
        """exp(exponent·x + offset) ≤ bound·x for each row."""
        e, upper = self.sum(exponents), self.sum([bounds])
        rows = np.stack([e, 0 * e, upper], axis=1).reshape(3 * len(e), -1)
        h = np.tile([0.0, 1.0, 0.0], len(e))
        h[::3] = np.broadcast_to(offset, len(e)).astype(float)
        self._constrain("exponential", [rows], h)

    def _constrain(self, cone: str, parts: Sequence[np.ndarray], offset: Any = 0.0) -> None:
        rows = self.sum(parts)
        self.rows.append((cone, rows, np.broadcast_to(offset, len(rows)).astype(float)))

    def solve(self, clarabel: Any, seconds: float) -> np.ndarray | None:
        n = self.size
        P, q = np.zeros((n, n)), np.zeros(n)
        for rows, weight, target in self.squares:
            k = rows.shape[1]
            P[:k, :k] += 2 * (rows.T * weight) @ rows
            q[:k] -= 2 * (weight * target) @ rows
        for coefficients in self.linear:
            q[: coefficients.size] += coefficients
        G = np.vstack([np.pad(r, ((0, 0), (0, n - r.shape[1]))) for _, r, _ in self.rows])
        h = np.concatenate([offset for _, _, offset in self.rows])
        if not (np.all(np.isfinite(P)) and np.all(np.isfinite(G))):
            return None
        kinds = {
            "psd": lambda m: [clarabel.PSDTriangleConeT(self.order)],
            "zero": lambda m: [clarabel.ZeroConeT(m)],
            "nonnegative": lambda m: [clarabel.NonnegativeConeT(m)],
            "exponential": lambda m: [clarabel.ExponentialConeT()] * (m // 3),
        }
        options = clarabel.DefaultSettings()
        options.verbose, options.time_limit = False, seconds
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
        cones = [c for kind, _, offset in self.rows for c in kinds[kind](len(offset))]
        problem = sp.csc_matrix(np.triu(P)), q, sp.csc_matrix(-G), h, cones, options
        x = np.asarray(clarabel.DefaultSolver(*problem).solve().x)
        return x[: self.triangle] if np.all(np.isfinite(x)) else None

    @property
    def triangle(self) -> int:
        return self.order * (self.order + 1) // 2
