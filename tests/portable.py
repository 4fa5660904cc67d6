"""The numerical tests in other roundings: `make test-portable`, or `python -m tests.portable`.

Each run uses another OpenBLAS kernel, number of threads and change of the inputs in their last
bits. A test that fails in one of them depends on the order of additions.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

ARM = ("ARMV8", "NEOVERSEN1", "CORTEXA57", "THUNDERX2T99")
INTEL = ("HASWELL", "NEHALEM", "SANDYBRIDGE", "SKYLAKEX", "PRESCOTT")
KERNELS = {"aarch64": ARM, "arm64": ARM, "x86_64": INTEL, "AMD64": INTEL}
"""Values of OPENBLAS_CORETYPE by `platform.machine()`."""

RUNS = 3
"""Runs, each with another kernel and seed of the perturbation."""

TESTS = (
    "tests/linalg",
    "tests/objectives",
    "tests/proofs",
    "tests/reductions",
    "tests/solvers",
    "tests/constrained",
    "tests/metric",
    "tests/kernel",
    "tests/manifold",
    "tests/completion",
    "tests/spectral",
    "tests/test_certificate.py",
    "tests/test_domains.py",
)

OTHER = ("test_sklearn", "test_inputs", "test_busy_machine", "test_memory", "test_pictures")
"""Files in these folders that check rules, memory or time instead of numbers."""

PROBE = """
import numpy.linalg, scipy.linalg, threadpoolctl
for library in (numpy, scipy):
    library.linalg.eigh(numpy.ones((100, 100)) @ numpy.ones((100, 100)))
found = threadpoolctl.threadpool_info()
print(*{i["architecture"].lower() for i in found if i["internal_api"] == "openblas"})
"""


def environment(kernel: str, threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return os.environ | dict.fromkeys(names, str(threads)) | {"OPENBLAS_CORETYPE": kernel}


def is_used(kernel: str) -> bool:
    """Whether NumPy and SciPy take this kernel here, and the processor can run it."""
    code = [sys.executable, "-c", PROBE]
    probe = subprocess.run(code, env=environment(kernel, 1), capture_output=True, text=True)
    return probe.returncode == 0 and probe.stdout.split() == [kernel.lower()]


def usable_kernels() -> list[str]:
    wanted = KERNELS.get(platform.machine(), ())
    found = [kernel for kernel in wanted if is_used(kernel)]
    if len(found) < RUNS:
        sys.exit(
            f"{RUNS} OpenBLAS kernels are needed; of {', '.join(wanted) or 'none known'} "
            f"this machine ({platform.machine()}) runs {', '.join(found) or 'none'}"
        )
    return found


def run(kernel: str, threads: int, seed: int, cores: int, tests: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(max(1, cores // threads))]
    command += ["--perturb", str(seed)]
    command += [f"--ignore-glob=*/{name}.py" for name in OTHER]
    print(f"\n=== {kernel}, threads {threads}, seed {seed}", flush=True)
    return subprocess.run([*command, *tests], cwd=ROOT, env=environment(kernel, threads)).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.portable")
    parser.add_argument("--cores", type=int, default=2, help="processes times threads of a run")
    parser.add_argument("tests", nargs="*", help="instead of all numerical tests")
    given = parser.parse_args()
    kernels, outcomes = usable_kernels(), []
    for seed, kernel in enumerate(kernels[:RUNS], start=1):
        threads = 2 - seed % 2
        begun = time.monotonic()
        code = run(kernel, threads, seed, given.cores, given.tests or list(TESTS))
        minutes = (time.monotonic() - begun) / 60
        outcomes.append((f"{kernel}, threads {threads}, seed {seed}: {minutes:.1f} min", code))
    print()
    for name, code in outcomes:
        print("failed " if code else "passed ", name)
    sys.exit(any(code for _, code in outcomes))


if __name__ == "__main__":
    main()
