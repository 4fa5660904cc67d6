"""Neighbours: exact search and peers, approximate search and exact, and by threads.

Each search has a process of its own, with the kernels loaded before it is timed.
"""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.learn import seconds_of
from benchmarks.harness.machine import cores
from benchmarks.harness.report import Report, Table
from gramian.constraints import other_class_neighbors, same_class_neighbors
from gramian.neighbours import nearest

TITLE = "Neighbours: exact, approximate, and by threads"
PAPER = "Not from a paper: scikit-learn's brute force and faiss's IndexFlatL2 in the same run"
NEEDS_DATA = ("mnist", "a9a")

K, TARGETS = 6, 3
LIMIT = 3600.0
MADE = 200_000
WORKS = ("all", "targets", "impostors")
SHIFTS = ((0, 0), (1, 0), (0, 1), (1, 1))

NOTES = (
    f"{K} nearest others of every sample; targets and impostors: {TARGETS} of its own and of other "
    "classes. Ratio: seconds of the peer over ours.",
    "MNIST: pixels / 255 in float64 (float32 for faiss, which supports nothing else). a9a: CSR.",
    "Same: the share of our neighbours that the peer found too; less than 1 where several are "
    "equally far (a9a), or by the rounding of float32 (faiss).",
    f"Approximate: {MADE:,} images, MNIST's and the same moved by a pixel, with noise of ±0.05; "
    "`approximate=True` with the recall that it reports.",
)


def run(ctx: Context) -> Report:
    """The exact searches, the threads, the approximate search."""
    few, data = min(2, cores()), {"folder": str(ctx.data_folder) if ctx.data_folder else None}

    def child(task: Any, threads: int, **given: Any) -> Any:
        return ctx.in_child(task, {**data, **given}, LIMIT, threads=threads)

    sizes = ctx.pick({"mnist": 60_000, "a9a": 32_561}, {"mnist": 2_000})
    exact = Table(
        "Exact search", ("search", "samples", "by", "threads", "seconds", "ratio", "same")
    )
    for name, size in sizes.items():
        found, seconds = child(search, few, name=name, size=size, work="all").value
        exact.add(name, size, "gramian", few, seconds, 1.0, 1.0)
        peers = {"scikit-learn": child(by_sklearn, few, name=name, size=size)}
        if name == "mnist":
            given = {"X": _samples(name, size, ctx.data_folder)[0].astype(np.float32)}
            given |= {"k": K, "threads": few}
            peers["faiss IndexFlatL2"] = ctx.peer("faiss_flat", given, LIMIT, threads=few)
        for peer, answer in peers.items():
            cells: tuple[Any, ...] = None, None, answer.error
            if answer.ok:
                value = answer.value
                other, took = (
                    value if peer == "scikit-learn" else (value["found"], value["seconds"])
                )
                same = (found[:, :, None] == other[:, None, :]).any(axis=2)
                cells = took, took / seconds, float(same.mean())
            exact.add(name, size, peer, few, *cells)
    threads = Table("By threads", ("search", "samples", "threads", "seconds", "gain"))
    for work in ctx.pick(WORKS, WORKS[:1]):
        size = sizes["mnist"] // (1 if work == "all" else 2)
        counts = [count for count in (1, 2, 4, 8, 16, 32) if count <= cores()]
        given = {"name": "mnist", "size": size, "work": work}
        taken = [child(search, count, **given).value[1] for count in counts]
        for count, seconds in zip(counts, taken, strict=True):
            threads.add(work, size, count, seconds, taken[0] / seconds)
    near = Table("Approximate search", ("search", "samples", "seconds", "of exact", "recall"))
    size = ctx.pick(MADE, 2_000)
    full, part = (child(made, few, size=size, approximate=flag) for flag in (False, True))
    near.add("exact", size, full.value[0], 1.0, full.value[1])
    cells = None, None, part.error
    if part.ok:
        cells = part.value[0], part.value[0] / full.value[0], part.value[1]
    near.add("approximate", size, *cells)
    return ctx.report([exact, threads, near], NOTES)


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
    return seconds_of(lambda: jobs[work](size))


def by_sklearn(name: str, size: int, folder: str | None) -> tuple[np.ndarray, float]:
    """Neighbours by scikit-learn's brute force."""
    X, _ = _samples(name, size, folder)
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(X)
    brute.kneighbors(X[:100])
    return seconds_of(lambda: brute.kneighbors(return_distance=False))


def made(size: int, folder: str | None, approximate: bool = False) -> tuple[float, float]:
    """Seconds and recall of a search among made images."""
    images = _samples("mnist", 60_000, folder)[0].reshape(-1, 28, 28).astype(np.float32)
    rng = np.random.default_rng(0)
    copies = [np.roll(images, shift, axis=(1, 2)) for shift in SHIFTS[: -(-size // len(images))]]
    X = np.concatenate(copies)[:size].reshape(size, -1)
    X += rng.uniform(-0.05, 0.05, X.shape).astype(np.float32)
    nearest(X[:5_000], K)
    found, seconds = seconds_of(lambda: nearest(X, K, approximate=approximate))
    return seconds, found.recall


def _samples(name: str, size: int, folder: Any) -> tuple[Any, np.ndarray]:
    data = load_set(name, Path(folder) if folder else None)
    X = data.X[:size]
    return (X / 255.0 if name == "mnist" else X), data.y[:size]
