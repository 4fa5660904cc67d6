"""The library and device of an array, and transfers between devices.

Code for factors, images and dual vectors is written once, with the functions of the array API
standard (`namespace`), and runs on the device of its arrays. Functions that the standard lacks are
in the backend of the library: `gramian.arrays.cpu` for NumPy, `gramian.arrays.torch` for
tensors. Small matrices and scalars are always NumPy's (`host`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.blocks import NONE, Blocks
from gramian.common.context import setting

_NUMPY = (np.ndarray, np.generic)

PART = 2**18
"""Block length for operations on long vectors."""

_unread: ContextVar[bool] = ContextVar("unread", default=False)


def namespace(*arrays: Any) -> Any:
    """The array API functions for these arrays: NumPy itself, or the namespace of their library."""
    for array in arrays:
        if isinstance(array, Blocks):
            return array.namespace
    for array in arrays:
        if not isinstance(array, _NUMPY):
            return _compatibility().array_namespace(*arrays)
    return np


def backend(array: Any) -> Any:
    """The backend with functions outside the standard, for the library of this array."""
    if isinstance(array, _NUMPY):
        return cpu
    if isinstance(array, Blocks):
        return array.library or backend(array.sample)
    library = type(array).__module__.split(".")[0]
    if library != "torch":
        raise TypeError(f"supported are NumPy arrays and torch tensors, not arrays of {library}")
    return importlib.import_module("gramian.arrays.torch")


def host(array: Any) -> NDArray[Any]:
    """The array as a NumPy array, copied if it is on a device."""
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, Blocks):
        return backend(array).gathered(array)
    if type(array).__module__.split(".")[0] == "torch":
        return backend(array).host(array)
    return np.asarray(array)


def beside(array: Any, values: Any) -> Any:
    """A small host array, converted to the precision and device of another array."""
    if isinstance(array, np.ndarray):
        return np.asarray(values)
    xp = namespace(array)
    return xp.asarray(np.array(values, order="C"), dtype=array.dtype, device=array.device)


def eye(order: int, place: Place) -> Any:
    """The identity matrix on a device."""
    if place.is_host:
        return np.eye(order)
    return place.xp.eye(order, dtype=place.xp.float64, device=place.device)


def largest(array: Any) -> float:
    """The largest absolute value, 0 for an empty array."""
    if not size(array):
        return 0.0
    if isinstance(array, np.ndarray):
        return float(np.maximum.reduce(np.abs(array), axis=None))
    xp = namespace(array)
    found: float = number(xp.max(xp.abs(array)))
    return found


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Zeros with the precision and device of another array."""
    return namespace(like).zeros(shape, dtype=like.dtype, device=like.device)


def size(array: Any) -> int:
    """Number of elements."""
    return math.prod(array.shape)


def contiguous(array: Any) -> Any:
    """The array as a C-contiguous array."""
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()


def as_double(array: Any) -> Any:
    """The array in float64."""
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def as_single(array: Any) -> Any:
    """The array in float32."""
    xp = namespace(array)
    return xp.astype(array, xp.float32, copy=False)


def columns_at(array: Any, places: NDArray[np.integer]) -> Any:
    """The columns with these (possibly repeated) host indices."""
    return namespace(array).take(array, place_of(array).put(places), axis=1)


def assembled(make: Callable[[slice], Any], parts: list[slice], like: Any) -> Any:
    """An array with the parts `make(part)`; an array of `Blocks` computes them on request."""
    if isinstance(like, Blocks):
        steps = like.parts

        def block(k: int | None) -> Any:
            return make(NONE if k is None else steps[k])

        return Blocks(like.length, like.step, block, like.xp)
    if len(parts) == 1:
        return make(parts[0])
    found = namespace(like).empty_like(like)
    for part in parts:
        found[part] = make(part)
    return found


def stored(array: Any) -> Any:
    """The array, computed once if it consists of `Blocks` that are computed on request."""
    return backend(array).stored(array) if isinstance(array, Blocks) else array


def along(weights: Any, values: Any) -> Any:
    """Weights reshaped to multiply values or rows of values."""
    return weights if values.ndim == 1 else weights[:, None]


def batches_of(z: Any, sizes: Sequence[int]) -> Iterator[Any]:
    """The b × b matrix of each of several batches of points, stored one after the other."""
    first = 0
    for size in sizes:
        yield namespace(z).reshape(z[first : first + size * size], (size, size))
        first += size * size


def side_by_side(blocks: Any) -> Any:
    """Horizontal concatenation of several matrices."""
    blocks = list(blocks)
    return namespace(*blocks).concat(blocks, axis=1)


def number(scalar: Any) -> Any:
    """A one-element array as a Python float; inside `unread` an array on a device stays there."""
    if _unread.get() and not isinstance(scalar, (float, *_NUMPY)):
        return scalar
    return float(scalar)


def root(square: Any) -> float:
    """The square root of a result of `number`."""
    found: float = math.sqrt(square) if isinstance(square, float) else square**0.5
    return found


def unread() -> AbstractContextManager[None]:
    """Within it `number` transfers nothing from a device, so that functions can be recorded."""
    return setting(_unread, True)


def read(thing: Any) -> Any:
    """An object with its one-element arrays as Python floats, itself if it has none."""
    found = {
        name: float(value)
        for name, value in vars(thing).items()
        if getattr(value, "shape", None) == ()
    }
    if not found:
        return thing
    copied = copy(thing)
    for name, value in found.items():
        object.__setattr__(copied, name, value)  # images are frozen
    return copied


def scalars(like: Any, *values: Any) -> Any:
    """Numbers and one-element arrays as one array on the device of another array, in float64."""
    xp = namespace(like)
    return xp.stack([xp.asarray(v, dtype=xp.float64, device=like.device) for v in values])


def inner(U: Any, V: Any) -> float:
    """⟨U, V⟩, summed in float64."""
    if isinstance(U, np.ndarray):
        return float(np.add.reduce(U * V, axis=None, dtype=np.float64))
    xp = namespace(U, V)
    found: float = number(xp.sum(U * V, dtype=xp.float64))
    return found


def absolute_inner(u: Any, v: Any) -> float:
    """Σ |u_e v_e| of two vectors, on the host block by block."""
    if not isinstance(u, np.ndarray):
        xp = namespace(u, v)
        return float(xp.sum(xp.abs(u * v)))
    starts = range(0, u.size, PART)
    return sum(float(np.sum(np.abs(u[k : k + PART] * v[k : k + PART]))) for k in starts)


def numbers(*scalars: Any) -> list[float]:
    """One-element arrays as Python floats, in a single transfer from a device."""
    if isinstance(scalars[0], _NUMPY):
        return [float(scalar) for scalar in scalars]
    return host(namespace(*scalars).stack(scalars)).tolist()


def recorded(function: Any, place: Place) -> Any:
    """A function of one array for many calls that never converts a tensor to a number.

    On a device its kernels are recorded after some calls and later launched as one graph. Of a
    tuple of results, tensors are copied; those inside other objects are valid until the next call.
    """
    if place.is_host or place.apart:  # transfers from the host cannot be recorded
        return function
    return importlib.import_module("gramian.arrays.torch").Recorded(function)


def row_squares(V: Any) -> Any:
    """‖v_i‖² of every row."""
    return namespace(V).sum(V * V, axis=1)


def column_squares(V: Any) -> Any:
    """Squared norms of the columns."""
    return namespace(V).sum(V * V, axis=0)


def norm(V: Any) -> float:
    """The Frobenius norm ‖V‖."""
    return root(inner(V, V))


def precision(array: Any) -> float:
    """The machine epsilon of its dtype."""
    return _eps(namespace(array), array.dtype)


@cache
def _eps(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).eps)


@dataclass(frozen=True)
class Place:
    """The location of arrays: a library and one of its devices."""

    xp: Any = np
    device: Any = None
    apart: Mapping[tuple[int, ...], int] = field(default_factory=dict, compare=False)
    """Shapes of arrays whose rows stay on the host, and the number of rows per transfer."""

    @property
    def is_host(self) -> bool:
        return self.xp is np

    def put(self, array: Any) -> Any:
        """The array there, in its own precision, or as `Blocks` if its rows stay on the host."""
        if self.is_host:
            return host(array)
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()
        if array.shape in self.apart:
            library = importlib.import_module("gramian.arrays.torch")
            return library.Stored.of(array, self.apart[array.shape], self.device)
        if getattr(self.device, "type", "") == "cuda" and isinstance(array, np.ndarray):
            return importlib.import_module("gramian.arrays.torch").staged(array, self.device)
        return self.xp.asarray(array, device=self.device)

    def sparse(self, matrix: Any) -> Any:
        """A sparse matrix there."""
        if self.is_host:
            return matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix
        return importlib.import_module("gramian.arrays.torch").Csr.of(matrix, self.device)

    def room(self) -> Any:
        """A context in which an out-of-memory error of a device has an informative message."""
        if self.is_host:
            return nullcontext()
        return importlib.import_module("gramian.arrays.torch").room()

    def free_memory(self) -> float:
        """Free memory in bytes."""
        if self.is_host:
            return cpu.free_memory()
        return importlib.import_module("gramian.arrays.torch").free_memory(self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def normal(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Standard normal numbers, generated there with a seed drawn from the generator."""
        if self.is_host:
            return rng.standard_normal(shape)
        library = importlib.import_module("gramian.arrays.torch")
        return library.normal(int(rng.integers(2**62)), shape, self.device)


HOST = Place()


def place_of(array: Any) -> Place:
    """The location of an array."""
    if isinstance(array, np.ndarray):
        return HOST
    if isinstance(array, Blocks):
        return Place(array.xp, array.device, {array.shape: array.step})
    return Place(namespace(array), array.device)


def place(device: Any) -> Place:
    """The location for a `device=` argument: None or "cpu" is the host, "cuda" etc. a device."""
    if device is None or device == "cpu":
        return HOST
    library = importlib.import_module("gramian.arrays.torch")
    return Place(library.namespace(), library.device(device))


# --- objects that contain arrays ---------------------------------------------------------

HOME = "_home"
"""Attribute of a moved object that holds the original."""


class Placed:
    """An object whose arrays are all in one location."""

    place: Place = HOST


def at_home(thing: Any) -> Any:
    """The host object that this one was moved from, itself on the host, or else a copy."""
    if not hasattr(thing, HOME) and not getattr(thing, "place", HOST).is_host:
        vars(thing)[HOME] = _Copy(HOST).of(thing)
    return getattr(thing, HOME, thing)


def moved(thing: Any, there: Place) -> Any:
    """A copy of an object of this library with all arrays moved; the rest is shared.

    Cached results are dropped, except numbers. Results that only the host can compute are taken
    from the original (`at_home`).
    """
    if there.is_host or getattr(thing, "place", HOST) == there:
        return thing
    return _Copy(there).of(thing)


def in_single(thing: Any) -> Any:
    """A copy of an object with float64 arrays as float32; the object itself if it has none."""
    return _Copy(None).of(thing)


def relocated(thing: Any, home: Any, **parts: Any) -> Any:
    """A moved object with some attributes changed, and the corresponding host object."""
    return altered(thing, **parts, **{HOME: home})


def altered(thing: Any, **parts: Any) -> Any:
    """A copy of an object with some attributes changed, without cached results."""
    found = copy(thing)
    for name in [name for name in vars(found) if _is_found(thing, name)]:
        del vars(found)[name]
    vars(found).update(parts)
    return found


def _is_found(thing: Any, name: str) -> bool:
    """Whether an attribute is a cached result."""
    return isinstance(getattr(type(thing), name, None), cached_property)


def bytes_of(thing: Any, shapes: Container[tuple[int, ...]] | None = None) -> float:
    """Bytes of the arrays of an object of this library, each counted once.

    Cached properties are not counted: the second run of a problem must not use other blocks than
    the first. With `shapes`, only arrays of these shapes are counted.
    """
    seen: dict[int, float] = {}

    def count(part: Any) -> None:
        if id(part) in seen or isinstance(part, bool | int | float | str | type(None)):
            return
        seen[id(part)] = 0.0
        if isinstance(part, np.ndarray):
            seen[id(part)] = float(part.nbytes) * (shapes is None or part.shape in shapes)
        elif sparse.issparse(part):
            seen[id(part)] = 12.0 * part.nnz * (shapes is None)
        elif isinstance(part, tuple | list):
            for inside in part:
                count(inside)
        elif type(part).__module__.split(".")[0] == __name__.split(".")[0]:
            for name, inside in vars(part).items():
                if not _is_found(part, name):
                    count(inside)

    count(thing)
    return sum(seen.values())


class _Copy:
    """A copy in another location, or in single precision if that is None.

    Arrays shared by several objects stay shared.
    """

    def __init__(self, there: Place | None) -> None:
        self.there = there
        self.known: dict[int, Any] = {}

    def of(self, thing: Any) -> Any:
        if isinstance(thing, bool | int | float | str | type(None)) or callable(thing):
            return thing
        if id(thing) not in self.known:
            self.known[id(thing)] = self._of(thing)
        return self.known[id(thing)]

    def _of(self, thing: Any) -> Any:
        if isinstance(thing, Place):
            return self.there or thing
        if isinstance(thing, np.ndarray | Blocks) or hasattr(thing, "detach"):
            return self._array(thing)
        if sparse.issparse(thing) or (self.there is not None and hasattr(thing, "to_scipy")):
            return _single(thing, np) if self.there is None else self.there.sparse(thing)
        if isinstance(thing, tuple | list):
            return type(thing)(self.of(part) for part in thing)
        if type(thing).__module__.split(".")[0] != __name__.split(".")[0]:
            return thing
        return self._ours(thing)

    def _array(self, thing: Any) -> Any:
        if self.there is None:
            return _single(thing, namespace(thing))
        if isinstance(thing, Blocks):
            return host(thing) if self.there.is_host else thing
        return self.there.put(thing)

    def _ours(self, thing: Any) -> Any:
        there = self.there
        if there is not None:
            if getattr(thing, "place", None) == there:
                return thing
            if not there.is_host and hasattr(type(thing), "lower"):
                _ = thing.lower  # a number that only the host can compute
        kept = () if there is None else (bool, int, float)  # cached numbers stay valid
        parts = {
            name: self.of(value)
            for name, value in vars(thing).items()
            if name != HOME and (not _is_found(thing, name) or isinstance(value, kept))
        }
        if there is not None:
            parts["place"] = there
            if not there.is_host:
                parts[HOME] = at_home(thing)
        elif all(part is vars(thing)[name] for name, part in parts.items()):
            return thing
        found = copy(thing)
        vars(found).clear()
        vars(found).update(parts)
        return found


def _single(array: Any, xp: Any) -> Any:
    """An array or a SciPy matrix of float64 as float32, anything else as it is."""
    if array.dtype != xp.float64:
        return array
    return array.astype(np.float32) if sparse.issparse(array) else xp.astype(array, xp.float32)


def _compatibility() -> Any:
    try:
        return importlib.import_module("array_api_compat")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "arrays of libraries other than NumPy need the package array-api-compat: "
            "pip install 'gramian[gpu]'"
        ) from None
