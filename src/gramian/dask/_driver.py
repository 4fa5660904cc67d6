"""Estimators that learn on the driver from samples of a cluster.

The graph, the kernel or the slack variables of these problems have one row per sample and are held
on the driver in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask.base import is_dask_collection

from gramian import kernel, manifold, metric
from gramian.common.memory import check_memory
from gramian.dask._base import LazyTransform
from gramian.dask._cluster import Cluster, size_of
from gramian.dask._collections import Sample, filled, refuse_mixed, same_columns, samples


class OnDriver(LazyTransform):
    """A mixin for an estimator that learns on the driver."""

    def fit(self, X: Any, y: Any = None, **named: Any) -> Any:
        """Learn from a Dask array, a Dask frame or files, which are copied to the driver.

        Other arguments are those of the estimator of the same name outside `gramian.dask`.
        """
        X, y = gathered(Cluster(), X, y)
        named = {
            name: given.compute() if is_dask_collection(given) else given
            for name, given in named.items()
        }
        return self._fit_on_driver("samples", X, y, **named)


def gathered(cluster: Cluster, X: Any, y: Any) -> tuple[Any, Any]:
    """The samples and their labels on the driver, a frame where columns have names."""
    with cluster.in_time("the samples of the cluster"):
        shards = cluster.keep(samples(cluster, X, y))
        shards, _ = filled(cluster, shards, _rows_of, "X")
        need = float(cluster.sum("count", _bytes_of, shards))
        check_memory(2.0 * need, "the samples", "fit a part of them")
        blocks: list[Sample] = cluster.gather(shards)
    for block in blocks[1:]:
        same_columns(blocks[0].names, block.names, blocks[0].X.shape[1], block.X.shape[1])
        if y is not None:
            refuse_mixed(blocks[0].y, block.y, "labels")
    tables = [block.X for block in blocks]
    whole: Any = sp.csr_array(sp.vstack(tables)) if sp.issparse(tables[0]) else np.vstack(tables)
    if blocks[0].names is not None:
        whole = pd.DataFrame(whole, columns=blocks[0].names)
    return whole, None if y is None else np.concatenate([block.y for block in blocks])


def _rows_of(block: Sample) -> int:
    return int(block.X.shape[0])


def _bytes_of(block: Sample) -> int:
    return size_of(block.X)


class LMNNEig(OnDriver, metric.LMNNEig):
    """`gramian.metric.LMNNEig` of Dask collections or files, which are copied to the driver."""


class NPKL(OnDriver, kernel.NPKL):
    """`gramian.kernel.NPKL` of Dask collections or files, which are copied to the driver."""


class RegPCP(OnDriver, kernel.RegPCP):
    """`gramian.kernel.RegPCP` of Dask collections or files, which are copied to the driver."""


class MVU(OnDriver, manifold.MVU):
    """`gramian.manifold.MVU` of Dask collections or files, which are copied to the driver."""


class NeighborLayout(OnDriver, manifold.NeighborLayout):
    """`gramian.manifold.NeighborLayout` of Dask collections or files, copied to the driver."""
