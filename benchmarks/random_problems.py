"""Random problems of every kind the library has, twisted where solvers break; one for each seed.

`random_problem(seed)` draws a kind, an order from 1 to 60 (log-uniform, so many are small), data,
and twists: numbers of very different sizes, degenerate data, optima at zero, infima that are not
attained, problems without a minimum. What is known of the optimum by construction comes along.
As a benchmark of its own this module counts what the seeds of the robustness sweep draw.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.losses import Logistic, Loss, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, LinearMap, Mix, PairDistances, triplet_margins
from gramian.objectives import Composite, GramQuadratic, LowRankPlusIdentity, Objective, Sum

TITLE = "What the robustness sweep draws"
PAPER = "No table of a paper"

LARGEST_ORDER = 60
MOST_CONSTRAINTS = 1500
SEEDS, SEEDS_QUICK = range(1000), range(100)

RAY = tuple(10.0**k for k in range(0, 13, 2))
"""How far along a ray the points that show a fall without end are planted."""


@dataclass(frozen=True)
class RandomProblem:
    """A problem, what it is made of, and what is known of it by construction."""

    seed: int
    problem: gm.Problem
    kind: str
    twists: tuple[str, ...]
    bounded: bool
    """Whether F has an infimum."""
    plain: gm.Problem
    """The same problem before its scales were changed, where another solver has it easier."""
    stretch: np.ndarray
    """Row factors that take a factor of the plain problem to one of the problem."""
    planted: tuple[np.ndarray, ...]
    """Factors of the plain problem that are optimal, or that run towards the infimum."""

    @property
    def order(self) -> int:
        return self.problem.order

    @property
    def label(self) -> str:
        return ", ".join([self.kind, *self.twists])

    def from_plain(self, factor: np.ndarray) -> np.ndarray:
        """The factor of the problem that belongs to one of the plain problem."""
        return self.stretch[:, None] * factor

    def to_plain(self, factor: np.ndarray) -> np.ndarray:
        """The factor of the plain problem that belongs to one of the problem."""
        return factor / self.stretch[:, None]


@dataclass(frozen=True)
class Drawn:
    """A problem before its scales are changed."""

    problem: gm.Problem
    planted: tuple[np.ndarray, ...] = ()
    bounded: bool = True
    scalable: bool = True
    """Whether M may be measured in other units: an identity in the formula forbids it."""


class Dice:
    """The random numbers of one problem, and the twists that came up."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 2024])
        self.twists: list[str] = []
        self.drawn_order = int(np.exp(self.rng.uniform(0.0, np.log(LARGEST_ORDER + 1))))

    def order(self, least: int = 1) -> int:
        return max(self.drawn_order, least)

    def twist(self, name: str, probability: float) -> bool:
        """Whether a twist comes up; if so, it is written down."""
        came_up = self.chance(probability)
        if came_up:
            self.note(name)
        return came_up

    def note(self, twist: str) -> None:
        if twist not in self.twists:
            self.twists.append(twist)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choice(self, options: Iterable[Any]) -> Any:
        options = list(options)
        return options[self.rng.integers(len(options))]

    def power(self, low: float, high: float, size: int | None = None) -> Any:
        """10 to a power drawn between two."""
        return 10.0 ** self.rng.uniform(low, high, size)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape)

    def symmetric(self, n: int) -> np.ndarray:
        return _symmetric(self.normal(n, n)) * self.power(-1, 1)

    def rotation(self, n: int) -> np.ndarray:
        return np.linalg.qr(self.normal(n, n))[0]

    def definite(self, n: int, V: np.ndarray | None = None, *, decades: float = 1.0) -> np.ndarray:
        """A positive definite matrix, in the eigenvectors given."""
        V = self.rotation(n) if V is None else V
        return _symmetric((V * self.power(-decades, decades, n)) @ V.T)

    def semidefinite(self, n: int) -> np.ndarray:
        """A singular PSD matrix: exactly so, or as products of floats are, to rounding."""
        rank = int(self.rng.integers(0, n))
        if self.twist("singular to rounding", 0.3):
            S = self.normal(n, rank)
            return S @ S.T / n
        places = self.rng.permutation(n)
        return _padded(self.definite(rank), n)[np.ix_(places, places)]

    def factor(self, n: int, trace: float | None = None) -> np.ndarray:
        """A factor of a random rank, of the trace given if one is."""
        L = self.normal(n, int(self.rng.integers(1, min(n, 6) + 1)))
        return L if trace is None else L * np.sqrt(trace / np.sum(L * L))

    def domain(self) -> Any:
        if self.twist("fixed trace", 0.25):
            return gm.Spectrahedron(float(self.power(-2, 2)))
        return gm.PSDCone()

    def coordinates(self, n: int) -> np.ndarray:
        """Factors of one coordinate or a few; ones unless the twist comes up."""
        d = np.ones(n)
        if self.twist("ill-conditioned", 0.18):
            chosen = self.rng.permutation(n)[: self.rng.integers(1, max(2, n // 4) + 1)]
            d[chosen] = self.power(-3, 3, chosen.size)
        return d

    def samples(self, count: int, n: int) -> np.ndarray:
        """Rows of data, perhaps degenerate or badly scaled."""
        X = self.normal(count, n)
        if self.twist("rank-one data", 0.06):
            X = np.outer(self.normal(count), self.normal(n))
        if self.twist("duplicate points", 0.08):
            X = X[self.rng.integers(0, max(1, count // 2), count)]
        if self.twist("zero rows", 0.06):
            X[self.rng.random(count) < 0.4] = 0.0
        if self.twist("zero feature", 0.05):
            X[:, self.rng.integers(n)] = 0.0
        return X * self.coordinates(n)


def random_problem(seed: int) -> RandomProblem:
    """The problem of a seed, the same at every call."""
    dice = Dice(seed)
    kind = dice.choice(_WEIGHTED_KINDS)
    drawn = KINDS[kind](dice)
    problem, stretch = _rescaled_problem(dice, drawn)
    if problem.order <= 2:
        dice.note(f"order {problem.order}")
    return RandomProblem(
        seed,
        replace(problem, name=f"random-{seed}", formula=kind),
        kind,
        tuple(dice.twists),
        drawn.bounded,
        drawn.problem,
        stretch,
        drawn.planted,
    )


# --- quadratics ----------------------------------------------------------------------


def _commuting(dice: Dice) -> Drawn:
    n = dice.order()
    V = dice.rotation(n)
    decades = 3.0 if dice.twist("ill-conditioned", 0.15) else 1.0
    A, B = (dice.definite(n, V, decades=decades) for _ in range(2))
    A = dice.choice([A, A, float(dice.power(-1, 1)), None])
    C = LowRankPlusIdentity(n, dice.normal(1)[0], dice.normal(n, 1), dice.normal(1))
    return _quadratic(dice, A, B, dice.choice([C, dice.symmetric(n)]))


def _non_commuting(dice: Dice) -> Drawn:
    n = dice.order(2)
    d = dice.coordinates(n)
    A, B, C = (d[:, None] * S * d for S in (dice.definite(n), dice.definite(n), dice.symmetric(n)))
    if dice.twist("zero rows", 0.08):
        i = dice.rng.integers(n)
        for S in (A, B, C):
            S[i, :] = S[:, i] = 0.0
    return _quadratic(dice, A, B, C)


def _singular(dice: Dice) -> Drawn:
    """A and B with a common null space, on which C is definite or vanishes."""
    n = dice.order(2)
    rank = 1 if dice.twist("rank-one data", 0.2) else int(dice.rng.integers(1, n))
    A, B = (_padded(dice.definite(rank), n) for _ in range(2))
    A, B = dice.choice([(A, None), (None, B), (A, B), (A, dice.definite(n)), (dice.definite(n), B)])
    if dice.twist("no quadratic part", 0.1):
        A = B = None
        return _quadratic(dice, A, B, dice.semidefinite(n))
    if dice.twist("C vanishes on the null space", 0.3):
        return _quadratic(dice, A, B, _padded(dice.symmetric(rank), n))
    C = dice.symmetric(n)
    C[rank:, rank:] = dice.definite(n - rank)
    V = dice.rotation(n)
    A, B, C = (None if S is None else _symmetric(V @ S @ V.T) for S in (A, B, C))
    return _quadratic(dice, A, B, C)


def _quadratic(dice: Dice, A: Any, B: Any, C: Any) -> Drawn:
    return Drawn(replace(gm.problems.quadratic(A, B, C), domain=dice.domain()))


def _top_eigen(dice: Dice) -> Drawn:
    n = dice.order()
    K = dice.symmetric(n)
    if dice.twist("M* = 0", 0.1):
        K = -dice.semidefinite(n)
    elif dice.twist("F* = 0", 0.1):
        K = dice.semidefinite(n)
    elif dice.twist("rank-one data", 0.1):
        K = np.outer(K[0], K[0])
    else:
        d = dice.coordinates(n)
        K = d[:, None] * K * d
    form = dice.choice([K, K, sp.csr_array(K), LowRankPlusIdentity(n, 0.5, K[:, :1])])
    problem = gm.problems.top_eigen(form)
    return _nearest(dice, problem)


def _kta(dice: Dice, regularizer: str) -> Drawn:
    X, y = _labelled(dice)
    problem = gm.problems.kta(X, y, float(dice.power(-4, 1)), regularizer=regularizer)
    return Drawn(replace(problem, domain=dice.domain()), scalable=False)


def _linear_separation(dice: Dice) -> Drawn:
    X, y = _labelled(dice)
    regularizer = dice.choice(["identity", "frobenius", "trace"])
    problem = gm.problems.linear_separation(X, y, float(dice.power(-4, 0)), regularizer=regularizer)
    if regularizer != "trace":
        return _nearest(dice, problem, scalable=False)
    values, vectors = np.linalg.eigh(problem.objective.C.dense())
    domain = dice.domain()
    falls = domain.trace is None and values[0] < 0
    if falls:
        dice.note("unbounded")
    ray = _ray(vectors[:, :1]) if falls else ()
    return Drawn(replace(problem, domain=domain), ray, bounded=not falls, scalable=False)


def _labelled(dice: Dice) -> tuple[np.ndarray, np.ndarray]:
    n, count = dice.order(), int(dice.rng.integers(2, 81))
    X = dice.samples(count, n)
    if dice.twist("M scaled", 0.2):
        X *= dice.power(-3, 3)
    classes = int(dice.rng.integers(2, min(count, 6) + 1))
    return X, dice.rng.permutation(np.arange(count) % classes)


def _nearest(dice: Dice, problem: gm.Problem, *, scalable: bool = True) -> Drawn:
    """‖M‖² + 2⟨C, M⟩: the answer over the cone is P₊(−C)."""
    domain = dice.domain()
    values, vectors = np.linalg.eigh(-problem.objective.C.dense())
    answer = vectors * np.sqrt(np.maximum(values, 0.0))
    planted = () if domain.trace is not None else (answer,)
    return Drawn(replace(problem, domain=domain), planted, scalable=scalable)


# --- losses of maps ------------------------------------------------------------------

LEAST_ORDER = {"entries": 1, "distances": 2, "triplets": 3, "congruence": 1}
LOSSES = ("squared", "squared hinge", "smoothed hinge", "logistic", "soft-min")


def _composite(dice: Dice, map_name: str, loss_name: str) -> Drawn:
    n, domain = dice.order(LEAST_ORDER[map_name]), dice.domain()
    pulled = domain.trace is None and loss_name == "squared" and map_name in _COERCIVE
    if pulled and dice.twist("C indefinite", 0.3):
        return _COERCIVE[map_name](dice, n)
    map = _map(dice, map_name, n)
    fitted = loss_name != "soft-min" and dice.twist("F* = 0", 0.1)
    L = dice.factor(n, domain.trace)
    loss = _loss(dice, loss_name, map.of_factor(L), exact=fitted)
    planted: tuple[np.ndarray, ...] = (L,) if fitted else ()
    C = None if fitted else _linear_term(dice, map, loss, domain.trace)
    if "M* = 0" in dice.twists:
        planted = (np.zeros((n, 0)),)
    return Drawn(gm.Problem(Composite(map, loss, C), domain), planted)


def _all_entries(dice: Dice, n: int) -> Drawn:
    """Squares that see all of M, and a C of both signs."""
    map = Entries(np.column_stack(np.triu_indices(n)), n)
    target = map.of_factor(dice.factor(n)) + dice.normal(map.size)
    return Drawn(gm.Problem(Composite(map, Squared(target), dice.symmetric(n))))


def _all_distances(dice: Dice, n: int) -> Drawn:
    """Squares that see all of M centred, and a C that pulls it outwards: maximum variance."""
    map = PairDistances(np.column_stack(np.triu_indices(n, 1)), n)
    target = map.of_factor(dice.factor(n)) + dice.normal(map.size)
    C = (np.full((n, n), 1.0 / n) - np.eye(n)) * dice.power(-1, 1)
    return Drawn(gm.Problem(Composite(map, Squared(target), C)))


_COERCIVE = {"entries": _all_entries, "distances": _all_distances}


def _map(dice: Dice, name: str, n: int) -> LinearMap:
    if name != "congruence":
        return _index_map(dice, name, n)
    points = int(dice.rng.integers(3, 41))
    X = dice.samples(points, n)
    base = _index_map(dice, dice.choice(["entries", "distances", "triplets"]), points)
    return Congruence(base, sp.csr_array(X) if dice.chance(0.2) else X)


def _index_map(dice: Dice, name: str, points: int) -> LinearMap:
    count = _constraint_count(dice, points)
    if name == "entries":
        return Entries(_repeated(dice, dice.rng.integers(0, points, (count, 2))), points)
    width = 2 if name == "distances" else 3
    rows = np.argsort(dice.rng.random((count, points)), axis=1)[:, :width]
    rows = _repeated(dice, rows)
    return PairDistances(rows, points) if width == 2 else triplet_margins(rows, points)


def _constraint_count(dice: Dice, points: int) -> int:
    if dice.twist("single constraint", 0.06):
        return 1
    if dice.twist("many constraints", 0.12):
        return min(2 * points * (points + 1), MOST_CONSTRAINTS)
    return int(dice.rng.integers(1, 3 * points + 1))


def _repeated(dice: Dice, rows: np.ndarray) -> np.ndarray:
    if dice.twist("repeated constraints", 0.08):
        return rows[dice.rng.integers(0, max(1, len(rows) // 3), len(rows))]
    return rows


def _loss(dice: Dice, name: str, image: np.ndarray, *, exact: bool) -> Loss:
    """A loss around the image of some matrix, which has no loss where that is to be `exact`."""
    if name == "soft-min":
        return SoftMin(mu=float(dice.power(-2, 1)))
    weight = _weights(dice, image.size)
    if name == "squared":
        noise = 0.0 if exact else dice.normal(image.size) * dice.power(-2, 0.5)
        zero = not exact and dice.twist("targets all zero", 0.06)
        return Squared(np.zeros(image.size) if zero else image + noise, weight=weight)
    margin: Any = image - dice.rng.random(image.size) if exact else dice.choice([1.0, 0.0, image])
    if name == "squared hinge":
        return SquaredHinge(margin, weight=weight)
    if name == "smoothed hinge":
        return SmoothedHinge(margin, mu=float(dice.power(-2, 0.5)), weight=weight)
    return Logistic(margin, weight=weight)


def _weights(dice: Dice, size: int) -> Any:
    weight = dice.power(-1, 1, size)
    if dice.twist("zero weights", 0.06):
        weight[dice.rng.random(size) < 0.5] = 0.0
        return weight
    return weight if dice.chance(0.5) else float(weight[0])


def _linear_term(dice: Dice, map: LinearMap, loss: Loss, trace: float | None) -> Any:
    n = map.order
    if trace is not None:
        return dice.choice([None, dice.symmetric(n), float(dice.power(-2, 1))])
    if dice.twist("M* = 0", 0.07):
        slope = map.adjoint_matrix(loss.gradient(np.zeros(map.size)))
        level = max(0.0, -float(np.linalg.eigvalsh(_symmetric(slope))[0]))
        return (1.1 * level + 0.01) * np.eye(n) + dice.semidefinite(n)
    if isinstance(loss, SoftMin):
        return _above_soft_min(dice, map)
    shape = dice.choice(["number", "definite", "singular", "zero"])
    if shape == "number":
        return float(dice.power(-3, 1))
    if shape == "definite":
        return dice.definite(n)
    if shape == "singular":
        dice.note("C singular")
        return dice.semidefinite(n)
    dice.note("C zero")
    return None


def _above_soft_min(dice: Dice, map: LinearMap) -> np.ndarray:
    """C ≻ 𝒜*(s) for shares s ≥ 0, Σ s = 1: the soft minimum is at least −⟨s, z⟩, so F ≥ 0.

    Few of the shares count, so that M = 0 need not be the minimum.
    """
    support = _symmetric(map.adjoint_matrix(dice.rng.dirichlet(np.full(map.size, 0.2))))
    level = float(np.linalg.norm(support, 2)) or 1.0
    return support + dice.power(-2, 0) * level * np.eye(map.order)


def _sum(dice: Dice) -> Drawn:
    """A quadratic and a loss, or two losses, or all three."""
    map_names = [dice.choice(LEAST_ORDER) for _ in range(2)]
    n = dice.order(max(2, *(LEAST_ORDER[name] for name in map_names)))
    parts: list[Objective] = []
    for name in map_names:
        map = _map(dice, name, n)
        loss = _loss(dice, dice.choice(LOSSES), map.of_factor(dice.factor(n)), exact=False)
        parts.append(Composite(map, loss, _linear_term(dice, map, loss, None)))
    if dice.chance(0.7):
        quadratic = GramQuadratic(dice.definite(n), dice.definite(n), dice.symmetric(n))
        parts = [quadratic, *parts[: int(dice.rng.integers(1, 3))]]
    dice.twists = [twist for twist in dice.twists if twist != "M* = 0"]
    return Drawn(gm.Problem(Sum(parts), dice.domain()))


# --- no minimum ----------------------------------------------------------------------


def _unbounded(dice: Dice) -> Drawn:
    """F falls for ever along a ray, which is planted."""
    dice.note("unbounded")
    return dice.choice([_unbounded_quadratic, _unbounded_hinge, _unbounded_soft_min, _unseen])(dice)


def _unbounded_quadratic(dice: Dice) -> Drawn:
    n = dice.order(2)
    A, C = _padded(dice.definite(n - 1), n), dice.symmetric(n)
    C[-1, -1] = -dice.power(-1, 1)
    ray = _ray(np.eye(n)[:, -1:])
    B = dice.choice([None, _padded(dice.definite(n - 1), n)])
    return Drawn(gm.problems.quadratic(A, B, C), ray, bounded=False)


def _unbounded_hinge(dice: Dice) -> Drawn:
    """Distances only grow along a ray, and losses of them only fall."""
    n = dice.order(2)
    map = _index_map(dice, "distances", n)
    name = dice.choice(["squared hinge", "smoothed hinge", "logistic"])
    loss = _loss(dice, name, map.of_factor(dice.factor(n)), exact=False)
    C = dice.symmetric(n)
    C -= (np.linalg.eigvalsh(C)[0] + dice.power(-1, 1)) * np.eye(n)
    vector = np.linalg.eigh(C)[1][:, :1]
    return Drawn(gm.Problem(Composite(map, loss, C)), _ray(vector), bounded=False)


def _unbounded_soft_min(dice: Dice) -> Drawn:
    n = dice.order(2)
    map = _index_map(dice, "distances", n)
    ray = _ray(dice.rng.permutation(np.arange(n, dtype=float))[:, None])
    loss = SoftMin(mu=float(dice.power(-2, 1)))
    return Drawn(gm.Problem(Composite(map, loss)), ray, bounded=False)


def _unseen(dice: Dice) -> Drawn:
    """Squares of entries that leave out the last coordinate, along which C falls."""
    n = dice.order(2)
    pairs = dice.rng.integers(0, n - 1, (_constraint_count(dice, n - 1), 2))
    map = Entries(pairs, n)
    loss = _loss(dice, "squared", map.of_factor(dice.factor(n)), exact=False)
    C = dice.definite(n)
    C[-1, -1] = -dice.power(-1, 1)
    return Drawn(gm.Problem(Composite(map, loss, C)), _ray(np.eye(n)[:, -1:]), bounded=False)


def _unattained(dice: Dice) -> Drawn:
    """An infimum of 0 that no matrix reaches; matrices that come close are planted."""
    dice.note("not attained")
    n = dice.order(2)
    if dice.chance(0.5):
        name = dice.choice(["distances", "congruence"])
        map = _index_map(dice, "distances", n)
        if name == "congruence":
            map = Congruence(map, dice.normal(n, n))
        loss = _loss(dice, "logistic", map.of_factor(dice.factor(n)), exact=False)
        return Drawn(gm.Problem(Composite(map, loss)), _ray(dice.normal(n, n))[:4])
    u = dice.normal(n - 1)
    pairs = np.column_stack([np.zeros(n, dtype=int), np.arange(n)])
    target = np.concatenate([[0.0], u])
    planted = tuple(np.concatenate([[e], u / e])[:, None] for e in (1e-1, 1e-2, 1e-3))
    return Drawn(gm.Problem(Composite(Entries(pairs, n), Squared(target))), planted)


def _ray(direction: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.sqrt(t) * direction for t in RAY)


# --- other scales --------------------------------------------------------------------


def _rescaled_problem(dice: Dice, drawn: Drawn) -> tuple[gm.Problem, np.ndarray]:
    """The problem in other units, and the row factors that take its old factors to new ones."""
    problem = drawn.problem
    value = float(dice.power(-6, 6)) if dice.twist("F scaled", 0.2) else 1.0
    size = float(dice.power(-6, 6)) if drawn.scalable and dice.twist("M scaled", 0.2) else 1.0
    objective = problem.objective
    if value != 1.0 or size != 1.0:
        objective = rescaled(objective, value, size)
    trace = problem.domain.trace
    domain = problem.domain if trace is None else gm.Spectrahedron(trace * size)
    stretch = np.full(problem.order, np.sqrt(size))
    if isinstance(objective, Composite) and trace is None and "ill-conditioned" not in dice.twists:
        d = dice.coordinates(problem.order)
        if np.any(d != 1.0):
            objective, stretch = _in_coordinates(objective, d), stretch * d
    return replace(problem, objective=objective, domain=domain), stretch


def rescaled(objective: Objective, value: float, size: float) -> Objective:
    """M ↦ value·F(M/size), of the same kind as F."""
    if isinstance(objective, Sum):
        return Sum([rescaled(part, value, size) for part in objective.parts])
    constant = value * objective.constant
    if isinstance(objective, GramQuadratic):
        A = _times(objective.A, np.sqrt(value) / size)
        B = _times(objective.B, value / size**2)
        return GramQuadratic(A, B, _times(objective.C, value / size), constant=constant)
    assert isinstance(objective, Composite)
    C = _times(objective.C, value / size)
    in_data = isinstance(objective.map, Congruence)
    loss, factor = _rescaled_loss(objective.loss, value, 1.0 if in_data else size)
    map = _scaled_map(objective.map, factor / size if in_data else factor)
    return Composite(map, loss, C, constant=constant)


def _rescaled_loss(loss: Any, value: float, size: float) -> tuple[Loss, float]:
    """value·g(z/size) as a loss of a multiple of z, 1 wherever the loss can take it all."""
    if isinstance(loss, SoftMin):
        return SoftMin(mu=value * loss.mu), value / size
    if isinstance(loss, Logistic):
        return Logistic(loss.centre, weight=value * loss.weight), 1 / size
    centre = size * loss.centre
    if isinstance(loss, SmoothedHinge):
        weight = value * loss.weight / size
        return SmoothedHinge(centre, mu=size * loss.mu, weight=weight), 1.0
    return type(loss)(centre, weight=value * loss.weight / size**2), 1.0


def _scaled_map(map: LinearMap, factor: float) -> LinearMap:
    if factor == 1.0:
        return map
    if isinstance(map, Congruence):
        return Congruence(map.base, np.sqrt(factor) * map.X)
    if isinstance(map, Mix):
        return Mix(map.base, factor * map.weights)
    return Mix(map, factor * sp.eye_array(map.size, format="csr"))


def _in_coordinates(objective: Composite, d: np.ndarray) -> Composite:
    """M ↦ F(D⁻¹MD⁻¹) with D = diag(d)."""
    if isinstance(objective.map, Congruence):
        map = Congruence(objective.map.base, objective.map.X @ sp.diags_array(1 / d))
    else:
        map = Congruence(objective.map, np.diag(1 / d))
    C = objective.C.dense() / np.outer(d, d)
    return Composite(map, objective.loss, C, constant=objective.constant)


def _times(matrix: Any, factor: float) -> Any:
    if isinstance(matrix, LowRankPlusIdentity):
        scaled = factor * matrix.scale, matrix.factor, factor * matrix.weights
        return LowRankPlusIdentity(matrix.order, *scaled)
    return factor * matrix.dense()


def _padded(block: np.ndarray, n: int) -> np.ndarray:
    return np.pad(block, (0, n - len(block)))


def _symmetric(S: np.ndarray) -> np.ndarray:
    return 0.5 * (S + S.T)


# --- the kinds, and how many of each -------------------------------------------------

KINDS: dict[str, Callable[[Dice], Drawn]] = {
    "quadratic, commuting": _commuting,
    "quadratic": _non_commuting,
    "quadratic, singular": _singular,
    "top_eigen": _top_eigen,
    **{f"kta, {name}": partial(_kta, regularizer=name) for name in ("identity", "frobenius")},
    "kta, trace": partial(_kta, regularizer="trace"),
    "linear_separation": _linear_separation,
    **{
        f"{loss} of {map}": partial(_composite, map_name=map, loss_name=loss)
        for loss in LOSSES
        for map in LEAST_ORDER
    },
    "sum": _sum,
    "unbounded": _unbounded,
    "not attained": _unattained,
}
TWICE = ("quadratic", "quadratic, singular", "sum", "unbounded")
_WEIGHTED_KINDS = (*KINDS, *TWICE)


def run(ctx: Context) -> Report:
    """How often each kind and each twist comes up."""
    seeds = SEEDS_QUICK if ctx.quick else SEEDS
    drawn = [random_problem(seed) for seed in seeds]
    orders = np.array([problem.order for problem in drawn])
    kinds = Counter(problem.kind for problem in drawn)
    twists = Counter(twist for problem in drawn for twist in problem.twists or ("none",))
    tables = [_counts("Kinds", kinds), _counts("Twists; a problem may have several", twists)]
    quartiles = ", ".join(f"{q:g}" for q in np.percentile(orders, [0, 25, 50, 75, 100]))
    notes = [f"{len(drawn)} problems; quartiles of the order: {quartiles}."]
    return ctx.report(tables, notes)


def _counts(caption: str, counter: Counter[str]) -> Table:
    table = Table(caption, ["name", "problems"])
    for name, count in counter.most_common():
        table.add(name, count)
    return table
