"""The headlines of LRO (Yuan, Zhang, Ghanem, Hao 2013)."""

from benchmarks._headlines.base import Cell, Headline, line
from benchmarks._headlines.shared import error, fit_seconds

EIGEN = ("eigsh", "eigsh (default)", "lobpcg", "LAPACK subset", "PRIMME")


def _eigen_seconds(k: int) -> Headline:
    """The largest matrix of lro_table1, which omits slow methods as k grows."""
    caption, row = "What every run found", {"n": 5000, "k": k}
    tight, loose = {**row, "tolerance": 1e-10}, {**row, "tolerance": 1e-3}
    return Headline(
        f"seconds, n = 5000, k = {k}, residuals to 1e-10 ‖K‖",
        Cell(caption, {**tight, "method": "auto"}, "seconds"),
        Cell(caption, {**loose, "method": "lro"}, "seconds", "paper", optional=True),
        {name: Cell(caption, {**tight, "method": name}, "seconds", optional=True)
         for name in EIGEN},
        better="less",
    )  # fmt: skip


def _panel(panel: str, n: int, what: str, *rivals: str) -> Headline:
    caption = f"Seconds of a fit, ({panel})"
    return line(f"seconds, {n} {what} features: KTA", caption, {"method": "KTA"}, f"n = {n}",
                rivals)  # fmt: skip


def _rank(what: str, on: str, rank: int, part: str, *rivals: str) -> Headline:
    row, columns = {"set": on, "rank": rank}, tuple(f"|{name}, {part}" for name in rivals)
    return line(f"{what} on {on} at rank {rank}{', %' if part == 'error' else ''}: KTA",
                "Error of 3-NN", row, f"KTA, {part}", columns)  # fmt: skip


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Table 1": (
        _eigen_seconds(10),
        _eigen_seconds(80),
        line("seconds of LRO ÷ those of eigs, n = 5000, k = 10", "Residuals to 0.001",
             {"n": 5000, "k": 10}, "lro ÷ eigs, times", paper="|"),
    ),
    "Table 2": tuple(error(on, "KTA", "LRO-KTA") for on in ("segment", "wine", "glass")),
    "Table 4": (
        fit_seconds("isolet", "KTA", "LRO-KTA", "KTA-Lbfgs"),
        *(error(on, "KTA", "LRO-KTA") for on in ("letter", "news20")),
    ),
    "Fig. 5": (
        line("seconds of a fit, m = 1500, σ = 5", "Seconds of a fit", {"σ": 5.0, "model": "auto"},
             "m = 1500", ("LRO, rank 20",)),
        Headline("accuracy of 1-NN, m = 1500, σ = 5, %",
                 Cell("Accuracy %", {"kernel": "auto", "σ": 5.0}, "m = 1500"),
                 peers={"the given kernel": Cell("Accuracy %", {"kernel": "given"}, "m = 1500")},
                 better="more"),
    ),
    "Table 5": tuple(
        line(f"seconds on {on}: CG", "Table 5", {"set": on}, "CG", ("|L-BFGS",), paper="|")
        for on in ("w1a", "letter")
    ),
    "Table 6": (
        line("deviation of F over the starts ÷ F, w1a, ε = 1e-12", "Table 6, ε = 1e-12",
             {"set": "w1a"}, "σ(F)/F", paper="|"),
        line("iterations, sonar, ε = 1e-12", "Table 6, ε = 1e-12", {"set": "sonar"}, "iterations",
             paper="|"),
    ),
    "Fig. 2": (
        _panel("a", 1000, "dense", "metric-learn ITML", "LRO-KTA"),
        _panel("b", 2000, "sparse", "LRO-KTA"),
    ),
    "Fig. 3": (
        _rank("error of 3-NN", "isolet", 40, "error", "PCA", "LDA"),
        _rank("error of 3-NN", "news20", 20, "error", "PCA", "LRO-KTA"),
        _rank("seconds", "isolet", 20, "s", "PCA", "LDA", "LRO-KTA"),
    ),
    "Fig. 4": (
        Headline("ω where it ends, letters: auto",
                 *(Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at rest", part)
                   for part in ("ours", "paper")),
                 {"LRO": Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at the last")},
                 better="less"),
    ),
}  # fmt: skip
"""By table or figure, one to three each."""
