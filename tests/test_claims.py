"""What the documentation claims is what the saved results say; one version, five papers."""

import re
import tomllib
from pathlib import Path

import pytest

import gramian as gm

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
COMPARES = (ROOT / "docs" / "compares.md").read_text("utf-8")


def table(name: str, caption: str) -> dict[str, dict[str, float | None]]:
    """A saved table: rows by their first cell, numbers by column, None where there is none."""
    text = (RESULTS / f"{name}.md").read_text("utf-8").split(f"**{caption}", 1)[1]
    lines = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], map(number, row[1:]), strict=True)) for row in rows}


def number(cell: str) -> float | None:
    found = re.match(r"-?[\d.]+(e-?\d+)?", cell)
    return float(found[0]) if found else None


@pytest.mark.parametrize("learner", ["LMNN", "DMLEig", "KTA"])
def test_sets_where_a_metric_errs_less_than_euclid(learner):
    errors = table("metric_tables", "LRO Tables 2 and 4")
    both = [(row[learner], row["Euclid"]) for row in errors.values() if row[learner] is not None]
    better = sum(own < plain for own, plain in both)
    assert f"`{learner}` on {better} of {len(both)}" in COMPARES


def test_sets_where_no_metric_helps():
    errors = table("metric_tables", "LRO Tables 2 and 4")
    learned = ("KTA", "LMNN", "DMLEig")
    assert all(errors["sonar"][name] >= errors["sonar"]["Euclid"] for name in learned)
    assert errors["mnist"]["DMLEig"] > errors["mnist"]["Euclid"]
    assert errors["usps"]["DMLEig"] == errors["usps"]["Euclid"]


def test_seconds_of_kta():
    seconds = [row["KTA"] for row in table("metric_tables", "LRO Table 4").values()]
    quick = sum(taken < 1 for taken in seconds)
    said = (ROOT / "docs" / "choosing.md").read_text("utf-8")
    assert f"less than a second on {quick} of the {len(seconds)} sets" in said
    assert f"{table('metric_tables', 'LRO Table 4')['mnist']['KTA']:.0f} s on MNIST" in said


def test_cmfrec():
    shares = []
    for size in ("1m", "100k"):
        rows = table("bis_tables456", f"movielens_{size}: the defaults")
        ours, theirs = rows["NuclearCompletion()"], rows["cmfrec ALS, k = 40"]
        assert ours["RMSE"] < theirs["RMSE"]
        shares.append(f"{theirs['seconds'] / ours['seconds']:.1f}")
    said = "takes {} of the seconds on MovieLens 1M, {} on 100K"
    assert said.format(*shares) in COMPARES


@pytest.mark.parametrize("size", ["100k", "1m"])
def test_recommenders(size):
    ratings = table("recommenders", f"movielens_{size}: ratings")
    ours, theirs = ratings["NuclearCompletion()"], ratings["Surprise SVD"]
    assert ours["RMSE"] < theirs["RMSE"] and ours["seconds"] < theirs["seconds"]
    clicks = table("recommenders", f"movielens_{size}: clicks")
    ours, theirs, tuned = clicks.values()
    assert ours["nDCG@10"] > theirs["nDCG@10"] and ours["recall@10"] > theirs["recall@10"]
    assert (tuned["recall@10"] > ours["recall@10"]) == (size == "100k")


def test_unfoldings():
    kept = table("unfoldings", "Lesser R")
    rolls = [f"lesser R, {name}" for name in ("Swiss roll", "S-curve", "roll with a hole")]
    least = {name: min(kept[name][roll] for roll in rolls) for name in ("MVU", "Isomap", "UMAP")}
    assert round(least["MVU"], 3) == 0.999
    said = f"as low as {least['Isomap']:.3f} for Isomap and {least['UMAP']:.3f} for UMAP"
    assert said in COMPARES
    for name in ("kept, MNIST, digit 2", "kept, ORL faces"):
        assert kept["UMAP"][name] > kept["MVU"][name]
    captions = ("Swiss roll:", "S-curve:", "roll with a hole:", "rotation:")
    times = [table("unfoldings", caption) for caption in captions]
    ratios = [run["MVU"]["seconds"] / run["Isomap"]["seconds"] for run in times]
    assert (
        f"{min(ratios):.1f} to {max(ratios):.1f} times the seconds of Isomap on 1,000" in COMPARES
    )
    times = [table("unfoldings", f"{name}, 5000:") for name in ("Swiss roll", "S-curve")]
    ratios = sorted(run["MVU"]["seconds"] / run["Isomap"]["seconds"] for run in times)
    assert f"{ratios[0]:.1f} to {ratios[1]:.1f} times on 5,000" in COMPARES


def test_comparison_table_equals_the_results():
    ranks = table("never_worse", "Mean rank")
    said = [("`LMNNEig`", "LMNNEig"), ("`LMNN`", "LMNN"), ("`DMLEig`", "DMLEig"), ("`KTA`", "KTA"),
            ("metric-learn's LMNN", "metric-learn LMNN"), ("LDA", "LDA"), ("NCA", "NCA"),
            ("Euclidean", "Euclid")]  # fmt: skip
    assert all(f"{name} {ranks[row]['mean rank']:.1f}" in COMPARES for name, row in said)
    harm = table("never_worse", "Mean error minus")
    assert all(harm[name]["beyond chance"] == 0 for name in ("KTA", "LMNN", "DMLEig", "LMNNEig"))
    assert f"LDA {harm['LDA']['beyond chance']:.0f}, " in COMPARES
    links = table("constrained_clustering", "usps: accuracy")
    for name in ("PCP", "RegPCP", "NPKL", "COP-k-means", "k-means"):
        assert f"{links[name]['1000 links']:.1f} %" in COMPARES
    assert links["COP-k-means"]["50 links"] > links["PCP"]["50 links"]
    pictures = [table("layouts", f"{name}:") for name in ("digits", "MNIST", "ORL faces")]
    for method in ("NeighborLayout", "UMAP"):
        figures = ", ".join(f"{rows[method]['1-NN %']:.1f}" for rows in pictures)
        assert f"{figures} %" in COMPARES
    for caption, column in (("ratings", "RMSE"), ("clicks", "nDCG@10")):
        for size in ("100k", "1m"):
            ours, _, tuned = table("recommenders", f"movielens_{size}: {caption}").values()
            assert f"{ours[column]:.3f}" in COMPARES and f"{tuned[column]:.3f}" in COMPARES


def test_version_is_the_same_in_all_files():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"]  # from gramian.__version__
    known = "Programming Language :: Python :: 3."
    assert {c.removeprefix(known) for c in project["classifiers"] if c.startswith(known)} == {
        "11", "12", "13", "14",
    }  # fmt: skip
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {gm.__version__}\n" in citation
    assert citation.count("\n  - type: ") == 5
    assert f"## {gm.__version__} " in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "CHANGELOG.md" in (ROOT / "docs" / "changelog.md").read_text("utf-8")
