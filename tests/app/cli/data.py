"""Samples and ratings for the command line."""

import json

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

FLOWERS = load_iris(as_frame=True)


def ratings() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = 3 + rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    i, j = np.nonzero(rng.random(values.shape) < 0.5)
    names = np.array(["alice", "bob", *(f"user {k}" for k in range(2, 30))])
    return pd.DataFrame(
        {"user": names[i], "item": [f"film {k}" for k in j], "rating": values[i, j].round()}
    )


def answer(run, *arguments):
    """The JSON of a command that succeeds."""
    status, out, err = run(*arguments, "--json")
    assert status == 0, err
    return json.loads(out)


def gaps(name: str = "gaps.csv") -> None:
    frame = pd.read_csv("flowers.csv").assign(plant=[f"plant {k}" for k in range(150)])
    frame.iloc[3, 0] = frame.iloc[90, 2] = None
    frame.to_csv(name, index=False)


def refused(run, *arguments):
    status, out, err = run(*arguments)
    assert status == 2 and out == "" and "Traceback" not in err, err
    return " ".join(err.split())


def ships() -> pd.DataFrame:
    """A table of categories only, sorted by class as R's Titanic is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "class": np.repeat(["1st class", "2nd class", "3rd class"], 40),
            "sex": rng.choice(["man", "women"], 120),
        }
    )
    lives = np.where(frame["sex"] == "women", 0.9, 0.2) > rng.random(120)
    return frame.assign(survived=np.where(lives, "yes", "no"))


def as_r_writes(frame, path, **options):
    frame.index = range(1, len(frame) + 1)
    frame.to_csv(path, quoting=2, **options)


def interrupt(*given, **more):
    raise KeyboardInterrupt


def numbered(size: int = 60) -> pd.DataFrame:
    """Samples with an id, a shuffled number and classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(kind=np.where(x[:, 0] > 0, "u", "v"))
    frame.insert(0, "patientId", np.repeat(np.arange(size // 2), 2) + 5000)
    frame.insert(1, "visit", rng.permutation(size) + 1)
    return frame.assign(grid=np.arange(size) // 2)
