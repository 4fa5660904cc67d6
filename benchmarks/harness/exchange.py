"""Arguments and results of peers as files: arrays in npz, everything else in JSON.

Imports only numpy and the standard library: the environment of a peer has little more.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.measured import end_with_parent, measured_call


def write(folder: Path, stem: str, values: Mapping[str, Any]) -> None:
    """Write ``values`` as ``stem.json`` and ``stem.npz``."""
    arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
    rest = {key: value for key, value in values.items() if key not in arrays}
    (folder / f"{stem}.json").write_text(json.dumps(rest))
    np.savez(folder / f"{stem}.npz", **arrays)


def read(folder: Path, stem: str) -> dict[str, Any]:
    """Read back what ``write`` wrote."""
    values = json.loads((folder / f"{stem}.json").read_text())
    with np.load(folder / f"{stem}.npz") as arrays:
        values.update({key: arrays[key] for key in arrays})
    return values


def timed(call: Callable[[], Any]) -> float:
    """The seconds of a call without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def serve(fn: Callable[..., Mapping[str, Any]]) -> None:
    """Call ``fn`` with the arguments in the folder ``argv[1]``; write its answer and cost there.

    ``fn`` returns a mapping of arrays and plain values.
    """
    end_with_parent()
    folder = Path(sys.argv[1])
    call = measured_call(fn, read(folder, "request"))
    write(folder, "answer", call.value)
    write(folder, "cost", {"seconds": call.seconds, "peak_mb": call.peak_mb})
