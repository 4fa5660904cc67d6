"""What tasks do with the part of an objective that their shard is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.dask._terms import Bent, ShardFacts, Terms
from gramian.linalg.restriction import Restriction
from gramian.objectives.base import Objective, Pairs, SymmetricOperator
from gramian.objectives.parts import Parts
from gramian.proofs import Bipartite, SparseForm

Array = NDArray[np.floating]


def is_there(part: Objective | None) -> bool:
    return part is not None


def facts_of(part: Objective, dense: int) -> ShardFacts:
    """Those of a part; how sparse its gradient is only beyond the order of dense ones."""
    at_home = None
    if part.order > dense:
        at_home = entries_of(part.gradient(part.image(np.zeros((part.order, 1)))).form())
    numbers = None if at_home is None else int(at_home.sparse.nnz)
    return ShardFacts(part.order, part.facts, part.constant, part.growth(), numbers)


def entries_of(form: Any) -> Parts | None:
    """The matrix of a form by its entries, where it has no more than those."""
    if isinstance(form, SparseForm) and form.plain and not form.weights.size:
        return Parts(form.order, 0.0, form.S)
    if isinstance(form, Bipartite):
        sparse = sp.block_array([[None, form.B], [form.B.T, None]], format="csr")
        return Parts(sum(form.B.shape), form.scale, sparse)
    return None


def _image(part: Objective, X: Array, Y: Array | None) -> Any:
    return part.image(X) if Y is None else part.pair_image(X, Y)


def look(part: Objective, X: Array, Y: Array | None, whole: bool) -> Terms:
    image = _image(part, X, Y)
    gradient = part.gradient(image)
    support = part.support(image)
    below = -np.inf if support is None else support.value
    value, rounding = part.value(image), part.rounding(image)
    if whole:
        return Terms(value, gradient.dense(), None, rounding, gradient.slack(), below)
    slope = 0.5 * part.gradient_factor(image) if Y is None else X[:, :0]
    return Terms(value, slope, None, rounding, 0.0, below)


def kept_gradient(part: Objective, X: Array, Y: Array | None) -> tuple[float, SymmetricOperator]:
    image = _image(part, X, Y)
    return part.value(image), part.gradient(image)


def _share(value: float, whole: float | None, mu: float | None) -> float:
    return 1.0 if whole is None or mu is None else float(np.exp((value - whole) / mu))


def times(kept: tuple[float, Any], whole: Any, mu: Any, V: Array) -> Array:
    return _share(kept[0], whole, mu) * (kept[1] @ V)


def dense(kept: tuple[float, Any], whole: Any, mu: Any) -> Array:
    return _share(kept[0], whole, mu) * kept[1].dense()


def slack(kept: tuple[float, Any], whole: Any, mu: Any) -> Array:
    return _share(kept[0], whole, mu) * kept[1].slack()


def form(kept: tuple[float, Any]) -> Any:
    return kept[1].form()


def bend(part: Objective, L: Array) -> tuple[float, Array, Any]:
    image = part.image(L)
    return part.value(image), part.gradient_factor(image), part.hessian_factor(image)


def bent(kept: tuple[float, Array, Any], D: Array) -> Bent:
    value, slope, product = kept
    return Bent(value, slope, float(np.sum(slope * D)), product(D))


def combinations(pairs: Pairs, part: Objective, *factors: Array) -> Restriction:
    return part.combinations([part.image(L) for L in factors], pairs).restriction


def subspace(part: Objective, W: Array) -> Restriction:
    return part.subspace(W)


def at_theta(made: Restriction, theta: Array) -> Terms:
    return Terms(made.value(theta), made.gradient(theta), made.hessian(theta))


def support_at(part: Objective, X: Array, Y: Array | None, shrink: float) -> float:
    support = part.support(_image(part, X, Y))
    assert support is not None
    if shrink == 1.0:
        return support.value
    assert support.shrunk is not None
    return support.shrunk(shrink)


def recession(part: Objective, X: Array, Y: Array | None) -> Array:
    return np.array(part.recession(_image(part, X, Y)))
