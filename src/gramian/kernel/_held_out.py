"""Selection of the weight of the graph's eigenvectors, and of a setting, by held-out links."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gramian.common import clock
from gramian.common.types import Array
from gramian.estimators.path import EvidencePath, chosen_by, difference, earned, misplaced
from gramian.graph import canonical_order, smoothest
from gramian.kernel._links import Links
from gramian.result import Result

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""β, from spectral clustering to the learned kernel alone."""

FOLDS, FEWEST, ROUGH = 3, 20, 1e-2
"""Number of folds, smallest number of links of each kind, or of labels, that are held out, and the
tolerance of kernels for selection only."""

DOUBT = 1.0
"""Standard errors by which another weight must be better to be selected."""

FILLED = 0.25
"""β if no choice is clearly better and the rank of the kernel is below the number of clusters."""

MANY = 2000
"""Number of samples above which no kernels are fitted for selection."""

MEASURE = "1 − AUC of links"


class HeldOutLinks:
    """Selection of β, the weight of the eigenvectors, and of a setting by held-out links."""

    links_: Links
    laplacian_: Any
    kernel_factor_: Array
    n_clusters_: int | None
    shrinkage: float | str
    tol: float
    time_limit: float | None
    progress: bool

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        """The solution for the links, and its factor at the samples."""
        raise NotImplementedError

    def _judge(self) -> list[Array] | None:
        """The errors of held-out links for each β, None unless "auto" finds enough of them.

        A model with settings first selects one of them.
        """
        for name in ("path_", "setting_path_"):
            self.__dict__.pop(name, None)
        self._waves_kept: Array | None = None
        settings = self._settings()
        self._take(settings[0])
        if not self._enough or not (len(settings) > 1 or self._may_choose):
            return None
        try:
            self._keep_waves()
            folds = self._folds()
            judged = [self._misses(setting, folds) for setting in settings]
        except KeyboardInterrupt as error:  # outside of a solve
            clock.caught(error)
            return None
        except clock.TimeUpError:
            return None
        place = self._choose_setting(settings, judged) if len(settings) > 1 else 0
        self._take(settings[place])
        return judged[place] if self._may_choose else None

    _setting = ""
    """The name of the model's own parameter that is selected, too."""

    def _settings(self) -> tuple[float, ...]:
        """Its candidates; the first is used unless another is clearly better."""
        return (0.0,)

    def _take(self, setting: float) -> None:
        """Use one of them."""

    @property
    def _enough(self) -> bool:
        """Whether there are links to hold out, and few enough samples for several fits."""
        links = self.links_
        return min(len(links.must), len(links.cannot)) >= FEWEST and links.n <= MANY

    def _misses(self, setting: float, folds: NDArray[np.integer]) -> list[Array]:
        """The errors of links for kernels fitted without them: a row for each β, by kind."""
        losses = [self._misplaced(setting, folds == fold) for fold in range(FOLDS)]
        return [np.concatenate(part, axis=1) for part in zip(*losses, strict=True)]

    def _choose_setting(self, settings: tuple[float, ...], judged: list[list[Array]]) -> int:
        """The first, or the one with the smallest error for its best β if clearly better."""
        best = [int(np.argmin(sum(part.mean(axis=1) for part in parts))) for parts in judged]
        losses = [
            np.stack([kind[share] for kind, share in zip(kinds, best, strict=True)])
            for kinds in zip(*judged, strict=True)
        ]
        self.setting_path_: EvidencePath = chosen_by(
            losses, settings, parameter=self._setting, measure=MEASURE,
            nothing=f"{self._setting} = {settings[0]:g}", by=f"another {self._setting}",
            choose=partial(earned, needed=DOUBT, close=0.0),
        )  # fmt: skip
        return self.setting_path_.chosen

    @property
    def _may_choose(self) -> bool:
        """Whether β is selected."""
        return self.shrinkage == "auto" and self.n_clusters_ is not None and self.links_.n <= MANY

    @property
    def _shares(self) -> tuple[float, ...]:
        """The candidate values of β."""
        if self._may_choose:
            return SHARES
        return (0.0 if self.shrinkage == "auto" else float(self.shrinkage),)

    def _keep_waves(self) -> None:
        if self._waves_kept is None and self.n_clusters_ is not None:
            self._waves_kept = smoothest(self.laplacian_, self.n_clusters_, constant=True)[1]

    def _choose_shrinkage(self, misses: list[Array] | None) -> None:
        """β, by the error on held-out links if "auto".

        The learned kernel is used unless another choice is clearly better: alone, or with a part
        of the eigenvectors if its rank is below the number of clusters.
        """
        self.shrinkage_ = 0.0 if self.shrinkage == "auto" else float(self.shrinkage)
        rank = self.kernel_factor_.shape[1]
        if self._may_choose and rank < int(self.n_clusters_ or 0) < self.links_.n:
            self.shrinkage_ = FILLED
        if misses is not None:
            path: EvidencePath = chosen_by(
                misses, SHARES, parameter="shrinkage", measure=MEASURE,
                nothing="spectral clustering", choose=partial(earned, needed=0.0, close=0.0),
            )  # fmt: skip
            stands = SHARES.index(self.shrinkage_)
            behind, error = difference(misses, stands, path.chosen)
            self.path_ = replace(path, chosen=stands) if behind <= DOUBT * error else path
            self.shrinkage_ = self.path_.value
        if self.shrinkage_ > 0:
            with clock.grace():
                self._keep_waves()
        else:
            self._waves_kept = None

    def _learn_roughly(self) -> Array:
        """A factor for selection only."""
        return self._learn(None)[1]

    def _folds(self) -> NDArray[np.integer]:
        """The fold of each link, independent of the order and the names of the samples.

        Links of a kind are divided evenly.
        """
        ranks = np.argsort(canonical_order(self.laplacian_))
        ends = np.sort(ranks[self.links_.pairs], axis=1)
        order = np.lexsort((ends[:, 1], ends[:, 0], self.links_.targets))
        found = np.empty(len(ends), dtype=int)
        found[order] = np.arange(len(ends)) % FOLDS
        return found

    def _misplaced(self, setting: float, held: NDArray[np.bool_]) -> list[Array]:
        """For each β and held-out link, the error of a kernel fitted without these links."""
        clock.check()
        links, rough = self.links_, copy(self)
        rough._take(setting)
        rough.links_ = Links(
            links.n, links.pairs[~held], links.targets[~held], links.weights[~held]
        )
        rough.tol = max(self.tol, ROUGH)
        fits = FOLDS * len(self._settings())
        rough.time_limit = None if self.time_limit is None else self.time_limit / (2 * fits)
        rough.progress = False
        learned = _linked_squares(unit_rows(rough._learn_roughly()), links.pairs[held])
        smooth = learned
        if self._waves_kept is not None:
            smooth = _linked_squares(unit_rows(self._waves_kept), links.pairs[held])
        must, cannot = links.targets[held] == 1, links.targets[held] == 0
        apart = [(1 - share) * learned + share * smooth for share in self._shares]
        found = [misplaced(each[must], each[cannot]) for each in apart]
        return [np.array(part) for part in zip(*found, strict=True)]


def _linked_squares(rows: Array, pairs: NDArray[np.integer]) -> Array:
    gaps = rows[pairs[:, 0]] - rows[pairs[:, 1]]
    return np.einsum("ij,ij->i", gaps, gaps)


def unit_rows(factor: Any) -> Array:
    """Rows of norm 1; a factor without columns, as after a time limit, is returned unchanged."""
    return normalize(factor) if factor.shape[1] else factor
