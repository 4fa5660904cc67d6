"""Timing one tree beside another."""

import json

import pytest

from benchmarks import _beside


def test_a_case_tells_its_seconds_and_its_gap(capsys):
    assert _beside.main(["--one", "quadratic_6"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seconds"] > 0 and told["status"] == "CONVERGED" and float(told["gap"]) <= 1e-6


def test_trees_take_turns_and_the_best_of_each_counts(capsys, monkeypatch, tmp_path):
    seconds = iter([4.0, 1.0, 2.0, 3.0])
    trees = []

    def run(tree, case):
        trees.append(tree)
        return {"seconds": next(seconds), "status": "CONVERGED", "gap": "1e-7"}

    monkeypatch.setattr(_beside, "_in_tree", run)
    assert _beside.main([str(tmp_path), "--only", "quadratic_6"]) == 0
    assert trees == [tmp_path, _beside.HERE] * 2
    assert "2.000      1.000   0.50" in capsys.readouterr().out


@pytest.mark.slow
def test_a_case_that_fails_says_why(tmp_path):
    with pytest.raises(SystemExit, match="nonsense in "):
        _beside.main([str(_beside.HERE), "--only", "nonsense", "--rounds", "1"])
