"""``python -m benchmarks list | run NAME``."""

import sys

from benchmarks.harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
