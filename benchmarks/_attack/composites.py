"""Losses of maps, sums, structured quadratics, fixed traces, and problems without a minimum."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks._attack import small
from benchmarks._attack.formulas import (
    LD,
    Formula,
    Term,
    difference_sizes,
    entries,
    extended,
    margins,
    sample_distances,
)
from benchmarks._attack.instances import Dice, Instance
from benchmarks._attack.losses import (
    Logistics,
    SmoothedHinges,
    SoftMinimum,
    SquaredHinges,
    Squares,
)
from benchmarks._attack.small import along
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, LinearMap, PairDistances, triplet_margins
from gramian.objectives import Composite, GramQuadratic, LowRankPlusIdentity, Objective, Sum

LEAST = {"entries": 1, "distances": 2, "triplets": 3, "congruence": 1}
"""The least order for each map."""
LOSSES = ("squared", "squared hinge", "smoothed hinge", "logistic", "soft-min")
HINGES = LOSSES[1:4]
MOST_CONSTRAINTS = 1500


# --- a loss of a map, for the library and for the formula ----------------------------


def _map(dice: Dice, name: str, n: int, units: np.ndarray) -> tuple[LinearMap, Term]:
    """A map, and its forms in a term with zero loss; M_ij has the unit units[i]·units[j]."""
    X = np.diag(1 / units) if np.any(units != 1) else None
    if name == "congruence":
        X, name = dice.samples(dice.whole(3, 40), n) / units, dice.choice(list(LEAST)[:3])
    points = n if X is None else len(X)
    rows = _rows(dice, name, points)
    make = {"entries": Entries, "distances": PairDistances, "triplets": triplet_margins}[name]
    inner = make(rows, points)
    wide = extended(np.eye(points) if X is None else X)
    map = inner if X is None else Congruence(inner, sp.csr_array(X) if dice.chance(0.2) else X)
    if name == "distances":
        sizes = difference_sizes(wide, (rows[:, 0], rows[:, 1]))
        return map, Term(Squares(), sample_distances(wide, *rows.T), sizes)
    if name == "triplets":
        i, j, l = rows.T
        return map, Term(Squares(), margins(wide, rows), difference_sizes(wide, (i, l), (i, j)))
    forms = entries(*rows.T)
    return map, Term(Squares(), lambda V: forms(wide @ V), lambda V: forms(abs(wide) @ V))


def _rows(dice: Dice, name: str, points: int) -> np.ndarray:
    """Indices of one constraint, of a few or of many, perhaps repeated."""
    count = dice.whole(1, 3 * points)
    if dice.twist("single constraint", 0.06):
        count = 1
    elif dice.twist("many constraints", 0.12):
        count = min(2 * points * (points + 1), MOST_CONSTRAINTS)
    if name == "entries":
        rows = dice.rng.integers(0, points, (count, 2))
    else:
        rows = np.argsort(dice.rng.random((count, points)), axis=1)[:, : LEAST[name]]
    if dice.twist("repeated constraints", 0.08):
        rows = rows[dice.rng.integers(0, max(1, count // 3), count)]
    return rows


def _loss(
    dice: Dice, name: str, z: np.ndarray, scale: float, unit: float, *, exact: bool = False
) -> tuple[Any, Any]:
    """`scale` times a loss around z, of numbers in multiples of `unit`; 0 at z if `exact`."""
    if name == "soft-min":
        mu = dice.power(-2, 1)
        return SoftMin(mu=mu), SoftMinimum(mu)
    weight = scale * dice.power(-1, 1, z.size)
    if dice.twist("zero weights", 0.06):
        weight[dice.rng.random(z.size) < 0.5] = 0.0
    elif dice.chance(0.5):
        weight = float(weight[0])
    if name == "squared":
        noise = 0.0 if exact else unit * dice.normal(z.size) * dice.power(-2, 0.5)
        centre = z + noise
        if not exact and dice.twist("targets all zero", 0.06):
            centre = np.zeros(z.size)
        weight = weight / unit**2
        return Squared(centre, weight=weight), Squares(centre, weight)
    centre = z - unit * dice.rng.random(z.size) if exact else dice.choice([unit, 0.0, z])
    if name == "squared hinge":
        weight = weight / unit**2
        return SquaredHinge(centre, weight=weight), SquaredHinges(centre, weight)
    if name == "smoothed hinge":
        mu, weight = unit * dice.power(-2, 0.5), weight / unit
        return SmoothedHinge(centre, mu=mu, weight=weight), SmoothedHinges(mu, centre, weight)
    return Logistic(centre, weight=weight), Logistics(centre, weight)


def _semidefinite(dice: Dice, n: int) -> tuple[np.ndarray, bool | None]:
    """A singular PSD matrix, and whether it is exactly PSD (None: up to rounding)."""
    rank = dice.whole(0, n - 1)
    if dice.twist("singular to rounding", 0.3):
        S = dice.normal(n, rank)
        return S @ S.T / n, None
    places = dice.rng.permutation(n)
    return np.pad(dice.definite(rank), (0, n - rank))[np.ix_(places, places)], True


def _linear_term(dice: Dice, map: LinearMap, loss: Any, trace: float | None) -> tuple[Any, Any]:
    """C, and whether F is bounded below."""
    n = map.order
    if trace is not None:
        return dice.choice([None, dice.symmetric(n), dice.power(-2, 1)]), True
    if dice.twist("optimum at 0", 0.07):
        slope = map.adjoint_matrix(loss.gradient(np.zeros(map.size)))
        level = max(0.0, -float(np.linalg.eigvalsh((slope + slope.T) / 2)[0]))
        return (1.1 * level + 0.01) * np.eye(n) + _semidefinite(dice, n)[0], True
    if isinstance(loss, SoftMin):
        # C ≻ 𝒜*(s) for s ≥ 0, Σ s = 1: the soft minimum is at least −⟨s, z⟩, so F ≥ 0. Few of
        # the s_e are large, so that M = 0 need not be the minimum.
        S = map.adjoint_matrix(dice.rng.dirichlet(np.full(map.size, 0.2)))
        level = float(np.linalg.norm(S, 2)) or 1.0
        return (S + S.T) / 2 + dice.power(-2, 0) * level * np.eye(n), True
    shape = dice.choice(["number", "definite", "singular", "no C"])
    if shape == "number":
        return dice.power(-3, 1), True
    if shape == "definite":
        return dice.definite(n), True
    dice.twists.append(shape)
    return _semidefinite(dice, n) if shape == "singular" else (None, True)


def _trace(dice: Dice) -> float | None:
    return dice.power(-2, 2) if dice.twist("fixed trace", 0.25) else None


def _cone(trace: float | None) -> Any:
    return gm.PSDCone() if trace is None else gm.Spectrahedron(trace)


def _dense(C: Any, n: int) -> Any:
    """C in extended precision, 0 for None."""
    wide = extended(0.0 if C is None else C)
    return wide if wide.ndim else wide * np.eye(n, dtype=LD)


def composite(dice: Dice) -> Instance:
    """One of five losses of one of four maps, with C ⪰ 0 or a fixed trace."""
    name, kind = dice.choice(LEAST), dice.choice(LOSSES)
    dice.twists += [name, kind]
    n, trace = dice.order(LEAST[name]), _trace(dice)
    unit = dice.scale()
    scale = 1.0 if kind == "soft-min" else dice.scale()
    units, size = np.ones(n), np.sqrt(unit)
    if trace is None and dice.twist("ill-scaled", 0.18):
        few = dice.rng.permutation(n)[: dice.whole(1, max(2, n // 4))]
        units[few] = dice.power(-3, 3, few.size)
    if kind in ("logistic", "soft-min"):
        units, unit, size = units * size, 1.0, 1.0
    map, term = _map(dice, name, n, units)
    L = size * units[:, None] * dice.factor(n)
    if trace is not None:
        trace *= unit * units[0] ** 2
        L *= np.sqrt(trace / np.sum(L * L))
    exact = kind != "soft-min" and dice.twist("optimum 0", 0.1)
    loss, theirs = _loss(dice, kind, map.of_factor(L), scale, unit, exact=exact)
    C, bounded = (None, True) if exact else _linear_term(dice, map, loss, trace)
    if C is not None and "optimum at 0" not in dice.twists and kind != "soft-min":
        C = scale / unit * C
        C = C / np.outer(units, units) if np.ndim(C) else C
    better = (L,) if exact else ()
    if "optimum at 0" in dice.twists:
        better = (np.zeros((n, 1)),)
    problem = gm.Problem(Composite(map, loss, C), _cone(trace))
    formula = Formula(n, [replace(term, loss=theirs)], C, trace=trace)
    return Instance("composite", problem, formula, bounded, better)


def coercive(dice: Dice) -> Instance:
    """Squares of all entries or of all distances, with a C of both signs."""
    n = dice.order(2)
    name = dice.choice(["entries", "distances"])
    rows = np.column_stack(np.triu_indices(n, int(name == "distances")))
    map: LinearMap = Entries(rows, n)
    forms, C = entries(*rows.T), dice.symmetric(n)
    if name == "distances":  # C pulls outwards and has the exact null vector 1
        map, forms = PairDistances(rows, n), sample_distances(np.eye(n), *rows.T)
        C = (np.ones((n, n)) - n * np.eye(n)) * 2.0 ** dice.whole(-8, 3)
    target = map.of_factor(dice.factor(n)) + dice.normal(len(rows))
    problem = gm.Problem(Composite(map, Squared(target), C))
    return Instance("coercive", problem, Formula(n, [Term(Squares(target), forms)], C), True)


def total(dice: Dice) -> Instance:
    """A quadratic and a loss, or two losses, or all three, added."""
    names = [dice.choice(LEAST) for _ in range(2)]
    n, trace = dice.order(max(2, *(LEAST[name] for name in names))), _trace(dice)
    A = B = None
    parts: list[Objective] = []
    C, limits = np.zeros((n, n), dtype=LD), []
    if dice.chance(0.7):
        A, B, half = dice.definite(n), dice.definite(n), dice.symmetric(n)
        parts, C = [GramQuadratic(A, B, half)], C + 2 * half
        names = names[: dice.whole(1, 2)]
    terms = []
    for name in names:
        map, term = _map(dice, name, n, np.ones(n))
        kind = dice.choice(LOSSES)
        loss, theirs = _loss(dice, kind, map.of_factor(dice.factor(n)), 1.0, 1.0)
        more, bounded = _linear_term(dice, map, loss, None)
        parts.append(Composite(map, loss, more))
        terms.append(replace(term, loss=theirs))
        limits.append(bounded)
        C = C + _dense(more, n)
    bounded = True if trace is not None or A is not None or all(limits) else None
    formula = Formula(n, terms, C, A, B, trace=trace)
    return Instance("total", gm.Problem(Sum(parts), _cone(trace)), formula, bounded)


# --- quadratics ----------------------------------------------------------------------


def structured(dice: Dice) -> Instance:
    """Quadratics whose A and B commute, have a zero row or other units, or see only a part."""
    n, trace = dice.order(2), _trace(dice)
    kinds = ["commuting", "commuting", "zero row", "units", "C seen", "no quadratic part"]
    kind, bounded = dice.choice(kinds), True
    dice.twists.append(kind)
    A, B, C = dice.definite(n), dice.definite(n), dice.symmetric(n)
    given, wide = None, None
    if kind == "commuting":
        V = dice.rotation(n)
        A, B = ((V * dice.power(-low, low, n)) @ V.T for low in dice.choice([(1, 1), (3, 3)]))
        A, B = dice.choice([(A + A.T) / 2, dice.power(-1, 1), None]), (B + B.T) / 2
        if dice.chance(0.5):
            c, u, w = dice.normal(1)[0], dice.normal(n, 1), dice.normal(1)
            given = LowRankPlusIdentity(n, c, u, w)
            wide = c * np.eye(n, dtype=LD) + w[0] * (extended(u) @ u.T)
    elif kind == "zero row":
        i = dice.whole(0, n - 1)
        for S in (A, B, C):
            S[i] = S[:, i] = 0.0
    elif kind == "units":
        d = dice.power(-3, 3, n)[:, None] * np.ones(n)
        A, B, C = (d * S * d.T for S in (A, B, C))
    elif kind == "C seen":
        rank = dice.whole(1, n - 1)
        A, B, C = (np.pad(S[:rank, :rank], (0, n - rank)) for S in (A, B, C))
        A, B = dice.choice([(A, None), (None, B), (A, B)])
    else:
        A = B = None
        C, bounded = _semidefinite(dice, n)
    problem = gm.problems.quadratic(A, B, C if given is None else given)
    formula = Formula(n, A=A, B=B, C=2 * (C if wide is None else wide), trace=trace)
    bounded = bounded if trace is None else True
    return Instance("structured", replace(problem, domain=_cone(trace)), formula, bounded)


def fixed(dice: Dice) -> Instance:
    """A problem over the cone, its trace fixed."""
    make = dice.choice([small.quadratic, small.top_eigen, small.kta, small.linear_separation])
    base, trace = make(dice), dice.power(-2, 2)
    problem = replace(base.problem, domain=gm.Spectrahedron(trace))
    formula = replace(base.formula, trace=trace, cache={})
    return Instance("fixed", problem, formula, True)


# --- no minimum ----------------------------------------------------------------------


def falling(dice: Dice) -> Instance:
    """F decreases without bound along a known ray."""
    n, kind = dice.order(2), dice.choice(["hinge", "soft-min", "unseen"])
    dice.twists.append(kind)
    C = None
    if kind == "unseen":  # squares of entries that leave out the last coordinate
        rows = _rows(dice, "entries", n - 1)
        map: LinearMap = Entries(rows, n)
        term, name = Term(Squares(), entries(*rows.T)), "squared"
        C, direction = dice.definite(n), np.eye(n)[:, -1:]
        C[-1, -1] = -dice.power(-1, 1)
    elif kind == "hinge":  # distances grow along a ray, and these losses of them fall
        map, term = _map(dice, "distances", n, np.ones(n))
        name, C = dice.choice(HINGES), dice.symmetric(n)
        C -= (np.linalg.eigvalsh(C)[0] + dice.power(-1, 1)) * np.eye(n)
        direction = np.linalg.eigh(C)[1][:, :1]
    else:
        map, term = _map(dice, "distances", n, np.ones(n))
        name, direction = kind, dice.rng.permutation(np.arange(n, dtype=float))[:, None]
    loss, theirs = _loss(dice, name, map.of_factor(dice.factor(n)), 1.0, 1.0)
    formula = Formula(n, [replace(term, loss=theirs)], C)
    problem = gm.Problem(Composite(map, loss, C))
    return Instance("falling", problem, formula, False, along(direction))


def unattained(dice: Dice) -> Instance:
    """An infimum of 0 that no matrix attains, and matrices that come close."""
    n = dice.order(2)
    if dice.chance(0.5):
        d = dice.power(-1, 1, n) if dice.chance(0.5) else np.ones(n)
        map, term = _map(dice, "distances", n, d)
        loss, theirs = _loss(dice, "logistic", map.of_factor(dice.factor(n)), 1.0, 1.0)
        better = along(dice.normal(n, n))[:4]
    else:  # M_00 = 0 and M_0j = u_j
        u = dice.normal(n - 1)
        rows = np.column_stack([np.zeros(n, dtype=int), np.arange(n)])
        map, term = Entries(rows, n), Term(Squares(), entries(*rows.T))
        target = np.concatenate([[0.0], u])
        loss, theirs = Squared(target), Squares(target)
        better = tuple(np.concatenate([[e], u / e])[:, None] for e in (1e-1, 1e-2, 1e-3))
    formula = Formula(n, [replace(term, loss=theirs)])
    return Instance("unattained", gm.Problem(Composite(map, loss)), formula, True, better)


FAMILIES: dict[str, Callable[[Dice], Instance]] = {
    make.__name__: make
    for make in (composite, coercive, total, structured, fixed, falling, unattained)
}
