"""The README's snippets run as printed, and their figures are those of the run."""

from contextlib import redirect_stdout
from io import StringIO

from tests.first_screen import README, ROOT, alike, snippets

MOST_LINES = 120


def test_snippets_print_the_output_in_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(snippets()) == 3
    for code, said in snippets():  # each in a scope of its own: it may be pasted alone
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        assert alike(printed.getvalue(), said), printed.getvalue()


def test_comparison_tolerates_small_numeric_differences_only():
    assert alike("KTA: 6.7% errors", "KTA: 5.6% errors") and alike("RMSE 0.56", "RMSE 0.57")
    assert not alike("KTA: 6.7% errors", "KTA: 5.1% errors")
    assert not alike("RMSE 0.56", "RMSE 0.66") and not alike("RMSE 0.56", "MAE 0.56")


def test_the_first_screen_is_short():
    assert len(README.splitlines()) <= MOST_LINES


def test_commands_begin_in_the_folder_of_their_files():
    first, *lines = README.split("## From the command line")[1].split("```")[1].split("\n")[1:-1]
    assert first == "cd examples/data"
    read = [line.split()[2] for line in lines if line.split()[1] != "recommend"]
    assert all((ROOT / "examples" / "data" / name).exists() for name in read)


def test_the_name_gm_is_introduced_before_its_use():
    assert -1 < README.find("import gramian as gm") < README.find("`gm.")
