"""Text cells that a spreadsheet would take for formulas."""

from __future__ import annotations

import re
from typing import Any

from gramian.app.files._columns import number_of

FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
"""How the text of a formula begins, with the apostrophes of an escaped one."""


def escaped(cell: Any) -> Any:
    """A cell with an apostrophe before it where a spreadsheet would take its text for a formula.

    Numbers stay as they are. `unescaped` gives the text back.
    """
    if not isinstance(cell, str) or FORMULA.match(cell) is None or number_of(cell) is not None:
        return cell
    return f"'{cell}"


def unescaped(cell: str) -> str:
    """The text of a cell, without the apostrophe of `escaped`."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) is not None else cell
