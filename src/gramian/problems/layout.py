"""Layouts for visualisation: neighbours attract each other, other pairs repel."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import real_numbers
from gramian.common.parameters import positive
from gramian.losses import Repulsion
from gramian.maps import PairDistances
from gramian.maps.base import check_order, refuse_rows
from gramian.objectives import Composite
from gramian.objectives.matrices import Sparse
from gramian.problem import Problem

GRAVITY = 1e-3
"""ρ: large enough to bound tr M*, too small to affect a plot visibly."""


@under_own_errstate
def neighbor_layout(
    edges: ArrayLike,
    pairs: ArrayLike,
    n: int,
    *,
    weights: ArrayLike = 1.0,
    repulsion: float = 2.0,
    gravity: float = GRAVITY,
) -> Problem:
    """min Σ_e ω_e d_M(e) + ρ tr M + c Σ_p ln(1 + 1/(ε + d_M(p))) over M ⪰ 0, ε = 0.01.

    d_M(e) = M_ii + M_jj − 2M_ij. Edges e attract their ends in proportion to their squared length,
    the weakest attraction that is convex in M. Pairs p repel each other, and ρ tr M keeps all
    points together even if the edges do not connect them.

    Parameters
    ----------
    edges : pairs of point indices that attract, shape (p, 2).
    pairs : random pairs that repel, shape (q, 2).
    weights : ω of the edges, one number for each or one for all, not negative.
    repulsion : c.
    gravity : ρ.
    """
    n = check_order(n)
    pulled, pushed = PairDistances(edges, n), PairDistances(pairs, n)
    c, rho = positive(repulsion, "repulsion"), positive(gravity, "gravity")
    w = real_numbers(weights, "weights")
    if w.shape not in ((), (pulled.size,)):
        raise ValueError(f"expected a weight for each of {pulled.size} edges, got shape {w.shape}")
    w = np.array(np.broadcast_to(w, (pulled.size,)), dtype=float)
    refuse_rows(w, ~(np.isfinite(w) & (w >= 0)), "weights", "is not a finite number ≥ 0")
    C = Sparse(pulled.adjoint_sparse(w) + rho * sp.eye_array(n))
    return Problem(
        Composite(pushed, Repulsion(weight=c), C),
        name="neighbor_layout",
        formula="Σ_e ω_e d_M(e) + ρ tr M + c Σ_p ln(1 + 1/(ε + d_M(p)))",
    )
