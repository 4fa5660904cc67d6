"""Fits on a GPU: seconds, certified gaps, and the same on the processor where asked for.

    python -m benchmarks.gpu --data DIR [--only completion_1m mvu_10000] [--device cuda] [--cpu]

Every case is fitted twice in one process: the first time loads libraries and compiles kernels, the
second is what the work takes. Data are on the host at the start. A third fit, where it is not long,
is watched: for what part of its time the GPU computes, how many kernels are launched, and how often
something comes back to the host, which waits for it.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.context import Context
from benchmarks.harness.data import data_folder, load_arrays, load_set
from benchmarks.harness.report import Report, Table

TITLE = "Fits on a GPU"
PAPER = "No table of a paper"

LIMIT = 150.0
WATCHED = 20.0
"""Seconds that a fit may take to be watched: every launch is written down."""

COLUMNS = [
    "case", "first, s", "again, s", "bar, s", "status", "relative gap", "rank", "peak, GB",
    "GPU busy", "launches", "waits", "remark",
]  # fmt: skip
QUICK = ("completion_100k",)


@dataclass(frozen=True)
class Case:
    """Something to fit, and the seconds it should take on an H200."""

    make: Callable[[Path | None], Callable[[Any], tuple[Any, str]]]
    bar: float | None = None


def run(ctx: Context) -> Report:
    """All cases on the GPU."""
    table = Table("Seconds and certificates", COLUMNS)
    for name in QUICK if ctx.quick else CASES:
        table.add(*measured(name, ctx.data_folder, "cuda"))
    return ctx.report([table], [f"On {_device_name()}."])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--data", help="the folder of data sets; GRAMIAN_DATA otherwise")
    parser.add_argument("--only", nargs="+", metavar="CASE", choices=list(CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cpu", action="store_true", help="on the processor too")
    options = parser.parse_args(argv)
    print(_device_name(), flush=True)
    for name in options.only or CASES:
        for device in (options.device, None) if options.cpu else (options.device,):
            told = measured(name, data_folder(options.data), device)
            print(*(_plain(part) for part in told), device or "processor", sep="  ", flush=True)
    return 0


def measured(name: str, folder: Path | None, device: Any) -> list[Any]:
    """A row of the table."""
    case = CASES[name]
    fit = case.make(folder)
    seconds = []
    memory = _Memory(device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            started = time.perf_counter()
            result, remark = fit(device)
            seconds.append(time.perf_counter() - started)
            if seconds[0] > LIMIT / 2:
                break
        watched = _watched(fit, device) if seconds[-1] < WATCHED else [None] * 3
    certificate = getattr(result, "certificate", None)
    gap = None if certificate is None else certificate.relative_gap
    rank = None if certificate is None else result.factor.shape[1]
    status = "" if certificate is None else result.status.name
    row = [name, seconds[0], seconds[-1], case.bar, status, gap, rank]
    return [*row, memory.peak, *watched, remark]


class _Memory:
    """The most that a GPU held since this was made."""

    def __init__(self, device: Any) -> None:
        import torch

        self.cuda = torch.cuda if str(device).startswith("cuda") else None
        if self.cuda is not None:
            self.cuda.empty_cache()
            self.cuda.reset_peak_memory_stats()

    @property
    def peak(self) -> float | None:
        return None if self.cuda is None else self.cuda.max_memory_allocated() / 1e9


def _watched(fit: Callable[[Any], Any], device: Any) -> list[Any]:
    """The part of a fit that the GPU is busy, its kernels, and its copies to the host."""
    if not str(device).startswith("cuda"):
        return [None] * 3
    import torch

    started = time.perf_counter()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as watch:
        fit(device)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
    there = [
        event
        for event in watch.key_averages()
        if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    busy = sum(event.self_device_time_total for event in there) / 1e6
    copies = [event for event in there if event.key.startswith("Mem")]
    launches = sum(event.count for event in there) - sum(event.count for event in copies)
    waits = sum(event.count for event in copies if "DtoH" in event.key)
    return [f"{100 * busy / seconds:.0f} %", launches, waits]


def _plain(part: Any) -> str:
    return f"{part:.3g}" if isinstance(part, float) else str(part)


def _device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def _forget_peak() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def _peak() -> str:
    """The most memory that tensors took on the device since it was forgotten."""
    import torch

    most = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    return f"at most {most / 1e9:.1f} GB there"


# --- completion ------------------------------------------------------------------------


def _movielens(name: str, lam: float | str) -> Callable[[Path | None], Any]:
    def make(folder: Path | None) -> Any:
        from gramian.completion import NuclearCompletion

        data = load_arrays(name, folder)
        held = np.random.default_rng(0).random(data["user"].size) < 0.1
        train = tuple(data[key][~held] for key in ("user", "item", "rating"))
        cells = np.column_stack([data["user"][held], data["item"][held]])

        def fit(device: Any) -> tuple[Any, str]:
            model = NuclearCompletion(lam=lam, tol=1e-4, time_limit=LIMIT, device=device)
            model.fit((train[0], train[1], train[2].astype(float)))
            error = model.predict(cells) - data["rating"][held]
            return model.result_, f"RMSE {np.sqrt(np.mean(error**2)):.4f}, lam {model.lam_:.3g}"

        return fit

    return make


def _planted(
    shape: tuple[int, int], size: int, rank: int, tol: float
) -> Callable[[Path | None], Any]:
    """Ratings of a planted rank and noise, popular rows and columns among them."""

    def make(folder: Path | None) -> Any:
        from gramian.completion import NuclearCompletion

        rng, (m, n) = np.random.default_rng(0), shape
        rows = np.sort((m * rng.random(size) ** 1.3).astype(np.int32))
        cols = (n * rng.random(size) ** 2).astype(np.int32)
        left, right = (
            rng.standard_normal((side, rank)).astype(np.float32) / rank**0.25 for side in shape
        )
        values = 3.5 + 0.75 * rng.standard_normal(size, dtype=np.float32)
        for start in range(0, size, 2**20):
            part = slice(start, start + 2**20)
            values[part] += 0.5 * np.einsum("ij,ij->i", left[rows[part]], right[cols[part]])

        def fit(device: Any) -> tuple[Any, str]:
            model = NuclearCompletion(
                lam=18.0 * np.sqrt(size / 1e6), tol=tol, duplicates="mean", time_limit=LIMIT,
                device=device,
            )  # fmt: skip
            _forget_peak()
            model.fit((rows, cols, values))
            return model.result_, f"{size:,} ratings, {_peak()}"

        return fit

    return make


# --- metrics ---------------------------------------------------------------------------


def _kta(folder: Path | None) -> Any:
    from gramian.metric import KTA

    data = load_arrays("mnist", folder)
    X, y = data["X"].astype(float), data["y"]
    return lambda device: (KTA(device=device).fit(X, y).result_, "")


def _lmnn(folder: Path | None) -> Any:
    from sklearn.decomposition import PCA

    from gramian.metric import LMNN

    data = load_arrays("mnist", folder)
    X = PCA(100, random_state=0).fit_transform(data["X"] / 255.0)
    return lambda device: (
        LMNN(tol=1e-3, time_limit=LIMIT, device=device).fit(X, data["y"]).result_,
        "PCA 100",
    )


def _dml_eig(folder: Path | None) -> Any:
    from gramian.metric import DMLEig

    data = load_arrays("usps", folder)
    X, y = data["X"].astype(float), data["y"]
    return lambda device: (DMLEig(time_limit=LIMIT, device=device).fit(X, y).result_, "")


# --- kernels and unfoldings --------------------------------------------------------------


def _npkl(folder: Path | None) -> Any:
    from gramian.kernel import NPKL

    given = load_set("a9a", folder)
    X, links = given.X, _links(given.y, int(0.6 * given.y.size))
    return lambda device: (
        NPKL(tol=1e-4, time_limit=LIMIT, device=device).fit(X, **links).result_,
        "graph included",
    )


def _npkl_million(folder: Path | None) -> Any:
    from gramian.kernel import NPKL

    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 10**6)
    X = rng.standard_normal((20, 64))[y] + rng.standard_normal((10**6, 64))
    links = _links(y, 50_000)
    return lambda device: (
        NPKL(tol=1e-3, time_limit=LIMIT, device=device).fit(X, **links).result_,
        "graph included",
    )


def _links(y: np.ndarray, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, y.size, (60 * count, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[alike][:count], "cannot_link": pairs[~alike][:count]}


def _mvu(folder: Path | None) -> Any:
    from gramian.manifold import MVU

    X = load_arrays("mnist", folder)["X"][:10_000].astype(float)
    return lambda device: (MVU(tol=1e-3, time_limit=LIMIT, device=device).fit(X).result_, "")


# --- eigenpairs --------------------------------------------------------------------------


def _top_eigen(folder: Path | None) -> Any:
    """Beside `torch.lobpcg` and a full decomposition, on the same matrix."""
    import torch

    from gramian.spectral import top_eigen

    there = torch.Generator(device="cuda").manual_seed(0)
    A = torch.randn(20_000, 20_000, generator=there, device="cuda", dtype=torch.float64)
    K = A @ A.T / A.shape[0]
    del A

    def peer(act: Callable[[], Any]) -> float:
        started = time.perf_counter()
        act()
        torch.cuda.synchronize()
        return time.perf_counter() - started

    def fit(device: Any) -> tuple[Any, str]:
        found = top_eigen(K, 20, tol=1e-8)
        return found, f"residual {found.residuals.max() / found.values[0]:.1e}; {beside}"

    lobpcg = peer(lambda: torch.lobpcg(K, k=20, largest=True, tol=1e-8, niter=2000))
    full = peer(lambda: torch.linalg.eigh(K))
    beside = f"torch.lobpcg {lobpcg:.1f} s, torch.linalg.eigh {full:.1f} s"
    return fit


CASES = {
    "completion_100k": Case(_movielens("movielens_100k", "auto")),
    "completion_1m": Case(_movielens("movielens_1m", 18.0), 3.0),
    "completion_1m_path": Case(_movielens("movielens_1m", "auto"), 12.0),
    "completion_10m": Case(_planted((69_878, 10_677), 10_000_000, 20, 1e-3), 30.0),
    "completion_100m": Case(_planted((480_189, 17_770), 100_000_000, 20, 1e-2), 180.0),
    "kta_mnist": Case(_kta, 0.8),
    "lmnn_mnist": Case(_lmnn, 10.0),
    "dml_eig_usps": Case(_dml_eig, 1.0),
    "npkl_a9a": Case(_npkl, 3.0),
    "npkl_million": Case(_npkl_million, 90.0),
    "mvu_10000": Case(_mvu, 20.0),
    "top_eigen_20000": Case(_top_eigen),
}


if __name__ == "__main__":
    raise SystemExit(main())
