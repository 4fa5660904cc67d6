"""The headlines of BiS (Hu, Kwok 2019)."""

from benchmarks._headlines.base import Better, Cell, Headline, across, down

BIS_RIVALS = ("FW", "GD", "AGD", "ADMM", "BiS, no extrapolation", "BiS")

BIS_SOLVERS = ("frank-wolfe", "gd", "agd", "admm", "bis, no extrapolation", "bis")

RECOMMENDERS = (
    "Surprise SVD", "Surprise SVD, tuned", "cmfrec ALS, k = 10", "cmfrec ALS, k = 40",
)  # fmt: skip


def _adult(what: str, caption: str, on: str, better: Better, paper: bool = True) -> Headline:
    """auto beside the paper's six methods on an adult set."""
    row = {"set": on}
    return Headline(
        what,
        ours=Cell(caption, row, "auto"),
        paper=Cell(caption, row, "BiS", "paper") if paper else None,
        peers=across(caption, row, *BIS_RIVALS),
        better=better,
    )


def _ratings(what: str, on: str, column: str) -> Headline:
    """NuclearCompletion with its defaults beside other recommenders."""
    caption = f"{on}: the defaults beside other recommenders"
    return Headline(
        what,
        ours=Cell(caption, {"method": "NuclearCompletion()"}, column),
        paper=Cell(f"{on}: plain nuclear norm", {"solver": "bis"}, column, "paper"),
        peers=down(caption, "method", RECOMMENDERS, column),
        better="less",
    )


def _completion_seconds(what: str, on: str) -> Headline:
    """The plain nuclear norm by auto and by the paper's solvers."""
    caption = f"{on}: plain nuclear norm"
    return Headline(
        what,
        ours=Cell(caption, {"solver": "auto"}, "seconds"),
        peers=down(caption, "solver", BIS_SOLVERS, "seconds"),
        better="less",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table I": (
        Headline("must-link pairs of a9a", ours=Cell("Table I", {"set": "a9a"}, "must-link")),
    ),
    "Fig. 1": (
        Headline(
            "iterations to 0.001 above F*, a1a: rule 1",
            ours=Cell("Fig. 1 in figures", {"setting": "rule 1"}, "iterations to 0.001"),
            peers=down("Fig. 1 in figures", "setting", ("rule 2",), "iterations to 0.001"),
            better="less",
        ),
    ),
    "Table II": (
        _adult("Rand index on a9a, %", "Table II", "a9a", "more"),
        Headline(
            "Rand index on a1a with λ = 100, %",
            ours=Cell("Rand indices of", {"set": "a1a", "λ": 100.0}, "Rand index %"),
            paper=Cell("Rand indices of", {"set": "a1a", "λ": 100.0}, "Rand index %", "paper"),
            better="more",
        ),
    ),
    "Table III": (
        _adult("seconds to FW's objective on a9a", "Table III", "a9a", "less"),
        _adult("seconds to FW's objective on a1a", "Table III", "a1a", "less"),
    ),
    "Fig. 2": (
        _adult(
            "seconds to within 0.001 of the least F, a9a",
            "Seconds to an objective within 0.001",
            "a9a",
            "less",
            paper=False,
        ),
    ),
    "Fig. 3": (
        _completion_seconds("seconds to FW's objective, MovieLens 100K", "movielens_100k"),
        _completion_seconds("seconds to FW's objective, MovieLens 1M", "movielens_1m"),
    ),
    "Table V": (
        _ratings("RMSE, MovieLens 100K", "movielens_100k", "RMSE"),
        _ratings("RMSE, MovieLens 1M", "movielens_1m", "RMSE"),
    ),
    "Table VI": (
        _ratings("seconds, MovieLens 100K", "movielens_100k", "seconds"),
        _ratings("seconds, MovieLens 1M", "movielens_1m", "seconds"),
        Headline(
            "seconds, ten million ratings, to a time limit",
            ours=Cell("NuclearCompletion of rank 16", {"ratings": 10000054}, "seconds"),
            paper=Cell("NuclearCompletion of rank 16", {"ratings": 10000054}, "seconds", "paper"),
            benchmark="movielens_10m",
        ),
    ),
    "Table VII": (
        Headline(
            "accuracy of 3-NN, %",
            ours=Cell("Table VII", {"method": "auto"}, "accuracy %"),
            paper=Cell("Table VII", {"method": "bis"}, "accuracy %", "paper"),
            peers=down("Table VII", "method", ("Euclid", *BIS_SOLVERS), "accuracy %"),
            better="more",
        ),
        Headline(
            "seconds of a fit",
            ours=Cell("Table VII", {"method": "auto"}, "seconds (median)"),
            peers=down("Table VII", "method", BIS_SOLVERS, "seconds (median)"),
            better="less",
        ),
    ),
    "Fig. 4": (
        Headline(
            "seconds to within 1e-6 of F*",
            ours=Cell("Fig. 4 in figures", {"solver": "auto"}, "s to 1e-06"),
            peers=down("Fig. 4 in figures", "solver", BIS_SOLVERS, "s to 1e-06"),
            better="less",
        ),
    ),
}
"""By the table or figure; one to three each."""
