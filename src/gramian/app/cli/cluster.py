"""`gramian cluster`: clusters from samples and a few pairs known to belong together or apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.app.cli.links import links_of
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
from gramian.app.cli.output import bad_input, judgement, leave, outcome, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import open_option, prepared_samples, serve
from gramian.app.cli.samples import (
    Samples,
    deliver,
    free,
    last,
    note_scales,
    prepared,
    refuse_one_array,
    samples,
)
from gramian.app.explorer import Session
from gramian.app.explorer.tables import START
from gramian.app.files import ReadOptions
from gramian.app.verdict import of_graph, verdict_of_kernel
from gramian.kernel import NPKL, PCP, RegPCP
from gramian.result import Status

METHODS: dict[str, Any] = {"npkl": NPKL, "pcp": PCP, "reg-pcp": RegPCP}


@click.command(cls=Writing)
@input_options
@click.option(
    "--clusters", type=click.IntRange(min=2), help="How many; default: the number of labels."
)
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
    format: ReadOptions,
) -> None:
    """Cluster the samples of FILE by a kernel that keeps what is known of some pairs.

    A file of pairs has two row numbers a line, counted from 0 without the header; with --id it has
    two ids. A file with a third column called kind, must-link or cannot-link in each line, can be
    given to both options. Without links and labels the clusters are those of the neighbourhood
    graph.

    \b
    Example:
      gramian cluster moons.csv --clusters 2 --must-link same.csv --cannot-link apart.csv
    """
    given = samples(file, label, drop, ids, format, missing=missing, encode=encode, unknown=True)
    y = given.y if label is not None else None
    links = links_of(must_link, cannot_link, given.names, given.X.shape[0])
    X = given.X
    if clusters is not None and clusters > X.shape[0]:
        raise click.UsageError(f"--clusters {clusters}, but there are {X.shape[0]} samples")
    refuse_one_array(out, ["cluster"])
    untaught = y is None and not opened and all(pairs is None for pairs in links.values())
    if untaught:
        _refuse_untaught(clusters, run, plot)
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
        if untaught:
            _show_graph(model, given, clusters or 2, run, out, str(file))
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
        _write_clusters(
            out, given, fitted.labels_ if called is None else np.array(called)[fitted.labels_]
        )
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


def _refuse_untaught(clusters: int | None, run: Run, plot: Path | None) -> None:
    """Refuse what needs a learned kernel where there are neither links nor labels."""
    if clusters is None:
        raise click.UsageError(
            "say how many clusters there are with --clusters, or what is known of the samples with "
            "--must-link, --cannot-link or --label"
        )
    files = {"--model": run.model, "--report": run.report, "--plot": plot}
    asked = next((option for option, path in files.items() if path is not None), None)
    if asked is not None:
        raise click.UsageError(
            f"{asked} needs a learned kernel, and without --must-link, --cannot-link or --label "
            "nothing is learned"
        )


def _show_graph(
    model: Any, given: Samples, clusters: int, run: Run, out: Path | None, file: str
) -> None:
    """Cluster by the neighbourhood graph alone, which is spectral clustering."""
    kernel = last(model)
    kernel.laplacian_ = kernel._laplacian(kernel._samples(prepared_samples(model, given.X)[1]))
    kernel.n_clusters_ = clusters
    labels = of_graph(kernel)
    if out is not None:
        _write_clusters(out, given, labels)
    show(
        "cluster",
        {
            "verdict": "Nothing was taught: these are the clusters of the neighbourhood graph "
            "alone. Teach some pairs with --must-link and --cannot-link, or on a page with --open.",
            "file": file,
            "samples": given.X.shape[0],
            "features": given.X.shape[1],
            "sizes": np.bincount(labels, minlength=clusters),
            "out": out,
        },
        as_json=run.as_json,
    )


def _write_clusters(out: Path, given: Samples, clusters: NDArray[Any]) -> None:
    """The samples with a column of their clusters."""
    X = given.X
    plain = X.drop(columns=list(given.encoded)) if given.encoded else X
    columns = [str(c) for c in getattr(plain, "columns", [f"x{k}" for k in range(X.shape[1])])]
    extra = {name: X[name].to_numpy(dtype=str) for name in given.encoded}
    extra |= {} if given.y is None else {given.label: given.y}
    extra[free("cluster", {*columns, *given.ids, *extra})] = clusters
    deliver(out, _dense(plain), columns, first=given.ids, extra=extra)


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
    names = None if given.names is None else [str(name) for name in given.names]
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
        columns = {"sample": np.array(names), "cluster": np.array(session.called())}
        deliver(out, np.empty((session.size, 0)), [], first=columns)
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
            "written: increase --time-limit"
        )


def _refuse_one_cluster(fitted: Any) -> None:
    """Nothing parts the samples of a connected graph where no two are known to belong apart."""
    parts = connected_components(fitted.laplacian_, directed=False)[0]
    if len(fitted.links_.cannot) == 0 and fitted.n_clusters_ > 1 and parts < fitted.n_clusters_:
        raise click.ClickException(
            "pairs that belong together are kept best by one cluster of all: say what belongs "
            "apart with --cannot-link, a file of such pairs (or --label with two classes)"
        )


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
