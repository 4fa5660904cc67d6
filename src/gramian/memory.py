"""Refuse what this machine has no memory for, with figures."""

from __future__ import annotations

import math
import os


def check_memory(need: float, what: str, remedy: str) -> None:
    """Refuse what would take more than half of the memory, with the numbers."""
    if need > memory() / 2:
        raise ValueError(
            f"{what}, which here need {need / 1e9:.1f} GB of the {memory() / 1e9:.1f} GB of this "
            f"machine: {remedy}"
        )


def memory() -> float:
    """Bytes of this machine's memory; unlimited where it cannot be told."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf
