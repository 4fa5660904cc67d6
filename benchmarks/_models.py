"""Instances that several benchmarks solve: RegMVU on a Swiss roll, NPKL on the adult sets."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.sparse.linalg import eigsh
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import kneighbors_graph

import gramian as gm
from benchmarks.harness.learn import seconds_of
from benchmarks.harness.report import Table
from gramian.losses import Squared
from gramian.objectives import Composite

NEVER = 10**9
"""An interval of certificates that no run reaches."""

# --- RegMVU on a Swiss roll, SQLP thesis §3.4 ----------------------------------------

ROLL_POINTS, ROLL_NEIGHBOURS = 2000, 4


@dataclass(frozen=True, eq=False)
class Roll:
    """A Swiss roll whose symmetric nearest-neighbour graph is connected; (p, 2) edges."""

    seed: int
    graph: sp.csr_matrix
    edges: np.ndarray
    sq_distances: np.ndarray


def swiss_roll() -> Roll:
    """2000 points of the first seed whose symmetric 4-NN graph is connected."""
    seed = 0
    while True:
        X, _ = make_swiss_roll(ROLL_POINTS, random_state=seed)
        graph = kneighbors_graph(X, ROLL_NEIGHBOURS)
        graph = graph.maximum(graph.T)
        if csgraph.connected_components(graph, directed=False)[0] == 1:
            break
        seed += 1
    edges = np.column_stack(sp.triu(graph).nonzero())
    return Roll(seed, graph, edges, np.sum((X[edges[:, 0]] - X[edges[:, 1]]) ** 2, axis=1))


def smooth_basis(graph: sp.csr_matrix, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The m smallest positive eigenvalues of the Laplacian of a connected graph, and vectors."""
    L = sp.csc_matrix(csgraph.laplacian(graph))
    v0 = np.cos(np.arange(L.shape[0]))
    values, vectors = eigsh(L, k=m + 1, sigma=-1e-6, v0=v0)
    order = np.argsort(values)[1:]
    return values[order], vectors[:, order]


def roll_bases(sizes: tuple[int, ...]) -> Table:
    """Seconds and eigenvalues of the bases of the Swiss roll."""
    roll = swiss_roll()
    caption = f"The basis: seed {roll.seed}, {len(roll.edges)} edges"
    table = Table(caption, ("m", "seconds of eigsh", "λ_1", "λ_m"))
    for m in sizes:
        (values, _), seconds = seconds_of(lambda m=m: smooth_basis(roll.graph, m))
        table.add(m, seconds, float(values[0]), float(values[-1]))
    return table


# --- NPKL on the adult sets, BiS §IV-A -----------------------------------------------

ADULT_NEIGHBOURS, LINK_SHARE = 10, 0.6


@dataclass(frozen=True)
class KernelModel:
    """The data of `gm.problems.npkl`, and the seconds of making them."""

    laplacian: sp.csr_array
    must_link: np.ndarray
    cannot_link: np.ndarray
    y: np.ndarray
    graph_seconds: float
    links_seconds: float

    def problem(self, lam: float = 1.0) -> gm.Problem:
        return gm.problems.npkl(self.laplacian, self.must_link, self.cannot_link, lam)

    @property
    def rank(self) -> int:
        """The rank of the paper."""
        return paper_rank(len(self.must_link) + len(self.cannot_link))


def kernel_model(X: Any, y: np.ndarray, laplacian: Callable[[Any], sp.csr_array]) -> KernelModel:
    """The Laplacian of the samples, and links of their classes."""
    start = time.perf_counter()
    L = laplacian(X)
    middle = time.perf_counter()
    pairs = links(y)
    return KernelModel(L, *pairs, y, middle - start, time.perf_counter() - middle)


def adult_model(X: sp.csr_array, y: np.ndarray) -> KernelModel:
    """The model of a sparse set, with neighbours by dense brute force."""
    return kernel_model(X, y, lambda X: normalised_laplacian(X.toarray()))


def normalised_laplacian(X: Any) -> sp.csr_array:
    """I − D^{-1/2} W D^{-1/2}; W_ij = exp(−d²/2σ²) between neighbours, σ their mean distance.

    The distances of binary samples have ties, so the neighbours depend on whether X is sparse or
    dense; dense takes half the time.
    """
    graph = kneighbors_graph(X, ADULT_NEIGHBOURS, mode="distance")
    graph.data = np.exp(-0.5 * (graph.data / graph.data.mean()) ** 2)
    W = graph.maximum(graph.T)
    scale = sp.diags_array(1 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    L = sp.eye_array(X.shape[0]) - scale @ W @ scale
    return sp.csr_array(0.5 * (L + L.T))


def links(y: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """0.6 n random must-links within classes, and as many cannot-links across classes."""
    rng = np.random.default_rng(seed)
    count = round(LINK_SHARE * y.size)
    return random_pairs(y, True, count, rng), random_pairs(y, False, count, rng)


def random_pairs(y: np.ndarray, same: bool, count: int, rng: np.random.Generator) -> np.ndarray:
    """Distinct pairs i < j within a class, or across classes, uniformly at random.

    The pairs are numbered row by row and the numbers drawn, without a list of all pairs.
    """
    within = np.empty(y.size, dtype=np.int64)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        within[members] = np.arange(members.size)[::-1]
    partners = within if same else np.arange(y.size)[::-1] - within
    ends = np.cumsum(partners)
    numbers = rng.choice(ends[-1], count, replace=False)
    rows = np.searchsorted(ends, numbers, side="right")
    places = numbers - (ends - partners)[rows]
    cols = [
        i + 1 + np.flatnonzero((y[i + 1 :] == y[i]) == same)[k]
        for i, k in zip(rows, places, strict=True)
    ]
    return np.column_stack([rows, cols])


def paper_rank(m: int) -> int:
    """The largest r with r(r + 1) ≤ m, m the number of linked pairs."""
    return int((np.sqrt(1 + 4 * m) - 1) / 2)


def with_trace(problem: gm.Problem, lam: float) -> gm.Problem:
    """The same F of NPKL with a linear term that bounds the trace, as Frank–Wolfe requires.

    (z − 1)² on the diagonal is (z − 1 − s)² + 2s(z − 1) − s², whose linear part is a trace. The
    shift s minimises the bound on the trace that follows from F* ≤ F(0).
    """
    F, n = problem.objective, problem.order
    shift = float(np.sqrt(2 * problem.value(np.zeros((n, 0))) / (lam * n)))
    target = F.loss.centre + shift * (F.map.rows == F.map.cols)
    C = F.C.matrix + lam * shift * sp.eye_array(n)
    constant = -lam * n * (shift * (1 + shift) - 0.5 * shift**2)
    objective = Composite(F.map, Squared(target, weight=0.5 * lam), C=C, constant=constant)
    return replace(problem, objective=objective)


def until_small_change(least: float) -> Callable[[gm.State], bool]:
    """A callback that stops at a relative change of the objective below `least`."""
    last = np.inf

    def small(state: gm.State) -> bool:
        nonlocal last
        previous, last = last, state.value
        return bool(abs(previous - state.value) < least * abs(previous))

    return small
