"""`gramian demo`: an example."""

from __future__ import annotations

from pathlib import Path

import click
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.app.cli.options import json_option, report_option
from gramian.app.cli.output import outcome, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.run import write_report
from gramian.metric import KTA

FEW = 5
"""Directions that the demonstration keeps."""

NCA_ITERATIONS = 60
"""Limit for NCA in the demonstration, which is by far the slowest method there."""


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
