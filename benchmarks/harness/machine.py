"""The machine of a run, without host name and paths: reports are published."""

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import gramian

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, Python and BLAS."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": _blas(),
    }


def cores() -> int:
    """The cores that this process may use."""
    here = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return len(here) or os.cpu_count() or 1


def last_cache() -> int | None:
    """Bytes of the largest cache of a core, on Linux."""
    files = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    texts = [path.read_text().strip() for path in files]
    return max((int(text[:-1]) * 1024 for text in texts if text.endswith("K")), default=None)


def versions() -> dict[str, str | None]:
    """Versions of the packages that the figures depend on; None if not installed."""
    return {"gramian": gramian.__version__, **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    """The model given by lscpu (ARM's /proc/cpuinfo lacks it), otherwise by Python."""
    if shutil.which("lscpu"):
        env = dict(os.environ, LC_ALL="C")
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, env=env).stdout
        for line in listing.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Model name" and value.strip(" -"):
                return value.strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    return round(int(meminfo.read_text().split()[1]) / 2**20, 1)


def _blas() -> list[str] | None:
    """BLAS libraries as loaded now, with their threads; None without threadpoolctl."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    libraries = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return sorted(
        {f"{p['internal_api']} {p['version']}, {p['num_threads']} threads" for p in libraries}
    )
