"""How a command solves: its options, the verdict within the time limit, and the files it keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from sklearn.pipeline import Pipeline

import gramian as gm
from gramian.app.cli.exits import HEARD, as_called
from gramian.app.cli.options import (
    group,
    json_option,
    limit_options,
    option,
    report_option,
)
from gramian.app.cli.output import judgement, leave, note, outcome, show
from gramian.app.cli.outputs import MODEL, Folder
from gramian.app.report import report_estimator
from gramian.app.report.thumbnails import are_images
from gramian.app.verdict import Verdict, untested
from gramian.common import clock
from gramian.common.storage import replacing
from gramian.estimators.persistence import Kept

SLOW = 30.0
"""CPU seconds of a fit beyond which the default is not to fit again for a verdict."""

PART = 0.25
"""The verdict is skipped if less than this share of the seconds of the fit is left."""

STOPPED, TIME_UP = "it was interrupted from the keyboard", "the time was up"


class Tolerance(click.ParamType):
    """A number, or "auto" for models with a stopping rule of their own."""

    name = "float"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        return "auto" if value == "auto" else float(click.FLOAT.convert(value, param, ctx))


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
    cpu: float = 0.0
    """CPU time of the fit."""
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
        self.began, cpu = clock.now(), clock.cpu()
        with keeping:
            fitted = estimator.fit(*data, **more)
        self.seconds, self.cpu = clock.elapsed(self.began), clock.cpu() - cpu
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
        if self.verdict is None and self.cpu > SLOW:
            return untested(f"the fit took {self.cpu:.0f} CPU s; --verdict takes as long again")
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
        f"Measure the held-out error by more fits; default: if a fit takes < {SLOW:.0f} CPU s.",
    ),
    json_option,
)
