"""Selection of the kernel learner on held-out links."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.common import clock
from gramian.common.types import Array
from gramian.estimators.candidates import CandidatePath, candidate_path
from gramian.estimators.fitting import settle
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import earned
from gramian.kernel._base import LinkedKernel
from gramian.kernel._held_out import DOUBT, FILLED, MEASURE
from gramian.kernel.npkl import NPKL
from gramian.kernel.pcp import PCP
from gramian.kernel.reg_pcp import RegPCP

LEARNERS: tuple[type[LinkedKernel], ...] = (RegPCP, NPKL, PCP)
"""The candidates in the order of their evaluation. The first, with β = `FILLED`, is the baseline.

Mean adjusted Rand index on 12 sets of at most 300 samples, three draws of 10 and 50 links: `NPKL`
0.474 and 0.644 with β = 0, 0.564 and 0.623 with 0.25, 0.540 and 0.583 with 0.5; `RegPCP` 0.453 and
0.624, 0.548 and 0.647, 0.548 and 0.608. `NPKL` with its own rule for β has 0.576 with 10 links."""

JUDGED = 0.5
"""The share of the remaining time for the selection, and for a fit that may be replaced."""

GRAPH = "spectral clustering"

SHARED = (
    "kernel_factor_", "labels_", "cluster_centers_", "links_met_", "shrinkage_",
    "constraint_violation_", "_n_features_out", "_waves_kept",
)  # fmt: skip
"""The attributes of the selected learner that are also those of `AutoKernel`."""


@with_parameters
class AutoKernel(LinkedKernel):
    """Learn the kernel, and the clusters, of the learner that is best on held-out links.

    `RegPCP`, `NPKL` and `PCP` are fitted with a large tolerance to two thirds of the links, in
    three ways, and combined with the eigenvectors of the graph by several weights β. The order of
    the distances of held-out links (1 − AUC) selects one of them. The baseline is `RegPCP` with
    β = 0.25, which depends little on single links; another candidate must be better by one standard
    error. The selected learner is then fitted to all links. If that does not converge in time, the
    baseline is used.

    With fewer than 20 links of a kind, or more than 2,000 samples, `NPKL` is used without a
    selection. `add_links` keeps the learner, except `PCP` with soft links, which it cannot have.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "auto"
        β as in `NPKL`, selected with the learner if "auto".
    n_clusters, affinity, n_neighbors, bandwidth, approximate, rank :
        As in `NPKL`.
    time_limit : float, optional
        Seconds for the whole fit. Half of them are for the selection. Candidates are evaluated in
        the order above, and the last ones are omitted if there is no time for them.
    solver, tol, max_iter, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    learner_ : fitted `RegPCP`, `NPKL` or `PCP`
    path_ : CandidatePath
        The candidates, their errors on held-out links and the selected one: `print` shows the
        table. `settings` are β. Not set if no links were held out.
    kernel_factor_, labels_, n_clusters_, links_, constraint_violation_, laplacian_, shrinkage_, \
links_met_ :
        As in `NPKL`.
    result_, certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NPKL`, of `learner_`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gramian.kernel import AutoKernel
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoKernel(random_state=0).fit(X, np.where(np.arange(150) % 10 == 0, y, -1))
    >>> len(model.path_.names)
    5
    """

    def _learn_from(self, start: Array | None) -> None:
        """Select a learner unless there are links to add, fit it, and take its attributes."""
        if start is None or (self.links_.soft and isinstance(self.learner_, PCP)):
            for name in ("path_", "learner_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            self._waves_kept = None
            with clock.share(JUDGED):
                path, learners = self._selected()
            self._fit_selected(path, learners)
        else:
            self.learner_.links_ = self.links_
            self.learner_._prepare()
            self._fitted(self.learner_, start)
        settle(self, self.learner_.result_)
        for name in SHARED:
            self.__dict__.pop(name, None)
            if name in vars(self.learner_):
                setattr(self, name, getattr(self.learner_, name))

    def _fit_selected(self, path: CandidatePath | None, learners: dict[str, Any]) -> None:
        """Fit the selected learner, or the baseline if that does not converge."""
        if path is None:
            self.learner_ = self._fitted(self._candidate(NPKL), None)
            return
        baseline = learners[LEARNERS[0].__name__]
        if path.chosen > 0:
            learner = learners.get(path.name, baseline)
            learner.shrinkage = float(path.settings[path.chosen])
            with clock.share(JUDGED):
                self._fitted(learner, None)
            if learner.result_.status.converged or clock.interrupted():
                self.path_, self.learner_ = path, learner
                return
        self.path_ = replace(path, chosen=0)
        baseline.shrinkage = self._share
        self.learner_ = self._fitted(baseline, None)

    @staticmethod
    def _fitted(learner: Any, start: Array | None) -> Any:
        """The learner, fitted to its links; the warnings are those of `AutoKernel`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner._learn_from(start)
        return learner

    def _candidate(self, kind: type[LinkedKernel]) -> Any:
        """A learner with these parameters, and the samples, the graph and the links of the fit."""
        given = self.get_params(deep=False)
        learner: Any = kind(**given)
        # `_parent_callback_ctx` belongs to the pipeline in which scikit-learn fits this estimator.
        left_out = {*given, "_parent_callback_ctx"}
        vars(learner).update(
            {name: one for name, one in vars(self).items() if name not in left_out}
        )
        learner._prepare()
        return learner

    @property
    def _share(self) -> float:
        """β of the baseline."""
        clusters = self.n_clusters_
        if self.shrinkage != "auto" or clusters is None or clusters >= self.links_.n:
            return self._shares[-1]
        return FILLED

    def _selected(self) -> tuple[CandidatePath | None, dict[str, Any]]:
        """The choice by held-out links, None if there are too few or no time; the candidates."""
        found, learners = dict[str, Array](), dict[str, Any]()
        seconds: list[float] = []
        try:
            if self._enough:
                self._keep_waves()
                folds = self._folds()
                for kind in LEARNERS:
                    if kind is PCP and self.links_.soft:
                        continue
                    started, name = clock.now(), kind.__name__
                    clock.phase(f"held-out links for {name}")
                    learners[name] = learner = self._candidate(kind)
                    found[name] = joined(learner._misses(learner._settings()[0], folds))
                    seconds.append(clock.elapsed(started))
        except KeyboardInterrupt as error:  # outside of a solve
            clock.caught(error)
        except clock.TimeUpError:
            pass  # the candidates so far
        return self._path(found, seconds) if found else None, learners

    def _path(self, found: dict[str, Array], seconds: list[float]) -> CandidatePath:
        """The table of the baseline, the graph, and each learner with its best β."""
        first, shares = found[LEARNERS[0].__name__], self._shares
        fixed = {f"{LEARNERS[0].__name__}, β = {self._share:g}": shares.index(self._share)}
        if len(shares) > 1:
            fixed[GRAPH] = 0

        def best(losses: Array, columns: Any = slice(None)) -> int:
            return int(np.argmin(losses[:, columns].mean(axis=1)))

        def table(columns: Any = slice(None)) -> Array:
            rows = (losses[best(losses, columns)] for losses in found.values())
            return np.vstack([first[list(fixed.values())], *rows])

        places = [*fixed.values(), *map(best, found.values())]
        return candidate_path(
            "learner",
            table(),
            lambda losses: earned([losses], needed=DOUBT, close=0.0),
            MEASURE,
            names=(*fixed, *found),
            settings=[shares[place] for place in places],
            seconds=[0.0] * len(fixed) + seconds,
            table_of=table,
            by="another kernel",
        )


def joined(losses: Sequence[Array]) -> Array:
    """The losses of must-links and cannot-links side by side; the mean counts both kinds equally.

    A row for each β.
    """
    total = sum(part.shape[1] for part in losses)
    return np.hstack([part * (total / (len(losses) * part.shape[1])) for part in losses])
