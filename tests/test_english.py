"""The check of banned phrases, which is part of `make lint`."""

import pytest

from tests import english


def test_no_banned_phrases_in_cleaned_files():
    assert [message for path in english.cleaned() for message in english.found(path)] == []


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "The tolerance is\n1e-6 unless told otherwise.\n", 2),
        ("module.py", 'def f():\n    """Take 40 columns unless told."""\n', 2),
        ("module.py", "a = 1\nb = 2  # unless told\n", 2),
    ],
)
def test_finds_phrase_with_its_line(name, text, line, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    assert f"{path}:{line}: 'unless told': write by default" in english.found(path)


def test_ignores_names_in_code(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("told = beside(x, y)\n")
    assert list(english.found(path)) == []
