"""Selection of the weight λ of alignment by held-out neighbours: a path from one eigenbasis.

Both ends of the path can be best. With a small λ the metric is close to the Euclidean one, with a
large λ it approaches a discriminant; in between, directions of little variance stay large and the
error is usually larger. Therefore a few values near each end are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import bandwidth, blas

from gramian.arrays import places
from gramian.arrays.dense import DEVICE_ORDER, eigh
from gramian.arrays.places import (
    Place,
    as_single,
    backend,
    beside,
    eye,
    host,
    namespace,
    place,
    place_of,
)
from gramian.arrays.samples import in_blocks, row_squares, steps
from gramian.arrays.threads import blas_threads_for
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, least
from gramian.methods.eigenbasis import eigenpairs_of_sign
from gramian.metric._base import principal_columns
from gramian.metric._evidence import (
    FEW,
    PATH_FOLDS,
    PLAIN,
    ROUGH,
    SINGLE,
    losses_of_votes,
    outvoting,
    per_sample,
    repeats_for,
    splits,
    wrong_shares,
)
from gramian.metric._few_columns import roughly_at_rank, starting_maps
from gramian.neighbours import nearest, search_mixtures
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.metric import REGULARIZERS, kta_from_moments
from gramian.problems.moments import Moments, class_sums, on_device
from gramian.result import Status
from gramian.run import minimize

PATH = (1e-1, 1e3, 1e4, 1e6)
"""λ in units of 1/ḡ², ḡ the mean eigenvalue of XᵀX over its rank.

In ‖M − I‖² + λ‖XMXᵀ − YYᵀ‖² a change of the unit of X by s divides the relative weight of the
labels by s². If the mean variance v of the samples is not near 1, units of v/ḡ² are tried, too."""

NEAR_UNIT = 4.0
"""Mean variances between the inverse of this and this are near 1."""

CLOSE = 3.0
"""Factor below which two λ are too close for both to be tried; those of `PATH` are 10 apart."""

EUCLID = 1e-2
"""The first λ tried if 0 is not a candidate, in units of 1/g² with g the largest eigenvalue: M is
then within 1 % of I for the regulariser ‖M − I‖²."""

PRINCIPAL = "the map to the principal directions"

CUT = 1e-3
"""Fraction of a metric removed by P₊ above which P₊ of it does not approximate the optimum: on 400
digits of USPS it errs in 13 %, the optimum in 24. The optimum is then computed to `ROUGH`."""


ROUNDING_SHIFT = 1e-14
"""Multiple of tr P₊ I added to P₊ for its Cholesky factor; P₊ itself is singular."""


def unit(data: Moments, n: int) -> float:
    """1/ḡ², the unit of λ that makes it independent of scale."""
    mean = data.trace / directions(data, n)
    return 1.0 / mean**2 if mean > 0 else 1.0


def directions(data: Moments, n: int) -> int:
    """The rank of XᵀX, or an upper bound if it is not decomposed."""
    if not isinstance(data.gram, Dense):
        return max(1, min(n - 1, data.order))
    values = data.spectrum[0]
    return max(1, int(np.sum(values > values[-1] * data.order * np.finfo(float).eps)))


def weigh(
    data: Moments,
    classes: Indices,
    keys: Array,
    rows_of: Callable[[Indices], Array],
    *,
    counted: Array | None = None,
    regularizer: str,
    n_components: int | None,
    rank: int | None,
    device: Any = None,
) -> EvidencePath:
    """The λ selected by the 3 nearest neighbours of held-out samples.

    With ‖M − I‖² the path begins with λ = 0, the Euclidean metric, and another λ must be clearly
    better. With a `rank` metrics of that rank are compared, λ = 0 gives the principal directions,
    and the λ of the smallest error is selected. The moments without the held-out samples are
    computed by subtraction, and one eigendecomposition of them serves the whole path; if P₊ removes
    much of the selected metric, the true optimum is evaluated as well. The result does not depend
    on the order of the samples and is deterministic.

    `keys` are those of `raw_keys`, `rows_of` gives some of the samples minus their mean, and
    `counted` is the weight of each sample in the moments, default 1; votes are not weighted.
    """
    times = np.ones(classes.size) if counted is None else counted
    plain = regularizer == "identity"
    weights = _weights(data, classes.size, plain)
    size = np.sqrt(data.trace / (classes.size * directions(data, classes.size))) or 1.0
    rounded = np.round(keys / max(float(keys.max()), np.finfo(float).tiny), 9)
    folds = []
    width, repeats = directions(data, classes.size), repeats_for(classes.size)
    parts = splits(rounded, classes, PATH_FOLDS, width, repeats)
    for split in parts:
        rows, count = np.concatenate([split.reference, split.held]), split.reference.size
        samples = rows_of(rows)
        out, w, put = samples[count:], times[split.held], place_of(samples).put
        g, V = eigh(data.gram.dense() - host(out.T @ (put(w)[:, None] * out)), data.place)
        sums = V.T @ (data.sums - _class_sums(out, classes[split.held], w, data.counts.size))
        counts = data.counts - np.bincount(classes[split.held], w, data.counts.size)
        model = _Fold(np.maximum(g, 0.0), sums, counts, data.place, regularizer, rank, n_components)
        rotated = as_single(samples @ put(V / size))
        folds.append((model, place(device).put(rotated), classes[rows], count))

    def wrong(some: Array, true: bool = False) -> Array:
        votes = [
            _wrong_votes(
                [_mapped(rotated, model.factor(lam, true)) for lam in some], named, count, device
            )
            for model, rotated, named, count in folds
        ]
        return per_sample(np.concatenate(votes, axis=1), parts)

    together = weights.size if classes.size < FEW else 1
    return _taken(weights, wrong, [model for model, *_ in folds], plain, together)


def _taken(
    weights: Array, wrong: Callable[..., Array], models: list[_Fold], plain: bool, together: int
) -> EvidencePath:
    """The selection by held-out votes; if P₊ removes much of the selected metric, by votes with the
    exact metric, repeated until the selection does not change.
    """
    losses = _judged(weights, wrong, together)
    weights, limited = weights[: len(losses)], models[0].rank is not None
    nothing = (PRINCIPAL if limited else PLAIN) if plain else "the least weight"
    true = np.zeros(weights.size, dtype=bool)
    while True:
        path = chosen_by([losses], weights, parameter="lam", measure=NEIGHBOUR_ERROR,
                         nothing=nothing, choose=least if limited else outvoting)  # fmt: skip
        best = path.chosen
        if true[best] or not any(model.cut(weights[best]) > CUT for model in models):
            return path
        try:
            losses[best], true[best] = wrong(weights[[best]], True)[0], True
        except KeyboardInterrupt as error:
            clock.caught(error)
            return path


def _judged(weights: Array, wrong: Callable[..., Array], together: int) -> Array:
    """The losses of the weights, some evaluated `together`, up to a keyboard interrupt."""
    losses: list[Array] = []
    try:
        for start in range(0, weights.size, together):
            losses.extend(wrong(weights[start : start + together]))
    except KeyboardInterrupt as error:
        if not losses:
            raise
        clock.caught(error)
    return np.array(losses)


@dataclass
class _Fold:
    """The model without some samples, in the eigenbasis of XᵀX: its values g, XᵀY, class sizes."""

    g: Array
    sums: Array
    counts: Array
    place: Place
    regularizer: str
    rank: int | None
    n_components: int | None
    before: list[Array] = field(default_factory=list)
    """The factor of the last λ, for a limited rank."""

    def factor(self, lam: float, true: bool = False) -> Any:
        """A factor of P₊ of the unconstrained minimiser, or roughly of the constrained one.

        None if that is the identity.
        """
        if lam == 0 and self.regularizer == "identity":
            k = self.n_components or self.rank
            return None if k is None else np.eye(self.g.size)[:, ::-1][:, :k]
        if self._is_there and not true:
            g, sums = self.place.put(self.g), self.place.put(self.sums)
            return _factor_there(_unconstrained(g, sums, lam, self.regularizer))
        L = _factor(_unconstrained(self.g, self.sums, lam, self.regularizer), self.rank, self.place)
        if self.rank is not None:
            L = self._at_rank(L, lam, self.rank)
        elif true:
            problem = self._problem(lam)
            result = minimize(problem, init=L, tol=ROUGH, random_state=0)
            if result.status is Status.INTERRUPTED:
                raise clock.EndedError
            L = result.factor if result.rank else np.zeros((self.g.size, 1))
        if self.n_components is None:
            return L
        return principal_columns(L, self.g[:, None] * L)[:, : self.n_components]

    @property
    def _is_there(self) -> bool:
        """Whether a factor of any rank is computed on a device and stays there."""
        free = self.rank is None and self.n_components is None
        return free and not self.place.is_host and self.g.size >= DEVICE_ORDER

    @property
    def data(self) -> Moments:
        gram = Dense(np.diag(self.g), lower=0.0)
        return Moments(gram, self.sums, self.counts, float(self.g.sum()))

    def _problem(self, lam: float) -> Problem:
        return kta_from_moments(self.data, lam, regularizer=self.regularizer)

    def _at_rank(self, L: Array, lam: float, k: int) -> Array:
        """Roughly a minimum of this rank, from a factor and that of the last λ."""
        starts = [L, *(self.before or starting_maps(self.data, k))]
        self.before[:] = [roughly_at_rank(self._problem(lam), starts, k)]
        return self.before[0]

    def cut(self, lam: float) -> float:
        """The fraction removed by P₊; 0 with a rank limit, where this is not used."""
        if self.rank is not None or (lam == 0 and self.regularizer == "identity"):  # M = I
            return 0.0
        M = _unconstrained(self.g, self.sums, lam, self.regularizer)
        with suppress(np.linalg.LinAlgError):
            np.linalg.cholesky(M)
            return 0.0
        values = np.linalg.eigvalsh(M)
        below = np.minimum(values, 0.0)
        return float(below @ below) / max(float(values @ values), np.finfo(float).tiny)


def _wrong_votes(mapped: list[Array], classes: Indices, kept: int, device: Any) -> Array:
    """The loss of each held-out row, those after the kept ones, by the vote of its neighbours, for
    each map of the rows."""

    def search(rows: Any, k: int) -> tuple[Indices, Array]:
        spaces = [(each[:kept], each[kept:][rows]) for each in mapped]
        if len(spaces) > 1 or device is not None:
            return search_mixtures(spaces, np.eye(len(spaces)), k, device=device)
        found = nearest(spaces[0][0], k, queries=spaces[0][1])
        return found.indices[None], found.sq_distances[None]

    return losses_of_votes(search, classes[:kept], classes[kept:], wrong_shares, SINGLE)


def _mapped(rotated: Any, factor: Any) -> Any:
    """XL in float32, which suffices for votes; X itself for the Euclidean metric.

    L is scaled, because votes do not depend on its scale and it might overflow float32. With a
    lower triangular L the product takes half the multiplications.
    """
    if factor is None:
        return rotated
    if not isinstance(factor, np.ndarray):
        xp = namespace(factor)
        length = xp.max(xp.abs(factor))
        return rotated @ as_single(factor / xp.where(length > 0, length, 1.0))
    size = float(np.abs(factor).max()) or 1.0
    L = (factor / size).astype(np.float32)
    if not isinstance(rotated, np.ndarray):
        return rotated @ beside(rotated, L)
    if L.shape[0] == L.shape[1] and bandwidth(L)[1] == 0:
        with blas_threads_for(rotated.size):  # small triangular products use all threads otherwise
            mapped: Array = blas.strmm(1.0, L.T, rotated.T).T
        return mapped
    return rotated @ L


def _weights(data: Moments, n: int, plain: bool) -> Array:
    """The candidate λ, ascending; the first is 0 if that is the Euclidean metric."""
    largest = float(data.spectrum[0][-1])
    first = EUCLID / largest**2 if largest > 0 and not plain else 0.0
    rest = np.array(PATH) * unit(data, n)
    variance = data.trace / (float(data.counts.sum()) * directions(data, n))
    if variance > 0 and not 1 / NEAR_UNIT < variance < NEAR_UNIT:
        scaled = variance * rest
        apart = np.abs(np.log(rest[:, None] / scaled)).min(axis=1) > np.log(CLOSE)
        rest = np.sort(np.append(scaled, rest[apart]))
    return np.append(first, rest) if plain or first > 0 else rest


def least_weight(data: Moments, n: int, regularizer: str) -> float:
    """The first λ of the path."""
    return float(_weights(data, n, regularizer == "identity")[0])


def projected(data: Moments, lam: float, regularizer: str, rank: int | None) -> Array:
    """A factor of P₊ of the unconstrained minimiser."""
    g, V = data.spectrum
    return V @ _factor(_unconstrained(g, V.T @ data.sums, lam, regularizer), rank, data.place)


def _unconstrained(g: Any, sums: Any, lam: float, regularizer: str) -> Any:
    """−C/H, the unconstrained minimiser, in the eigenbasis of XᵀX."""
    _, b, c = REGULARIZERS[regularizer]
    xp = namespace(g)
    H = (lam * g)[:, None] * g + b
    H = xp.maximum(H, 1e-12 * xp.max(H))
    M = (lam * sums) @ sums.T
    M -= c * eye(g.shape[0], place_of(g))
    M /= H
    return M


def _factor_there(M: Any) -> Any:
    """A factor of P₊(M) on a device, triangular if possible."""
    xp, L = namespace(M), backend(M).cholesky_factor(M)
    if L is not None:
        return L
    values, vectors = xp.linalg.eigh(M)
    return vectors * xp.sqrt(xp.clip(values, 0.0))


def _factor(M: Array, rank: int | None, there: Place) -> Array:
    """A factor of P₊(M), or of its leading part for a rank limit; on the host a triangular one if
    possible.

    Few eigenvalues are negative: they and a Cholesky factor take half the time of `eigh` there.
    """
    if rank is None and (there.is_host or M.shape[0] < DEVICE_ORDER):
        with suppress(np.linalg.LinAlgError):
            return np.linalg.cholesky(M)
        with suppress(np.linalg.LinAlgError), blas_threads_for(M.size):
            values, vectors = eigenpairs_of_sign(M, negative=True)
            positive = M - (vectors * values) @ vectors.T
            positive.flat[:: len(M) + 1] += ROUNDING_SHIFT * float(np.trace(positive))
            return np.linalg.cholesky(positive)
    values, vectors = eigh(M, there)
    return (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :rank]


def raw_keys(X: Any, along: Array, mean: Array) -> Array:
    """A number per sample that is invariant to rotation and translation of the features.

    Its distance from the mean, and from the mean along the leading direction, rounded to the
    accuracy of the arithmetic before samples are sorted.
    """
    directions, found = np.column_stack([mean, along]), np.empty((X.shape[0], 3))
    if on_device(X):
        found[:, :2] = host(X @ place_of(X).put(directions))
        found[:, 2] = host(places.row_squares(X))
    elif sp.issparse(X):
        found[:, :2], found[:, 2] = X @ directions, row_squares(X)
    else:

        def fill(_: int, part: slice) -> None:
            for rows in steps(X, part):
                found[rows, :2] = X[rows] @ directions
                found[rows, 2] = np.einsum("ij,ij->i", X[rows], X[rows], dtype=np.float64)

        with blas_threads_for(0):
            in_blocks(fill, X)
    middle, ahead, squares = found.T
    far = squares - 2 * middle + mean @ mean
    key: Array = far + np.sqrt(2.0) * (ahead - mean @ along) ** 2
    return key


def _class_sums(samples: Array, classes: Indices, weights: Array, c: int) -> Array:
    """XᵀY over all c classes, some of which may be absent."""
    sums, counts = class_sums(samples, classes, weights)
    return np.pad(sums, ((0, 0), (0, c - counts.size)))
