"""Saved models: round trips, and rejection of hostile files."""

import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, load_wine, make_swiss_roll
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import gramian as gm
from gramian import StoredFileError
from gramian.app.encoders import DateEncoder
from gramian.common import storage
from gramian.completion import MMMF, NuclearCompletion
from gramian.estimators import persistence
from gramian.kernel import NPKL, PCP, InductiveKernel, KernelKMeans, RegPCP
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from gramian.metric import (
    KTA,
    LMNN,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    MetricClassifier,
    TripletMetric,
)
from gramian.spectral import LowRankKernel
from tests.slow import slow, slow_among

IRIS, CLASSES = (part[::3] for part in load_iris(return_X_y=True))
ROLL = make_swiss_roll(60, random_state=0)[0]
ENTRIES = np.random.default_rng(0).permutation(12 * 9)[:70]
RATINGS = (
    np.array([f"user {k}" for k in ENTRIES // 9], dtype=object),
    ENTRIES % 9,
    1.0 + ENTRIES % 5,
)

FITTED = {
    "kta": lambda: KTA().fit(IRIS, CLASSES),
    "kernel kta": lambda: KTA(kernel="rbf").fit(IRIS, CLASSES),
    "warm kta": lambda: KTA(init=KTA().fit(IRIS, CLASSES)).fit(IRIS, CLASSES),
    "frame": lambda: KTA().fit(pd.DataFrame(IRIS, columns=list("abcd")), CLASSES.astype(str)),
    "lmnn": lambda: LMNN().fit(IRIS, CLASSES),
    "dml-eig": lambda: DMLEig(shrinkage=0.0).fit(IRIS, CLASSES),
    "lmnn-eig": lambda: LMNNEig(shrinkage=0.0).fit(IRIS, CLASSES),
    "collapse": lambda: ClassCollapse(n_components=2).fit(IRIS, CLASSES),
    "separation": lambda: LinearSeparation().fit(IRIS, CLASSES),
    "triplets": lambda: TripletMetric(shrinkage=0.5).fit(sp.csr_matrix(IRIS), CLASSES),
    "mvu": lambda: MVU().fit(ROLL),
    "mvu in parts": lambda: MVU(n_neighbors=3, connect="components", tol=1e-2).fit(
        np.vstack([ROLL, ROLL + 100])
    ),
    "colored mvu": lambda: ColoredMVU(tol=1e-2).fit(IRIS, CLASSES),
    "reg mvu": lambda: RegMVU().fit(ROLL),
    "layout": lambda: NeighborLayout(rounds=1, tol=0.1).fit(ROLL),
    "npkl": lambda: NPKL().fit(IRIS, CLASSES),
    "sparse npkl": lambda: NPKL().fit(sp.csr_matrix(IRIS), CLASSES),
    "pcp": lambda: PCP().fit(IRIS, CLASSES),
    "reg pcp": lambda: RegPCP().fit(IRIS, CLASSES),
    "inductive": lambda: InductiveKernel().fit(IRIS, CLASSES),
    "k-means": lambda: KernelKMeans(n_clusters=3, kernel="rbf").fit(IRIS),
    "low rank": lambda: LowRankKernel(n_components=3).fit(IRIS),
    "completion": lambda: NuclearCompletion().fit(RATINGS),
    "mmmf": lambda: MMMF().fit(RATINGS),
}


@cache
def fitted(name: str) -> BaseEstimator:
    return FITTED[name]()


def answers(estimator: BaseEstimator) -> list[np.ndarray]:
    """What a fitted estimator says of samples or pairs."""
    if isinstance(estimator, NuclearCompletion | MMMF):
        pairs = (np.array(["user 3", "nobody", "user 7"], dtype=object), np.array([1, 2, 99]))
        return [*estimator.predict(pairs, return_known=True), estimator.recommend("user 3", 3)[1]]
    X = ROLL if estimator.n_features_in_ == 3 else IRIS
    if hasattr(estimator, "feature_names_in_"):
        X = pd.DataFrame(X, columns=estimator.feature_names_in_)
    names = [name for name in ("transform", "predict") if hasattr(estimator, name)]
    if hasattr(estimator, "components_") or hasattr(estimator, "dual_components_"):
        names = ["transform"]  # a metric predicts pairs
    return [getattr(estimator, name)(X) for name in names]


@pytest.mark.parametrize("name", slow_among(FITTED, "mmmf"))
def test_round_trip(name, tmp_path):
    estimator = fitted(name)
    estimator.save(tmp_path / "model.gramian")
    loaded = gm.load(tmp_path / "model.gramian")
    assert type(loaded) is type(estimator)
    assert vars(loaded).keys() == vars(estimator).keys()
    for before, after in zip(answers(estimator), answers(loaded), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-10)
    if hasattr(estimator, "certificate_"):
        assert str(loaded.certificate_) == str(estimator.certificate_)
        assert loaded.result_.status is estimator.result_.status
        np.testing.assert_equal(loaded.result_.history.records, estimator.result_.history.records)


@pytest.mark.parametrize("name", ["kta", "mvu", "npkl", "completion"])
@pytest.mark.parametrize("how", [pickle, slow(joblib)])
def test_pickle_and_joblib_work_too(name, how, tmp_path):
    estimator = fitted(name)
    with open(tmp_path / "model", "wb") as file:
        how.dump(estimator, file)
    with open(tmp_path / "model", "rb") as file:
        loaded = how.load(file)
    for before, after in zip(answers(estimator), answers(loaded), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-10)


def test_round_trip_of_pipeline(tmp_path):
    frame = pd.DataFrame(IRIS, columns=list("abcd"))
    names = np.array(["setosa", "versicolor", "virginica"])[CLASSES]
    model = make_pipeline(StandardScaler(), KTA(), KNeighborsClassifier(3)).fit(frame, names)
    gm.save(model, tmp_path / "model")
    loaded = gm.load(tmp_path / "model")
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_allclose(loaded[:-1].transform(frame), model[:-1].transform(frame))
    assert loaded.feature_names_in_.tolist() == list("abcd")


def test_rejects_pipeline_with_unknown_step(tmp_path):
    model = make_pipeline(FastICA(2, random_state=0), KTA()).fit(IRIS, CLASSES)
    with pytest.raises(
        StoredFileError, match=r"of type FastICA, .* Binarizer, .* VarianceThreshold"
    ):
        gm.save(model, tmp_path / "model")


WORDS = ["the", "cat", "dog", "sat", "ran", "far", "from", "home", "in", "a", "big", "house"]
TEXTS = [" ".join(np.random.default_rng(k).choice(WORDS, 8)) for k in range(len(IRIS))]
STEPS = {
    "scaled": [MaxAbsScaler(), Normalizer(), VarianceThreshold(1e-9)],
    "quantiles": [QuantileTransformer(n_quantiles=10), Binarizer(threshold=0.5)],
    "powers": [PowerTransformer(), PolynomialFeatures((1, 2), interaction_only=True)],
    "bins": [KBinsDiscretizer(3, strategy="uniform"), TruncatedSVD(3, random_state=0)],
    "union": [make_union(StandardScaler(), PCA(2))],
    "tf-idf": [TfidfVectorizer(ngram_range=(1, 2), stop_words="english"), TruncatedSVD(3)],
    "frequencies": [TfidfVectorizer(use_idf=False, dtype=np.float32)],
    "counts": [CountVectorizer(vocabulary=["house", "cat", "dog"]), TfidfTransformer()],
    "hashes": [HashingVectorizer(n_features=64)],
}


@pytest.mark.parametrize("name", STEPS)
def test_round_trip_of_steps(name, tmp_path):
    text = name in ("tf-idf", "frequencies", "counts", "hashes")
    samples = TEXTS if text else pd.DataFrame(IRIS, columns=list("abcd"))
    model = make_pipeline(*STEPS[name], KTA(lam=0.1)).fit(samples, CLASSES)
    gm.save(model, tmp_path / "model")
    loaded = gm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(samples), model.transform(samples))
    for before, after in zip(model.steps, loaded.steps, strict=True):
        assert vars(before[1]).keys() - {"_fit_svd_solver"} == vars(after[1]).keys()
    if name != "hashes":
        names = model[:-1].get_feature_names_out()
        assert loaded[:-1].get_feature_names_out().tolist() == names.tolist()


def test_the_file_is_a_zip_of_arrays_and_json(tmp_path):
    model = fitted("kta")
    model.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        arrays = [archive[name] for name in archive.files if name != storage.CONTENT]
        content = json.loads(archive[storage.CONTENT])
    assert any(np.array_equal(array, model.components_) for array in arrays)
    assert content["format"] == "gramian model" and content["format_version"] == 1


def test_error_names_unsupported_attribute(tmp_path):
    model = KTA(kernel=lambda X, Z: X @ Z.T, lam=0.1).fit(IRIS, CLASSES)
    with pytest.raises(StoredFileError, match=r"estimator\.kernel is of type function"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_rejects_unfitted_model(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        KTA().save(tmp_path / "model")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        gm.load(tmp_path / "nothing")


def test_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted("kta").save(path)
    old = path.read_bytes()

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fitted("lmnn").save(path)
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


# --- hostile files ---------------------------------------------------------------------


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def rewritten(source: Path, target: Path, change, compression=zipfile.ZIP_STORED) -> Path:
    """A model file whose content went through a function."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compression) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == storage.CONTENT:
                content = json.loads(data)
                change(content)
                data = json.dumps(content).encode()
            new.writestr(name, data)
    return target


@pytest.fixture
def model(tmp_path):
    fitted("kta").save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("name", "names"),
    [("mvu in parts", ("nu", "nu_")), ("reg mvu", ("nu", "nu_")), ("lmnn-eig", ("gamma",)),
     ("low rank", ("method",))],
)  # fmt: skip
def test_reads_models_written_before_parameters_were_renamed(name, names, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "new")

    def rename(tree):
        if isinstance(tree, dict):
            state = tree.get("state", {})
            for old in names:
                new = type(model)._renamed[old]
                if new in state:
                    state[old] = state.pop(new)
            tree = list(tree.values())
        for part in tree if isinstance(tree, list) else []:
            rename(part)

    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        loaded = gm.load(rewritten(tmp_path / "new", tmp_path / "old", rename))
        assert loaded.get_params() == model.get_params()
        assert vars(loaded).keys() == vars(model).keys()
    if "nu_" in names:
        with pytest.warns(FutureWarning, match="use lam_$"):
            np.testing.assert_array_equal(loaded.nu_, model.lam_)


def test_reads_models_written_before_classes_were_moved(model, tmp_path):
    with zipfile.ZipFile(model) as new, zipfile.ZipFile(tmp_path / "old", "w") as old:
        for name in new.namelist():
            data = new.read(name)
            for former, present in storage.FORMER_NAMES.items():
                data = data.replace(present.encode(), former.encode())
            old.writestr(name, data)
    assert b"gramian.outer.EvidencePath" in zipfile.ZipFile(tmp_path / "old").read(storage.CONTENT)
    path = gm.load(tmp_path / "old").path_
    np.testing.assert_array_equal(path.values, gm.load(model).path_.values)


def test_rejects_pickle(model, tmp_path):
    bait = tmp_path / "bait"
    (tmp_path / "evil").write_bytes(pickle.dumps(Evil(bait)))
    with pytest.raises(StoredFileError, match="not a complete gramian model"):
        gm.load(tmp_path / "evil")
    objects = io.BytesIO()
    np.save(objects, np.array([Evil(bait)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(tmp_path / "evil", "w") as new:
        for name in old.namelist():
            data = objects.getvalue() if name.endswith(".npy") else old.read(name)
            new.writestr(name, data)
    with pytest.raises(StoredFileError, match="is not read"):
        gm.load(tmp_path / "evil")
    assert not bait.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format_version=99), "newer gramian"),
        (lambda c: c.update(format="gramian checkpoint"), "a gramian model is expected"),
        (lambda c: c.update(content=3), "holds no estimator"),
        (lambda c: c["content"]["dict"][1][1].update({"class": "os.system"}), "unknown class"),
        (lambda c: c["content"]["dict"][1][1].update({"class": "gramian.Nope"}), "unknown class"),
        (lambda c: c["content"]["dict"][1][1]["state"].update({"transform": 1}), "not an attrib"),
        (lambda c: c["content"]["dict"][1][1]["state"].update({"__class__": 1}), "not an attrib"),
        (lambda c: c["content"]["dict"][1][1]["state"].update({"__dict__": 1}), "not an attrib"),
    ],
)
def test_rejects_wrong_content(change, message, model, tmp_path):
    with pytest.raises(StoredFileError, match=message):
        gm.load(rewritten(model, tmp_path / "evil", change))


def test_rejects_compressed_members(model, tmp_path):
    """A compressed member could be a bomb."""
    bomb = rewritten(model, tmp_path / "bomb", lambda c: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(StoredFileError, match="compressed"):
        gm.load(bomb)


def test_rejects_deep_nesting(tmp_path):
    with zipfile.ZipFile(tmp_path / "deep", "w") as archive:
        deep = "[" * 100_000 + "]" * 100_000
        archive.writestr(
            storage.CONTENT,
            f'{{"format": "gramian model", "format_version": 1, "content": {deep}}}',
        )
    with pytest.raises(StoredFileError, match="not a complete gramian model"):
        gm.load(tmp_path / "deep")


@pytest.mark.parametrize("indptr", [[0, 10**6, 2, 0], [0, 2, 1, 3], [1, 2, 3, 3], [0, 1, 2, 9]])
def test_rejects_inconsistent_sparse_matrix(indptr, tmp_path):
    whole = sp.csr_array(np.eye(3))
    whole.indptr[:] = indptr
    storage.write(tmp_path / "evil", "model", {"estimator": whole})
    with pytest.raises(StoredFileError, match="are inconsistent"):
        gm.load(tmp_path / "evil")


def test_rejects_invalid_characters(tmp_path):
    evil = np.array([2**31], dtype=np.uint32).view("<U1")
    storage.write(tmp_path / "evil", "model", {"estimator": evil})
    with pytest.raises(StoredFileError, match="characters that do not exist"):
        gm.load(tmp_path / "evil")


def test_rejects_array_with_wrong_shape(model, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(tmp_path / "evil", "w") as new:
        for name in old.namelist():
            new.writestr(name, header.getvalue() if name.endswith(".npy") else old.read(name))
    with pytest.raises(StoredFileError, match="claims the shape"):
        gm.load(tmp_path / "evil")


FUZZ = """
import resource, signal, sys
import numpy as np
import gramian as gm
from gramian.common.storage import FORMER_NAMES, StoredFileError
from tests.fuzz import mutations

source, work, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = open(source, "rb").read()
gm.load(source)
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
loaded = 0
for mutated in mutations(data, count, seed=0):
    open(work, "wb").write(mutated)
    signal.setitimer(signal.ITIMER_PROF, 5)
    try:
        gm.load(work)
        loaded += 1
    except StoredFileError:
        pass
    signal.setitimer(signal.ITIMER_PROF, 0)
print(loaded)
"""


@pytest.mark.parametrize(
    ("name", "count"),
    [("kta", 100), slow("kta", 1000), slow("sparse npkl", 200), slow("mmmf", 200)],
)
def test_mutated_models_load_or_are_rejected(name, count, tmp_path):
    """Many files, in a process with little memory and a clock: no other way out."""
    fitted(name).save(tmp_path / "model")
    paths = [str(tmp_path / "model"), str(tmp_path / "x")]
    command = [sys.executable, "-c", FUZZ, *paths, str(count)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 0.9 * count  # the mutations do break files


def test_round_trip_of_common_steps(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": rng.normal(size=60),
            "colour": rng.choice(["red", "blue", "green"], 60),
            "day": [f"2024-01-{1 + k % 28:02d}" for k in range(60)],
            "size": rng.choice(["small", "large"], 60),
        }
    )
    y = rng.integers(0, 2, 60)
    columns = ColumnTransformer(
        [
            ("kinds", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
            ("sizes", OrdinalEncoder(), ["size"]),
            ("days", make_pipeline(DateEncoder(), SimpleImputer()), ["day"]),
        ],
        remainder="passthrough",
    )
    for steps in (
        [MinMaxScaler(), KTA()],
        [RobustScaler(), PCA(3), MetricClassifier(metric=KTA(lam=0.1))],
    ):
        model = make_pipeline(columns, *steps).fit(frame, y)
        gm.save(model, tmp_path / "m.gramian")
        again = gm.load(tmp_path / "m.gramian")
        way = "predict_proba" if isinstance(steps[-1], MetricClassifier) else "transform"
        new = frame.iloc[::-1].assign(colour="pink")
        np.testing.assert_allclose(getattr(again, way)(new), getattr(model, way)(new))
        assert again.feature_names_in_.tolist() == list(frame)
    plain = make_pipeline(ColumnTransformer([("s", StandardScaler(), [2, 0])]), KTA())
    plain.fit(IRIS, CLASSES)
    gm.save(plain, tmp_path / "p.gramian")
    kept = gm.load(tmp_path / "p.gramian")
    np.testing.assert_allclose(kept.transform(IRIS), plain.transform(IRIS))
    rare = make_pipeline(OneHotEncoder(min_frequency=3, sparse_output=False), KTA())
    with pytest.raises(StoredFileError, match="infrequent categories"):
        gm.save(rare.fit(frame[["colour"]], y), tmp_path / "r.gramian")


def test_dates_are_days():
    when = pd.DataFrame({"when": ["1970-01-03", "31.1.1970", "1970-01-01T12:00:00", None]})
    found = DateEncoder().fit_transform(when)[:, 0]
    np.testing.assert_array_equal(found, [2.0, 30.0, 0.5, np.nan])
    for wrong in ("soon", "2024-13-01", "31.1.1970 25:00", "31.1.1970 noon"):
        with pytest.raises(ValueError, match="is no date: write it as 2024-05-31"):
            DateEncoder().fit(pd.DataFrame({"when": [wrong]}))


def test_dates_of_spreadsheets_are_days(tmp_path):
    when = ["1/2/1970", "1/31/1970 6:00 PM", "12/31/1970"]
    encoder = DateEncoder().fit(pd.DataFrame({"when": when}))
    assert encoder.transform(pd.DataFrame({"when": when}))[:, 0].tolist() == [1.0, 30.75, 364.0]
    assert encoder.transform(pd.DataFrame({"when": ["2/1/1970"]}))[0, 0] == 31.0  # as in the fit
    assert DateEncoder().fit_transform([["13/1/1970"], ["2/1/1970"]]).tolist() == [[12.0], [1.0]]
    assert DateEncoder().fit_transform([["03.01.1970 06:00"]]).tolist() == [[2.25]]
    gm.save(
        make_pipeline(encoder, StandardScaler()).fit(pd.DataFrame({"when": when})), tmp_path / "d"
    )
    assert gm.load(tmp_path / "d")[0].first_ == ["month"]
    for wrong in (["3/4/2024"], ["13/1/2024", "1/13/2024"]):
        with pytest.raises(ValueError, match="day or month first: write them as 2024-05-31"):
            DateEncoder().fit(pd.DataFrame({"when": wrong}))


def test_fit_on_the_device_of_the_data_leaves_the_parameter_alone(monkeypatch):
    """The device of the data is used, and `device` stays None during and after the fit."""
    X, y = load_wine(return_X_y=True)
    learner, asked = KTA(lam=1.0), []
    learner.left_over_ = 1
    monkeypatch.setattr(persistence, "_device_of", lambda given: "cpu")
    fit = type(learner)._fit

    def spied(self, *given, **named):
        asked.append((learner.device, self.device))
        del self.left_over_
        return fit(self, *given, **named)

    monkeypatch.setattr(KTA, "_fit", spied)
    assert learner.fit(X, y) is learner
    assert asked == [(None, "cpu")]
    assert learner.device is None and learner.components_.shape[1] == X.shape[1]
    assert not hasattr(learner, "left_over_")
