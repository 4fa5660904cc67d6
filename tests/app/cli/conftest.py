"""A folder with files, and the command line as a function."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_swiss_roll

from gramian.app.cli import main
from gramian.kernel import NPKL, RegPCP
from gramian.metric import AutoMetric
from tests.app.cli.data import FLOWERS, ratings

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """`auto` chooses between two metrics and two kernels; `test_first_examples` has all."""
    monkeypatch.setattr(AutoMetric, "_others", lambda self, classes: [])
    monkeypatch.setattr("gramian.kernel.auto_kernel.LEARNERS", (RegPCP, NPKL))


@pytest.fixture(scope="session")
def files(tmp_path_factory):
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


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A new folder with these files, the current directory of the test."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
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
