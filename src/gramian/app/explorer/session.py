"""What is known of the samples so far, and the clusters that follow from it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from gramian.app.explorer.tables import (
    START,
    check_version,
    checked_names,
    fitting_within,
    sample_number,
    table,
    unit_square,
)
from gramian.app.report.families import two_directions
from gramian.common import clock
from gramian.common.parameters import positive
from gramian.estimators.persistence import save
from gramian.graph import in_time, smoothest
from gramian.kernel import NPKL
from gramian.kernel._links import gather

Array = NDArray[np.floating]

MUST, CANNOT = "must", "cannot"
ASKED = 2000
"""Pairs looked at for the one that is least certain."""

QUICK = 1000
"""Samples whose graph is factorised in a part of a second, however dense the factor is."""


@dataclass(frozen=True)
class Link:
    """Two samples that belong together, or apart."""

    i: int
    j: int
    kind: str
    foreseen: bool
    """Whether the clusters agreed with it before they were told."""
    by_graph: bool
    """Whether those of the graph alone do."""


@dataclass(frozen=True)
class Moment:
    """All that a change replaces, for undo."""

    links: tuple[Link, ...]
    marks: dict[int, str]
    model: Any
    labels: NDArray[np.integer]


def _waves(laplacian: Any, count: int) -> Array:
    """The smoothest eigenvectors of a graph, to about 1e-6.

    By Lanczos with products that end at the time limit: no factorisation of a large graph does.
    """
    n = laplacian.shape[0]
    if n <= QUICK or connected_components(laplacian, directed=False)[0] > 1:
        return smoothest(laplacian, count, constant=True)[1]
    top = 2.0 * float(laplacian.diagonal().max())  # no eigenvalue of a Laplacian is larger
    turned = in_time(sp.csr_array(top * sp.eye_array(n) - laplacian))
    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(turned, count, which="LA", v0=start, tol=1e-6, ncv=max(60, 4 * count))
    waves: Array = np.ascontiguousarray(vectors[:, np.argsort(-values)])
    return waves


@dataclass
class Session:
    """Samples, links between them, and clusters; every change refits from where the last ended.

    Parameters
    ----------
    X : samples as the kernel sees them
    n_clusters : int
    model : a kernel learner like NPKL, optional
        Not fitted; its parameters are used.
    names : what the samples are called, optional
    patience : float
        Seconds that a change may take: the best so far is shown, and the certificate says how good
        that is.
    time_limit : float
        Seconds that the graph and its clusters may take at the start.

    Raises
    ------
    TimeoutError
        Where the graph takes longer than `time_limit`, or a change has nothing to show after
        `patience`.
    """

    X: Any
    n_clusters: int = 2
    model: Any = None
    names: list[str] | None = None
    patience: float = 1.0
    time_limit: float = START
    links: tuple[Link, ...] = ()
    marks: dict[int, str] = field(default_factory=dict)
    """Names that samples were given, each a link to the first of every name."""
    version: int = 0
    seconds: float = 0.0
    """What the last change took."""

    template = "page.html"
    files = ("links.csv", "clusters.csv", "model.gramian")

    def __post_init__(self) -> None:
        if self.n_clusters < 2:
            raise ValueError(f"n_clusters must be 2 or more, got {self.n_clusters}")
        self.lock = RLock()
        blank = NPKL() if self.model is None else self.model
        self._blank = copy.copy(blank).set_params(n_clusters=self.n_clusters)
        X = self._blank._samples(self.X)
        self._blank._check_parameters()
        self.size = X.shape[0]
        self.names = checked_names(self.names, self.size)
        with fitting_within(
            positive(self.time_limit, "time_limit"), f"the graph of {self.size:,} samples"
        ):
            laplacian = self._blank._laplacian(X)
            self._waves = _waves(laplacian, self.n_clusters)
            means = KMeans(self.n_clusters, n_init=10, random_state=0)
            self.graph_labels = means.fit(normalize(self._waves)).labels_
        self._blank.laplacian_, self._blank.X_fit_ = laplacian, X
        self.places = unit_square(two_directions(X))
        self.labels: NDArray[np.integer] = self.graph_labels
        self.fitted: Any = None
        self._past: list[Moment] = []

    # --- changes -----------------------------------------------------------------------

    def add(self, i: int, j: int, kind: str) -> None:
        """Link two samples, and refit; refused where it contradicts the others."""
        with self.lock:
            self._extend([self._link(i, j, kind)], self.marks)

    def mark(self, i: int, name: str) -> None:
        """Call a sample by the name of its cluster: links to the first sample of every name."""
        with self.lock:
            i, name = sample_number(i, self.size), str(name).strip()
            if not name:
                raise ValueError("a name must have letters")
            if i in self.marks:
                raise ValueError(f"sample {i} is called {self.marks[i]!r} already: undo that first")
            firsts: dict[str, int] = {}
            for sample, own in self.marks.items():
                firsts.setdefault(own, sample)
            new = [
                self._link(i, first, MUST if own == name else CANNOT)
                for own, first in firsts.items()
            ]
            self._extend(new, {**self.marks, i: name})

    def undo(self) -> None:
        """Take the last change back; nothing is computed again."""
        with self.lock:
            if not self._past:
                raise ValueError("there is nothing to take back")
            last = self._past.pop()
            self.links, self.marks = last.links, last.marks
            self.fitted, self.labels = last.model, last.labels
            self.version += 1

    def change(self, action: str, given: dict[str, Any]) -> None:
        """What a page asks for."""
        if action == "link":
            self.add(given.get("i"), given.get("j"), str(given.get("kind")))  # type: ignore[arg-type]
        elif action == "mark":
            self.mark(given.get("i"), str(given.get("name", "")))  # type: ignore[arg-type]
        elif action == "undo":
            with self.lock:
                check_version(given.get("version"), self.version)
                self.undo()
        else:
            raise ValueError(f"there is nothing called {action!r} to do")

    def _extend(self, new: list[Link], marks: dict[int, str]) -> None:
        started = clock.now()
        before = Moment(self.links, self.marks, self.fitted, self.labels)
        links = (*self.links, *new)
        fitted, labels = self._refit(links, new)
        self._past.append(before)
        self.links, self.marks, self.fitted, self.labels = links, marks, fitted, labels
        self.version += 1
        self.seconds = clock.elapsed(started)

    def _refit(self, links: tuple[Link, ...], new: list[Link]) -> tuple[Any, NDArray[np.integer]]:
        """The kernel of all links, from the last one; that of the graph until two are apart."""
        if not new or not any(link.kind == CANNOT for link in links):
            self._check(links)
            return self.fitted, self.labels
        model = copy.copy(self._blank if self.fitted is None else self.fitted)
        given = new if self.fitted is not None else list(links)
        pairs = {
            f"{kind}_link": [(k.i, k.j) for k in given if k.kind == kind] or None
            for kind in (MUST, CANNOT)
        }
        with fitting_within(self.patience, type(model).__name__):
            if self.fitted is None:
                model.links_ = gather(self.size, None, pairs["must_link"], pairs["cannot_link"])
                model.n_clusters_ = self.n_clusters
                model._learn_from(normalize(self._waves))
            else:
                model.add_links(**pairs)
        return model, model.labels_

    def _check(self, links: tuple[Link, ...]) -> None:
        """Refuse what contradicts itself, though nothing is fitted yet."""
        seen: dict[tuple[int, int], str] = {}
        for link in links:
            pair = min(link.i, link.j), max(link.i, link.j)
            if seen.setdefault(pair, link.kind) != link.kind:
                raise ValueError(f"samples {pair[0]} and {pair[1]} are together and apart")

    def _link(self, i: int, j: int, kind: str) -> Link:
        i, j = (sample_number(k, self.size) for k in (i, j))
        if kind not in (MUST, CANNOT):
            raise ValueError(f"a link is {MUST!r} or {CANNOT!r}, not {kind!r}")
        if i == j:
            raise ValueError("a link joins two samples, and this one is of one")
        if any({i, j} == {link.i, link.j} and link.kind == kind for link in self.links):
            raise ValueError(f"samples {i} and {j} are linked so already")
        together = kind == MUST
        foreseen = bool((self.labels[i] == self.labels[j]) == together)
        graph = self.graph_labels
        return Link(i, j, kind, foreseen, bool((graph[i] == graph[j]) == together))

    # --- what is told ------------------------------------------------------------------

    def fixed(self) -> dict[str, Any]:
        """What a page shows that does not change."""
        return {
            "kind": "cluster",
            "clusters": self.n_clusters,
            "places": self.places.round(4).tolist(),
            "names": self.names or [f"sample {k}" for k in range(self.size)],
        }

    def state(self) -> dict[str, Any]:
        """Everything else that a page shows, in plain values."""
        with self.lock:
            rows = self.places if self.fitted is None else self._learned()
            certificate = None if self.fitted is None else str(self.fitted.certificate_)
            return {
                "version": self.version,
                "labels": self.labels.tolist(),
                "learned": np.round(rows, 4).tolist(),
                "links": [
                    {"i": k.i, "j": k.j, "kind": k.kind, "foreseen": k.foreseen} for k in self.links
                ],
                "marks": {str(k): name for k, name in self.marks.items()},
                "kept": int(sum(self._agrees(link) for link in self.links)),
                "verdict": self.verdict(),
                "certificate": certificate or "nothing is solved yet: the clusters of the graph",
                "seconds": round(self.seconds, 3),
                "can_undo": bool(self._past),
            }

    def verdict(self) -> str:
        """Whether links help: each was foreseen, or not, before it was told."""
        if not self.links:
            return "Link two points that belong together, or apart."
        if not any(link.kind == CANNOT for link in self.links):
            return "Link two points that belong apart: what is together alone is one cluster."
        right = sum(link.foreseen for link in self.links)
        plain = sum(link.by_graph for link in self.links)
        return (
            f"Of {len(self.links)} links the clusters had {right} right before they were told; "
            f"those of the graph alone have {plain} right."
        )

    def download(self, name: str) -> bytes | None:
        """A table to keep; None for the model, which is saved by `save`."""
        if name == "links.csv":
            return table(["i", "j", "kind"], [[k.i, k.j, k.kind] for k in self.links])
        if name == "clusters.csv":
            names = self.names or [str(k) for k in range(self.size)]
            return table(["sample", "cluster"], list(zip(names, self.called(), strict=True)))
        return None

    def save(self, path: Path, before: Any = None) -> None:
        """Save the kernel, after the steps of a pipeline where there are any."""
        if self.fitted is None:
            raise ValueError("there is no model yet: link two points that belong apart")
        if before is None:
            self.fitted.save(path)
        else:
            save(Pipeline([*before.steps, ("kernel", self.fitted)]), path)

    def question(self) -> dict[str, int]:
        """The least certain pair of a sample: whose kernel is nearest to one half."""
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
            return {"i": int(i[best]), "j": int(j[best])}

    def called(self) -> list[str]:
        """The cluster of each sample, by the name that most of its marked samples have."""
        names = [f"{c}" for c in range(self.n_clusters)]
        for cluster in range(self.n_clusters):
            own = [name for k, name in self.marks.items() if self.labels[k] == cluster]
            if own:
                names[cluster] = max(sorted(set(own)), key=own.count)
        return [names[c] for c in self.labels]

    def _agrees(self, link: Link) -> bool:
        same = self.labels[link.i] == self.labels[link.j]
        return bool(same == (link.kind == MUST))

    def _learned(self) -> Array:
        return unit_square(two_directions(normalize(self.fitted.kernel_factor_)))
