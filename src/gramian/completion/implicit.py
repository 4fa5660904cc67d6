"""Completing a matrix of what people did, where nothing tells what they do not like."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.completion._base import Completion
from gramian.completion._evaluation import Ranking, scores
from gramian.completion._quick import is_quick, quick
from gramian.completion._ratings import Ratings
from gramian.completion._update import Updating
from gramian.parameters import ABOVE_ZERO, TOLERANCE, or_auto
from gramian.problem import Problem
from gramian.problems.completion import implicit_completion

Array = NDArray[np.floating]

GUESS = 0.5
"""λ in units of √ω(√entries per row + √entries per column), ω the mean confidence."""

FIRST = 10
"""The length of the lists that λ is chosen by."""

ASKED, ENTRIES = (200, 2000), 20_000_000
"""Rows that are asked for such a list, at least and at most, and the entries that they may have."""


class ImplicitCompletion(Updating, Completion):
    """Recommend columns from what rows did: clicks, purchases, plays, stars of four and more.

    Solves min ½ Σ_ij ω_ij (U_ij − t_ij)² + λ‖A^½UB^½‖_* over all matrices U and all entries (Hu,
    Koren and Volinsky 2008, with the weighted trace norm in place of its factored form): t_ij = 1
    with the confidence ω_ij = 1 + α r_ij where r_ij is known, and t_ij = 0 with ω_ij = 1 everywhere
    else. It is convex, and no sum runs over the entries that are not known.

    Parameters
    ----------
    lam : float or "auto"
        λ. "auto" holds out a tenth of the entries, goes down a path of λ, and takes the one whose
        lists of ten find most of them (nDCG).
    alpha : float
        α: how much more the known entries count than the others. Entries r_ij must be above 0.
    weight_power, rank, duplicates, tol, solver, max_iter, time_limit, random_state, progress :
        As in `NuclearCompletion`.
    device : None or "cpu"
        Sweeps over all entries run on the processor only.

    Attributes
    ----------
    row_factors_, col_factors_, row_ids_, col_ids_, columns_, lam_, path_, result_, certificate_ :
        As in `NuclearCompletion`; `path_.errors` holds 1 − nDCG.
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

    _rules: ClassVar = {"alpha": ABOVE_ZERO, "tol": or_auto(TOLERANCE)}

    biases = False
    bias_ridge = 1.0
    everywhere = 1.0
    _ranks = True

    _problem_name, _measure = "implicit_completion", "1 − nDCG of entries"

    def __init__(
        self,
        *,
        lam: float | str = "auto",
        alpha: float = 3.0,
        weight_power: float = 0.5,
        rank: int | None = None,
        duplicates: str = "error",
        solver: str = "auto",
        tol: float | str = "auto",
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        progress: bool = False,
        device: Any = None,
    ) -> None:
        self.lam = lam
        self.alpha = alpha
        self.weight_power = weight_power
        self.rank = rank
        self.duplicates = duplicates
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def evaluate(self, X: Any, *, k: int = 10, relevant: float | None = None) -> dict[str, float]:
        """What of entries that were not in the fit is found among the first k columns of each row.

        Parameters
        ----------
        X : entries, as in `fit`
        k : int
            How many columns are recommended to each row, those known to the fit left out.
        relevant : float, optional
            Entries from here on are to be found; all unless told.

        Returns
        -------
        dict
            "precision", "recall", "ndcg", "coverage" and "rows"; see `NuclearCompletion.evaluate`.
        """
        told = super().evaluate(X, k=k, relevant=relevant)
        return {name: value for name, value in told.items() if name not in ("rmse", "mae")}

    def _solved(self, ratings: Ratings) -> Problem | None:
        """By the lists held out where that is asked for, and the optimum not as cheap."""
        if is_quick(self, ratings):
            self._set_bounds(ratings.values)
            problem, self.result_ = quick(self, ratings)
            return problem
        return super()._solved(ratings)

    def _ratings(self, X: Any, weights: Any = None) -> Ratings:
        ratings = super()._ratings(X, weights)
        if np.any(ratings.values <= 0):
            bad = float(ratings.values[np.argmax(ratings.values <= 0)])
            raise ValueError(
                f"ImplicitCompletion takes what rows did, as numbers above 0, and one is {bad:g}: "
                "leave such entries out, or use NuclearCompletion for ratings"
            )
        return ratings

    def _problem(self, ratings: Ratings, lam: float) -> Problem:
        self.mean_ = 0.0
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
        return GUESS * float(np.sqrt(mean) * (np.sqrt(count / m) + np.sqrt(count / n)))

    def _error(self, test: Ratings, train: Ratings) -> float:
        """1 − nDCG of the first ten columns of some rows, what was in the fit left out."""
        self._known, self.col_ids_ = train.matrix, train.col_ids.names
        asked = int(np.clip(ENTRIES // train.shape[1], *ASKED))
        some = test.part(test.rows % -(-train.shape[0] // asked) == 0)
        ranking = Ranking(some.rows, some.cols, np.ones(some.rows.size, dtype=bool), FIRST)
        ranking.add(slice(0, ranking.asked.size), self._best(ranking.asked, FIRST, True)[0])
        return 1.0 - scores(np.zeros(1), ranking, train.shape[1])["ndcg"]

    def _relevant(self, values: Array) -> float:
        return -np.inf

    def _set_biases(self, ratings: Ratings, problem: Problem, L: Array) -> None:
        """There are none."""

    def _set_bounds(self, values: Array) -> None:
        self.bounds_ = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.device not in (None, "cpu"):
            raise ValueError(
                f"implicit feedback is solved on the processor: leave device={self.device!r} out"
            )
