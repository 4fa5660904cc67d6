"""Headlines that several papers share: tables of metrics and of unfoldings."""

from benchmarks._headlines.base import Headline, line

ERRORS = "LRO Tables 2 and 4, BILGO Table 2"
FIT_SECONDS = "LRO Table 4, BILGO Table 1"
UNFOLDINGS = ("Isomap", "LLE", "modified LLE", "UMAP")


def error(on: str, model: str, paper: str) -> Headline:
    """The error of a default on a set of metric_tables."""
    what = f"error of 3-NN on {on}, %: {model}"
    return line(what, ERRORS, {"set": on}, model, ("|Euclid",), paper=f"|{paper}")


def fit_seconds(on: str, model: str, paper: str, *rivals: str) -> Headline:
    """The seconds of a default on a set of metric_tables."""
    columns = tuple(f"|{rival}" for rival in rivals)
    what = f"seconds of a fit on {on}: {model}"
    return line(what, FIT_SECONDS, {"set": on}, model, columns, paper=f"|{paper}")


def unfolding(what: str, column: str) -> Headline:
    """MVU and the other unfoldings."""
    caption, row = "Lesser R of the two parameters", {"method": "MVU"}
    return line(what, caption, row, column, UNFOLDINGS, better="more")
