"""Common methods of kernels learned from links: clusters, features, new samples, plots."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from gramian.arrays.samples import (
    NONE_INSTEAD,
    UNKNOWN,
    known_labels,
    warn_of_missing_names,
    with_short_indices,
)
from gramian.common import clock
from gramian.common.parameters import SHARE, one_of, or_auto, whole_number
from gramian.common.random_state import for_sklearn
from gramian.common.types import Array
from gramian.common.warnings import warn
from gramian.estimators import plotting
from gramian.estimators.fitting import principal, settle, solve, validated
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.persistence import Kept
from gramian.estimators.row_names import row_names
from gramian.graph import canonical_order, neighbor_graph, normalized_laplacian, smoothest
from gramian.kernel._clusters import linked_clusters, share_met
from gramian.kernel._held_out import HeldOutLinks, unit_rows
from gramian.kernel._links import Links, gather
from gramian.neighbours import nearest
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem
from gramian.result import Result, Status

OF_CLUSTERS = ("labels_", "cluster_centers_", "links_met_")
"""Attributes of a fit with a known number of clusters."""

NO_CLUSTERS = "there are no clusters: pass n_clusters, or labels y with all classes, to the fit"


@with_parameters
class LinkedKernel(
    SolverParameters,
    HeldOutLinks,
    Kept,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """A kernel Z = LLᵀ of the samples that is smooth along their graph and satisfies links."""

    n_clusters: int | None = None
    shrinkage: float | str = "auto"
    affinity: str = "nearest_neighbors"
    n_neighbors: int = 10
    bandwidth: float | str = "auto"
    approximate: bool = False
    rank: int | None = None

    _rules: ClassVar = {
        "affinity": one_of("nearest_neighbors", "precomputed", "precomputed_laplacian"),
        "shrinkage": or_auto(SHARE),
    }

    _keeps_links = False
    """Whether the clusters also satisfy the links."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity != "nearest_neighbors"
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        links: Any = None,
        targets: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Any:
        """Learn the kernel of the samples from links between some pairs.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Or the affinities or the Laplacian of the samples, depending on `affinity`.
        y : labels of shape (n_samples,), −1 or NaN if unknown, optional
        must_link, cannot_link : index pairs of shape (p, 2), optional
            Integers number the samples from 0, also for a frame with an index of other integers;
            strings are labels of the index of the frame X, or digits of such numbers.
        links : sparse matrix of shape (n_samples, n_samples), optional
            A positive entry is a must-link, a negative one a cannot-link, with its absolute value
            as weight. Or index pairs of shape (p, 2) with `targets` and `weights`.
        targets : numbers in [0, 1], of shape (p,)
            Target values of the kernel: 1 for a must-link, 0 for a cannot-link.
        weights : positive numbers of shape (p,), optional
        """
        self._check_parameters()
        self._row_names = row_names(X)
        X = self._samples(X)
        if all(part is None for part in (y, must_link, cannot_link, links)):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; labels "
                "(-1 if unknown), must_link, cannot_link or links are needed to learn a kernel"
            )
        given = gather(
            X.shape[0], y, must_link, cannot_link, links, targets, weights,
            names=self._row_names, order=canonical_order(X),
        )  # fmt: skip
        warn_of_missing_names(y, NONE_INSTEAD)
        self.links_ = self._accepted(given)
        self.n_clusters_ = self._number_of_clusters(y, X.shape[0])
        self.laplacian_ = self._laplacian(X)
        self.X_fit_ = X
        self._prepare()
        self._learn_from(None)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, **links: Any) -> Array:
        """Learn the kernel and return its factor, one row per sample."""
        return self.fit(X, y, **links).kernel_factor_

    def fit_predict(self, X: Any, y: ArrayLike | None = None, **links: Any) -> NDArray[np.integer]:
        """Learn the kernel and return the clusters of the samples."""
        if self.n_clusters is None and y is None:
            raise ValueError(NO_CLUSTERS)
        return self.fit(X, y, **links).labels_

    def add_links(
        self,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        links: Any = None,
        targets: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Any:
        """Continue from the fitted kernel with more links between the same samples."""
        check_is_fitted(self)
        old = self.links_
        names = getattr(self, "_row_names", None)
        new = gather(old.n, None, must_link, cannot_link, links, targets, weights, names=names)
        joined = gather(
            old.n,
            links=np.vstack([old.pairs, new.pairs]),
            targets=np.append(old.targets, new.targets),
            weights=np.append(old.weights, new.weights),
        )
        self.links_ = self._accepted(joined)
        if self.n_clusters_ is not None:
            self._warn_of_few_clusters(self.n_clusters_, 1)
        self._prepare()
        self._learn_from(self.kernel_factor_)
        return self

    def transform(self, X: Any) -> Array:
        """Rows of the factor for samples: the weighted mean of the rows of their neighbours.

        The kernel of two samples is the inner product of their rows. With precomputed affinities,
        X holds those of the new samples to the samples of the fit.
        """
        check_is_fitted(self)
        return self._interpolated(validated(self, X, reset=False), self.kernel_factor_)

    def _interpolated(self, X: Any, values: Array) -> Array:
        """Rows for samples: the weighted mean of the rows of their neighbours in the fit."""
        if self.affinity == "precomputed":
            total = np.asarray(X.sum(axis=1)).ravel()
            scale = 1.0 / np.where(total > 0, total, 1.0)
            return np.asarray(X @ values) * scale[:, None]
        if self.affinity == "precomputed_laplacian":
            raise ValueError("a Laplacian does not define new samples: use kernel_factor_")
        k = min(self.n_neighbors, self.X_fit_.shape[0] - 1)
        found = nearest(self.X_fit_, k, queries=X)
        near, squares = found.indices, found.sq_distances
        shares = np.exp(-(squares - squares[:, :1]) / self._square)
        equal = np.asarray(abs(X - self.X_fit_[near[:, 0]]).sum(axis=1)).ravel() == 0
        shares[equal] = np.eye(1, near.shape[1])
        shares /= shares.sum(axis=1, keepdims=True)
        return np.einsum("ik,ikc->ic", shares, values[near])

    def predict(self, X: Any) -> NDArray[np.integer]:
        """The clusters of samples, including new ones."""
        check_is_fitted(self)
        self._check_clusters()
        waves = self._waves_kept
        if waves is not None:
            waves = self._interpolated(validated(self, X, reset=False), waves)
        rows = self._rows(self.transform(X), waves)
        return np.asarray(pairwise_distances_argmin(rows, self.cluster_centers_))

    def plot(self, at: ArrayLike | None = None, *, most_links: int = 200) -> Any:
        """A figure of the clusters without and with the links.

        Without links: k-means on the smoothest eigenvectors of the graph (spectral clustering).

        Parameters
        ----------
        at : array of shape (n_samples, 2), optional
            Coordinates of the samples; by default their two leading principal directions.
        most_links : int
            Largest number of links drawn of each kind.
        """
        check_is_fitted(self)
        self._check_clusters()
        clusters, count = self.labels_, int(self.n_clusters_ or 1)
        waves = smoothest(self.laplacian_, count, constant=True)[1]
        before = linked_clusters(unit_rows(waves), None, self._k_means())[0]
        places = self._places() if at is None else check_array(at, dtype=float, input_name="at")
        check_consistent_length(self.labels_, places)
        drawn = {"must-link": self.links_.must, "cannot-link": self.links_.cannot}
        some = {
            name: pairs[plotting.spread(len(pairs), most_links)] for name, pairs in drawn.items()
        }
        titles = ("the graph alone", type(self).__name__)
        return plotting.before_and_after(places, (before, clusters), titles, some)

    def __getattr__(self, name: str) -> Any:
        of_clusters = name in OF_CLUSTERS and vars(self).get("n_clusters_", 0) is None
        why = f": {NO_CLUSTERS}" if of_clusters else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")

    # --- fitting -----------------------------------------------------------------------

    def _accepted(self, links: Links) -> Links:
        """The links; ValueError if the model cannot have them."""
        return links

    def _prepare(self) -> None:
        """Precompute quantities of the Laplacian."""

    def _learn_from(self, start: Array | None) -> None:
        """Learn from the links and the Laplacian, and set the fitted attributes."""
        judged = self._judge()
        result, factor = self._learn(start)
        settle(self, result)
        self.kernel_factor_ = principal(factor)
        self._choose_shrinkage(judged)
        self._n_features_out = self.kernel_factor_.shape[1]
        self.constraint_violation_ = self.links_.violation(self.kernel_factor_)
        for name in OF_CLUSTERS:
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.n_clusters_ is not None:
            self._cluster()

    def _cluster(self) -> None:
        """k-means on the unit sphere, on which the kernel places the samples (thesis eq. 3.6)."""
        rows = self._rows(self.kernel_factor_, self._waves_kept)
        links = self.links_ if self._keeps_links else None
        self.labels_, self.cluster_centers_ = linked_clusters(rows, links, self._k_means())
        self.links_met_ = share_met(self.links_, self.labels_)

    def _rows(self, factor: Array, waves: Array | None) -> Array:
        """Normalised rows of the kernel, combined with those of the eigenvectors by β."""
        if self.shrinkage_ == 0 or waves is None:
            return unit_rows(factor)
        both = np.sqrt(1 - self.shrinkage_) * unit_rows(factor)
        return np.hstack([both, np.sqrt(self.shrinkage_) * unit_rows(waves)])

    def _minimize(self, problem: Problem, init: Array | None, **changes: Any) -> Result:
        result = solve(self, problem, init, rank=self.rank, **changes)
        if result.status is Status.INTERRUPTED:
            clock.interrupt()  # later phases end as well
        return result

    def _laplacian(self, X: Any) -> sp.csr_array:
        if self.affinity == "precomputed_laplacian":
            return sp.csr_array(with_short_indices(X))
        if self.affinity == "precomputed":
            return normalized_laplacian(sp.csr_array(with_short_indices(X)))
        k = min(whole_number(self.n_neighbors, "n_neighbors"), X.shape[0] - 1)
        graph = neighbor_graph(
            X, k, approximate=self.approximate, connect="components", device=self.device
        )
        self.neighbor_recall_ = graph.recall
        affinities = graph.weights(self.bandwidth)
        self._square = graph.square_bandwidth(self.bandwidth)
        return graph.laplacian(affinities, normalized=True)

    def _samples(self, X: Any) -> Any:
        X = validated(self, X, least=2, reset=True)
        if self.affinity == "nearest_neighbors":
            return X
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"affinity={self.affinity!r} needs a square matrix, got {X.shape}")
        as_symmetric(X, "X")
        if self.affinity == "precomputed" and X.min() < 0:
            raise ValueError("precomputed affinities must not be negative")
        if self.affinity == "precomputed_laplacian" and (
            X.diagonal().min() < 0 or (X.min() >= 0 and X.sum() > (1 + 1e-9) * X.trace())
        ):
            raise ValueError(
                "X is no Laplacian: its diagonal is at least 0, and entries for neighbours are "
                'negative; pass affinities with affinity="precomputed"'
            )
        return X

    def _number_of_clusters(self, y: ArrayLike | None, n: int) -> int | None:
        classes = None if y is None else int(known_labels(y, n).max(initial=UNKNOWN)) + 1
        if self.n_clusters is None:
            return classes or None
        count = whole_number(self.n_clusters, "n_clusters")
        if count > n:
            raise ValueError(f"n_clusters={count}, but there are {n} samples")
        self._warn_of_few_clusters(count, classes or 1)
        return count

    def _warn_of_few_clusters(self, count: int, classes: int) -> None:
        """Warn if links need more clusters: those of classes, or of samples linked as different."""
        if count < classes:
            why = f"y has {classes} classes"
        elif (apart := self.links_.apart(count + 1)).size <= count:
            return
        else:
            why = "there are cannot-links"
            if count > 1:
                names = getattr(self, "_row_names", None)
                names = apart if names is None else names[apart]
                why += f" between each two of {', '.join(map(str, names))}"
        warn(f"n_clusters={count}, but {why}: no clusters satisfy all links")

    def _k_means(self) -> KMeans:
        return KMeans(self.n_clusters_, n_init=10, random_state=for_sklearn(self.random_state))

    def _check_clusters(self) -> None:
        if self.n_clusters_ is None:
            raise ValueError(NO_CLUSTERS)

    def _places(self) -> Array:
        if self.affinity != "nearest_neighbors":
            return smoothest(self.laplacian_, 3, constant=True)[1][:, 1:]
        X = self.X_fit_
        if X.shape[1] <= 2:
            return plotting.flat(np.asarray(X.toarray() if sp.issparse(X) else X))
        X = X if sp.issparse(X) else X - X.mean(axis=0)
        return np.asarray(TruncatedSVD(2, random_state=0).fit_transform(X))
