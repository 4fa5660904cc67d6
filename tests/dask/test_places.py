"""One fit at home, with data in blocks that stream to a device, and on a cluster: one answer."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from sklearn.datasets import load_wine, make_moons
from sklearn.preprocessing import StandardScaler

import gramian as gm
import gramian.dask as gd
from gramian.dask._completion import (
    CompletionModel,
    _coupled,
    _entries,
    _in_block,
    _linked,
    _looked,
)
from gramian.dask._ratings import RatingBlock
from gramian.losses import SquaredWithOffsets
from tests.slow import slow

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore::ResourceWarning"),
]

NO_ROOM = "300000"
"""Bytes of the device that the data of a test exceed, so that they are streamed in blocks."""

NOT_STREAMED = ("NPKL", "NuclearCompletion", "MMMF")
"""Their factors are larger than the data of a test (see tests/devices/test_streams.py)."""


def samples():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[::3], y[::3]


def moons():
    X, y = make_moons(150, noise=0.08, random_state=0)
    return X, np.where(np.arange(len(X)) < 20, y, -1)


@cache
def ratings():
    rng = np.random.default_rng(0)
    R = rng.normal(size=(480, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=(480, 1))
    i, j = np.nonzero(rng.random(R.shape) < 0.1)
    return pd.DataFrame({"user": i, "item": j, "rating": np.round(R[i, j], 1)})


def few_ratings():
    """Those of the first quarter of the users."""
    return ratings()[ratings()["user"] < 120]


FEW = {"lam": 4.0, "tol": 1e-2}


def stars():
    return (ratings(),)


def signs():
    return (ratings().assign(rating=np.where(ratings()["rating"] > 0, 1.0, -1.0)),)


CASES = {
    "KTA": (samples, {"lam": 0.01}),
    "LinearSeparation": (samples, {"lam": 1e-3}),
    "TripletMetric": (samples, {"shrinkage": 0.0, "n_neighbors": 2, "tol": 0.05}),
    "DMLEig": (samples, {"shrinkage": 0.0, "tol": 1e-2}),
    "LMNN": (samples, {"shrinkage": 0.0, "n_neighbors": 2, "tol": 1e-2}),
    "NPKL": (moons, {"lam": 10.0, "shrinkage": 0.0, "tol": 1e-2, "random_state": 0}),
    "NuclearCompletion": (stars, {"lam": 8.0, "tol": 1e-2}),
    "MMMF": (signs, {"lam": 30.0, "tol": 0.05}),
}

HOME = {name: getattr(room, name) for room in (gm.metric, gm.kernel, gm.completion)
        for name in dir(room) if name in CASES}  # fmt: skip


@cache
def at_home(name):
    data, options = CASES[name]
    return HOME[name](**options).fit(*data())


def placed(data):
    """The data as Dask collections of three partitions or more."""
    if isinstance(data[0], pd.DataFrame):
        return (dd.from_pandas(data[0], npartitions=3),)
    X, y = data
    rows = -(-len(X) // 3)
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


def triplets():
    X, y = samples()
    return (X[:, :5][gm.constraints.random_triplets(y, 90, random_state=0)],)


def pairs():
    X, y = samples()
    similar, other = gm.constraints.random_pairs(y, 60, random_state=0)
    return X[:, :5][np.vstack([similar, other])], np.repeat([True, False], len(similar))


TUPLES = {
    "LMNN": (triplets, "fit_triplets", {"shrinkage": 0.0, "tol": 1e-2}),
    "TripletMetric": (triplets, "fit_triplets", {"shrinkage": 0.0, "tol": 0.05}),
    "DMLEig": (pairs, "fit_pairs", {"shrinkage": 0.0, "tol": 1e-2}),
}


@cache
def tuples_at_home(name):
    data, method, options = TUPLES[name]
    return getattr(HOME[name](**options), method)(*data())


def of_workers():
    """The processor, as torch sees it, in place of the GPU of each worker."""
    torch = pytest.importorskip("torch", reason="tensors need torch: pip install 'gramian[gpu]'")
    return torch.device("cpu")


def agree(found, known, tol):
    """Two values of one problem differ by at most the sum of the certified gaps."""
    gaps = known.certificate_.gap + found.certificate_.gap
    apart = abs(found.result_.value - known.result_.value)
    assert apart <= gaps + 1e-9 * abs(known.result_.value)
    assert found.certificate_.relative_gap <= max(tol, 1e-9)


PLACES = ["device", "cluster", "devices of workers"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [*CASES])
def test_blocks_and_clusters_give_the_local_result(name, place, monkeypatch):
    data, options = CASES[name]
    known = at_home(name)
    if place != "cluster":
        options = options | {"device": of_workers()}
    if place == "device":
        if name not in NOT_STREAMED:
            monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", NO_ROOM)
        found = HOME[name](**options).fit(*data())
    else:
        found = getattr(gd, name)(**options).fit(*placed(data()))
    agree(found, known, options.get("tol", 0.0))
    at_home_again = found if place == "device" else found.at_home()
    assert type(at_home_again) is type(known)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [*TUPLES])
def test_pairs_and_triplets_in_blocks_give_the_local_result(name, place, monkeypatch):
    data, method, options = TUPLES[name]
    known, given = tuples_at_home(name), data()
    if place != "cluster":
        options = options | {"device": of_workers()}
    if place == "device":
        monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", NO_ROOM)
        found = getattr(HOME[name](**options), method)(*given)
    else:
        table = da.from_array(given[0], chunks=(40, *given[0].shape[1:]))
        found = getattr(getattr(gd, name)(**options), method)(table, *given[1:])
    agree(found, known, options["tol"])
    assert found.n_features_in_ == known.n_features_in_
    for attribute in ("mu_", "floor_", "ridge_", "lam_"):
        if hasattr(known, attribute):
            assert getattr(found, attribute) == pytest.approx(getattr(known, attribute), rel=1e-6)
    if method == "fit_pairs":
        assert found.threshold_ == pytest.approx(known.threshold_, rel=0.05)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_other_dtypes_give_the_local_result(kind):
    (X, y), options = samples(), CASES["KTA"][1]
    given = np.round(8 * X).astype(kind)
    found, known = gd.KTA(**options).fit(*placed((given, y))), HOME["KTA"](**options).fit(given, y)
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-5)


ON_DRIVER = {
    "LMNN": (samples, {"n_neighbors": 2, "rank": 2, "shrinkage": 0.0}),
    "LMNNEig": (samples, {"n_neighbors": 2, "tol": 0.1}),
    "RegPCP": (moons, {"tol": 0.05}),
    "MVU": (moons, {"tol": 0.1}),
    "NeighborLayout": (moons, {}),
}


@pytest.mark.parametrize(
    "name", ["LMNN", slow("LMNNEig"), "RegPCP", slow("MVU"), slow("NeighborLayout")]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samples_are_copied_to_the_driver(name):
    data, options = ON_DRIVER[name]
    X, y = data()
    home = next(getattr(room, name) for room in (gm.metric, gm.kernel, gm.manifold)
                if hasattr(room, name))  # fmt: skip
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    given = dd.from_pandas(frame, npartitions=3)
    labels = da.from_array(y, chunks=(tuple(given.map_partitions(len).compute()),))
    found = getattr(gd, name)(**options).fit(given, labels)
    known = home(**options).fit(frame, y)
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-9)
    assert found.result_.route == ("samples on the driver", *known.result_.route)
    assert list(found.feature_names_in_) == list(known.feature_names_in_)


def test_implicit_completion_is_fitted_on_the_driver():
    counts = ratings().assign(rating=ratings()["rating"].abs() + 0.1)
    found = gd.ImplicitCompletion(lam=5.0).fit(dd.from_pandas(counts, npartitions=3))
    known = gm.completion.ImplicitCompletion(lam=5.0).fit(counts)
    assert found.result_.value == pytest.approx(known.result_.value, rel=1e-9)
    assert found.result_.route[0] == "ratings on the driver"
    with pytest.raises(ValueError, match="needs entries above 0"):
        gd.ImplicitCompletion().fit(dd.from_pandas(ratings(), npartitions=2))
    with pytest.raises(ValueError, match="leave factors out"):
        gd.ImplicitCompletion().fit(dd.from_pandas(counts, npartitions=2), factors="there")


def spoilt(frame, change):
    """A Dask frame of three partitions, the second of which is changed."""
    frames = [frame.iloc[part].copy() for part in np.array_split(np.arange(len(frame)), 3)]
    frames[1] = change(frames[1])
    return dd.concat([dd.from_pandas(part, npartitions=1) for part in frames])


def nan_rating(frame):
    frame.iloc[4, 2] = np.nan
    return frame


def infinite_rating(frame):
    frame.iloc[4, 2] = np.inf
    return frame


def nan_user(frame):
    users = frame["user"].astype(float)
    users.iloc[7] = np.nan
    return frame.assign(user=users)


def no_item(frame):
    items = frame["item"].astype(object)
    items.iloc[7] = None
    return frame.assign(item=items)


def text_rating(frame):
    return frame.assign(rating=["good"] * len(frame))


def large_rating(frame):
    frame.iloc[4, 2] = 1e200
    return frame


BAD_RATINGS = [nan_rating, infinite_rating, nan_user, no_item, text_rating, large_rating]


def refused(home, there, *, prefix="partition 1: ", until=None):
    """Both raise one sentence; that of the cluster names the partition."""
    with pytest.raises(ValueError) as at_home:
        home()
    with pytest.raises(ValueError) as away:
        there()
    first, second = (str(one.value).splitlines()[0] for one in (at_home, away))
    assert (
        second[: until and len(prefix) + until]
        == f"{prefix}{first}"[: until and len(prefix) + until]
    )


@pytest.mark.parametrize("name", ["NuclearCompletion", slow("MMMF")])
@pytest.mark.parametrize("change", BAD_RATINGS)
def test_invalid_partition_of_ratings_raises_the_local_error(name, change):
    away = spoilt(ratings(), change)
    alone = away.partitions[1].compute()  # positions are those within the partition
    refused(lambda: HOME[name](lam=8.0).fit(alone), lambda: getattr(gd, name)(lam=8.0).fit(away))


@pytest.mark.parametrize("name", ["KTA", slow("LMNN"), slow("DMLEig"), slow("NPKL")])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e80])
def test_invalid_partition_of_samples_raises_the_local_error(name, bad):
    X, y = samples()
    X[25, 3] = bad
    refused(lambda: HOME[name]().fit(X, y), lambda: getattr(gd, name)().fit(*placed((X, y))))


@pytest.mark.parametrize("name", ["KTA", slow("LinearSeparation"), slow("LMNN")])
@pytest.mark.parametrize("change", ["missing", "fraction"])
def test_invalid_partition_of_labels_raises_the_local_error(name, change):
    X, y = samples()
    y = y.astype(float)
    y[25] = np.nan if change == "missing" else 0.5
    known, found = HOME[name](), getattr(gd, name)()
    until = None if change == "missing" else len("Unknown label type: continuous.")
    refused(lambda: known.fit(X, y), lambda: found.fit(*placed((X, y))), until=until)


@pytest.mark.parametrize("name", [*TUPLES])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e80])
def test_invalid_partition_of_tuples_raises_the_local_error(name, bad):
    data, method, _ = TUPLES[name]
    table, *same = data()
    table[45, 1, 2] = bad
    away = da.from_array(table, chunks=(40, *table.shape[1:]))
    refused(
        lambda: getattr(HOME[name](), method)(table, *same),
        lambda: getattr(getattr(gd, name)(), method)(away, *same),
    )


def marked_twice(table, same):
    return np.vstack([table, table[:1, ::-1]]), np.append(same, ~same[0])


def with_itself(table, same):
    table[50, 1] = table[50, 0]
    return table, same


def all_similar(table, same):
    return table, np.ones_like(same)


def zero_and_one(table, same):
    return table, same.astype(int)


@pytest.mark.parametrize("change", [marked_twice, with_itself, all_similar, zero_and_one])
def test_invalid_pairs_raise_the_local_error(change):
    """Pairs of several partitions are checked together; positions are those in the input."""
    table, same = change(*pairs())
    alone = change is zero_and_one  # several partitions are invalid: any of them may be named
    away = da.from_array(table, chunks=(len(table) if alone else 40, *table.shape[1:]))
    refused(
        lambda: HOME["DMLEig"]().fit_pairs(table, same),
        lambda: gd.DMLEig().fit_pairs(away, same),
        prefix="partition 0: " if alone else "",
    )


@pytest.mark.parametrize("name", ["LMNN", "TripletMetric"])
@pytest.mark.parametrize("order", [(0, 1, 0), (0, 0, 2), (0, 2, 1)])
def test_invalid_triplets_raise_the_local_error(name, order):
    (table,) = triplets()
    table = np.vstack([table, table[60:61, list(order)]])
    away = da.from_array(table, chunks=(40, *table.shape[1:]))
    refused(
        lambda: HOME[name]().fit_triplets(table),
        lambda: getattr(gd, name)().fit_triplets(away),
        prefix="",
    )


@pytest.mark.parametrize("kinds", [("int32", "uint16"), ("float64", "int32"), ("str", "category")])
def test_ids_and_ratings_of_other_dtypes_give_the_local_result(kinds):
    frame = few_ratings().astype({"user": kinds[0], "item": kinds[1], "rating": "float32"})
    found = gd.NuclearCompletion(**FEW).fit(dd.from_pandas(frame, npartitions=3))
    known = HOME["NuclearCompletion"](**FEW).fit(frame)
    assert found.row_ids_.tolist() == known.row_ids_.tolist()
    assert found.col_ids_.tolist() == known.col_ids_.tolist()
    agree(found, known, FEW["tol"])


def test_error_names_an_invalid_file(tmp_path):
    for k, part in enumerate(np.array_split(np.arange(len(ratings())), 3)):
        frame = ratings().iloc[part].copy()
        (nan_rating(frame) if k == 2 else frame).to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: rating 4 is nan"):
        gd.NuclearCompletion(lam=8.0).fit(str(tmp_path))


def test_order_of_ids_and_empty_partitions_do_not_matter():
    turned = few_ratings().sample(frac=1.0, random_state=1)
    frames = [turned[:0], turned[:500], turned[:0], turned[500:]]
    given = dd.concat([dd.from_pandas(part, npartitions=1) for part in frames])
    found = gd.NuclearCompletion(**FEW).fit(given)
    known = HOME["NuclearCompletion"](**FEW).fit(few_ratings())
    assert np.array_equal(found.row_ids_, known.row_ids_)
    gaps = known.certificate_.gap + found.certificate_.gap
    assert abs(found.result_.value - known.result_.value) <= gaps


def test_few_ratings_are_fitted_on_the_driver(monkeypatch):
    monkeypatch.setattr("gramian.dask._recommend.DRIVER_RATINGS", 10_000)
    found = gd.NuclearCompletion(lam=8.0, tol=1e-2).fit(*placed(stars()))
    known = at_home("NuclearCompletion")
    assert found.result_.route == ("ratings on the driver", *known.result_.route)
    assert np.array_equal(found.row_factors_, known.row_factors_)

    class Own(gd.NuclearCompletion):
        """A subclass of a user."""

    again = Own(lam=8.0, tol=1e-2).fit(*placed(stars()))
    assert np.array_equal(again.row_factors_, known.row_factors_)
    learned = gd.MMMF(lam=30.0).fit(dd.from_pandas(ratings().round({"rating": 0}), npartitions=2))
    assert learned.thresholds_.size == learned.classes_.size - 1  # learned, as at home


@pytest.mark.parametrize("ridge", [None, 5.0])
def test_block_without_ratings_does_not_change_the_sums(ridge):
    none = np.zeros(0)
    block = RatingBlock(
        (0, 3), [(0, 2)], np.zeros(4, dtype=np.int64), none.astype(np.int32), none, none > 0
    )
    model, fitted = CompletionModel(1.0, ridge, np.ones(3), np.ones(2)), (np.ones(3), np.ones(2))
    assert _entries(block, np.ones((3, 2)), [np.ones((2, 2))], None).size == 0
    for function, given in (
        (_looked, (*fitted, none)),
        (SquaredWithOffsets.sums_left, (None, None, none)),
        (SquaredWithOffsets.divided, (None, None, none)),
        (_linked, fitted),
    ):
        numbers, by_row = _in_block(function, block, model, *given)
        assert not numbers.any() and np.array_equal(by_row, np.zeros(3))
    assert _in_block(SquaredWithOffsets.slopes, block, model, *fitted, none).size == 0
    assert np.array_equal(_coupled(block, 5.0, np.ones(2)), np.zeros(2))
