"""Broken files from whole ones: bytes changed anywhere, and inside archives whose sums are kept."""

import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterator

import numpy as np

HOSTILE = [
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1e-999", b"-", b"+", b"", b".", b"NA", b"?", b"1_0"),
    *(b"99999999999999999999", b"-1", b"2147483648", b"9223372036854775807", b"4294967296"),
    *(b"0", b"1e308", b"0x10", b"9" * 5000, b'"', b'""', b"'", b"\0", b"\xff\xfe", b"\xef\xbb\xbf"),
    *("é∞١".encode(), b"#", b"%", b"::", b":", b",", b";", b"\t", b" ", b"\n", b"\r", b"\r\n"),
    *(b"qid:1", b"1:1", b"True", b"a" * 3000, b"\n\n\n", b"(((((((", b"{'descr': '|O'}", b"PAR1"),
]

Mutation = Callable[[bytes, np.random.Generator], bytes]


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """So many broken copies of a zip archive, most of them broken inside a member."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield inside_zip(data, rng)


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    for place in rng.integers(len(found), size=rng.integers(1, 5)):
        found[place] ^= 1 << rng.integers(8)
    return bytes(found)


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    place, new = rng.integers(len(data)), rng.bytes(rng.integers(1, 9))
    return data[:place] + new + data[place + len(new) :]


def insert(data: bytes, rng: np.random.Generator) -> bytes:
    place, token = rng.integers(len(data) + 1), HOSTILE[rng.integers(len(HOSTILE))]
    return data[:place] + (token if rng.random() < 0.7 else rng.bytes(4)) + data[place:]


def delete(data: bytes, rng: np.random.Generator) -> bytes:
    place = rng.integers(len(data))
    return data[:place] + data[place + rng.integers(1, 9) :]


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def duplicate(data: bytes, rng: np.random.Generator) -> bytes:
    start, stop = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:stop] + data[start:stop] * int(rng.integers(1, 4)) + data[stop:]


def swap_token(data: bytes, rng: np.random.Generator) -> bytes:
    return _swap(rb"[^\s,;:]+", data, rng, HOSTILE)


def swap_gap(data: bytes, rng: np.random.Generator) -> bytes:
    return _swap(rb"[\s,;:]", data, rng, HOSTILE)


def blow_up(data: bytes, rng: np.random.Generator) -> bytes:
    sizes = [str(10**power + 7).encode() for power in (3, 6, 8, 9, 10, 12, 15, 18, 19, 30)]
    head = data[:200]
    return _swap(rb"\d+", head, rng, sizes) + data[200:]


def at_the_end(data: bytes, rng: np.random.Generator) -> bytes:
    """Where zip archives and Parquet files keep what is in them."""
    cut = max(0, len(data) - 600)
    change = [flip, overwrite, insert, delete][rng.integers(4)]
    return data[:cut] + change(data[cut:], rng)


def _swap(pattern: bytes, data: bytes, rng: np.random.Generator, new: list[bytes]) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return data
    token = found[rng.integers(len(found))]
    return data[: token.start()] + new[rng.integers(len(new))] + data[token.end() :]


MUTATIONS: list[Mutation] = [
    *(flip, overwrite, insert, delete, truncate, duplicate),
    *(swap_token, swap_gap, blow_up, at_the_end),
]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    for _ in range(min(4, rng.geometric(0.7))):
        data = MUTATIONS[rng.integers(len(MUTATIONS))](data, rng) or b"\n"
    return data


def inside_gzip(data: bytes, rng: np.random.Generator) -> bytes:
    """Mutated text, sound gzip; or the other way round."""
    if rng.random() < 0.7:
        return gzip.compress(mutated(data, rng), mtime=0)
    return mutated(gzip.compress(data, mtime=0), rng)


def inside_zip(data: bytes, rng: np.random.Generator) -> bytes:
    """One array mutated in a sound archive; or the archive."""
    if rng.random() < 0.3:
        return mutated(data, rng)
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        chosen = rng.integers(len(old.namelist()))
        for place, name in enumerate(old.namelist()):
            part = old.read(name)
            new.writestr(name, mutated(part, rng) if place == chosen else part)
    return target.getvalue()
