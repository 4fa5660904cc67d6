"""The examples of the README are ones where it matters, with the files as they are shipped."""

import json
import shutil

import pytest

from tests.app.cli.conftest import EXAMPLES


@pytest.fixture(autouse=True)
def few_candidates():
    """`auto` has all its candidates here."""


@pytest.fixture
def shipped(run, tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def answer(*line):
        status, out, err = run(*line, "--json")
        assert status == 0, err
        return json.loads(out)

    return answer


@pytest.mark.slow
def test_metric_reduces_the_error(shipped):
    facts = shipped("metric", "sensors.csv", "--label", "state", "--verdict")
    assert facts["verdict"].startswith("It helped")
    assert facts["held_out"]["after"] < facts["held_out"]["before"] - 0.05


def test_a_roll_is_unrolled_by_the_number_of_neighbours_it_begins_with(shipped):
    facts = shipped("embed", "points.csv")
    assert sum(facts["variance_kept"]) > 0.99 and "nothing was unfolded" not in facts["verdict"]


def test_links_improve_clusters_of_moons(shipped):
    line = ("cluster", "moons.csv", "--clusters", 2, "--must-link", "same.csv")
    facts = shipped(*line, "--cannot-link", "apart.csv")
    assert facts["held_out"]["after"] > facts["held_out"]["before"]


def test_the_error_of_an_edge_has_its_unit(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "points.csv", tmp_path)
    out = run("embed", "points.csv", "--no-verdict", "--tol", 0.1)[1]
    assert "largest relative error of a squared distance between neighbours" in out
