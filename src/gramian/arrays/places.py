"""Which library an array belongs to, where it lives, and how to bring others beside it.

What is computed with factors, images and dual vectors is written once, with the functions of the
array API standard (`namespace`), and runs wherever the arrays are. What the standard lacks is the
backend of the array's library: `gramian.arrays.cpu` for NumPy, `gramian.arrays.torch` for
tensors. Small matrices and numbers are NumPy's everywhere (`host`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Container, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.blocks import NONE, Blocks

_NUMPY = (np.ndarray, np.generic)

PART = 2**18
"""Numbers of a long vector that are worked on at a time."""


def namespace(*arrays: Any) -> Any:
    """The functions of the standard for these arrays: NumPy's own, or those of their library."""
    for array in arrays:
        if isinstance(array, Blocks):
            return array.namespace
    for array in arrays:
        if not isinstance(array, _NUMPY):
            return _compatibility().array_namespace(*arrays)
    return np


def backend(array: Any) -> Any:
    """What the standard lacks, for the library of this array."""
    if isinstance(array, _NUMPY):
        return cpu
    if isinstance(array, Blocks):
        return backend(array.sample)
    library = type(array).__module__.split(".")[0]
    if library != "torch":
        raise TypeError(f"arrays of NumPy and tensors of torch can be computed with, not {library}")
    return importlib.import_module("gramian.arrays.torch")


def host(array: Any) -> NDArray[Any]:
    """The array as one of NumPy, copied where it lives elsewhere."""
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, Blocks):
        rows: NDArray[Any] = backend(array).gathered(array)
        return rows
    if type(array).__module__.split(".")[0] == "torch":
        found: NDArray[Any] = backend(array).host(array)
        return found
    return np.asarray(array)


def beside(array: Any, values: Any) -> Any:
    """A small array of the host, in the precision and at the place of another."""
    if isinstance(array, np.ndarray):
        return np.asarray(values)
    xp = namespace(array)
    return xp.asarray(np.array(values, order="C"), dtype=array.dtype, device=array.device)


def eye(order: int, place: Place) -> Any:
    """The identity of that order, at a place."""
    if place.is_host:
        return np.eye(order)
    return place.xp.eye(order, dtype=place.xp.float64, device=place.device)


def largest(array: Any) -> float:
    """The largest size of a number of the array, 0 where it is empty."""
    if not size(array):
        return 0.0
    if isinstance(array, np.ndarray):
        return float(np.maximum.reduce(np.abs(array), axis=None))
    xp = namespace(array)
    return float(xp.max(xp.abs(array)))


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    """Zeros in the precision and at the place of another array."""
    return namespace(like).zeros(shape, dtype=like.dtype, device=like.device)


def size(array: Any) -> int:
    """How many numbers an array holds."""
    return math.prod(array.shape)


def contiguous(array: Any) -> Any:
    """The array with its rows one after the other in memory."""
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
    """The columns at these places of the host, repeated where they are."""
    return namespace(array).take(array, place_of(array).put(places), axis=1)


def assembled(make: Callable[[slice], Any], parts: list[slice], like: Any) -> Any:
    """An array like another, of which `make` tells every part; of `Blocks` when it is asked for."""
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
    """The array, computed once where it is one of `Blocks` that is made when it is asked for."""
    return backend(array).stored(array) if isinstance(array, Blocks) else array


def along(weights: Any, values: Any) -> Any:
    """One weight for each value, or for each row of values."""
    return weights if values.ndim == 1 else weights[:, None]


def side_by_side(blocks: Any) -> Any:
    """The columns of several matrices as one."""
    blocks = list(blocks)
    return namespace(*blocks).concat(blocks, axis=1)


def inner(U: Any, V: Any) -> float:
    """⟨U, V⟩, summed in float64."""
    if isinstance(U, np.ndarray):
        return float(np.add.reduce(U * V, axis=None, dtype=np.float64))
    xp = namespace(U, V)
    return float(xp.sum(U * V, dtype=xp.float64))


def absolute_inner(u: Any, v: Any) -> float:
    """Σ |u_e v_e| of two vectors, on the host by parts of them."""
    if not isinstance(u, np.ndarray):
        xp = namespace(u, v)
        return float(xp.sum(xp.abs(u * v)))
    starts = range(0, u.size, PART)
    return sum(float(np.sum(np.abs(u[k : k + PART] * v[k : k + PART]))) for k in starts)


def numbers(*scalars: Any) -> list[float]:
    """Arrays of one number each as numbers, which a device sends all at once."""
    if isinstance(scalars[0], _NUMPY):
        return [float(scalar) for scalar in scalars]
    found: list[float] = host(namespace(*scalars).stack(scalars)).tolist()
    return found


def recorded(function: Any, place: Place) -> Any:
    """A function of one array that computes and asks for no number, and is called many times.

    On a device its steps are recorded after some calls and from then on started all at once.
    """
    if place.is_host or place.apart:  # what is copied from the host cannot be recorded
        return function
    return importlib.import_module("gramian.arrays.torch").Recorded(function)


def row_squares(V: Any) -> Any:
    """‖v_i‖² of every row."""
    return namespace(V).sum(V * V, axis=1)


def column_squares(V: Any) -> Any:
    """The squared lengths of the columns."""
    return namespace(V).sum(V * V, axis=0)


def norm(V: Any) -> float:
    """‖V‖, the root of the sum of all squares."""
    return math.sqrt(inner(V, V))


def precision(array: Any) -> float:
    """The relative rounding of its numbers: eps."""
    return _eps(namespace(array), array.dtype)


@cache
def _eps(xp: Any, dtype: Any) -> float:
    return float(xp.finfo(dtype).eps)


@dataclass(frozen=True)
class Place:
    """Where arrays live: a library, and a device of it."""

    xp: Any = np
    device: Any = None
    apart: Mapping[tuple[int, ...], int] = field(default_factory=dict, compare=False)
    """Shapes of arrays whose rows stay on the host, and how many of them come here at once."""

    @property
    def is_host(self) -> bool:
        return self.xp is np

    def put(self, array: Any) -> Any:
        """The array there, in its own precision, or in `Blocks` where its rows stay on the host."""
        if self.is_host:
            return host(array)
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()
        if array.shape in self.apart:
            library = importlib.import_module("gramian.arrays.torch")
            return library.Stored.of(array, self.apart[array.shape], self.device)
        return self.xp.asarray(array, device=self.device)

    def sparse(self, matrix: Any) -> Any:
        """A sparse matrix there."""
        if self.is_host:
            return matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix
        return importlib.import_module("gramian.arrays.torch").Csr.of(matrix, self.device)

    def room(self) -> Any:
        """A context in which a device that has no memory left says so in a sentence."""
        if self.is_host:
            return nullcontext()
        return importlib.import_module("gramian.arrays.torch").room()

    def free_memory(self) -> float:
        """Bytes that are free there."""
        if self.is_host:
            return cpu.free_memory()
        found: float = importlib.import_module("gramian.arrays.torch").free_memory(self.device)
        return found

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def normal(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Standard normal numbers, made there from a seed that the generator gives."""
        if self.is_host:
            return rng.standard_normal(shape)
        library = importlib.import_module("gramian.arrays.torch")
        return library.normal(int(rng.integers(2**62)), shape, self.device)


HOST = Place()


def place_of(array: Any) -> Place:
    """Where an array lives."""
    if isinstance(array, np.ndarray):
        return HOST
    if isinstance(array, Blocks):
        return Place(array.xp, array.device, {array.shape: array.step})
    return Place(namespace(array), array.device)


def place(device: Any) -> Place:
    """The place that a user names: None or "cpu" is the host, "cuda" and its like a device."""
    if device is None or device == "cpu":
        return HOST
    library = importlib.import_module("gramian.arrays.torch")
    return Place(library.namespace(), library.device(device))


# --- things made of arrays ---------------------------------------------------------------

HOME = "_home"
"""Where a thing that was moved keeps the one that it was made from."""


class Placed:
    """Something made of arrays, all at one place."""

    place: Place = HOST


def at_home(thing: Any) -> Any:
    """The thing on the host that this one was moved from or is; a copy, if it was made there."""
    if not hasattr(thing, HOME) and not getattr(thing, "place", HOST).is_host:
        vars(thing)[HOME] = _Move(HOST).of(thing)
    return getattr(thing, HOME, thing)


def moved(thing: Any, there: Place) -> Any:
    """A copy of a thing of this library with all its arrays at a place; the rest is shared.

    What it had found of itself it finds again there, but for numbers; what only the host can find
    it asks of the thing that it was moved from (`at_home`).
    """
    if there.is_host or getattr(thing, "place", HOST) == there:
        return thing
    return _Move(there).of(thing)


def in_single(thing: Any) -> Any:
    """A copy of a thing of this library with its float64 arrays as float32; itself without any."""
    return _Single().of(thing)


def relocated(thing: Any, home: Any, **parts: Any) -> Any:
    """A thing that was moved with some of its parts changed, and what it is now at home."""
    return altered(thing, **parts, **{HOME: home})


def altered(thing: Any, **parts: Any) -> Any:
    """A copy of a thing with some of its parts changed, without what it had found of itself."""
    found = copy(thing)
    for name in [name for name in vars(found) if _is_found(thing, name)]:
        del vars(found)[name]
    vars(found).update(parts)
    return found


def _is_found(thing: Any, name: str) -> bool:
    """Whether an attribute is one that the thing finds of itself."""
    return isinstance(getattr(type(thing), name, None), cached_property)


def bytes_of(thing: Any, shapes: Container[tuple[int, ...]] | None = None) -> float:
    """Bytes of the arrays that a thing of this library is made of, each counted once.

    With `shapes` those of arrays of such a shape only.
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
            for inside in vars(part).values():
                count(inside)

    count(thing)
    return sum(seen.values())


class _Move:
    """One move: arrays that several things share stay shared."""

    def __init__(self, there: Place) -> None:
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
            return self.there
        if isinstance(thing, Blocks):
            return host(thing) if self.there.is_host else thing
        if isinstance(thing, np.ndarray) or hasattr(thing, "detach"):
            return self.there.put(thing)
        if sparse.issparse(thing) or hasattr(thing, "to_scipy"):
            return self.there.sparse(thing)
        if getattr(thing, "place", None) == self.there:
            return thing
        if isinstance(thing, tuple | list):
            return type(thing)(self.of(part) for part in thing)
        if type(thing).__module__.split(".")[0] != __name__.split(".")[0]:
            return thing
        return self._of_ours(thing)

    def _of_ours(self, thing: Any) -> Any:
        if hasattr(type(thing), "lower"):
            _ = thing.lower  # a number that only the host can find
        found = copy(thing)
        vars(found).clear()
        for name, value in vars(thing).items():
            if not _is_found(thing, name) or isinstance(value, bool | int | float):
                vars(found)[name] = self.of(value)
        if not self.there.is_host:
            vars(found)[HOME] = at_home(thing)
        vars(found)["place"] = self.there
        return found


class _Single:
    """One change of precision: what several things share stays shared."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}

    def of(self, thing: Any) -> Any:
        if isinstance(thing, bool | int | float | str | Place | type(None)) or callable(thing):
            return thing
        if id(thing) not in self.known:
            self.known[id(thing)] = self._of(thing)
        return self.known[id(thing)]

    def _of(self, thing: Any) -> Any:
        if isinstance(thing, np.ndarray | Blocks) or hasattr(thing, "detach"):
            xp = namespace(thing)
            return xp.astype(thing, xp.float32) if thing.dtype == xp.float64 else thing
        if sparse.issparse(thing):
            return thing.astype(np.float32) if thing.dtype == np.float64 else thing
        if isinstance(thing, tuple | list):
            return type(thing)(self.of(part) for part in thing)
        if type(thing).__module__.split(".")[0] != __name__.split(".")[0]:
            return thing
        parts = {
            name: self.of(value)
            for name, value in vars(thing).items()
            if name != HOME and not _is_found(thing, name)
        }
        if all(parts[name] is vars(thing)[name] for name in parts):
            return thing
        found = copy(thing)
        vars(found).clear()
        vars(found).update(parts)
        return found


def _compatibility() -> Any:
    try:
        return importlib.import_module("array_api_compat")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "arrays of another library than NumPy need the package array-api-compat: "
            "pip install 'gramian[gpu]'"
        ) from None
