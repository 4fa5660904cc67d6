"""The headlines of the thesis on SQLP (Wu 2011)."""

from benchmarks._headlines.base import Cell, Headline, down
from benchmarks._headlines.shared import UNFOLDINGS, unfolding

CONIC = (
    "SCSDP whole cone, Clarabel", "SCSDP decomposed, Clarabel", "SCSDP, SCS", "SQLP, Clarabel",
    "SQLP, SCS", "direct, Clarabel", "direct, SCS",
)  # fmt: skip


def _conic_seconds(m: int) -> Headline:
    """auto beside the conic solvers, certified or not."""
    return Headline(
        f"seconds, m = {m}",
        ours=Cell("Seconds", {"method": "auto"}, f"m = {m}"),
        paper=Cell("Seconds", {"method": "SQLP, Clarabel"}, f"m = {m}", "paper"),
        peers=down("Seconds", "method", CONIC, f"m = {m}"),
        better="less",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "Fig. 3.1": (
        unfolding(
            "correlation with the roll's parameters, the lesser: MVU", "lesser R, Swiss roll"
        ),
        Headline(
            "seconds to unfold 1000 points of the roll: MVU",
            ours=Cell("Swiss roll", {"method": "MVU"}, "seconds"),
            peers=down("Swiss roll", "method", UNFOLDINGS, "seconds"),
            better="less",
        ),
    ),
    "Table 3.1": (_conic_seconds(10), _conic_seconds(50)),
    "Fig. 3.2": (_conic_seconds(30), _conic_seconds(100)),
    "Table 3.2": (_conic_seconds(10), _conic_seconds(50)),
    "Fig. 3.3": (_conic_seconds(30), _conic_seconds(100)),
}
"""By the table or figure; one to three each."""
