"""Small problems of every family, with data that are hard for certificates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks._attack.formulas import (
    LD,
    Formula,
    Term,
    distances,
    entries,
    margins,
    outer,
    sample_distances,
    stacked,
)
from benchmarks._attack.instances import Dice, Instance
from benchmarks._attack.losses import (
    OffsetSquares,
    SmoothedHinges,
    SoftMinimum,
    SquaredHinges,
    Squares,
    Weighted,
)

RAY = tuple(10.0**k for k in range(0, 13, 2))
"""Distances along a ray of the points that show that F is unbounded below."""


def along(direction: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.sqrt(t) * direction for t in RAY)


# --- quadratics ----------------------------------------------------------------------


def quadratic(dice: Dice) -> Instance:
    n, s = dice.order(2), dice.scale()
    shape = dice.choice(["definite", "definite", "A only", "B only", "singular", "unbounded"])
    C = dice.symmetric(n) * dice.power(-1, 1)
    ray: tuple[np.ndarray, ...] = ()
    if shape in ("singular", "unbounded"):
        A, B, C, ray = _singular(dice, n, falls=shape == "unbounded")
    else:
        A = None if shape == "B only" else dice.definite(n)
        B = None if shape == "A only" else dice.definite(n)
        if dice.twist("optimum 0", 0.1):
            C = dice.definite(n)
        if A is not None and B is not None and dice.twist("B singular", 0.3):
            v = dice.normal(n, max(1, n // 4))
            B = v @ v.T
    A, B = (None if S is None else S * s for S in (A, B))
    C = C * s
    formula = Formula(n, A=A, B=B, C=2 * C)
    bounded = shape != "unbounded"
    return Instance("quadratic", gm.problems.quadratic(A, B, C), formula, bounded, ray)


def _singular(dice: Dice, n: int, *, falls: bool) -> tuple[Any, Any, np.ndarray, Any]:
    """A and B vanish on the last coordinates, where C is definite, or negative in one."""
    rank = dice.whole(1, n - 1)
    A = np.pad(dice.definite(rank), (0, n - rank))
    B = dice.choice([None, np.pad(dice.definite(rank), (0, n - rank))])
    C = dice.symmetric(n)
    C[rank:, rank:] = dice.definite(n - rank)
    if not falls:
        dice.twists.append("singular")
        return A, B, C, ()
    dice.twists.append("unbounded")
    C[-1, -1] = -dice.power(-3, 1)
    return A, B, C, along(np.eye(n)[:, -1:])


def top_eigen(dice: Dice) -> Instance:
    n = dice.order()
    K = dice.symmetric(n)
    kind = dice.choice(["any", "any", "psd", "negative", "rank one", "repeated"])
    if kind in ("psd", "negative"):
        K = dice.definite(n) * (1 if kind == "psd" else -1)
    elif kind == "rank one":
        K = np.outer(K[0], K[0])
    elif kind == "repeated":
        K = np.diag(np.where(np.arange(n) % 2, 1.0, -1.0))
    dice.twists.append(kind)
    K = K * dice.scale()
    values, vectors = np.linalg.eigh(K)
    answer = vectors * np.sqrt(np.maximum(values, 0.0))
    form = dice.choice([K, sp.csr_array(K)])
    formula = Formula(n, [Term(Squares(K.ravel().astype(LD)), outer())])
    return Instance("top_eigen", gm.problems.top_eigen(form), formula, True, (answer,))


def _labelled(dice: Dice, most: int = 24) -> tuple[np.ndarray, np.ndarray]:
    d = min(dice.order(), dice.features)
    count = dice.whole(4, dice.most or most)
    if count < d:
        dice.twists.append("n < d")
    X = dice.samples(count, d)
    classes = dice.whole(2, max(2, count // 4))
    return X, dice.rng.permutation(np.arange(count) % classes)


def _regularised(name: str, d: int) -> tuple[list[Term], Any]:
    """‖M − I‖², ‖M‖² or tr M, as terms and C."""
    if name == "trace":
        return [], 1.0
    centre = np.eye(d).ravel() if name == "identity" else 0.0
    return [Term(Squares(centre), outer())], None


def kta(dice: Dice) -> Instance:
    X, y = _labelled(dice)
    lam, name = dice.power(-4, 2), dice.choice(["identity", "frobenius", "trace"])
    terms, C = _regularised(name, X.shape[1])
    same = (y[:, None] == y).astype(float).ravel()
    wide = X.astype(LD)
    size = outer(abs(wide), abs(wide))
    terms.append(Term(Squares(same, weight=lam), outer(wide, wide), size))
    problem = gm.problems.kta(X, y, lam, regularizer=name)
    return Instance("kta", problem, Formula(X.shape[1], terms, C), True)


def linear_separation(dice: Dice) -> Instance:
    X, y = _labelled(dice)
    lam, name = dice.power(-4, 1), dice.choice(["identity", "frobenius", "trace"])
    terms, C = _regularised(name, X.shape[1])
    i, j = np.triu_indices(len(y), 1)
    sign = np.where(y[i] == y[j], lam, -lam)
    terms.append(Term(Weighted(sign), sample_distances(X, i, j)))
    problem = gm.problems.linear_separation(X, y, lam, regularizer=name)
    formula = Formula(X.shape[1], terms, C)
    bounded, ray = True, ()
    if name == "trace":
        bounded, ray = _falls(X, i, j, sign)
    return Instance("linear_separation", problem, formula, bounded, ray)


def _falls(X: np.ndarray, i: Any, j: Any, sign: np.ndarray) -> tuple[Any, Any]:
    """Whether I + Σ ω(x_i − x_j)(x_i − x_j)ᵀ has no negative eigenvalue, and the ray if it has."""
    D = X[i] - X[j]
    values, vectors = np.linalg.eigh(np.eye(X.shape[1]) + (D.T * sign) @ D)
    doubt = 1e-9 * float(np.sum(np.abs(sign)[:, None] * D * D)) + 1e-9
    if values[0] > doubt:
        return True, ()
    return (False, along(vectors[:, :1])) if values[0] < -doubt else (None, ())


# --- local metrics -------------------------------------------------------------------


def lmnn(dice: Dice) -> Instance:
    X, y = _labelled(dice, most=14)
    k, lam = 1, dice.power(-3, 2)
    while np.bincount(y).min() <= k:
        y = np.arange(len(y)) % 2
    near = gm.constraints.same_class_neighbors(X, y, k)
    i, j = np.repeat(np.arange(len(y)), k), near.ravel()
    anchor, other = np.nonzero(y[:, None] != y)
    table = np.column_stack([np.repeat(anchor, k), near[anchor].ravel(), np.repeat(other, k)])
    terms = [
        Term(Weighted(), sample_distances(X, i, j)),
        Term(SquaredHinges(weight=lam), margins(X, table)),
    ]
    return Instance("lmnn", gm.problems.lmnn(X, y, k, lam), Formula(X.shape[1], terms), True)


def _triples(dice: Dice, count: int, most: int) -> np.ndarray:
    rows = np.argsort(dice.rng.random((dice.whole(1, most), count)), axis=1)[:, :3]
    if dice.twist("contradictory", 0.15):
        rows = np.vstack([rows, rows[:, [0, 2, 1]]])
    return rows[dice.rng.integers(0, len(rows), len(rows))] if dice.chance(0.15) else rows


def triplets(dice: Dice) -> Instance:
    count = dice.whole(3, 20)
    X = dice.samples(count, dice.order())
    table = _triples(dice, count, 40)
    lam, mu = dice.power(-2, 2), dice.power(-4, 1)
    terms = [Term(SmoothedHinges(mu, weight=lam), margins(X, table))]
    problem = gm.problems.triplets(X, table, lam, mu)
    return Instance("triplets", problem, Formula(X.shape[1], terms, 1.0), True)


def _pairs(dice: Dice, count: int, most: int) -> np.ndarray:
    return np.argsort(dice.rng.random((dice.whole(1, most), count)), axis=1)[:, :2]


def _whitened(X: np.ndarray, similar: np.ndarray, ridge: float) -> np.ndarray:
    """XG⁻ᵀ for the Cholesky factor G of the scatter of the similar pairs, in LD."""
    X = X.astype(LD)
    D = X[similar[:, 0]] - X[similar[:, 1]]
    S = D.T @ D
    d = len(S)
    S = S + ridge * np.trace(S) / d * np.eye(d, dtype=LD)
    G = np.zeros_like(S)
    out = X.T.copy()
    for k in range(d):
        G[k, k] = np.sqrt(S[k, k] - G[k, :k] @ G[k, :k])
        G[k + 1 :, k] = (S[k + 1 :, k] - G[k + 1 :, :k] @ G[k, :k]) / G[k, k]
        out[k] = (out[k] - G[k, :k] @ out[:k]) / G[k, k]
    return out.T


def _whitening_data(dice: Dice) -> tuple[np.ndarray, np.ndarray, float]:
    d = min(dice.order(), 10)
    count = dice.whole(4, 20)
    X = dice.samples(count, d)
    return X, _pairs(dice, count, 30), dice.choice([1e-3, 1e-2, 1.0])


def dml_eig(dice: Dice) -> Instance:
    X, similar, ridge = _whitening_data(dice)
    apart, mu = _pairs(dice, len(X), 30), dice.power(-5, 1)
    problem = gm.problems.dml_eig(X, similar, apart, mu, ridge=ridge)
    white = _whitened(X, similar, ridge)
    terms = [Term(SoftMinimum(mu), sample_distances(white, *apart.T))]
    return Instance("dml_eig", problem, Formula(X.shape[1], terms, trace=1.0), True)


def lmnn_eig(dice: Dice) -> Instance:
    X, similar, ridge = _whitening_data(dice)
    table, mu = _triples(dice, len(X), 30), dice.power(-4, 1)
    gamma = float(dice.choice([0.5, 0.1, 0.9, 1e-3]))
    problem = gm.problems.lmnn_eig(X, similar, table, gamma, mu, ridge=ridge)
    inner, d = margins(_whitened(X, similar, ridge), table), X.shape[1]
    forms = stacked(lambda V: inner(V[:d]), lambda V: V[d:] ** 2)
    rate: Any = LD(gamma) / (1 - LD(gamma))
    terms = [Term(SoftMinimum(mu, rate), forms)]
    return Instance("lmnn_eig", problem, Formula(d + 1, terms, trace=1 / gamma), True)


# --- graphs --------------------------------------------------------------------------


def _graph(dice: Dice, n: int, *, connected: bool = True) -> np.ndarray:
    """Edges i < j, each once: a random tree and some more."""
    tree = [(dice.whole(0, k - 1), k) for k in range(1, n)]
    if not connected:
        cut = dice.whole(1, n - 1)
        tree = [e for e in tree if (e[0] < cut) == (e[1] < cut)]
    drawn = np.sort(dice.rng.integers(0, n, (dice.whole(0, 2 * n), 2)), axis=1)
    more = [(a, b) for a, b in drawn if a != b and (connected or (a < cut) == (b < cut))]
    every = [*tree, *more]
    return np.unique(np.array(every, dtype=int).reshape(-1, 2), axis=0)


def mvu(dice: Dice) -> Instance:
    n, s = dice.order(3), dice.scale()
    falls = dice.twist("unbounded", 0.1)
    edges = _graph(dice, n, connected=not falls)
    if not len(edges):
        return mvu(dice)
    D = s * np.abs(dice.normal(len(edges)))
    if dice.twist("zero lengths", 0.1):
        D[dice.rng.random(len(D)) < 0.5] = 0.0
    nu = s * dice.power(-3, 2)
    H = np.eye(n, dtype=LD) - LD(1) / n
    K, inner = None, H
    if not falls and dice.twist("colored", 0.3):
        Y = dice.normal(n, dice.whole(1, 3))
        K = Y @ Y.T
        K = (K + K.T) / 2
        inner = H @ K @ H
    formula = Formula(n, [Term(Squares(D), distances(*edges.T))], C=-LD(nu) * inner)
    ray = along(_parts(n, edges)) if falls else ()
    return Instance("mvu", gm.problems.mvu(edges, D, n, nu, K), formula, not falls, ray)


def _parts(n: int, edges: np.ndarray) -> np.ndarray:
    """1 on the part of the first point and 0 elsewhere."""
    W = sp.coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(n, n))
    labels = sp.csgraph.connected_components(W, directed=False)[1]
    return (labels == labels[0]).astype(float)[:, None]


def _basis(dice: Dice, n: int, edges: np.ndarray) -> np.ndarray:
    W = np.zeros((n, n))
    W[edges[:, 0], edges[:, 1]] = W[edges[:, 1], edges[:, 0]] = 1.0
    vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)[1]
    return np.ascontiguousarray(vectors[:, 1 : 1 + dice.whole(1, min(n - 1, 12))])


def reg_mvu(dice: Dice) -> Instance:
    n = dice.order(3)
    edges = _graph(dice, n)
    Q, s = _basis(dice, n, edges), dice.scale()
    D, nu = s * np.abs(dice.normal(len(edges))), dice.power(-2, 3) / s
    forms = sample_distances(Q, *edges.T)
    formula = Formula(Q.shape[1], [Term(Squares(D, weight=nu), forms)], C=-1.0)
    return Instance("reg_mvu", gm.problems.reg_mvu(Q, edges, D, nu), formula, True)


def _links(dice: Dice, n: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.unique(np.sort(_pairs(dice, n, 2 * n), axis=1), axis=0)
    must = dice.rng.random(len(pairs)) < 0.5
    return pairs[must], pairs[~must]


def _linked(must: np.ndarray, cannot: np.ndarray, n: int) -> tuple[Any, Any, np.ndarray]:
    every = np.vstack([must, cannot, np.column_stack([np.arange(n)] * 2)])
    targets = np.repeat([1.0, 0.0, 1.0], [len(must), len(cannot), n])
    return every[:, 0], every[:, 1], targets


def npkl(dice: Dice) -> Instance:
    n, lam = dice.order(3), dice.power(-2, 3)
    edges = _graph(dice, n, connected=dice.chance(0.7))
    W = np.zeros((n, n))
    W[edges[:, 0], edges[:, 1]] = dice.power(-2, 1, len(edges))
    W = (W + W.T) * dice.scale()
    laplacian = np.diag(W.sum(axis=1)) - W
    must, cannot = _links(dice, n)
    i, j, T = _linked(must, cannot, n)
    form = dice.choice([laplacian, sp.csr_array(laplacian)])
    problem = gm.problems.npkl(form, must, cannot, lam)
    formula = Formula(n, [Term(Squares(T, weight=lam / 2), entries(i, j))], C=laplacian)
    return Instance("npkl", problem, formula, True)


def reg_pcp(dice: Dice) -> Instance:
    n = dice.order(3)
    Q = _basis(dice, n, _graph(dice, n))
    if dice.twist("rank-deficient", 0.15):
        Q[:, -1] = Q[:, 0]
    Q = Q * np.sqrt(dice.scale())
    must, cannot = _links(dice, n)
    i, j, T = _linked(must, cannot, n)
    wide = Q.astype(LD)
    forms = entries(i, j)
    formula = Formula(Q.shape[1], [Term(Squares(T), lambda V: forms(wide @ V))])
    return Instance("reg_pcp", gm.problems.reg_pcp(Q, must, cannot), formula, True)


# --- completion ----------------------------------------------------------------------


def nearest(dice: Dice) -> Instance:
    n, s = dice.order(), dice.scale()
    T = dice.symmetric(n)
    if dice.twist("value 0", 0.15):
        L = dice.factor(n)
        T = L @ L.T
    T = T * s
    known = np.triu(dice.rng.random((n, n)) < dice.choice([0.3, 0.8, 1.0]))
    np.fill_diagonal(known, True)
    known = known | known.T
    W = np.ones((n, n))
    if dice.twist("weights", 0.4):
        W = dice.power(-2, 2, (n, n))
        W = np.triu(W) + np.triu(W, 1).T
        if dice.twist("zero weights", 0.3):
            W = np.where((dice.rng.random((n, n)) < 0.3) & ~np.eye(n, dtype=bool), 0.0, W)
            W = np.triu(W) + np.triu(W, 1).T
    kind = dice.choice([None, "number", "matrix"])
    C = {None: None, "number": s * dice.power(-3, 1), "matrix": s * dice.symmetric(n)}[kind]
    trace = s * dice.power(-1, 1) if dice.twist("fixed trace", 0.25) else None
    i, j = np.nonzero(known)
    problem = gm.problems.nearest(np.where(known, T, np.nan), weights=W, C=C, trace=trace)
    term = Term(Squares(T[i, j], weight=W[i, j] / 2), entries(i, j))
    return Instance("nearest", problem, Formula(n, [term], C, trace=trace), True)


def _cells(dice: Dice) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    m, n = min(dice.order(), 12), min(dice.order(), 12)
    shape = dice.choice(["random", "random", "chain", "star", "full"])
    dice.twists.append(shape)
    if shape == "chain":
        n = m
        k = np.repeat(np.arange(m), 2)
        i, j = (k[1:], k[:-1]) if m > 1 else (k[:1], k[:1])
    elif shape == "star":
        i, j = np.zeros(n, dtype=int), np.arange(n)
    elif shape == "full":
        i, j = (a.ravel() for a in np.indices((m, n)))
    else:
        cells = np.sort(dice.rng.integers(0, m * n, dice.whole(1, m * n)))
        i, j = np.divmod(cells if dice.chance(0.2) else np.unique(cells), n)
    return i, j, (m, n)


def _scales(dice: Dice, m: int, n: int) -> tuple[Any, Any]:
    if dice.twist("weighted norm", 0.3):
        return dice.power(-2, 2, m), dice.power(-2, 2, n)
    return np.ones(m), np.ones(n)


def nuclear_completion(dice: Dice) -> Instance:
    i, j, (m, n) = _cells(dice)
    s = dice.scale()
    R = s * (dice.normal(i.size) + dice.choice([0.0, 5.0, 1e3]))
    a, b = _scales(dice, m, n)
    ridge = dice.choice([None, None, 1e-6, 1e-2, 1.0])
    lam = s * dice.power(-3, 2)
    options = {"row_scale": a, "col_scale": b, "ridge": ridge}
    problem = gm.problems.nuclear_completion(i, j, R, (m, n), lam, **options)
    scale = 1 / np.sqrt(a.astype(LD)[i] * b[j])
    formula = completion_formula(i, j, R, (m, n), lam, ridge, scale)
    return Instance("nuclear_completion", problem, formula, True)


def completion_formula(
    i: Any, j: Any, R: Any, shape: tuple[int, int], lam: float, ridge: float | None, scale: Any
) -> Formula:
    """½ Σ (U + b_i + c_j − R)² + κ/2 (‖b‖² + ‖c‖²) + λ/2 tr M."""
    m, n = shape
    forms = entries(i, m + j)
    if ridge is None:
        term = Term(Squares(R / scale, weight=scale * scale / 2), forms)
    else:
        one, at = np.ones(2 * i.size), np.tile(np.arange(i.size), 2)
        places = np.concatenate([i, m + j])
        E = sp.csr_array(sp.coo_array((one, (at, places)), shape=(i.size, m + n)))
        term = Term(OffsetSquares(np.asarray(R), scale, E, ridge, []), forms)
    return Formula(m + n, [term], C=lam / 2)


def mmmf(dice: Dice) -> Instance:
    i, j, (m, n) = _cells(dice)
    y = np.where(dice.rng.random(i.size) < 0.5, 1.0, -1.0)
    a, b = _scales(dice, m, n)
    lam, mu, margin = dice.power(-2, 1), dice.power(-3, 1), dice.choice([1.0, 0.0, 1e3])
    options = {"margin": margin, "mu": mu, "row_scale": a, "col_scale": b}
    problem = gm.problems.mmmf(i, j, y, (m, n), lam, **options)
    signed = (y / np.sqrt(a.astype(LD)[i] * b[j]))[:, None]
    forms = entries(i, m + j)
    term = Term(SmoothedHinges(mu, margin), lambda V: signed * forms(V))
    return Instance("mmmf", problem, Formula(m + n, [term], lam / 2), True)


def mmmf_eig(dice: Dice) -> Instance:
    i, j, (m, n) = _cells(dice)
    y = np.where(dice.rng.random(i.size) < 0.5, 1.0, -1.0)
    gamma, mu = dice.power(-2, 1), dice.power(-4, 0)
    problem = gm.problems.mmmf_eig(i, j, y, (m, n), gamma, mu)
    forms = entries(i, m + j)
    both = stacked(lambda V: y[:, None] * forms(V), lambda V: V[-1:] ** 2)
    formula = Formula(m + n + 1, [Term(SoftMinimum(mu, gamma), both)], trace=1 / gamma)
    return Instance("mmmf_eig", problem, formula, True)


FAMILIES: dict[str, Callable[[Dice], Instance]] = {
    make.__name__: make
    for make in (
        quadratic,
        top_eigen,
        kta,
        linear_separation,
        lmnn,
        triplets,
        dml_eig,
        lmnn_eig,
        mvu,
        reg_mvu,
        npkl,
        reg_pcp,
        nearest,
        nuclear_completion,
        mmmf,
        mmmf_eig,
    )
}
