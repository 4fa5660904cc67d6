"""``{command}``: shell commands that are run when the page is built, shown with what they print.

Commands of one page share a scratch folder, in page order. A line is a command; its output follows
it. A command that fails breaks the build unless the directive has ``:status:`` with the exit status
that is meant to be shown. With ``:hide:`` nothing is shown.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LIMIT = 120
"""Seconds that a command may take."""


class Command(SphinxDirective):
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "hide": directives.flag,
        "status": directives.nonnegative_int,
        "lines": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        folder = _folder(self.env)
        shown = []
        for line in self.content:
            if not line.strip():
                continue
            status, output = _run(line, folder)
            if status != self.options.get("status", 0):
                raise self.error(f"{line!r} ended with exit status {status}:\n{output}")
            if most := self.options.get("lines"):
                kept = output.splitlines()
                output = "\n".join([*kept[:most], "…"] if len(kept) > most else kept)
            shown.append(f"$ {line}\n{output.rstrip()}".rstrip())
        if "hide" in self.options:
            return []
        block = nodes.literal_block("\n".join(shown), "\n".join(shown))
        block["language"] = "console"
        return [block]


def _folder(env: Any) -> Path:
    folders = env.temp_data.setdefault("command_folder", {})
    if env.docname not in folders:
        folders[env.docname] = tempfile.TemporaryDirectory(prefix="gramian-docs-")
    return Path(folders[env.docname].name)


def _run(line: str, folder: Path) -> tuple[int, str]:
    """Exit status and output of a command, the commands of this Python's environment first."""
    here = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{here}{os.pathsep}{os.environ.get('PATH', '')}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        line, shell=True, cwd=folder, env=environment, text=True, timeout=LIMIT,
        encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("command", Command)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
