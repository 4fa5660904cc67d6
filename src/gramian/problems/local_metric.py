"""Metric learning from pairs and triplets: LMNN, DML-eig, LMNN-eig and the triplet hinge."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import checked_samples, class_indices, near_origin, refuse_masked
from gramian.common.parameters import INSIDE, positive
from gramian.common.types import Array, Indices
from gramian.constraints import as_pairs, same_class_neighbors
from gramian.domains import Spectrahedron
from gramian.losses import FilledSoftMin, SmoothedHinge, SoftMin, SquaredHinge
from gramian.maps import Congruence, Mix, PairDistances, anchored_margins, triplet_margins
from gramian.maps.base import index_columns
from gramian.objectives import Composite
from gramian.objectives.matrices import Dense, Gram
from gramian.problem import Problem
from gramian.reductions.scatter_whitening import ScatterWhitening, scatter_whitening
from gramian.reductions.slack import SlackRow

ROUNDINGS = 32
"""Number of rounding errors in an entry of a scatter matrix."""

MOST_TRIPLETS = 50_000_000
"""Largest number of triplets; `gramian.metric.LMNN` only stores the active ones."""


@under_own_errstate
def triplets(X: Any, triplets: ArrayLike, lam: float, mu: float) -> Problem:
    """min tr M + λ Σ h_μ(1 + d_M(i, j) − d_M(i, l)) over M ⪰ 0, BiS eqs. (34)–(35).

    The rows of `triplets` are (i, j, l) = (anchor, same, other), h_μ is the smoothed hinge.
    """
    X = _samples(X)
    refuse_masked(triplets, "triplets")
    loss = SmoothedHinge(mu=mu, weight=positive(lam, "lam"))
    margins = Congruence(triplet_margins(triplets, X.shape[0]), X)
    return Problem(
        Composite(margins, loss, C=1.0),
        name="triplets",
        formula="tr M + λ Σ h_μ(1 + d_M(i,j) − d_M(i,l))",
    )


@under_own_errstate
def lmnn(X: Any, y: ArrayLike, k: int, lam: float) -> Problem:
    """min Σ_S d_M(i, j) + λ Σ_R max(0, 1 − d_M(i, l) + d_M(i, j))² over M ⪰ 0, BILGO eq. (8).

    S joins every sample i to its k nearest j of the same class, R every such pair to all l of
    other classes (the paper prints the margin with X_jk). R has n·k·n triplets: beyond some
    thousand samples use `gramian.metric.LMNN`, which only stores the active ones.
    """
    X = _samples(X)
    near = same_class_neighbors(X, y, k)
    classes = class_indices(y)[1]
    sizes = np.bincount(classes)
    count = k * int(np.sum(sizes * (classes.size - sizes)))
    if count > MOST_TRIPLETS:
        raise ValueError(
            f"{X.shape[0]} samples with k = {k} have {count:,} triplets, too many to enumerate; "
            "gramian.metric.LMNN solves the same problem with the active ones"
        )
    anchor, other = np.nonzero(classes[:, None] != classes)
    every = np.column_stack([np.repeat(anchor, k), near[anchor].ravel(), np.repeat(other, k)])
    return lmnn_of_triplets(X, as_pairs(near), every, lam)


def lmnn_of_triplets(
    X: Any, similar: Indices, triplets: Indices, lam: float, *, pull: Any = None
) -> Problem:
    """`lmnn` with S and R given; `pull` replaces the scatter of S if known."""
    C = _scatter(X, similar) if pull is None else pull
    return _lmnn(Congruence(triplet_margins(triplets, X.shape[0]), X), lam, C)


def lmnn_of_keys(X: Any, near: Any, keys: Any, lam: float, pull: float) -> Problem:
    """`lmnn` with triplets by their keys (see `anchored_margins`) and pull·tr M, on any device."""
    margins = anchored_margins(near, keys, columns=int(X.shape[1]))
    return _lmnn(Congruence(margins, X), lam, pull)


def _lmnn(margins: Congruence, lam: float, C: Any) -> Problem:
    loss = SquaredHinge(margin=1.0, weight=positive(lam, "lam"))
    return Problem(
        Composite(margins, loss, C=C),
        name="lmnn",
        formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
    )


@under_own_errstate
def dml_eig(
    X: Any, similar: ArrayLike, dissimilar: ArrayLike, mu: float, *, ridge: float = 0.0
) -> Problem:
    """min μ ln Σ_D exp(−⟨X̃_τ, S⟩/μ) over S ⪰ 0, tr S = 1: DML-eig eq. (19), smoothed.

    X̃_τ is the pair's difference after whitening by the Cholesky factor of the similar pairs'
    scatter X_S (see `whitening`); with R as there the metric is M = R S Rᵀ.
    """
    X = _samples(X)
    refuse_masked(similar, "similar")
    refuse_masked(dissimilar, "dissimilar")
    return dml_eig_whitened(whitening(X, similar, ridge=ridge).samples(X), dissimilar, mu)


def dml_eig_whitened(
    X: Array, dissimilar: ArrayLike, mu: float, *, offset: ArrayLike = 0.0
) -> Problem:
    """`dml_eig` for whitened samples; `offset` is added to the distances."""
    distances = Congruence(PairDistances(np.asarray(dissimilar), X.shape[0]), X)
    return Problem(
        Composite(distances, SoftMin(mu=mu, offset=offset)),
        Spectrahedron(1.0),
        name="dml_eig",
        formula="μ ln Σ exp(−⟨X̃_τ, S⟩/μ)",
        variable="S",
    )


@under_own_errstate
def lmnn_eig(
    X: Any,
    similar: ArrayLike,
    triplets: ArrayLike,
    gamma: float,
    mu: float,
    *,
    ridge: float = 0.0,
) -> Problem:
    """min μ ln Σ_T exp(−(ξ_τ + ⟨C̃_τ, S⟩)/μ) with γ tr S + (1 − γ) 1ᵀξ = 1: DML-eig eq. (16).

    The rows of `triplets` are (anchor, same, other) and C̃_τ their margin after whitening. The
    slack is minimised out exactly for every S and represented by one more row: M has order d + 1,
    S is its leading d × d block and γ M_dd = (1 − γ) 1ᵀξ, which makes the domain tr M = 1/γ
    (`gramian.reductions.slack`).
    """
    X = _samples(X)
    refuse_masked(similar, "similar")
    refuse_masked(triplets, "triplets")
    return lmnn_eig_whitened(whitening(X, similar, ridge=ridge).samples(X), triplets, gamma, mu)


def lmnn_eig_whitened(
    X: Array, triplets: ArrayLike, gamma: float, mu: float, *, plain: Array | None = None
) -> Problem:
    """`lmnn_eig` for whitened samples.

    `plain`, one number p_τ per triplet, is multiplied by tr S and added to its margin. Since
    tr S = 1/γ − M_dd, it becomes a constant p_τ/γ minus p_τ times the slack.
    """
    INSIDE.check(gamma, "gamma")
    n = X.shape[0]
    margins = triplet_margins(triplets, n)
    p = np.zeros(margins.size) if plain is None else plain
    assert isinstance(margins.base, PairDistances)
    row = SlackRow(gamma)
    pairs = row.pairs(np.column_stack([margins.base.rows, margins.base.cols]), n)
    slack = sp.csr_array(-p[:, None])
    weights = sp.block_array([[margins.weights, slack], [None, sp.csr_array([[1.0]])]])
    loss = FilledSoftMin(mu=mu, rate=row.rate, offset=p / gamma)
    return Problem(
        Composite(Congruence(Mix(PairDistances(pairs, n + 2), weights), row.samples(X)), loss),
        Spectrahedron(row.trace),
        name="lmnn_eig",
        formula="μ ln Σ exp(−(ξ_τ + ⟨C̃_τ, S⟩)/μ), S the leading block of M,",
    )


def _scatter(X: Any, pairs: ArrayLike) -> Dense:
    """X_S as a sum of squares, so that rounding does not make its zero eigenvalues negative."""
    if sp.issparse(X):
        return Dense(pair_scatter(X, pairs), floor=0.0)
    X = near_origin(X)
    i, j = index_columns(pairs, X.shape[0], 2, "pairs")
    differences = np.asarray(X[i] - X[j], dtype=float)
    tall = differences.shape[0] > differences.shape[1]
    root = scipy.linalg.qr(differences, mode="r")[0][: X.shape[1]] if tall else differences
    return Gram(np.ascontiguousarray(root))


def pair_scatter(
    X: Any, pairs: ArrayLike, *, weights: Array | None = None, near: bool = False
) -> Array:
    """X_S = Σ w_e (x_i − x_j)(x_i − x_j)ᵀ over the pairs, computed by their graph's Laplacian.

    `near` if X is known to be near the origin (`near_origin`).
    """
    X = X if near else near_origin(X)
    i, j = index_columns(pairs, X.shape[0], 2, "pairs")
    n, w = X.shape[0], np.ones(i.size) if weights is None else weights
    W = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    W = W + W.T
    laplacian = sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W
    scatter = X.T @ (laplacian @ X)
    scatter = np.asarray(scatter.toarray() if sp.issparse(scatter) else scatter, dtype=float)
    return 0.5 * (scatter + scatter.T)


def whitening(X: Any, similar: ArrayLike, *, ridge: float = 0.0) -> ScatterWhitening:
    """The whitening of samples by the scatter of similar pairs."""
    X = near_origin(X)
    scatter, rounding = pair_scatter(X, similar, near=True), _scatter_rounding(X, similar)
    return scatter_whitening(scatter, positive(ridge, "ridge", zero=True), rounding)


def _scatter_rounding(X: Any, pairs: ArrayLike) -> Array:
    """The rounding error of each diagonal entry of `pair_scatter`, for X near the origin."""
    pairs = index_columns(pairs, X.shape[0], 2, "pairs")
    times = np.bincount(np.concatenate(pairs), minlength=X.shape[0])
    if sp.issparse(X):
        squares = times @ X.multiply(X)
    else:
        squares = np.einsum("i,ij,ij->j", times.astype(float), X, X)
    return np.asarray(ROUNDINGS * np.finfo(float).eps * squares)


def _samples(X: Any) -> Any:
    """Validated samples, shifted to the origin: only their differences matter here."""
    return near_origin(checked_samples(X, ensure_min_samples=2))
