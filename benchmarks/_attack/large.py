"""Large problems whose probes are known not to be optimal: a better point is given with each.

Above some order nobody computes all eigenvalues, so what is better is hidden from methods that
look for the smallest one: below loud features, in a cluster, at a single node, in a part of its
own, or orthogonal to the usual starting vectors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks._attack.formulas import LD, Formula, Term, distances, entries, margins, outer
from benchmarks._attack.instances import Dice, Instance
from benchmarks._attack.losses import SmoothedHinges, Squares
from benchmarks._attack.small import completion_formula
from gramian.objectives import LowRankPlusIdentity

LEAST, MOST, SPARSE_MOST = 1501, 4000, 60_000


def _order(dice: Dice, most: int = SPARSE_MOST) -> int:
    return dice.whole(LEAST, 2000 if dice.chance(0.6) else MOST if dice.chance(0.85) else most)


def _two_orders(dice: Dice) -> int:
    """Just above the limit of full eigenvalue computations, or well above it."""
    return dice.whole(3001, MOST) if dice.chance(0.75) else dice.whole(LEAST, 1600)


def _noisy(dice: Dice, factor: np.ndarray) -> np.ndarray:
    return factor * (1 + dice.power(-8, -2) * dice.normal(*factor.shape))


def _few(dice: Dice, low: float, high: float, size: int) -> np.ndarray:
    """Mostly few different numbers, for which Krylov methods converge early."""
    if dice.twist("spread out", 0.15):
        return dice.power(low, high, size)
    return dice.rng.choice(dice.power(low, high, dice.whole(1, 6)), size)


def _joined(*blocks: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.hstack(blocks))


def _unit(n: int, place: int) -> np.ndarray:
    column = np.zeros((n, 1))
    column[place] = 1.0
    return column


# --- loud features -------------------------------------------------------------------


def loud_triplets(dice: Dice) -> Instance:
    """Features of large scale that only increase F, and one of small scale that decreases it."""
    d, k = _order(dice, MOST), dice.whole(3, 60)
    mu, lam = dice.choice([0.1, 0.5]), dice.power(-1, 1)
    X = np.zeros((3 * k, d))
    places = dice.rng.permutation(d)[: k + 1]
    X[np.arange(1, 3 * k, 3), places[:k]] = dice.power(3, 5) * np.linspace(0.1, 1, k)
    helped = dice.whole(1, k)
    a = np.sqrt((1 + dice.power(-3, 0)) / (lam * helped))
    u = _unit(d, places[k])
    if dice.twist("spread", 0.3):
        free = np.setdiff1d(np.arange(d), places[:k])
        u = np.zeros((d, 1))
        u[free] = dice.normal(free.size, 1)
        u /= np.linalg.norm(u)
    X[2 : 3 * helped : 3] = a * u.T
    table = np.arange(3 * k).reshape(k, 3)
    problem = gm.problems.triplets(X, table, lam, mu)
    formula = Formula(d, [Term(SmoothedHinges(mu, weight=lam), margins(X, table))], 1.0)
    better = np.sqrt(1 - mu) / a * u
    return Instance("loud_triplets", problem, formula, True, (better,), (np.zeros((d, 1)),))


def loud_alignment(dice: Dice) -> Instance:
    """One sample per class with its own feature: the probe fits all but the one of small scale."""
    d, k, lam = _two_orders(dice), dice.whole(2, 40), dice.power(-1, 1)
    places = dice.rng.permutation(d)[:k]
    s = dice.power(0, dice.choice([1, 2, 4]), k) * 2
    s[-1] = 1 + dice.power(-2, 0)
    s /= np.sqrt(2 * lam)
    X = np.zeros((k, d))
    X[np.arange(k), places] = s
    size = (1 - 1 / (2 * lam * s**2)) / s**2
    L = np.zeros((d, k))
    L[places, np.arange(k)] = np.sqrt(size)
    problem = gm.problems.kta(sp.csr_array(X), np.arange(k), lam, regularizer="trace")
    wide = sp.csr_array(X).astype(LD)
    term = Term(Squares(np.eye(k).ravel(), weight=lam), outer(wide, wide))
    probes = (np.ascontiguousarray(L[:, :-1]),)
    return Instance("loud_alignment", problem, Formula(d, [term], 1.0), True, (L,), probes)


def loud_kernel(dice: Dice) -> Instance:
    """A kernel of connected parts with large weights; the probe is 0 on a small part."""
    n, parts = _order(dice), dice.whole(2, 5)
    small = dice.whole(1, 6)
    label = np.sort(dice.rng.integers(0, parts, n))
    label[-small:] = parts
    i = np.flatnonzero(label[:-1] == label[1:])
    W = sp.coo_array((_few(dice, 0, 3, i.size), (i, i + 1)), shape=(n, n)).tocsr()
    W = W + W.T
    laplacian = sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)
    must, cannot = np.column_stack([i, i + 1]), np.array([[0, n - 1], [n // 2, n - 1]])
    lam = dice.power(0, 2)
    L = (label[:, None] == np.unique(label)).astype(float)
    problem = gm.problems.npkl(laplacian, must, cannot, lam)
    every = np.vstack([must, cannot, np.column_stack([np.arange(n)] * 2)])
    T = np.repeat([1.0, 0.0, 1.0], [len(must), len(cannot), n])
    formula = Formula(n, [Term(Squares(T, weight=lam / 2), entries(*every.T))], laplacian)
    return Instance("loud_kernel", problem, formula, True, (L,), (L[:, :-1].copy(),))


# --- clusters and hidden vectors -----------------------------------------------------


def cluster(dice: Dice) -> Instance:
    """‖M‖² + 2⟨C, M⟩ at 0; C has many eigenvalues 0, large ones, and a slightly negative one."""
    n, delta = _two_orders(dice), dice.power(-4, -1)
    size = dice.whole(2, 8)
    i = np.flatnonzero((np.arange(n - 1) + 1) % size)
    weights = _few(dice, -1, dice.choice([0, 2, 4]), i.size)
    W = sp.coo_array((weights, (i, i + 1)), shape=(n, n))
    W = (W + W.T).tocsr()
    place = dice.whole(0, n - 1)
    keep = sp.diags_array((np.arange(n) != place).astype(float))
    W = keep @ W @ keep
    C = sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W - delta * _spot(n, place)
    problem = gm.problems.quadratic(None, 1.0, sp.csr_array(C))
    formula = Formula(n, B=1.0, C=2 * sp.csr_array(C))
    better = np.sqrt(delta) * _unit(n, place)
    return Instance("cluster", problem, formula, True, (better,), (np.zeros((n, 1)),))


def _spot(n: int, place: int) -> sp.csr_array:
    return sp.csr_array(sp.coo_array(([1.0], ([place], [place])), shape=(n, n)))


def unseen(dice: Dice) -> Instance:
    """The one negative eigenvector is orthogonal to the constants and the usual random starts."""
    n, delta = _two_orders(dice), dice.power(-4, 1)
    starts = [np.ones(n), *_seeded(n)]
    places = dice.rng.permutation(n)[: 2 * len(starts)]
    near = np.column_stack([start[places] for start in starts])
    u = np.linalg.svd(near.T)[2][-1]
    diagonal = _few(dice, -1, 2, n)
    diagonal[places] = level = dice.power(-1, 2)
    rows, cols = np.repeat(places, places.size), np.tile(places, places.size)
    dip = sp.coo_array((-(level + delta) * np.outer(u, u).ravel(), (rows, cols)), shape=(n, n))
    C = sp.csr_array(sp.diags_array(diagonal) + dip)
    C = (C + C.T) / 2
    better = np.zeros((n, 1))
    better[places, 0] = np.sqrt(delta) * u
    problem = gm.problems.quadratic(None, 1.0, C)
    formula = Formula(n, B=1.0, C=2 * C)
    return Instance("unseen", problem, formula, True, (better,), (np.zeros((n, 1)),))


def _seeded(n: int) -> list[np.ndarray]:
    """The first vectors of generators with seed 0."""
    starts = [np.random.default_rng(0).standard_normal(n), np.random.default_rng(0).random(n)]
    starts += [np.random.RandomState(0).standard_normal(n)]
    for k in (2, 4, 8):
        starts += [*np.random.default_rng(0).standard_normal((n, k)).T]
        starts += [*np.random.default_rng(0).standard_normal((k, n))]
    return starts


def planted_quadratic(dice: Dice) -> Instance:
    """tr((AM)² + bM² + 2CM) with the gradient s(I − vvᵀ) at vvᵀ, but for one coordinate."""
    n, b, s = _two_orders(dice), dice.power(-2, 1), dice.power(-2, 3)
    a, place, delta = _few(dice, -1, 2, n), dice.whole(0, n - 1), dice.power(-4, 0)
    v = dice.normal(n, 1)
    v[place] = 0.0
    v *= dice.power(-1, 1) / np.linalg.norm(v)
    Av = a[:, None] * v
    hidden = _unit(n, place)
    U = _joined(Av, v, v / np.linalg.norm(v), hidden)
    weights = np.array([-1.0, -b, -s, -(s + delta)])
    problem = gm.problems.quadratic(sp.diags_array(a), b, LowRankPlusIdentity(n, s, U, weights))

    def linear(V: np.ndarray) -> np.ndarray:
        return 2 * np.concatenate([s * np.sum(V * V, axis=0), weights @ (U.astype(LD).T @ V) ** 2])

    formula = Formula(n, A=sp.diags_array(a), B=b, linear=linear)
    size = np.sqrt(delta / (a[place] ** 2 + b))
    better = _joined(v, size * hidden)
    return Instance("planted_quadratic", problem, formula, True, (better,), (v,))


def planted_nearest(dice: Dice) -> Instance:
    """Entries of a graph, the gradient Σ w(v_j e_i − v_i e_j)(…)ᵀ at vvᵀ, and a lone node."""
    n, delta = _order(dice), dice.power(-3, 1)
    i = np.arange(n - 2)
    j = dice.rng.integers(0, n - 1, n - 2)
    j = np.where((i == j) | (dice.rng.random(n - 2) < dice.choice([0, 0.5])), i + 1, j)
    v = np.zeros(n)
    v[:-1] = dice.rng.choice([-1, 1], n - 1) * dice.rng.uniform(0.5, 2, n - 1) * dice.power(0, 2)
    w = _few(dice, -1, 1, i.size)
    rows, cols = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
    data = np.concatenate([w * v[j] ** 2, w * v[i] ** 2, -w * v[i] * v[j], -w * v[i] * v[j]])
    S = sp.coo_array((data, (rows, cols)), shape=(n, n)).tocsr()
    S = (S + S.T) / 2
    at, to = (S + _spot(n, n - 1)).tocoo().coords
    t = v[at] * v[to] - np.asarray(S[at, to]).ravel()
    t[(at == n - 1) & (to == n - 1)] = delta
    T = sp.coo_array((t, (at, to)), shape=(n, n))
    formula = Formula(n, [Term(Squares(t, weight=0.5), entries(at, to))])
    v = v[:, None]
    better = _joined(v, np.sqrt(delta) * _unit(n, n - 1))
    probes = (dice.choice([v, _noisy(dice, v)]),)
    return Instance("planted_nearest", gm.problems.nearest(T), formula, True, (better,), probes)


def fixed_trace(dice: Dice) -> Instance:
    """Given diagonal v_i² with trace τ: vvᵀ is optimal; the probe is 0 at one node."""
    n, place = _order(dice), 0
    v = 1 + dice.rng.random((n, 1)) * dice.choice([1, 100])
    v[place] = dice.power(-2, 1)
    t = np.sum(v * v)
    T = sp.diags_array(v[:, 0] ** 2)
    probe = v.copy()
    probe[place] = 0.0
    probe *= np.sqrt(t / np.sum(probe**2))
    problem = gm.problems.nearest(sp.csr_array(T), trace=float(t))
    k = np.arange(n)
    term = Term(Squares(v[:, 0] ** 2, weight=0.5), entries(k, k))
    formula = Formula(n, [term], trace=float(t))
    return Instance("fixed_trace", problem, formula, True, (v,), (probe,))


# --- unfolding and completion --------------------------------------------------------


def unfolding(dice: Dice) -> Instance:
    """A path with a known stress: increasing places are the second vector of a Jacobi matrix."""
    n = dice.whole(LEAST, 1700)
    v = np.cumsum(dice.power(-1, dice.choice([0, 1]), n))
    v -= v.mean()
    d = np.diff(v) ** 2
    push = -np.cumsum(v)[:-1] / (2 * np.diff(v))
    nu = 0.9 * float(np.min(d / push)) * dice.power(-2, 0)
    D = d - nu * push
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    problem = gm.problems.mvu(edges, D, n, nu)

    def linear(V: np.ndarray) -> np.ndarray:
        return -LD(nu) * np.sum((V - V.mean(axis=0)) ** 2, axis=0)

    formula = Formula(n, [Term(Squares(D), distances(*edges.T))], linear=linear)
    folded = np.concatenate([v[: n // 2], 2 * v[n // 2] - v[n // 2 :]])[:, None]
    v = v[:, None]
    probe = dice.choice([v, _noisy(dice, v), folded - folded.mean()])
    return Instance("unfolding", problem, formula, True, (v,), (probe,))


@dataclass(frozen=True)
class Crowd:
    """Cells of a chain or of stars, their largest singular value, and one separate cell."""

    i: np.ndarray
    j: np.ndarray
    size: int
    top: float
    lone: tuple[int, int]

    def with_lone(self, times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows and columns with the separate cell repeated, sorted, and the mask of its copies."""
        i, j = (np.append(a, [c] * times) for a, c in zip((self.i, self.j), self.lone, strict=True))
        order = np.argsort(i, kind="stable")
        return i[order], j[order], np.arange(i.size)[order] >= self.i.size

    def direction(self) -> np.ndarray:
        return _unit(2 * self.size, self.lone[0]) + _unit(2 * self.size, self.size + self.lone[1])


def _crowd(dice: Dice) -> Crowd:
    m, shape = _order(dice, 40_000) // 2, dice.choice(["chain", "stars"])
    dice.twists.append(shape)
    lone = (m - 1, m - 1)
    if dice.twist("unseen", 0.5):
        lone = _cancelling(np.random.default_rng(0).standard_normal(2 * m))
    rows, cols = (np.delete(np.arange(m), place) for place in lone)
    if shape == "chain":
        k = np.repeat(np.arange(m - 1), 2)
        return Crowd(rows[k[1:]], cols[k[:-1]], m, 2.0, lone)
    size, j = dice.whole(1, 16), np.arange(m - 1)
    return Crowd(rows[j // size], cols[j], m, float(np.sqrt(size)), lone)


def _cancelling(start: np.ndarray) -> tuple[int, int]:
    """A row and a column on which a starting vector nearly cancels."""
    m = start.size // 2
    order = np.argsort(start[:m])
    place = np.clip(np.searchsorted(start[:m], -start[m:], sorter=order), 0, m - 1)
    off = np.abs(start[:m][order[place]] + start[m:])
    best = int(np.argmin(off))
    return int(order[place[best]]), best


def heavy_entry(dice: Dice) -> Instance:
    """The singular values of the chain or stars are below λ, that of one entry slightly above."""
    crowd = _crowd(dice)
    shape = crowd.size, crowd.size
    lam = crowd.top * (1 + dice.power(-6, -1))
    heavy = lam * (1 + dice.power(-2.3, -1))
    i, j, lone = crowd.with_lone(1)
    R = np.where(lone, heavy, 1.0)
    problem = gm.problems.nuclear_completion(i, j, R, shape, lam)
    formula = completion_formula(i, j, R, shape, lam, None, np.ones(i.size))
    better = np.sqrt(heavy - lam) * crowd.direction()
    return Instance("heavy_entry", problem, formula, True, (better,), (np.zeros_like(better),))


def heavy_sign(dice: Dice) -> Instance:
    """The same for signs: the separate cell is repeated three times, and its row is scaled."""
    crowd, mu = _crowd(dice), 0.1
    m = crowd.size
    lam = crowd.top * (1 + dice.power(-6, -1))
    i, j, _ = crowd.with_lone(3)
    s = lam * (1 + dice.power(-2.3, -1)) / 3
    a = np.ones(m)
    a[crowd.lone[0]] = s**-2
    problem = gm.problems.mmmf(i, j, np.ones(i.size), (m, m), lam, mu=mu, row_scale=a)
    scale, forms = (1 / np.sqrt(a.astype(LD)))[i][:, None], entries(i, m + j)
    term = Term(SmoothedHinges(mu), lambda V: scale * forms(V))
    better = np.sqrt((1 - mu) / s) * crowd.direction()
    formula = Formula(2 * m, [term], lam / 2)
    return Instance("heavy_sign", problem, formula, True, (better,), (np.zeros_like(better),))


def chain_offsets(dice: Dice) -> Instance:
    """Offsets along a chain with a tiny ridge: an ill-conditioned system."""
    N = dice.whole(200, 1500)
    k = np.repeat(np.arange(N), 2)
    i, j = k[1:], k[:-1]
    R = dice.choice([0.0, 5.0, 1e3]) + dice.normal(i.size)
    ridge, lam = float(dice.choice([1e-6, 1e-4, 1e-2])), dice.power(-1, 2)
    problem = gm.problems.nuclear_completion(i, j, R, (N, N), lam, ridge=ridge)
    formula = completion_formula(i, j, R, (N, N), lam, ridge, np.ones(i.size))
    probes = np.zeros((2 * N, 1)), dice.normal(2 * N, 1) * 0.1
    return Instance("chain_offsets", problem, formula, True, (), probes)


FAMILIES: dict[str, Callable[[Dice], Instance]] = {
    make.__name__: make
    for make in (
        loud_triplets,
        loud_alignment,
        loud_kernel,
        cluster,
        unseen,
        planted_quadratic,
        planted_nearest,
        fixed_trace,
        unfolding,
        heavy_entry,
        heavy_sign,
        chain_offsets,
    )
}
