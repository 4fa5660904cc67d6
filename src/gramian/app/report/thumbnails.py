"""Small images of samples, combined into one picture that a page contains."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

MOST, SIDE, NARROW, CROWD = 5000, 32, 20, 1000
"""Largest number of images, pixels per side, and pixels per side for more than `CROWD` images."""


@dataclass(frozen=True)
class Sheet:
    """A picture that contains all images, row by row."""

    png: bytes
    width: int
    height: int
    columns: int

    @property
    def address(self) -> str:
        """The picture as a data URL."""
        return "data:image/png;base64," + b64encode(self.png).decode("ascii")


def are_images(X: Any) -> bool:
    """Whether X has one image for each sample: (n, height, width)."""
    return getattr(X, "ndim", 2) == 3


def sheet_of(images: Any) -> Sheet:
    """A sheet of grey images of shape (n, height, width), scaled to the range of their values."""
    tiles = _grey(_smaller(np.asarray(images, dtype=float)))
    n, height, width = tiles.shape
    columns = ceil(sqrt(n))
    rows = ceil(n / columns)
    whole = np.zeros((rows * columns, height, width), dtype=np.uint8)
    whole[:n] = tiles
    grid = whole.reshape(rows, columns, height, width).transpose(0, 2, 1, 3)
    return Sheet(_png(grid.reshape(rows * height, columns * width)), width, height, columns)


def _smaller(images: NDArray[np.floating]) -> NDArray[np.floating]:
    """Images reduced by means over squares of pixels until a side fits."""
    n, height, width = images.shape
    if n > MOST:
        raise ValueError(f"a page can show {MOST:,} images, got {n:,}: leave X out")
    if not np.all(np.isfinite(images)) or min(height, width) == 0:
        raise ValueError("images must be of finite numbers, with at least one pixel per side")
    step = max(1, ceil(max(height, width) / (SIDE if n <= CROWD else NARROW)))
    padded = np.pad(images, ((0, 0), (0, -height % step), (0, -width % step)), mode="edge")
    high, wide = padded.shape[1] // step, padded.shape[2] // step
    return padded.reshape(n, high, step, wide, step).mean(axis=(2, 4))


def _grey(images: NDArray[np.floating]) -> Bytes:
    low, high = float(images.min()), float(images.max())
    return np.round(255 * (images - low) / max(high - low, 1e-300)).astype(np.uint8)


def _png(pixels: Bytes) -> bytes:
    """Pixels of eight bits as PNG."""
    height, width = pixels.shape
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), pixels]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
