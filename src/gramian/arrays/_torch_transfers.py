"""Transfers between the host and a device, and rows that stay on the host."""

from __future__ import annotations

import importlib
from functools import cache, cached_property
from threading import Lock
from typing import Any

import torch
from numpy.typing import NDArray

from gramian.arrays.blocks import Blocks, mapped

Tensor = Any

STAGED, STAGE_BYTES = 2**21, 2**23
"""Numbers from which an array is copied by way of pinned memory, and the bytes of such a part."""

_staging = Lock()


def namespace() -> Any:
    """The array API functions for tensors."""
    return importlib.import_module("array_api_compat.torch")


def host(tensor: Tensor) -> NDArray[Any]:
    """The tensor as a NumPy array."""
    return tensor.detach().cpu().numpy()


def staged(array: NDArray[Any], device: Any) -> Tensor:
    """An array copied to a GPU; a long one by way of pinned memory.

    Several threads copy parts of it there while earlier parts are transferred: 376 MB take 8 ms
    with 16 cores, and 60 ms otherwise.
    """
    given = torch.as_tensor(array)
    if given.numel() < STAGED or not given.is_contiguous():
        return given.to(device)
    found = torch.empty_like(given, device=device)
    flat, there = given.reshape(-1).view(torch.uint8), found.reshape(-1).view(torch.uint8)
    with _staging:
        stages = _stages(device)
        for k, first in enumerate(range(0, flat.numel(), STAGE_BYTES)):
            stage, sent = stages[k % len(stages)]
            sent.synchronize()
            part = flat[first : first + STAGE_BYTES]
            stage[: part.numel()].copy_(part)
            there[first : first + STAGE_BYTES].copy_(stage[: part.numel()], non_blocking=True)
            sent.record(torch.cuda.current_stream(device))
    return found


@cache
def _stages(device: Any) -> list[tuple[Tensor, Any]]:
    """Pinned memory, and the event that ends its last transfer."""

    def stage() -> tuple[Tensor, Any]:
        return _pinned(torch.empty(STAGE_BYTES, dtype=torch.uint8), device), torch.cuda.Event()

    return [stage(), stage()]


class Stored(Blocks):
    """Rows that are on the host and copied to a device block by block on request.

    For a GPU the host memory is pinned, and the next block is copied on a separate stream during
    the computation: including one that is still in use, at most three blocks are on the device.
    float64 values that are representable in float32 (ratings, pixels, weights of 1) are transferred
    as float32.
    """

    def __init__(self, held: Tensor, step: int, device: Any, kind: Any = None) -> None:
        self.held, self.kind = _pinned(held, device), kind or held.dtype
        super().__init__(self.held.shape[0], step, self._block, namespace())
        self._none = self.held[:0].to(device, self.kind)
        self._here: tuple[int, Tensor] = -1, None
        self._coming: tuple[int, Tensor, Any] = -1, None, None

    @classmethod
    def of(cls, array: Any, step: int, device: Any) -> Stored:
        """From a NumPy array or a tensor."""
        rows = torch.as_tensor(array)
        if rows.dtype != torch.float64:
            return cls(rows, step, device)
        short = rows.float()
        return cls(short if bool((short == rows).all()) else rows, step, device, rows.dtype)

    def _block(self, k: int | None) -> Tensor:
        if k is None:
            return self._none
        if self._here[0] != k:
            self._here = -1, None  # its memory is reused by the block after the next
            self._here = k, self._arrived(k).to(self.kind)
            if self.device.type == "cuda" and (k + 1) * self.step < self.length:
                # Otherwise the host would run ahead and transfer all blocks at once.
                torch.cuda.current_stream(self.device).synchronize()
                self._send(k + 1)
        return self._here[1]

    def _arrived(self, k: int) -> Tensor:
        if self._coming[0] != k:
            return sent(self.held[self.parts[k]], self.device)
        _, rows, ready = self._coming
        self._coming = -1, None, None
        now = torch.cuda.current_stream(self.device)
        now.wait_event(ready)
        rows.record_stream(now)
        return rows

    def _send(self, k: int) -> None:
        aside = _aside(self.device)
        with torch.cuda.stream(aside):
            rows = sent(self.held[self.parts[k]], self.device)
            self._coming = k, rows, aside.record_event()

    @cached_property
    def is_sorted(self) -> bool:
        return bool((self.held[1:] >= self.held[:-1]).all())

    @cached_property
    def order(self) -> Stored:
        """The permutation that sorts the rows of each block; stored as well."""
        return stored(mapped(lambda keys: torch.argsort(keys, stable=True).int(), self))


def sent(rows: Tensor, device: Any) -> Tensor:
    """Copy a block of the host to a device: all streamed data passes through here."""
    return rows.to(device, non_blocking=True)


def stored(rows: Any) -> Any:
    """The current rows of `Blocks`, on the host, so that they are not computed again."""
    if not isinstance(rows, Blocks) or isinstance(rows, Stored):
        return rows
    held = _pinned(torch.empty(rows.shape, dtype=rows.dtype), rows.device)
    for part, block in zip(rows.parts, rows, strict=True):
        held[part].copy_(block)
    return Stored(held, rows.step, rows.device)


def gathered(rows: Blocks) -> NDArray[Any]:
    """All rows, as a NumPy array."""
    kept = stored(rows)
    found: NDArray[Any] = kept.held.to(kept.kind).numpy()
    return found


def _pinned(held: Tensor, device: Any) -> Tensor:
    """A copy in pinned memory, or the tensor itself if the host refuses that."""
    try:
        return held.pin_memory() if device.type == "cuda" else held
    except RuntimeError:
        return held


@cache
def _aside(device: Any) -> Any:
    """The stream of copies to a GPU."""
    return torch.cuda.Stream(device)
