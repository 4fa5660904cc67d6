"""The process of ``timing.in_child``: ``python -m benchmarks.harness._child FOLDER``."""

import importlib
import pickle
import sys
from pathlib import Path

from benchmarks.harness.measured import end_with_parent, measured_call
from benchmarks.harness.process import ChildResult


def main(folder: Path) -> None:
    """Answer the request in ``folder``; an exception ends the process and is read from its log."""
    end_with_parent()
    fn_path, kwargs = pickle.loads((folder / "request.pkl").read_bytes())
    module, function = fn_path.split(":")
    fn = getattr(importlib.import_module(module), function)
    call = measured_call(fn, kwargs)
    answer = ChildResult(call.value, call.seconds, call.peak_mb)
    (folder / "answer.pkl").write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
