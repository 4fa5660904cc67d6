"""The headlines of DML-eig (Ying, Li 2012)."""

from benchmarks._headlines.base import Cell, Headline, across, down

LEARNERS = (
    "LDA", "scikit-learn NCA", "metric-learn LMNN", "metric-learn ITML", "metric-learn NCA",
    "metric-learn LSML", "pyDML DML_eig",
)  # fmt: skip

FACES = ("Euclid", "LDA", "NCA", "metric-learn LMNN", "metric-learn ITML, 840 pairs")


def _verification(dimensions: int) -> Headline:
    """Faces by the number of principal components; ITML has fewer folds."""
    row = {"PCA dim.": dimensions}
    caption, column = "Table 6", "square root"
    return Headline(
        f"verification rate at {dimensions} dimensions: DMLEig",
        ours=Cell(caption, {**row, "method": "DMLEig"}, column),
        paper=Cell(caption, {**row, "method": "DMLEig(floor=0)"}, column, "paper"),
        peers=down(caption, "method", ("metric-learn ITML",), column, **row),
        better="more",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table 4": (
        Headline(
            "mean error over nine sets, %: DMLEig",
            ours=Cell("(b) Mean error", {"method": "DMLEig"}, "mean error %"),
            peers=down("(b) Mean error", "method", LEARNERS, "mean error %"),
            better="less",
        ),
        *(
            Headline(
                f"error on {on}, %: DMLEig",
                ours=Cell("Table 4", {"set": on}, "DMLEig"),
                paper=Cell("Table 4", {"set": on}, "DMLEig", "paper"),
                peers=across("Table 4", {"set": on}, *LEARNERS),
                better="less",
            )
            for on in ("segment", "usps")
        ),
    ),
    "Table 5": (
        Headline(
            "seconds of a fit on usps: DMLEig",
            ours=Cell("Table 5", {"set": "usps"}, "DMLEig"),
            paper=Cell("Table 5", {"set": "usps"}, "DMLEig", "paper"),
            peers=across("Table 5", {"set": "usps"}, *LEARNERS),
            better="less",
        ),
        Headline(
            "seconds of a fit on segment: LMNN",
            ours=Cell("Table 5", {"set": "segment"}, "LMNN"),
            paper=Cell("Table 5", {"set": "segment"}, "metric-learn LMNN", "paper"),
            peers=across("Table 5", {"set": "segment"}, "metric-learn LMNN"),
            better="less",
        ),
    ),
    "Table 6": (
        _verification(100),
        Headline(
            "verification rate at 100 dimensions, folds of ITML: DMLEig",
            ours=Cell("On the folds", {"PCA dim.": 100}, "DMLEig"),
            peers=across("On the folds", {"PCA dim.": 100}, "metric-learn ITML"),
            better="more",
        ),
    ),
    "Table 7": (
        Headline(
            "verification rate, descriptors fused: DMLEig",
            ours=Cell(
                "Table 7",
                {"method": "DMLEig, fused (held-out scores), 3 scores"},
                "verification rate",
            ),
            paper=Cell(
                "Table 7",
                {"method": "DMLEig, fused (held-out scores), 3 scores"},
                "verification rate",
                "paper",
            ),
            peers={
                "LDML, as printed": Cell(
                    "Table 7",
                    {"method": "LDML, its own descriptors (not run)"},
                    "verification rate",
                    "paper",
                )
            },
            better="more",
        ),
    ),
    "Fig. 2": (_verification(35), _verification(55)),
    "Fig. 3": (
        Headline(
            "area under the curve, descriptors fused: DMLEig",
            ours=Cell(
                "Table 7", {"method": "DMLEig, fused (held-out scores), 3 scores"}, "area under ROC"
            ),
            peers={
                "PCA whitened": Cell(
                    "Table 7", {"method": "PCA whitened, fused, 3 scores"}, "area under ROC"
                )
            },
            better="more",
        ),
    ),
    "Appendix A": (
        *(
            Headline(
                f"{what}, MovieLens 100K, likes and dislikes: MMMF",
                ours=Cell("movielens_100k, 4 stars", {"method": "MMMF"}, column),
                peers=down(
                    "movielens_100k, 4 stars",
                    "method",
                    ("LightFM logistic, 10 epochs", "LightFM logistic, tuned"),
                    column,
                ),
                better="less",
            )
            for what, column in (("error", "error"), ("seconds", "seconds"))
        ),
        Headline(
            "mean absolute error, five levels: MMMF",
            ours=Cell("movielens_100k, five levels", {"method": "MMMF, rounded"}, "MAE"),
            peers=down(
                "movielens_100k, five levels",
                "method",
                ("Surprise SVD, defaults, rounded", "Surprise SVD, tuned, rounded"),
                "MAE",
            ),
            better="less",
        ),
    ),
    "Fig. 1": (
        Headline(
            "error of 3-NN on AT&T faces, mean over the dimensions, %: DMLEig",
            ours=Cell("By method", {"method": "DMLEig"}, "mean error %"),
            peers=down("By method", "method", FACES, "mean error %"),
            better="less",
        ),
        Headline(
            "seconds of a fit, 64 dimensions: DMLEig",
            ours=Cell("Figure 1, left", {"dimension": 64}, "DMLEig"),
            peers=across("Figure 1, left", {"dimension": 64}, *FACES[1:]),
            better="less",
        ),
    ),
}
"""By the table or figure; one to three each."""
