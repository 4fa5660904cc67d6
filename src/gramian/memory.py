"""Refuse what this machine has no memory for, with figures."""

from __future__ import annotations

import math
import os


def check_memory(need: float, what: str, remedy: str, there: float | None = None) -> None:
    """Refuse what would take more than half of the memory, or all that a device has free."""
    owner = "this machine" if there is None else "the device"
    limit = memory() / 2 if there is None else there
    there = memory() if there is None else there
    if need > limit:
        raise ValueError(
            f"{what}, which here need {need / 1e9:.1f} GB of the {there / 1e9:.1f} GB of {owner}: "
            f"{remedy}"
        )


def memory() -> float:
    """Bytes of this machine's memory; unlimited where it cannot be told."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf
