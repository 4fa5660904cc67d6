"""`gramian info`: describe a file. It imports no more than it needs, to start quickly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import gramian as gm
from gramian.app.cli.options import file_argument, format_options, json_option
from gramian.app.cli.output import noted, outcome, show
from gramian.app.files import ReadOptions, describe
from gramian.common import storage


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
        if not as_json and "arrays" in facts:
            facts["arrays"] = [
                f"{name} {' × '.join(map(str, shape))}" for name, shape in facts["arrays"].items()
            ]
        rows = [list(field.values()) for field in fields]
        table = (["column", "kind", "missing"], rows) if rows else None
        show("file", facts, as_json=as_json, rows=table)


def _program(file: Path) -> dict[str, Any]:
    problem = gm.io.read_sdpa(file)
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
    estimator = next((s for _, s in steps if hasattr(s, "certificate_")), steps[-1][1])
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
