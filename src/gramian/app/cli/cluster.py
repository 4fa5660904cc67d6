"""`gramian cluster`: clusters from samples and a few pairs known to belong together or apart."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.app.cli.options import (
    FILE,
    Run,
    draw,
    input_options,
    missing_option,
    out_option,
    plot_option,
    run_options,
    standardize_option,
)
from gramian.app.cli.output import bad_input, judgement, leave, note, outcome, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import open_option, prepared_samples, serve
from gramian.app.cli.samples import Samples, deliver, free, last, note_scales, prepared, samples
from gramian.app.explorer import Session
from gramian.app.explorer.tables import START
from gramian.app.files import read_pairs, read_ratings
from gramian.app.verdict import verdict_of_kernel
from gramian.kernel import NPKL, PCP, RegPCP
from gramian.result import Status

METHODS: dict[str, Any] = {"npkl": NPKL, "pcp": PCP, "reg-pcp": RegPCP}


@click.command(cls=Writing)
@input_options
@click.option("--clusters", type=int, help="How many; the number of labels unless told.")
@click.option("--must-link", type=FILE, help="Pairs that belong together: row numbers, or ids.")
@click.option("--cannot-link", type=FILE, help="Pairs that belong apart.")
@click.option("--label", metavar="COLUMN", help="Labels, empty where they are not known.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="npkl", show_default=True, help="Model."
)
@click.option("--neighbors", type=int, default=10, show_default=True, help="Of each sample.")
@open_option
@standardize_option
@missing_option
@out_option
@plot_option
@run_options
def cluster(
    run: Run,
    file: Path,
    clusters: int | None,
    must_link: Path | None,
    cannot_link: Path | None,
    label: str | None,
    method: str,
    neighbors: int,
    opened: bool,
    standardize: bool,
    missing: str,
    out: Path | None,
    plot: Path | None,
    drop: tuple[str, ...],
    encode: tuple[str, ...],
    ids: str | None,
    format: str | None,
) -> None:
    """Cluster the samples of FILE by a kernel that keeps what is known of some pairs.

    A file of pairs has two row numbers a line, counted from 0 without the header; with --id it has
    two ids.

    \b
    Example:
      gramian cluster moons.csv --clusters 2 --must-link same.csv --cannot-link apart.csv
    """
    if missing == "drop" and (must_link or cannot_link) and ids is None:
        raise click.UsageError(
            "without some rows the numbers in the files of links would shift: name the rows by --id"
        )
    given = samples(file, label, drop, ids, format, missing=missing, encode=encode, unknown=True)
    y = given.y if label is not None else None
    known = next(iter(given.ids.values()), None)
    links = {
        "must_link": _pairs(must_link, known, given.X.shape[0]),
        "cannot_link": _pairs(cannot_link, known, given.X.shape[0]),
    }
    if y is None and not opened and not any(pairs is not None for pairs in links.values()):
        raise click.UsageError(
            "say what is known: --must-link or --cannot-link with a file of pairs, or --label with "
            "a column of some labels"
        )
    X = given.X
    if not standardize:
        note_scales(X)
    with bad_input():
        names, codes = (None, None) if y is None else known_labels(y)
        estimator = METHODS[method](n_clusters=clusters, n_neighbors=neighbors, **run.parameters())
        model = prepared(
            X, estimator, standardize=standardize, missing=missing, encoded=given.encoded
        )
        fitted = last(model)
        if opened:
            _work_on(model, given, links, (names, codes), clusters, run, out, str(file))
            return
        to = "" if fitted is model else f"{model.steps[-1][0]}__"
        run.fit(model, X, codes, **{to + name: pairs for name, pairs in links.items()})
        if fitted.n_clusters_ is None:
            raise click.UsageError("say how many clusters there are: --clusters")
        _refuse_nothing(fitted, run.time_limit)
        _refuse_one_cluster(fitted)
        verdict = run.judged(
            fitted.result_.status, lambda: verdict_of_kernel(fitted, fitted.X_fit_, codes)
        )
    if out is not None:
        called = _majority(names, codes, fitted.labels_)
        cluster = fitted.labels_ if called is None else np.array(called)[fitted.labels_]
        plain = X.drop(columns=list(given.encoded)) if given.encoded else X
        columns = [str(c) for c in getattr(plain, "columns", [f"x{k}" for k in range(X.shape[1])])]
        extra = {name: X[name].to_numpy(dtype=str) for name in given.encoded}
        extra |= {} if y is None else {given.label: y}
        extra[free("cluster", {*columns, *given.ids, *extra})] = cluster
        deliver(out, _dense(plain), columns, first=given.ids, extra=extra)
    if plot is not None:
        draw(fitted.plot(), plot)
    show(
        "cluster",
        {
            **judgement(verdict),
            "file": str(file),
            "samples": X.shape[0],
            "features": X.shape[1],
            "method": method,
            "links": {"must": len(fitted.links_.must), "cannot": len(fitted.links_.cannot)},
            **outcome(fitted.result_, fitted.certificate_, run.seconds),
            "largest_violation": fitted.constraint_violation_,
            "links_kept": _kept(fitted),
            "sizes": np.bincount(fitted.labels_, minlength=fitted.n_clusters_),
            "labels_of_the_clusters": _majority(names, codes, fitted.labels_),
            **run.keep(model, verdict=verdict, source=file),
            "out": out,
            "plot": plot,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)


def _work_on(
    model: Any,
    given: Samples,
    links: dict[str, Any],
    known: tuple[Any, Any],
    clusters: int | None,
    run: Run,
    out: Path | None,
    title: str,
) -> None:
    """Serve a page until Ctrl-C, then write the results."""
    steps, X = prepared_samples(model, given.X)
    labels, codes = known
    count = clusters or (2 if codes is None else max(2, int(codes.max()) + 1))
    names = [str(name) for name in next(iter(given.ids.values()), [])] or None
    limit = run.time_limit or START
    session = Session(X, count, last(model), names, time_limit=limit, frame=given.X)
    kinds = [(kind, links[f"{kind}_link"]) for kind in ("must", "cannot")]
    ends = [(int(i), int(j), kind) for kind, some in kinds if some is not None for i, j in some]
    session.add_all(ends, limit)
    rows = np.flatnonzero(codes >= 0) if codes is not None else np.zeros(0, dtype=int)
    session.mark_all([(int(row), str(labels[codes[row]])) for row in rows], limit)
    serve(session, title, steps)
    if out is not None:
        names = [str(k) for k in range(session.size)] if session.names is None else session.names
        told = {"sample": np.array(names), "cluster": np.array(session.called())}
        deliver(out, np.empty((session.size, 0)), [], first=told)
    if run.model is not None and session.fitted is not None:
        session.save(run.model, steps)
    show(
        "cluster",
        {
            "verdict": session.verdict(),
            "links": len(session.links),
            "certificate": session.state()["certificate"],
            "model": run.model if session.fitted is not None else None,
            "out": out,
        },
        as_json=run.as_json,
    )


def known_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels and their numbers, −1 where a label is empty (or −1 itself)."""
    if y.dtype.kind in "iuf":
        unknown = (y == -1) | np.isnan(y)
    else:
        unknown = np.array([str(label).strip() in ("", "-1") for label in y])
    known = y[~unknown]
    if known.dtype.kind == "f" and (known % 1 == 0).all():  # empty cells made numbers of the rest
        known = known.astype(np.int64)
    names, place = np.unique(known, return_inverse=True)
    codes = np.full(y.shape, -1, dtype=np.int64)
    codes[~unknown] = place
    return names, codes


def _refuse_nothing(fitted: Any, limit: float | None) -> None:
    """A kernel of zeros has one cluster of all samples, and nobody wants to read that."""
    if fitted.result_.status is Status.TIME_LIMIT and fitted.result_.rank == 0:
        raise click.ClickException(
            f"the time limit of {limit:g} s ended before anything was learned, so nothing was "
            "written: raise --time-limit"
        )


def _refuse_one_cluster(fitted: Any) -> None:
    """Nothing parts the samples of a connected graph where no two are known to belong apart."""
    parts = connected_components(fitted.laplacian_, directed=False)[0]
    if len(fitted.links_.cannot) == 0 and fitted.n_clusters_ > 1 and parts < fitted.n_clusters_:
        raise click.ClickException(
            "pairs that belong together are kept best by one cluster of all: say what belongs "
            "apart with --cannot-link, a file of such pairs (or --label with two classes)"
        )


def _pairs(file: Path | None, ids: NDArray[Any] | None, rows: int) -> NDArray[np.int64] | None:
    if file is None:
        return None
    if ids is not None:
        found = _by_id(file, ids)
        if found is not None:
            return found
    pairs, weights = read_pairs(file)
    if weights is not None:
        raise click.ClickException(f"{file} has three columns, where two row numbers belong")
    if not len(pairs):
        raise click.ClickException(f"{file} has no pairs")
    outside = pairs[pairs >= rows]
    if outside.size:
        raise click.ClickException(
            f"{file} links row {outside[0]}, and the last of {rows:,} rows is row {rows - 1}: they "
            "are counted from 0 without the header"
        )
    return pairs


def _by_id(file: Path, ids: NDArray[Any]) -> NDArray[np.int64] | None:
    """Pairs of ids as row numbers; None where they are not of ids but row numbers themselves."""
    place = {str(name): row for row, name in enumerate(ids.tolist())}
    first, second, _ = read_ratings(file, rated=False, ids=place)
    pairs = np.column_stack([first.astype(str), second.astype(str)])
    known = np.array([[cell in place for cell in pair] for pair in pairs])
    if len(pairs) > 1 and not known[0].any():  # a header
        pairs, known = pairs[1:], known[1:]
    if not known.any() and first.dtype.kind == "i":
        note(f"{file} has no ids of --id: its numbers are taken for those of rows, from 0")
        return None
    if not known.all():
        unknown = str(pairs[~known][0])
        near = difflib.get_close_matches(unknown, place, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise click.ClickException(f"{file} links {unknown!r}, which no row is called{hint}")
    names, times = np.unique(ids.astype(str), return_counts=True)
    twice = np.intersect1d(pairs, names[times > 1])
    if twice.size:
        raise click.ClickException(
            f"{file} links {str(twice[0])!r}, and several rows are called so: name them apart"
        )
    return np.array([[place[cell] for cell in pair] for pair in pairs], dtype=np.int64)


def _kept(fitted: Any) -> str:
    """How many of the links the clusters agree with."""
    labels, links = fitted.labels_, fitted.links_
    agree = [labels[links.must[:, 0]] == labels[links.must[:, 1]]]
    agree.append(labels[links.cannot[:, 0]] != labels[links.cannot[:, 1]])
    together = np.concatenate(agree)
    return f"{int(together.sum())} of {together.size}"


def _majority(
    names: NDArray[Any] | None, codes: NDArray[Any] | None, labels: NDArray[Any]
) -> list[str] | None:
    """The commonest known label of each cluster."""
    if names is None or codes is None:
        return None
    known = codes >= 0
    counts = np.zeros((labels.max() + 1, names.size))
    np.add.at(counts, (labels[known], codes[known]), 1)
    return [str(names[row.argmax()]) if row.any() else "–" for row in counts]


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)
