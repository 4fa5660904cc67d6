"""The README's first screen, run by whatever Python runs this: of an installed wheel, say.

    python tests/first_screen.py

Runs the first snippet and compares what it prints, and the commands on copies of the example files.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
WAITS = "--open"
"""A command with this serves a page until Ctrl-C."""


FIGURE = re.compile(r"(\d+(?:\.\d+)?)(%?)")
ROOM = {"%": 1.2, "": 0.02}
"""How far a figure may be off: one of 89 held-out samples, and rounding."""


def snippets() -> list[tuple[str, str]]:
    """The snippets in Python, and what the README says that they print."""
    return re.findall(r"```python\n(.*?)```\n```\n(.*?)```", README, re.S)


def alike(printed: str, said: str) -> bool:
    """Whether two texts agree but for small differences of their figures."""
    if FIGURE.sub("#", printed) != FIGURE.sub("#", said):
        return False
    both = zip(FIGURE.findall(printed), FIGURE.findall(said), strict=True)
    return all(unit == of and abs(float(x) - float(y)) <= ROOM[unit] for (x, unit), (y, of) in both)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    code, said = snippets()[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        shutil.copytree(ROOT / "examples" / "data", folder)
        where = run([sys.executable, "-c", "import gramian; print(gramian.__file__)"], folder)
        print(f"gramian is {where.strip()}")
        printed = run([sys.executable, "-c", code], folder)
        if not alike(printed, said):
            sys.exit(f"the README says\n{said}and the snippet prints\n{printed}")
        gramian = Path(sys.executable).with_name("gramian")
        section = README.split("## From the command line")[1]
        for line in re.findall(r"^gramian .*$", section.split("```")[1], re.M):
            words = shlex.split(line.partition("#")[0])
            if WAITS in words:
                continue
            print(f"$ {shlex.join(words)}")
            print(run([str(gramian), *words[1:]], folder).partition("\n  file")[0])


if __name__ == "__main__":
    main()
