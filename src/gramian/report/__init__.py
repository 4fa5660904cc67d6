"""Reports: one HTML page that shows a result or a fitted estimator, and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gramian.report.families import family_sections
from gramian.report.page import Section, write_page
from gramian.report.parts import comparison, convergence, eigenpairs, opening, settings, spectrum
from gramian.result import Result
from gramian.spectral import TopEigen

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
    """
    sections: list[Section] = []
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
