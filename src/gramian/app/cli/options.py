"""Options that several commands share; a group of them becomes one argument of a command."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
from sklearn.pipeline import Pipeline

import gramian as gm
from gramian.app.cli.exits import HEARD, as_called, call
from gramian.app.cli.output import judgement, leave, note, outcome, show
from gramian.app.cli.outputs import MODEL, PAGE, PICTURE, TABLE, Folder
from gramian.app.cli.samples import Source
from gramian.app.files import ReadOptions
from gramian.app.files._source import FORMATS
from gramian.app.report import report_estimator
from gramian.app.report.thumbnails import are_images
from gramian.app.verdict import Verdict, untested
from gramian.common import clock
from gramian.common.storage import replacing
from gramian.estimators.persistence import Kept

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SLOW = 30.0
"""Seconds of a fit beyond which the default is not to fit again for a verdict."""

PART = 0.25
"""The verdict is skipped if less than this share of the seconds of the fit is left."""

STOPPED, TIME_UP = "it was interrupted from the keyboard", "the time was up"


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


class Tolerance(click.ParamType):
    """A number, or "auto" for models with a stopping rule of their own."""

    name = "float"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        return "auto" if value == "auto" else float(click.FLOAT.convert(value, param, ctx))


FILE = Input(path_type=Path)


@dataclass
class Run:
    """How to solve, and which files to write about the model."""

    solver: str
    rank: int | None
    tol: float | str | None
    time_limit: float | None
    seed: int
    progress: bool | None
    checkpoint: Path | None
    model: Path | None
    report: Path | None
    as_json: bool
    verdict: bool | None = None
    device: str | None = None
    seconds: float = 0.0
    """Duration of the fit."""
    began: float = 0.0
    """Start of the fit, by `clock.now`."""

    def parameters(self) -> dict[str, Any]:
        """The parameters of an estimator."""
        optional = {"device": self.device, "tol": self.tol}
        return {
            "solver": self.solver,
            "rank": self.rank,
            "time_limit": self.time_limit,
            "random_state": self.seed,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def fit(self, estimator: Any, *data: Any, **more: Any) -> Any:
        """Fit, with checkpoints if a folder for them is given."""
        if self.checkpoint is not None and any(self.checkpoint.glob("*.gramian")):
            note(f"continuing from the checkpoints in {self.checkpoint}")
        keeping = nullcontext() if self.checkpoint is None else gm.checkpoints(self.checkpoint)
        self.began = clock.now()
        with keeping:
            fitted = estimator.fit(*data, **more)
        self.seconds = clock.elapsed(self.began)
        return fitted

    @contextmanager
    def after(self) -> Iterator[None]:
        """Run a block within the remaining time; the end of the time and Ctrl-C only end it."""
        try:
            with clock.budget(self._left()), suppress(clock.TimeUpError, TimeoutError):
                yield
        except KeyboardInterrupt:
            HEARD.set()

    def _left(self) -> float | None:
        """The remaining seconds; None without a limit."""
        if self.time_limit is None:
            return None
        return max(self.time_limit - clock.elapsed(self.began), 1e-3)

    def judged(self, status: gm.Status, judge: Callable[[], Verdict]) -> Verdict:
        """The verdict, computed within the remaining time; there is none after Ctrl-C."""
        left = self._left()
        if self.verdict is False:
            return untested("--no-verdict")
        if status is gm.Status.INTERRUPTED or HEARD.is_set():
            return untested(STOPPED)
        if status is gm.Status.TIME_LIMIT or (left is not None and left < PART * self.seconds):
            return untested(TIME_UP)
        if self.verdict is None and self.seconds > SLOW:
            return untested(f"the fit took {self.seconds:.0f} s; --verdict takes as long again")
        with self.after(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about fits to parts of the data
            verdict = judge()
            if not HEARD.is_set():  # an interrupted fit to a part does not test the model
                return verdict
        return untested(STOPPED if HEARD.is_set() else TIME_UP)

    def keep(
        self,
        model: Any,
        X: Any = None,
        y: Any = None,
        verdict: Verdict | None = None,
        *,
        source: object = None,
    ) -> dict[str, Path | None]:
        """Save the model and write its report where requested; returns the paths."""
        if self.model is not None:
            clock.phase(f"saving {self.model}")
            gm.save(model, self.model)
        if self.report is not None:
            clock.phase(f"writing {self.report}")
            name = None if source is None else as_called(str(source))
            write_report(model, self.report, X, y, verdict=verdict, source=name)
        return {"model": self.model, "report": self.report}

    def finish(
        self,
        command: str,
        fitted: Any,
        verdict: Verdict | None,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        """Print the verdict, the facts and the outcome of the solve, and exit with its status."""
        facts = {} if verdict is None else judgement(verdict)
        facts |= {**before, **outcome(fitted.result_, fitted.certificate_, self.seconds), **after}
        show(command, facts, as_json=self.as_json)
        leave(fitted.result_.status)


def write_report(model: Any, path: Path | None, X: Any = None, y: Any = None, **more: Any) -> None:
    """Write the page of the estimator in a pipeline with `report_estimator`, if a path is given."""
    if path is not None:
        estimator, X = learned(model, X)
        report_estimator(estimator, path, X, y, **more)


def learned(model: Any, X: Any = None) -> tuple[Any, Any]:
    """The estimator of gramian in a pipeline, and the samples transformed by the steps before."""
    if not isinstance(model, Pipeline):
        return model, X
    place = next(k for k, (_, step) in enumerate(model.steps) if isinstance(step, Kept))
    as_given = X is None or place == 0 or are_images(X)
    return model[place], X if as_given else model[:place].transform(X)


def draw(figure: Any, path: Path) -> None:
    """Write a figure to a file."""
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)


# --- declarations ----------------------------------------------------------------------


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
    option("--time-limit", float, "Stop after this time.", metavar="SECONDS"),
    option("--seed", int, "Random seed.", default=0),
    option("--device", "NAME", "cpu, cuda or cuda:1 (needs gramian[gpu])."),
    option("--progress/--no-progress", bool, "Show progress; default: on a terminal only."),
)

run_options = group(
    Run,
    "run",
    option("--solver", str, "Solver; see gramian.solvers.available().", default="auto"),
    option("--rank", int, "The largest rank of the matrix."),
    option("--tol", Tolerance(), "Certified relative gap to stop at."),
    limit_options,
    option("--checkpoint", Folder(), "Keep the best point there, and continue from it."),
    option("--model", MODEL, "Save the model to this .gramian file."),
    report_option,
    option(
        "--verdict/--no-verdict",
        bool,
        f"Measure the held-out error by more fits; default: if a fit takes < {SLOW:.0f} s.",
    ),
    json_option,
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
