"""The README's snippets run as printed and print what they say, figures of the run apart."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def snippets() -> list[tuple[str, str]]:
    return re.findall(r"```python\n(.*?)```\n```\n(.*?)```", README.read_text("utf-8"), re.S)


def without_run_figures(text: str) -> str:
    """Mask what depends on rounding and on the machine: gaps and seconds."""
    text = re.sub(r"at most \S+ \(relative (\S+)\)", "at most GAP", text)
    return re.sub(r"[\d.e-]+ s\b", "TIME s", text)


def test_snippets_print_what_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    assert len(snippets()) == 7
    for code, said in snippets():
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), scope)
        assert without_run_figures(printed.getvalue()) == without_run_figures(said)
    assert scope["kta"].certificate_.relative_gap < 1e-10
