"""Memory of a run on a device: all data there, data in blocks, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from gramian.arrays.places import Place, bytes_of, place
from gramian.common.memory import check_memory
from gramian.problem import Problem

DATA_COPIES, FACTOR_COPIES, DEFAULT_COLUMNS = 6, 24, 16
"""Copies of the data (both orders of a pattern, images, dual vectors) and of the factor (L-BFGS's
pairs, points, gradients) that must fit on a device, and default number of columns of the factor."""

MAX_WIDE_COLUMNS, MIN_WIDE_COLUMNS = 192, 12
"""Columns of the factor if the optimum has high rank: an eighth of the order plus the
minimum, up to the maximum."""

PRODUCT_COPIES = 6
"""Copies of the products of samples and factor, which are on the device in any case."""

BLOCK_COPIES = {1: 24, 2: 4}
"""Copies of a block of numbers, or of samples: itself, the next one, orders, results."""

MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 1024, 2**23
"""Minimum and maximum number of rows of a block."""

Shapes = Mapping[tuple[int, ...], int]

NO_SHAPES: Shapes = {}


def wide_rank(order: int) -> int:
    """Initial number of columns on a device if the optimum has high rank."""
    return min(MAX_WIDE_COLUMNS, order // 8 + MIN_WIDE_COLUMNS)


def place_for(problem: Problem, device: Any, rank: int | None = None) -> Place:
    """The requested device; if its memory is too small, rows of data stay on the host.

    Raises MemoryError if the rest does not fit either. `rank` limits the columns.
    """
    there, objective = place(device), problem.objective
    if there.is_host or objective.place == there:
        return objective.place
    free, need, shapes = there.free_memory(), needed(problem, rank), objective.facts.streams
    if need > free and shapes:
        beside = needed(problem, rank, apart=shapes)
        if streamed := in_blocks(there, shapes, free - beside):
            return streamed
        need = min(need, beside + MIN_BLOCK_ROWS * _row_bytes(shapes))
    check_memory(
        need,
        f"{problem.name!r} has {bytes_of(problem) / 1e9:.2f} GB of data and {problem.order:,} rows",
        "compute on the processor (device=None), or with fewer data",
        free,
    )
    return there


def needed(problem: Problem, rank: int | None = None, *, apart: Shapes = NO_SHAPES) -> float:
    """Bytes that must be free on a device, besides the blocks of data that stay on the host."""
    columns = wide_rank(problem.order) if problem.objective.facts.wide else DEFAULT_COLUMNS
    columns = columns if rank is None else min(columns, rank)
    seen = sum(shape[0] for shape in apart if len(shape) > 1)
    there = bytes_of(problem) - bytes_of(problem, apart)
    return DATA_COPIES * there + 8.0 * columns * (
        FACTOR_COPIES * problem.order + PRODUCT_COPIES * seen
    )


def samples_place(X: Any, device: Any) -> Place:
    """The place of samples whose products with as many columns are also on the device."""
    there, one = place(device), 8.0 * prod(X.shape)
    if there.is_host or (PRODUCT_COPIES + 1) * one <= there.free_memory():
        return there
    shapes, free = {X.shape: 1}, there.free_memory()
    streamed = in_blocks(there, shapes, free - PRODUCT_COPIES * one)
    if streamed is None:
        check_memory(
            PRODUCT_COPIES * one + MIN_BLOCK_ROWS * _row_bytes(shapes),
            f"products of {X.shape[0]:,} samples with {X.shape[1]:,} columns",
            "compute on the processor (device=None), or project the features first",
            free,
        )
    return streamed or there


def in_blocks(there: Place, shapes: Shapes, room: float) -> Place | None:
    """The place with arrays of these shapes on the host; None if a block does not fit."""
    each, longest = _row_bytes(shapes), max(shape[0] // rows for shape, rows in shapes.items())
    rows = min(int(room / each), MAX_BLOCK_ROWS, longest)
    if rows < min(MIN_BLOCK_ROWS, longest):
        return None
    return replace(there, apart={shape: rows * together for shape, together in shapes.items()})


def _row_bytes(shapes: Shapes) -> float:
    """Bytes of a row of a block, including the results computed from it."""
    numbers = (
        together * prod(shape[1:]) * BLOCK_COPIES[len(shape)] for shape, together in shapes.items()
    )
    return 8.0 * sum(numbers)
