"""CONTRIBUTING tells the truth: its rooms, its equations, and its walks, which a fit walks too."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gramian
from gramian.completion import NuclearCompletion
from gramian.metric import KTA
from tests import portable

ROOT = Path(gramian.__file__).parent
GUIDE = ROOT.parent.parent / "CONTRIBUTING.md"
STOP = re.compile(r"^\d\. `([\w/]+\.py)`, `(\w+)`", re.MULTILINE)
MARKS = {"BILGO": "BILGO", "LRO": "LRO", "DML-eig": "DML-eig", "SQLP": "SQLP|thesis", "BiS": "BiS"}
"""What the sources call each paper."""

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="the guide is in the source tree")


def part(title):
    """The lines below a title."""
    text = GUIDE.read_text("utf-8")
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def entered(run, stops):
    """The stops in the order in which a run first comes to them."""
    wanted = {(str(ROOT / file), name): (file, name) for file, name in stops}
    found = []

    def watch(frame, event, argument):
        place = wanted.get((frame.f_code.co_filename, frame.f_code.co_name))
        if event == "call" and place is not None and place not in found:
            found.append(place)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def fit_metric():
    KTA(lam=1.0).fit(*load_iris(return_X_y=True))


def fit_ratings():
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(300 * 200, 20_000, replace=False), 200)
    NuclearCompletion().fit((rows, cols, 3.0 + np.sin(rows) * np.cos(cols)))


@pytest.mark.parametrize(("which", "fit"), [(0, fit_metric), (1, fit_ratings)])
def test_fit_calls_the_functions_of_the_guide_in_order(which, fit):
    stops = STOP.findall(part("Two walks through the code").split("\nFrom `")[1 + which])
    assert 3 <= len(stops) <= 6
    assert entered(fit, stops) == stops


def test_every_room_is_shown():
    first_cells = re.findall(r"^\| (.*?) \|", part("Modules"), re.MULTILINE)
    named = set(re.findall(r"`(\w+)(?:/|\.py)`", " ".join(first_cells)))
    rooms = {path.stem for path in ROOT.iterdir() if path.suffix == ".py"}
    rooms |= {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert named == rooms - {"__init__", "__main__"}


def test_every_equation_is_in_the_module_of_the_guide():
    mark = ""
    for row in part("Where the papers' equations are").strip().splitlines()[2:]:
        paper, _, where = (cell.strip() for cell in row.strip("|").split("|"))
        mark = MARKS[paper.split(" ")[0]] if paper else mark
        for file in re.findall(r"`([\w/]+\.py)`", where):
            assert re.search(mark, (ROOT / file).read_text("utf-8")), f"{file} names no {mark}"


def test_every_file_that_the_texts_name_exists():
    """Files in backticks and targets of links, in this guide, the README and the documentation."""
    top = GUIDE.parent
    texts = [GUIDE, top / "README.md", *top.glob("docs/*.md"), *top.glob("docs/guide/*.md")]
    roots = (top, top / "src", ROOT, ROOT / "app", top / "benchmarks")
    lost = []
    for text in texts:
        words = text.read_text("utf-8")
        files = re.findall(r"`((?:\w+/)+(?:\w+\.py)?|gramian/\w+)`", words)
        lost += [name for name in files if not any((root / name).exists() for root in roots)]
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", words)
        lost += [name for name in links if not (text.parent / name).exists()]
    assert not lost


def test_every_reduction_is_in_its_table():
    told = set(re.findall(r"^\| `(\w+)` \|", part("How to add a reduction"), re.MULTILINE))
    assert told == {path.stem for path in (ROOT / "reductions").glob("*.py")} - {"__init__", "base"}


def test_the_method_of_the_guide_runs(capsys):
    code = re.search(r"```python\n(.*?)```", part("How to add a method"), re.DOTALL)[1]
    exec(compile(code, "guide", "exec"), {})
    assert capsys.readouterr().out.strip() == "CONVERGED True"


def test_lists_of_tests_name_existing_ones():
    base = ROOT.parent.parent
    assert [name for name in portable.TESTS if not (base / name).exists()] == []
    for line in (base / "tests/slow.txt").read_text("utf-8").splitlines():
        file, name = line.split("::")
        assert f"def {name.split('[')[0]}(" in (base / file).read_text("utf-8"), line
