"""The headlines of LRO (Yuan, Zhang, Ghanem, Hao 2013)."""

from benchmarks._headlines.base import Cell, Headline, across, down
from benchmarks._headlines.shared import error, fit_seconds


def _eigen_seconds(k: int) -> Headline:
    """The largest matrix of lro_table1, whose slow methods are left out as k grows."""
    caption, row = "What every run found", {"n": 5000, "k": k}
    tight, loose = {**row, "tolerance": 1e-10}, {**row, "tolerance": 1e-3}
    names = ("eigsh", "eigsh (default)", "lobpcg", "LAPACK subset", "PRIMME")
    return Headline(
        f"seconds, n = 5000, k = {k}, residuals to 1e-10 ‖K‖",
        ours=Cell(caption, {**tight, "method": "auto"}, "seconds"),
        paper=Cell(caption, {**loose, "method": "lro"}, "seconds", "paper", optional=True),
        peers={
            name: Cell(caption, {**tight, "method": name}, "seconds", optional=True)
            for name in names
        },
        better="less",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table 1": (
        _eigen_seconds(10),
        _eigen_seconds(80),
        Headline(
            "seconds of LRO ÷ those of eigs, n = 5000, k = 10",
            ours=Cell("Residuals to 0.001", {"n": 5000, "k": 10}, "lro ÷ eigs, times"),
            paper=Cell("Residuals to 0.001", {"n": 5000, "k": 10}, "lro ÷ eigs, times", "paper"),
            better="less",
        ),
    ),
    "Table 2": (
        error("segment", "KTA", "LRO-KTA"),
        error("wine", "KTA", "LRO-KTA"),
        error("glass", "KTA", "LRO-KTA"),
    ),
    "Table 4": (
        fit_seconds("isolet", "KTA", "LRO-KTA", "KTA-Lbfgs"),
        error("letter", "KTA", "LRO-KTA"),
        error("news20", "KTA", "LRO-KTA"),
    ),
    "Fig. 5": (
        Headline(
            "seconds of a fit, m = 1500, σ = 5",
            ours=Cell("Seconds of a fit", {"model": "auto", "σ": 5.0}, "m = 1500"),
            peers=down("Seconds of a fit", "model", ("LRO, rank 20",), "m = 1500", **{"σ": 5.0}),
            better="less",
        ),
        Headline(
            "accuracy of 1-NN, m = 1500, σ = 5, %",
            ours=Cell("Accuracy %", {"kernel": "auto", "σ": 5.0}, "m = 1500"),
            peers={"the given kernel": Cell("Accuracy %", {"kernel": "given"}, "m = 1500")},
            better="more",
        ),
    ),
    "Table 5": tuple(
        Headline(
            f"seconds on {on}: CG",
            ours=Cell("Table 5", {"set": on}, "CG"),
            paper=Cell("Table 5", {"set": on}, "CG", "paper"),
            peers=across("Table 5", {"set": on}, "L-BFGS"),
            better="less",
        )
        for on in ("w1a", "letter")
    ),
    "Table 6": (
        Headline(
            "deviation of F over the starts ÷ F, w1a, ε = 1e-12",
            ours=Cell("Table 6, ε = 1e-12", {"set": "w1a"}, "σ(F)/F"),
            paper=Cell("Table 6, ε = 1e-12", {"set": "w1a"}, "σ(F)/F", "paper"),
            better="less",
        ),
        Headline(
            "iterations, sonar, ε = 1e-12",
            ours=Cell("Table 6, ε = 1e-12", {"set": "sonar"}, "iterations"),
            paper=Cell("Table 6, ε = 1e-12", {"set": "sonar"}, "iterations", "paper"),
            better="less",
        ),
    ),
    "Fig. 2": (
        Headline(
            "seconds, 1000 dense features: KTA",
            ours=Cell("Seconds of a fit, (a)", {"method": "KTA"}, "n = 1000"),
            peers=down(
                "Seconds of a fit, (a)", "method", ("metric-learn ITML", "LRO-KTA"), "n = 1000"
            ),
            better="less",
        ),
        Headline(
            "seconds, 2000 sparse features: KTA",
            ours=Cell("Seconds of a fit, (b)", {"method": "KTA"}, "n = 2000"),
            peers=down("Seconds of a fit, (b)", "method", ("LRO-KTA",), "n = 2000"),
            better="less",
        ),
    ),
    "Fig. 3": (
        Headline(
            "error of 3-NN on isolet at rank 40, %: KTA",
            ours=Cell("Error of 3-NN", {"set": "isolet", "rank": 40}, "KTA, error"),
            peers=across(
                "Error of 3-NN", {"set": "isolet", "rank": 40}, "PCA, error", "LDA, error"
            ),
            better="less",
        ),
        Headline(
            "error of 3-NN on news20 at rank 20, %: KTA",
            ours=Cell("Error of 3-NN", {"set": "news20", "rank": 20}, "KTA, error"),
            peers=across(
                "Error of 3-NN", {"set": "news20", "rank": 20}, "PCA, error", "LRO-KTA, error"
            ),
            better="less",
        ),
        Headline(
            "seconds on isolet at rank 20: KTA",
            ours=Cell("Error of 3-NN", {"set": "isolet", "rank": 20}, "KTA, s"),
            peers=across(
                "Error of 3-NN", {"set": "isolet", "rank": 20}, "PCA, s", "LDA, s", "LRO-KTA, s"
            ),
            better="less",
        ),
    ),
    "Fig. 4": (
        Headline(
            "ω where it ends, letters: auto",
            ours=Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at rest"),
            paper=Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at rest", "paper"),
            peers={"LRO": Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at the last")},
            better="less",
        ),
    ),
}
"""By the table or figure; one to three each."""
