"""SQLP thesis, Table 3.2: RegPCP's quadratic on USPS as SCSDP, as SQLP, as it stands, and by auto.

Σ_S ((QYQᵀ)_ij − t_ij)² over Y ⪰ 0, with the m smoothest eigenvectors Q of the normalised Laplacian
of the 20-NN graph of 2000 images, S their diagonal and 1100 links.
"""

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

import gramian as gm
from benchmarks import _formulations as forms
from benchmarks._models import random_pairs
from benchmarks.harness.context import Context
from benchmarks.harness.learn import seconds_of
from benchmarks.harness.report import Report, Table
from gramian.graph import neighbor_graph
from gramian.neighbours import nearest

TITLE = "QSDP as SCSDP, as SQLP, as a quadratic objective and by auto: RegPCP on USPS"
PAPER = "SQLP (Wu 2011), Table 3.2"
NEEDS_DATA = ("usps",)

PRINTED: dict[int, dict[str, tuple[float, int]]] = {
    # m: formulation -> (seconds, iterations), CSDP for SCSDP and SDPT3 for SQLP
    10: {"scsdp": (2.84, 21), "sqlp": (0.47, 16)},
    15: {"scsdp": (42.96, 22), "sqlp": (1.26, 17)},
    20: {"scsdp": (461.38, 27), "sqlp": (3.35, 17)},
    25: {"scsdp": (2572.72, 31), "sqlp": (5.97, 14)},
    30: {"scsdp": (10576.01, 30), "sqlp": (15.72, 19)},
    35: {"scsdp": (35173.60, 30), "sqlp": (44.53, 17)},
    40: {"sqlp": (133.58, 20)},
    50: {"sqlp": (362.24, 16)},
    60: {"sqlp": (936.58, 19)},
    80: {"sqlp": (1784.12, 17)},
    100: {"sqlp": (2900.44, 17)},
}
OF_EACH, NEIGHBOURS, LINKS = 200, 20, 20
"""Images of each digit, and links of each class and of each pair of classes."""

NOTES = (
    f"The first {OF_EACH} training images of each digit; weights exp(−d²/2σ²) between {NEIGHBOURS} "
    f"nearest neighbours, σ the mean distance to the {NEIGHBOURS}th; {LINKS} random must-links of "
    f"each class and {LINKS} cannot-links of each pair of classes, 3100 squares with the diagonal.",
)


def run(ctx: Context) -> Report:
    """Every method at every m it reaches."""
    sizes = ctx.pick(*forms.SIZES)
    data = ctx.load("usps")
    rows = np.concatenate([np.flatnonzero(data.y == digit)[:OF_EACH] for digit in range(10)])
    must, cannot = constraints(data.y[rows])
    laplacian = normalised_laplacian(data.X[rows])
    (values, basis), seconds = seconds_of(lambda: smallest(laplacian, sizes[-1]))
    given = {m: {"basis": basis[:, :m], "must": must, "cannot": cannot} for m in sizes}
    found = forms.all_series(ctx, solve, given)
    forms.curves(ctx, found)
    last = Table("The basis", ("m", "seconds of eigsh", "λ_1", "λ_m"))
    last.add(sizes[-1], seconds, float(values[0]), float(values[-1]))
    notes = (*NOTES, *forms.NOTES, f"Limit: {ctx.pick(*forms.LIMITS):g} s a call.")
    return ctx.report([*forms.tables(found, PRINTED, sizes), last], notes)


def constraints(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Random must-links of each class, and cannot-links of each pair of classes."""
    rng = np.random.default_rng(0)
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    must = [members[random_pairs(y[members], True, LINKS, rng)] for members in classes]
    both = [np.concatenate(two) for two in combinations(classes, 2)]
    cannot = [members[random_pairs(y[members], False, LINKS, rng)] for members in both]
    return np.vstack(must), np.vstack(cannot)


def normalised_laplacian(X: np.ndarray) -> sp.csc_array:
    graph = neighbor_graph(X, NEIGHBOURS, connect="components")
    last = nearest(X, NEIGHBOURS).indices[:, -1]
    sigma = float(np.mean(np.linalg.norm(X - X[last], axis=1)))
    return sp.csc_array(graph.laplacian(graph.weights(np.sqrt(2.0) * sigma), normalized=True))


def smallest(laplacian: sp.csc_array, m: int) -> tuple[np.ndarray, np.ndarray]:
    """The m smallest eigenvalues and their vectors."""
    v0 = np.cos(np.arange(laplacian.shape[0]))
    values, vectors = eigsh(laplacian, k=m, sigma=-1e-6, v0=v0)
    order = np.argsort(values)
    return values[order], vectors[:, order]


def solve(
    basis: np.ndarray, must: np.ndarray, cannot: np.ndarray, solver: str, options: dict[str, Any],
    repeat: int,
) -> forms.Row:  # fmt: skip
    """One method at one m, in a child process."""
    return forms.measured(gm.problems.reg_pcp(basis, must, cannot), solver, options, repeat)
