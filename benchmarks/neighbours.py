"""Neighbours: exact beside scikit-learn and faiss, approximate beside exact, and by threads.

All times are of one run on one machine, each search in a process of its own, kernels loaded.
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table
from gramian.constraints import other_class_neighbors, same_class_neighbors
from gramian.neighbours import nearest

TITLE = "Neighbours: exact, approximate, and by threads"
PAPER = "no paper: scikit-learn's brute force and faiss's IndexFlatL2 in the same run"
NEEDS_DATA = ("mnist", "a9a")

K, TARGETS = 6, 3
LIMIT = 3600.0
MADE = 200_000
SHIFTS = ((0, 0), (1, 0), (0, 1), (1, 1))

NOTES = (
    f"{K} nearest others of every sample; targets and impostors: {TARGETS} of its own and of other "
    "classes. Ratio: seconds of the other over ours.",
    "MNIST: pixels / 255 in float64 (float32 for faiss, which has nothing else). a9a: CSR; "
    "scikit-learn's search of it is what the library used before.",
    "Same: the share of the neighbours of ours that the other found too; less than 1 where several "
    "are equally far (a9a), or where float32 decides (faiss).",
    f"Approximate: {MADE:,} images, MNIST's and the same moved by a pixel, with noise of ±0.05; "
    "`approximate=True` with the recall that it tells.",
)


def run(ctx: Context) -> Report:
    """Measure everything."""
    cores = _cores()
    exact = Table(
        "Exact search", ("search", "samples", "by", "threads", "seconds", "ratio", "same")
    )
    sizes = (6_000, 6_000) if ctx.quick else (60_000, 32_561)
    for name, size in zip(("mnist", "a9a"), sizes, strict=True):
        _beside(ctx, exact, name, size, min(2, cores))
    threads = Table("By threads", ("search", "samples", "threads", "seconds", "gain"))
    for work in ("all", "targets", "impostors"):
        _by_threads(ctx, threads, work, sizes[0] if work == "all" else sizes[0] // 2, cores)
    tables = [exact, threads, _approximate(ctx, 60_000 if ctx.quick else MADE, min(2, cores))]
    return ctx.report(tables=tables, notes=NOTES)


def _beside(ctx: Context, table: Table, name: str, size: int, threads: int) -> None:
    """Our search and those of others, on the same samples."""
    given = {"name": name, "size": size, "folder": _folder(ctx)}
    ours = ctx.in_child(
        "benchmarks.neighbours:search", {**given, "work": "all"}, LIMIT, threads=threads
    )
    found, seconds = ours.value
    table.add(name, size, "gramian", threads, seconds, 1.0, 1.0)
    theirs = ctx.in_child("benchmarks.neighbours:by_sklearn", given, LIMIT, threads=threads)
    table.add(name, size, "scikit-learn", threads, *_against(theirs.value, found, seconds))
    if name == "mnist":
        X = _samples(name, size, ctx.data_folder)[0].astype(np.float32)
        peer = ctx.peer("faiss_flat", {"X": X, "k": K, "threads": threads}, LIMIT, threads=threads)
        answer = (peer.value["found"], peer.value["seconds"]) if peer.ok else None
        cells = _against(answer, found, seconds) if answer else (None, None, peer.error)
        table.add(name, size, "faiss IndexFlatL2", threads, *cells)


def _against(theirs: Any, found: np.ndarray, seconds: float) -> tuple[float, float, float]:
    other, took = theirs
    same = (found[:, :, None] == other[:, None, :]).any(axis=2)
    return took, took / seconds, float(same.mean())


def _by_threads(ctx: Context, table: Table, work: str, size: int, cores: int) -> None:
    given = {"name": "mnist", "size": size, "folder": _folder(ctx), "work": work}
    first = None
    for threads in (count for count in (1, 2, 4, 8, 16, 32) if count <= cores):
        seconds = ctx.in_child("benchmarks.neighbours:search", given, LIMIT, threads=threads).value[
            1
        ]
        first = first or seconds
        table.add(work, size, threads, seconds, first / seconds)


def _approximate(ctx: Context, size: int, threads: int) -> Table:
    table = Table("Approximate search", ("search", "samples", "seconds", "of exact", "recall"))
    given = {"size": size, "folder": _folder(ctx)}
    exact = ctx.in_child("benchmarks.neighbours:made", given, LIMIT, threads=threads)
    near = ctx.in_child(
        "benchmarks.neighbours:made", {**given, "approximate": True}, LIMIT, threads=threads
    )
    table.add("exact", size, exact.value[0], 1.0, exact.value[1])
    cells = (near.value[0], near.value[0] / exact.value[0], near.value[1]) if near.ok else None
    table.add("approximate", size, *(cells or (None, None, near.error)))
    return table


# --- what the processes run --------------------------------------------------------------


def search(name: str, size: int, folder: str | None, work: str) -> tuple[np.ndarray, float]:
    """Our neighbours of one kind, and the seconds once the kernels are loaded."""
    X, y = _samples(name, size, folder)
    jobs = {
        "all": lambda rows: nearest(X[:rows], K).indices,
        "targets": lambda rows: same_class_neighbors(X[:rows], y[:rows], TARGETS),
        "impostors": lambda rows: other_class_neighbors(X[:rows], y[:rows], TARGETS),
    }
    jobs[work](5_000)
    return _timed(lambda: jobs[work](size))


def by_sklearn(name: str, size: int, folder: str | None) -> tuple[np.ndarray, float]:
    """Neighbours by scikit-learn's brute force."""
    X, _ = _samples(name, size, folder)
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(X)
    brute.kneighbors(X[:100])
    return _timed(lambda: brute.kneighbors(return_distance=False))


def made(size: int, folder: str | None, approximate: bool = False) -> tuple[float, float]:
    """Seconds and recall of a search among made images."""
    images = _samples("mnist", 60_000, folder)[0].reshape(-1, 28, 28).astype(np.float32)
    rng = np.random.default_rng(0)
    copies = [np.roll(images, shift, axis=(1, 2)) for shift in SHIFTS[: -(-size // len(images))]]
    X = np.concatenate(copies)[:size].reshape(size, -1)
    X += rng.uniform(-0.05, 0.05, X.shape).astype(np.float32)
    nearest(X[:5_000], K)
    found, seconds = _timed(lambda: nearest(X, K, approximate=approximate))
    return seconds, found.recall


def _timed(job: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    found = job()
    return found, time.perf_counter() - start


def _samples(name: str, size: int, folder: Any) -> tuple[Any, np.ndarray]:
    data = load_set(name, Path(folder) if folder else None)
    X = data.X[:size]
    return (X / 255.0 if name == "mnist" else X), data.y[:size]


def _folder(ctx: Context) -> str | None:
    return str(ctx.data_folder) if ctx.data_folder else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
