"""Common methods of the estimators on a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection

from gramian.arrays.errstate import OwnErrstate
from gramian.callbacks import ProgressBar, State
from gramian.dask._cluster import Cluster


class OnCluster(OwnErrstate):
    """A mixin for an estimator on a cluster, before its local class in the list of bases."""

    def at_home(self) -> Any:
        """The fitted model as the estimator of the same name outside `gramian.dask`.

        `save` writes this estimator, and it is applied to the blocks of Dask collections.
        """
        home: Any = next(cls for cls in type(self).__mro__ if not issubclass(cls, OnCluster))
        made = home.__new__(home)
        made.__dict__.update(self.__dict__)
        return made

    def _fit_on_driver(self, what: str, *given: Any, **named: Any) -> Any:
        """Fit the local model to data that were copied to the driver."""
        fitted = self.at_home().fit(*given, **named)
        route = (f"{what} on the driver", *fitted.result_.route)
        fitted.result_ = replace(fitted.result_, route=route)
        self.__dict__ = fitted.__dict__  # without the attributes of an earlier fit
        return self

    def _lazily(self, method: str, X: Any, columns: int | None, dtype: Any = float) -> Any:
        """A method of the local model on every block of a Dask array or frame, evaluated lazily.

        The partitions of a frame keep the names of their columns.
        """
        empty = np.empty((0,) if columns is None else (0, columns), dtype=dtype)
        sizes: Any = [np.nan] * X.npartitions
        if isinstance(X, da.Array):
            if X.ndim != 2:
                raise ValueError(f"{method} takes a table of rows and columns, got shape {X.shape}")
            X = X.rechunk({1: -1})
            sizes = X.chunks[0]
        model = delayed(self.at_home(), pure=False, traverse=False)
        answer, parts = delayed(_answer, pure=False), np.ravel(X.to_delayed())
        lazy = [answer(part, model, method, empty) for part in parts]
        return da.concatenate([
            da.from_delayed(part, (size, *empty.shape[1:]), meta=empty)
            for part, size in zip(lazy, sizes, strict=True)
        ], allow_unknown_chunksizes=True)  # fmt: skip


class LazyTransform(OnCluster):
    """`transform` of Dask collections stays lazy."""

    def transform(self, X: Any, **options: Any) -> Any:
        """Map samples; a Dask array or frame gives a lazy Dask array.

        Options are those of the estimator outside `gramian.dask`, for samples in memory.
        """
        if not is_dask_collection(X):
            return super().transform(X, **options)  # type: ignore[misc]
        if options:
            raise ValueError(f"{next(iter(options))} is for samples in memory: compute them first")
        return self._lazily("transform", X, self._n_features_out)  # type: ignore[attr-defined]


class OnWorkers(LazyTransform):
    """A mixin for a metric learner whose data stay on the workers."""

    def _minimize(self, problem: Any, *, init: Any = None, **changes: Any) -> Any:
        """`gramian.minimize` with the parameters of the estimator; its bar shows the traffic.

        Data are on the `device` of each worker; the driver computes on its processor.
        """
        parts = problem.objective, *getattr(problem.objective, "parts", ())
        cluster = next((part.cluster for part in parts if hasattr(part, "cluster")), None)
        bar = None if cluster is None else bar_for(self, cluster, problem.name)
        if bar is not None:
            changes |= {"progress": False, "callback": bar}
        try:
            return super()._minimize(problem, init=init, device="cpu", **changes)  # type: ignore[misc]
        finally:
            if bar is not None:
                bar.close()


class MovingBar(ProgressBar):
    """The progress bar with the bytes moved between the driver and the cluster."""

    def __init__(self, cluster: Cluster, label: str, tol: float, **limits: Any) -> None:
        super().__init__(label, tol, **limits)
        self._cluster = cluster

    def __call__(self, state: State) -> None:
        super().__call__(state)
        answers = self._bar.postfix
        moved = self._cluster.traffic.moved / 1e6
        self._bar.set_postfix_str(f"{answers}, moved={moved:.0f} MB")


def bar_for(model: Any, cluster: Cluster, label: str, seconds: float = np.inf) -> Any:
    """The progress bar of a model, None without `progress`."""
    if not model.progress:
        return None
    tol = 0.0 if model.tol == "auto" else float(model.tol)
    return MovingBar(cluster, label, tol, max_iter=model.max_iter, seconds=seconds)


def _answer(block: Any, model: Any, method: str, empty: Any) -> Any:
    return getattr(model, method)(block) if block.shape[0] else empty
