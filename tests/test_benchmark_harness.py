"""The benchmark harness: reports, times, child processes, peers, data and the command line."""

import importlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from benchmarks.harness import exchange, peers, timing
from benchmarks.harness.cli import main
from benchmarks.harness.context import Context
from benchmarks.harness.data import DataMissingError, data_folder, load_arrays, load_set
from benchmarks.harness.kept import Kept
from benchmarks.harness.peers import Peer, PeerUnavailableError
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table, Versus, write_report
from benchmarks.harness.timing import in_child, measure

TOY = """
import os, subprocess, sys, time
import numpy as np
from benchmarks.harness.report import Table, Versus

TITLE = "A toy"
PAPER = "Nobody, Table 0"
NEEDS_DATA = ("blobs",)

def run(ctx):
    timing = ctx.measure(lambda: ctx.load("blobs").X.sum())
    table = Table("Sums", ["set", "sum", "seconds"])
    table.add("blobs", Versus(timing.result, 6.5), timing.median)
    ctx.plot("descent", {"toy": ([1, 2], [1.0, 0.1])}, "iteration", "gap", logy=True)
    return ctx.report([table], notes=["repeat = %d" % ctx.repeat])

def fill(mb):
    return float(np.ones(mb * 2**17).sum())

def fail():
    raise ValueError("no such luck")

def sleep(pid_file):
    with open(pid_file + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(pid_file + ".part", pid_file)
    time.sleep(60)

def sleep_with_grandchild(pid_file):
    code = f"import os, time; open({pid_file!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    subprocess.run([sys.executable, "-c", code])
"""

PEER = """
# /// script
# dependencies = ["numpy"]
# ///
from benchmarks.harness.exchange import serve

def double(x, times):
    return {"x": x * times, "times": times}

serve(double)
"""


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """An importable package holding one benchmark, ``toys.toy``."""
    package = tmp_path / "code" / "toys"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "toy.py").write_text(TOY)
    (package / "_private.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(package.parent)
    importlib.invalidate_caches()
    yield "toys"
    for name in [name for name in sys.modules if name.split(".")[0] == "toys"]:
        del sys.modules[name]


@pytest.fixture
def data(tmp_path):
    """A folder with a dense set, a sparse set and a set of ratings, in small integer types."""
    folder = tmp_path / "data"
    folder.mkdir()
    X = np.array([[1, 0], [2, 3]], dtype=np.uint8)
    y = np.array([0, 1], dtype=np.uint8)
    np.savez(folder / "blobs.npz", X=X, y=y)
    csr = sp.csr_matrix(X)
    parts = {
        "data": csr.data,
        "indices": csr.indices.astype(np.uint8),
        "indptr": csr.indptr,
        "shape": np.array(csr.shape),
    }
    test = {f"test_{key}": value for key, value in parts.items()}
    np.savez(folder / "words.npz", y=y, y_test=y, **parts, **test)
    np.savez(folder / "stars.npz", user=y, item=y, rating=y)
    return folder


def context(folder: Path) -> Context:
    return Context("demo", "A title", "A paper", folder)


# --- reports -------------------------------------------------------------------------


def test_report_shows_figures_of_the_paper_and_ours(tmp_path):
    table = Table("Times", ["solver", "seconds", "gap"])
    table.add("bilgo", Versus(1.23456, 80), np.float64("inf"))
    table.add("a|b", None, np.int64(3))
    path = write_report(context(tmp_path).report([table], ["A note."]), tmp_path, "the command")

    text = path.read_text()
    assert "| solver | seconds | seconds (paper) | gap |" in text
    assert "| bilgo | 1.235 | 80 | inf |" in text
    assert "| a\\|b | – | – | 3 |" in text
    assert "- A note." in text

    record = json.loads((tmp_path / "demo.json").read_text())
    assert record["tables"][0]["rows"][0]["seconds"] == {"ours": 1.23456, "paper": 80}
    assert record["tables"][0]["rows"][1]["gap"] == 3
    assert record["command"] == "the command"
    assert record["machine"]["cores"] >= 1
    assert record["versions"]["numpy"] == np.__version__
    assert record["versions"]["gramian"] == gm.__version__  # also if it is not installed


def test_table_refuses_a_row_of_the_wrong_length():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("Times", ["solver", "seconds"]).add("bilgo")


def test_figure_must_have_labelled_axes(tmp_path):
    ctx = context(tmp_path)
    with pytest.raises(ValueError, match=r"bare\.png: label both axes"), ctx.figure("bare"):
        pass
    assert not ctx.report([]).plots


# --- times and memory ----------------------------------------------------------------


def test_measure_reports_the_median_of_all_repetitions(monkeypatch):
    readings = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])
    steady = SimpleNamespace(perf_counter=lambda: next(readings))
    monkeypatch.setattr("benchmarks.harness.timing.time", steady)
    timing = measure(lambda: "done", repeat=3)
    assert timing.result == "done"
    assert timing.all == (1.0, 5.0, 2.0) and timing.median == 2.0
    with pytest.raises(ValueError, match="at least 1"):
        measure(lambda: None, repeat=0)


def test_child_reports_its_own_peak_memory(toys):
    ballast = np.ones(300 * 2**17)  # 300 MiB here must not show up in the child
    small, large = (in_child("toys.toy:fill", {"mb": mb}, timeout=30) for mb in (1, 150))
    assert ballast.sum() > 0
    assert small.ok and large.ok
    assert large.value == 150 * 2**17
    assert large.seconds > 0
    assert 100 < large.peak_mb - small.peak_mb < 250
    assert small.peak_mb < 250


def test_child_failure_is_a_result(toys):
    result = in_child("toys.toy:fail", timeout=30)
    assert not result.ok and not result.timed_out
    assert result.error == "ValueError: no such luck (exit status 1)"


@pytest.mark.slow
def test_child_time_out_ends_its_whole_group(toys, tmp_path):
    pid_file = tmp_path / "pid"
    result = in_child("toys.toy:sleep_with_grandchild", {"pid_file": str(pid_file)}, timeout=3)
    assert result.timed_out and "timed out" in result.error
    assert result.seconds < 10
    assert _gone(int(pid_file.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked to end it")
def test_child_process_ends_if_the_run_is_killed(toys, tmp_path):
    pid_file = tmp_path / "pid"
    call = f"in_child('toys.toy:sleep', dict(pid_file={str(pid_file)!r}))"
    code = f"from benchmarks.harness.timing import in_child; {call}"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    run = subprocess.Popen([sys.executable, "-c", code], env=env)
    deadline = time.monotonic() + 30
    while not pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    run.kill()
    run.wait()
    assert _gone(int(pid_file.read_text()))


def _gone(pid: int) -> bool:
    """Whether the process ended, allowing a moment for whoever must reap it."""
    stat = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


# --- runs in pieces ------------------------------------------------------------------


@pytest.fixture
def called(monkeypatch):
    """The keyword arguments of every child; one that is given no x fails."""
    calls, number = [], itertools.count(1)

    def child(fn_path, kwargs, timeout, *, threads):
        calls.append(kwargs)
        if "x" not in kwargs:
            return ChildResult(timed_out=True, error="timed out after 1 s")
        return ChildResult(value=(kwargs["x"], next(number)))

    monkeypatch.setattr(timing, "in_child", child)
    return calls


def piece(folder: Path, **changes) -> Context:
    """A new run that keeps its results in the folder."""
    return Context("demo", "A title", "A paper", folder, kept=Kept(folder / "kept"), **changes)


def test_second_piece_uses_stored_results_of_the_first(tmp_path, called):
    given = [{"x": np.arange(3.0)}, {"x": np.arange(3.0)}, {}]
    first, second = piece(tmp_path), piece(tmp_path)
    before = [first.in_child("toys.toy:fill", kwargs, 1.0) for kwargs in given]
    after = [second.in_child("toys.toy:fill", kwargs, 1.0) for kwargs in given]
    assert len(called) == 3
    assert [result.value and result.value[1] for result in after] == [1, 2, None]
    assert after[2] == before[2] and after[2].timed_out
    assert not first.report([]).how
    assert "in pieces, first 20" in second.report([]).how[0]


def test_other_calls_do_not_use_cached_results(tmp_path, called):
    def ask(x: float = 1.0, timeout: float = 1.0, threads: int = 1) -> None:
        piece(tmp_path).in_child("toys.toy:fill", {"x": x}, timeout, threads=threads)

    ask()
    ask()
    assert len(called) == 1
    ask(x=2.0)
    ask(timeout=2.0)
    ask(threads=2)
    assert len(called) == 4


def test_torn_file_is_as_good_as_none(tmp_path, called):
    for length in (20, 0):
        piece(tmp_path).in_child("toys.toy:fill", {"x": 1.0})
        (path,) = (tmp_path / "kept").iterdir()
        path.write_bytes(path.read_bytes()[:length])
    result = piece(tmp_path).in_child("toys.toy:fill", {"x": 1.0})
    assert len(called) == 3 and result.value == (1.0, 3)


def test_equal_calls_side_by_side_have_a_file_each(tmp_path, called):
    for _ in range(2):
        ctx = piece(tmp_path, jobs=4)
        calls = [lambda ctx=ctx: ctx.in_child("toys.toy:fill", {"x": 1.0})] * 8
        found = {result.value[1] for result in ctx.at_once(calls)}
        assert len(found) == len(called) == 8
        assert ctx.report([]).how[0] == "4 side by side, one thread each"


def test_results_of_peers_are_stored(tmp_path, monkeypatch):
    answers = iter([ChildResult(value={"k": 1})])
    monkeypatch.setattr(peers, "run_peer", lambda *args, **options: next(answers))
    found = [piece(tmp_path).peer("metric_learn_all", {"k": 3}).value for _ in range(2)]
    assert found == [{"k": 1}, {"k": 1}]


def test_report_states_pieces_and_parallel_processes(tmp_path):
    report = Report("demo", "Title", "Paper", how=["4 side by side", "in pieces"])
    text = write_report(report, tmp_path, "the command").read_text()
    assert "by `the command` (4 side by side; in pieces) on " in text


# --- peers ---------------------------------------------------------------------------


@pytest.fixture
def peer(tmp_path):
    (tmp_path / "doubler.py").write_text(PEER)
    return peers.find_peer("doubler", tmp_path)


def test_peer_exchanges_arrays_and_values(peer, monkeypatch):
    monkeypatch.setattr(peers, "ensure_env", lambda peer: Path(sys.executable))
    result = peers.run_peer(peer, {"x": np.arange(3.0), "times": 2}, timeout=30, threads=1)
    assert result.ok, result.error
    np.testing.assert_array_equal(result.value["x"], [0, 2, 4])
    assert result.value["times"] == 2
    assert result.seconds >= 0 and result.peak_mb > 0


def test_peer_that_cannot_be_installed_is_a_result(peer, monkeypatch):
    def refuse(peer: Peer) -> Path:
        raise PeerUnavailableError(f"{peer.name} could not be installed")

    monkeypatch.setattr(peers, "ensure_env", refuse)
    assert peers.run_peer(peer, {}).error == "doubler could not be installed"


def test_peer_environment_is_made_once_per_set_of_requirements(peer, tmp_path, monkeypatch):
    made = []

    def install(peer: Peer, env: Path) -> None:
        env.mkdir(parents=True)
        made.append(peer.requirements)

    monkeypatch.setattr(peers, "_install", install)
    changed = Peer(peer.name, ("numpy", "scipy"), peer.script)
    for one in (peer, peer, changed, changed):
        peers.ensure_env(one, tmp_path / "envs")
    assert made == [("numpy",), ("numpy", "scipy")]


def test_peers_are_found_by_name():
    assert "metric-learn==0.7.0" in peers.find_peer("metric_learn_all").requirements
    with pytest.raises(ValueError, match="metric_learn_all"):
        peers.find_peer("nobody")


def test_rejects_peer_without_requirements_block(tmp_path):
    (tmp_path / "bare.py").write_text("print('hello')")
    with pytest.raises(ValueError, match=r"bare\.py has no"):
        peers.find_peer("bare", tmp_path)


def test_exchange_round_trip(tmp_path):
    values = {"L": np.eye(2), "name": "LMNN", "k": 3}
    exchange.write(tmp_path, "x", values)
    back = exchange.read(tmp_path, "x")
    np.testing.assert_array_equal(back.pop("L"), values.pop("L"))
    assert back == values


# --- data ----------------------------------------------------------------------------


def test_sets_load_as_float64_dense_or_sparse(data):
    dense, sparse = load_set("blobs", data), load_set("words", data)
    assert dense.X.dtype == sparse.X.dtype == np.float64
    assert dense.X_test is None and dense.y_test is None
    np.testing.assert_array_equal(sparse.X.toarray(), dense.X)
    np.testing.assert_array_equal(sparse.X_test.toarray(), dense.X)
    assert dense.y.dtype == sparse.y_test.dtype == np.int64
    assert set(load_arrays("stars", data)) == {"user", "item", "rating"}


def test_missing_data_names_the_set_and_the_option(data, monkeypatch):
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)
    monkeypatch.setenv("GRAMIAN_CACHE", str(data / "cache"))
    for folder in (None, data):
        with pytest.raises(DataMissingError, match=r"'usps'.*set GRAMIAN_DATA"):
            load_set("usps", folder)
    with pytest.raises(DataMissingError, match=r"'usps'.*is not a folder"):
        load_set("usps", data / "absent")
    with pytest.raises(ValueError, match="'stars' has ratings"):
        load_set("stars", data)
    monkeypatch.setenv("GRAMIAN_DATA", "somewhere")
    assert data_folder(None) == Path("somewhere")
    assert data_folder("elsewhere") == Path("elsewhere")


# --- command line --------------------------------------------------------------------


def test_list_names_benchmarks_only(toys, capsys):
    assert main(["list"], package=toys) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].split() == ["toy", "A", "toy", "[Nobody,", "Table", "0]"]


def test_run_writes_one_folder_without_machine_paths(toys, data, tmp_path, capsys):
    argv = ["run", "toy", "--data", str(data), "--out", str(tmp_path / "out"), "--quick"]
    assert main(argv, package=toys) == 0
    folder = tmp_path / "out" / "toy"
    assert {path.name for path in folder.iterdir()} == {"toy.json", "toy.md", "descent.png"}
    assert capsys.readouterr().out.strip() == str(folder / "toy.md")
    text = (folder / "toy.md").read_text()
    assert "| blobs | 6 | 6.5 |" in text
    assert "![descent](descent.png)" in text
    assert "repeat = 1" in text
    assert str(tmp_path) not in text + (folder / "toy.json").read_text()


def test_run_reports_missing_data_and_unknown_names(toys, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)
    assert main(["run", "toy"], package=toys) == 2
    assert "'blobs'" in capsys.readouterr().err
    assert main(["run", "nothing"], package=toys) == 2
    assert "there are: toy" in capsys.readouterr().err


# --- the results page ------------------------------------------------------------------


@pytest.fixture
def record(tmp_path):
    """The saved results of two tables: seconds by method, and verdicts."""
    seconds = Table("m = 10", ("method", "seconds", "error %"))
    seconds.add("auto", Versus(2.5, 4), "3.2 ± 0.2")
    seconds.add("ARPACK", Versus(1.5), "> 60")
    seconds.add("SCS", Versus(None, 7), "failed")
    larger = Table("m = 100", ("method", "seconds"))
    larger.add("auto", 9)
    write_report(Report("toy", "Title", "Paper", tables=[seconds, larger]), tmp_path, "command")
    return json.loads((tmp_path / "toy.json").read_text())


def test_summary_has_every_item_of_the_papers_and_losses(tmp_path, monkeypatch):
    from benchmarks import _results
    from benchmarks._coverage import ITEMS

    monkeypatch.setattr(_results, "HEADLINES", {})
    folder = tmp_path / "results" / "bilgo_fig2"
    table = Table("Verdicts", ("set", "faster", "bar"))
    table.add("a1a", False, "0.9 reached")
    table.add("w1a", True, "0.8 missed")
    report = Report("bilgo_fig2", "Title", "Paper", tables=[table])
    write_report(report, folder, "command")
    text = _results.write_pages(tmp_path / "results", tmp_path / "docs").read_text()
    for item in ITEMS:
        assert f"{item.paper.split(' (')[0]}, {item.place}" in text
        assert item.benchmark is not None or item.remark
    assert "Verdicts, *faster*: a1a" in text and "Verdicts, *bar*: w1a" in text
    assert "[BILGO, Fig. 2](bilgo_fig2.md)" in text and "not run for this page" in text
    assert (tmp_path / "docs" / "bilgo_fig2.md").exists()


def test_summary_keeps_pages_without_saved_results(tmp_path):
    from benchmarks import _results

    report = Report("bilgo_fig2", "Title", "Paper", tables=[Table("Figures", ("set",))])
    write_report(report, tmp_path / "results" / "bilgo_fig2", "command")
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("index", "bilgo_fig2", "gpu"):
        (docs / f"{name}.md").write_text("before")
    _results.write_pages(tmp_path / "results", docs)
    kept = {page.stem for page in docs.glob("*.md") if page.read_text() == "before"}
    assert kept == {"index", "gpu"}


def test_summary_sets_headlines_side_by_side_and_lists_the_lost_ones(record, tmp_path, monkeypatch):
    from benchmarks import _results
    from benchmarks._coverage import BILGO
    from benchmarks._headlines import line

    row, rivals = {"method": "auto"}, ("SCS", "ARPACK")
    seconds = line("seconds", "m = 10", row, "seconds", rivals, paper="|")
    monkeypatch.setattr(_results, "HEADLINES", {(BILGO, "Fig. 2"): (seconds,)})
    monkeypatch.setattr(_results, "BESIDES", {})
    folder = tmp_path / "results" / "bilgo_fig2"
    folder.mkdir(parents=True)
    (folder / "bilgo_fig2.json").write_text(json.dumps(record))
    (folder / "bilgo_fig2.md").touch()
    text = _results.write_pages(tmp_path / "results", tmp_path / "docs").read_text()
    assert "| seconds | 4 | 1.5 (ARPACK) | 2.5 |" in text
    assert "| BILGO, Fig. 2 | seconds | 2.5 | 1.5 (ARPACK) |" in text


def test_cell_is_found_by_caption_row_and_column(record):
    from benchmarks._headlines import Cell

    auto = {"method": "auto"}
    assert Cell("m = 10", auto, "seconds").read(record) == 2.5
    assert Cell("m = 10", auto, "seconds", "paper").read(record) == 4
    assert Cell("m = 100", auto, "seconds").read(record) == 9
    assert Cell("m = 100", {"method": "ARPACK"}, "seconds", optional=True).read(record) is None


@pytest.mark.parametrize(
    "pointer",
    [
        {"caption": "m = 1"},
        {"row": {"method": "nobody"}},
        {"column": "nothing"},
        {"column": "nothing", "optional": True},
        {"column": "error %", "part": "paper"},
    ],
)
def test_missing_cell_is_an_error(record, pointer):
    from benchmarks._headlines import Cell

    whole = {"caption": "m = 10", "row": {"method": "auto"}, "column": "seconds"}
    with pytest.raises(LookupError):
        Cell(**(whole | pointer)).read(record)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("3.2 ± 0.2", 3.2), ("> 60 s", 60), ("10.7*", 10.7), ("0.7 [2 fold(s)]", 0.7),
        (-2e-3, -0.002), ("−1.5", -1.5), ("failed", None), ("inf", None), (None, None),
        (True, None),
    ],
)  # fmt: skip
def test_the_first_number_of_a_cell(cell, value):
    from benchmarks._headlines import number

    assert number(cell) == value


def test_figures_are_compared_only_if_comparable():
    from benchmarks._headlines import is_better

    assert is_better("3.1 ± 0.2", 3.2, "less") and is_better(0.9, "0.8", "more")
    assert not is_better(3.2, 3.2, "less") and not is_better(1, 2, "")
    assert not is_better("failed", 3.2, "less") and not is_better(1, None, "less")
    assert not is_better("> 60 s", 64, "less") and is_better(5, "> 8", "less")


def test_the_best_peer_is_shown(record):
    from benchmarks._headlines import Cell, Headline

    def cell(method: str, column: str) -> Cell:
        return Cell("m = 10", {"method": method}, column)

    ours = cell("auto", "error %")
    peers = {method: cell(method, "error %") for method in ("SCS", "ARPACK")}
    assert Headline("", ours, peers=peers, better="less").figures(record).peer == "ARPACK"
    assert Headline("", ours, peers=peers).figures(record).peer == "SCS"
    nobody = {"seconds": cell("SCS", "seconds")}
    assert Headline("", ours, peers=nobody, better="less").figures(record).peer == ""
    assert Headline("", ours, peers=peers, better="less").figures(None).ours is None


def test_losses_are_those_of_our_defaults_and_name_the_row():
    from benchmarks._results import losses

    columns = ["set", "n", "method", "gap", "≤ 1e-08", "factor in cache", "MMMF", "status"]
    cells = [
        ("w1a", 500, "auto", {"ours": 0.5, "paper": None}, False, False, None, "TIME_LIMIT"),
        ("w1a", 500, "SQLP, Clarabel", 0.1, False, False, "LOST", "timed out after 45 s"),
        ("a1a", 900, "KTA", None, None, True, "won", "module._ArrayMemoryError: no"),
    ]
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    claims = [{"claim": "the paper: it is fast", "holds": False}, {"claim": "ours", "holds": False}]
    tables = [
        {"caption": "Runs", "columns": columns, "rows": rows},
        {"caption": "What the paper's text says", "columns": columns, "rows": rows},
        {"caption": "Verdicts", "columns": ["claim", "holds"], "rows": claims},
    ]
    assert list(losses({"tables": tables})) == [
        "Runs, *gap ≤ 1e-08*: w1a, n = 500, auto (0.5)",
        "Runs, *MMMF* lost to: w1a, n = 500, SQLP, Clarabel",
        "Runs, *status* failed: a1a, n = 900, KTA",
        "Verdicts, *holds*: ours",
    ]


def test_every_item_with_a_benchmark_has_headlines():
    from benchmarks._coverage import ITEMS
    from benchmarks._headlines import BESIDES, HEADLINES
    from benchmarks.harness import registry

    places = {(item.paper, item.place): item.benchmark for item in ITEMS}
    assert set(HEADLINES) <= set(places)
    for place, benchmark in places.items():
        if benchmark not in (None, "sqlp_table31"):
            assert 1 <= len(HEADLINES.get(place, ())) <= 3, place
    assert set(BESIDES) <= set(registry.names("benchmarks"))


def test_headlines_point_at_cells_of_the_saved_results():
    from benchmarks import _results
    from benchmarks._coverage import ITEMS
    from benchmarks._headlines import BESIDES

    results = Path(_results.__file__).parent / "results"
    saved = {
        name: record
        for name, record in _results.read_records(results).items()
        if "--quick" not in record["command"]
    }
    if not saved:
        pytest.skip("no benchmark has been run here")
    found = [pair for item in ITEMS for pair in _results._headlines(item, saved)]
    found += [(line, saved.get(name)) for name, lines in BESIDES.items() for line in lines]
    for line, record in found:
        line.figures(record)


def test_the_benchmarks_that_the_papers_need_exist():
    from benchmarks._coverage import ITEMS
    from benchmarks.harness import registry

    assert {item.benchmark for item in ITEMS} - {None} <= set(registry.names("benchmarks"))
