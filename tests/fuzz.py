"""Broken files from whole ones: bytes changed anywhere, and inside zip archives with sums kept."""

import io
import zipfile
from collections.abc import Iterator

import numpy as np

TOKENS = (b"nan", b"-1", b"1e999", b"99999999999999999999", b'"', b"\x00", b"{", b"null", b"[[")


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """So many broken copies; of a zip archive every other one is broken inside a member."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        inside = number % 2 and zipfile.is_zipfile(io.BytesIO(data))
        yield _inside(data, rng) if inside else _broken(data, rng)


def _broken(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, kind = int(rng.integers(0, len(out) + 1)), rng.integers(0, 6)
        size = int(rng.integers(1, 30))
        if kind == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            out[at:at] = rng.bytes(size)
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size]
        elif kind == 4:
            out[at : at + int(rng.integers(0, 4))] = TOKENS[int(rng.integers(0, len(TOKENS)))]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def _inside(data: bytes, rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        victim = names[0] if rng.random() < 0.5 else names[int(rng.integers(0, len(names)))]
        for name in names:
            member = old.read(name)
            new.writestr(name, _broken(member, rng) if name == victim else member)
    return out.getvalue()
