"""`gramian metric`: a metric learned from labelled samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from gramian.cli.options import Run, input_options, out_option, run_options
from gramian.cli.output import bad_input, leave, outcome, show
from gramian.cli.samples import deliver, labelled, last, named, scaled
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric

METHODS: dict[str, Any] = {
    "kta": KTA,
    "lmnn": LMNN,
    "dml-eig": DMLEig,
    "lmnn-eig": LMNNEig,
    "linear-separation": LinearSeparation,
    "triplets": TripletMetric,
}


@click.command()
@input_options
@click.option("--label", metavar="COLUMN", help="The column of classes.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="kta", show_default=True, help="Model."
)
@click.option("--components", type=int, help="Directions to keep; all unless told.")
@click.option("--neighbors", type=int, default=3, show_default=True, help="k of k-NN.")
@click.option("--test", type=click.Path(path_type=Path), help="Labelled samples to test on.")
@click.option(
    "--standardize/--as-is", default=True, show_default=True,
    help="Bring every column to mean 0 and variance 1 first.",
)  # fmt: skip
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
    out: Path | None,
    drop: tuple[str, ...],
    format: str | None,
) -> None:
    """Learn a metric from the labelled samples of FILE.

    Writes the samples as the metric sees them (--out) and saves the model with a k-NN classifier
    behind it (--model), for `gramian transform` and `gramian predict`.

    \b
    Example:
      gramian metric flowers.csv --label species --model flowers.gramian
    """
    table, y = labelled(file, label, drop, format)
    X = named(table)
    with bad_input():
        estimator = METHODS[method](n_components=components, **run.parameters())
        model = run.fit(scaled(X, estimator, standardize), X, y)
        if neighbors >= len(y):
            raise ValueError(f"--neighbors {neighbors}, but there are {len(y)} samples")
        errors = _errors(model, X, y, neighbors)
        classifier = KNeighborsClassifier(neighbors)
        whole = Pipeline([*_steps(model), ("neighbours", classifier)])
        classifier.fit(model.transform(X), y)
        if test is not None:
            there, classes = labelled(test, label, drop, None)
            wrong = np.mean(whole.predict(named(there)) != classes)
            errors[f"{neighbors}-NN error on {test.name}"] = float(wrong)
    fitted = last(model)
    if out is not None:
        mapped = model.transform(X)
        deliver(out, mapped, _names(mapped), {table.label or "label": y})
    show(
        "metric",
        {
            "file": str(file),
            "samples": len(y),
            "features": X.shape[1],
            "classes": len(fitted.classes_),
            "method": method,
            **outcome(fitted.result_, fitted.certificate_),
            **errors,
            **run.keep(whole, X, y),
            "out": out,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)


def _errors(model: Any, X: Any, y: NDArray[Any], k: int) -> dict[str, Any]:
    """Leave-one-out errors of k-NN, before and after."""
    before = X if not isinstance(model, Pipeline) else model[:-1].transform(X)
    return {
        f"{k}-NN error before": leave_one_out(before, y, k),
        f"{k}-NN error after": leave_one_out(model.transform(X), y, k),
    }


def leave_one_out(X: Any, y: NDArray[Any], k: int) -> float:
    """The share of samples that the k nearest others put into another class."""
    classes, codes = np.unique(y, return_inverse=True)
    near = KNeighborsClassifier(k).fit(X, codes).kneighbors(return_distance=False)
    votes = np.stack([(codes[near] == c).sum(axis=1) for c in range(classes.size)], axis=1)
    return float(np.mean(votes.argmax(axis=1) != codes))


def _steps(model: Any) -> list[tuple[str, Any]]:
    return model.steps if isinstance(model, Pipeline) else [("metric", model)]


def _names(mapped: NDArray[Any]) -> list[str]:
    return [f"direction{k}" for k in range(mapped.shape[1])]
