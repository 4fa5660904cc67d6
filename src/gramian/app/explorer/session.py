"""Links between samples that are drawn on a page, and the clusters learned from them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from gramian.app.explorer.samples import SampleSession
from gramian.app.explorer.tables import (
    START,
    fitting_within,
    next_view,
    proof,
    sample_number,
    sample_numbers,
    table,
)
from gramian.app.models import save
from gramian.app.report.families import two_directions
from gramian.common import clock
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.graph import in_time, smoothest
from gramian.kernel import NPKL
from gramian.kernel._clusters import linked_clusters
from gramian.kernel._links import gather

Labels = NDArray[np.integer]

MUST, CANNOT = "must", "cannot"
ROW_COLUMNS = ("first_row", "second_row")
"""The columns of links.csv if its samples are given by row numbers, from 0, and not by names."""

ASKED = 2000
"""Number of random pairs among which the least certain one is selected."""

QUICK = 1000
"""Number of samples up to which a graph is factorised in less than a second, even if the factor is
dense."""


@dataclass(frozen=True)
class Link:
    """Two samples that belong together, or apart."""

    i: int
    j: int
    kind: str
    foreseen: bool
    """Whether the clusters agreed with it before it was drawn."""
    by_graph: bool
    """Whether the clusters of the graph alone do."""


@dataclass(frozen=True)
class Clusters:
    """A state of the session."""

    links: tuple[Link, ...]
    marks: dict[int, str]
    """Names that samples were given; each is a link to the first sample of every name."""
    fitted: Any
    labels: Labels
    view: Array
    """The samples in the feature space of the kernel, in two dimensions."""


def _waves(laplacian: Any, count: int) -> Array:
    """The smoothest eigenvectors of a graph, to about 1e-6.

    Uses Lanczos, because products stop at the time limit and a factorisation does not.
    """
    n = laplacian.shape[0]
    if n <= QUICK or connected_components(laplacian, directed=False)[0] > 1:
        return smoothest(laplacian, count, constant=True)[1]
    top = 2.0 * float(laplacian.diagonal().max())  # no eigenvalue of a Laplacian is larger
    turned = in_time((n, n), sp.csr_array(top * sp.eye_array(n) - laplacian).__matmul__)
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(turned, count, which="LA", v0=start, tol=1e-6, ncv=max(60, 4 * count))
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])


@dataclass
class Session(SampleSession[Clusters]):
    """Samples, links between them, and clusters; a change refits from the last solution.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
    n_clusters : int
    model : NPKL or another linked kernel, optional
        Not fitted; default NPKL.
    names : list of str, optional
        Names of the samples.
    patience : float
        Time limit of a change, in seconds.
    time_limit : float
        Time limit of the graph and its clusters at the start, in seconds.
    frame : frame or array, optional
        The columns of a sample that a page shows under the pointer; default X.

    Raises
    ------
    TimeoutError
        If the graph takes longer than `time_limit`, or a change has no result after `patience`.
    """

    X: Any
    n_clusters: int = 2
    model: Any = None
    names: list[str] | None = None
    patience: float = 1.0
    time_limit: float = START
    frame: Any = None

    kind = "cluster"
    files = ("links.csv", "clusters.csv", "model.gramian")

    def __post_init__(self) -> None:
        if self.n_clusters < 2:
            raise ValueError(f"n_clusters must be 2 or more, got {self.n_clusters}")
        blank = NPKL() if self.model is None else self.model
        self._blank = copy.copy(blank).set_params(n_clusters=self.n_clusters)
        X = self._blank._samples(self.X)
        self._blank._check_parameters()
        self._place(X)
        with fitting_within(
            positive(self.time_limit, "time_limit"), f"the graph of {self.size:,} samples"
        ):
            laplacian = self._blank._laplacian(X)
            self._waves = _waves(laplacian, self.n_clusters)
            self.graph_labels = self._means().fit(normalize(self._waves)).labels_
            self._blank.laplacian_, self._blank.X_fit_ = laplacian, X
        self._begin(Clusters((), {}, None, self.graph_labels, self.places))

    @property
    def links(self) -> tuple[Link, ...]:
        return self._now.links

    @property
    def marks(self) -> dict[int, str]:
        return self._now.marks

    @property
    def fitted(self) -> Any:
        return self._now.fitted

    @property
    def labels(self) -> Labels:
        return self._now.labels

    # --- changes -----------------------------------------------------------------------

    def add(self, i: int, j: int, kind: str) -> None:
        """Link two samples and refit; raises ValueError if it contradicts the other links."""
        self.add_all([(i, j, kind)])

    def add_all(self, given: list[tuple[int, int, str]], time_limit: float | None = None) -> None:
        """Add several links in one change, of `patience` seconds by default."""
        if not given:
            return
        with self.lock:
            new = self._new(given)
            if not new:
                i, j, _ = given[0]
                raise ValueError(f"{self._called(i)} and {self._called(j)} are linked so already")
            self._extend(self._links_in_words(new), new, self.marks, time_limit)

    def mark_all(self, given: list[tuple[Any, str]], time_limit: float | None = None) -> None:
        if not given:
            return
        with self.lock:
            new, pairs = self._checked(given), []
            firsts: dict[str, int] = {}
            for sample, own in self.marks.items():
                firsts.setdefault(own, sample)
            for i, name in new.items():
                pairs += [(i, j, MUST if own == name else CANNOT) for own, j in firsts.items()]
                firsts.setdefault(name, i)
            marks = {**self.marks, **new}
            self._extend(self._in_words(new), self._new(pairs), marks, time_limit)

    def _actions(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        def linked(given: dict[str, Any]) -> None:
            rows, kind = sample_numbers(given.get("rows"), self.size), str(given.get("kind"))
            if len(rows) < 2 or (kind == CANNOT and len(rows) > 2):
                raise ValueError("two samples can be linked apart, and two or more together")
            self.add_all([(rows[0], other, kind) for other in rows[1:]])

        return {"link": linked, "mark": self._mark_rows}

    def _extend(
        self, text: str, new: list[Link], marks: dict[int, str], time_limit: float | None
    ) -> None:
        started = clock.now()
        links = (*self.links, *new)
        fitted, labels = self._refit(links, new, self._limit(time_limit))
        view = self._now.view
        if fitted is not None and fitted is not self.fitted:
            view = next_view(two_directions(normalize(fitted.kernel_factor_)), view)
        self._commit(text, Clusters(links, marks, fitted, labels, view), started)

    def _refit(self, links: tuple[Link, ...], new: list[Link], limit: float) -> tuple[Any, Labels]:
        """The kernel of all links; without a cannot-link, the clusters of the graph."""
        if not new:
            return self.fitted, self.labels
        with fitting_within(limit, type(self._blank).__name__):
            if not any(link.kind == CANNOT for link in links):
                known = gather(self.size, None, **pairs_of(links))
                labels, _ = linked_clusters(normalize(self._waves), known, self._means())
                return None, renumbered(labels, self.labels, self.n_clusters)[labels]
            model = copy.copy(self._blank if self.fitted is None else self.fitted)
            if self.fitted is None:
                model.links_ = gather(self.size, None, **pairs_of(links))
                model.n_clusters_ = self.n_clusters
                model._prepare()
                model._learn_from(normalize(self._waves))
            else:
                model.add_links(**pairs_of(new))
        numbers = renumbered(model.labels_, self.labels, self.n_clusters)
        model.labels_ = numbers[model.labels_]
        model.cluster_centers_ = model.cluster_centers_[np.argsort(numbers)]
        return model, model.labels_

    def _means(self) -> KMeans:
        return KMeans(self.n_clusters, n_init=10, random_state=0)

    def _new(self, given: list[tuple[Any, Any, str]]) -> list[Link]:
        """The given links that are not in the session yet, validated."""
        known = {(frozenset((link.i, link.j)), link.kind) for link in self.links}
        new = []
        for i, j, kind in given:
            i, j = (sample_number(k, self.size) for k in (i, j))
            if kind not in (MUST, CANNOT):
                raise ValueError(f"a link is {MUST!r} or {CANNOT!r}, not {kind!r}")
            if i == j:
                raise ValueError("a link needs two different samples")
            pair = frozenset((i, j)), kind
            if pair not in known:
                known.add(pair)
                new.append(Link(i, j, kind, *self._agreement(i, j, kind)))
        return new

    def _agreement(self, i: int, j: int, kind: str) -> tuple[bool, bool]:
        """Whether the current clusters, and those of the graph alone, agree with a link."""
        now, graph = (
            (own[i] == own[j]) == (kind == MUST) for own in (self.labels, self.graph_labels)
        )
        return bool(now), bool(graph)

    # --- what a page shows --------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The rest of a page, in plain values."""
        with self.lock:
            reasons, names = self._reasons(), self._names_of_clusters()
            return {
                **self._state(),
                "classes": [names.get(c, f"cluster {c}") for c in range(self.n_clusters)],
                "labels": self.labels.tolist(),
                "learned": self._now.view.round(4).tolist(),
                "links": [{"i": k.i, "j": k.j, "kind": k.kind} for k in self.links],
                "marks": {str(k): name for k, name in self.marks.items()},
                "reasons": reasons,
                "verdict": self.verdict(len(self.links) - len(reasons)),
                **proof(self.fitted, "Nothing is solved yet: these are the clusters of the graph."),
            }

    def verdict(self, kept: int | None = None) -> str:
        """Whether links help: each one tests the clusters before it is added."""
        if not self.links:
            return "Draw a line between two points that belong together, or apart."
        kept = len(self.links) - len(self._reasons()) if kept is None else kept
        start = f"{kept} of {len(self.links)} links kept."
        if self.fitted is None:
            return f"{start} Link two points that belong apart: the kernel is learned from then on."
        right = sum(link.foreseen for link in self.links)
        plain = sum(link.by_graph for link in self.links)
        return (
            f"{start} {right} agreed with the clusters before they were drawn; {plain} agree with "
            "the clusters of the graph alone."
        )

    def _reasons(self) -> dict[str, str]:
        """The reason for each link, by its number, that the clusters do not satisfy."""
        return {
            str(k): self._reason(link)
            for k, link in enumerate(self.links)
            if not self._agreement(link.i, link.j, link.kind)[0]
        }

    def _reason(self, link: Link) -> str:
        if link.kind == CANNOT and self._crowded(link):
            return (
                f"{self._called(link.i)} or {self._called(link.j)} is linked apart from every "
                f"other cluster too: {self.n_clusters} clusters cannot keep all of these links"
            )
        if self.fitted is None:
            return "the graph has no cluster for both: link two points that belong apart"
        i, j = (normalize(self.fitted.kernel_factor_[[k]])[0] for k in (link.i, link.j))
        stopped = "" if self.fitted.result_.status.converged else "; the fit reached its time limit"
        return (
            f"the neighbours of the two outweigh it: their learned similarity is {i @ j:.2f}, "
            f"where 1 is together and 0 is apart{stopped}"
        )

    def _crowded(self, link: Link) -> bool:
        """Whether the samples that belong apart from one end of a link are in all clusters."""
        known = gather(self.size, None, **pairs_of(self.links))
        groups, found = known.groups, known.groups[known.cannot]
        for end in (link.i, link.j):
            partners = np.append(found[found[:, 0] == groups[end], 1],
                                 found[found[:, 1] == groups[end], 0])  # fmt: skip
            if np.unique(self.labels[np.isin(groups, partners)]).size == self.n_clusters:
                return True
        return False

    def download(self, name: str) -> bytes | None:
        """A table to download; None for the model, which `save` writes."""
        names = self._sample_names()
        if name == "links.csv":
            named = self.names is not None and len(set(names)) == self.size
            ends = names if named else range(self.size)
            rows = [[ends[k.i], ends[k.j], f"{k.kind}-link"] for k in self.links]
            return table([*(("first", "second") if named else ROW_COLUMNS), "kind"], rows)
        if name == "clusters.csv":
            return table(["sample", "cluster"], list(zip(names, self.called(), strict=True)))
        return None

    def save(self, path: Path, before: Any = None) -> None:
        """Save the kernel, after the steps of a pipeline if any."""
        if self.fitted is None:
            raise ValueError("there is no model yet: link two points that belong apart")
        if before is None:
            self.fitted.save(path)
        else:
            save(Pipeline([*before.steps, ("kernel", self.fitted)]), path)

    def question(self) -> dict[str, Any]:
        """The least certain of some random pairs: its kernel value is nearest to one half."""
        with self.lock:
            rows = normalize(self._waves if self.fitted is None else self.fitted.kernel_factor_)
            rng = np.random.default_rng(self.version)
            i, j = rng.integers(0, self.size, (2, ASKED))
            known = {frozenset((link.i, link.j)) for link in self.links}
            free = [a != b and frozenset((a, b)) not in known for a, b in zip(i, j, strict=True)]
            i, j = i[free], j[free]
            if i.size == 0:
                raise ValueError("every pair is linked already")
            sure = np.abs(np.einsum("er,er->e", rows[i], rows[j]) - 0.5)
            best = int(sure.argmin())
            return {"rows": [int(i[best]), int(j[best])]}

    def called(self) -> list[str]:
        """The cluster of each sample: its number, or the name most of its named samples have."""
        names = self._names_of_clusters()
        return [names.get(c, str(c)) for c in self.labels.tolist()]

    def _names_of_clusters(self) -> dict[int, str]:
        own: dict[int, list[str]] = {}
        for k, name in self.marks.items():
            own.setdefault(int(self.labels[k]), []).append(name)
        return {c: max(sorted(set(names)), key=names.count) for c, names in own.items()}

    def _links_in_words(self, new: list[Link]) -> str:
        """Links as a line of the history."""
        how = "together" if new[0].kind == MUST else "apart"
        if len(new) == 1:
            return f"{self._called(new[0].i)} – {self._called(new[0].j)}: {how}"
        return f"{len(new):,} links" + (f": {how}" if len({link.kind for link in new}) == 1 else "")


def pairs_of(links: Sequence[Link]) -> dict[str, Any]:
    """Links as the arguments of a linked kernel."""
    return {
        f"{kind}_link": [(k.i, k.j) for k in links if k.kind == kind] or None
        for kind in (MUST, CANNOT)
    }


def renumbered(labels: Labels, before: Labels, count: int) -> Labels:
    """The clusters renumbered so that as many samples as possible keep their previous number."""
    common = np.zeros((count, count))
    np.add.at(common, (labels, before), 1)
    return linear_sum_assignment(common, maximize=True)[1]
