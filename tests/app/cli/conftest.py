"""A folder with files, and the command line as a function."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_swiss_roll

from gramian.app.cli import main
from tests.app.cli.data import FLOWERS, ratings

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the examples name, and some of our own in their place."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    frame = FLOWERS.data.assign(species=FLOWERS.target_names[FLOWERS.target])
    frame.to_csv("flowers.csv", index=False)
    frame.drop(columns="species").iloc[::7].to_csv("new.csv", index=False)
    roll = make_swiss_roll(120, random_state=0)[0]
    pd.DataFrame(roll, columns=list("xyz")).to_csv("points.csv", index=False)
    np.savetxt("same.csv", [[0, 1], [1, 2], [5, 9]], fmt="%d", delimiter=",")
    np.savetxt("apart.csv", [[0, 60], [5, 80]], fmt="%d", delimiter=",")
    ratings().to_csv("ratings.csv", index=False)
    A = np.random.default_rng(0).standard_normal((30, 30))
    np.save("kernel.npy", A @ A.T)
    C = np.corrcoef(np.random.default_rng(0).standard_normal((5, 7)))
    C[0, 1] = C[1, 0] = -0.99
    np.savetxt("correlations.csv", C, delimiter=",")
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
