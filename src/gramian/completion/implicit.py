"""Completion of implicit feedback: known entries are actions, and dislikes are unknown."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.common.parameters import ABOVE_ZERO
from gramian.completion._base import Completion
from gramian.completion._fold_in import Updating
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Factorization, Offsets, Ranking
from gramian.estimators.parameters import with_parameters
from gramian.problem import Problem
from gramian.problems.completion import implicit_completion

Array = NDArray[np.floating]

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

    Parameters
    ----------
    lam : float or "auto"
        λ. "auto" holds out a tenth of the entries, solves for a decreasing sequence of λ, and takes
        the one whose first ten recommendations have the largest nDCG.
    alpha : float
        α: the additional weight of known entries. Entries r_ij must be above 0.
    weight_power, rank, duplicates, tol, solver, max_iter, time_limit, random_state, progress :
        As in `NuclearCompletion`.
    device : None or "cpu"
        Only the processor is supported.

    Attributes
    ----------
    row_factors_, col_factors_, row_ids_, col_ids_, columns_, lam_, path_, result_, certificate_ :
        As in `NuclearCompletion`; `path_.errors` contains 1 − nDCG.
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

    _rules: ClassVar = {"alpha": ABOVE_ZERO}

    biases = False
    bias_ridge = 1.0
    everywhere = 1.0
    _ranks = True

    _problem_name, _measure = "implicit_completion", "1 − nDCG of entries"

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
                f"ImplicitCompletion needs entries above 0 (counts of actions), got {bad:g}: "
                "leave such entries out, or use NuclearCompletion for ratings"
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

    def _relevant(self, values: Array) -> float:
        return -np.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.device not in (None, "cpu"):
            raise ValueError(
                f"implicit feedback is solved on the processor: leave device={self.device!r} out"
            )
