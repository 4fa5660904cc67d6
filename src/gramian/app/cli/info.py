"""`gramian info`: what a file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import gramian as gm
from gramian.app.cli.options import FILE, format_options, json_option
from gramian.app.cli.output import noted, outcome, show
from gramian.app.cli.samples import last
from gramian.app.files import ReadOptions, describe
from gramian.common import storage
from gramian.io import read_sdpa


@click.command()
@click.argument("file", type=FILE)
@format_options
@json_option
def info(file: Path, format: ReadOptions, as_json: bool) -> None:
    """Say what FILE holds: samples, ratings, a matrix, a program, a saved model or a checkpoint.

    Of a table it says how it is read: where the header is, how cells are separated, which encoding.

    \b
    Example:
      gramian info flowers.csv
    """
    kind = storage.is_stored(file)
    if kind is None and file.suffix == ".gramian":
        storage.read(file, "model")  # says what is wrong with it
    if kind == "model":
        show("model", _model(file), as_json=as_json)
    elif kind == "checkpoint":
        stored = storage.read(file, "checkpoint")
        show("checkpoint", _checkpoint(stored), as_json=as_json)
    elif file.name.lower().removesuffix(".gz").endswith(".dat-s"):
        show("semidefinite program", _program(file), as_json=as_json)
    else:
        with noted():
            facts = describe(file, format=format)
        fields = facts.get("fields", [])
        table = (["column", "kind", "missing"], [list(field.values()) for field in fields])
        if not as_json:
            facts.pop("fields", None)
        show("file", facts, as_json=as_json, rows=None if as_json or not fields else table)


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
    """Of a solve, or of a fit by stages."""
    if "factor" in stored:
        reached = {name: stored[name] for name in ("value", "iteration")}
        return {**stored["mark"], **reached, "rank": stored["factor"].shape[1]}
    known = {name: value for name, value in stored["mark"].items() if value is not None}
    reached = {"reached": stored.get("stage") or "the path of λ"}
    return {**{name: str(value) for name, value in known.items()}, **reached}


def _model(file: Path) -> dict[str, Any]:
    whole = gm.load(file)
    steps = getattr(whole, "steps", [("", whole)])
    estimator = next((s for _, s in steps if hasattr(s, "certificate_")), last(whole))
    facts: dict[str, Any] = {
        "file": str(file),
        "estimator": " → ".join(type(step).__name__ for _, step in steps),
        "features": getattr(whole, "n_features_in_", None),
        "columns": _columns(whole),
    }
    if hasattr(estimator, "result_"):
        facts |= outcome(estimator.result_, estimator.certificate_)
    return facts


def _columns(model: Any) -> list[Any] | None:
    """What the model was fitted to: features, or user, item and rating."""
    known = getattr(model, "feature_names_in_", getattr(model, "columns_", None))
    return None if known is None else list(known)
