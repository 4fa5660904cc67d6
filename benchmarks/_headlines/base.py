"""What a headline is: a figure of ours, the paper's and other people's, in the results of a run.

A `Cell` points into the saved results of a run, so that nothing here is typed in but names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Record = dict[str, Any]
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
