"""Reports: one HTML page that shows a result or a fitted estimator, and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gramian.metric._base import MetricLearner
from gramian.report.families import family_sections
from gramian.report.page import Section, write_page
from gramian.report.parts import (
    comparison,
    convergence,
    eigenpairs,
    judgement,
    opening,
    settings,
    spectrum,
)
from gramian.result import Result
from gramian.spectral import TopEigen
from gramian.verdict import Verdict, verdict_of_metric

__all__ = ["report_eigen", "report_estimator", "report_results"]


def report_results(results: Result | Sequence[Result], path: str | Path) -> Path:
    """Write the page of one result, or of several of the same problem, to compare solvers."""
    runs = [results] if isinstance(results, Result) else list(results)
    if not runs or not all(isinstance(run, Result) for run in runs):
        raise ValueError("a report needs one Result, or several of the same problem")
    if len({run.problem for run in runs}) > 1:
        raise ValueError("results of different problems have no axis in common: report them apart")
    first = opening(runs[0]) if len(runs) == 1 else comparison(runs)
    sections = [first, convergence(runs), spectrum(runs)]
    return write_page(Path(path), f"gramian: {runs[0].problem}", sections)


def report_estimator(
    estimator: Any,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    more: Sequence[Section] = (),
    *,
    verdict: Verdict | None = None,
) -> Path:
    """Write the page of a fitted estimator.

    Parameters
    ----------
    estimator : a fitted estimator of gramian
    path : str or Path
    X, y : samples and labels, optional
        A metric shows what it makes of them; an embedding is coloured by y.
    more : sections, optional
        What else there is to show.
    verdict : Verdict, optional
        Whether it helped on what was held out, which the page begins with; that of a metric is
        found from X and y where it is not given.
    """
    sections: list[Section] = []
    if verdict is None and isinstance(estimator, MetricLearner) and X is not None and y is not None:
        verdict = verdict_of_metric(estimator, X, y, seconds=estimator.result_.seconds)
    if verdict is not None:
        sections.append(judgement(verdict))
    if hasattr(estimator, "result_"):
        sections.append(opening(estimator.result_, estimator.certificate_))
    sections += [*more, *family_sections(estimator, X, y)]
    if hasattr(estimator, "result_"):
        sections += [convergence([estimator.result_]), spectrum([estimator.result_])]
    sections.append(settings(estimator))
    return write_page(Path(path), f"gramian: {type(estimator).__name__}", sections)


def report_eigen(found: TopEigen, path: str | Path, name: str = "a symmetric matrix") -> Path:
    """Write the page of the leading eigenvalues of a matrix."""
    return write_page(Path(path), f"gramian: eigenvalues of {name}", [eigenpairs(found, name)])
