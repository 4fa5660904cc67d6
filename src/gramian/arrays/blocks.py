"""Arrays with more rows than fit on a device, which are processed one block at a time.

Row-wise functions of such arrays are evaluated lazily and are again arrays in blocks: when a block
is requested, only its inputs are copied from the host to the device. Sums over all rows are
computed block by block in a fixed order. The loss of a hundred million ratings, and its gradient,
therefore each take one pass over the ratings, and no array of their length is on the device.

    z = mapped(gather, rows, cols)         lazy
    w = 2.0 * (z - targets)                lazy
    float(namespace(w).sum(w * w))         one pass
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial, reduce
from typing import Any

NONE = slice(0, 0)
"""No rows."""


class Blocks:
    """An array of `length` rows in blocks of `step`, the k-th of which is `block(k)` on a device.

    `block(None)` has no rows. `namespace` gives the functions of the array API standard for such
    arrays, based on those of the device's library `xp`.
    """

    __array_ufunc__ = None

    library: Any = None
    """Functions outside the standard, default those of the library of the blocks."""

    def __init__(self, length: int, step: int, block: Callable[[int | None], Any], xp: Any) -> None:
        self.length, self.step, self.block, self.xp = length, step, block, xp

    @cached_property
    def sample(self) -> Any:
        """An array without rows, with the dtype and device of the blocks."""
        return self.block(None)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length, *self.sample.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return self.sample.dtype

    @property
    def device(self) -> Any:
        return self.sample.device

    @property
    def namespace(self) -> RowByRow:
        return row_by_row(self.xp)

    @property
    def parts(self) -> list[slice]:
        """The rows of each block."""
        starts = range(0, self.length, self.step)
        return [slice(first, min(first + self.step, self.length)) for first in starts]

    @property
    def T(self) -> Turned:
        return Turned(self)

    def mapped(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Blocks:
        """A row-wise function of these rows and others, evaluated on request."""
        return Blocks(
            self.length,
            self.step,
            lambda k: function(*(rows_of(each, self, k) for each in arguments)),
            self.xp,
        )

    def summed(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """The sum over the blocks of a function of these rows and others."""
        return reduce(operator.add, self.mapped(function, arguments))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the blocks."""
        return (self.block(k) for k in range(len(self.parts)))

    def __getitem__(self, key: Any) -> Any:
        """A block, selected by its slice, or all rows with additional axes."""
        if not isinstance(key, slice):
            return mapped(lambda rows: rows[key], self)
        return self.sample if key == NONE else self.block(key.start // self.step)

    def __matmul__(self, other: Any) -> Any:
        """The inner product of two vectors, or the product with a small matrix on the device."""
        if self.ndim == 1:
            return self.T @ other
        product = mapped(operator.matmul, self, other)
        return product if other.ndim == 1 else whole(product)

    def __rmatmul__(self, other: Any) -> Any:
        return self @ other


def _by_rows(name: str, *, reflected: bool = False) -> Any:
    function = getattr(operator, name)

    def method(self: Blocks, *others: Any) -> Blocks:
        return mapped(function, *((*others, self) if reflected else (self, *others)))

    return method


for _name in ("neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Blocks, f"__{_name}__", _by_rows(_name))
for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(Blocks, f"__{_name}__", _by_rows(_name))
    setattr(Blocks, f"__r{_name}__", _by_rows(_name, reflected=True))
for _name in ("and", "or"):
    setattr(Blocks, f"__{_name}__", _by_rows(f"{_name}_"))
    setattr(Blocks, f"__r{_name}__", _by_rows(f"{_name}_", reflected=True))
Blocks.__hash__ = object.__hash__  # type: ignore[method-assign]


class Turned:
    """Aᵀ, for products with arrays that have as many rows as A."""

    def __init__(self, blocks: Blocks) -> None:
        self.T = blocks

    def __matmul__(self, other: Any) -> Any:
        A = self.T
        found = (_transposed(a) @ other[part] for a, part in zip(A, A.parts, strict=True))
        return reduce(operator.add, found)


class RowByRow:
    """Functions of the array API standard for `Blocks`: row by row, or sums over all rows."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.xp, name)
        if name == "linalg":
            return row_by_row(plain)
        if not callable(plain):
            return plain
        return lambda *arguments, **named: mapped(partial(plain, **named), *arguments)

    def sum(self, x: Any, *, axis: int | None = None, **named: Any) -> Any:
        return (mapped if axis else summed)(partial(self.xp.sum, axis=axis, **named), x)

    def max(self, x: Any, *, axis: int | None = None) -> Any:
        return self._over_rows("max", self.xp.maximum, x, axis)

    def any(self, x: Any, *, axis: int | None = None) -> Any:
        return self._over_rows("any", operator.or_, x, axis)

    def all(self, x: Any, *, axis: int | None = None) -> Any:
        return self._over_rows("all", operator.and_, x, axis)

    def _over_rows(self, name: str, join: Any, x: Any, axis: int | None) -> Any:
        plain = partial(getattr(self.xp, name), axis=axis)
        if not isinstance(x, Blocks):
            return plain(x)
        return mapped(plain, x) if axis else reduce(join, map(plain, x))

    def stack(self, arrays: Any, *, axis: int) -> Any:
        return mapped(lambda *rows: self.xp.stack(rows, axis=axis), *arrays)

    def concat(self, arrays: Any, *, axis: int) -> Any:
        return mapped(lambda *rows: self.xp.concat(rows, axis=axis), *arrays)

    def broadcast_to(self, x: Any, shape: tuple[int, ...]) -> Any:
        if not isinstance(x, Blocks):
            return self.xp.broadcast_to(x, shape)
        return mapped(lambda rows: self.xp.broadcast_to(rows, (rows.shape[0], *shape[1:])), x)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Join or split rows; the number of elements of a block does not change."""
        if not isinstance(x, Blocks):
            return self.xp.reshape(x, shape)
        each, inside = _numbers(x.shape[1:]), _numbers(shape[1:])
        length, step = x.length * each // inside, x.step * each // inside

        def block(k: int | None) -> Any:
            return self.xp.reshape(x.block(k), (0 if k is None else -1, *shape[1:]))

        return Blocks(length, step, block, self.xp)


@cache
def row_by_row(xp: Any) -> RowByRow:
    """The functions for a library; one cached object per library."""
    return RowByRow(xp)


def mapped(function: Callable[..., Any], *arguments: Any) -> Any:
    """A row-wise function of arrays; if some are `Blocks`, the others may have all rows."""
    first = _first(arguments)
    return function(*arguments) if first is None else first.mapped(function, arguments)


def summed(function: Callable[..., Any], *arguments: Any) -> Any:
    """A function of the rows of such arrays that is a sum over rows."""
    first = _first(arguments)
    return function(*arguments) if first is None else first.summed(function, arguments)


def _first(arguments: tuple[Any, ...]) -> Blocks | None:
    return next((each for each in arguments if isinstance(each, Blocks)), None)


def whole(array: Any) -> Any:
    """All rows, on the device."""
    return array.xp.concat(list(array), axis=0) if isinstance(array, Blocks) else array


def rows_of(each: Any, like: Blocks, k: int | None) -> Any:
    """Block k of an array with as many rows as `like`; other arguments are returned unchanged."""
    if isinstance(each, Blocks):
        return each.sample if k is None else each.block(k)
    if not getattr(each, "ndim", 0) or each.shape[0] != like.length or each.ndim != like.ndim:
        return each
    return each[NONE if k is None else like.parts[k]]


def _transposed(rows: Any) -> Any:
    return rows if rows.ndim == 1 else rows.T


def _numbers(shape: tuple[int, ...]) -> int:
    return reduce(operator.mul, shape, 1)
