"""The command line: `gramian metric`, `embed`, `cluster`, `complete`, `eigen`, `solve` and more."""

import sys

NEEDS = "the command line needs click, rich and pandas: pip install 'gramian[cli]'"


def main() -> None:
    """Run the command line; the entry point `gramian`."""
    try:
        from gramian.cli.app import run
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("click", "rich"):
            raise
        sys.exit(f"gramian: {NEEDS} (missing: {missing.name})")
    run()
