"""Options that several commands share; a group of them becomes one argument of a command."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from gramian.app.cli.exits import call
from gramian.app.cli.outputs import PAGE, PICTURE, TABLE
from gramian.app.files._source import FORMATS, ReadOptions

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Input(click.Path):
    """A file to read; - is standard input, copied to a temporary file."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        if str(value) != "-":
            return Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = tempfile.TemporaryDirectory()
        if ctx is not None:
            ctx.call_on_close(folder.cleanup)
        path = Path(folder.name) / "stdin"
        call(path, "standard input")
        with open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return path


FILE = Input(path_type=Path)
POSITIVE = click.FloatRange(min=0, min_open=True)


@dataclass(frozen=True)
class Source:
    """The file of the samples, and how to read and prepare it."""

    file: Path
    format: ReadOptions
    label: str | None
    drop: Sequence[str]
    keep: Sequence[str]
    encode: Sequence[str]
    ids: str | None
    missing: str
    standardize: bool


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return declare


def group(kind: Any, argument: str, *options: Decorator) -> Decorator:
    """Declare options whose values are passed as one argument, an instance of a dataclass."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            names = [field.name for field in fields(kind) if field.name in given]
            made = kind(**{name: given.pop(name) for name in names})
            return command(**{argument: made}, **given)

        return together(*options)(gathered)

    return declare


def option(names: str, kind: Any, text: str, *, default: Any = None, **more: Any) -> Decorator:
    """An option with a help text.

    The kind bool is a flag, a list is a choice with its first value as the default if there is no
    other, and a text is the name of the value in the help.
    """
    if kind is bool:
        default = default if "/" in names else False
        more |= {"is_flag": True, "default": default}
    elif isinstance(kind, (list, tuple)):
        more |= {"type": click.Choice(kind), "default": default or kind[0]}
    else:
        more |= {"metavar": kind} if isinstance(kind, str) else {"type": kind}
        more |= {} if default is None else {"default": default}
    shown = "/" in names or not more.get("is_flag")
    return click.option(*names.split(), show_default=shown, help=text, **more)


file_argument = click.argument("file", type=FILE)
out_option = option("--out", TABLE, "Write to this file: .csv, .tsv, .npy, .npz or .parquet.")
plot_option = option("--plot", PICTURE, "Draw to this file: .png, .pdf or .svg.")
report_option = option("--report", PAGE, "Write a page about it to this .html file.")
json_option = option("--json as_json", bool, "Print JSON.")
limit_options = together(
    option("--time-limit", POSITIVE, "Stop after this time.", metavar="SECONDS"),
    option("--seed", click.IntRange(min=0), "Random seed.", default=0),
    option("--device", "NAME", "cpu, cuda or cuda:1 (needs gramian[gpu])."),
    option("--progress/--no-progress", bool, "Show progress; default: on a terminal only."),
)

format_options = group(
    ReadOptions,
    "format",
    option("--format", click.Choice(FORMATS), "Of the input file; default: detected."),
    option(
        "--header/--no-header",
        bool,
        "Whether the first row has the names of the columns; default: detected.",
    ),
    option("--sheet", "NAME", "Sheet of an Excel file; default: largest."),
)


def source_options(label: str, *, standardize: bool = False) -> Decorator:
    """The file of the samples and how to read it; `label` is the help of --label."""
    return group(
        Source,
        "source",
        file_argument,
        format_options,
        option("--label", "COLUMN", label),
        option("--drop", "COLUMN,…", "Columns to leave out; repeatable.", multiple=True),
        option("--keep", "COLUMN,…", "Columns of row numbers to keep as features.", multiple=True),
        option(
            "--encode",
            "COLUMN,…",
            "Columns of categories or dates to encode; all: every column of text.",
            multiple=True,
        ),
        option("--id ids", "COLUMN", "A column with names of the rows, kept in --out."),
        option(
            "--missing",
            ["error", "drop", "mean", "median"],
            "Missing cells: refuse the file, leave out their rows, or fill them in.",
        ),
        option(
            "--standardize/--as-is",
            bool,
            "Scale columns to mean 0 and variance 1.",
            default=standardize,
        ),
    )
