"""`gramian cluster`: cluster samples, with links between some pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.app.cli.links import links_of
from gramian.app.cli.names import counted, free
from gramian.app.cli.options import FILE, Source, option, out_option, plot_option, source_options
from gramian.app.cli.output import bad_input, note, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import keep_page, open_option, prepared_samples, serve
from gramian.app.cli.run import Run, draw, run_options
from gramian.app.cli.samples import Samples, last, samples
from gramian.app.cli.tables import deliver, refuse_one_array
from gramian.app.explorer import Session
from gramian.app.explorer.tables import START
from gramian.app.files._columns import settled
from gramian.app.verdict import agreeing, majority, of_graph, verdict_of_kernel
from gramian.kernel import NPKL, PCP, AutoKernel, RegPCP
from gramian.result import Status

METHODS: dict[str, Any] = {"auto": AutoKernel, "npkl": NPKL, "pcp": PCP, "reg-pcp": RegPCP}


@click.command(cls=Writing)
@source_options("Column of labels, empty if unknown.")
@option("--clusters", click.IntRange(min=2), "Number of clusters; default: that of labels.")
@option("--must-link", FILE, "Pairs that belong together: row numbers, or ids.")
@option("--cannot-link", FILE, "Pairs that belong apart.")
@option("--method", list(METHODS), "Model; auto chooses one by held-out links.")
@option("--neighbors", int, "Number of neighbours in the graph.", default=10)
@open_option
@out_option
@plot_option
@run_options
def cluster(
    run: Run,
    source: Source,
    clusters: int | None,
    must_link: Path | None,
    cannot_link: Path | None,
    method: str,
    neighbors: int,
    opened: bool,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Cluster the samples of FILE by a kernel that respects links between some pairs.

    A file of pairs has two row numbers per line, counted from 0 without the header; with --id it
    has two ids. A file with a third column called kind (must-link or cannot-link) can be given to
    both options. Without links and labels the clusters are those of the neighbourhood graph.

    \b
    Example:
      gramian cluster moons.csv --clusters 2 --must-link same.csv --cannot-link apart.csv
    """
    given = samples(source, unknown=True)
    given.refuse_quantity()
    X, y = given.X, None if source.label is None else given.y
    links = links_of(must_link, cannot_link, given.names, X.shape[0], given.counter)
    if clusters is not None and clusters > X.shape[0]:
        raise click.UsageError(f"--clusters {clusters}, but there are {X.shape[0]} rows")
    refuse_one_array(out, ["cluster"])
    unlinked = y is None and not opened and all(pairs is None for pairs in links.values())
    if unlinked:
        _refuse_unlinked(clusters, run, plot)
    given.note_scales()
    with bad_input():
        names, codes = (None, None) if y is None else known_labels(source.file, y)
        if names is not None and clusters is not None and len(names) > clusters:
            note(f"{source.label!r} has {len(names)} classes, more than --clusters {clusters}")
        learner = NPKL if opened and method == "auto" else METHODS[method]  # for a quick page
        model = given.prepared(
            learner(n_clusters=clusters, n_neighbors=neighbors, **run.parameters())
        )
        fitted = last(model)
        if opened:
            _work_on(model, given, links, (names, codes), clusters, run, out)
            return
        if unlinked:
            _show_graph(model, given, clusters or 2, run, out)
            return
        to = "" if fitted is model else f"{model.steps[-1][0]}__"
        run.fit(model, X, codes, **{to + name: pairs for name, pairs in links.items()})
        if fitted.n_clusters_ is None:
            raise click.UsageError("say how many clusters there are: --clusters")
        _refuse_nothing(fitted, run.time_limit)
        verdict = run.judged(
            fitted.result_.status, lambda: verdict_of_kernel(fitted, fitted.X_fit_, codes)
        )
    called = None
    if names is not None and codes is not None:
        found = majority(fitted.labels_, codes)
        called = ["–" if code < 0 else str(names[code]) for code in found]
        fitted.cluster_names_ = np.array(called)  # for `gramian predict`
    if out is not None:
        labels = fitted.labels_
        _write_clusters(out, given, labels if called is None else np.array(called)[labels])
    if plot is not None:
        draw(fitted.plot(), plot)
    chosen = getattr(fitted, "learner_", None)
    called_method = method if chosen is None else f"{method} ({type(chosen).__name__})"
    agree = agreeing(fitted.labels_, fitted.links_)
    files = run.keep(model, verdict=verdict, source=source.file)
    counts = {"must": len(fitted.links_.must), "cannot": len(fitted.links_.cannot)}
    run.finish(
        "cluster",
        fitted,
        verdict,
        {**given.facts, "method": called_method, "links": counts},
        {
            "largest_violation": fitted.constraint_violation_,
            "links_kept": f"{int(agree.sum())} of {agree.size}",
            "sizes": np.bincount(fitted.labels_, minlength=fitted.n_clusters_),
            "labels_of_the_clusters": called,
            **files,
            "out": out,
            "plot": plot,
        },
    )


def _refuse_unlinked(clusters: int | None, run: Run, plot: Path | None) -> None:
    """Reject options that need a learned kernel if there are neither links nor labels."""
    if clusters is None:
        raise click.UsageError(
            "give the number of clusters with --clusters, or what is known about the samples with "
            "--must-link, --cannot-link or --label"
        )
    files = {"--model": run.model, "--report": run.report, "--plot": plot}
    asked = next((option for option, path in files.items() if path is not None), None)
    if asked is not None:
        raise click.UsageError(
            f"{asked} needs a learned kernel, and without --must-link, --cannot-link or --label "
            "nothing is learned"
        )


def _show_graph(model: Any, given: Samples, clusters: int, run: Run, out: Path | None) -> None:
    """Cluster by the neighbourhood graph alone, which is spectral clustering."""
    kernel = last(model)
    kernel.laplacian_ = kernel._laplacian(kernel._samples(prepared_samples(model, given.X)[1]))
    kernel.n_clusters_ = clusters
    labels = of_graph(kernel)
    if out is not None:
        _write_clusters(out, given, labels)
    sentence = (
        "Nothing was learned: without links and labels these are the clusters of the neighbourhood "
        "graph. Give some pairs with --must-link and --cannot-link, or on a page with --open."
    )
    sizes = np.bincount(labels, minlength=clusters)
    facts = {"verdict": sentence, **given.facts, "sizes": sizes, "out": out}
    show("cluster", facts, as_json=run.as_json)


def _write_clusters(out: Path, given: Samples, clusters: NDArray[Any]) -> None:
    """Write the samples with a column of their clusters."""
    X = given.X
    plain = X.drop(columns=list(given.encoded)) if given.encoded else X
    columns = [str(c) for c in getattr(plain, "columns", [f"x{k}" for k in range(X.shape[1])])]
    extra = {name: X[name].to_numpy(dtype=str) for name in given.encoded}
    extra |= {} if given.y is None else {given.label: given.y}
    extra[free("cluster", {*columns, *given.ids, *extra})] = clusters
    dense = plain.toarray() if hasattr(plain, "toarray") else np.asarray(plain)
    deliver(out, dense, columns, first=given.ids, extra=extra)


def _work_on(
    model: Any,
    given: Samples,
    links: dict[str, Any],
    known: tuple[Any, Any],
    clusters: int | None,
    run: Run,
    out: Path | None,
) -> None:
    """Serve a page until Ctrl-C, then write the results."""
    steps, X = prepared_samples(model, given.X)
    labels, codes = known
    count = clusters or (2 if codes is None else max(2, int(codes.max()) + 1))
    limit = run.time_limit or START
    session = Session(X, count, last(model), given.texts, time_limit=limit, frame=given.X)
    kinds = [(kind, links[f"{kind}_link"]) for kind in ("must", "cannot")]
    ends = [(int(i), int(j), kind) for kind, some in kinds if some is not None for i, j in some]
    session.add_all(ends, limit)
    rows = np.flatnonzero(codes >= 0) if codes is not None else np.zeros(0, dtype=int)
    session.mark_all([(int(row), str(labels[codes[row]])) for row in rows], limit)
    serve(session, str(given.source.file), steps)
    answers, facts = {"cluster": session.called()}, {"links": len(session.links)}
    keep_page("cluster", session, steps, run, out, session.names, answers, facts)


def known_labels(file: Path, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels and their numbers, −1 where a label is empty (or −1 itself)."""
    if y.dtype.kind in "iuf":
        unknown = (y == -1) | np.isnan(y)
    else:
        unknown = np.array([str(label).strip() in ("", "-1") for label in y])
    marked = sum(str(label).strip() in ("-1", "-1.0") for label in y[unknown])
    if marked:
        note(f"{counted(marked, 'row')} with the label -1 taken as unlabelled")
    known = settled(file, y[~unknown])  # missing cells make integers floats
    names, place = np.unique(known, return_inverse=True)
    codes = np.full(y.shape, -1, dtype=np.int64)
    codes[~unknown] = place
    return names, codes


def _refuse_nothing(fitted: Any, limit: float | None) -> None:
    """Raise an error if the kernel is 0, or if neither links nor the graph separate clusters."""
    if fitted.result_.status is Status.TIME_LIMIT and fitted.result_.rank == 0:
        raise click.ClickException(
            f"the time limit of {limit:g} s ended before anything was learned, so nothing was "
            "written: increase --time-limit"
        )
    parts = connected_components(fitted.laplacian_, directed=False)[0]
    if len(fitted.links_.cannot) == 0 and fitted.n_clusters_ > 1 and parts < fitted.n_clusters_:
        raise click.ClickException(
            "one cluster of all samples satisfies pairs that belong together: name pairs that "
            "belong apart with --cannot-link, or two classes with --label"
        )
