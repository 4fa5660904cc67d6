"""`gramian metric`: a metric learned from labelled samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from gramian.app.cli.options import (
    FILE,
    Run,
    input_options,
    missing_option,
    out_option,
    run_options,
)
from gramian.app.cli.output import bad_input, judgement, leave, note, outcome, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import open_option, prepared_samples, serve
from gramian.app.cli.samples import (
    Samples,
    deliver,
    last,
    left_out,
    prepared,
    refuse_more_components,
    refuse_one_array,
    samples,
)
from gramian.app.explorer import MetricSession
from gramian.app.explorer.serve import known_classes
from gramian.app.explorer.tables import START
from gramian.app.files import ReadOptions
from gramian.app.verdict import (
    keeps_euclid,
    of_errors,
    shuffled,
    verdict_of_metric,
    voted,
    with_choice,
    wrong_rows,
)
from gramian.common import clock
from gramian.metric import (
    KTA,
    LMNN,
    AutoMetric,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    TripletMetric,
)
from gramian.metric._evidence import PLAIN

METHODS: dict[str, Any] = {
    "auto": AutoMetric,
    "kta": KTA,
    "lmnn": LMNN,
    "dml-eig": DMLEig,
    "lmnn-eig": LMNNEig,
    "linear-separation": LinearSeparation,
    "triplets": TripletMetric,
}
DEFAULT_METHOD = "auto"
"""The method of `gramian metric` without --method, by its name in `METHODS`."""

FEW_CLASSES, MANY_ROWS = 20, 5
"""Labels look like a quantity where there are more different numbers than this, with fewer rows
each on average than that."""


@click.command(cls=Writing)
@input_options
@click.option("--label", metavar="COLUMN", help="The column of classes.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, show_default=True,
    help="Learner; auto chooses one by held-out rows.",
)  # fmt: skip
@click.option("--components", type=click.IntRange(min=1), help="Directions to keep; default: all.")
@click.option(
    "--neighbors", type=int, default=3, show_default=True, help="Number of neighbours of k-NN."
)
@click.option("--test", type=FILE, help="A file of labelled samples to test on.")
@click.option(
    "--standardize/--as-is", default=True, show_default=True,
    help="Bring every column to mean 0 and variance 1 first.",
)  # fmt: skip
@missing_option
@open_option
@out_option
@run_options
def metric(
    run: Run,
    file: Path,
    label: str | None,
    method: str,
    components: int | None,
    neighbors: int,
    test: Path | None,
    standardize: bool,
    missing: str,
    opened: bool,
    out: Path | None,
    drop: tuple[str, ...],
    encode: tuple[str, ...],
    ids: str | None,
    format: ReadOptions,
) -> None:
    """Learn a metric from the labelled samples of FILE.

    --out writes the samples mapped by the metric, and --model saves the metric with a k-NN
    classifier, for `gramian transform` and `gramian predict`. The first line of the answer is the
    error on held-out rows, by cross-validation or on the file of --test; the leave-one-out error
    after learning is that of the training samples. With --open you name the classes of a few
    samples on a page; --label may then be empty in most rows, or left out.

    \b
    Example:
      gramian metric flowers.csv --label species --model flowers.gramian
    """
    if test is not None and test.exists() and file.exists() and test.samefile(file):
        raise click.UsageError(
            f"--test {test} is the file that the metric is learned from: name other samples, or "
            "leave it out for a test by cross-validation"
        )
    given = samples(file, label, drop, ids, format, missing=missing, encode=encode, unknown=opened)
    if opened:
        with bad_input():
            learner = KTA if method == "auto" else METHODS[method]  # a page refits at every click
            estimator = learner(n_components=components, **run.parameters())
            _work_on(estimator, given, run, out, (str(file), neighbors, standardize, missing))
        return
    X, y = given.X, classes_of(given, file)
    _refuse_names(file, given.label, y)
    if not 1 <= neighbors < len(y):
        raise click.UsageError(f"--neighbors {neighbors}, but there are {len(y)} samples")
    refuse_one_array(out, [*given.ids, given.label])
    with bad_input():
        estimator = METHODS[method](n_components=components, **run.parameters())
        model = prepared(
            X, estimator, standardize=standardize, missing=missing, encoded=given.encoded
        )
        refuse_more_components(model, X, components)
        run.fit(model, X, y)
        whole = _with_classifier(model, X, y, neighbors)
        fitted, errors, tested = last(model), {}, {}
        if test is None:
            verdict = run.judged(
                fitted.result_.status,
                lambda: verdict_of_metric(model, X, y, k=neighbors, seconds=run.seconds),
            )
        else:
            there = samples(
                test, label, drop, ids, ReadOptions(), missing=missing, encode=list(given.encoded)
            )
            given_classes = classes_of(there, test)
            wrong = wrong_rows(model, X, y, _alike(there.X, X, test), given_classes, neighbors)
            verdict = of_errors(wrong, f"{neighbors}-NN", f"of {test}", keeps_euclid(model))
            tested = {
                "test_error_before": float(np.mean(wrong[:, 0])),
                "test_error_after": float(np.mean(wrong[:, 1])),
            }
        with run.after():
            clock.phase("the errors of k-NN")
            errors = {
                "leave_one_out_error_before": leave_one_out(_before(model, X), y, neighbors),
                "leave_one_out_error_after": leave_one_out(model.transform(X), y, neighbors),
            }
    verdict = with_choice(verdict, keeps_euclid(model))
    if out is not None:
        mapped = model.transform(X)
        names = list(fitted.get_feature_names_out())
        deliver(out, mapped, names, first=given.ids, extra={given.label: y})
    show(
        "metric",
        {
            **judgement(verdict),
            "file": str(file),
            "samples": len(y),
            "features": X.shape[1],
            "classes": len(fitted.classes_),
            "method": _told(method, fitted, keeps_euclid(model)),
            **outcome(fitted.result_, fitted.certificate_, run.seconds),
            "neighbors": neighbors,
            **errors,
            **tested,
            **run.keep(whole, X, y, verdict, source=file),
            "out": out,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)


def _told(method: str, fitted: Any, kept: bool) -> str:
    """The method, and the learner that an automatic choice took, or Euclid's metric if `kept`."""
    if method != "auto":
        return method
    if kept:
        return f"auto ({PLAIN})"
    path = getattr(fitted, "path_", None)
    return f"auto ({type(fitted.learner_).__name__ if path is None else path.name})"


def _work_on(
    estimator: Any,
    given: Samples,
    run: Run,
    out: Path | None,
    given_options: tuple[str, int, bool, str],
) -> None:
    """Serve a page until Ctrl-C, then write what was made there."""
    title, neighbors, standardize, missing = given_options
    model = prepared(
        given.X, estimator, standardize=standardize, missing=missing, encoded=given.encoded
    )
    steps, X = prepared_samples(model, given.X)
    names = None if given.names is None else [str(name) for name in given.names]
    session = MetricSession(X, estimator, names, neighbors, frame=given.X)
    session.mark_all(known_classes(given.y, session.size), run.time_limit or START)
    serve(session, title, steps)
    if out is not None:
        called = np.array(names or [str(k) for k in range(session.size)])
        first = {"sample": called, "class": session.said().astype(str)}
        deliver(out, np.empty((session.size, 0)), [], first=first)
    if run.model is not None and session.fitted is not None:
        session.save(run.model, steps)
    show(
        "metric",
        {
            "verdict": session.verdict(),
            "named": len(session.named),
            "certificate": session.state()["certificate"],
            "model": run.model if session.fitted is not None else None,
            "out": out,
        },
        as_json=run.as_json,
    )


def classes_of(given: Samples, file: Path) -> NDArray[Any]:
    """The labels, or a sentence that says how to name them."""
    if given.y is None:
        columns = [] if not hasattr(given.X, "columns") else [str(c) for c in given.X.columns]
        known = ", ".join(columns[:10]) + (", …" if len(columns) > 10 else "")
        raise click.UsageError(f"name the column of labels with --label; {file} has {known}")
    return given.y


def _refuse_names(file: Path, label: str, y: NDArray[Any]) -> None:
    """Refuse classes of one row each, and name a label that looks like a quantity."""
    classes = len(np.unique(y))
    if y.dtype.kind in "iuf" and FEW_CLASSES < classes < len(y) < MANY_ROWS * classes:
        note(f"{label!r} has {classes} different numbers in {len(y)} rows, each taken for a class: "
             "it looks like a quantity, from which no metric is learned here")  # fmt: skip
    if len(y) > 1 and classes == len(y):
        raise click.ClickException(
            f"{file}: every row has a class of its own in {label!r}, so there is nothing to learn "
            "from it: name a column of classes with --label"
        )


def _alike(other: Any, X: Any, file: Path) -> Any:
    """Other samples with the columns of X, by their names."""
    if sp.issparse(other) or sp.issparse(X):
        return other
    left_out(file, list(other.columns), list(X.columns))
    return other[list(X.columns)]


def _with_classifier(model: Any, X: Any, y: NDArray[Any], k: int) -> Pipeline:
    """The model with k-NN behind it."""
    steps = model.steps if isinstance(model, Pipeline) else [("metric", model)]
    order = shuffled(len(y))
    classifier = KNeighborsClassifier(k).fit(model.transform(X)[order], y[order])
    return Pipeline([*steps, ("neighbours", classifier)])


def _before(model: Any, X: Any) -> Any:
    """The samples as they reach the metric."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) else X


def leave_one_out(X: Any, y: NDArray[Any], k: int) -> float:
    """The share of samples that the k nearest others put into another class."""
    asked, called = voted(X, y, k)
    return float(np.mean(called != y[asked]))
