"""`gramian metric`: learn a metric from labelled samples."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from gramian.app.cli.names import by_name, counted, listed
from gramian.app.cli.options import FILE, Source, option, out_option, source_options
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import keep_page, open_option, prepared_samples, serve
from gramian.app.cli.run import Run, run_options
from gramian.app.cli.samples import Samples, last, refuse_more_components, samples
from gramian.app.cli.tables import deliver, left_out, refuse_one_array
from gramian.app.explorer import MetricSession
from gramian.app.explorer.serve import known_classes
from gramian.app.explorer.tables import START
from gramian.app.files import ReadOptions, read_header
from gramian.app.verdict import (
    keeps_euclid,
    of_errors,
    shuffled,
    verdict_of_metric,
    voted,
    with_choice,
    with_selection,
    wrong_rows,
)
from gramian.common import clock
from gramian.estimators.path import NEIGHBOURS
from gramian.metric import KTA, LMNN, AutoMetric, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from gramian.metric._evidence import PLAIN
from gramian.metric._input import UNKNOWN, labelled_rows

MAX_COPIES = 0.2
"""Fraction of rows equal to another one above which a note says so; that of iris is 0.007."""

METHODS: dict[str, Any] = {
    "auto": AutoMetric,
    "kta": KTA,
    "lmnn": LMNN,
    "dml-eig": DMLEig,
    "lmnn-eig": LMNNEig,
    "linear-separation": LinearSeparation,
    "triplets": TripletMetric,
}


@click.command(cls=Writing)
@source_options("The column of classes.", standardize=True)
@option("--method", list(METHODS), "Learner; auto chooses one by held-out rows.")
@option("--unknown", ["-1", "none"], "Label of unknown classes, if there are two others.")
@option("--components", click.IntRange(min=1), "Directions to keep; default: all.")
@option("--neighbors", int, "Number of neighbours of k-NN.  [default: 3]")
@option("--test", FILE, "A file of labelled samples to test on.")
@open_option
@out_option
@run_options
def metric(
    run: Run,
    source: Source,
    method: str,
    unknown: str,
    components: int | None,
    neighbors: int | None,
    test: Path | None,
    opened: bool,
    out: Path | None,
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
    file, k = source.file, neighbors or NEIGHBOURS
    if test is not None and test.exists() and file.exists() and test.samefile(file):
        raise click.UsageError(
            f"--test {test} is the file that the metric is learned from: name other samples, or "
            "leave it out for a test by cross-validation"
        )
    given = samples(source, unknown=opened)
    given.refuse_quantity()
    if opened:
        with bad_input():
            learner = KTA if method == "auto" else METHODS[method]  # a page refits at every click
            estimator = learner(n_components=components, **run.parameters())
            _work_on(estimator, given, run, k, out)
        return
    X, y = given.X, classes_of(given, unknown)
    known = labelled_rows(y)
    if not known.all():
        note(
            f"{counted(int((~known).sum()), 'row')} with {given.label!r} -1 left out, as rows of "
            "unknown class: --unknown none makes -1 a class"
        )
    rows, classes = (X, y) if known.all() else (X[known], y[known])
    keys = _row_keys(rows)
    copies = keys.size - np.unique(keys).size
    if copies > MAX_COPIES * len(classes):
        note(
            f"{counted(copies, 'row')} equal to another row: errors on held-out rows are too small "
            "if these are copies of one sample, and the nearest of equal rows depend on their order"
        )
    _refuse_names(given, classes)
    if neighbors is not None and not 1 <= neighbors < len(classes):
        raise click.UsageError(f"--neighbors must be from 1 to {len(classes) - 1}, got {neighbors}")
    if len(classes) <= k:
        raise click.ClickException(
            f"{file} has {counted(len(classes), 'row')} of known class, too few to classify one by "
            f"the {k} nearest others: add rows"
        )
    refuse_one_array(out, [*given.ids, given.label])
    with bad_input():
        model = given.prepared(METHODS[method](n_components=components, **run.parameters()))
        refuse_more_components(model, X, components)
        run.fit(model, X, y)
        fitted, kept, errors, tested = last(model), keeps_euclid(model), {}, {}
        whole = _with_classifier(model, rows, classes, k)
        if test is None:
            verdict = run.judged(
                fitted.result_.status,
                lambda: verdict_of_metric(model, rows, classes, k=k),
            )
        else:
            other = samples(_test_source(test, given))
            asked, others = classes_of(other, unknown), other.X
            others = others if sp.issparse(others) or sp.issparse(X) else others[list(X.columns)]
            if not known.all():
                others, asked = others[asked != UNKNOWN], asked[asked != UNKNOWN]
            _note_new_classes(test, asked, classes)
            asked_keys = _row_keys(others)
            known_rows = int(np.isin(asked_keys, keys).sum())
            if known_rows:
                note(
                    f"{counted(known_rows, 'row')} of {test} also in {file}: the error is too small"
                )
            wrong = wrong_rows(model, rows, classes, others, asked, k)
            verdict = of_errors(wrong, f"{k}-NN", f"of {test}", kept)
            names = ("test_error_before", "test_error_after")
            tested = dict(zip(names, wrong.mean(axis=0).tolist(), strict=True))
        with run.after():
            clock.phase("the errors of k-NN")
            before = model[:-1].transform(rows) if isinstance(model, Pipeline) else rows
            after = model.transform(rows)
            errors = {
                "leave_one_out_error_before": leave_one_out(before, classes, k),
                "leave_one_out_error_after": leave_one_out(after, classes, k),
            }
    path = None if kept else getattr(fitted, "path_", None)
    verdict = with_choice(with_selection(verdict, path), kept)
    if out is not None:
        columns = list(fitted.get_feature_names_out())
        deliver(out, model.transform(X), columns, first=given.ids, extra={given.label: y})
    common = 1.0 - np.unique(classes, return_counts=True)[1].max() / len(classes)
    called = method if method != "auto" else f"auto ({_chosen(fitted, kept)})"
    files = {**run.keep(whole, rows, classes, verdict, source=file), "out": out}
    run.finish(
        "metric",
        fitted,
        verdict,
        {**given.facts, "samples": len(classes), "classes": len(fitted.classes_), "method": called},
        {"neighbors": k, **errors, "error_of_the_commonest_class": common, **tested, **files},
    )


def _chosen(fitted: Any, kept: bool) -> str:
    """The name of the selected learner, or of the Euclidean metric if that was kept."""
    path = getattr(fitted, "path_", None)
    return PLAIN if kept else type(fitted.learner_).__name__ if path is None else str(path.name)


def _work_on(estimator: Any, given: Samples, run: Run, neighbors: int, out: Path | None) -> None:
    """Serve a page until Ctrl-C, then write the results."""
    steps, X = prepared_samples(given.prepared(estimator), given.X)
    names = given.texts
    session = MetricSession(X, estimator, names, neighbors, frame=given.X)
    session.mark_all(known_classes(given.y, session.size), run.time_limit or START)
    serve(session, str(given.source.file), steps)
    answers, facts = {"class": session.said().astype(str)}, {"named": len(session.named)}
    keep_page("metric", session, steps, run, out, names, answers, facts)


def classes_of(given: Samples, unknown: str) -> NDArray[Any]:
    """The labels, as text if all are classes; without them a message that asks for their column."""
    if given.y is None:
        columns = [str(c) for c in getattr(given.X, "columns", ())]
        first, last = columns[:10], columns[10:][-1:]
        known = ", ".join(first + ["…"] * (len(columns) > 11) + last)
        raise click.UsageError(
            f"name the column of labels with --label; {given.source.file} has {known}"
        )
    return given.y.astype(str) if unknown == "none" else given.y


def _refuse_names(given: Samples, y: NDArray[Any]) -> None:
    """Raise an error if each class has one row; report such classes and names equal up to case."""
    names, sizes = np.unique(y, return_counts=True)
    classes = len(names)
    if len({str(name).casefold() for name in names}) < classes:
        note(f"some classes of {given.label!r} differ by upper and lower case only: "
             f"{listed(names.tolist())}")  # fmt: skip
    if 1 in sizes and classes < len(y):
        note(
            f"nothing can be learned from classes of one row ({listed(names[sizes == 1].tolist())}"
            f"): leave their cells of {given.label!r} empty to leave these rows out"
        )
    if len(y) > 1 and classes == len(y):
        raise click.ClickException(
            f"{given.source.file}: every row has a class of its own in {given.label!r}, so there "
            "is nothing to learn from it: name a column of classes with --label"
        )


def _note_new_classes(test: Path, known: NDArray[Any], y: NDArray[Any]) -> None:
    """Note the classes of a test file that cannot be predicted."""
    new = sorted(set(known.astype(str).tolist()) - set(y.astype(str).tolist()))
    if new:
        rows = int(np.isin(known.astype(str), new).sum())
        note(
            f"{test}: {counted(rows, 'row')} of classes that are not in the fit count as errors: "
            f"{listed(new)}"
        )


def _test_source(test: Path, given: Samples) -> Source:
    """How to read a file of the same columns, which may have others."""
    source, names = given.source, list(map(str, getattr(given.X, "columns", ())))
    header = read_header(test, expected=names)
    drop: list[str] = []
    if header is not None and names:
        own = by_name(test, header, [one for one in (source.label, source.ids) if one is not None])
        others = left_out(test, header.names, names, headed=header.named, used=own)
        drop = [name for name in others if name not in own]
    return replace(
        source, file=test, format=ReadOptions(), drop=drop, keep=names, encode=list(given.encoded)
    )


def _with_classifier(model: Any, X: Any, y: NDArray[Any], k: int) -> Pipeline:
    """The model followed by k-NN."""
    steps = model.steps if isinstance(model, Pipeline) else [("metric", model)]
    order = shuffled(len(y))
    classifier = KNeighborsClassifier(k).fit(model.transform(X)[order], y[order])
    return Pipeline([*steps, ("neighbours", classifier)])


def _row_keys(X: Any) -> NDArray[Any]:
    """A number per row, the same for equal rows; none for sparse data."""
    if sp.issparse(X):
        return np.zeros(0, dtype=np.uint64)
    pandas = import_module("pandas")
    frame = pandas.DataFrame(X)
    numbers = dict.fromkeys(frame.select_dtypes("number").columns, float)
    keys: NDArray[Any] = pandas.util.hash_pandas_object(frame.astype(numbers), index=False)
    return np.asarray(keys)


def leave_one_out(X: Any, y: NDArray[Any], k: int) -> float:
    """The share of samples that their k nearest neighbours assign to another class."""
    asked, called = voted(X, y, k)
    return float(np.mean(called != y[asked]))
