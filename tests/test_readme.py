"""The README's snippets run as printed, and their figures are those of the run."""

from contextlib import redirect_stdout
from io import StringIO

from tests.first_screen import README, alike, snippets

MOST_LINES = 120


def test_snippets_print_what_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    assert len(snippets()) == 3
    for code, said in snippets():
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), scope)
        assert alike(printed.getvalue(), said), printed.getvalue()


def test_figures_may_differ_by_a_sample_and_words_not_at_all():
    assert alike("KTA: 6.7% errors", "KTA: 5.6% errors") and alike("RMSE 0.56", "RMSE 0.57")
    assert not alike("KTA: 6.7% errors", "KTA: 5.1% errors")
    assert not alike("RMSE 0.56", "RMSE 0.66") and not alike("RMSE 0.56", "MAE 0.56")


def test_the_first_screen_is_short():
    assert len(README.splitlines()) <= MOST_LINES
