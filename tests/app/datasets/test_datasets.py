"""Sets by name: built in, from folders, and what is said where there are none."""

import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from gramian.app.datasets import (
    DataMissingError,
    available,
    load,
    load_arrays,
    load_ratings,
)
from gramian.app.datasets._arrays import fingerprint
from gramian.app.datasets._load import _cache
from gramian.completion._reading import gather

BUILT_IN = [entry for entry in available() if entry.sources == ("built in",)]

X = np.array([[0.0, 2, 0], [3, 0, 0], [0, 0, 4], [0, 5, 0]], dtype=np.float32)
Y = np.array([0, 1, 1, 0], dtype=np.uint8)


def sparse(matrix, prefix=""):
    """A CSR matrix as files keep it, in the smallest number types."""
    csr = sp.csr_matrix(matrix)
    return {
        prefix + "data": csr.data.astype(np.uint8),
        prefix + "indices": csr.indices.astype(np.uint8),
        prefix + "indptr": csr.indptr,
        prefix + "shape": np.array(csr.shape, dtype=np.int32),
    }


@pytest.fixture
def folder(tmp_path):
    """A data folder with one set of each kind."""
    place = tmp_path / "data"
    place.mkdir()
    np.savez(place / "dense.npz", X=X, y=Y, image_shape=np.array([1, 3], dtype=np.uint8))
    np.savez(
        place / "thin.npz", **sparse(X), y=Y, **sparse(X[:2], "test_"), y_test=Y[:2]
    )  # fmt: skip
    columns = {"user": [1, 0], "item": [0, 3], "rating": [5, 1]}
    np.savez(place / "stars.npz", **{k: np.array(v, np.uint8) for k, v in columns.items()})
    np.savez(place / "pairs.npz", pairs=np.array([[0, 1]], np.int16))
    return place


# --- built in ------------------------------------------------------------------------


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
def test_built_in_sets_need_nothing(entry, cache, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    if entry.kind == "ratings":
        ratings = load_ratings(entry.name)
        assert set(map(type, ratings.user.tolist())) == {str}
        found = (len(set(ratings.user)), len(set(ratings.item)))
    else:
        data = load(entry.name)
        assert data.X.dtype == np.float64 and data.y.dtype == np.int64
        assert set(data.y) == set(range(data.y.max() + 1))
        assert data.description == entry.description
        found = data.X.shape
    assert found == (entry.samples, entry.features)
    assert not cache.exists()


def test_built_in_sets_are_the_same_each_time():
    for entry in BUILT_IN:
        first, again = load_arrays(entry.name), load_arrays(entry.name)
        assert first.keys() == again.keys()
        assert all(np.array_equal(first[key], again[key]) for key in first)


@pytest.mark.parametrize("name", ["swiss_roll", "swiss_roll_hole", "s_curve"])
def test_the_parameters_are_the_sheet_laid_flat(name):
    """Between neighbours they are as far apart as the samples; farther, never less."""
    data = load(name)
    i, j = kneighbors_graph(data.extra["parameters"], 4).nonzero()
    bent = np.linalg.norm(data.X[i] - data.X[j], axis=1)
    flat = np.linalg.norm(data.extra["parameters"][i] - data.extra["parameters"][j], axis=1)
    assert np.all(bent <= flat + 1e-9)
    assert np.median(bent / flat) > 0.99
    assert np.bincount(data.y).tolist() == [250] * 4


def test_links_of_moons_are_right_and_separate():
    data = load("two_moons")
    must, cannot = data.extra["must_link"], data.extra["cannot_link"]
    assert np.all(data.y[must[:, 0]] == data.y[must[:, 1]])
    assert np.all(data.y[cannot[:, 0]] != data.y[cannot[:, 1]])
    pairs = np.vstack([must, cannot])
    assert len(must) > 30 < len(cannot) and len(pairs) == 100
    assert np.all(pairs[:, 0] < pairs[:, 1])
    assert np.unique(pairs).size == 200


def test_synthetic_ratings():
    ratings = load_ratings("synthetic_ratings")
    assert "synthetic" in ratings.description
    assert len(set(zip(ratings.user, ratings.item, strict=True))) == ratings.rating.size == 5000
    assert set(ratings.rating) == {1.0, 2.0, 3.0, 4.0, 5.0}
    _, counts = np.unique(ratings.item, return_counts=True)
    assert np.sort(counts)[-12:].sum() > 0.2 * counts.sum()  # a tenth of the items


def test_triples_are_what_completion_takes():
    ratings = load_ratings("synthetic_ratings")
    gathered = gather(ratings.triples)
    assert gathered.shape == (200, 120)
    assert gathered.values.sum() == ratings.rating.sum()


# --- folders -------------------------------------------------------------------------


def test_dense_sparse_and_rated(folder, cache):
    dense, thin = load("dense", data=folder), load("thin", data=str(folder))
    assert dense.X.dtype == thin.X.dtype == np.float64
    assert dense.y.dtype == thin.y_test.dtype == np.int64
    assert dense.X_test is None and dense.y_test is None
    assert sp.issparse(thin.X) and thin.X.format == "csr"
    np.testing.assert_array_equal(thin.X.toarray(), X)
    np.testing.assert_array_equal(thin.X_test.toarray(), X[:2])
    np.testing.assert_array_equal(dense.X, X)
    assert dense.extra["image_shape"].dtype == np.int64 and set(dense.extra) == {"image_shape"}
    assert thin.extra == {}
    stars = load_ratings("stars", data=folder)
    assert stars.timestamp is None
    assert stars.user.dtype == np.int64 and stars.rating.dtype == np.float64
    assert load_arrays("pairs", data=folder)["pairs"].dtype == np.int16


def test_the_wrong_loader_names_the_right_one(folder, cache):
    with pytest.raises(ValueError, match=r"'stars' has ratings: call load_ratings"):
        load("stars", data=folder)
    with pytest.raises(ValueError, match=r"'pairs' has no labels y: call load_arrays"):
        load("pairs", data=folder)
    with pytest.raises(ValueError, match=r"'iris' has no ratings: call load\("):
        load_ratings("iris")


def test_places_are_tried_in_order(tmp_path, cache, monkeypatch):
    def put(folder, value):
        folder.mkdir(exist_ok=True)
        np.savez(folder / "glass.npz", X=np.full((2, 2), value), y=np.array([0, 1]))

    def found(**options):
        return load("glass", **options).X[0, 0]

    put(cache, 3)
    assert found() == 3
    monkeypatch.setenv("GRAMIAN_DATA", str(tmp_path / "named"))
    assert found() == 3
    put(tmp_path / "named", 2)
    assert found() == 2
    (tmp_path / "given").mkdir()
    assert found(data=tmp_path / "given") == 2
    put(tmp_path / "given", 1)
    assert found(data=tmp_path / "given") == 1


def test_missing_sets_say_what_to_do(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("GRAMIAN_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataMissingError) as missing:
        load("usps", data=tmp_path)
    for part in (
        str(tmp_path),
        "absent (not a folder)",
        str(cache),
        "download=True",
        "GRAMIAN_DATA",
    ):
        assert part in str(missing.value)
    with pytest.raises(
        DataMissingError, match=r"cannot be downloaded automatically.*at http.*lfw\.npz"
    ):
        load("lfw")
    with pytest.raises(
        DataMissingError, match=r"'usps' was not loaded: data=.*nowhere is not a folder"
    ):
        load("usps", data=tmp_path / "nowhere", download=True)


@pytest.mark.parametrize("name", ["mnits", "a10a", "../usps", "", "usps/", "a\0b", None, 3])
def test_unknown_names(name, cache):
    with pytest.raises(ValueError, match=rf"unknown data set {re.escape(repr(name))}.*available: "):
        load(name)


def test_names_do_not_lead_out_of_the_folder(folder, cache):
    np.savez(folder.parent / "outside.npz", X=X, y=Y)
    (folder / "inner").mkdir()
    np.savez(folder / "inner" / "deep.npz", X=X, y=Y)
    for name in ("../outside", "inner/deep", str(folder / "dense")):
        with pytest.raises(ValueError, match="unknown data set"):
            load(name, data=folder)


def test_near_names_are_offered(cache):
    with pytest.raises(ValueError, match=r"did you mean 'mnist'\?"):
        load("mnits")


def test_the_cache_is_where_the_platform_keeps_it(tmp_path, monkeypatch):
    monkeypatch.delenv("GRAMIAN_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cache() == tmp_path / "gramian"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _cache() == Path.home() / ".cache" / "gramian"
    monkeypatch.setattr("sys.platform", "darwin")
    assert _cache() == Path.home() / "Library" / "Caches" / "gramian"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert _cache() == tmp_path / "local" / "gramian"
    monkeypatch.setenv("GRAMIAN_CACHE", str(tmp_path / "mine"))
    assert _cache() == tmp_path / "mine"


# --- broken files --------------------------------------------------------------------

BROKEN = {
    "no X": ({"y": Y}, "neither X nor data, indices, indptr, shape"),
    "no indptr": ({"y": Y, **sparse(X)} | {"indptr": None}, "neither X nor indptr"),
    "flat X": ({"X": X.ravel(), "y": Y}, "X must be a table of numbers"),
    "words": ({"X": X.astype(str), "y": Y}, "X must be a table of numbers"),
    "few labels": ({"X": X, "y": Y[:3]}, r"4 samples, but labels of shape \(3,\)"),
    "flat labels": ({"X": X, "y": Y[:, None]}, "4 samples, but labels"),
    "few columns": ({"X": X, "y": Y, "X_test": X[:, :2], "y_test": Y}, "3 features, but 2"),
    "no test part": ({"X": X, "y": Y, "y_test": Y}, "neither X_test nor test_data"),
    "column too far": (
        {"y": Y, **sparse(X), "shape": np.array([4, 2])}, "'broken' is invalid",
    ),
    "row too many": ({"y": Y, **sparse(X), "shape": np.array([5, 3])}, "'broken' is invalid"),
    "three axes": ({"y": Y, **sparse(X), "shape": np.array([4, 3, 1])}, "'broken' is invalid"),
    "ends at 0": ({"y": Y, **sparse(X), "indptr": np.array([0, 3, 1, 2, 0])}, "'broken' is inv"),
    "backwards": ({"y": Y, **sparse(X), "indptr": np.array([0, 3, 1, 2, 4])}, "'broken' is inv"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_sets(tmp_path, cache, name):
    arrays, message = BROKEN[name]
    np.savez(tmp_path / "broken.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(ValueError, match=message):
        load("broken", data=tmp_path)


def test_ratings_of_different_lengths(tmp_path, cache):
    np.savez(tmp_path / "broken.npz", user=Y, item=Y, rating=Y[:2])
    with pytest.raises(ValueError, match="its columns differ in length"):
        load_ratings("broken", data=tmp_path)


def test_unreadable_files(tmp_path, cache):
    path = tmp_path / "usps.npz"
    np.savez(path, X=X, y=Y)
    whole = path.read_bytes()
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, X=np.array([{}, None], dtype=object), y=Y)
    single = tmp_path / "single.npy"
    np.save(single, X)
    damaged = bytearray(whole)
    damaged[150] ^= 0xFF
    for content in (
        b"",
        b"PK",
        whole[:-40],
        b"<html>",
        pickled.read_bytes(),
        single.read_bytes(),
        damaged,
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"usps\.npz is not a readable npz file of plain arr"):
            load("usps", data=tmp_path)


# --- fingerprints --------------------------------------------------------------------


def test_a_fingerprint_is_of_the_content():
    known = fingerprint({"X": X, "y": Y, "X_test": X[:2], "y_test": Y[:2]})
    stored = {**sparse(X), "y": Y.astype(float).astype(np.int64)}
    stored |= {**sparse(X[:2], "test_"), "y_test": Y[:2]}
    assert fingerprint(stored) == known
    zero = sp.csr_matrix(X)
    zero.data[0] = 0
    explicit = dict(
        data=zero.data, indices=zero.indices, indptr=zero.indptr, shape=np.array(X.shape)
    )
    dense = zero.toarray()
    dense[0, 0] = -0.0
    assert fingerprint({**explicit, "y": Y}) == fingerprint({"X": dense, "y": Y})


def test_a_fingerprint_tells_sets_apart():
    other, shifted, label = X.copy(), np.roll(X, 1, axis=1), Y.copy()
    other[0, 1] = np.nextafter(np.float32(2), np.float32(3))
    label[0] = 1
    sets = [(X, Y), (other, Y), (shifted, Y), (X, label), (X[::-1], Y[::-1])]
    sets += [(X[:3], Y[:3]), (np.hstack([X, 0 * X]), Y)]
    found = {fingerprint({"X": A, "y": b}) for A, b in sets}
    found.add(fingerprint({"X": X, "y": Y, "X_test": X, "y_test": Y}))
    assert len(found) == len(sets) + 1


def test_fingerprints_of_ratings_do_not_depend_on_the_order():
    user, item = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    rating, time = np.array([5, 4, 3, 3]), np.array([10, 20, 30, 40])

    def of(user=user, item=item, rating=rating, time=time):
        return fingerprint({"user": user, "item": item, "rating": rating, "timestamp": time})

    order = np.array([2, 0, 3, 1])
    assert of(user[order], item[order], rating[order], time[order]) == of()
    assert of(time=time[[0, 1, 3, 2]]) == of()  # which of two equal ratings was first
    assert of(time=time[[1, 0, 2, 3]]) != of()
    assert of(rating=rating[[1, 0, 2, 3]]) != of()
    assert of(item=item[[1, 0, 2, 3]]) != of()
    assert of(time=time + 1) != of()


# --- the table -----------------------------------------------------------------------


def test_the_table_lines_up():
    table = available()
    lines = str(table).splitlines()
    assert len(lines) == len(table) > 40
    assert len({line.index(e.description) for line, e in zip(lines, table, strict=True)}) == 1
    assert all(line.startswith(entry.name + " ") for line, entry in zip(lines, table, strict=True))


def test_every_set_can_come_from_somewhere():
    for entry in available():
        ways = (entry.make is not None, entry.home is not None, bool(entry.by_hand))
        assert sum(ways) == 1, entry.name


def data_folder():
    folder = os.environ.get("GRAMIAN_DATA")
    if not folder:
        pytest.skip("set GRAMIAN_DATA to the folder of the benchmark data sets")
    return Path(folder)


@pytest.mark.data
def test_sizes_are_those_of_the_files():
    folder = data_folder()
    entries = {entry.name: entry for entry in available() if entry.make is None}
    files = {path.stem for path in folder.glob("*.npz")}
    assert files and files <= entries.keys()
    for name in files:
        entry, arrays = entries[name], load_arrays(name, data=folder)
        if entry.kind == "ratings":
            size = (arrays["user"].max() + 1, arrays["item"].max() + 1)
        else:
            size = arrays["X"].shape if entry.kind == "dense" else tuple(arrays["shape"])
            assert len(arrays.get("y_test", ())) == entry.test_samples
        assert size == (entry.samples, entry.features), name


@pytest.mark.data
@pytest.mark.parametrize("name", ["a1a", "news20", "orl_faces", "segment"])
def test_real_sets_load(name):
    data = load(name, data=data_folder())
    assert data.X.dtype == np.float64 and data.y.dtype == np.int64
    values = data.X.data if sp.issparse(data.X) else data.X
    assert np.all(np.isfinite(values)) and data.y.min() == 0
