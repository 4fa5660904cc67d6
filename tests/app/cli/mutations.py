"""Invocations of the command line, changed at random: no traceback, no hang, no input changed.

    python -m tests.app.cli.mutations 5000
    python -m tests.app.cli.mutations 500 0 columns

Arguments are taken away, doubled, swapped and replaced by odd ones, and files are cut, joined and
scrambled. Each invocation runs in this process with a limit of time. With `columns` the files of
models have theirs shuffled, renamed, left out, doubled or without a header: the answer is that of
the whole file, or a refusal.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from gramian.app.cli.app import run
from tests.fuzz import mutated as broken

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"
LINES = (
    "metric sensors.csv --label state --model m.gramian --time-limit 1",
    "metric flowers.csv --label species --method lmnn --out o.csv --time-limit 1",
    "predict sensors_new.csv --model sensors.gramian --proba --out p.csv",
    "transform sensors_new.csv --model sensors.gramian --out t.npy",
    "embed points.csv --out e.csv --time-limit 1 --no-verdict",
    "cluster moons.csv --clusters 2 --must-link same.csv --cannot-link apart.csv --time-limit 1",
    "complete few.csv --lam 5 --time-limit 1 --model r.gramian --no-verdict",
    "recommend user-003 --model ratings.gramian --top 3",
    "evaluate few.csv --model ratings.gramian",
    "eigen kernel.csv -k 3 --out v.npz",
    "solve --entries correlations.csv --out L.npy --time-limit 1",
    "solve cut.dat-s --time-limit 1",
    "info flowers.csv",
    "report sensors.gramian --data sensors.csv --label state --out r.html",
    "metric messy.xlsx --label state --encode all --id name --missing mean --no-verdict",
    "complete wide.csv --wide --lam 5 --time-limit 1 --no-verdict --report w.html",
    "recommend --all --model ratings.gramian --top 2 --out best.csv",
    "info sensors.gramian --json",
)
ODD = (
    *("", "-1", "0", "1e999", "nan", "no/where", "..", "--", "-x", "🙂", "a,b", "flowers.csv"),
    *("moons.csv", "ratings.gramian", "--json", "--force", "--label", "--drop", "--id", "--encode"),
    *(
        "all",
        "--method",
        "auto",
        "99999999999999999999",
        "x" * 300,
        "/dev/null",
        "--wide",
        "--rank",
    ),
)
SECONDS = 30.0
"""Processor time of the longest invocation that does not hang."""

ENDS = (0, 2, 3, 130)
OUTPUTS = ("--out", "--model", "--report", "--plot", "--dual", "--matrix", "--checkpoint")


def prepared(folder: Path) -> None:
    """The example files, two models made of them."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    lines = (folder / "ratings.csv").read_text().splitlines(keepends=True)
    (folder / "few.csv").write_text("".join(lines[:600]))
    os.chdir(folder)
    ratings = pd.read_csv("few.csv")
    wide = ratings.pivot_table(index=ratings.columns[0], columns=ratings.columns[1])
    wide.droplevel(0, axis=1).to_csv("wide.csv")
    messy = pd.read_csv("sensors.csv").head(60)
    messy.insert(0, "name", [f"s{k}" for k in range(60)])
    messy["when"] = [f"{1 + k % 28}.3.2024 {k % 24}:30" for k in range(60)]
    messy["site"] = ["Gent", "Ulm", None] * 20
    messy.to_excel("messy.xlsx", index=False)
    for line in (
        "metric sensors.csv --label state --method kta --model sensors.gramian --no-verdict",
        "complete few.csv --lam 5 --model ratings.gramian --no-verdict",
    ):
        status, said = outcome(line.split())
        assert status == 0, said


def outcome(words: list[str]) -> tuple[int, str]:
    """The exit status, and what was said; an error of gramian itself is a traceback."""
    said = io.StringIO()
    sys.argv = ["gramian", *words]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            with warnings.catch_warnings():
                run()
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
        except BaseException:
            return 1, said.getvalue() + traceback.format_exc()
    return 0, said.getvalue()


def mutated(words: list[str], rng: np.random.Generator) -> list[str]:
    """The words with two changes at most."""
    words = list(words)
    for _ in range(rng.integers(0, 3)):
        place = int(rng.integers(1, len(words) + 1))
        way = rng.integers(0, 4)
        if way == 0 and len(words) > 1:
            del words[min(place, len(words) - 1)]
        elif way == 1:
            words.insert(place, str(rng.choice(ODD)))
        elif way == 2 and place < len(words):
            words[place] = str(rng.choice(ODD))
        elif len(words) > 2:
            other = int(rng.integers(1, len(words)))
            place = min(place, len(words) - 1)
            words[place], words[other] = words[other], words[place]
    return words


@dataclass
class Outcome:
    """How many invocations ended with which status, the longest, and what went wrong."""

    ends: dict[int, int] = field(default_factory=dict)
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)


def attack(count: int, seed: int = 0) -> Outcome:
    """So many invocations: how they ended, and what went wrong."""
    rng = np.random.default_rng(seed)
    tally = Outcome()
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            prepared(folder)
            kept = {path.name: path.read_bytes() for path in folder.iterdir()}
            for _ in range(count):
                words = mutated(str(rng.choice(LINES)).split(), rng)
                files = [word for word in words if word in kept]
                inputs = dict(kept)
                if files and rng.random() < 0.5:
                    name = str(rng.choice(files))
                    inputs[name] = broken(kept[name], rng)
                    (folder / name).write_bytes(inputs[name])
                started = time.process_time()
                status, said = outcome(words)
                took = time.process_time() - started
                tally.slowest = max(tally.slowest, took)
                tally.ends[status] = tally.ends.get(status, 0) + 1
                changed = [
                    n
                    for n, d in inputs.items()
                    if not _holds(folder / n, d) and not _output(words, n)
                ]
                if status not in ENDS or "Traceback" in said or took > SECONDS or changed:
                    tally.wrong.append(
                        f"{words} ended {status} after {took:.1f} s {changed}\n{said}"
                    )
                for path in folder.iterdir():
                    if path.name not in kept and path.is_file():
                        path.unlink()
                for name, data in kept.items():
                    if not _holds(folder / name, data):
                        (folder / name).write_bytes(data)
        finally:
            os.chdir(home)
    return tally


ASKED = (
    ("predict {} --model sensors.gramian --proba --out p.csv", "sensors_new.csv", "p.csv"),
    ("transform {} --model sensors.gramian --out t.csv", "sensors_new.csv", "t.csv"),
    ("predict {} --model ratings.gramian --out q.csv", "few.csv", "q.csv"),
    ("evaluate {} --model ratings.gramian --json", "few.csv", None),
)
"""Commands that find columns by the names of a fit: the line, the file, and where the answer is."""

SAME = ("shuffled", "one more", "text more")
"""Changes of columns that change nothing of the answer; all others are refused."""


def recolumned(frame: pd.DataFrame, way: str, used: list[str], rng: np.random.Generator) -> str:
    """The file with its columns changed, of which some are used."""
    name = str(rng.choice(used))
    if way == "shuffled":
        frame = frame[rng.permutation(frame.columns)]
    elif way in ("one more", "text more"):
        more = rng.normal(size=len(frame)) if way == "one more" else "words"
        frame.insert(int(rng.integers(0, len(frame.columns) + 1)), "extra", more)
    elif way == "renamed":
        frame = frame.rename(columns={name: str(rng.choice(["x0", name.upper() + "_", "colour"]))})
    elif way == "left out":
        frame = frame.drop(columns=name)
    elif way == "doubled":
        frame.insert(0, name, frame[name], allow_duplicates=True)
    return frame.to_csv(index=False, header=way != "headless")


def attack_columns(count: int, seed: int = 0) -> Outcome:
    """So many files whose columns were changed: wrong is any other answer than a refusal."""
    rng = np.random.default_rng(seed)
    tally = Outcome()
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            prepared(folder)
            models = {"few.csv": ["user", "item"], "sensors_new.csv": None}
            whole = {line: _answer(line.format(file), answer) for line, file, answer in ASKED}
            for _ in range(count):
                line, file, answer = ASKED[int(rng.integers(0, len(ASKED)))]
                frame = pd.read_csv(file)
                used = models[file] or list(frame.columns)
                way = str(rng.choice([*SAME, "renamed", "left out", "doubled", "headless"]))
                Path("changed.csv").write_text(recolumned(frame, way, used, rng))
                status, said = _answer(line.format("changed.csv"), answer)
                tally.ends[status] = tally.ends.get(status, 0) + 1
                known = said.replace("changed.csv", file) == whole[line][1]
                right = status == 0 and known if way in SAME else status == 2 or known
                if not right or "Traceback" in said:
                    tally.wrong.append(f"{way}: {line} ended {status}\n{said[:500]}")
        finally:
            os.chdir(home)
    return tally


def _answer(line: str, file: str | None) -> tuple[int, str]:
    """How a command ended, and its answer: what it wrote, or what it printed."""
    if file is not None:
        Path(file).unlink(missing_ok=True)
    status, said = outcome(line.split())
    if status != 0:
        return status, said
    if file is not None:
        return status, Path(file).read_text()
    return status, said[said.index("{") :]


def _output(words: list[str], name: str) -> bool:
    """Whether a file is named as an output only, which replaces one of its kind."""
    places = [place for place, word in enumerate(words) if word == name]
    return bool(places) and all(words[place - 1] in OUTPUTS for place in places)


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


if __name__ == "__main__":
    way = attack_columns if sys.argv[3:] == ["columns"] else attack
    found = way(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(f"{found.ends}, the slowest took {found.slowest:.1f} s, {len(found.wrong)} wrong")
    print(*found.wrong, sep="\n")
