"""Docstrings are written for people at a prompt; this makes them safe to read as reST."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"``.+?``|`[^`]+`")


def plain_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """|x| is an absolute value and X* a conjugate or an optimum, not markup."""
    for place, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", ".. ")):
            continue
        parts, end = [], 0
        for code in CODE.finditer(line):
            parts += [_escaped(line[end : code.start()]), code.group()]
            end = code.end()
        lines[place] = "".join([*parts, _escaped(line[end:])])


def _escaped(text: str) -> str:
    return re.sub(r"(?<![\\|])\|(?!\|)", r"\\|", text)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", plain_bars, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
