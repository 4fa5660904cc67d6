"""The headlines of the thesis on SQLP (Wu 2011)."""

from benchmarks._headlines.base import Headline, line
from benchmarks._headlines.shared import UNFOLDINGS, unfolding

CONIC = (
    "SCSDP whole cone, Clarabel", "SCSDP decomposed, Clarabel", "SCSDP, SCS", "SQLP, Clarabel",
    "SQLP, SCS", "direct, Clarabel", "direct, SCS",
)  # fmt: skip


def _conic(*orders: int) -> tuple[Headline, ...]:
    """auto and the conic solvers, certified or not."""
    row, printed = {"method": "auto"}, "SQLP, Clarabel"
    return tuple(
        line(f"seconds, m = {m}", "Seconds", row, f"m = {m}", CONIC, paper=printed) for m in orders
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Fig. 3.1": (
        unfolding(
            "correlation with the roll's parameters, the lesser: MVU", "lesser R, Swiss roll"
        ),
        line("seconds to unfold 1000 points of the roll: MVU", "Swiss roll", {"method": "MVU"},
             "seconds", UNFOLDINGS),
    ),
    "Table 3.1": _conic(10, 50),
    "Fig. 3.2": _conic(30, 100),
    "Table 3.2": _conic(10, 50),
    "Fig. 3.3": _conic(30, 100),
}  # fmt: skip
"""By table or figure, one to three each."""
