"""The command line: `gramian metric`, `embed`, `cluster`, `complete`, `eigen`, `solve` and more."""

import sys
from importlib.util import find_spec

NEEDS = "the command line needs click, rich and pandas: pip install 'gramian[cli]'"


def main() -> None:
    """Run the command line; the entry point `gramian`."""
    try:
        _run()
    except KeyboardInterrupt:  # while the first packages were imported
        sys.stderr.write("gramian: interrupted before it began\n")
        sys.exit(130)


def _run() -> None:
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.exit(f"gramian: {NEEDS} (missing: {', '.join(missing)})")
    from gramian.app.cli.app import run

    run()
