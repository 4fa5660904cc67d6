"""Timing one tree beside another."""

import json

import pytest

from benchmarks import _beside


def test_case_reports_its_seconds_and_gap(capsys):
    assert _beside.main(["--one", "quadratic_6"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seconds"] > 0 and told["status"] == "CONVERGED" and float(told["gap"]) <= 1e-6


def test_alternates_between_trees_and_reports_the_best_times(capsys, monkeypatch, tmp_path):
    seconds = iter([4.0, 1.0, 2.0, 3.0])
    trees = []

    def run(tree, case):
        trees.append(tree)
        return {"seconds": next(seconds), "status": "CONVERGED", "gap": "1e-7"}

    monkeypatch.setattr(_beside, "_in_tree", run)
    (tmp_path / "src" / "gramian").mkdir(parents=True)
    assert _beside.main([str(tmp_path), "--only", "quadratic_6"]) == 0
    assert trees == [tmp_path, _beside.HERE] * 2
    assert "2.000      1.000   0.50" in capsys.readouterr().out


def test_rejects_a_folder_without_the_package(capsys, tmp_path):
    """Python would import the installed package instead, and compare this tree with itself."""
    with pytest.raises(SystemExit):
        _beside.main([str(tmp_path), "--only", "quadratic_6"])
    assert "has no src/gramian" in capsys.readouterr().err


@pytest.mark.slow
def test_failing_case_reports_the_reason(tmp_path):
    with pytest.raises(SystemExit, match="nonsense in "):
        _beside.main([str(_beside.HERE), "--only", "nonsense", "--rounds", "1"])
