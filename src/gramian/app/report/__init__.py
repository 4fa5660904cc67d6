"""Reports: one HTML page that shows a result or a fitted estimator, and needs no network.

The module is called by itself: ``gramian.report(thing, path)``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.utils.validation import check_is_fitted

from gramian.app.report.families import family_sections
from gramian.app.report.page import Section, page_path, write_page
from gramian.app.report.parts import (
    comparison,
    convergence,
    eigenpairs,
    judgement,
    opening,
    settings,
    spectrum,
)
from gramian.app.verdict import (
    QUICK,
    Verdict,
    verdict_of_completion,
    verdict_of_embedding,
    verdict_of_kernel,
    verdict_of_metric,
)
from gramian.arrays.errstate import under_own_errstate
from gramian.completion._base import Completion
from gramian.kernel._base import LinkedKernel
from gramian.manifold._base import Unfolding
from gramian.metric._base import MetricLearner
from gramian.result import Result
from gramian.spectral import TopEigen

__all__ = ["report", "report_eigen", "report_estimator", "report_results"]


@under_own_errstate
def report(thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
    """Write the page of whatever gramian found, which needs no network; returns where.

    Parameters
    ----------
    thing : Result, several Results of one problem, TopEigen, or a fitted estimator
        The methods `report` of results and estimators come here.
    path : str or Path
        The page, `.html`; one of gramian's pages is replaced, nothing else ever.
    X, y : samples and labels, optional
        A metric shows what it makes of them; an embedding is coloured by y, and shows X under the
        pointer where it holds images, of shape (n_samples, height, width).
    """
    if isinstance(thing, TopEigen):
        return report_eigen(thing, path)
    if isinstance(thing, (Result, list, tuple)):
        return report_results(thing, path)
    return report_estimator(thing, path, X, y)


class CalledModule(ModuleType):
    """A module with the name of its function does what the function does."""

    def __call__(self, thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
        return report(thing, path, X, y)


sys.modules[__name__].__class__ = CalledModule


def report_results(
    results: Result | Sequence[Result], path: str | Path, *, source: str | None = None
) -> Path:
    """Write the page of one result, or of several of the same problem, to compare solvers."""
    path = page_path(path)
    runs = [results] if isinstance(results, Result) else list(results)
    if not runs or not all(isinstance(run, Result) for run in runs):
        raise ValueError("a report needs one Result, or several of the same problem")
    if len({run.problem for run in runs}) > 1:
        raise ValueError("results of different problems have no axis in common: report them apart")
    first = opening(runs[0]) if len(runs) == 1 else comparison(runs)
    sections = [first, convergence(runs), spectrum(runs)]
    return write_page(path, f"gramian: {runs[0].problem}", sections, source=source)


def report_estimator(
    estimator: Any,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    more: Sequence[Section] = (),
    *,
    verdict: Verdict | None = None,
    source: str | None = None,
) -> Path:
    """Write the page of a fitted estimator.

    Parameters
    ----------
    estimator : a fitted estimator of gramian
    path : str or Path
    X, y : samples and labels, optional
        A metric shows what it makes of them; an embedding is coloured by y, and shows X under the
        pointer where it holds images, of shape (n_samples, height, width).
    more : sections, optional
        What else there is to show.
    verdict : Verdict, optional
        Whether it helped on what was held out, which the page begins with; where it is not given
        it is found by other fits, of a metric from X and y, if they are quick.
    source : str, optional
        The file that it was learned from, for the head of the page.
    """
    check_is_fitted(estimator)
    path = page_path(path)
    sections: list[Section] = []
    verdict = verdict or _found(estimator, X, y)
    if verdict is not None:
        sections.append(judgement(verdict))
    if hasattr(estimator, "result_"):
        sections.append(opening(estimator.result_, estimator.certificate_))
    sections += [*more, *family_sections(estimator, X, y)]
    if hasattr(estimator, "result_"):
        sections += [convergence([estimator.result_]), spectrum([estimator.result_])]
    sections.append(settings(estimator))
    title = f"gramian: {type(estimator).__name__}"
    return write_page(path, title, sections, source=source)


def _found(estimator: Any, X: Any, y: Any) -> Verdict | None:
    """The verdict on an estimator, where it can be found without much work."""
    if isinstance(estimator, MetricLearner):
        if X is None or y is None:
            return None
        return verdict_of_metric(estimator, X, y, seconds=estimator.result_.seconds)
    if isinstance(estimator, Unfolding):
        return verdict_of_embedding(estimator, estimator.X_fit_)
    if not hasattr(estimator, "result_") or estimator.result_.seconds > QUICK:
        return None
    if isinstance(estimator, LinkedKernel) and hasattr(estimator, "labels_"):
        return verdict_of_kernel(estimator, estimator.X_fit_)
    if isinstance(estimator, Completion):
        known = estimator._known.tocoo()
        rows, cols = estimator.row_ids_[known.row], estimator.col_ids_[known.col]
        return verdict_of_completion(estimator, rows, cols, known.data)
    return None


def report_eigen(found: TopEigen, path: str | Path, name: str = "a symmetric matrix") -> Path:
    """Write the page of the leading eigenvalues of a matrix."""
    title = f"gramian: eigenvalues of {name}"
    return write_page(page_path(path), title, [eigenpairs(found, name)], source=name)
