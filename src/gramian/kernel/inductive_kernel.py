"""A kernel close to a given one, defined for new samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.arrays.dense import eigh
from gramian.arrays.samples import NONE_INSTEAD, UNKNOWN, known_labels, warn_of_missing_names
from gramian.bounds import certify
from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, COUNT, NOT_NEGATIVE, SHARE, or_auto, or_none
from gramian.common.types import Array, Indices
from gramian.estimators.fitting import principal, settle, solve, validated
from gramian.estimators.kernel_functions import check_kernel, kernel_values
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.path import NEIGHBOUR_ERROR, chosen_by, least, wrong_votes
from gramian.estimators.persistence import Kept
from gramian.graph import canonical_order
from gramian.kernel._held_out import FEWEST, FOLDS, MANY
from gramian.kernel._links import renamed
from gramian.kernel.kernel_kmeans import feature_map
from gramian.problem import Problem
from gramian.problems.inductive import inductive_kernel
from gramian.result import Status

SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.0)
"""α, from the given kernel to the learned one."""

DIVISIONS, FEW = 3, 500
"""Number of random divisions into folds, and the number of samples up to which all folds of all of
them are held out; with more samples, one fold is."""


@with_parameters
class InductiveKernel(
    SolverParameters, Kept, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A kernel K close to a given kernel N that makes samples of a class more similar.

    Solves min tr(N⁻¹KN⁻¹K) + τ tr(N⁻¹K) + λ tr(TK) over K ⪰ 0 (LRO eqs. 8–10). tr(TK) is the mean
    squared distance within classes minus that between classes; T is the Laplacian of the pair
    scores, to which samples without a label do not contribute. With K = ΦWΦᵀ for the samples Φ in
    the feature space of N it is ‖W‖² + τ tr W + λ tr(ΦᵀTΦW) over W ⪰ 0, so the kernel of any two
    samples is φ(x)ᵀWφ(z). τ = 0 keeps all useful directions (supervised); a larger τ keeps the
    leading ones, in the span of all samples, labelled or not.

    Parameters
    ----------
    kernel : str or callable
        N: a kernel known to `sklearn.metrics.pairwise.pairwise_kernels`, or a function of two
        sample matrices.
    kernel_params : dict, optional
        Its parameters; the default γ of "rbf" is 1/Σ_j var(X_j), the inverse of the total variance
        of the columns.
    tau : float
        τ ≥ 0. With lam="auto" directions with more than τ/2 of the largest benefit are kept.
    lam : float or "auto"
        λ. "auto" sets the largest eigenvalue of W to 1 − τ/2.
    n_components : int, optional
        The largest rank of the kernel; the certificate bounds the cost of this limit. The best
        kernel of a given rank consists of the leading eigenvectors of the best one.
    shrinkage : float in [0, 1] or "auto"
        α of W = (1 − α) Ŵ + α c I, where Ŵ is the optimum of the problem above and c I is the
        multiple of the given kernel with the same mean square over the samples: 0 is the learned
        kernel, 1 is N. "auto" selects α by the 3 nearest neighbours of held-out labelled samples,
        including N; it is 0 with more than 2,000 samples or fewer than 20 labels.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    kernel_factor_ : array of shape (n_samples, rank)
        The kernel K of the samples of the fit is its product with its transpose.
    dual_components_ : array of shape (n_samples, rank)
        `transform` is N(x, X) times these.
    lam_ : float
    shrinkage_ : float
        α. `result_` and `certificate_` are those of Ŵ.
    path_ : EvidencePath
        The values of α and their held-out errors, if shrinkage="auto" had enough labels; `print`
        shows the choice.
    X_fit_, kernel_params_ :
        The samples of the fit and the kernel parameters used.
    result_ : Result
        The solution, before the rank is reduced.
    certificate_ : Certificate
        A bound on the distance from the optimum.
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.
    """

    kernel: str | Callable[..., Array] = "rbf"
    kernel_params: dict[str, Any] | None = None
    tau: float = 0.0
    lam: float | str = "auto"
    n_components: int | None = None
    shrinkage: float | str = "auto"
    tol: float = 1e-6

    _rules: ClassVar = {
        "lam": or_auto(ABOVE_ZERO),
        "tau": NOT_NEGATIVE,
        "n_components": or_none(COUNT),
        "shrinkage": or_auto(SHARE),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None) -> InductiveKernel:
        """Learn the kernel.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        if y is None:
            raise ValueError(
                "InductiveKernel requires y to be passed, but the target y is None: it has the "
                "labels, -1 where unknown"
            )
        self._check_parameters()
        X = validated(self, X, least=2, reset=True)
        warn_of_missing_names(y, NONE_INSTEAD)
        labels = known_labels(y, X.shape[0])
        advice = "fit to a part of the samples: the kernel has values for the others"
        Phi, W = feature_map(self, X, advice)
        scatter = scores(Phi, labels)
        self._choose_shrinkage(Phi, labels)
        self.lam_ = self._weight_of(np.linalg.eigvalsh(scatter)[0] if self.lam == "auto" else 0.0)
        problem = inductive_kernel(1.0, scatter, self.lam_, tau=float(self.tau))
        limit = None if self.solver == "auto" else self.n_components
        result = solve(self, problem, rank=limit)
        if result.status is Status.INTERRUPTED:
            clock.interrupt()
        if result.status in (Status.TIME_LIMIT, Status.INTERRUPTED) and not np.any(result.factor):
            raise clock.TimeUpError
        settle(self, result)
        size = float(self.tau) + self.lam_ * float(np.linalg.norm(scatter))
        self._finish(problem, Phi, W, 1e-12 * size)
        return self

    def transform(self, X: Any) -> Array:
        """Features whose inner products are the learned kernel."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        values = kernel_values(self.kernel, self.kernel_params_, X, self.X_fit_)
        return values @ self.dual_components_

    def kernel_of(self, X: Any, Z: Any = None) -> Array:
        """The learned kernel of the rows of X with those of Z (default X)."""
        left = self.transform(X)
        return left @ (left if Z is None else self.transform(Z)).T

    def _weight_of(self, lowest: float) -> float:
        """λ, for the lowest eigenvalue of the scatter."""
        if self.lam != "auto":
            return float(self.lam)
        return 2.0 / -float(lowest) if lowest < 0 else 1.0

    def _finish(self, problem: Problem, Phi: Array, W: Array, rounding: float) -> None:
        factor = self.result_.factor
        if np.sum(factor * factor) <= rounding:
            raise ValueError(
                "the learned kernel is 0: no direction draws classes apart by more than tau; "
                "lower tau, or look whether the labels have to do with the samples"
            )
        factor = principal(factor)[:, : self.n_components]
        if factor.shape[1] < self.result_.rank:
            self.certificate_ = certify(problem, factor)
        if self.shrinkage_ > 0:
            factor = blended(self.result_.factor, Phi, self.shrinkage_)[:, : self.n_components]
        self.kernel_factor_ = Phi @ factor
        self.dual_components_ = W @ factor
        self._n_features_out = factor.shape[1]

    def _choose_shrinkage(self, Phi: Array, labels: Indices) -> None:
        """α, by the neighbours of held-out labelled samples if "auto"."""
        self.__dict__.pop("path_", None)
        self.shrinkage_ = 0.0 if self.shrinkage == "auto" else float(self.shrinkage)
        count = np.count_nonzero(labels != UNKNOWN)
        if self.shrinkage != "auto" or count < FEWEST or labels.size > MANY:
            return
        order = canonical_order(Phi)  # folds that do not depend on names and order
        labels = renamed(labels, order)
        known = order[labels[order] != UNKNOWN]
        losses = [
            self._losses(Phi, labels, known[~held], known[held])
            for held in _parts_held_out(labels[known], few=labels.size <= FEW)
            if _both_kinds(labels[known[~held]])
        ]
        if losses:
            self.path_ = chosen_by(
                [np.concatenate(losses, axis=1)], SHARES, parameter="shrinkage",
                measure=NEIGHBOUR_ERROR, nothing="the given kernel", choose=least,
            )  # fmt: skip
            self.shrinkage_ = self.path_.value

    def _losses(self, Phi: Array, labels: Indices, kept: Indices, held: Indices) -> Array:
        """Wrong votes for every α: without a rank limit Ŵ = P₊(−(τI + λΦᵀTΦ)/2).

        The combination with a multiple of I has the same eigenvectors, so one decomposition
        suffices for all α.
        """
        seen = np.full(labels.size, UNKNOWN)
        seen[kept] = np.unique(labels[kept], return_inverse=True)[1]
        values, vectors = eigh(scores(Phi, seen))
        found = np.maximum(-0.5 * (self.tau + self._weight_of(values[0]) * values), 0.0)
        samples = Phi @ vectors
        level = mean_square(samples, found)
        rows = np.concatenate([kept, held])
        samples, given = samples[rows], Phi[rows, ::-1]

        def votes(share: float) -> Array:
            mapped = given if share == 1 else samples * np.sqrt((1 - share) * found + share * level)
            return wrong_votes(mapped[:, : self.n_components], labels[rows], kept.size)

        return np.array([votes(share) for share in SHARES])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_kernel(self.kernel, self.kernel_params)


def blended(factor: Array, Phi: Array, share: float) -> Array:
    """A factor of (1 − α)LLᵀ + αcI, with orthogonal columns of decreasing norm.

    With α = 1 they are the principal directions of the given kernel, ascending in Φ.
    """
    values, vectors = eigh(factor @ factor.T)
    values = np.maximum(values, 0.0)
    level = mean_square(Phi @ vectors, values)
    if share == 1:
        vectors = np.eye(values.size)
    found = vectors * np.sqrt((1 - share) * values + share * level)
    return np.ascontiguousarray(found[:, ::-1])


def mean_square(samples: Array, values: Array) -> float:
    """c with c tr ΦᵀΦ = tr ΦᵀΦŴ, for samples in the eigenvectors of Ŵ; 1 if Ŵ is 0."""
    squares = np.sum(samples * samples, axis=0)
    return float(squares @ values) / max(float(np.sum(squares)), 1e-300) or 1.0


def _parts_held_out(classes: Indices, *, few: bool) -> Iterator[NDArray[np.bool_]]:
    """Stratified folds; for few samples all folds of several divisions."""
    rng = np.random.default_rng(0)
    for _ in range(DIVISIONS if few else 1):
        mixed = rng.permutation(classes.size)
        part = np.empty(classes.size, dtype=int)
        part[mixed[np.argsort(classes[mixed], kind="stable")]] = np.arange(classes.size) % FOLDS
        for fold in range(FOLDS if few else 1):
            yield part == fold


def _both_kinds(classes: Indices) -> bool:
    """Whether there are pairs within a class and pairs between classes."""
    sizes = np.bincount(classes)
    return bool(sizes.max() > 1 and np.count_nonzero(sizes) > 1)


def scores(Phi: Array, labels: Indices) -> Array:
    """ΦᵀTΦ: mean scatter of pairs within classes minus that of pairs between classes."""
    known = labels != UNKNOWN
    rows, classes = Phi[known], labels[known]
    sizes = np.bincount(classes).astype(float)
    l, same = float(classes.size), float(np.sum(sizes * (sizes - 1)))
    different = l * (l - 1) - same
    if same == 0 or different == 0:
        raise ValueError(
            f"{int(l)} labelled sample(s) of {sizes.size} class(es): InductiveKernel needs at "
            "least two of one class and one of another"
        )
    sums = np.zeros((sizes.size, Phi.shape[1]))
    np.add.at(sums, classes, rows)
    weighted = rows * np.sqrt(sizes[classes])[:, None]
    within = weighted.T @ weighted - sums.T @ sums
    total = sums.sum(axis=0)
    overall = l * (rows.T @ rows) - np.outer(total, total)
    return 2 * within / same - 2 * (overall - within) / different
