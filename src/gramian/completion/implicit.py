"""Completion of implicit feedback: known entries are actions, and dislikes are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, SHARE, or_auto
from gramian.common.types import Array, Indices
from gramian.completion._base import Completion
from gramian.completion._canonical import Canonical
from gramian.completion._fold_in import Updating
from gramian.completion._items import Blend, ItemWeights
from gramian.completion._ratings import Ratings
from gramian.completion._reading import are_names, is_log, is_table, plain, with_ones
from gramian.completion._recommender import Factorization, Offsets, Ranking
from gramian.completion._selection import Judged, Solved
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import EvidencePath
from gramian.problem import Problem
from gramian.problems.completion import implicit_completion

ITEM_SHARES = (0.0, 0.25, 0.5, 0.75)
"""Candidates for s."""

LAM_PER_CONFIDENCE = 0.5
"""The guess of λ in units of √ω(√entries per row + √entries per column), ω the mean confidence."""

RANKED_ROWS = (200, 2000)
"""Least and largest number of rows whose recommendations are compared to choose λ."""

RANKED_ENTRIES = 20_000_000
"""Number of predictions for those rows, if they are more than the least number of rows."""


@with_parameters
class ImplicitCompletion(Updating, Completion):
    """Recommend columns from actions of rows: clicks, purchases, plays, ratings of four and more.

    Solves min ½ Σ_ij ω_ij (U_ij − t_ij)² + λ‖A^½UB^½‖_* over all matrices U and all entries (Hu,
    Koren and Volinsky 2008, with the weighted trace norm in place of its factored form): t_ij = 1
    with the confidence ω_ij = 1 + α r_ij where r_ij is known, and t_ij = 0 with ω_ij = 1 everywhere
    else. The problem is convex, and no sum over the unknown entries is formed.

    A matrix of low rank does not represent columns that occur together in few rows. Predictions are
    therefore (1 − s) U + s XB, where X is the pattern of the known entries and B the item–item
    ridge regression with diag B = 0 (Steck 2019), which has a closed form. The share s is selected
    by held-out lists; the certificate is that of U.

    Parameters
    ----------
    lam : float or "auto"
        λ. "auto" holds out a tenth of the entries, solves for a decreasing sequence of λ, and takes
        the one whose first ten recommendations have the largest nDCG.
    item_share : float in [0, 1] or "auto"
        s. "auto" is the one of 0, 0.25, 0.5 and 0.75 whose recommendations of the entries held
        out for λ have the largest nDCG, and 0 if none are held out.
    alpha : float
        α: the additional weight of known entries. Entries r_ij must be above 0; they are 1 if `fit`
        is given rows and columns only, a log of actions: (rows, cols), a frame or an array of two
        columns. Actions that occur repeatedly need ``duplicates="sum"``.
    weight_power, rank, duplicates, tol, solver, max_iter, time_limit, random_state, progress :
        As in `NuclearCompletion`.
    device : None or "cpu"
        Only the processor is supported.

    Attributes
    ----------
    row_factors_, col_factors_, row_ids_, col_ids_, columns_, lam_, path_, result_, certificate_ :
        As in `NuclearCompletion`; `path_.errors` contains 1 − nDCG.
    item_share_ : float
        s.
    item_path_ : EvidencePath
        The values of s and 1 − nDCG, if "auto" had held-out entries.
    item_weights_ : ItemWeights or None
        B: the 2,000 columns with the most entries, and their weights; None if s = 0.
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn, where a matrix was given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.completion import ImplicitCompletion
    >>> rng = np.random.default_rng(0)
    >>> likes = rng.random((40, 30)) < np.kron([[0.5, 0.02], [0.02, 0.5]], np.ones((20, 15)))
    >>> user, item = np.nonzero(likes)
    >>> model = ImplicitCompletion(lam=3.0).fit((user, item, np.ones(user.size)))
    >>> bool(np.all(model.recommend(0, 4)[0] < 15))
    True
    """

    alpha: float = 3.0
    item_share: float | str = "auto"

    _rules: ClassVar = {"alpha": ABOVE_ZERO, "item_share": or_auto(SHARE)}

    biases = False
    bias_ridge = 1.0
    everywhere = 1.0
    _ranks = True

    _problem_name, _measure = "implicit_completion", "1 − nDCG of entries"

    def _ratings(self, X: Any, weights: Any = None) -> Ratings:
        X = plain(X)
        if not is_log(X):
            return super()._ratings(X, weights)
        ratings = super()._ratings(with_ones(X), weights)
        if is_table(X) and are_names(X.columns) and X.columns.is_unique:
            self.columns_ = tuple(X.columns)
        return ratings

    def _named(self, X: Any, count: int) -> Any:
        X = super()._named(X, 2 if count == 3 and is_log(plain(X)) else count)
        return with_ones(X) if count == 3 and is_log(X) else X

    def evaluate(self, X: Any, *, k: int = 10, relevant: float | None = None) -> dict[str, float]:
        """Quality of the first k recommendations of each row, for entries not in the fit.

        Parameters
        ----------
        X : entries, as in `fit`
        k : int
            Number of columns recommended to each row, without those known to the fit.
        relevant : float, optional
            Entries of at least this value are relevant; default all.

        Returns
        -------
        dict
            "precision", "recall", "ndcg", "coverage" and "rows"; see `NuclearCompletion.evaluate`.
        """
        found = super().evaluate(X, k=k, relevant=relevant)
        return {name: value for name, value in found.items() if name not in ("rmse", "mae")}

    def _look_at(self, ratings: Any) -> None:
        if np.any(ratings.values <= 0):
            bad = float(ratings.values[np.argmax(ratings.values <= 0)])
            raise ValueError(
                f"ImplicitCompletion needs entries above 0 (counts of actions), got {bad:g}: leave "
                "such entries out (of a table of counts by scipy.sparse.csr_array(X), whose zeros "
                "are unknown), or use NuclearCompletion for ratings"
            )

    def _problem(self, ratings: Ratings, lam: float, offsets: Offsets | None = None) -> Problem:
        rows, cols = self._scales(ratings)
        return implicit_completion(
            ratings.rows, ratings.cols, 1.0 + self._confidence(ratings), ratings.shape, lam,
            row_scale=rows, col_scale=cols,
        )  # fmt: skip

    def _squares(self, values: Array) -> tuple[Array, Array]:
        return self.alpha * values, 1.0 + self.alpha * values

    def _confidence(self, ratings: Ratings) -> Array:
        own = self.alpha * ratings.values
        return own if ratings.weights is None else own * ratings.weights

    def _guess(self, ratings: Ratings) -> float:
        m, n = ratings.shape
        mean, count = 1.0 + float(np.mean(self._confidence(ratings))), ratings.values.size
        return LAM_PER_CONFIDENCE * float(np.sqrt(mean) * (np.sqrt(count / m) + np.sqrt(count / n)))

    def _error(self, found: Factorization, test: Ratings, train: Ratings) -> float:
        """1 − nDCG of the first ten columns of some rows, without the entries of the fit."""
        k, (m, n) = 10, train.shape
        asked = int(np.clip(RANKED_ENTRIES // n, *RANKED_ROWS))
        some = test.part(test.rows % -(-m // asked) == 0)
        ranking = Ranking(some.rows, some.cols, np.ones(some.rows.size, dtype=bool), k)
        best, _ = found.best(ranking.asked, k, train.matrix[ranking.asked])
        ranking.add(slice(0, ranking.asked.size), best)
        return 1.0 - ranking.scores(n)["ndcg"]

    def _blend_path(self, judged: list[Judged]) -> EvidencePath | None:
        if self.item_share != "auto" or not judged:
            return None
        started, held_out = clock.now(), sum(test.size for _, test, _ in judged)
        errors = np.zeros(len(ITEM_SHARES))
        for found, test, train in judged:
            items = ItemWeights.of(train)
            for k, share in enumerate(ITEM_SHARES):
                blend = Blend(share, items, train.matrix) if share else None
                error = self._error(replace(found, blend=blend), test, train)
                errors[k] += error * test.size / held_out
            if clock.left() < clock.elapsed(started):  # the last weights take as long
                return None
        best = int(np.argmin(errors))
        return EvidencePath(
            "item_share", np.array(ITEM_SHARES), errors, best, self._measure, held_out
        )

    def _finish(self, ratings: Ratings, solved: Solved) -> None:
        super()._finish(ratings, solved)
        path = solved.start.blend
        self.item_share_ = 0.0 if self.item_share == "auto" else float(self.item_share)
        self.__dict__.pop("item_path_", None)  # of an earlier fit
        if path is not None:
            self.item_path_, self.item_share_ = path, path.value
        self.item_weights_ = ItemWeights.of(ratings) if self.item_share_ else None

    def _restore(self, ordered: Canonical) -> None:
        super()._restore(ordered)
        self._move_columns(ordered.order[1])

    def _move_columns(self, places: Indices) -> None:
        weights = vars(self).get("item_weights_")
        if weights is not None:
            self.item_weights_ = weights.moved(places)

    def _blend(self, known: Any) -> Blend | None:
        weights = vars(self).get("item_weights_")  # not in older model files
        return None if weights is None else Blend(self.item_share_, weights, known)

    def _relevant(self, values: Array) -> float:
        return -np.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.device not in (None, "cpu"):
            raise ValueError(
                f"implicit feedback is solved on the processor: leave device={self.device!r} out"
            )
