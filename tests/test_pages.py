"""The snippets of each page of the documentation run if they are copied from the first one on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SNIPPET = re.compile(r"^```(?:\{testcode\}|python)\n((?::\w+:.*\n)*)(.*?)^```", re.S | re.M)
PAGES = sorted(
    page.relative_to(DOCS).as_posix()
    for page in (*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"))
    if SNIPPET.search(page.read_text("utf-8"))
)


@pytest.mark.parametrize("page", PAGES)
def test_page_defines_every_name_that_its_snippets_use(page):
    code = "\n".join(part for _, part in SNIPPET.findall((DOCS / page).read_text("utf-8")))
    checked = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,E9", "-"]
    found = subprocess.run(checked, input=code, text=True, capture_output=True, check=False)
    assert found.returncode == 0, found.stdout
