"""Options that commands share, and what they ask for."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from sklearn.pipeline import Pipeline

import gramian as gm
from gramian.app.cli.exits import HEARD, as_called, call
from gramian.app.cli.output import note
from gramian.app.cli.outputs import MODEL, PAGE, PICTURE, TABLE, Folder
from gramian.app.files import ReadOptions
from gramian.app.files._source import FORMATS
from gramian.app.report import report_estimator
from gramian.app.report.thumbnails import are_images
from gramian.app.verdict import Verdict, untested
from gramian.common import clock
from gramian.common.storage import replacing
from gramian.estimators.persistence import Kept


class Input(click.Path):
    """A file to read; - is standard input, kept in a file of its own for as long as it takes."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        if str(value) != "-":
            named: Path = Path(os.fsdecode(super().convert(value, param, ctx)))
            return named
        folder = tempfile.TemporaryDirectory()
        if ctx is not None:
            ctx.call_on_close(folder.cleanup)
        path = Path(folder.name) / "stdin"
        call(path, "standard input")
        with open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return path


FILE = Input(path_type=Path)


SLOW = 30.0
"""Seconds of a fit beyond which no second one is made unasked."""

STOPPED = "it was interrupted from the keyboard"
PART = 0.25
"""The part of a fit's seconds that has to be left for another to begin."""


class Tolerance(click.ParamType):
    """A number, or "auto" for models that know an end of their own."""

    name = "float"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        return "auto" if value == "auto" else float(click.FLOAT.convert(value, param, ctx))


@dataclass
class Run:
    """How to solve, and what to write."""

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
    """What the fit took, all its solves together."""
    began: float = 0.0
    """When it began, by `clock.now`."""

    def parameters(self) -> dict[str, Any]:
        """The parameters of an estimator."""
        given: dict[str, Any] = {
            "solver": self.solver,
            "rank": self.rank,
            "time_limit": self.time_limit,
            "random_state": self.seed,
        }
        if self.device is not None:
            given["device"] = self.device
        return given if self.tol is None else {**given, "tol": self.tol}

    def fit(self, estimator: Any, *data: Any, **more: Any) -> Any:
        """Fit with the checkpoints asked for; warnings become notes."""
        if self.checkpoint is not None and any(self.checkpoint.glob("*.gramian")):
            note(f"continuing from the checkpoints in {self.checkpoint}")
        keeping = nullcontext() if self.checkpoint is None else gm.checkpoints(self.checkpoint)
        self.began = clock.now()
        with keeping, warnings_as_notes():
            fitted = estimator.fit(*data, **more)
        self.seconds = clock.elapsed(self.began)
        return fitted

    @contextmanager
    def after(self) -> Iterator[None]:
        """Run what is reported of a fit and not needed to save it, in what is left of the time.

        The end of the time and Ctrl-C end the block, and the command continues with saving.
        """
        try:
            with clock.budget(self._left()), suppress(clock.TimeUpError, TimeoutError):
                yield
        except KeyboardInterrupt:
            HEARD.set()

    def _left(self) -> float | None:
        """The seconds that are left of the limit; None without one."""
        if self.time_limit is None:
            return None
        return max(self.time_limit - clock.elapsed(self.began), 1e-3)

    def judged(self, status: gm.Status, judge: Callable[[], Verdict]) -> Verdict:
        """The verdict, in what is left of the time; there is none after Ctrl-C."""
        if self.verdict is False:
            return untested("--no-verdict")
        if status is gm.Status.INTERRUPTED or HEARD.is_set():
            return untested(STOPPED)
        if status is gm.Status.TIME_LIMIT:
            return untested("the time was up")
        left = self._left()
        if left is not None and left < PART * self.seconds:
            return untested("the time was up")
        if self.verdict is None and self.seconds > SLOW:
            return untested(f"the fit took {self.seconds:.0f} s; --verdict takes as long again")
        with self.after(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are of fits to parts
            verdict = judge()
            if not HEARD.is_set():  # a fit to a part that was interrupted is no test of the model
                return verdict
        return untested(STOPPED if HEARD.is_set() else "the time was up")

    def keep(
        self,
        model: Any,
        X: Any = None,
        y: Any = None,
        verdict: Verdict | None = None,
        *,
        source: object = None,
    ) -> dict[str, Path | None]:
        """Save the model and write the report that are asked for; says where."""
        if self.model is not None:
            clock.phase(f"saving {self.model}")
            gm.save(model, self.model)
        if self.report is not None:
            clock.phase(f"writing {self.report}")
            name = None if source is None else as_called(str(source))
            write_report(model, self.report, X, y, verdict=verdict, source=name)
        return {"model": self.model, "report": self.report}


def write_report(
    model: Any,
    path: Path,
    X: Any = None,
    y: Any = None,
    more: Sequence[Any] = (),
    verdict: Verdict | None = None,
    source: str | None = None,
) -> None:
    """The page of the estimator in a pipeline, of samples as they reach it."""
    estimator, X = learned(model, X)
    report_estimator(estimator, path, X, y, more, verdict=verdict, source=source)


def learned(model: Any, X: Any = None) -> tuple[Any, Any]:
    """The estimator of gramian in a pipeline, and samples as they reach it."""
    if not isinstance(model, Pipeline):
        return model, X
    place = next(k for k, (_, step) in enumerate(model.steps) if isinstance(step, Kept))
    as_given = X is None or place == 0 or are_images(X)
    return model[place], X if as_given else model[:place].transform(X)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as notes; the command itself reports how a solve ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    sentences = {str(one.message) for one in caught if issubclass(one.category, UserWarning)}
    for sentence in sorted(sentences):
        if not any(words in sentence for words in ("did not converge", "distinct clusters")):
            note(sentence)


progress_option = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show progress; default: on a terminal only.",
)
report_option = click.option(
    "--report", type=PAGE, help="Write a page about it to this .html file."
)


device_option = click.option(
    "--device", metavar="NAME", help="Where to compute: cpu, cuda, cuda:1 (needs gramian[gpu])."
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `Run`, gathered into one argument `run`."""
    options = [
        click.option("--solver", default="auto", help="Solver; see gramian.solvers.available()."),
        click.option("--rank", type=int, help="The largest rank of the matrix."),
        click.option("--tol", type=Tolerance(), help="Certified relative gap to stop at."),
        click.option("--time-limit", type=float, metavar="SECONDS", help="Stop after this."),
        click.option("--seed", type=int, default=0, show_default=True, help="Random seed."),
        device_option,
        progress_option,
        click.option(
            "--checkpoint", type=Folder(), metavar="FOLDER",
            help="Keep the best point so far there; the same command continues from it.",
        ),
        click.option("--model", type=MODEL, help="Save the model to this .gramian file."),
        report_option,
        click.option(
            "--verdict/--no-verdict", default=None,
            help="Measure the error on held-out data, which takes more fits; default: where a fit "
            f"takes less than {SLOW:.0f} s.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ]  # fmt: skip

    @wraps(command)
    def gathered(**given: Any) -> Any:
        names = [name for name in Run.__dataclass_fields__ if name in given]
        run = Run(**{name: given.pop(name) for name in names})
        return command(run=run, **given)

    for option in reversed(options):
        gathered = option(gathered)
    return gathered


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How to read the input file, gathered into one argument `format`."""
    options = [
        click.option(
            "--format", type=click.Choice(FORMATS), help="Of the input file; default: detected."
        ),
        click.option(
            "--header/--no-header", default=None,
            help="Whether the first row has the names of the columns; default: detected.",
        ),
        click.option("--sheet", metavar="NAME", help="Sheet of an Excel file; default: largest."),
    ]  # fmt: skip

    @wraps(command)
    def gathered(**given: Any) -> Any:
        chosen = ReadOptions(*(given.pop(name) for name in ("format", "header", "sheet")))
        return command(format=chosen, **given)

    for option in reversed(options):
        gathered = option(gathered)
    return gathered


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The file of the samples and how to read it."""
    options: list[Callable[..., Any]] = [
        click.argument("file", type=FILE),
        format_options,
        click.option(
            "--drop", multiple=True, metavar="COLUMN,…", help="Columns to leave out; repeatable."
        ),
        click.option(
            "--encode", multiple=True, metavar="COLUMN,…",
            help="Columns of categories or dates to encode as numbers; all: every column of text.",
        ),
        click.option(
            "--id", "ids", metavar="COLUMN", help="A column with names of the rows, kept in --out."
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


out_option = click.option(
    "--out", type=TABLE, help="Write to this file: .csv, .tsv, .npy, .npz or .parquet."
)
plot_option = click.option("--plot", type=PICTURE, help="Draw to this file: .png, .pdf or .svg.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "drop", "mean", "median"]),
    default="error",
    show_default=True,
    help="How to handle missing cells: refuse the file, leave out their rows, or fill them in.",
)
standardize_option = click.option(
    "--standardize/--as-is",
    default=False,
    show_default=True,
    help="Bring every column to mean 0 and variance 1 first.",
)


def draw(figure: Any, path: Path) -> None:
    """Write a figure to a file."""
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
