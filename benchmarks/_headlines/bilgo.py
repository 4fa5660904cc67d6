"""The headlines of BILGO (Hao, Yuan, Ghanem 2013)."""

from benchmarks._headlines.base import Better, Cell, Headline, line
from benchmarks._headlines.shared import error, fit_seconds

FIG_2 = {"k": 300, "method": "BILGO"}, ("Journée et al.", "random conic pursuit")
PRINTED_TABLE_4 = {"d": 9000, "method": "newton-lanczos 1e-8"}


def _fig_2(what: str, column: str, better: Better) -> Headline:
    row, rivals = FIG_2
    what = f"{what} after 300 iterations, w1a{', %' if 'test' in column else ''}: BILGO"
    return line(what, "w1a, λ", row, column, rivals, better=better)


def _unfolding_seconds(on: str) -> Headline:
    """Seconds of bilgo_table3 to the projected gradient's last objective, n = 3000."""
    what, rivals = f"seconds to the last F of Nesterov-PG, {on}, n = 3000", "|its seconds to that F"
    row, column = {"set": on, "n": 3000}, "auto's seconds to that F"
    return line(what, "Verdicts", row, column, {"Nesterov-PG": rivals})


def _leading(what: str, column: str, method: str, **peers: Cell) -> Headline:
    printed = Cell("gaussian", PRINTED_TABLE_4, column, "paper")
    ours = Cell("gaussian", {"d": 9000, "method": method}, column)
    return Headline(what, ours, printed, peers, better="less")


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Fig. 2": (_fig_2("F/F* − 1", "F/F* − 1", "less"), _fig_2("test accuracy", "test %", "more")),
    "Table 1": (
        fit_seconds("mnist", "KTA", "BILGO-KTA-LS", "KTA-Lbfgs"),
        fit_seconds("splice", "LMNN", "BILGO-LMNN"),
    ),
    "Table 2": (
        error("mnist", "KTA", "BILGO-KTA"), error("isolet", "KTA", "BILGO-KTA-LS"),
        error("w1a", "LMNN", "BILGO-LMNN"),
    ),
    "Table 3": (
        line("seconds, mnist, n = 3000", "mnist", {"n": 3000, "solver": "auto"}, "seconds",
             ("Nesterov-PG",), paper="BILGO-LS"),
        line("certified relative gap at the end, w1a, n = 3000", "w1a",
             {"n": 3000, "solver": "auto"}, "certified relative gap", ("Nesterov-PG",)),
    ),
    "Fig. 3": (_unfolding_seconds("w1a"),),
    "Fig. 4": (_unfolding_seconds("mnist"),),
    "Table 4": (
        _leading("seconds, gaussian, d = 9000, tolerance 1e-6", "seconds", "krylov 1e-6",
                 ARPACK=Cell("gaussian", {"d": 9000, "method": "eigsh 1e-6"}, "seconds")),
        _leading("seconds ÷ those of eigs, d = 9000: Newton–Lanczos", "time / eigsh",
                 "newton-lanczos 1e-8"),
    ),
}  # fmt: skip
"""By table or figure, one to three each."""
