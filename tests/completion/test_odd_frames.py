"""Three hundred frames, arrays and matrices of ratings with up to three faults each: a sentence, or
a model that predicts numbers."""

import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gramian.completion import MMMF, NuclearCompletion
from gramian.reductions.block_embedding import balanced
from tests.slow import slow_except

PORTIONS, EACH = 10, 30
DEEP = (
    "zero-size", "setting an array", "broadcast", "unhashable", "NoneType", "not supported between",
    "ufunc", "object is not", "shapes (", "out of bounds", "cannot convert", "truth value",
)  # fmt: skip
"""What only the inside of a library says."""


def ratings(rng):
    m, n = rng.integers(2, 30), rng.integers(2, 20)
    keys = rng.choice(m * n, size=int(rng.integers(1, max(2, m * n // 2))), replace=False)
    i, j = np.divmod(keys, n)
    P, Q = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    stars = np.clip(np.round(3 + np.sum(P[i] * Q[j], axis=1)), 1, 5)
    return pd.DataFrame({"user": i, "item": j, "rating": stars})


def put(column, value):
    """A few entries of a column replaced."""

    def fault(frame, rng):
        column_of = frame[column].astype(object)
        for row in rng.integers(len(frame), size=min(3, len(frame))):
            column_of.iloc[row] = value
        return frame.assign(**{column: column_of})

    return fault


def made(column, change):
    """A whole column made something else."""
    return lambda frame, rng: frame.assign(**{column: change(frame[column])})


FAULTS = [
    lambda f, rng: pd.concat([f, f[::2]], ignore_index=True),
    lambda f, rng: pd.concat([f, f[::2].assign(rating=1.0)], ignore_index=True),
    lambda f, rng: f[:1],
    lambda f, rng: f[:0],
    lambda f, rng: f[f.columns[::-1]],
    lambda f, rng: f.drop(columns=f.columns[-1]),
    lambda f, rng: pd.concat([f, f.iloc[:, :1]], axis=1),
    lambda f, rng: f.set_axis(rng.permutation(len(f)) * 3),
    lambda f, rng: f.assign(timestamp=np.arange(len(f))),
    lambda f, rng: f.set_axis(["UserID", "MovieId", "Score", *f.columns[3:]], axis=1),
    lambda f, rng: f.set_axis([*"abcdef"][: f.shape[1]], axis=1),
    *(put("rating", v) for v in (np.nan, None, np.inf, "five", "", "4,5", "1e400", 1e300, [1])),
    *(put(c, v) for c in ("user", "item") for v in (np.nan, None, "", "x", pd.NA)),
    made("user", lambda c: 7),
    made("item", lambda c: "a"),
    made("rating", lambda c: 3.0),
    made("rating", lambda c: c.astype(str)),
    made("rating", lambda c: c.astype("Float64")),
    made("rating", lambda c: c.astype(float) > 3),
    made("rating", lambda c: c.astype(float) * 1e-300),
    made("rating", lambda c: c.astype(float) * 1e12 - 4e12),
    made("rating", lambda c: c.astype(float) + 1j),
    made("user", lambda c: c.map("Ünï {}\t'".format)),
    made("user", lambda c: c.astype(np.uint64) + np.uint64(2**63)),
    made("user", lambda c: -c.astype(int) - 2**40),
    made("user", lambda c: pd.Timestamp("2020-01-01") + pd.to_timedelta(c.astype(int), unit="D")),
    made("user", lambda c: c.astype("Int64")),
    made("item", lambda c: c.astype(np.int64) * 1_000_000_007 + 10**9),
    made("item", lambda c: c.astype(float) + 0.5),
    made("item", lambda c: c.astype(str).astype("category")),
]


def faulty(rng):
    frame = ratings(rng)
    for fault in rng.choice(len(FAULTS), size=int(rng.integers(1, 4))):
        try:
            frame = FAULTS[fault](frame.copy(), rng)
        except (KeyError, ValueError, TypeError, IndexError, OverflowError):
            continue  # a fault that another one has made impossible
    return frame


def shaped(frame, rng):
    """As it is, as arrays, as arrays of different lengths, or as a matrix."""
    columns = [np.asarray(frame.iloc[:, k]) for k in range(min(3, frame.shape[1]))]
    shape = rng.integers(6)
    if shape == 0:
        return tuple(columns)
    if shape == 1:
        return tuple(column[: len(column) - k] for k, column in enumerate(columns))
    if shape > 2 or len(columns) < 3 or frame.empty:
        return frame
    i, j = (np.unique(column.astype(str), return_inverse=True)[1] for column in columns[:2])
    values = pd.to_numeric(pd.Series(columns[2]), errors="coerce").to_numpy(na_value=np.nan)
    return sp.csr_array((values, (i, j)))


def model(rng):
    kind = rng.integers(6)
    if kind == 0:
        return NuclearCompletion(time_limit=5)
    if kind == 1:
        return MMMF(lam=1.0, max_iter=2)
    duplicates = ("mean", "last", "sum", "error")[kind - 2]
    return NuclearCompletion(lam=2.0, max_iter=2, duplicates=duplicates)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("portion", slow_except(range(PORTIONS), 1, 2))
def test_unusual_ratings_are_fitted_or_rejected_with_a_message(portion):
    told = [outcome(seed) for seed in range(portion * EACH, (portion + 1) * EACH)]
    wrong = [one for one in told if one not in ("fitted", "refused")]
    assert not wrong, "\n".join(wrong)
    assert {"fitted", "refused"} <= set(told)


def outcome(seed):
    rng = np.random.default_rng(seed)
    given = shaped(faulty(rng), rng)
    try:
        fitted = model(rng).fit(given)
    except (ValueError, TypeError) as refusal:
        said, where = str(refusal), traceback.extract_tb(refusal.__traceback__)[-1].filename
        plainly = "gramian" in where or where.endswith("validation.py")
        deep = not plainly or len(said) < 15 or any(word in said for word in DEEP)
        return f"{seed}: {said} from {where}" if deep else "refused"
    if sp.issparse(given):
        return "fitted"
    known = given[:2] if isinstance(given, tuple) else given
    return "fitted" if np.all(np.isfinite(fitted.predict(known))) else f"{seed}: not finite"


def test_a_factor_wider_than_a_side_is_balanced():
    """Its singular vectors were cut by the wrong count: small sets ended in IndexError."""
    factor = np.random.default_rng(0).normal(size=(9, 6))
    for m in (3, 6):
        turned = balanced(factor, m)
        np.testing.assert_allclose(turned[:m] @ turned[m:].T, factor[:m] @ factor[m:].T, atol=1e-12)


@pytest.mark.parametrize("pivoted", [False, True])
def test_rejects_complex_ratings(pivoted):
    given = ratings(np.random.default_rng(0)).assign(rating=1 + 1j)
    if pivoted:
        users, items = pd.Index([5, 7], name="user"), pd.Index([1, 2, 3], name="item")
        given = pd.DataFrame(np.full((2, 3), 1 + 1j), index=users, columns=items)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"ratings must (be|hold real)"):
        warnings.simplefilter("error")
        NuclearCompletion(lam=1.0).fit(given)
