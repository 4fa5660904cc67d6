"""Fits on a GPU: seconds, certified gaps, and the same on the CPU with `--device cpu`.

    python -m benchmarks.gpu --data DIR [--only completion_1m mvu_10000] [--device cuda]

Every case is fitted twice in one process: the first fit loads libraries and compiles kernels. Data
are on the host at the start. A third fit, unless it is long, is profiled: the share of its time in
which the GPU computes, the number of kernels, and the number of copies to the host.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _fits
from benchmarks._fits import LIMIT
from benchmarks.harness import cases
from benchmarks.harness.context import Context
from benchmarks.harness.data import load_arrays, load_set
from benchmarks.harness.report import Report, Table

TITLE = "Fits on a GPU"
PAPER = "No table of a paper"

PROFILED = 20.0
"""Only fits up to this many seconds are profiled: every launch is recorded."""
COLUMNS = [
    "case", "first, s", "again, s", "bar, s", "status", "relative gap", "rank", "peak, GB",
    "GPU busy", "launches", "waits", "remark",
]  # fmt: skip
QUICK = ("completion_100k",)

Made = Callable[[Any], tuple[Any, str]]
"""A fit on a device: its result, and a remark."""


def run(ctx: Context) -> Report:
    """All cases on the GPU."""
    table = Table("Seconds and certificates", COLUMNS)
    for name in ctx.pick(CASES, QUICK):
        table.add(*row(name, ctx.data_folder))
    return ctx.report([table], [f"On {_gpu()}."])


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def row(name: str, folder: Path | None, device: str = "cuda") -> list[Any]:
    """A row of the table; a case is also a bar: the seconds that it should take on an H200."""
    make, bar = CASES[name]
    on_gpu, seconds = device.startswith("cuda"), []
    fit, place = make(folder), device if on_gpu else None
    if on_gpu:
        import torch

        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    profile: list[Any] = [None] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(seconds) < 2 and sum(seconds) <= LIMIT / 2:
            started = time.perf_counter()
            result, remark = fit(place)
            seconds.append(time.perf_counter() - started)
        if on_gpu and seconds[-1] < PROFILED:
            profile = _profiled(lambda: fit(place))
    certificate = getattr(result, "certificate", None)
    found = [None] * 3
    if certificate is not None:
        found = [result.status.name, certificate.relative_gap, result.factor.shape[1]]
    peak = torch.cuda.max_memory_allocated() / 1e9 if on_gpu else None
    return [name, seconds[0], seconds[-1], bar, *found, peak, *profile, remark]


def _profiled(fit: Callable[[], Any]) -> list[Any]:
    """The share of a fit in which the GPU is busy, its kernels, and its copies to the host."""
    import torch

    started = time.perf_counter()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        fit()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
    on_gpu = torch.autograd.DeviceType.CUDA
    events = [event for event in profile.key_averages() if event.device_type == on_gpu]
    busy = sum(event.self_device_time_total for event in events) / 1e6
    launches = sum(event.count for event in events if not event.key.startswith("Mem"))
    waits = sum(e.count for e in events if e.key.startswith("Mem") and "DtoH" in e.key)
    return [f"{100 * busy / seconds:.0f} %", launches, waits]


# --- the cases -----------------------------------------------------------------------


def _plain(given: _fits.Given, remark: str = "", **options: Any) -> Callable[[Path | None], Made]:
    """A fit of `_fits` with these options."""

    def make(folder: Path | None) -> Made:
        fit = given(folder)
        return lambda device: (fit(device=device, **options).result_, remark)

    return make


def _movielens(name: str, lam: float | str) -> Callable[[Path | None], Made]:
    """Nine tenths of the ratings; the others test."""

    def make(folder: Path | None) -> Made:
        from gramian.completion import NuclearCompletion

        data = load_arrays(name, folder)
        held = np.random.default_rng(0).random(data["user"].size) < 0.1
        train = tuple(data[key][~held].astype(float) for key in ("user", "item", "rating"))
        cells = np.column_stack([data["user"][held], data["item"][held]])

        def fit(device: Any) -> tuple[Any, str]:
            model = NuclearCompletion(lam=lam, tol=1e-4, time_limit=LIMIT, device=device)
            error = model.fit(train).predict(cells) - data["rating"][held]
            return model.result_, f"RMSE {np.sqrt(np.mean(error**2)):.4f}, lam {model.lam_:.3g}"

        return fit

    return make


def _planted(shape: tuple[int, int], size: int, tol: float) -> Callable[[Path | None], Made]:
    """Ratings of rank 20 and noise, with popular rows and columns."""

    def make(_: Path | None) -> Made:
        from gramian.completion import NuclearCompletion

        rng, (m, n), rank = np.random.default_rng(0), shape, 20
        rows = np.sort((m * rng.random(size) ** 1.3).astype(np.int32))
        cols = (n * rng.random(size) ** 2).astype(np.int32)
        left, right = (
            rng.standard_normal((side, rank)).astype(np.float32) / rank**0.25 for side in shape
        )
        values = 3.5 + 0.75 * rng.standard_normal(size, dtype=np.float32)
        for start in range(0, size, 2**20):
            part = slice(start, start + 2**20)
            values[part] += 0.5 * np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])
        settings = {"lam": 18.0 * np.sqrt(size / 1e6), "tol": tol, "duplicates": "mean"}

        def fit(device: Any) -> tuple[Any, str]:
            model = NuclearCompletion(**settings, time_limit=LIMIT, device=device)
            return model.fit((rows, cols, values)).result_, f"{size:,} ratings"

        return fit

    return make


def _npkl(X: Any, y: np.ndarray, count: int, tol: float) -> Made:
    from gramian.kernel import NPKL

    pairs = np.random.default_rng(1).integers(0, y.size, (60 * count, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    links = {"must_link": pairs[alike][:count], "cannot_link": pairs[~alike][:count]}
    settings = {"tol": tol, "time_limit": LIMIT}
    return lambda device: (NPKL(**settings, device=device).fit(X, **links).result_, "with graph")


def _npkl_a9a(folder: Path | None) -> Made:
    data = load_set("a9a", folder)
    return _npkl(data.X, data.y, int(0.6 * data.y.size), 1e-4)


def _npkl_million(_: Path | None) -> Made:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 10**6)
    X = rng.standard_normal((20, 64))[y] + rng.standard_normal((10**6, 64))
    return _npkl(X, y, 50_000, 1e-3)


def _top_eigen(_: Path | None) -> Made:
    """Compared with `torch.lobpcg` and a full decomposition of the same matrix."""
    import torch

    from gramian.spectral import top_eigen

    generator = torch.Generator(device="cuda").manual_seed(0)
    A = torch.randn(20_000, 20_000, generator=generator, device="cuda", dtype=torch.float64)
    K = A @ A.T / A.shape[0]
    del A
    peers = {
        "torch.lobpcg": lambda: torch.lobpcg(K, k=20, largest=True, tol=1e-8, niter=2000),
        "torch.linalg.eigh": lambda: torch.linalg.eigh(K),
    }
    remark = ""
    for name, peer in peers.items():
        started = time.perf_counter()
        peer()
        torch.cuda.synchronize()
        remark += f"; {name} {time.perf_counter() - started:.1f} s"

    def fit(_: Any) -> tuple[Any, str]:
        found = top_eigen(K, 20, tol=1e-8)
        return found, f"residual {found.residuals.max() / found.values[0]:.1e}{remark}"

    return fit


CASES: dict[str, tuple[Callable[[Path | None], Made], float | None]] = {
    "completion_100k": (_movielens("movielens_100k", "auto"), None),
    "completion_1m": (_movielens("movielens_1m", 18.0), 0.6),
    "completion_1m_path": (_movielens("movielens_1m", "auto"), 12.0),
    "completion_10m": (_planted((69_878, 10_677), 10_000_000, 1e-3), 30.0),
    "completion_100m": (_planted((480_189, 17_770), 100_000_000, 1e-2), 30.0),
    "kta_mnist": (_plain(_fits.metric("KTA", "mnist")), 0.25),
    "lmnn_mnist": (_plain(_fits.metric("LMNN", "mnist"), "PCA 100", tol=1e-3), 0.7),
    "dml_eig_usps": (_plain(_fits.metric("DMLEig", "usps")), 0.3),
    "npkl_a9a": (_npkl_a9a, 1.2),
    "npkl_million": (_npkl_million, 90.0),
    "mvu_10000": (_plain(_fits.unfolding(10_000), tol=1e-3), 4.0),
    "top_eigen_20000": (_top_eigen, None),
}


if __name__ == "__main__":
    raise SystemExit(cases.main("gpu", __doc__, COLUMNS, CASES, row, device="cuda"))
