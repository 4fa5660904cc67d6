"""Read mutated files and print the outcome of each.

Usage: `python -m tests.app.files.fuzzing COUNT FOLDER [KIND …]`.

Each kind is read in a process of its own that may take little memory and, for one file, a few
seconds; a crash or a hang ends it, and the file that did it stays in the folder.
"""

import faulthandler
import gzip
import io
import json
import os
import re
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp

import gramian.common.memory
from gramian.app.files import (
    FileError,
    Table,
    describe,
    read_header,
    read_matrix,
    read_ratings,
    read_table,
)
from tests.fuzz import Mutation, inside_gzip, inside_zip, mutated

MEMORY = 1 << 27
"""Bytes that the readers take for the memory of the machine."""

ROOM = 1 << 30
"""Bytes that a process may take beyond what its libraries take."""

SECONDS = 5
# --- sound files -----------------------------------------------------------------------


def saved(write: Callable[..., Any], *arguments: Any, **named: Any) -> bytes:
    target = io.BytesIO()
    write(target, *arguments, **named)
    return target.getvalue()


def parquet(**options: Any) -> bytes:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "a": rng.normal(size=40),
            "b": pa.array([None if k % 7 == 0 else k for k in range(40)]),
            "c": pa.array(["u", "v"] * 20).dictionary_encode(),
            "k": [f"s{k % 3}" for k in range(40)],
            "f": [True, False] * 20,
        }
    )
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(12, 4)), 3)
SPARSE = sp.csr_matrix(np.where(RNG.random((12, 6)) < 0.4, 1.5, 0))
CSV = b"a,b,c,k\n" + b"".join(b"%.3f,%d,,s%d\n" % (v, k, k % 3) for k, v in enumerate(X.ravel()))
QUOTED = b'"a","b","k"\r\n1.5,"2","x, y"\r\n3,NA,"z ""q"" z"\r\n4e3,-5,"two\nlines"\r\n'
NUMBERED = re.sub(rb",s(\d)", rb",\1", CSV)
PLAIN = b"\n".join(b" ".join(b"%.3f" % v for v in row) for row in X)
SVM = b"# made\n" + b"\n".join(b"%d qid:2 1:%.2f 3:4 17:1e-3 # so" % (k % 2, k) for k in range(9))
MARKET = saved(scipy.io.mmwrite, SPARSE, comment="so")
PATTERN = b"%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n1 1\n2 1\n4 3\n"
ARRAY = saved(scipy.io.mmwrite, X)
TRIPLES = b"".join(b"%d::%d::%.1f::97\n" % (k % 5, k % 7, k / 2) for k in range(20))
RATED = b"user,item,rating\n" + b"".join(b"u%d,%d,%.1f\n" % (k % 5, k, k / 2) for k in range(20))
NPZ = [
    saved(np.savez, X=X, y=np.arange(12), columns=np.array(list("abcd"))),
    saved(np.savez_compressed, X=X.astype(np.float32), y=np.array(list("uvw") * 4)),
    saved(sp.save_npz, SPARSE),
    saved(sp.save_npz, SPARSE.tocoo()),
]
NPY = [saved(np.save, X), saved(np.save, np.asfortranarray(X.astype(np.int16)))]

Kind = tuple[list[tuple[str, bytes]], list[Callable[[Path], Any]], Mutation]


def labelled(path: Path) -> Table:
    """With the label that the sound file has."""
    return read_table(path, label="k", drop=["c"] if path.suffix in (".parquet", ".pq") else [])


KINDS: dict[str, Kind] = {
    "csv": (
        [(".csv", CSV), (".csv", QUOTED)],
        [labelled, describe, read_header],
        mutated,
    ),
    "tsv": (
        [(".tsv", CSV.replace(b",", b"\t")), (".tsv", QUOTED.replace(b",", b"\t"))],
        [labelled, describe, read_header],
        mutated,
    ),
    "gz": (
        [(".csv.gz", NUMBERED), (".svm.gz", SVM), (".mtx.gz", MARKET), (".gz", PLAIN)],
        [read_table, describe, read_header],
        inside_gzip,
    ),
    "parquet": (
        [
            (".parquet", parquet()),
            (".parquet", parquet(compression="none", use_dictionary=False)),
            (".pq", parquet(compression="zstd", data_page_version="2.0", row_group_size=9)),
        ],
        [labelled, describe, read_header],
        mutated,
    ),
    "npz": ([(".npz", data) for data in NPZ], [read_table, describe, read_header], inside_zip),
    "npy": ([(".npy", data) for data in NPY], [read_table, describe, read_header], mutated),
    "svmlight": ([(".svm", SVM)], [read_table, describe, read_header], mutated),
    "mtx": (
        [(".mtx", MARKET), (".mtx", PATTERN), (".mtx", ARRAY)],
        [read_table, read_matrix, describe],
        mutated,
    ),
    "ratings": (
        [(".dat", TRIPLES), (".csv", RATED), (".data", TRIPLES.replace(b"::", b"\t"))],
        [read_ratings],
        mutated,
    ),
}


# --- running ---------------------------------------------------------------------------


def fuzz(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Read mutated files of one kind, each by one reader in turn."""
    seeds, readers, mutation = KINDS[name]
    rng = np.random.default_rng(len(name) + sum(name.encode()))
    told: dict[str, Any] = {"read": 0, "refused": 0, "wrong": []}
    for number in range(count):
        ending, data = seeds[number % len(seeds)]
        path = folder / f"{name}{ending}"
        path.write_bytes(mutation(data, rng))
        reader = readers[number // len(seeds) % len(readers)]
        try:
            told[outcome(reader, path)] += 1
        except Exception:
            kept = path.rename(folder / f"wrong-{number}-{path.name}")
            told["wrong"].append(f"{kept} by {reader.__name__}: {traceback.format_exc()}")
            if len(told["wrong"]) == 5:
                break
    return told


def outcome(reader: Callable[[Path], Any], path: Path) -> str:
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # ends loops in compiled code too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of titles and letters
            found = reader(path)
    except FileError as error:
        message = str(error)
        assert str(path) in message and "\n" not in message and len(message) < 2000, message
        return "refused"
    finally:
        faulthandler.cancel_dump_traceback_later()
    if isinstance(found, Table):
        rows, columns = found.X.shape
        assert rows > 0 and len(found.columns) == columns > 0
        assert found.X.dtype == np.float64 and not np.isinf(values(found.X)).any()
        assert found.y is None or (found.y.shape == (rows,) and found.y.dtype.kind in "ifU")
    if isinstance(found, dict):
        json.dumps(found, allow_nan=False)
    return "read"


def values(X: Any) -> Any:
    return X.data if sp.issparse(X) else X


def alone(name: str, count: int, folder: Path) -> dict[str, Any]:
    """Fuzz in a process of its own, within little memory."""
    result = folder / f"{name}.json"
    child = os.fork()
    if child == 0:
        faulthandler.enable()
        taken = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = fuzz(name, count, folder)
        told["grown"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        result.write_text(json.dumps(told))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"
        return {"read": 0, "refused": 0, "wrong": [f"{name} ended by {how}: see {folder}"]}
    return json.loads(result.read_text())


def main() -> None:
    count, folder, *names = sys.argv[1:]
    warnings.simplefilter("error")
    gramian.common.memory.memory = lambda: float(MEMORY)
    for seeds, readers, _ in KINDS.values():  # every library loaded before memory is limited
        for ending, data in seeds:
            path = Path(folder) / f"sound{ending}"
            path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
            for reader in readers:
                reader(path)
    told = {name: alone(name, int(count), Path(folder)) for name in names or KINDS}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
