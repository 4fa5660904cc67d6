"""`gramian cluster`: clusters from samples and a few pairs known to belong together or apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.options import (
    FILE,
    Run,
    draw,
    input_options,
    out_option,
    plot_option,
    run_options,
    standardize_option,
)
from gramian.cli.output import bad_input, leave, outcome, show
from gramian.cli.samples import deliver, last, named, scaled
from gramian.files import read_pairs, read_table
from gramian.kernel import NPKL, PCP, RegPCP

METHODS: dict[str, Any] = {"npkl": NPKL, "pcp": PCP, "reg-pcp": RegPCP}


@click.command()
@input_options
@click.option("--clusters", type=int, help="How many; the number of labels unless told.")
@click.option("--must-link", type=FILE, help="Pairs of row numbers (from 0) that belong together.")
@click.option("--cannot-link", type=FILE, help="Pairs of row numbers that belong apart.")
@click.option("--label", metavar="COLUMN", help="Labels, empty where they are not known.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="npkl", show_default=True, help="Model."
)
@click.option("--neighbors", type=int, default=10, show_default=True, help="Of each sample.")
@standardize_option
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
    standardize: bool,
    out: Path | None,
    plot: Path | None,
    drop: tuple[str, ...],
    format: str | None,
) -> None:
    """Cluster the samples of FILE by a kernel that keeps what is known of some pairs.

    A file of pairs has two row numbers a line, counted from 0 without the header.

    \b
    Example:
      gramian cluster points.csv --clusters 3 --must-link same.csv --out clusters.csv
    """
    table = read_table(file, label=label, drop=drop, format=format, unknown=True)
    y = table.y if label is not None else None
    links = {"must_link": _pairs(must_link), "cannot_link": _pairs(cannot_link)}
    if y is None and not any(pairs is not None for pairs in links.values()):
        raise click.UsageError(
            "say what is known: --must-link or --cannot-link with a file of pairs, or --label with "
            "a column of some labels"
        )
    X = named(table)
    with bad_input():
        names, codes = (None, None) if y is None else known_labels(y)
        estimator = METHODS[method](n_clusters=clusters, n_neighbors=neighbors, **run.parameters())
        model = scaled(X, estimator, standardize)
        fitted = last(model)
        to = "" if fitted is model else f"{model.steps[-1][0]}__"
        given = {to + name: pairs for name, pairs in links.items()}
        model = run.fit(model, X, codes, **given)
        if fitted.n_clusters_ is None:
            raise click.UsageError("say how many clusters there are: --clusters")
    if out is not None:
        extra = {"cluster": fitted.labels_}
        deliver(out, _dense(table.X), table.columns, extra)
    if plot is not None:
        draw(fitted.plot(), plot)
    show(
        "cluster",
        {
            "file": str(file),
            "samples": X.shape[0],
            "features": X.shape[1],
            "method": method,
            "links": {"must": len(fitted.links_.must), "cannot": len(fitted.links_.cannot)},
            **outcome(fitted.result_, fitted.certificate_),
            "largest violation": fitted.constraint_violation_,
            "links kept": _kept(fitted),
            "sizes": np.bincount(fitted.labels_, minlength=fitted.n_clusters_),
            "labels of the clusters": _majority(names, codes, fitted.labels_),
            **run.keep(model),
            "out": out,
            "plot": plot,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)


def known_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels and their numbers, −1 where a label is empty (or −1 itself)."""
    if y.dtype.kind in "iuf":
        unknown = (y == -1) | np.isnan(y)
    else:
        unknown = np.array([str(label).strip() in ("", "-1") for label in y])
    names, place = np.unique(y[~unknown], return_inverse=True)
    codes = np.full(y.shape, -1, dtype=np.int64)
    codes[~unknown] = place
    return names, codes


def _pairs(file: Path | None) -> NDArray[np.int64] | None:
    if file is None:
        return None
    pairs, weights = read_pairs(file)
    if weights is not None:
        raise click.ClickException(f"{file} has weights, which must- and cannot-links do not take")
    return pairs


def _kept(fitted: Any) -> float | None:
    """The share of the links that the clusters agree with."""
    labels, links = fitted.labels_, fitted.links_
    agree = [labels[links.must[:, 0]] == labels[links.must[:, 1]]]
    agree.append(labels[links.cannot[:, 0]] != labels[links.cannot[:, 1]])
    together = np.concatenate(agree)
    return float(together.mean()) if together.size else None


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
    return X.toarray() if hasattr(X, "toarray") else X
