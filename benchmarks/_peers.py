"""Other software that several tables use: the peer of each name, its options, and its fits."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from benchmarks.harness.context import Context
from benchmarks.harness.learn import Split, fitted, spread
from benchmarks.harness.process import ChildResult

Peer = tuple[str, dict[str, Any]]
INSTALL = 1200.0
"""Seconds of a first call, which installs the peer."""

METRIC_LEARN = "metric_learn_all"
METRICS: dict[str, Peer] = {
    "metric-learn LMNN": (METRIC_LEARN, {"model": "LMNN"}),
    "metric-learn ITML": (METRIC_LEARN, {"model": "ITML_Supervised"}),
    "metric-learn NCA": (METRIC_LEARN, {"model": "NCA"}),
    "metric-learn LSML": (METRIC_LEARN, {"model": "LSML_Supervised"}),
    "pyDML DML_eig": ("pydml_dml_eig", {}),
}
SURPRISE_TUNED = {"n_factors": 50, "n_epochs": 30, "lr_all": 0.008, "reg_all": 0.06}
CMFREC = {"lambda_": 0.08, "scale_lam": True}
RECOMMENDERS: dict[str, Peer] = {
    "Surprise SVD": ("surprise_svd", {}),
    "Surprise SVD, tuned": ("surprise_svd", SURPRISE_TUNED),
    "cmfrec ALS, k = 10": ("cmfrec_als", {"k": 10, **CMFREC}),
    "cmfrec ALS, k = 40": ("cmfrec_als", {"k": 40, **CMFREC}),
}


@dataclass
class Fits:
    """One metric learner on several splits, and the reason why it was run on no more."""

    errors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    max_min_gaps: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    failure: str | None = None
    timed_out: bool = False

    def add(self, error: float, seconds: float, model: Any = None) -> None:
        """Add a fit, with its certificate if the model has one."""
        self.errors.append(error)
        self.seconds.append(seconds)
        if hasattr(model, "certificate_"):
            self.gaps.append(model.certificate_.relative_gap)
            self.ranks.append(len(model.components_))
            self.ended.append(model.result_.status.name)
        if hasattr(model, "max_min_"):
            self.max_min_gaps.append(model.max_min_.relative_gap)

    @property
    def mean(self) -> float:
        return float(np.mean(self.errors))

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def endings(self) -> str:
        return ", ".join(sorted(set(self.ended)))

    def shown(self, text: Callable[["Fits"], str]) -> str | None:
        """`text` with the number of splits if some failed, or the reason if all did."""
        if not self.errors:
            return self.failure
        return text(self) + ("" if self.failure is None else f" [{len(self.errors)} split(s)]")

    def error_text(self, ddof: int = 0, form: str = "{} ± {}") -> str | None:
        return self.shown(lambda fits: spread(fits.errors, ddof=ddof, form=form))


def unavailable(ctx: Context, peers: dict[str, Peer]) -> dict[str, str]:
    """The reasons of the peers that cannot run, by script; the calls also install them."""
    X, y = load_iris(return_X_y=True)
    firsts = {peer: options for peer, options in reversed(peers.values())}
    tiny = {"X": X[::5], "y": y[::5]}
    errors = {p: ctx.peer(p, {**tiny, **o}, INSTALL, threads=1).error for p, o in firsts.items()}
    return {peer: error for peer, error in errors.items() if error is not None}


def peer_fits(ctx: Context, peer: Peer, splits: Sequence[Split], limit: float) -> Fits:
    """Fit split after split until one fails or exceeds the limit."""
    script, options = peer

    def call(split: Split, seed: int) -> ChildResult:
        seeded = {"random_state": seed} if script == METRIC_LEARN else {}
        kwargs = {"X": split.X, "y": split.y, **options, **seeded}
        return ctx.peer(script, kwargs, limit, threads=1)

    return _fits(map(call, splits, range(len(splits))), splits, limit)


def nca_fits(ctx: Context, splits: Sequence[Split], limit: float) -> Fits:
    """scikit-learn's NCA in processes of its own, as `peer_fits`."""
    calls = (ctx.child(nca, limit, X=s.X, y=s.y, seed=k) for k, s in enumerate(splits))
    return _fits(calls, splits, limit)


def nca(X: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, Any]:
    """scikit-learn's NCA with its defaults."""
    model, seconds = fitted(NeighborhoodComponentsAnalysis(random_state=seed), X, y)
    return {"components": model.components_, "fit_seconds": seconds}


def _fits(answers: Iterable[ChildResult], splits: Sequence[Split], limit: float) -> Fits:
    fits = Fits()
    for split, answer in zip(splits, answers, strict=True):
        if not answer.ok:
            fits.timed_out = answer.timed_out
            fits.failure = f"> {limit:g} s" if answer.timed_out else "failed"
            if not answer.timed_out:  # may contain paths: to the terminal only
                print(answer.error, file=sys.stderr)
            return fits
        components = answer.value["components"]
        if not np.all(np.isfinite(components)):
            fits.failure = "components not finite"
            return fits
        error = split.error(lambda Z, L=components.T: Z @ L)
        fits.add(error, answer.value["fit_seconds"])
    return fits
