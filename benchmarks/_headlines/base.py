"""A headline: a figure of gramian, the paper's and those of peers, in the results of a run.

A `Cell` refers to the saved results of a run, so that only names are written here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Record = dict[str, Any]
Row = dict[str, Any]
Part = Literal["ours", "paper"]
Better = Literal["less", "more", ""]
"""Which of two figures is better; "" if neither is."""

NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)


# --- pointers ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A cell of the results of a benchmark.

    `caption` is the beginning of the table's caption, up to the end of a word, and `row` the values
    of some cells of the row; the first such row is taken. `part` selects one of the two figures of
    a `Versus`. The row of an `optional` cell may be missing, its column may not.
    """

    caption: str
    row: Row
    column: str
    part: Part = "ours"
    optional: bool = False

    def read(self, record: Record) -> Any:
        """Its value; LookupError if there is no such cell."""
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
    """Our figure of a cell, which may be a `Versus`."""
    return cell["ours"] if isinstance(cell, dict) else cell


# --- headlines -----------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """A comparison and its figures; `benchmark` if it is not the item's."""

    what: str
    ours: Cell
    paper: Cell | None = None
    peers: Mapping[str, Cell] = field(default_factory=dict)
    """By name; the best one is shown."""
    better: Better = ""
    benchmark: str = ""

    def figures(self, record: Record | None) -> "Figures":
        """The values of the cells; empty without a record."""
        if record is None:
            return Figures()
        peers = {name: cell.read(record) for name, cell in self.peers.items()}
        peer = _best(peers, self.better)
        paper = self.paper.read(record) if self.paper else None
        return Figures(self.ours.read(record), paper, peers.get(peer), peer)

    def lost_to(self, record: Record | None) -> dict[str, Any]:
        """The figures that are better than ours, by their source."""
        found = self.figures(record)
        others = {"the paper": found.paper, found.peer: found.peers}
        return {
            who: figure
            for who, figure in others.items()
            if is_better(figure, found.ours, self.better)
        }


@dataclass(frozen=True)
class Figures:
    """The figures of a headline, and the name of the best peer."""

    ours: Any = None
    paper: Any = None
    peers: Any = None
    peer: str = ""


def is_better(theirs: Any, ours: Any, better: Better) -> bool:
    """Whether their figure is better than ours; False if unknown."""
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
    """Whether the cell is a lower bound."""
    return isinstance(cell, str) and cell.lstrip().startswith(">")


def _best(cells: Mapping[str, Any], better: Better) -> str:
    """The name of the best cell: the first one if `better` is "", "" if all are empty."""
    given = [name for name, cell in cells.items() if cell is not None]
    if not better:
        return given[0] if given else ""
    sign = 1 if better == "less" else -1

    def place(name: str) -> tuple[bool, bool, float]:
        value = number(cells[name])
        return value is None, _is_bound(cells[name]), sign * (value or 0.0)

    return min(given, key=place, default="")


def line(
    what: str, caption: str, row: Row, column: str, rivals: Iterable[str] | Mapping[str, str] = (),
    *, paper: str | Cell | None = None, better: Better = "less", benchmark: str = "",
) -> Headline:  # fmt: skip
    """A headline within one table.

    Parameters
    ----------
    row : dict
        The row of our figure. Its last key names the rivals, whose rows have the same other cells.
    rivals : names or dict of names by the name shown
        A name that begins with "|" is a column of our row.
    paper : str or Cell, optional
        The name of the row with the paper's figure; "|" and a column in our row.
    """
    *others, (naming, _) = row.items()

    def at(place: str, part: Part = "ours") -> Cell:
        if place.startswith("|"):
            return Cell(caption, row, place[1:] or column, part)
        return Cell(caption, {naming: place, **dict(others)}, column, part)

    printed = at(paper, "paper") if isinstance(paper, str) else paper
    if not isinstance(rivals, Mapping):
        rivals = {rival.removeprefix("|"): rival for rival in rivals}
    peers = {name: at(place) for name, place in rivals.items()}
    return Headline(what, Cell(caption, row, column), printed, peers, better, benchmark)
