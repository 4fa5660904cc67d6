"""The headlines of DML-eig (Ying, Li 2012)."""

from benchmarks._headlines.base import Cell, Headline, line

LEARNERS = (
    "LDA", "scikit-learn NCA", "metric-learn LMNN", "metric-learn ITML", "metric-learn NCA",
    "metric-learn LSML", "pyDML DML_eig",
)  # fmt: skip
FACES = ("Euclid", "LDA", "NCA", "metric-learn LMNN", "metric-learn ITML, 840 pairs")
FUSED = {"method": "DMLEig, fused (held-out scores), 3 scores"}
LDML = {"method": "LDML, its own descriptors (not run)"}
LIGHTFM = ("LightFM logistic, 10 epochs", "LightFM logistic, tuned")
SURPRISE = ("Surprise SVD, defaults, rounded", "Surprise SVD, tuned, rounded")


def _columns(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"|{name}" for name in names)


def _verification(dimensions: int) -> Headline:
    """Verification of faces by the number of principal components; ITML has fewer folds."""
    what = f"verification rate at {dimensions} dimensions: DMLEig"
    row = {"PCA dim.": dimensions, "method": "DMLEig"}
    printed = Cell("Table 6", row | {"method": "DMLEig(floor=0)"}, "square root", "paper")
    rivals = ("metric-learn ITML",)
    return line(what, "Table 6", row, "square root", rivals, paper=printed, better="more")


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table 4": (
        line("mean error over nine sets, %: DMLEig", "(b) Mean error", {"method": "DMLEig"},
             "mean error %", LEARNERS),
        *(
            line(f"error on {on}, %: DMLEig", "Table 4", {"set": on}, "DMLEig", _columns(LEARNERS),
                 paper="|")
            for on in ("segment", "usps")
        ),
    ),
    "Table 5": (
        line("seconds of a fit on usps: DMLEig", "Table 5", {"set": "usps"}, "DMLEig",
             _columns(LEARNERS), paper="|"),
        line("seconds of a fit on segment: LMNN", "Table 5", {"set": "segment"}, "LMNN",
             ("|metric-learn LMNN",), paper="|metric-learn LMNN"),
    ),
    "Table 6": (
        _verification(100),
        line("verification rate at 100 dimensions, folds of ITML: DMLEig", "On the folds",
             {"PCA dim.": 100}, "DMLEig", ("|metric-learn ITML",), better="more"),
    ),
    "Table 7": (
        Headline("verification rate, descriptors fused: DMLEig",
                 *(Cell("Table 7", FUSED, "verification rate", part) for part in ("ours", "paper")),
                 {"LDML, as printed": Cell("Table 7", LDML, "verification rate", "paper")},
                 better="more"),
    ),
    "Fig. 2": (_verification(35), _verification(55)),
    "Fig. 3": (
        line("area under the curve, descriptors fused: DMLEig", "Table 7", FUSED, "area under ROC",
             {"PCA whitened": "PCA whitened, fused, 3 scores"}, better="more"),
    ),
    "Appendix A": (
        *(
            line(f"{column}, MovieLens 100K, likes and dislikes: MMMF", "movielens_100k, 4 stars",
                 {"method": "MMMF"}, column, LIGHTFM)
            for column in ("error", "seconds")
        ),
        line("mean absolute error, five levels: MMMF", "movielens_100k, five levels",
             {"method": "MMMF, rounded"}, "MAE", SURPRISE),
    ),
    "Fig. 1": (
        line("error of 3-NN on AT&T faces, mean over the dimensions, %: DMLEig", "By method",
             {"method": "DMLEig"}, "mean error %", FACES),
        line("seconds of a fit, 64 dimensions: DMLEig", "Figure 1, left", {"dimension": 64},
             "DMLEig", _columns(FACES[1:])),
    ),
}  # fmt: skip
"""By table or figure, one to three each."""
