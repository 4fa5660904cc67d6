"""A few figures of each table and picture of the papers: theirs, other people's, and ours.

A `Cell` points into the saved results of a run, so that nothing here is typed in but names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks._coverage import BILGO, BIS, DML_EIG, LRO, SQLP

Record = dict[str, Any]
Key = tuple[str, str]
"""A paper and a place in it, as `_coverage.ITEMS` name them."""
Row = dict[str, Any]
Part = Literal["ours", "paper"]
Better = Literal["less", "more", ""]
"""Which of two figures is the better one; "" where neither is."""

NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)


# --- pointers ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A cell of a benchmark's results.

    `caption` is how the table's caption begins, up to the end of a word, and `row` what cells of
    the row hold (all of them; the first such row is taken). `part` chooses between the two figures
    of a cell that has both. The row of an `optional` cell may be missing, its column may not.
    """

    caption: str
    row: Row
    column: str
    part: Part = "ours"
    optional: bool = False

    def read(self, record: Record) -> Any:
        """Its value; LookupError where there is no such cell."""
        tables = [table for table in record["tables"] if self._is_of(table)]
        for row in (row for table in tables for row in table["rows"]):
            if all(own(row.get(name)) == value for name, value in self.row.items()):
                return self._part(row[self.column])
        if tables and self.optional:
            return None
        raise LookupError(f"{record['name']} has no cell {self}")

    def _is_of(self, table: Record) -> bool:
        begins = re.match(re.escape(self.caption) + r"(?!\w)", table["caption"])
        return begins is not None and self.column in table["columns"]

    def _part(self, cell: Any) -> Any:
        if isinstance(cell, dict):
            return cell[self.part]
        if self.part == "paper":
            raise LookupError(f"no figure of a paper in {self}")
        return cell


def own(cell: Any) -> Any:
    """Our figure of a cell, which may hold the paper's too."""
    return cell["ours"] if isinstance(cell, dict) else cell


def across(caption: str, row: Row, *columns: str) -> dict[str, Cell]:
    """Cells of one row, by their columns."""
    return {column: Cell(caption, row, column) for column in columns}


def down(
    caption: str, naming: str, names: tuple[str, ...], column: str, **row: Any
) -> dict[str, Cell]:
    """Cells of one column, by what the column `naming` holds; `row` what the others hold."""
    return {name: Cell(caption, {naming: name, **row}, column) for name in names}


# --- headlines -----------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """What is compared, and where its figures are; `benchmark` where it is not the item's."""

    what: str
    ours: Cell
    paper: Cell | None = None
    peers: Mapping[str, Cell] = field(default_factory=dict)
    """By their names; the best one is shown."""
    better: Better = ""
    benchmark: str = ""

    def figures(self, record: Record | None) -> "Figures":
        """What the cells hold; nothing where there is no record."""
        if record is None:
            return Figures()
        peers = {name: cell.read(record) for name, cell in self.peers.items()}
        peer = _best(peers, self.better)
        paper = self.paper.read(record) if self.paper else None
        return Figures(self.ours.read(record), paper, peers.get(peer), peer)

    def lost_to(self, record: Record | None) -> dict[str, Any]:
        """The figures better than ours, by whose they are."""
        found = self.figures(record)
        others = {"the paper": found.paper, found.peer: found.peers}
        return {
            who: figure
            for who, figure in others.items()
            if is_better(figure, found.ours, self.better)
        }


@dataclass(frozen=True)
class Figures:
    """The figures of a headline: ours, the paper's, the best peer's, and who that is."""

    ours: Any = None
    paper: Any = None
    peers: Any = None
    peer: str = ""


def is_better(theirs: Any, ours: Any, better: Better) -> bool:
    """Whether their figure beats ours; False where that cannot be said."""
    a, b = number(theirs), number(ours)
    if a is None or b is None or not better:
        return False
    if better == "less":
        return a < b and not _is_bound(theirs)
    return a > b and not _is_bound(ours)


def number(cell: Any) -> float | None:
    """The first number in a cell: 3.2 of '3.2 ± 0.2', 60 of '> 60 s'."""
    if isinstance(cell, bool) or cell is None:
        return None
    found = NUMBER.search(str(cell))
    return float(found.group().replace("−", "-")) if found else None


def _is_bound(cell: Any) -> bool:
    """Whether it says no more than that the figure is larger."""
    return isinstance(cell, str) and cell.lstrip().startswith(">")


def _best(cells: Mapping[str, Any], better: Better) -> str:
    """Whose cell is the best: the first of them where neither is, "" where all are empty."""
    given = [name for name, cell in cells.items() if cell is not None]
    if not better:
        return given[0] if given else ""
    sign = 1 if better == "less" else -1

    def place(name: str) -> tuple[bool, bool, float]:
        value = number(cells[name])
        return value is None, _is_bound(cells[name]), sign * (value or 0.0)

    return min(given, key=place, default="")


# --- the benchmarks' tables ------------------------------------------------------------

ERRORS = "LRO Tables 2 and 4, BILGO Table 2"
FIT_SECONDS = "LRO Table 4, BILGO Table 1"
UNFOLDINGS = ("Isomap", "LLE", "modified LLE", "UMAP")
LEARNERS = (
    "LDA", "scikit-learn NCA", "metric-learn LMNN", "metric-learn ITML", "metric-learn NCA",
    "metric-learn LSML", "pyDML DML_eig",
)  # fmt: skip
BIS_RIVALS = ("FW", "GD", "AGD", "ADMM", "BiS, no extrapolation", "BiS")
BIS_SOLVERS = ("frank-wolfe", "gd", "agd", "admm", "bis, no extrapolation", "bis")
RECOMMENDERS = (
    "Surprise SVD", "Surprise SVD, tuned", "cmfrec ALS, k = 10", "cmfrec ALS, k = 40",
)  # fmt: skip
CONIC = (
    "SCSDP whole cone, Clarabel", "SCSDP decomposed, Clarabel", "SCSDP, SCS", "SQLP, Clarabel",
    "SQLP, SCS", "direct, Clarabel", "direct, SCS",
)  # fmt: skip


FACES = ("Euclid", "LDA", "NCA", "metric-learn LMNN", "metric-learn ITML, 840 pairs")


def _error(on: str, model: str, paper: str) -> Headline:
    """The error of a default on a set of metric_tables."""
    row = {"set": on}
    return Headline(
        f"error of 3-NN on {on}, %: {model}",
        ours=Cell(ERRORS, row, model),
        paper=Cell(ERRORS, row, paper, "paper"),
        peers=across(ERRORS, row, "Euclid"),
        better="less",
    )


def _fit_seconds(on: str, model: str, paper: str, *rivals: str) -> Headline:
    """The seconds of a default on a set of metric_tables."""
    row = {"set": on}
    return Headline(
        f"seconds of a fit on {on}: {model}",
        ours=Cell(FIT_SECONDS, row, model),
        paper=Cell(FIT_SECONDS, row, paper, "paper"),
        peers=across(FIT_SECONDS, row, *rivals),
        better="less",
    )


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


def _unfolding_seconds(on: str, n: int) -> Headline:
    """Seconds until the projected gradient's last objective, along the way of bilgo_table3."""
    row = {"set": on, "n": n}
    return Headline(
        f"seconds to the last F of Nesterov-PG, {on}, n = {n}",
        ours=Cell("Verdicts", row, "auto's seconds to that F"),
        peers={"Nesterov-PG": Cell("Verdicts", row, "its seconds to that F")},
        better="less",
    )


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


def _conic_seconds(m: int) -> Headline:
    """auto beside the conic solvers, certified or not."""
    return Headline(
        f"seconds, m = {m}",
        ours=Cell("Seconds", {"method": "auto"}, f"m = {m}"),
        paper=Cell("Seconds", {"method": "SQLP, Clarabel"}, f"m = {m}", "paper"),
        peers=down("Seconds", "method", CONIC, f"m = {m}"),
        better="less",
    )


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
        ours=Cell(caption, {"method": "NuclearCompletion, tol=0.0001"}, column),
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


def _unfolding(what: str, column: str) -> Headline:
    """MVU beside the other unfoldings."""
    caption = "Lesser R of the two parameters"
    return Headline(
        what,
        ours=Cell(caption, {"method": "MVU"}, column),
        peers=down(caption, "method", UNFOLDINGS, column),
        better="more",
    )


def _clusters(model: str, links: int) -> Headline:
    caption, column = "usps: accuracy % by the number of links", f"{links} links"
    return Headline(
        f"accuracy %, usps, {column}: {model}",
        ours=Cell(caption, {"method": model}, column),
        peers=down(caption, "method", ("k-means", "spectral clustering", "COP-k-means"), column),
        better="more",
    )


# --- the headlines of the papers' items --------------------------------------------------

HEADLINES: dict[Key, tuple[Headline, ...]] = {
    (BILGO, "Fig. 2"): (
        Headline(
            "F/F* − 1 after 300 iterations, w1a: BILGO",
            ours=Cell("w1a, λ", {"k": 300, "method": "BILGO"}, "F/F* − 1"),
            peers=down(
                "w1a, λ", "method", ("Journée et al.", "random conic pursuit"), "F/F* − 1", k=300
            ),
            better="less",
        ),
        Headline(
            "test accuracy after 300 iterations, w1a, %: BILGO",
            ours=Cell("w1a, λ", {"k": 300, "method": "BILGO"}, "test %"),
            peers=down(
                "w1a, λ", "method", ("Journée et al.", "random conic pursuit"), "test %", k=300
            ),
            better="more",
        ),
    ),
    (BILGO, "Table 1"): (
        _fit_seconds("mnist", "KTA", "BILGO-KTA-LS", "KTA-Lbfgs"),
        _fit_seconds("splice", "LMNN", "BILGO-LMNN"),
    ),
    (BILGO, "Table 2"): (
        _error("mnist", "KTA", "BILGO-KTA"),
        _error("isolet", "KTA", "BILGO-KTA-LS"),
        _error("w1a", "LMNN", "BILGO-LMNN"),
    ),
    (BILGO, "Table 3"): (
        Headline(
            "seconds, mnist, n = 3000",
            ours=Cell("mnist", {"n": 3000, "solver": "auto"}, "seconds"),
            paper=Cell("mnist", {"n": 3000, "solver": "BILGO-LS"}, "seconds", "paper"),
            peers=down("mnist", "solver", ("Nesterov-PG",), "seconds", n=3000),
            better="less",
        ),
        Headline(
            "certified relative gap at the end, w1a, n = 3000",
            ours=Cell("w1a", {"n": 3000, "solver": "auto"}, "certified relative gap"),
            peers=down("w1a", "solver", ("Nesterov-PG",), "certified relative gap", n=3000),
            better="less",
        ),
    ),
    (BILGO, "Fig. 3"): (_unfolding_seconds("w1a", 3000),),
    (BILGO, "Fig. 4"): (_unfolding_seconds("mnist", 3000),),
    (BILGO, "Table 4"): (
        Headline(
            "seconds, gaussian, d = 9000, tolerance 1e-6",
            ours=Cell("gaussian", {"d": 9000, "method": "krylov 1e-6"}, "seconds"),
            paper=Cell(
                "gaussian", {"d": 9000, "method": "newton-lanczos 1e-8"}, "seconds", "paper"
            ),
            peers={
                "ARPACK": Cell("gaussian", {"d": 9000, "method": "eigsh 1e-6"}, "seconds"),
            },
            better="less",
        ),
        Headline(
            "seconds ÷ those of eigs, d = 9000: Newton–Lanczos",
            ours=Cell("gaussian", {"d": 9000, "method": "newton-lanczos 1e-8"}, "time / eigsh"),
            paper=Cell(
                "gaussian", {"d": 9000, "method": "newton-lanczos 1e-8"}, "time / eigsh", "paper"
            ),
            better="less",
        ),
    ),
    (LRO, "Table 1"): (
        _eigen_seconds(10),
        _eigen_seconds(80),
        Headline(
            "seconds of LRO ÷ those of eigs, n = 5000, k = 10",
            ours=Cell("Residuals to 0.001", {"n": 5000, "k": 10}, "lro ÷ eigs, times"),
            paper=Cell("Residuals to 0.001", {"n": 5000, "k": 10}, "lro ÷ eigs, times", "paper"),
            better="less",
        ),
    ),
    (LRO, "Table 2"): (
        _error("segment", "KTA", "LRO-KTA"),
        _error("wine", "KTA", "LRO-KTA"),
        _error("glass", "KTA", "LRO-KTA"),
    ),
    (LRO, "Table 4"): (
        _fit_seconds("isolet", "KTA", "LRO-KTA", "KTA-Lbfgs"),
        _error("letter", "KTA", "LRO-KTA"),
        _error("news20", "KTA", "LRO-KTA"),
    ),
    (LRO, "Fig. 5"): (
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
    (LRO, "Table 5"): tuple(
        Headline(
            f"seconds on {on}: CG",
            ours=Cell("Table 5", {"set": on}, "CG"),
            paper=Cell("Table 5", {"set": on}, "CG", "paper"),
            peers=across("Table 5", {"set": on}, "L-BFGS"),
            better="less",
        )
        for on in ("w1a", "letter")
    ),
    (LRO, "Table 6"): (
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
    (DML_EIG, "Table 4"): (
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
    (DML_EIG, "Table 5"): (
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
    (DML_EIG, "Table 6"): (
        _verification(100),
        Headline(
            "verification rate at 100 dimensions, folds of ITML: DMLEig",
            ours=Cell("On the folds", {"PCA dim.": 100}, "DMLEig"),
            peers=across("On the folds", {"PCA dim.": 100}, "metric-learn ITML"),
            better="more",
        ),
    ),
    (DML_EIG, "Table 7"): (
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
    (DML_EIG, "Fig. 2"): (_verification(35), _verification(55)),
    (DML_EIG, "Fig. 3"): (
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
    (DML_EIG, "Appendix A"): (
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
    (LRO, "Fig. 2"): (
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
    (LRO, "Fig. 3"): (
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
    (LRO, "Fig. 4"): (
        Headline(
            "ω where it ends, letters: auto",
            ours=Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at rest"),
            paper=Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at rest", "paper"),
            peers={"LRO": Cell("ω after t steps, λ of KTA", {"set": "letter"}, "ω at the last")},
            better="less",
        ),
    ),
    (DML_EIG, "Fig. 1"): (
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
    (SQLP, "Fig. 3.1"): (
        _unfolding(
            "correlation with the roll's parameters, the lesser: MVU", "lesser R, Swiss roll"
        ),
        Headline(
            "seconds to unfold 1000 points of the roll: MVU",
            ours=Cell("Swiss roll", {"method": "MVU"}, "seconds"),
            peers=down("Swiss roll", "method", UNFOLDINGS, "seconds"),
            better="less",
        ),
    ),
    (SQLP, "Table 3.1"): (_conic_seconds(10), _conic_seconds(50)),
    (SQLP, "Fig. 3.2"): (_conic_seconds(30), _conic_seconds(100)),
    (SQLP, "Table 3.2"): (_conic_seconds(10), _conic_seconds(50)),
    (SQLP, "Fig. 3.3"): (_conic_seconds(30), _conic_seconds(100)),
    (BIS, "Table I"): (
        Headline("must-link pairs of a9a", ours=Cell("Table I", {"set": "a9a"}, "must-link")),
    ),
    (BIS, "Fig. 1"): (
        Headline(
            "iterations to 0.001 above F*, a1a: rule 1",
            ours=Cell("Fig. 1 in figures", {"setting": "rule 1"}, "iterations to 0.001"),
            peers=down("Fig. 1 in figures", "setting", ("rule 2",), "iterations to 0.001"),
            better="less",
        ),
    ),
    (BIS, "Table II"): (
        _adult("Rand index on a9a, %", "Table II", "a9a", "more"),
        Headline(
            "Rand index on a1a with λ = 100, %",
            ours=Cell("Rand indices of", {"set": "a1a", "λ": 100.0}, "Rand index %"),
            paper=Cell("Rand indices of", {"set": "a1a", "λ": 100.0}, "Rand index %", "paper"),
            better="more",
        ),
    ),
    (BIS, "Table III"): (
        _adult("seconds to FW's objective on a9a", "Table III", "a9a", "less"),
        _adult("seconds to FW's objective on a1a", "Table III", "a1a", "less"),
    ),
    (BIS, "Fig. 2"): (
        _adult(
            "seconds to within 0.001 of the least F, a9a",
            "Seconds to an objective within 0.001",
            "a9a",
            "less",
            paper=False,
        ),
    ),
    (BIS, "Fig. 3"): (
        _completion_seconds("seconds to FW's objective, MovieLens 100K", "movielens_100k"),
        _completion_seconds("seconds to FW's objective, MovieLens 1M", "movielens_1m"),
    ),
    (BIS, "Table V"): (
        _ratings("RMSE, MovieLens 100K", "movielens_100k", "RMSE"),
        _ratings("RMSE, MovieLens 1M", "movielens_1m", "RMSE"),
    ),
    (BIS, "Table VI"): (
        _ratings("seconds, MovieLens 100K", "movielens_100k", "seconds"),
        _ratings("seconds, MovieLens 1M", "movielens_1m", "seconds"),
        Headline(
            "seconds, ten million ratings, to a time limit",
            ours=Cell("NuclearCompletion of rank 16", {"ratings": 10000054}, "seconds"),
            paper=Cell("NuclearCompletion of rank 16", {"ratings": 10000054}, "seconds", "paper"),
            benchmark="movielens_10m",
        ),
    ),
    (BIS, "Table VII"): (
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
    (BIS, "Fig. 4"): (
        Headline(
            "seconds to within 1e-6 of F*",
            ours=Cell("Fig. 4 in figures", {"solver": "auto"}, "s to 1e-06"),
            peers=down("Fig. 4 in figures", "solver", BIS_SOLVERS, "s to 1e-06"),
            better="less",
        ),
    ),
}
"""By the item; one to three each."""


# --- questions that no paper's table asks ------------------------------------------------

BESIDES: dict[str, tuple[Headline, ...]] = {
    "constrained_clustering": (
        _clusters("PCP", 50),
        _clusters("PCP", 2000),
        _clusters("RegPCP", 200),
    ),
    "convergence": (
        Headline(
            "seconds to 1e-6 of F*, tr((AM)² + BM² + 2CM), order 100",
            ours=Cell("First to a relative", {"problem": "quadratic"}, "auto s"),
            peers={
                "the first solver there": Cell("First to a relative", {"problem": "quadratic"}, "s")
            },
            better="less",
        ),
    ),
    "kernel_metric": tuple(
        Headline(
            f"error of 3-NN, {on}, %: DMLEig with a Gaussian",
            ours=Cell("Real sets", {"set": on}, "DMLEig, rbf"),
            peers=across("Real sets", {"set": on}, "Euclid"),
            better="less",
        )
        for on in ("mean of the sets", "pima")
    ),
    "kta_large": (
        Headline(
            "error of 3-NN on MNIST, 10,000 reference images, %: KTA",
            ours=Cell("MNIST: 3-NN test error", {"metric": "KTA, λ = auto"}, "error %"),
            paper=Cell("MNIST: 3-NN test error", {"metric": "KTA, λ = auto"}, "error %", "paper"),
            peers=down("MNIST: 3-NN test error", "metric", ("Euclid",), "error %"),
            better="less",
        ),
    ),
    "lmnn_mnist": tuple(
        Headline(
            f"{what}, all of MNIST: LMNN",
            ours=Cell("Error of 3-NN and seconds", {"method": "LMNN, ours"}, column),
            peers=down(
                "Error of 3-NN and seconds",
                "method",
                ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised", "scikit-learn NCA"),
                column,
            ),
            better="less",
        )
        for what, column in (("error of 3-NN, %", "error %"), ("seconds of a fit", "seconds"))
    ),
    "mu_auto": (
        Headline(
            "error of 3-NN on sonar, %: DMLEig",
            ours=Cell("DMLEig: (μ", {"set": "sonar"}, "auto"),
            peers=across("DMLEig: (μ", {"set": "sonar"}, "Euclid"),
            better="less",
        ),
    ),
    "mvu_exact": (
        Headline(
            "seconds, Swiss roll, n = 40, edges to 1e-4: MVU",
            ours=Cell(
                "Variance and edges",
                {"set": "Swiss roll", "n": 40, "method": "MVU, max_edge_error=0.0001"},
                "seconds",
            ),
            peers=down(
                "Variance and edges", "method", ("Clarabel",), "seconds", set="Swiss roll", n=40
            ),
            better="less",
        ),
    ),
    "mvu_mnist": (
        Headline(
            "accuracy of 1-NN in 10 dimensions, n = 60,000, %: MVU",
            ours=Cell("1-NN of held-out digits", {"n": 60000}, "MVU, 10"),
            peers=across("1-NN of held-out digits", {"n": 60000}, "PCA, 10", "pixels"),
            better="more",
        ),
    ),
    "unfoldings": (
        _unfolding("correlation with the parameters, S-curve: MVU", "lesser R, S-curve"),
        _unfolding(
            "correlation with the parameters, roll with a hole: MVU", "lesser R, roll with a hole"
        ),
        _unfolding("neighbourhoods kept, MNIST: MVU", "kept, MNIST, digit 2"),
        _unfolding("neighbourhoods kept, ORL faces: MVU", "kept, ORL faces"),
    ),
}
"""By the benchmark."""
