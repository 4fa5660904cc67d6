"""Two-dimensional maps in which neighbours attract and other pairs repel each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gramian.arrays.places import host, moved, place
from gramian.arrays.samples import NONE_INSTEAD, known_labels, warn_of_missing_names
from gramian.bounds import UNKNOWN, certify, certify_image
from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, COUNT, SHARE
from gramian.common.random_state import generator
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.estimators.parameters import with_parameters
from gramian.graph import FACTORED, WAVES_SHARE, Graph, canonical_order, smoothest
from gramian.manifold._base import CROWDED, Unfolding
from gramian.methods.lbfgs import descend
from gramian.neighbours import Neighbours, nearest
from gramian.outcome import Outcome, result_of
from gramian.problem import Problem
from gramian.problems.layout import neighbor_layout
from gramian.reductions.attraction import attraction
from gramian.reductions.parts import widened
from gramian.result import Result, Status
from gramian.run import minimize
from gramian.solvers.arguments import settings_for

PUSHED, DRAWN = 30, 15
"""Number of repelling pairs of each sample, and the number of random ones that stand for those far
apart. Error of the nearest neighbour in maps of 500 samples with 10 and 30 random ones: digits and
spoken letters the same, texts 28 and 25 %; the optimum of any rank takes twice as long with 30."""

NOISE, SPARE = 1e-2, 8
"""Size of the random part of the starting point, and number of additional columns in the starting
point of the optimum of any rank, whose rank was 4 to 10 on the data sets tried."""

NEAR = 20
"""Nearest other points in the map, whose pairs with a point all repel after a third of the rounds.
Error of the nearest neighbour in maps of 500 samples without and with them: digits 7 and 5 %,
spoken letters 29 and 23 %. From the first round on, texts have 28 instead of 25 %."""

SHARPNESS, LEVELS = 4.0, 64
"""Decrease of the affinity of neighbours with their squared length, relative to its mean, and
number of different affinities per power of 2."""

ROUND_STEPS, LAST_ROUND_STEPS = 20, 200
"""L-BFGS steps of a round, and of the last round. With 50 steps a round, maps of 500 samples are no
better, and take 1.6 times as long."""

LAST_GRADIENT, LBFGS_PAIRS = 1e-4, 10
"""Relative gradient at which the last round ends, and correction pairs of L-BFGS."""

FAR = 5.0
"""Ratio to the median length above which an edge counts as torn."""

PLACING = 20
"""Iterations that determine the position of a new sample."""

SPARSE, COMPARED = 0.1, 1000
"""Largest share of entries other than 0 in counts whose rows may be normalised, and the largest
number of samples for that decision."""


@with_parameters
class NeighborLayout(Unfolding):
    """A map of samples for visualization: neighbours attract each other, other pairs repel.

    Solves min Σ_e ω_e d_M(e) + ρ tr M + c Σ_p ln(1 + 1/(ε + d_M(p))) over M ⪰ 0, e the edges of the
    neighbourhood graph and p pairs of points, in the rank of the map. Unlike `MVU` it does not
    preserve distances: clusters separate, and distances between them have little meaning.

    The weights ω are a_ij in the first round and a_ij/(1 + d_M(e)), with d_M of the previous round,
    in the others, so that stretched edges attract less: the rounds minimise Σ_e a_e ln(1 + d(e)) +
    …, the objective of UMAP up to a few constants. a_ij is proportional to p(j|i) + p(i|j), where
    p(j|i) ∝ exp(−4 D_ij/D̄_i) has the sum 1 over the edges of i, and D̄_i is their mean squared
    length: near neighbours attract more, and a sample with many edges is not attracted more than
    others. The pairs p are an estimate of all pairs: random ones, and after a third of the rounds
    those of each point with the nearest ones in the map, which then count once. For given ω and p
    the problem is convex: its optimum of any rank is computed as well, and the certificate bounds
    its distance from the map.

    Counts (no negative entries, at most a tenth of them not 0, for example of words) are divided by
    the norm of their row if a sample would otherwise be a neighbour of far too many others:
    distances of raw counts depend on the length of a text most, and the shortest texts are near to
    all others. Error of the nearest neighbour in maps of 799 texts of two newsgroups: 22 % by raw
    counts, 11 % by divided ones.

    With classes, ``fit(X, y)``, edges between different classes attract less and pairs of one class
    repel less, by `target_weight`. `transform` places new samples, whose classes are not needed.

    Parameters
    ----------
    n_components : int
        Dimensions of the map.
    n_neighbors : int
        Neighbours of each sample in the graph, at most 100 and at most the number of others.
    repulsion : float
        c. The larger, the further apart clusters lie, and the looser they are.
    rounds : int
        Number of rounds, each with new weights.
    target_weight : float in [0, 1]
        t, the weight of the classes in y: ω of an edge between different classes and c of a pair of
        one class are multiplied by 1 − t. Without y it is ignored.
    metric, approximate, progress :
        As in `MVU`; a given graph may be disconnected.
    solver, tol, max_iter :
        Of the optimum of any rank, as in `gramian.minimize`; `tol` is its certified relative gap.
        It takes one to two times as long as the map. With more than 20,000 samples it is not
        computed, and the certificate is weak.
    time_limit, random_state :
        As in `gramian.minimize`, for the whole fit.
    device :
        Device of the neighbour search and the layout. The optimum of any rank is computed on the
        processor.

    Attributes
    ----------
    embedding_, kernel_factor_ : array of shape (n_samples, n_components)
        The map, centred, along its principal axes.
    explained_variance_ratio_ : array of shape (n_components,)
    weights_ : array of shape (n_edges,)
        ω of the edges of the distinct samples in the last round.
    torn_ : float
        The fraction of edges that are more than 5 times as long as the median one: neighbours
        that are far apart in the map.
    graph_ : Graph
    normalized_ : bool
        Whether rows of counts were divided by their norm; `inverse_transform` returns such rows.
    certificate_ : Certificate
        A bound on the distance of the map from the optimum of any rank, for the weights of the
        last round: the cost of few dimensions.
    relaxation_ : Certificate
        That of the optimum of any rank itself.
    result_ : Result
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from gramian.manifold import NeighborLayout
    >>> X, y = make_blobs(150, n_features=10, random_state=0)
    >>> picture = NeighborLayout().fit_transform(X)
    >>> near = [np.linalg.norm(picture - place, axis=1).argsort()[1] for place in picture]
    >>> bool(np.mean(y[near] == y) > 0.95)
    True
    """

    n_neighbors: int = 7
    repulsion: float = 2.0
    rounds: int = 12
    target_weight: float = 0.9
    tol: float = 1e-3

    _rules: ClassVar = {"n_components": COUNT, "repulsion": ABOVE_ZERO, "rounds": COUNT,
                        "target_weight": SHARE}  # fmt: skip

    _whole: ClassVar[bool] = True

    def fit(self, X: Any, y: Any = None) -> NeighborLayout:
        """Lay out the samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Or distances or a graph, depending on `metric`.
        y : classes of shape (n_samples,), optional
            −1 or NaN if unknown. Numbers that are not whole are ignored, with a warning.
        """
        X = self._samples(X)
        side = None if y is None else _one_hot(y, X.shape[0])
        self.normalized_ = self.metric == "euclidean" and hub_of_counts(X, self.n_neighbors)
        return self._fit(normalize(X) if self.normalized_ else X, side)

    def _joined_by(self, X: Any) -> str:
        """Only ρ tr M holds the components of a given graph together."""
        return "components" if self.metric == "precomputed" and sp.issparse(X) else "mst"

    def _fit_connected(self, X: Any, side: Array | None, graph: Graph) -> None:
        """Lay out the points in an order that does not depend on that of X."""
        started = clock.now()
        order = canonical_order(graph.adjacency(graph.sq_distances))
        ordered, edge = graph.renumbered(order)
        back = np.argsort(order)
        with clock.placing(lambda places: self._at_samples(places[back])):
            classes = None if side is None else _majority(side)[order]
            problem, L, weights, rng = self._laid_out(ordered, classes, started)
        self.weights_ = weights[np.argsort(edge)]
        self._unit = 1.0  # a map has no units of the samples
        result = self._compared(problem, L - L.mean(axis=0), rng, started)
        result = replace(result, factor=result.factor[back])
        self._finish(result, result.factor, X)

    def _laid_out(
        self, graph: Graph, classes: Indices | None, started: float
    ) -> tuple[Problem, Array, Array, np.random.Generator]:
        """The problem of the last round, the positions, and the weights of the problem."""
        rng = generator(self.random_state)
        edges, pull, pushed = graph.edges, closeness(graph), random_pairs(graph.n, rng)
        kept, there = 1.0 - float(self.target_weight), place(self.device)
        if classes is not None:
            pull = pull * np.where(_known(classes, edges, same=False), kept, 1.0)

        def problem_of(weights: Array, near: Indices) -> Problem:
            pairs, counts = repelled(pushed, near, graph.n)
            push = float(self.repulsion) * counts
            if classes is not None:
                push = push * np.where(_known(classes, pairs, same=True), kept, 1.0)
            return neighbor_layout(edges, pairs, graph.n, weights=weights, repulsion=push)

        L, weights = self._start(graph, rng), pull
        problem = problem_of(weights, near_pairs(L, 0))
        settings = settings_for(problem, None, self.tol, self.time_limit, rng, started)
        clock.phase(f"{self.rounds} rounds of a layout of {graph.n:,} points")
        with there.room():
            for turn in range(1, int(self.rounds) + 1):
                last = turn == self.rounds
                found = descend(
                    moved(problem, there).objective, there.put(L), settings,
                    iterations=LAST_ROUND_STEPS if last else ROUND_STEPS,
                    tol=LAST_GRADIENT if last else 0.0, memory=LBFGS_PAIRS,
                )  # fmt: skip
                L = host(found)
                if last or settings.expired():
                    break
                weights = pull * affinities(graph.squares_at(L))
                near = NEAR if turn >= self.rounds // 3 else 0
                problem = problem_of(weights, near_pairs(L, near))
        return problem, L, weights, rng

    def _start(self, graph: Graph, rng: np.random.Generator) -> Array:
        """The smoothest eigenvectors of the graph, each of variance 1, plus noise."""
        noise = rng.standard_normal((graph.n, int(self.n_components)))
        try:
            with clock.share(WAVES_SHARE):
                waves = smoothest(graph.laplacian(), int(self.n_components))[1]
        except clock.TimeUpError:
            return noise
        size = np.std(waves, axis=0)
        size = np.where(size > 1e-8, size, 1.0)  # a constant one, of a disconnected graph
        return np.ascontiguousarray(waves / size + NOISE * noise)

    def _compared(
        self, problem: Problem, L: Array, rng: np.random.Generator, started: float
    ) -> Result:
        """The layout with the certificate of the optimum of any rank."""
        value, late = problem.value(L), clock.left() <= 0
        if problem.order > FACTORED or late:
            if late:  # a bound that needs no eigenvalue
                image = problem.objective.image(L)
                self.relaxation_ = certify_image(problem, image, bottom=UNKNOWN)
            else:
                self.relaxation_ = certify(problem, L, time_limit=0.0)
            return result_of(
                problem,
                Outcome(L, self.relaxation_, Status.TIME_LIMIT if late else Status.LOCAL),
                tol=self.tol,
                solver=self.solver,
                route=("lbfgs",),
                started=started,
            )
        wide = np.hstack([L, 10 * NOISE * rng.standard_normal((len(L), SPARE))])
        relaxed = attraction(problem)
        assert relaxed is not None
        found = minimize(
            relaxed.problem, self.solver, init=relaxed.coordinates(wide), tol=self.tol,
            max_iter=self.max_iter, time_limit=self.time_limit, random_state=rng,
            progress=self.progress != "plot" and bool(self.progress),
        )  # fmt: skip
        self.relaxation_ = relaxed.certificate(found.certificate, relaxed.factor(found.factor))
        status = Status.LOCAL if found.status.converged else found.status
        rounding = problem.objective.rounding(problem.objective.image(L))
        certificate = self.relaxation_.at(value, float(np.sum(L * L)), rounding)
        return replace(
            found, factor=L, value=value, status=status, certificate=certificate,
            formula=problem.displayed, route=("lbfgs", *found.route),
            seconds=clock.elapsed(started),
        )  # fmt: skip

    def _describe_edges(self) -> None:
        d = self.graph_.squares_at(self.kernel_factor_)
        self.torn_ = float(np.mean(d > FAR**2 * np.median(d)))

    def _near(self, X: Any) -> Neighbours:
        return super()._near(normalize(X) if self.normalized_ else X)

    def _place(self, X: Any, columns: int) -> tuple[Array, Array]:
        """Positions that decrease Σ ln(1 + d) to the neighbours, and the mean of d/(1 + d) there.

        A sample of the fit keeps its position.
        """
        found = self._near(X)
        around = widened(self.kernel_factor_, columns)[found.indices]
        known = found.sq_distances[:, 0] == 0
        placed = around[:, 0]
        for _ in range(PLACING):
            near = affinities(np.sum((around - placed[:, None]) ** 2, axis=2))
            moved = np.einsum("ik,ikc->ic", near, around) / near.sum(axis=1, keepdims=True)
            placed = np.where(known[:, None], placed, moved)
        squares = np.sum((around - placed[:, None]) ** 2, axis=2)
        return placed, np.mean(1 - affinities(squares), axis=1)


def hub_of_counts(X: Any, k: int) -> bool:
    """Whether X holds counts, and a sample is a neighbour of far more others than it is if the rows
    are divided by their norm."""
    values, size = (X.data if sp.issparse(X) else X), X.shape[0] * X.shape[1]
    if np.count_nonzero(values) > SPARSE * size or np.min(values, initial=0) < 0:
        return False
    rows = np.linspace(0, X.shape[0] - 1, min(COMPARED, X.shape[0])).astype(np.intp)
    some = sp.csr_array(X)[canonical_order(X)[rows]]
    return _largest_hub(some, k) > max(CROWDED * k, 2 * _largest_hub(normalize(some), k))


def _largest_hub(X: Any, k: int) -> int:
    """The largest number of samples that have the same sample among their neighbours."""
    return int(np.bincount(nearest(X, min(k, X.shape[0] - 1)).indices.ravel()).max())


def _one_hot(y: Any, n: int) -> Array | None:
    """A row for each of n samples with 1 at its class, or zeros; None if y holds no classes."""
    numbers = np.asarray(y)
    if numbers.dtype.kind == "f" and np.any(numbers[np.isfinite(numbers)] % 1 != 0):
        warn(
            "y holds numbers that are not whole and is ignored: the map uses classes only. Divide "
            "y into groups (numpy.digitize), or colour the map by it with plot(y)",
        )
        return None
    warn_of_missing_names(y, NONE_INSTEAD)
    classes = known_labels(y, n)
    return np.eye(max(int(classes.max()) + 1, 1))[classes] * (classes >= 0)[:, None]


def _majority(side: Array) -> Indices:
    """The class of most copies of each sample, −1 if none is known or several are tied."""
    most = side.max(axis=1, keepdims=True)
    clear = (most[:, 0] > 0) & (np.sum(side == most, axis=1) == 1)
    return np.where(clear, np.argmax(side, axis=1), -1)


def _known(classes: Indices, pairs: Indices, *, same: bool) -> NDArray[np.bool_]:
    """The pairs whose classes are both known, and equal or different."""
    i, j = classes[pairs].T
    return (i >= 0) & (j >= 0) & ((i == j) == same)


def random_pairs(n: int, rng: np.random.Generator) -> Indices:
    """Some other points for each, drawn at random."""
    each = min(DRAWN, n - 1)
    ends = np.repeat(np.arange(n), each)
    return np.column_stack([ends, (ends + rng.integers(1, n, ends.size)) % n])


def closeness(graph: Graph) -> Array:
    """a_ij = p(j|i) + p(i|j) of the edges, relative to their mean.

    The exponents of 2 are multiples of 1/`LEVELS`, so that a rounding error of the lengths, as
    after a rotation of the samples, does not change the map.
    """
    ends, D = graph.edges.T.ravel(), np.tile(graph.sq_distances, 2)
    least = np.full(graph.n, np.inf)
    np.minimum.at(least, ends, D)
    mean = (np.bincount(ends, D) / np.maximum(np.bincount(ends), 1))[ends]
    unit = np.log(2) * np.maximum(mean, np.finfo(float).tiny)
    steps = np.round(SHARPNESS * LEVELS * (D - least[ends]) / unit)
    near = np.exp2(-steps / LEVELS)
    shares = near / np.bincount(ends, near)[ends]
    found: Array = shares.reshape(2, -1).sum(axis=0)
    return found / found.mean()


def near_pairs(places: Array, count: int) -> Indices:
    """The pairs i < j of each place and its nearest ones, without duplicates."""
    n = len(places)
    if count == 0:
        return np.empty((0, 2), dtype=np.int64)
    near = nearest(places, min(count, n - 1)).indices
    ends = np.column_stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()])
    return np.column_stack(np.divmod(np.unique(np.sort(ends, axis=1) @ [n, 1]), n))


def repelled(drawn: Indices, near: Indices, n: int) -> tuple[Indices, Array]:
    """Near pairs, random ones for the others, and how many pairs each stands for.

    Together they estimate the mean over all pairs, times `PUSHED` for each of n points.
    """
    others, keys = (np.sort(pairs, axis=1) @ [n, 1] for pairs in (drawn, near))
    far = drawn[~np.isin(others, keys)]
    total = n * min(PUSHED, n - 1)
    counts = np.repeat([total / len(drawn), 2 * total / (n * (n - 1))], [len(far), len(near)])
    return np.vstack([far, near]), counts


def affinities(squares: Array) -> Array:
    """1/(1 + d)."""
    return 1 / (1 + squares)
