"""The headlines of BiS (Hu, Kwok 2019)."""

from benchmarks._headlines.base import Better, Cell, Headline, line

BIS_RIVALS = tuple(
    f"|{name}" for name in ("FW", "GD", "AGD", "ADMM", "BiS, no extrapolation", "BiS")
)
BIS_SOLVERS = ("frank-wolfe", "gd", "agd", "admm", "bis, no extrapolation", "bis")
RECOMMENDERS = (
    "Surprise SVD", "Surprise SVD, tuned", "cmfrec ALS, k = 10", "cmfrec ALS, k = 40",
)  # fmt: skip
LARGE = "NuclearCompletion of rank 16", {"ratings": 10000054}


def _adult(
    what: str, caption: str, on: str, better: Better, paper: str | None = "|BiS"
) -> Headline:
    """auto and the six methods of the paper on an adult set."""
    return line(what, caption, {"set": on}, "auto", BIS_RIVALS, paper=paper, better=better)


def _ratings(what: str, size: str, column: str) -> Headline:
    """NuclearCompletion with its defaults and other recommenders."""
    on = f"movielens_{size.lower()}"
    printed = Cell(f"{on}: plain nuclear norm", {"solver": "bis"}, column, "paper")
    caption = f"{on}: the defaults beside other recommenders"
    row = {"method": "NuclearCompletion()"}
    return line(f"{what}, MovieLens {size}", caption, row, column, RECOMMENDERS, paper=printed)


def _completion_seconds(size: str) -> Headline:
    """The plain nuclear norm by auto and by the paper's solvers."""
    caption = f"movielens_{size.lower()}: plain nuclear norm"
    what = f"seconds to FW's objective, MovieLens {size}"
    return line(what, caption, {"solver": "auto"}, "seconds", BIS_SOLVERS)


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table I": (line("must-link pairs of a9a", "Table I", {"set": "a9a"}, "must-link", better=""),),
    "Fig. 1": (
        line("iterations to 0.001 above F*, a1a: rule 1", "Fig. 1 in figures",
             {"setting": "rule 1"}, "iterations to 0.001", ("rule 2",)),
    ),
    "Table II": (
        _adult("Rand index on a9a, %", "Table II", "a9a", "more"),
        line("Rand index on a1a with λ = 100, %", "Rand indices of", {"set": "a1a", "λ": 100.0},
             "Rand index %", paper="|", better="more"),
    ),
    "Table III": tuple(
        _adult(f"seconds to FW's objective on {on}", "Table III", on, "less")
        for on in ("a9a", "a1a")
    ),
    "Fig. 2": (
        _adult("seconds to within 0.001 of the least F, a9a",
               "Seconds to an objective within 0.001", "a9a", "less", None),
    ),
    "Fig. 3": (_completion_seconds("100K"), _completion_seconds("1M")),
    "Table V": (_ratings("RMSE", "100K", "RMSE"), _ratings("RMSE", "1M", "RMSE")),
    "Table VI": (
        _ratings("seconds", "100K", "seconds"),
        _ratings("seconds", "1M", "seconds"),
        line("seconds, ten million ratings, to a time limit", *LARGE, "seconds", paper="|",
             better="", benchmark="movielens_10m"),
    ),
    "Table VII": (
        line("accuracy of 3-NN, %", "Table VII", {"method": "auto"}, "accuracy %",
             ("Euclid", *BIS_SOLVERS), paper="bis", better="more"),
        line("seconds of a fit", "Table VII", {"method": "auto"}, "seconds (median)", BIS_SOLVERS),
    ),
    "Fig. 4": (
        line("seconds to within 1e-6 of F*", "Fig. 4 in figures", {"solver": "auto"}, "s to 1e-06",
             BIS_SOLVERS),
    ),
}  # fmt: skip
"""By table or figure, one to three each."""
