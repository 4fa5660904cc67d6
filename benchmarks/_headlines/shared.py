"""Headlines that several papers have: of the tables of metrics, of unfoldings."""

from benchmarks._headlines.base import Cell, Headline, across, down

ERRORS = "LRO Tables 2 and 4, BILGO Table 2"

FIT_SECONDS = "LRO Table 4, BILGO Table 1"

UNFOLDINGS = ("Isomap", "LLE", "modified LLE", "UMAP")


def error(on: str, model: str, paper: str) -> Headline:
    """The error of a default on a set of metric_tables."""
    row = {"set": on}
    return Headline(
        f"error of 3-NN on {on}, %: {model}",
        ours=Cell(ERRORS, row, model),
        paper=Cell(ERRORS, row, paper, "paper"),
        peers=across(ERRORS, row, "Euclid"),
        better="less",
    )


def fit_seconds(on: str, model: str, paper: str, *rivals: str) -> Headline:
    """The seconds of a default on a set of metric_tables."""
    row = {"set": on}
    return Headline(
        f"seconds of a fit on {on}: {model}",
        ours=Cell(FIT_SECONDS, row, model),
        paper=Cell(FIT_SECONDS, row, paper, "paper"),
        peers=across(FIT_SECONDS, row, *rivals),
        better="less",
    )


def unfolding(what: str, column: str) -> Headline:
    """MVU beside the other unfoldings."""
    caption = "Lesser R of the two parameters"
    return Headline(
        what,
        ours=Cell(caption, {"method": "MVU"}, column),
        peers=down(caption, "method", UNFOLDINGS, column),
        better="more",
    )
