"""Names of rows and columns: a table for whole numbers says what sorting says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.completion import NuclearCompletion
from gramian.completion._ratings import Ids
from gramian.completion._reading import gather

KINDS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_integer_ids_of_any_dtype_are_sorted(data, kind):
    info = np.iinfo(kind)
    near = data.draw(st.integers(info.min, info.max))
    low, high = max(info.min, near - 40), min(info.max, near + 40)
    given = np.array(data.draw(st.lists(st.integers(low, high), min_size=1, max_size=60)), kind)
    ids, place = Ids.of(given)
    names, expected = np.unique(given, return_inverse=True)
    np.testing.assert_array_equal(ids.names, names)
    np.testing.assert_array_equal(place, expected)
    assert ids.names.dtype == given.dtype


@pytest.mark.parametrize("other", [0.5, np.nan, np.inf, 2.0**63, 1e300])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_ids_that_are_floats_are_sorted(kind, other):
    for few in ([3.0, -1.0, 3.0, -0.0], [3.0, other, 2.0, other, 3.0]):
        with np.errstate(over="ignore"):
            floats = np.array(few, kind)
        ids, place = Ids.of(floats)
        names, expected = np.unique(floats, return_inverse=True)
        np.testing.assert_array_equal(ids.names, names)
        np.testing.assert_array_equal(place, expected)
        assert ids.names.dtype == kind


@pytest.mark.parametrize("ends", [[-128, 127], [-(2**63), 2**63 - 1], [0, 10**9]])
def test_accepts_integer_ids_with_large_gaps(ends):
    given = np.array([ends[1], ends[0], ends[1]])
    ids, place = Ids.of(given)
    assert ids.names.tolist() == sorted(ends)
    assert place.tolist() == [1, 0, 1]


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), duplicates=st.sampled_from(["mean", "sum", "last"]))
def test_entries_are_sorted_by_row_and_column(seed, duplicates):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, 7, 40), rng.integers(-3, 4, 40)
    values = rng.standard_normal(40)
    found = gather((i, j, values), duplicates=duplicates)
    known = {}
    for row, col, value in zip(i, j, values, strict=True):
        known.setdefault((row, col), []).append(value)
    joined = {"mean": np.mean, "sum": np.sum, "last": lambda given: given[-1]}[duplicates]
    expected = [(row, col, joined(given)) for (row, col), given in sorted(known.items())]
    rows, cols = found.row_ids.names[found.rows], found.col_ids.names[found.cols]
    np.testing.assert_array_equal(rows, [row for row, _, _ in expected])
    np.testing.assert_array_equal(cols, [col for _, col, _ in expected])
    np.testing.assert_allclose(found.values, [value for _, _, value in expected])


def test_ratings_of_float32_are_swept_in_float32(monkeypatch):
    from gramian.completion import NuclearCompletion
    from gramian.estimators import fitting

    asked, minimize = [], fitting.minimize

    def spied(*given, **named):
        asked.append(named["dtype"])
        return minimize(*given, **named)

    monkeypatch.setattr(fitting, "minimize", spied)
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((20, 10)) < 0.7)
    values = rng.random(i.size) + 3.0
    for kind in (np.float32, np.float64):
        NuclearCompletion(lam=1.0, tol=1e-4).fit((i, j, values.astype(kind)))
    assert asked == ["float32", None]


def test_pairs_of_text_and_numbers_keep_their_kinds():
    rows, cols = np.divmod(np.arange(60), 8)
    names = np.array([f"u{k}" for k in rows])
    model = NuclearCompletion(lam=1.0).fit((names, cols, 1.0 + (rows * cols) % 5))
    expected = model.predict((["u1", "u2"], [3, 4]))
    np.testing.assert_array_equal(model.predict([("u1", 3), ("u2", 4)]), expected)


def test_reports_text_in_place_of_numbers():
    rows, cols = np.divmod(np.arange(60), 8)
    model = NuclearCompletion(lam=1.0).fit((rows, cols, 1.0 + (rows * cols) % 5))
    message = "its ids are numbers such as 0, and these are text such as"
    with pytest.warns(UserWarning, match=message):
        model.predict([("1", "2")])
    with pytest.raises(ValueError, match="another kind than those of the fit: its ids are numbers"):
        model.update((["1"], ["2"], [3.0]))
    assert model.row_ids_.dtype.kind == "i"
    model.predict([(100, 2)])  # without a warning


def test_a_wide_frame_keeps_the_labels_of_its_rows():
    pd = pytest.importorskip("pandas")
    wide = pd.DataFrame(
        np.where(np.random.default_rng(0).random((12, 9)) < 0.7, 3.0, np.nan),
        index=[f"u{k}" for k in range(12)],
        columns=[f"i{k}" for k in range(9)],
    )
    model = NuclearCompletion(lam=1.0).fit(wide)
    assert set(model.row_ids_) == set(wide.index) and set(model.col_ids_) == set(wide.columns)
    numbered = NuclearCompletion(lam=1.0).fit(wide.reset_index(drop=True))
    assert list(numbered.row_ids_) == list(range(12))
