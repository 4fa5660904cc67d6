"""A folder with files, and the command line as a function."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_swiss_roll

from gramian.app.cli import main
from gramian.app.cli.exits import HEARD
from gramian.kernel import NPKL, RegPCP
from gramian.metric import AutoMetric
from tests.app.cli.data import FLOWERS, ratings

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"


@pytest.fixture(autouse=True)
def no_interrupt():
    """Forget Ctrl-C of an earlier test."""
    HEARD.clear()


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """`auto` chooses between two metrics and two kernels; `test_first_examples` has all."""
    monkeypatch.setattr(AutoMetric, "_others", lambda self, classes: [])
    monkeypatch.setattr("gramian.kernel.auto_kernel.LEARNERS", (RegPCP, NPKL))


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """The files that the examples name, and some of our own in their place."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    frame = FLOWERS.data.assign(species=FLOWERS.target_names[FLOWERS.target])
    frame.to_csv(folder / "flowers.csv", index=False)
    frame.drop(columns="species").iloc[::7].to_csv(folder / "new.csv", index=False)
    roll = make_swiss_roll(120, random_state=0)[0]
    pd.DataFrame(roll, columns=list("xyz")).to_csv(folder / "points.csv", index=False)
    np.savetxt(folder / "same.csv", [[0, 1], [1, 2], [5, 9]], fmt="%d", delimiter=",")
    np.savetxt(folder / "apart.csv", [[0, 60], [5, 80]], fmt="%d", delimiter=",")
    ratings().to_csv(folder / "ratings.csv", index=False)
    A = np.random.default_rng(0).standard_normal((30, 30))
    np.save(folder / "kernel.npy", A @ A.T)
    C = np.corrcoef(np.random.default_rng(0).standard_normal((5, 7)))
    C[0, 1] = C[1, 0] = -0.99
    np.savetxt(folder / "correlations.csv", C, delimiter=",")
    return folder


@pytest.fixture(scope="session")
def models(originals, tmp_path_factory):
    """A metric of the flowers and a completion of the ratings, fitted once."""
    folder = tmp_path_factory.mktemp("models")
    lines = (
        "metric flowers.csv --label species --method kta --no-verdict --model flowers.gramian",
        "complete ratings.csv --lam 5 --no-verdict --model ratings.gramian",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in lines:
            command, file, *options = line.split()
            patch.setattr(sys, "argv", ["gramian", command, str(originals / file), *options])
            with suppress(SystemExit):
                main()
    return folder


@pytest.fixture
def fitted(folder, models):
    """The folder with both models."""
    shutil.copytree(models, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def folder(originals, tmp_path, monkeypatch):
    """A new folder with these files, the current directory of the test."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command: its exit status, what it printed, and what it complained of."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gramian", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as done:
            status = done.code or 0
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def machines(folder):
    """An export with units in its header, dates as they are written at home, and gaps."""
    rng = np.random.default_rng(0)
    n = 60
    when = pd.date_range("2024-01-03", periods=n, freq="7h")
    frame = pd.DataFrame(
        {
            "Machine ID": [f"M-{k:04d}" for k in range(n)],
            "Measured at": when.strftime("%d.%m.%Y %H:%M"),
            "Temp (°C)": rng.normal(40, 3, n).round(2),
            "Pressure [bar]": rng.normal(1, 0.3, n).round(3),
            "Flow, l/min": rng.normal(300, 60, n).round(1),
            "State": rng.choice(["ok", "worn"], n),
        }
    )
    frame.to_csv("machines.csv", index=False)
    return frame


@pytest.fixture
def classes(folder):
    """Thirty rows of three classes in abc.csv."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=list("ab")).assign(
        c=["x", "y", "z"] * 10
    )
    frame.to_csv("abc.csv", index=False)
    return frame
