"""`gramian embed`: layouts, distances, and fits that are watched."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import gramian as gm
from gramian.app.verdict import (
    edge_errors,
)
from tests.app.cli.data import answer, refused
from tests.slow import slow

QUICK = ("--tol", 0.1, "--no-verdict")


def test_layout_is_drawn_saved_and_evaluated(run, folder):
    facts = answer(run, "embed", "flowers.csv", "--label", "species", "--method", "layout",
                 "--out", "places.csv", "--model", "m", "--report", "page.html",
                 "--neighbors", 9, "--tol", 0.1, "--verdict")  # fmt: skip
    assert facts["status"] == "local" and facts["torn_edges"] < 0.1
    assert "edges are torn" in facts["verdict"] and "PCA's picture" in facts["verdict"]
    assert list(pd.read_csv("places.csv").columns)[-1] == "species"
    assert "torn" in (folder / "page.html").read_text("utf-8")
    assert run("transform", "new.csv", "--model", "m", "--out", "again.csv")[0] == 0


@pytest.mark.parametrize("option", ["--lam", "--rank"])
def test_a_layout_has_no_options_of_unfoldings(run, folder, option):
    status, _, err = run("embed", "points.csv", "--method", "layout", option, 3)
    assert status == 2 and f"layout has no {option}" in err


def test_nu_is_a_deprecated_name_of_lam(run, folder):
    facts = [
        answer(run, "embed", "points.csv", name, 0.5, *QUICK)["variance_kept"]
        for name in ("--lam", "--nu")
    ]
    assert facts[0] == facts[1] != answer(run, "embed", "points.csv", *QUICK)["variance_kept"]


def test_distances_between_all_samples(run, folder):
    X = pd.read_csv("points.csv").to_numpy()
    np.savetxt("far.csv", cdist(X, X), delimiter=",")
    facts = answer(run, "embed", "far.csv", "--distances", "--out", "places.csv", *QUICK)
    plain = answer(run, "embed", "points.csv", *QUICK)
    assert facts["parts_of_the_graph"] == 1
    assert facts["variance_kept"] == pytest.approx(plain["variance_kept"], abs=0.05)
    answer(run, "embed", "far.csv", "--distances", "--tol", 0.1, "--report", "page.html")
    status, _, err = run("embed", "points.csv", "--distances")
    assert status != 0 and "square matrix of distances" in err
    status, _, err = run("embed", "far.csv", "--distances", "--standardize")
    assert status == 2 and "taken as they are" in err


def test_distances_have_names_of_rows_and_columns(run, folder):
    X, names = np.random.default_rng(0).normal(size=(9, 2)), [f"town{k}" for k in range(9)]
    frame = pd.DataFrame(cdist(X, X), index=names, columns=names)
    frame.to_csv("towns.csv")
    status, _, err = run("embed", "towns.csv", "--distances", "--out", "places.csv", *QUICK)
    assert status == 0 and "the first column has no name and is used as row names" in err
    assert pd.read_csv("places.csv").iloc[:, 0].tolist() == names
    frame.where(np.triu(np.ones((9, 9))) > 0).to_csv("towns.csv")
    said = refused(run, "embed", "towns.csv", "--distances")
    assert "36 missing cells" in said and "--distances reads a square table, with a dis" in said


def test_a_graph_is_a_sparse_file(run, folder):
    X = pd.read_csv("points.csv").to_numpy()
    sp.save_npz("graph.npz", sp.csr_matrix(kneighbors_graph(X, 6, mode="distance")))
    facts = answer(run, "embed", "graph.npz", "--distances", "--method", "layout", *QUICK)
    assert facts["samples"] == 120


@pytest.mark.parametrize(("name", "start"), [slow("moving.gif", b"GIF8"), ("last.png", b"\x89PNG")])
def test_watched_fits_are_drawn(run, folder, monkeypatch, name, start):
    monkeypatch.setattr("gramian.estimators.plotting.FRAMES", 4)
    line = ("embed", "points.csv", "--method", "reg-mvu", "--watch", name, *QUICK)
    answer(run, *line)
    assert (folder / name).read_bytes().startswith(start)
    answer(run, *line, "--force")  # over its own picture
    assert run(*line[:4], "--watch", "points.csv")[0] != 0


def test_images_are_shown_under_the_pointer(run, folder):
    X = np.random.default_rng(0).uniform(size=(40, 12))
    np.savetxt("pictures.csv", X, delimiter=",")
    line = ("embed", "pictures.csv", "--method", "reg-mvu", "--standardize", *QUICK)
    answer(run, *line, "--images", "4x3", "--report", "page.html")
    assert 'data-tile="3 4 7"' in (folder / "page.html").read_text("utf-8")
    for size, words in (("4by3", "HEIGHTxWIDTH"), ("5x3", "5 times 3 is not 12")):
        status, _, err = run(*line, "--images", size)
        assert status == 2 and words in err


def test_embed(run, folder):
    facts = answer(run, "embed", "points.csv", "--out", "places.parquet", "--plot", "places.png",
                 "--model", "m")  # fmt: skip
    assert pd.read_parquet("places.parquet").shape == (120, 2)
    assert (folder / "places.png").read_bytes().startswith(b"\x89PNG")
    assert sum(facts["variance_kept"]) > 0.5
    assert run("transform", "points.csv", "--model", "m", "--out", "again.csv")[0] == 0
    np.testing.assert_allclose(
        pd.read_csv("again.csv"), pd.read_parquet("places.parquet"), atol=1e-8
    )


def test_embed_notes_variance_that_few_dimensions_lack(run, folder):
    noise = np.random.default_rng(0).normal(size=(40, 6))
    pd.DataFrame(noise).to_csv("noise.csv", index=False)
    assert "--method layout shows" in run("embed", "noise.csv", "--neighbors", 20)[2]
    line = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)})
    line.to_csv("line.csv", index=False)
    assert "--method layout shows" not in run("embed", "line.csv")[2]


def test_embed_selects_the_number_of_dimensions_by_variance(run, folder):
    facts = answer(run, "embed", "points.csv", "--components", "auto", "--out", "places.csv")
    assert pd.read_csv("places.csv").shape == (120, len(facts["variance_kept"]))
    assert sum(facts["variance_kept"]) >= 0.95
    status, _, err = run("embed", "points.csv", "--components", "some")
    assert status == 2 and "a number or \"auto\", got 'some'" in err


def test_embedding_reports_changes_of_distances(run, folder):
    facts = answer(run, "embed", "points.csv", "--tol", 0.1)
    assert "Distances between neighbours change by" in facts["verdict"]
    assert "(median)" in facts["verdict"] and "(largest)" in facts["verdict"]
    frame = pd.read_csv("points.csv")
    frame["x"] *= 1e3
    frame.to_csv("scales.csv", index=False)
    assert "kept" not in run("embed", "--help")[1].split("Options")[0]
    fitted = gm.manifold.MVU(tol=0.1).fit(frame.to_numpy()[:30])
    assert edge_errors(fitted).shape == (len(fitted.graph_.edges),)
