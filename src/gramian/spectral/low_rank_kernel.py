"""Low-rank approximation of a kernel matrix, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from gramian.arrays.samples import check_size, naming_text, refuse_masked, varying_columns
from gramian.common.parameters import ABOVE_ZERO, COUNT, FINITE, or_none
from gramian.estimators.kernel_functions import kernel_values
from gramian.estimators.parameters import with_parameters
from gramian.estimators.persistence import Kept
from gramian.spectral.eigenpairs import Method, TopEigen, top_eigen

Array = NDArray[np.float64]

_ABSURD_BYTES = 2**35


@with_parameters
class LowRankKernel(Kept, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """K ≈ LLᵀ by the leading eigenpairs of a kernel matrix, the best approximation (LRO §2.1).

    With K ≈ V diag(μ) Vᵀ and L = V diag(√μ), systems with K + λI are solved by the Woodbury
    formula in O(nr), and new points are mapped by k(x, X) V diag(1/√μ), whose inner products
    extend LLᵀ (Nyström's formula).

    The linear kernel is applied as an operator, with X dense or CSR. Every other kernel is computed
    as a dense n × n matrix of 8n² bytes, 0.8 GB for ten thousand samples.

    Parameters
    ----------
    n_components : int
        Rank of the approximation. It is smaller if fewer eigenvalues are positive or there are
        fewer samples.
    kernel : str or callable
        A name known to `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed" (X is then K in
        `fit` and k(X_new, X) in `transform`), or a function of two samples.
    gamma, degree, coef0 : float or None
        Parameters of the kernels that have them; None is scikit-learn's default. The default of γ
        is 1/n_features; for "rbf" and "laplacian" constant columns are not counted.
    kernel_params : dict, optional
        Further arguments of a callable kernel.
    lam : float
        λ > 0 of `solve` and `logdet`.
    solver, tol, random_state
        `method`, `tol` and `random_state` of `gramian.spectral.top_eigen`.

    Attributes
    ----------
    kernel_factor_ : array of shape (n_samples, r)
        L.
    eigenvalues_, eigenvectors_ : arrays of shape (r,) and (n_samples, r)
        μ, largest first, and V.
    residuals_ : array of shape (r,)
        ‖Kv − μv‖: K has an eigenvalue within this distance of μ.
    approximation_error_ : float
        tr K − tr LLᵀ, the sum of the omitted eigenvalues. For a PSD kernel it is the nuclear norm
        of K − LLᵀ, an upper bound on its Frobenius and spectral norms. For an indefinite kernel the
        sum includes negative eigenvalues and does not measure the error.
    """

    n_components: int = 100
    kernel: str | Callable[..., float] = "rbf"
    gamma: float | None = None
    degree: float | None = None
    coef0: float | None = None
    kernel_params: dict[str, Any] | None = None
    lam: float = 1.0
    solver: Method = "auto"
    tol: float = 1e-12
    random_state: Any = None

    _rules: ClassVar = {
        "n_components": COUNT,
        "gamma": or_none(ABOVE_ZERO),
        "degree": or_none(FINITE),
        "coef0": or_none(FINITE),
        "lam": ABOVE_ZERO,
    }
    _renamed: ClassVar = {"method": "solver"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any = None) -> LowRankKernel:
        """Find the leading eigenpairs of the kernel of the samples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or K if precomputed
        y : ignored
        """
        self._check_parameters()
        X = self._validated(X, reset=True)
        self._gamma = self._width(X)
        if self.kernel == "linear":
            found, trace = self._fit_linear(X)
        else:
            found, trace = self._fit_dense(X)
        kept = found.values > np.maximum(found.residuals, _rounding(X.shape[0], found.values))
        if not kept.any():
            raise ValueError(
                "the kernel matrix has no positive eigenvalue, so LLᵀ = 0 is the best "
                "approximation; is X zero, or the kernel indefinite?"
            )
        self.eigenvalues_, self.residuals_ = found.values[kept], found.residuals[kept]
        self.eigenvectors_ = np.ascontiguousarray(found.vectors[:, kept])
        roots = np.sqrt(self.eigenvalues_)
        self.kernel_factor_ = self.eigenvectors_ * roots
        left = trace - float(np.sum(self.eigenvalues_))
        self.approximation_error_ = 0.0 if abs(left) <= _rounding(X.shape[0], trace) else left
        # The map of new points: through the samples, or through the features for a linear kernel.
        projection = self.eigenvectors_ / roots
        linear = self.kernel == "linear"
        self._samples = None if linear or self.kernel == "precomputed" else X
        self._projection = np.asarray(X.T @ projection) if linear else projection
        self._n_features_out = self.eigenvalues_.size
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit and return the features of the samples, `kernel_factor_`."""
        return self.fit(X, y).kernel_factor_.copy()

    def transform(self, X: Any) -> Array:
        """Features whose inner products extend LLᵀ to new points: k(X, X_fit) V diag(1/√μ).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features), or k(X, X_fit) if precomputed

        Returns
        -------
        array of shape (n_new, r)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self._samples is not None:
            X = self._kernel_of(X, self._samples)
        return np.asarray(X @ self._projection)

    def solve(self, b: ArrayLike) -> Array:
        """(LLᵀ + λI)⁻¹ b = (b − L(λI + LᵀL)⁻¹Lᵀb)/λ, for a vector or the columns of a matrix."""
        check_is_fitted(self)
        right: Array = check_array(b, ensure_2d=False, dtype=np.float64, input_name="b")
        n = self.eigenvectors_.shape[0]
        if right.shape[0] != n:
            raise ValueError(f"b must have one row for each of the {n} samples, got {right.shape}")
        weights = self.eigenvalues_ / (self.eigenvalues_ + self.lam)
        inside = (weights * (self.eigenvectors_.T @ right).T).T
        return (right - self.eigenvectors_ @ inside) / self.lam

    def logdet(self) -> float:
        """ln det(LLᵀ + λI)."""
        check_is_fitted(self)
        n, r = self.eigenvectors_.shape
        return float(np.sum(np.log(self.eigenvalues_ + self.lam)) + (n - r) * np.log(self.lam))

    def _fit_linear(self, X: Any) -> tuple[TopEigen, float]:
        n, d = X.shape
        gram = LinearOperator(
            (n, n),
            matvec=lambda v: X @ (X.T @ v),
            matmat=lambda V: X @ (X.T @ V),
            dtype=np.float64,
        )
        trace = float(X.multiply(X).sum()) if sp.issparse(X) else float(np.sum(X * X))
        return self._top(gram, min(n, d)), trace

    def _fit_dense(self, X: Any) -> tuple[TopEigen, float]:
        K = X
        if self.kernel != "precomputed":
            _refuse_absurd(X.shape[0])
            K = self._kernel_of(X, X)
        return self._top(K, X.shape[0]), float(np.trace(K))

    def _top(self, K: Any, most: int) -> TopEigen:
        k = min(int(self.n_components), most)
        return top_eigen(K, k, method=self.solver, tol=self.tol, random_state=self.random_state)

    def _kernel_of(self, X: Any, Y: Any) -> Array:
        if callable(self.kernel):
            return pairwise_kernels(X, Y, metric=self.kernel, **(self.kernel_params or {}))
        named = {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0}
        given = {name: value for name, value in named.items() if value is not None}
        values = kernel_values(self.kernel, given | {"filter_params": True}, X, Y)
        return np.asarray(values, dtype=np.float64)

    def _width(self, X: Any) -> float | None:
        """γ of distance kernels, which does not depend on constant columns."""
        if self.gamma is not None or self.kernel not in ("rbf", "laplacian"):
            return self.gamma
        return 1.0 / max(1, int(np.count_nonzero(varying_columns(X))))

    def _validated(self, X: Any, *, reset: bool) -> Any:
        precomputed = self.kernel == "precomputed"
        refuse_masked(X, "X")
        sparse = False if precomputed else "csr"
        with naming_text(X):
            X = validate_data(self, X, reset=reset, accept_sparse=sparse, dtype=np.float64)
        if not precomputed:
            check_size(X, "X")
        if precomputed and reset and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel must be a square matrix, got shape {X.shape}")
        return X

    def _check_parameters(self) -> None:
        super()._check_parameters()
        known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"})
        if not callable(self.kernel) and self.kernel not in known:
            raise ValueError(
                f"unknown kernel {self.kernel!r}; choose one of {', '.join(known)}, "
                "or pass a function of two samples"
            )
        if self.kernel_params and not callable(self.kernel):
            raise ValueError(
                f'kernel_params are of a kernel function: the parameters of kernel="{self.kernel}" '
                "are gamma, degree and coef0"
            )


def _rounding(n: int, values: Any) -> float:
    return float(n * np.finfo(np.float64).eps * np.max(np.abs(values)))


def _refuse_absurd(n: int) -> None:
    size = 8 * n * n
    if size > _ABSURD_BYTES:
        raise ValueError(
            f"the kernel matrix of {n} samples takes {size / 1e9:.0f} GB; use a subset of the "
            "rows, kernel='linear', which needs no such matrix, or pass a LinearOperator to "
            "gramian.spectral.top_eigen"
        )
