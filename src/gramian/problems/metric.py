"""Metric learning from labels: kernel-target alignment and linear separation, LRO §2.2."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import checked_samples, class_indices, near_origin
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.objectives import Eigenbasis, GramOperator, GramQuadratic, LowRankPlusIdentity
from gramian.objectives.matrices import DENSE_ORDER, Dense, MatrixSum, Scaled, SymmetricMatrix
from gramian.objectives.quadratic_bounds import lowered
from gramian.objectives.supports import Growth
from gramian.problem import Problem
from gramian.problems.moments import Moments, class_sums, moments, weighted_gram

REGULARIZERS = {
    "identity": ("‖M − I‖²", 1.0, -1.0),
    "frobenius": ("‖M‖²", 1.0, 0.0),
    "trace": ("tr M", 0.0, 0.5),
}
"""LRO §2.2: formula, b and c of each regulariser b‖M‖² + 2c·tr M; the first one adds d."""


@under_own_errstate
def kta(X: Any, y: ArrayLike, lam: float, *, regularizer: str = "identity") -> Problem:
    """min ‖M − I‖² + λ‖XMXᵀ − YYᵀ‖² over M ⪰ 0, LRO eq. (7) and BILGO eq. (5).

    Samples are the rows of X, and Y is the one-hot encoding of y. In LRO's form A = √λ XᵀX, B = I,
    C = −I − λ(XᵀY)(XᵀY)ᵀ. XᵀX is computed once; if it would be too large, products with X and Xᵀ
    are used instead.

    Parameters
    ----------
    regularizer : "identity" for ‖M − I‖², "frobenius" for ‖M‖², "trace" for tr M.
    """
    X, classes = _labelled(X, y)
    return kta_from_moments(moments(X, classes), lam, regularizer=regularizer)


def kta_from_moments(data: Moments, lam: float, *, regularizer: str = "identity") -> Problem:
    """The problem of `kta`, given the moments of the samples."""
    lam = positive(lam, "lam", zero=True)
    label, b, c = _regularizer(regularizer)
    root = float(np.sqrt(lam))
    A: Any = Scaled(data.gram, root)
    basis = None
    if isinstance(data.gram, Dense):
        A = Dense(root * data.gram.array, lower=0.0)
        g, V = data.spectrum
        basis = Eigenbasis(V, root * lowered(g), np.full(data.order, b))
    C = LowRankPlusIdentity(data.order, c, data.sums, np.full(data.counts.size, -lam))
    constant = lam * float(np.sum(np.square(data.counts))) + _constant(regularizer, data.order)
    return Problem(
        GramQuadratic(
            A, b, C, constant=constant, growth=_growth(regularizer, data.order), eigenbasis=basis
        ),
        name="kta",
        formula=f"{label} + λ‖XMXᵀ − YYᵀ‖²",
    )


@under_own_errstate
def linear_separation(
    X: Any, y: ArrayLike, lam: float, *, regularizer: str = "identity"
) -> Problem:
    """min ‖M − I‖² + λ⟨L_S, M⟩ over M ⪰ 0, LRO eq. (6).

    ⟨L_S, M⟩ is the sum of d_M over all pairs within a class minus the sum over all pairs of
    different classes, where each pair is counted once (see `signed_scatter`).
    """
    return linear_separation_from_scatter(
        signed_scatter(*_labelled(X, y)), lam, regularizer=regularizer
    )


def linear_separation_from_scatter(
    scatter: SymmetricMatrix, lam: float, *, regularizer: str = "identity"
) -> Problem:
    """The problem of `linear_separation`, given L_S."""
    lam = positive(lam, "lam", zero=True)
    label, b, c = _regularizer(regularizer)
    order = scatter.order
    C: Any = MatrixSum(Scaled(scatter, 0.5 * lam), LowRankPlusIdentity(order, c))
    if isinstance(scatter, Dense):
        C = Dense(C.dense())
    return Problem(
        GramQuadratic(None, b, C, constant=_constant(regularizer, order)),
        name="linear_separation",
        formula=f"{label} + λ⟨L_S, M⟩",
    )


def signed_scatter(
    X: Any, classes: NDArray[np.integer], weights: Array | None = None
) -> SymmetricMatrix:
    """L_S = XᵀTX with T = diag(S1) − S, S_ij = 1 within a class and −1 between classes.

    With one-hot Y, S = 2YYᵀ − 11ᵀ, so no n × n matrix is formed; L_S is formed at moderate order
    only. It is invariant to translations of the samples, which are shifted to the origin for
    accuracy.
    `weights` are the multiplicities of the samples, default 1.
    """
    X = near_origin(X)
    sums, counts = class_sums(X, classes, weights)
    rows = (2 * counts[classes] - counts.sum()) * (1.0 if weights is None else weights)
    across = LowRankPlusIdentity(
        X.shape[1],
        0.0,
        np.column_stack([sums, sums.sum(axis=1)]),
        np.concatenate([np.full(sums.shape[1], -2.0), [1.0]]),
    )
    if X.shape[1] <= DENSE_ORDER:
        return Dense(weighted_gram(X, rows) + across.dense())
    return MatrixSum(GramOperator(X, 1.0, rows), across)


def _labelled(X: Any, y: ArrayLike) -> tuple[Any, NDArray[np.integer]]:
    """Validated samples, and labels as class indices."""
    from sklearn.utils.validation import check_consistent_length

    X = checked_samples(X, ensure_min_samples=2)
    classes, indices = class_indices(y)
    check_consistent_length(X, indices)
    if classes.size < 2:
        raise ValueError("y has only one class; learning a metric needs at least two")
    return X, indices


def _regularizer(name: str) -> tuple[str, float, float]:
    if name not in REGULARIZERS:
        raise ValueError(f"regularizer must be one of {sorted(REGULARIZERS)}, got {name!r}")
    return REGULARIZERS[name]


def _growth(regularizer: str, order: int) -> Growth:
    """A lower bound on F in tr M: the loss is not negative, and ‖M‖² ≥ (tr M)²/d."""
    if regularizer == "trace":
        return Growth(0.0, 1.0)
    if regularizer == "frobenius":
        return Growth(0.0, 0.0, 1.0 / order)
    return Growth(float(order), -2.0, 1.0 / order)


def _constant(regularizer: str, order: int) -> float:
    """‖I‖² = d, the constant part of ‖M − I‖²."""
    return float(order) if regularizer == "identity" else 0.0
