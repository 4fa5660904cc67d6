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


def device_limit() -> float:
    """Bytes of a device that GRAMIAN_DEVICE_MEMORY leaves to this process, unlimited unless set."""
    told = os.environ.get("GRAMIAN_DEVICE_MEMORY")
    if told is None:
        return math.inf
    try:
        limit = float(told)
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise ValueError(f"GRAMIAN_DEVICE_MEMORY must be a number of bytes, got {told!r}")
    return limit
