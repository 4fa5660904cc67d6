"""The group of commands: what it says about arguments that are no command."""

import pytest

import gramian
from gramian.app.cli.app import COMMANDS


def test_without_arguments_the_help_is_shown(run):
    status, out, err = run()
    assert status == 2 and "metric" in out + err and "Traceback" not in err


def test_version_is_printed(run):
    assert run("--version")[:2] == (0, f"gramian, version {gramian.__version__}\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("metrics points.csv", "Did you mean metric?"),
        ("fit points.csv", f"The commands are {', '.join(COMMANDS)} ("),
        ("None", "No such command 'None'. The commands are metric,"),
        ("points.csv", "Write one before the file: 'gramian info points.csv' describes it"),
        ("no.csv", "'no.csv' is no command"),
        ("help", "Did you mean 'gramian --help'?"),
        ("help embed", "Did you mean 'gramian embed --help'?"),
        ("version", "Did you mean 'gramian --version'?"),
        ("-V", "No such option '-V'"),
    ],
)
def test_unknown_commands_are_rejected_with_a_suggestion(line, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "points.csv").write_text("a,b\n1,2\n")
    status, out, err = run(*line.split())
    assert status == 2 and out == "" and message in " ".join(err.split())


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Pionts.csv", "did you mean 'points.csv'?"), ("other/p.csv", "check the name")],
)
def test_error_for_missing_file_suggests_the_nearest_name(name, hint, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ending in ("csv", "gramian", "html"):
        (tmp_path / f"points.{ending}").write_text("a,b\n1,2\n")
    status, _, err = run("info", name)
    assert status == 2 and f"there is no such file or folder; {hint}" in " ".join(err.split())


def test_asks_to_download_an_address(run):
    status, _, err = run("info", "https://example.com/points.csv")
    assert status == 2 and "an address on the web; download the file first" in " ".join(err.split())
