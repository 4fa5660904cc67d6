"""Collapsing classes: each sample near the others of its class, relative to all samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import checked_samples, class_indices, near_origin, real_numbers
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.losses import Collapse
from gramian.losses.collapse import uniform_targets
from gramian.maps import BatchDistances, Congruence
from gramian.objectives import Composite
from gramian.problem import Problem

FORMULA = "Σ_i [Σ_j q_ij d_M(i,j) + ln Σ_k exp(−d_M(i,k))] + δ ḡ tr M"


@under_own_errstate
def class_collapse(
    X: Any, y: ArrayLike, *, ridge: float = 1e-2, targets: ArrayLike | None = None
) -> Problem:
    """min Σ_i [Σ_j q_ij d_M(i, j) + ln Σ_{k≠i} exp(−d_M(i, k))] + δ ḡ tr M over M ⪰ 0.

    Maximally collapsing metric learning (Globerson and Roweis, NIPS 2005): with
    p_ik ∝ exp(−d_M(i, k)) the sum is that of the Kullback–Leibler divergences of p_i from q_i, up
    to the entropy of q. By default q_i is uniform over the other samples of the class of i, so that
    the first term is a mean. A sample alone in its class is no anchor i.

    Parameters
    ----------
    X : samples of shape (n, d).
    y : classes of shape (n,).
    ridge : δ; ḡ is the mean eigenvalue of the scatter of all pairs within a class, each anchor
        counted once, Σ_i Σ_j q_ij (x_i − x_j)(x_i − x_j)ᵀ with the uniform q.
    targets : q of shape (n, n): rows that sum to 1, or to 0 for samples that are no anchors, with a
        diagonal of zeros.
    """
    X, classes = near_origin(checked_samples(X, ensure_min_samples=2)), class_indices(y)[1]
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    n = X.shape[0]
    if classes.size != n:
        raise ValueError(f"expected a class for each of {n} samples, got {classes.size}")
    uniform = uniform_targets(classes, (n,))
    q = uniform if targets is None else real_numbers(targets, "targets")
    if q.size != n * n:
        raise ValueError(f"targets must have shape ({n}, {n}), got {q.shape}")
    unit = target_unit(X, classes, (n,))
    return collapse_of_batches(X, (n,), Collapse(q, (n,)), positive(ridge, "ridge") * unit)


def collapse_of_batches(X: Array, sizes: tuple[int, ...], loss: Collapse, pull: float) -> Problem:
    """`class_collapse` within batches of consecutive samples, with the weight of tr M given.

    Samples in float32 are for descents, not for certificates.
    """
    distances = Congruence(BatchDistances(sizes, single=X.dtype == np.float32), X)
    return Problem(
        Composite(distances, loss, C=pull),
        name="class_collapse",
        formula=FORMULA,
    )


def target_unit(X: Array, classes: NDArray[np.integer], sizes: tuple[int, ...]) -> float:
    """ḡ = tr X_S/d, X_S = Σ_i Σ_j q_ij (x_i − x_j)(x_i − x_j)ᵀ with the uniform q.

    Σ_ij of a class of n_c samples is 2 n_c Σ_i ‖x_i − x̄_c‖²/(n_c − 1).
    """
    total, first = 0.0, 0
    for size in sizes:
        part, named = X[first : first + size], classes[first : first + size]
        for name in np.unique(named):
            own = part[named == name]
            if len(own) > 1:
                spread = float(np.sum((own - own.mean(axis=0)) ** 2))
                total += 2.0 * len(own) / (len(own) - 1) * spread
        first += size
    if not total > 0:
        raise ValueError("the samples of every class are identical: nothing to learn from")
    return total / X.shape[1]
