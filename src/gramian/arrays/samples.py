"""Validation of arrays, and centring of samples.

Errors are raised before any computation: later, the same input would overflow, be truncated or lose
its mask silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.cpu import taken
from gramian.arrays.threads import in_parts
from gramian.common.types import Array
from gramian.common.warnings import warn

MAX_SIZE = 1e70
MIN_SIZE = 1 / MAX_SIZE
"""Largest and smallest size whose fourth power, which alignment sums, neither overflows nor
underflows."""

SINGLE = 1e15
"""Largest size whose squares float32 can sum; the inverse is the smallest."""

FAR = 100.0
"""Ratio of squared mean to variance above which a column is far from the origin: centred products
lose as many decimal digits as the logarithm of this ratio."""

UNKNOWN = -1
"""The label of a sample of unknown class."""

NAMES_OF_MISSING = frozenset(
    ("unknown", "unlabelled", "unlabeled", "missing", "nan", "na", "n/a", "none", "null", "?")
)
"""Text that often marks a missing label, in lower case."""

NONE_INSTEAD = "replace it by None"

OF_TIME = ("date", "time", "duration")
"""How the types of columns of dates begin, in pandas and polars."""

BLOCK = 4096
"""Rows per block where a sum over all of X would need a second copy of it."""

CACHED = 2**17
"""Entries of the rows of a step within a block. For 60,000 × 784 numbers the extremes, sums and
squares of all columns take 217 ms by whole blocks and 116 by steps, in one thread."""


def checked_samples(X: Any, **options: Any) -> Any:
    """A dense or CSR array of finite float32 or float64 numbers that can be squared."""
    # Imported here: it takes a second, more than a small problem without samples.
    from sklearn.utils.validation import check_array

    refuse_masked(X, "X")
    with naming_text(X):
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], **options)
    return ready(X)


def ready(X: Any, name: str = "X", size: float | None = None) -> Any:
    """Validated samples in the form used by the library: squares fit, indices have 32 bits.

    `size` is their largest absolute entry, if known.
    """
    size = check_size(X, name, size=size)
    if X.dtype == np.float32 and not 1 / SINGLE < size < SINGLE:
        X = X.astype(np.float64)
    return with_short_indices(X)


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Name the columns of text or dates of a data frame in the error of a failed conversion.

    Things that are no samples are rejected first: dates, which NumPy converts, and names of files.
    """
    refuse_no_samples(X)
    try:
        yield
    except (TypeError, ValueError) as refusal:
        failed = isinstance(refusal, TypeError) or "could not convert string" in str(refusal)
        found = _text_columns(X) if failed else []
        if not found:
            raise
        raise _text_error(found) from None


def _text_error(columns: list[str]) -> ValueError:
    some = ", ".join(map(repr, columns[:5])) + (", …" if len(columns) > 5 else "")
    return ValueError(
        f"X has text or dates where numbers belong, in {some}: leave columns out with "
        "X.drop(columns=…), or encode them first (sklearn.preprocessing.OneHotEncoder, "
        "gramian.encoders.DateEncoder)"
    )


def refuse_no_samples(X: Any) -> None:
    """Raise ValueError for what is not an array or a frame, and for dates."""
    odd = isinstance(X, str | PurePath | dict | set) and not sp.issparse(X)  # DOK is a dict
    if X is None or odd:
        raise ValueError(
            f"X must be an array or a data frame, got {type(X).__name__}: read a file with "
            "pandas.read_csv, and make a frame of columns with pandas.DataFrame"
        )
    if isinstance(X, list):
        lengths = {len(row) for row in X if hasattr(row, "__len__") and not isinstance(row, str)}
        if len(lengths) > 1:
            raise ValueError(f"rows of X differ in length: from {min(lengths)} to {max(lengths)}")
    if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":
        raise ValueError(
            "X has dates where numbers belong: encode them first (gramian.encoders.DateEncoder)"
        )
    kinds = getattr(X, "dtypes", None)
    if kinds is None or not hasattr(X, "columns"):
        return
    named = zip(X.columns, kinds, strict=True)
    if dates := [str(name) for name, kind in named if str(kind).lower().startswith(OF_TIME)]:
        raise _text_error(_text_columns(X) or dates)
    if hasattr(X, "iloc") and not X.columns.is_unique:
        some = ", ".join(map(repr, X.columns[X.columns.duplicated()].unique()[:5]))
        raise ValueError(f"columns of X have the same name, {some}: rename or remove them")


def _text_columns(X: Any) -> list[str]:
    """The columns of a frame with a cell that is not a number."""
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return []
    found = []
    for place, name in enumerate(X.columns):
        values = X.iloc[:, place].to_numpy()
        if values.dtype.kind in "mM":  # NumPy converts dates to numbers
            values = values.astype(str)
        try:
            values.astype(float)
        except (TypeError, ValueError):
            found.append(str(name))
    return found


def refuse_masked(values: Any, name: str) -> None:
    """Raise ValueError for masked entries, whose mask NumPy would drop silently."""
    if isinstance(values, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(values)):
        raise ValueError(
            f"{name} has {int(np.ma.getmaskarray(values).sum())} masked entries, and every entry "
            "is needed here: fill them, or leave out what they belong to"
        )


def check_size(
    values: Any,
    name: str,
    *,
    least: float = MIN_SIZE,
    most: float = MAX_SIZE,
    size: float | None = None,
) -> float:
    """The largest absolute entry, or the known `size`; ValueError if sums of powers overflow or
    underflow."""
    size = _largest_size(values) if size is None else size
    if most < size < np.inf or 0 < size < least:
        fault = ("large", "overflow") if size > most else ("small", "vanish")
        raise ValueError(
            f"the entries of {name} are too {fault[0]} (up to {size:.1e}): sums of their squares "
            f"{fault[1]}; rescale {name}"
        )
    return size


def finite_size(X: Any, owner: str) -> float:
    """The largest absolute entry; ValueError if one is not finite, with the estimator's name."""
    size = _largest_size(X)
    if not np.isfinite(size):
        from sklearn.utils.validation import assert_all_finite

        assert_all_finite(X, estimator_name=owner, input_name="X")
    return size


def _largest_size(values: Any) -> float:
    """The largest |x|, in parallel over parts of a long array; NaN if there is one."""
    entries = _stored(values) if sp.issparse(values) else np.asarray(values)
    if entries.size == 0:
        return 0.0
    flat = entries.reshape(-1) if entries.flags.c_contiguous else entries
    ends: list[float] = []
    step = max(1, CACHED // max(1, flat[:1].size))

    def take(first: int, last: int) -> None:
        for start in range(first, last, step):
            some = flat[start : min(start + step, last)]
            ends.extend((float(some.max()), -float(some.min())))

    in_parts(take, len(flat), flat.size)
    return float(np.max(ends))


def _stored(matrix: Any) -> NDArray[Any]:
    """The stored entries of a sparse matrix of any format."""
    return np.asarray(matrix.tocsr().data if matrix.format in ("lil", "dok") else matrix.data)


def check_matrix(matrix: Any, name: str) -> None:
    """Raise ValueError for a mask, or for entries whose squares overflow."""
    refuse_masked(matrix, name)
    numbers = isinstance(matrix, np.ndarray) and matrix.dtype.kind == "f"
    if sp.issparse(matrix) or numbers or isinstance(matrix, float):
        check_size(matrix, name, least=0.0)


def with_short_indices(X: Any) -> Any:
    """CSR with 32-bit indices if possible, as compiled code requires.

    SciPy sorts entries in place (in `abs` and `max`, for example). With new indices the data are
    therefore shared with the argument only if its entries are sorted.
    """
    if not (sp.issparse(X) and X.format == "csr"):
        return X
    most = np.iinfo(np.int32).max
    if X.indices.dtype == X.indptr.dtype == np.int32 or max(X.nnz, *X.shape) > most:
        return X
    data = X.data if X.has_canonical_format else X.data.copy()
    parts = (data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)


def real_numbers(values: Any, name: str) -> Array:
    """An array of float64; ValueError if it is masked, complex or not numeric."""
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "USmMc":
            return array.astype(np.float64, copy=False)
        found = str(array.dtype)
    except (TypeError, ValueError):
        found = "what is none, or rows of different lengths"
    raise ValueError(f"{name} must hold real numbers, got {found}")


def integers(values: Any, name: str) -> NDArray[np.integer]:
    """An array of integers, converted from floats, objects or digits; ValueError for others."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array
    try:
        numbers = array.astype(np.float64) if array.dtype.kind in "fOUS" else np.full(1, np.nan)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if np.all(np.isfinite(numbers)) and np.array_equal(numbers, np.round(numbers)):
        return numbers.astype(np.int64)
    wrong = (one for one in array.ravel().tolist() if not _is_whole(one))
    raise ValueError(f"{name} must be integers, got {next(wrong, array.dtype)!r}")


def _is_whole(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and float(value).is_integer()
    except (TypeError, ValueError):
        return False


def class_indices(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """The sorted distinct labels, and the label index of each sample; none may be missing."""
    refuse_odd_labels(y)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label per sample, got shape {labels.shape}")
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise ValueError("y contains NaN or infinity; every sample needs a label")
    names, classes = np.unique(labels, return_inverse=True)
    return names, classes


def refuse_odd_labels(y: Any) -> None:
    """Raise ValueError for masked labels, and for None, NaN, NA or mixed types among objects."""
    refuse_masked(y, "y")
    labels = np.asarray(y)
    if labels.dtype != object or labels.ndim != 1:
        return
    for place, label in enumerate(labels.tolist()):
        if is_missing(label):
            raise ValueError(
                f"y[{place}] is {label}, which is no label; every sample needs one: leave "
                "out those that have none"
            )
    try:
        np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise ValueError(
            f"y mixes labels that cannot be compared ({', '.join(kinds)}): make them all "
            "strings, or all numbers"
        ) from None


def known_labels(y: ArrayLike, n: int) -> NDArray[np.integer]:
    """Labels as 0, 1, …, and −1 if unknown: -1, "", masked, NaN or None."""
    # Imported here, as in `checked_samples`.
    from sklearn.utils.validation import check_array, column_or_1d

    given = column_or_1d(y)
    if given.shape != (n,):
        raise ValueError(f"y must have a label or -1 for each of {n} samples, got {given.size}")
    there = np.flatnonzero(~_gaps(y, given))
    found = _alike(given[there])
    if found.ndim != 1:
        raise ValueError(f"Unknown label type: y must hold one label per sample, got {given[0]!r}")
    if found.dtype.kind == "f":
        check_array(found.reshape(-1, 1), input_name="y", ensure_min_samples=0)
        if np.any(found != np.round(found)):
            raise ValueError("Unknown label type: y must be labels, -1 where unknown, got numbers "
                             "that are not whole")  # fmt: skip
    known = found != UNKNOWN if found.dtype.kind in "iufb" else ~np.isin(found, ["-1", ""])
    labels = np.full(n, UNKNOWN, dtype=np.intp)
    labels[there[known]] = np.unique(found[known], return_inverse=True)[1]
    return labels


def warn_of_missing_names(y: Any, advice: str) -> None:
    """Warn of a class whose name says that the class of a sample is unknown."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "OU":
        return
    names = {label for label in labels.ravel().tolist() if isinstance(label, str)}
    for name in sorted(names):
        if name.strip().casefold() in NAMES_OF_MISSING:
            warn(
                f"{name!r} in y is the name of a class like any other: if it marks samples of "
                f"unknown class, {advice}"
            )


def _gaps(y: ArrayLike, given: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of labels that are masked, NaN, or None or NA among Python objects."""
    gaps = np.zeros(given.size, dtype=bool)
    if isinstance(y, np.ma.MaskedArray):
        gaps |= np.ma.getmaskarray(y).ravel()
    if given.dtype.kind == "f":
        gaps |= np.isnan(given)
    if given.dtype == object:
        gaps |= np.array([is_missing(label) for label in given.tolist()], dtype=bool)
    return gaps


def _alike(labels: NDArray[Any]) -> NDArray[Any]:
    """Python objects as strings if one of them is a string, as numbers if all are."""
    if labels.dtype != object:
        return labels
    some = labels.tolist()
    words = any(isinstance(label, str) for label in some)
    return np.array([str(label) for label in some] if words else some)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or NA, which are not equal to themselves."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def near_origin(X: Any, shift: Array | None = None) -> Any:
    """The samples with columns far from the origin shifted to it; X itself if there are none.

    For computations that are invariant to translations. Products of X + c, minus the contribution
    of c, lose all digits if c is large; the subtraction here is exact. A CSR column far from the
    origin has at least 99 % nonzeros, so storing it in full loses nothing. `shift` is `far_means`,
    if known.
    """
    shift = far_means(X) if shift is None else shift
    return shifted(X, shift) if shift.any() else X


def far_means(X: Any) -> Array:
    """The mean of each column that is far from the origin, 0 for the others."""
    total, square = column_sums(X, squares=True)
    return _far(X.shape[0], total, square)


def _far(n: int, total: Array, square: Array) -> Array:
    mean = total / max(n, 1)
    variance = square / max(n, 1) - mean * mean
    return np.where(FAR * variance < mean * mean, mean, 0.0)


@dataclass(frozen=True)
class Columns:
    """Properties of the columns of samples."""

    varying: NDArray[np.bool_]
    """Which are not constant."""
    far: Array
    """`far_means`."""


def columns_of(X: Any) -> Columns:
    """The properties of the columns, by one pass over dense samples."""
    if sp.issparse(X):
        return Columns(varying_columns(X), far_means(X))
    largest, smallest, total, square = _by_column(X, LARGEST, SMALLEST, SUM, SQUARES)
    return Columns(largest > smallest, _far(X.shape[0], total, square))


def column_sums(X: Any, *, squares: bool) -> Array:
    """The sums of the columns, and of their squares: one row, or two.

    The sums of blocks of rows are added in a fixed order.
    """
    if not sp.issparse(X):
        return np.array(_by_column(X, *((SUM, SQUARES) if squares else (SUM,))))
    sums = np.zeros((-(-X.shape[0] // BLOCK), 1 + squares, X.shape[1]))

    def add(block: int, part: slice) -> None:
        rows = X[part].astype(np.float64, copy=False)
        sums[block, 0] = np.ravel(np.asarray(rows.sum(axis=0)))
        if squares:
            sums[block, 1] = np.ravel(np.asarray(rows.multiply(rows).sum(axis=0)))

    in_blocks(add, X)
    return sums.sum(axis=0)


Reduction = tuple[Callable[[Array], Array], np.ufunc]
"""The result of some rows for each column, and how results are joined."""

LARGEST: Reduction = (lambda rows: rows.max(axis=0)), np.maximum
SMALLEST: Reduction = (lambda rows: rows.min(axis=0)), np.minimum
SUM: Reduction = (lambda rows: rows.sum(axis=0)), np.add
SQUARES: Reduction = (lambda rows: np.square(rows).sum(axis=0)), np.add


def _by_column(X: Any, *reductions: Reduction) -> list[Array]:
    """Reductions of the columns of dense samples in double precision, joined in a fixed order."""
    found = np.empty((len(reductions), -(-X.shape[0] // BLOCK), X.shape[1]))

    def look(block: int, part: slice) -> None:
        for step in steps(X, part):
            rows = X[step].astype(np.float64, copy=False)
            for mine, (reduced, join) in zip(found[:, block], reductions, strict=True):
                some = reduced(rows)
                mine[:] = some if step.start == part.start else join(mine, some)

    in_blocks(look, X)
    return [join.reduce(mine, axis=0) for mine, (_, join) in zip(found, reductions, strict=True)]


def steps(X: Any, part: slice) -> Iterator[slice]:
    """The rows of a block in steps whose entries fit into a cache."""
    step, stop = max(1, CACHED // max(1, X.shape[1])), min(part.stop, X.shape[0])
    for start in range(part.start, stop, step):
        yield slice(start, min(start + step, stop))


def row_squares(X: Any) -> Array:
    """‖x_i‖² of every row, summed in double precision."""
    if sp.issparse(X):
        return np.ravel(np.asarray(X.astype(np.float64).multiply(X).sum(axis=1)))
    found = np.empty(X.shape[0])

    def add(block: int, part: slice) -> None:
        found[part] = np.einsum("ij,ij->i", X[part], X[part], dtype=np.float64)

    in_blocks(add, X)
    return found


def varying_columns(X: Any) -> NDArray[np.bool_]:
    """Which columns are not constant."""
    if sp.issparse(X):
        columns = sp.csc_array(X)
        return np.ravel(columns.max(axis=0).toarray() > columns.min(axis=0).toarray())
    largest, smallest = _by_column(X, LARGEST, SMALLEST)
    return np.asarray(largest > smallest)


def chosen_rows(X: Any, rows: NDArray[np.integer]) -> Any:
    """X[rows], copied in parallel."""
    return X[rows] if sp.issparse(X) else taken(X, rows)


def chosen_columns(X: Any, columns: NDArray[np.integer]) -> Any:
    """X[:, columns], copied in parallel; rows stay contiguous."""
    if sp.issparse(X):
        return X[:, columns]
    found = np.empty((X.shape[0], columns.size), X.dtype)

    def copy(block: int, part: slice) -> None:
        np.take(X[part], columns, axis=1, out=found[part], mode="clip")

    in_blocks(copy, found)
    return found


def in_blocks(work: Callable[[int, slice], None], X: Any) -> None:
    """Call a function with the number and the rows of each block, in parallel."""

    def take(first: int, last: int) -> None:
        for block in range(first, last):
            work(block, slice(block * BLOCK, (block + 1) * BLOCK))

    in_parts(take, -(-X.shape[0] // BLOCK), X.nnz if sp.issparse(X) else X.size)


def shifted(X: Any, shift: Array) -> Any:
    """X − 1cᵀ in double precision; for CSR only columns with nonzero c are stored in full."""
    if not sp.issparse(X):
        return np.asarray(X, dtype=float) - shift
    full = np.flatnonzero(shift)
    others = sp.diags_array((shift == 0).astype(float))
    moved = X[:, full].toarray().astype(float) - shift[full]
    rows = np.repeat(np.arange(X.shape[0]), full.size)
    columns = np.tile(full, X.shape[0])
    part = sp.csr_array((moved.ravel(), (rows, columns)), shape=X.shape)
    return with_short_indices(sp.csr_array(X.astype(float) @ others + part))
