"""Sections of the pages of metrics, embeddings, kernels and completions."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import confusion_matrix, r2_score

from gramian.app.report import figures
from gramian.app.report.page import Section, confusion, facts, figure, side_by_side, table
from gramian.app.report.thumbnails import are_images, sheet_of
from gramian.app.verdict import voted
from gramian.common.types import Array
from gramian.completion._base import Completion
from gramian.estimators.path import NEIGHBOURS
from gramian.estimators.plotting import flat, turned_to
from gramian.kernel._base import LinkedKernel
from gramian.manifold import NeighborLayout
from gramian.manifold._base import Unfolding
from gramian.metric import MetricRegressor
from gramian.metric._base import MetricLearner
from gramian.neighbours import nearest

MOST_ROWS = 200
USERS = 5
"""Number of users, those with most ratings, whose recommendations are shown."""


def family_sections(estimator: Any, X: Any, y: Any) -> list[Section]:
    """The sections for an estimator of a family; none for others."""
    if isinstance(estimator, MetricLearner):
        own = [] if X is None or y is None else _metric(estimator, X, np.asarray(y))
        return [*_evidence(estimator), *own]
    if isinstance(estimator, MetricRegressor):
        own = [] if X is None or y is None else _regression(estimator, X, np.asarray(y))
        return [*_evidence(estimator), *own]
    if isinstance(estimator, Unfolding):
        return _unfolding(estimator, X if are_images(X) else None, y)
    if isinstance(estimator, LinkedKernel):
        return [*_evidence(estimator), *_kernel(estimator)]
    return _completion(estimator) if isinstance(estimator, Completion) else []


def _evidence(estimator: Any) -> list[Section]:
    """The held-out errors behind the choices of a fit."""
    paths = [getattr(estimator, name, None) for name in ("setting_path_", "path_")]
    parts = "".join(_errors(path) for path in paths if path is not None)
    return [Section("Held-out error", parts)] if parts else []


def _errors(path: Any) -> str:
    """The held-out error of each candidate, as a table."""
    names = getattr(path, "names", path.values.tolist())
    rows = [[name, float(error)] for name, error in zip(names, path.errors, strict=True)]
    said = str(path).splitlines()[0]
    words = f"<p>{escape(said[:1].upper() + said[1:])}.</p>"
    return words + table([path.parameter, path.measure], rows)


def mapped_section(estimator: Any, X: Any, said: Any = None) -> Section:
    """New samples mapped by the estimator, coloured by the predictions of a model."""
    places = two_directions(np.asarray(estimator.transform(X)))
    drawn = figures.points(places, color=None if said is None else np.asarray(said).astype(str))
    words = "mapped by the model" if said is None else "mapped and predicted by the model"
    return Section("The samples given", figure(drawn, f"{len(places)} samples, {words}."))


def rows_section(title: str, columns: list[str], rows: list[list[Any]]) -> Section:
    """A table, of which at most `MOST_ROWS` rows are shown."""
    left = len(rows) - MOST_ROWS
    note = f"<p>The first {MOST_ROWS} of {len(rows)}.</p>" if left > 0 else ""
    return Section(title, note + table(columns, rows[:MOST_ROWS]))


def _metric(learner: MetricLearner, X: Any, y: NDArray[Any]) -> list[Section]:
    mapped = learner.transform(X)
    names = [str(name) for name in np.unique(y)]
    errors, counts, places = {}, [], []
    for title, Z in (("before", X), ("after", mapped)):
        asked, called = voted(Z, y, NEIGHBOURS)
        errors[f"{NEIGHBOURS}-NN error {title}"] = float(np.mean(called != y[asked]))
        found = confusion_matrix(y[asked], called, labels=np.unique(y))
        counts.append(confusion(found, names, title))
        plane = Z.shape[1] > 1
        words = title if plane else f"{title}: one direction, a row for each class"
        drawn = turned_to(two_directions(Z), two_directions(X)) if plane else _in_rows(Z, y)
        places.append(figure(figures.points(drawn, color=y, title=words, upward=plane)))
    which = "Each sample" if len(asked) == len(y) else f"Each of {len(asked):,} samples"
    note = f"{which} is classified by its {NEIGHBOURS} nearest other samples."
    return [
        Section("Two leading directions", side_by_side(*places)),
        Section("Confusion matrix", facts(errors) + f"<p>{note}</p>" + side_by_side(*counts)),
    ]


def _regression(model: MetricRegressor, X: Any, y: NDArray[Any]) -> list[Section]:
    if y.dtype.kind not in "iufb" or y.ndim != 1:
        raise ValueError(f"y must hold a number for each sample, got shape {y.shape} of {y.dtype}")
    plain, scores, places = np.asarray(X, dtype=float), {}, []
    for title, Z in (("before", plain), ("after", model.transform(X))):
        near = nearest(Z, min(model.n_neighbors, len(Z) - 1)).indices
        scores[f"R² {title}"] = float(r2_score(y, y[near].mean(axis=1)))
        drawn = turned_to(two_directions(Z), two_directions(plain))
        places.append(figure(figures.points(drawn, color=y, title=title)))
    note = f"Each sample is predicted by its {model.n_neighbors} nearest other samples."
    return [Section("Two leading directions", side_by_side(*places) + facts(scores) + note)]


def _in_rows(Z: Any, y: NDArray[Any]) -> Array:
    """Samples in one direction, drawn in the plane with a row for each class."""
    along = np.asarray(Z.toarray() if sp.issparse(Z) else Z, dtype=float).ravel()
    rows = np.unique(y, return_inverse=True)[1]
    within = np.random.default_rng(0).uniform(-0.3, 0.3, along.size)
    return np.column_stack([along, rows + within])


def two_directions(X: Any) -> Array:
    """Samples projected to their two leading principal directions."""
    if X.shape[1] <= 2:
        return flat(np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float))
    centred = X if sp.issparse(X) else np.asarray(X, dtype=float)
    if not sp.issparse(X):
        centred = centred - centred.mean(axis=0)
    return np.asarray(TruncatedSVD(2, random_state=0).fit_transform(centred))


def _of_edges(fitted: Unfolding) -> dict[str, Any]:
    """How well the edges are kept."""
    if not isinstance(fitted, NeighborLayout):
        return {"largest relative error of a squared edge": fitted.edge_error_, "ν": fitted.lam_}
    return {
        "share of torn edges": fitted.torn_,
        "relative gap to any number of dimensions, at most": fitted.certificate_.relative_gap,
        "relative gap of the best of them": fitted.relaxation_.relative_gap,
    }


def _unfolding(fitted: Unfolding, images: Any, y: Any) -> list[Section]:
    n = fitted.graph_.n
    if images is not None and len(images) != n:
        raise ValueError(f"X holds {len(images)} images of the {n} samples embedded")
    if y is not None and len(y) != n:
        raise ValueError(f"y has {len(y)} labels for the {n} samples of the embedding")
    values = {
        "samples": n,
        "edges": len(fitted.graph_.edges),
        "parts of the graph": fitted.graph_.n_parts,
        **_of_edges(fitted),
    }
    drawn = figures.points(
        flat(fitted.embedding_),
        color=y,
        edges=fitted.graph_.edges,
        images=None if images is None else sheet_of(images),
    )
    ratios = fitted.explained_variance_ratio_[:20]
    shares = figures.bars(ratios, "dimension", "share of the variance")
    body = facts(values) + figure(drawn, "The samples unfolded, with their neighbourhood graph.")
    return [Section("Embedding", body), Section("Variance kept", figure(shares))]


def _kernel(fitted: LinkedKernel) -> list[Section]:
    links = {"must-link": fitted.links_.must, "cannot-link": fitted.links_.cannot}
    labels = getattr(fitted, "labels_", None)
    values = {
        **{f"{name}s": len(pairs) for name, pairs in links.items()},
        "largest violation": fitted.constraint_violation_,
        "clusters": None if labels is None else ", ".join(map(str, np.bincount(labels))),
    }
    color = None if labels is None else labels.astype(str)
    before = figures.points(fitted._places(), color=color, links=links, title="samples")
    after = figures.points(
        two_directions(fitted.kernel_factor_), color=color, title="the learned kernel"
    )
    both = side_by_side(figure(before), figure(after))
    return [Section("Clusters and links", facts(values) + both)]


def _completion(fitted: Completion) -> list[Section]:
    values = {
        "rows": len(fitted.row_ids_),
        "columns": len(fitted.col_ids_),
        "entries": fitted._known.nnz,
        "λ": fitted.lam_,
    }
    sections = [Section("Ratings", facts(values))]
    if hasattr(fitted, "path_"):
        sections.append(Section("The path of λ", _path(fitted.path_)))
    sections.append(Section("Recommendations", table(*_recommendations(fitted))))
    return sections


def _path(path: Any) -> str:
    """The held-out error of each λ: a curve, or a table of few values."""
    if len(path.values) < figures.LEAST_ON_CURVES:
        return _errors(path)
    curve = [("held-out", path.values, path.errors)]
    drawn = figures.lines(curve, "λ", f"held-out {path.measure}", log_x=True)
    return figure(drawn, f"λ = {path.value:.4g} was chosen.")


def _recommendations(fitted: Completion) -> tuple[list[str], list[list[Any]]]:
    counts = np.diff(fitted._known.indptr)
    rows = []
    for place in np.argsort(-counts, kind="stable")[:USERS]:
        row = fitted.row_ids_[place]
        items, values = fitted.recommend(row)
        said = ", ".join(f"{item} ({value:.2f})" for item, value in zip(items, values, strict=True))
        rows.append([row, int(counts[place]), said])
    return ["row", "entries known", "best other items, with predictions"], rows
