"""The package as people meet it: a light import, a table of solvers, the public names."""

import subprocess
import sys
from pathlib import Path

import pytest

import gramian as gm

HEAVY = ["numba", "torch", "matplotlib", "pandas", "tqdm", "clarabel", "scs"]
SLOW = [*HEAVY, "numpy", "scipy", "sklearn", "rich", "importlib.metadata"]
"""What a name may bring along, but not a bare import nor a look at the help."""


def fresh(code):
    """What a fresh interpreter prints."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_import_is_light():
    loaded = fresh(f"import sys, gramian; print(*[m for m in {SLOW} if m in sys.modules])")
    assert loaded == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_do_not_import_the_library(option):
    pytest.importorskip("click")
    code = """
import io, sys
from contextlib import redirect_stdout
from gramian.app.cli import main
sys.argv = ["gramian", "%s"]
told = io.StringIO()
try:
    with redirect_stdout(told):
        main()
except SystemExit as end:
    assert not end.code
assert "gramian" in told.getvalue()
print(*[m for m in %s if m in sys.modules])
"""
    assert fresh(code % (option, SLOW)) == []


def test_the_package_is_a_command():
    pytest.importorskip("click")
    run = [sys.executable, "-m", "gramian", "--help"]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "-m gramian [OPTIONS] COMMAND" in told


def test_estimators_do_not_import_the_compiler():
    assert fresh("import sys, gramian.metric; print('numba' in sys.modules)") == ["False"]


def test_parts_that_are_not_listed_are_found_too():
    names = ["arrays", "linalg", "methods", "proofs", "reductions"]
    code = """
import sys
from pathlib import Path
for name in %s:
    for loaded in [module for module in sys.modules if module.split(".")[0] == "gramian"]:
        del sys.modules[loaded]
    import gramian
    print(getattr(gramian, name).__name__)
"""
    assert fresh(code % names) == [f"gramian.{name}" for name in names]


def test_lazy_names_can_be_imported_and_pickled():
    code = """
import pickle
from gramian import minimize, metric
from gramian import *
import gramian, gramian as gm
assert minimize is gm.minimize is gm.run.minimize and metric is gm.metric
assert pickle.loads(pickle.dumps(gm.Status.CONVERGED)) is gm.Status.CONVERGED
assert pickle.loads(pickle.dumps(gm.minimize)) is minimize
assert set(gm.__all__) <= set(globals()) and set(gm.__all__) == set(dir(gm))
print(gm.__version__)
"""
    assert fresh(code) == [gm.__version__]


def test_a_small_problem_is_solved_without_compiling():
    code = """
import sys, numpy as np, gramian as gm
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.objectives import Composite
gm.minimize(gm.Problem(Composite(Entries([[0, 1], [1, 1]], 3), Squared(1.0), 0.1)))
gm.minimize(gm.problems.top_eigen(np.eye(3)))
print(*[m for m in %s if m in sys.modules])
"""
    assert fresh(code % [*HEAVY, "sklearn"]) == []


@pytest.mark.parametrize("name", gm.__all__)
def test_public_names_are_importable(name):
    assert getattr(gm, name) is not None
    assert name in dir(gm)


def documented_names():
    """The names in the reference by module, without the application."""
    found = {}
    for page in (Path(__file__).parents[1] / "docs" / "api").glob("*.rst"):
        for part in page.read_text("utf-8").split(".. currentmodule:: gramian.")[1:]:
            module, *lines = part.splitlines()
            listed = [line.strip() for line in lines if line.startswith("   ")]
            names = {name for name in listed if name.isidentifier()}
            if module not in gm._ApplicationAlias.SHORT:
                found.setdefault(module, set()).update(names)
    return found


def test_documented_names_are_listed():
    documented = documented_names()
    assert {"constraints", "graph", "losses", "maps", "objectives"} <= set(documented)
    assert set(documented) <= set(gm.__all__)
    for module, names in documented.items():
        assert names <= set(getattr(gm, module).__all__), module


@pytest.mark.parametrize("name", ["kta", "linear_separation", "quadratic", "top_eigen"])
def test_problems_by_name(name):
    assert name in gm.problems.__all__
    assert callable(getattr(gm.problems, name))


@pytest.mark.parametrize("name", ["KTA", "LinearSeparation"])
def test_estimators_by_name(name):
    assert isinstance(getattr(gm.metric, name), type)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'metrics'; did you mean metric"):
        gm.metrics  # noqa: B018


def test_available_prints_a_table_of_the_solvers():
    table = gm.solvers.available()
    lines = str(table).splitlines()
    names = ["auto", "bilgo", "lro", "lbfgs", "projected-gradient", "journee"]
    assert set(names) <= set(table)
    assert len(lines) == len(table) == len(list(table))
    for line, name in zip(lines, table, strict=True):
        assert line.startswith(name)
        assert len(line.split("  ")) >= 3  # name, what it does, what it accepts
    # The columns line up.
    assert len({line.index(row[1]) for line, row in zip(lines, table.rows, strict=True)}) == 1


def test_the_list_of_slow_tests_names_tests():
    folder = Path(__file__).parent
    for line in (folder / "slow.txt").read_text("utf-8").splitlines():
        file, name = line.split("::")
        assert f"def {name.split('[')[0]}(" in (folder.parent / file).read_text("utf-8")
