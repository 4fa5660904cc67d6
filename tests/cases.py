"""Small problems whose optimum is known by another route: a closed form, or a conic solver."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import scipy.linalg
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian import problems
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Entries, PairDistances, triplet_margins
from gramian.objectives import Composite, GramQuadratic, LowRankPlusIdentity, Sum
from tests.conic import Term, conic_minimum

N = 6


@dataclass(frozen=True)
class Case:
    """A problem and its minimum F*."""

    name: str
    make: Callable[[], gm.Problem]
    reference: Callable[[], float]

    @cached_property
    def problem(self) -> gm.Problem:
        return self.make()

    @cached_property
    def optimum(self) -> float:
        return self.reference()

    def __str__(self) -> str:
        return self.name


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    S = rng.standard_normal((n, n))
    return (S + S.T) / 2


def psd(rng: np.random.Generator, n: int, rank: int | None = None) -> np.ndarray:
    S = rng.standard_normal((n, rank or n))
    return S @ S.T / n


# --- the ingredients -----------------------------------------------------------------

_rng = np.random.default_rng(7)
PAIRS = np.array([(i, j) for i in range(N) for j in range(i + 1)])
"""Every entry of the triangle, diagonal included."""
EDGES = PAIRS[PAIRS[:, 0] != PAIRS[:, 1]]
SPARSE_EDGES = EDGES[[0, 1, 4, 7, 8, 12, 14]]
TRIPLETS = np.array([_rng.choice(N, 3, replace=False) for _ in range(25)])
TARGET = _rng.standard_normal(len(PAIRS)) + (PAIRS[:, 0] == PAIRS[:, 1])
LENGTHS = _rng.uniform(0.2, 2.0, len(EDGES))
SIGNS = _rng.uniform(0.5, 1.5, len(EDGES))
X = _rng.standard_normal((30, 5)) + np.repeat([[0.0], [1.0], [-1.0]], 10, axis=0)
Y = np.repeat(np.eye(3), 10, axis=0)
LABELS = np.repeat([4, 7, 9], 10)
ROTATION = scipy.linalg.qr(_rng.standard_normal((N, N)))[0]
A1 = (ROTATION * _rng.uniform(0.1, 2.0, N)) @ ROTATION.T
B1 = (ROTATION * _rng.uniform(0.1, 2.0, N)) @ ROTATION.T
A2, B2 = psd(_rng, N), psd(_rng, N) + 0.1 * np.eye(N)
C0 = symmetric(_rng, N)
K0 = symmetric(_rng, N)


def entries(M: np.ndarray) -> np.ndarray:
    return M[PAIRS[:, 0], PAIRS[:, 1]]


def distances(pairs: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    i, j = pairs.T
    return lambda M: M[i, i] + M[j, j] - 2 * M[i, j]


def margins(M: np.ndarray) -> np.ndarray:
    return distances(TRIPLETS[:, [0, 2]])(M) - distances(TRIPLETS[:, [0, 1]])(M)


def gram_terms(A: np.ndarray, B: np.ndarray) -> list[Term]:
    """tr((AM)²) = ‖A^½MA^½‖² and tr(BM²) = ‖B^½M‖²."""
    a, b = (np.real(scipy.linalg.sqrtm(S)) for S in (A, B))
    return [Term("squared", lambda M: (a @ M @ a).ravel()), Term("squared", lambda M: b @ M)]


def kta_reference(lam: float, regularizer: str) -> float:
    order, target = X.shape[1], (Y @ Y.T).ravel()
    terms = [Term("squared", lambda M: (X @ M @ X.T).ravel(), target, lam)]
    if regularizer != "trace":
        centre = np.eye(order).ravel() if regularizer == "identity" else 0.0
        terms.append(Term("squared", np.ravel, centre))
    return conic_minimum(order, terms, np.eye(order) if regularizer == "trace" else None)


def signed_scatter() -> np.ndarray:
    """Σ over pairs of ±(x_i − x_j)(x_i − x_j)ᵀ, one pair at a time."""
    scatter = np.zeros((X.shape[1],) * 2)
    for i in range(len(X)):
        for j in range(i):
            sign = 1.0 if LABELS[i] == LABELS[j] else -1.0
            scatter += sign * np.outer(X[i] - X[j], X[i] - X[j])
    return scatter


def separation_reference(lam: float) -> float:
    """d − ‖P₊(I − λL_S/2)‖²."""
    values = np.linalg.eigvalsh(np.eye(X.shape[1]) - lam * signed_scatter() / 2)
    return X.shape[1] - float(np.sum(np.maximum(values, 0.0) ** 2))


COLLAPSED = X[::3], LABELS[::3]


def collapse_reference(ridge: float) -> float:
    """Soft minima of one anchor each, and the scatter of the pairs within classes."""
    samples, labels = COLLAPSED
    order, terms, scatter = samples.shape[1], [], np.zeros((samples.shape[1],) * 2)
    for i, label in enumerate(labels):
        gaps = np.delete(samples - samples[i], i, axis=0)
        own = gaps[np.delete(labels == label, i)]
        scatter += own.T @ own / len(own)
        terms.append(
            Term("soft-min", lambda M, gaps=gaps: np.einsum("ij,jk,ik->i", gaps, M, gaps), mu=1.0)
        )
    return conic_minimum(order, terms, scatter + ridge * np.trace(scatter) / order * np.eye(order))


def cone(objective, name="test"):
    return gm.Problem(objective, name=name)


def soft_min_problem(mu: float = 0.05, trace: float = 1.0) -> gm.Problem:
    return gm.Problem(
        Composite(PairDistances(SPARSE_EDGES, N), SoftMin(mu=mu)),
        gm.Spectrahedron(trace),
        name="soft-min",
    )


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    data, labels = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(data), labels


def digits_kta() -> gm.Problem:
    return problems.kta(*digits(), 1e-3)


def digits_bound() -> gm.Problem:
    """‖M‖² + tr M + λ‖XMXᵀ − YYᵀ‖²: the cone binds."""
    data, labels = digits()
    lam, one_hot = 1e-3, np.eye(10)[labels]
    sums = data.T @ one_hot
    C = LowRankPlusIdentity(64, 0.5, sums, np.full(10, -lam))
    constant = lam * float(np.sum(one_hot.sum(axis=0) ** 2))
    A = np.sqrt(lam) * data.T @ data
    return cone(GramQuadratic((A + A.T) / 2, 1.0, C, constant=constant))


# --- the table -----------------------------------------------------------------------


def squared_entries():
    return cone(Composite(Entries(PAIRS, N), Squared(TARGET, weight=0.5), 0.3))


def squared_distances():
    return cone(Composite(PairDistances(EDGES, N), Squared(LENGTHS), 0.2))


def hinge_triplets():
    return cone(Composite(triplet_margins(TRIPLETS, N), SquaredHinge(1.0, weight=2.0), 0.5))


def smoothed_triplets():
    return cone(Composite(triplet_margins(TRIPLETS, N), SmoothedHinge(1.0, mu=0.5), 0.5))


def logistic_distances():
    return cone(Composite(PairDistances(EDGES, N), Logistic(SIGNS), 0.4, constant=2.0))


def sum_of_two():
    quadratic = GramQuadratic(A2, B2, C0)
    return cone(Sum([quadratic, Composite(Entries(PAIRS, N), SquaredHinge(TARGET), 0.1)]))


def _conic(terms, C=None, **options):
    return lambda: conic_minimum(N, terms, C, **options)


CASES = [
    Case(
        "quadratic-commuting",
        lambda: problems.quadratic(A1, B1, C0),
        _conic(gram_terms(A1, B1), 2 * C0),
    ),
    Case(
        "quadratic-non-commuting",
        lambda: problems.quadratic(A2, B2, C0),
        _conic(gram_terms(A2, B2), 2 * C0),
    ),
    Case(
        "top-eigen",
        lambda: problems.top_eigen(K0),
        lambda: float(np.sum(np.minimum(np.linalg.eigvalsh(K0), 0.0) ** 2)),
    ),
    *(
        Case(
            f"kta-{name}",
            lambda name=name: problems.kta(X, LABELS, 1e-2, regularizer=name),
            lambda name=name: kta_reference(1e-2, name),
        )
        for name in ("identity", "frobenius", "trace")
    ),
    Case(
        "linear-separation",
        lambda: problems.linear_separation(X, LABELS, 1e-2),
        lambda: separation_reference(1e-2),
    ),
    Case(
        "squared-entries",
        squared_entries,
        _conic([Term("squared", entries, TARGET, 0.5)], 0.3 * np.eye(N)),
    ),
    Case(
        "squared-distances",
        squared_distances,
        _conic([Term("squared", distances(EDGES), LENGTHS)], 0.2 * np.eye(N)),
    ),
    Case(
        "squared-hinge-triplets",
        hinge_triplets,
        _conic([Term("squared-hinge", margins, 1.0, 2.0)], 0.5 * np.eye(N)),
    ),
    Case(
        "smoothed-hinge-triplets",
        smoothed_triplets,
        _conic([Term("smoothed-hinge", margins, 1.0, mu=0.5)], 0.5 * np.eye(N)),
    ),
    Case(
        "logistic-distances",
        logistic_distances,
        lambda: (
            2.0 + conic_minimum(N, [Term("logistic", distances(EDGES), SIGNS)], 0.4 * np.eye(N))
        ),
    ),
    Case(
        "soft-min-spectrahedron",
        soft_min_problem,
        _conic([Term("soft-min", distances(SPARSE_EDGES), mu=0.05)], trace=1.0),
    ),
    Case(
        "class-collapse",
        lambda: problems.class_collapse(*COLLAPSED, ridge=0.1),
        lambda: collapse_reference(0.1),
    ),
    Case(
        "sum",
        sum_of_two,
        _conic(
            [*gram_terms(A2, B2), Term("squared-hinge", entries, TARGET)],
            2 * C0 + 0.1 * np.eye(N),
        ),
    ),
]
BY_NAME = {case.name: case for case in CASES}
