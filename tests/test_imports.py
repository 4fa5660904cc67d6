"""Imports go one way: those that wait until they are needed, too.

The contracts in `pyproject.toml` see every import statement, wherever it stands, and that every
module has a layer. They do not see `import_module("gramian…")`.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).parent
PROJECT = ROOT.parent.parent / "pyproject.toml"
ABOVE = {"gramian", "gramian.__main__"}
"""What may ask for anything: the package itself, which finds names, and the command."""
BY_NAME = {
    "gramian.app.files._frames": "pandas, pyarrow and openpyxl",
    "gramian.methods.conic_backends": "clarabel and scs",
    "gramian.methods.conic_call": "clarabel and scs",
}
"""Where the name of the module is a variable: those of optional extras, never our own."""

pytestmark = pytest.mark.skipif(not PROJECT.exists(), reason="the layers are in the source tree")


def layers():
    """The height of each module of the first level."""
    settings = tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["importlinter"]
    rows = next(c["layers"] for c in settings["contracts"] if c["type"] == "layers")
    return {
        name.strip(): -depth for depth, row in enumerate(rows) for name in re.split("[|:]", row)
    }


def module_of(file):
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def late_imports(file):
    """(line, name) of each call of `import_module`; the name is None where it is a variable."""
    text = file.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if re.search("import_module|__import__", text) else ():
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in ("import_module", "__import__"):
                yield node.lineno, beginning(node.args[0])


def beginning(argument):
    """What is known of the name of a module."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    return argument.value if isinstance(argument, ast.Constant) else None


def room(module):
    return module.split(".")[1] if "." in module else ""


def climbs(module, line, name, heights):
    """What is wrong with a late import, if anything is."""
    place = f"{module}, line {line}"
    if module in ABOVE:
        return None
    if name is None:
        return None if module in BY_NAME else f"{place}: which module that is, nobody can tell"
    if name.split(".")[0] != "gramian" or room(name) == room(module):
        return None
    if not room(name):
        return f"{place}: any module of gramian at all"
    own, asked = heights.get(room(module)), heights.get(room(name))
    if own is None or asked is None or asked >= own:
        return f"{place}: {module} asks for {name}, which is not below it"
    return None


def test_late_imports_respect_the_layers():
    files = sorted(ROOT.rglob("*.py"))
    found = [(module_of(file), *call) for file in files for call in late_imports(file)]
    heights = layers()
    told = [climbs(*call, heights) for call in found]
    assert [line for line in told if line] == []
    assert {module for module, _, name in found if name is None} == set(BY_NAME)


def test_detects_late_imports_against_the_layers():
    heights = layers()
    assert climbs("gramian.result", 1, "gramian.app.report", heights)
    assert climbs("gramian.estimators.persistence", 1, "gramian.", heights)
    assert climbs("gramian.metric.kta", 1, "gramian.kernel", heights)
    assert climbs("gramian.maps.base", 1, None, heights)
    assert not climbs("gramian.neighbours.nearest", 1, "gramian.arrays.torch", heights)
    assert not climbs("gramian.estimators.plotting", 1, "matplotlib", heights)
