"""The headlines of BILGO (Hao, Yuan, Ghanem 2013)."""

from benchmarks._headlines.base import Cell, Headline, down
from benchmarks._headlines.shared import error, fit_seconds


def _unfolding_seconds(on: str, n: int) -> Headline:
    """Seconds until the projected gradient's last objective, along the way of bilgo_table3."""
    row = {"set": on, "n": n}
    return Headline(
        f"seconds to the last F of Nesterov-PG, {on}, n = {n}",
        ours=Cell("Verdicts", row, "auto's seconds to that F"),
        peers={"Nesterov-PG": Cell("Verdicts", row, "its seconds to that F")},
        better="less",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Fig. 2": (
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
    "Table 1": (
        fit_seconds("mnist", "KTA", "BILGO-KTA-LS", "KTA-Lbfgs"),
        fit_seconds("splice", "LMNN", "BILGO-LMNN"),
    ),
    "Table 2": (
        error("mnist", "KTA", "BILGO-KTA"),
        error("isolet", "KTA", "BILGO-KTA-LS"),
        error("w1a", "LMNN", "BILGO-LMNN"),
    ),
    "Table 3": (
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
    "Fig. 3": (_unfolding_seconds("w1a", 3000),),
    "Fig. 4": (_unfolding_seconds("mnist", 3000),),
    "Table 4": (
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
}
"""By the table or figure; one to three each."""
