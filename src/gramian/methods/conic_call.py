"""One call of Clarabel or SCS from plain arrays: in this process, or in one that can be killed.

Both check their time limit between iterations only, and one iteration can take minutes. With a
time limit, the call is made by this file run as a program, which imports nothing of the package: it
reads the call from standard input and writes the answer to standard output.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any, NamedTuple

GRACE_SECONDS = 0.5
"""Seconds after its time limit in which a call may still answer (start of the process)."""


class Answer(NamedTuple):
    """The solution of a backend, and whether it reports an optimum or a ray."""

    x: Any
    iterations: int
    solved: bool
    unbounded: bool
    z: Any = None
    """The dual variables of the rows."""
    infeasible: bool = False


def call(name: str, data: dict[str, Any], seconds: float) -> Answer | None:
    """The answer of the named solver; None if the time was up before."""
    if seconds == float("inf"):
        return _CALLS[name](import_module(name), data, seconds)
    found = _apart((name, data, max(seconds, 0.0)), max(seconds, 0.0) + GRACE_SECONDS)
    return None if found is None else Answer(*found)


def _apart(request: Any, seconds: float) -> Any:
    """The answer of the program to a request; None if it takes longer than `seconds`."""
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-P", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        answer, complaint = process.communicate(pickle.dumps(request), timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    if process.returncode != 0:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"{request[0]} failed: {' '.join(last) or 'no message'}")
    return pickle.loads(answer)  # written by our own process


def _clarabel(clarabel: Any, data: dict[str, Any], seconds: float) -> Answer:
    cones = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "second-order": clarabel.SecondOrderConeT,
        "semidefinite": clarabel.PSDTriangleConeT,
    }
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.time_limit = seconds
    accuracy = data["accuracy"]
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = accuracy
    options.chordal_decomposition_enable = data["decompose"]
    blocks = [cones[kind](size) for kind, size in data["cones"]]
    arrays = (data["P"], data["q"], data["A"], data["b"])
    try:
        found = clarabel.DefaultSolver(*arrays, blocks, options).solve()
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust: no Exception, not importable
            raise
        return Answer([float("nan")], 0, False, False)
    status = clarabel.SolverStatus
    return Answer(
        [float(number) for number in found.x],
        int(found.iterations),
        found.status == status.Solved,
        found.status in (status.DualInfeasible, status.AlmostDualInfeasible),
        [float(number) for number in found.z],
        found.status in (status.PrimalInfeasible, status.AlmostPrimalInfeasible),
    )


def _scs(scs: Any, data: dict[str, Any], seconds: float) -> Answer:
    found = scs.SCS(
        {"P": data["P"], "A": data["A"], "b": data["b"], "c": data["q"]},
        data["cones"],
        verbose=False,
        eps_abs=data["accuracy"],
        eps_rel=data["accuracy"],
        adaptive_scale=False,  # the data are scaled, and late changes undo progress
        time_limit_secs=0.0 if seconds == float("inf") else max(seconds, 1e-3),
    ).solve()
    info = found["info"]
    status = info["status_val"]
    return Answer(found["x"], int(info["iter"]), status == scs.SOLVED, status == scs.UNBOUNDED)


_CALLS = {"clarabel": _clarabel, "scs": _scs}


def main() -> None:
    """Answer the call on standard input."""
    name, data, seconds = pickle.load(sys.stdin.buffer)
    found = _CALLS[name](import_module(name), data, seconds)
    sys.stdout.buffer.write(pickle.dumps(tuple(found)))


if __name__ == "__main__":
    main()
