"""`gramian demo`: an example."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click
from sklearn.datasets import load_wine

from gramian.app.cli.exits import call
from gramian.app.cli.metric import metric
from gramian.app.cli.options import json_option, report_option
from gramian.app.cli.outputs import Writing


@click.command(cls=Writing)
@report_option
@json_option
def demo(report: Path | None, as_json: bool) -> None:
    """Learn a metric for the wines that come with scikit-learn: `gramian metric` on their table.

    \b
    Example:
      gramian demo
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "wines.csv"
        load_wine(as_frame=True).frame.rename(columns={"target": "wine"}).to_csv(file, index=False)
        call(file, file.name)
        line = [str(file), "--label", "wine", *(["--json"] if as_json else [])]
        line += [] if report is None else ["--report", str(report), "--force"]
        metric.main(line, "gramian demo", standalone_mode=False)
