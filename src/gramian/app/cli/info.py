"""`gramian info`, `report`, `demo` and `bench`: files, pages, an example and the benchmarks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.app.cli.options import (
    FILE,
    file_argument,
    format_options,
    json_option,
    option,
    report_option,
    write_report,
)
from gramian.app.cli.output import bad_input, noted, outcome, show
from gramian.app.cli.outputs import PAGE, Writing, check
from gramian.app.cli.samples import has_label, last
from gramian.app.cli.tables import for_model
from gramian.app.files import ReadOptions, describe, read_column
from gramian.common import storage
from gramian.completion._base import Completion
from gramian.io import read_sdpa
from gramian.metric import KTA

FEW = 5
"""Directions that the demonstration keeps."""

NCA_ITERATIONS = 60
"""Limit for NCA in the demonstration, which is by far the slowest method there."""


@click.command()
@file_argument
@format_options
@json_option
def info(file: Path, format: ReadOptions, as_json: bool) -> None:
    """Describe FILE: samples, ratings, a matrix, a program, a saved model or a checkpoint.

    For a table this includes the location of the header, the separator and the encoding.

    \b
    Example:
      gramian info flowers.csv
    """
    kind = storage.is_stored(file)
    if kind is None and file.suffix == ".gramian":
        storage.read(file, "model")  # raises an error that names the problem
    if kind == "model":
        show("model", _model(file), as_json=as_json)
    elif kind == "checkpoint":
        show("checkpoint", _checkpoint(storage.read(file, "checkpoint")), as_json=as_json)
    elif file.name.lower().removesuffix(".gz").endswith(".dat-s"):
        show("semidefinite program", _program(file), as_json=as_json)
    else:
        with noted():
            facts = describe(file, format=format)
        fields = [] if as_json else facts.pop("fields", [])
        rows = [list(field.values()) for field in fields]
        table = (["column", "kind", "missing"], rows) if rows else None
        show("file", facts, as_json=as_json, rows=table)


def _program(file: Path) -> dict[str, Any]:
    problem = read_sdpa(file)
    return {
        "file": str(file),
        "format": "sparse SDPA",
        "bytes": file.stat().st_size,
        "problem": str(problem),
        "constraints": sum(constraint.map.size for constraint in problem.constraints),
    }


def _checkpoint(stored: dict[str, Any]) -> dict[str, Any]:
    """The state of a solve, or of a fit by stages."""
    if "factor" in stored:
        reached = {name: stored[name] for name in ("value", "iteration")}
        return {**stored["mark"], **reached, "rank": stored["factor"].shape[1]}
    known = {name: str(value) for name, value in stored["mark"].items() if value is not None}
    return {**known, "reached": stored.get("stage") or "the path of λ"}


def _model(file: Path) -> dict[str, Any]:
    whole = gm.load(file)
    steps = getattr(whole, "steps", [("", whole)])
    estimator = next((s for _, s in steps if hasattr(s, "certificate_")), last(whole))
    columns = getattr(whole, "feature_names_in_", getattr(whole, "columns_", None))
    facts: dict[str, Any] = {
        "file": str(file),
        "estimator": " → ".join(type(step).__name__ for _, step in steps),
        "features": getattr(whole, "n_features_in_", None),
        "columns": None if columns is None else list(columns),
    }
    if hasattr(estimator, "result_"):
        facts |= outcome(estimator.result_, estimator.certificate_)
    return facts


@click.command(cls=Writing)
@click.argument("model", type=FILE)
@option("--data", FILE, "Samples to show before and after the metric.")
@option("--label", "COLUMN", "The column of their classes.")
@format_options
@option("--out", PAGE, "The .html file; default: MODEL.html.")
def report(
    model: Path, data: Path | None, label: str | None, format: ReadOptions, out: Path | None
) -> None:
    """Write a page about the saved MODEL: the problem, the certificate, curves and pictures.

    \b
    Example:
      gramian report flowers.gramian --data flowers.csv --label species
    """
    path = out or model.with_suffix(".html")
    given = {"MODEL": (FILE, model), **({} if data is None else {"--data": (FILE, data)})}
    check({"--out": (PAGE, path), **given})
    estimator = gm.load(model)
    if (data is None) != (label is None):
        raise click.UsageError("--data and --label must be given together")
    if data is not None and isinstance(estimator, Completion):
        raise click.UsageError("--data requires a model of samples, and this is a model of ratings")
    with bad_input():
        X = y = None
        if data is not None and label is not None:
            X, whole = for_model(estimator, data, format, used=[label])
            y = read_column(data, label, format)[whole]
            X, y = X[has_label(y)], y[has_label(y)]
        write_report(estimator, path, X, y, source=str(data or model))
    click.echo(str(path))


@click.command(cls=Writing)
@report_option
@json_option
def demo(report: Path | None, as_json: bool) -> None:
    """Learn five directions for the digits that come with scikit-learn, and test them on others.

    \b
    Example:
      gramian demo
    """
    digits = load_digits()
    train, test, y, y_test = train_test_split(
        digits.data, digits.target, test_size=0.3, random_state=0, stratify=digits.target
    )
    errors = {}
    for name, model in (
        ("PCA", PCA(FEW, random_state=0)),
        ("LDA", LinearDiscriminantAnalysis(n_components=FEW)),
        ("NCA", NeighborhoodComponentsAnalysis(FEW, max_iter=NCA_ITERATIONS, random_state=0)),
        ("KTA", KTA(n_components=FEW)),
    ):
        learned = make_pipeline(StandardScaler(), model, KNeighborsClassifier(3)).fit(train, y)
        errors[f"test_error_of_{name}"] = 1 - learned.score(test, y_test)
    metric = learned[1]
    write_report(learned, report, test, y_test)
    show(
        "a metric for 8 × 8 digits",
        {
            "samples": f"{len(y)} to learn from, {len(y_test)} to test on",
            "method": "kta",
            **outcome(metric.result_, metric.certificate_),
            "directions": FEW,
            **errors,
            "report": report,
        },
        as_json=as_json,
    )


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """List and run the benchmarks: every table and figure of the papers (from a checkout).

    \b
    Example:
      gramian bench list
    """
    sys.path.insert(0, "")
    try:
        harness = import_module("benchmarks.harness.cli")
    except ModuleNotFoundError as missing:
        raise click.ClickException(
            "the benchmarks are not part of the installed package: run this in a checkout of "
            f"gramian, with gramian[bench] installed (missing: {missing.name})"
        ) from missing
    raise click.exceptions.Exit(harness.main(list(arguments)))
