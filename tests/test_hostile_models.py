"""Hostile model files: loading takes memory and time in proportion to the size of the file."""

import io
import json
import re
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gramian as gm
from gramian import StoredFileError
from gramian.common import storage
from gramian.metric import KTA

MOST_MEMORY = (1 << 26, 64)
"""Bytes that reading a file may take: so many, and so many for each byte of it."""


def npy(descr: str, shape: tuple[int, ...], data: bytes = b"") -> bytes:
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + data


def class_of(name: str, **state) -> dict:
    return {"class": name, "state": state}


def array_of(name: str) -> dict:
    return {"array": name}


def model_file(path: Path, estimator, text: str | None = None, **arrays: bytes) -> Path:
    """A model file with this tree for its estimator; `text` stands in the place of `"@"`."""
    content = {"dict": [["gramian", "0"], ["estimator", estimator]]}
    head = {"format": "gramian model", "format_version": 1, "content": content}
    told = json.dumps(head).replace('"@"', text or '"@"')
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(storage.CONTENT, told)
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return path


def kta(**state) -> dict:
    return class_of("gramian.metric.KTA", **state)


def pipeline(*steps) -> dict:
    return class_of("sklearn.pipeline.Pipeline", steps=[[f"s{k}", s] for k, s in enumerate(steps)])


def columns(steps=(), width=3, names=None, **more) -> dict:
    return class_of(
        "sklearn.compose.ColumnTransformer",
        options={"dict": []},
        steps=list(steps),
        width=width,
        names=names,
        **{"sparse": False, "outputs": {"dict": []}, **more},
    )


def loaded(path: Path):
    """The loaded object, or the error; asserts that memory is in proportion to the file."""
    tracemalloc.start()
    try:
        return gm.load(path)
    except StoredFileError as refusal:
        return refusal
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= MOST_MEMORY[0] + MOST_MEMORY[1] * path.stat().st_size


def refused(path: Path, message: str) -> None:
    found = loaded(path)
    assert isinstance(found, StoredFileError)
    assert message in str(found)


MEGABYTE = npy("<f8", (1 << 17,), bytes(1 << 20))
NUMBERS = npy("<f8", (1 << 14, 8), bytes(1 << 20))


def test_an_array_named_many_times_is_one_array(tmp_path):
    many = [array_of("a")] * 2000
    found = loaded(model_file(tmp_path / "m", kta(path_=many), a=MEGABYTE))
    assert len({id(array) for array in found.path_}) == 1


def test_arrays_named_twice_are_kept_apart_from_others(tmp_path):
    model = KTA().fit(np.eye(4), [0, 0, 1, 1])
    model.one_, model.same_, model.other_ = (one := np.ones(3)), one, np.ones(3)
    model.save(tmp_path / "m")
    again = gm.load(tmp_path / "m")
    assert again.one_ is again.same_ and again.one_ is not again.other_


@pytest.mark.parametrize("columns_", [10, 11])
def test_sparse_matrices_of_the_same_parts_are_counted(columns_, tmp_path):
    parts = {
        "d": MEGABYTE,
        "i": npy("<i8", (1 << 17,), bytes(1 << 20)),
        "p": npy("<i8", (2,), np.array([0, 1 << 17]).tobytes()),
    }
    each = [
        {"csr": "array", "parts": ["d", "i", "p"], "shape": [1, columns_ + k]} for k in range(900)
    ]
    refused(model_file(tmp_path / "m", kta(path_=each), **parts), "more memory than its size")


def test_classifiers_of_the_same_samples_are_counted(tmp_path):
    near = class_of(
        "sklearn.neighbors.KNeighborsClassifier",
        options={"dict": []},
        X=array_of("X"),
        y=array_of("y"),
    )
    labels = npy("<i8", (1 << 14,), bytes(8 << 14))
    file = model_file(tmp_path / "m", pipeline(*[near] * 300), X=NUMBERS, y=labels)
    refused(file, "more memory than its size")


def test_members_that_overlap_are_refused(tmp_path):
    """The directory of the archive has many names for the same bytes."""
    names = [f"a{k}" for k in range(300)]
    members = dict.fromkeys(names, npy("|b1", (0,)))
    path = model_file(
        tmp_path / "m", kta(path_=[array_of(n) for n in names]), whole=MEGABYTE, **members
    )
    with zipfile.ZipFile(path, "a") as archive:
        one = archive.getinfo("whole.npy")
        for name in names:
            other = archive.getinfo(f"{name}.npy")
            other.header_offset, other.CRC = one.header_offset, one.CRC
            other.file_size = other.compress_size = one.file_size
            other.orig_filename = "whole.npy"
        archive.writestr("end", b"")
    found = loaded(path)
    assert isinstance(found, StoredFileError)


@pytest.mark.parametrize("shape", [(10**9,), (2**31, 2**20), (0,)])
def test_strings_of_no_length_are_refused(shape, tmp_path):
    file = model_file(tmp_path / "m", kta(classes_=array_of("a")), a=npy("<U0", shape))
    refused(file, "is not read")


def test_the_length_of_no_strings_is_not_taken_from_the_file(tmp_path):
    empty = npy("<U500000000", (0,))
    found = loaded(model_file(tmp_path / "m", kta(classes_=array_of("a")), a=empty))
    assert found.classes_.dtype.itemsize == 4


def test_a_column_transformer_of_any_width_is_refused(tmp_path):
    refused(model_file(tmp_path / "m", pipeline(columns(width=10**9))), "more memory than its")
    many = [columns(width=10**5)] * 20
    refused(model_file(tmp_path / "m", pipeline(*many)), "more memory than its size")


def test_steps_are_not_run_while_they_are_read(tmp_path):
    """The arrays of a step can have shapes that give n² numbers from n."""
    scaler = kta(
        components_=array_of("a"), _center=array_of("a"), n_features_in_=1, offset_=array_of("a")
    )
    step = ["s", scaler, [0]]
    tall = npy("<f8", (1 << 17, 1), bytes(1 << 20))
    assert not isinstance(
        loaded(model_file(tmp_path / "m", pipeline(columns([step])), a=tall)), StoredFileError
    )


def test_dates_without_columns_do_not_grow(tmp_path):
    dates = class_of("gramian.app.encoders.DateEncoder", n_features_in_=10**9)
    loaded(model_file(tmp_path / "m", pipeline(dates)))


ROWS = class_of("gramian.completion.StoredRows", paths=[], cuts=array_of("c"), columns=1)
CUTS = npy("<i8", (2,), np.array([0, 10**9]).tobytes())


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            class_of(
                "sklearn.impute.SimpleImputer", options={"dict": []}, statistics=ROWS, names=None
            ),
            "the statistics of a SimpleImputer are not an array",
        ),
        (
            class_of(
                "sklearn.neighbors.KNeighborsClassifier",
                options={"dict": []},
                X=ROWS,
                y=array_of("c"),
            ),
            "the samples of a KNeighborsClassifier are not an array",
        ),
        (
            class_of(
                "sklearn.neighbors.KNeighborsClassifier",
                options={"dict": []},
                X=array_of("c"),
                y=["long" * 10**5, *["a"] * 10**4],
            ),
            "the labels of a KNeighborsClassifier are not an array",
        ),
        (
            class_of(
                "sklearn.preprocessing.OneHotEncoder",
                options={"dict": [["dtype", "float64"]]},
                categories=[ROWS],
                names=None,
            ),
            "the categories of an encoder are not an array",
        ),
        (columns(names=["a", "b", "c"]), "the names of columns are not an array"),
    ],
)
def test_only_arrays_are_taken_for_arrays(step, message, tmp_path):
    refused(model_file(tmp_path / "m", pipeline(step), c=CUTS), message)


def test_an_encoder_of_one_long_column_and_many_short_ones(tmp_path):
    """A naive reader would make a table of the longest column times the number of columns."""
    short = {"objects": ["a"], "shape": [1]}
    long = {"objects": [f"{k:04d}" for k in range(1000)], "shape": [1000]}
    encoder = class_of(
        "sklearn.preprocessing.OrdinalEncoder",
        options={"dict": [["dtype", "float64"]]},
        categories=[long, *[short] * 1000],
        names=None,
    )
    path = model_file(tmp_path / "m", pipeline(encoder))
    tracemalloc.start()
    found = gm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(own) for own in found[0].categories_] == [1000] + [1] * 1000
    assert peak < 1000 * 1000 * 8


def test_names_of_columns_are_looked_up_in_linear_time(tmp_path):
    def seconds(count: int) -> float:
        names = [f"c{k}" for k in range(count)]
        step = ["s", "drop", names]
        known = {"objects": names, "shape": [count]}
        path = model_file(tmp_path / "m", pipeline(columns([step], count, known)))
        start = time.process_time()
        assert gm.load(path)[0].n_features_in_ == count
        return time.process_time() - start

    seconds(10)
    assert seconds(20_000) < 30 * max(seconds(2_000), 0.01)


@pytest.mark.parametrize(
    ("degree", "width", "message"),
    [(10**6, 10, "degree of at most"), (2, 10**9, "more memory"), ([1, 10**9], 3, "at most")],
)
def test_polynomials_of_any_size_are_refused(degree, width, message, tmp_path):
    options = {"dict": [["degree", {"tuple": degree} if isinstance(degree, list) else degree]]}
    powers = class_of(
        "sklearn.preprocessing.PolynomialFeatures", options=options, width=width, names=None
    )
    refused(model_file(tmp_path / "m", pipeline(powers)), message)


def test_words_are_strings(tmp_path):
    counts = class_of(
        "sklearn.feature_extraction.CountVectorizer",
        options={"dict": []},
        words=[1, 2],
        fixed=False,
        weights=None,
    )
    refused(model_file(tmp_path / "m", pipeline(counts)), "are not a list of strings")


def test_an_imputer_of_many_columns_is_quick(tmp_path):
    """A naive reader would compute the mode of each column: 86 s for 165 kB."""
    count = 150_000
    imputer = class_of(
        "sklearn.impute.SimpleImputer",
        options={"dict": [["strategy", "most_frequent"]]},
        statistics=array_of("a"),
        names=None,
    )
    path = model_file(tmp_path / "m", pipeline(imputer), a=npy("|b1", (count,), bytes(count)))
    start = time.process_time()
    found = gm.load(path)[0]
    assert time.process_time() - start < 10
    assert found.strategy == "most_frequent" and found.statistics_.shape == (count,)


@pytest.mark.parametrize("key", ["[1, 2]", '{"tuple": [1, 2]}', str(2**64), '{"array": "a"}'])
def test_keys_whose_hashes_can_be_chosen_are_refused(key, tmp_path):
    file = model_file(tmp_path / "m", kta(_evidence={"dict": [["@", 1]]}), key, a=MEGABYTE)
    refused(file, "cannot be the key of a dictionary")


@pytest.mark.parametrize("part", ["[]", '{"tuple": []}', '{"float": "1"}', '{"dict": []}', "1e3"])
def test_trees_of_small_parts_stay_in_proportion(part, tmp_path):
    many = "[" + ",".join([part] * (200_000 // len(part))) + "]"
    path = model_file(tmp_path / "m", kta(path_="@"), many)
    gm.load(path)  # what is imported and cached is no part of it
    tracemalloc.start()
    gm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * path.stat().st_size


def test_a_wide_column_transformer_is_refused_before_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("gramian.app.pipelines.WIDEST", 3)
    X = np.random.default_rng(0).normal(size=(30, 5))
    wide = make_pipeline(ColumnTransformer([("s", StandardScaler(), [0])]), KTA())
    with pytest.raises(StoredFileError, match="without their names"):
        gm.save(wide.fit(X, X[:, 0] > 0), tmp_path / "m")


def test_a_column_transformer_keeps_sparse_outputs_and_places(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 12, 80), rng.normal(size=80)])
    made = ColumnTransformer([("o", OneHotEncoder(), [0]), ("s", StandardScaler(), [1])]).fit(X)
    pipe = make_pipeline(made, KTA()).fit(X, X[:, 0] > 5)
    gm.save(pipe, tmp_path / "m")
    again = gm.load(tmp_path / "m")[0]
    assert again.sparse_output_ and again.output_indices_ == pipe[0].output_indices_
    np.testing.assert_array_equal(again.transform(X).toarray(), pipe[0].transform(X).toarray())
    assert again.named_transformers_["s"].mean_ == pipe[0].named_transformers_["s"].mean_


DESCRS = ["<f8", "<f2", ">i4", "|b1", "|u1", "<U0", "<U1", "<U9", "<U99999999", "|S0", "|O", "|V0"]
SIZES = [0, 1, 2, 3, 50, 10**3, 2**20, 2**31, 2**62, 10**18, 10**30, -1]


@pytest.mark.slow
def test_mutated_headers_and_numbers_load_or_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 12, 80), rng.normal(size=80)])
    steps = [("o", OneHotEncoder(sparse_output=False), [0]), ("s", StandardScaler(), [1])]
    gm.save(make_pipeline(ColumnTransformer(steps), KTA()).fit(X, X[:, 0] > 5), tmp_path / "whole")
    with zipfile.ZipFile(tmp_path / "whole") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(150):
        changed = dict(parts)
        name = str(rng.choice(list(parts)))
        changed[name] = _with_other_numbers(name, parts[name], rng)
        with zipfile.ZipFile(tmp_path / "m", "w") as archive:
            for each, data in changed.items():
                archive.writestr(each, data)
        loaded(tmp_path / "m")


def _with_other_numbers(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    if name == storage.CONTENT:
        numbers = list(re.finditer(rb"(?<=[\s\[])\d+(?=[,\s\]])", data))
        place = numbers[rng.integers(len(numbers))]
        return data[: place.start()] + b"%d" % rng.choice(SIZES) + data[place.end() :]
    shape = tuple(int(size) for size in rng.choice(SIZES, size=rng.integers(0, 4)))
    return npy(str(rng.choice(DESCRS)), shape, data[128:])
