"""Memory checks before a computation starts."""

from __future__ import annotations

import math
import os


def check_memory(need: float, what: str, remedy: str, there: float | None = None) -> None:
    """Raise ValueError if more than half of the memory, or of a device's free memory, is needed."""
    owner = "this machine" if there is None else "the device"
    limit = memory() / 2 if there is None else there
    there = memory() if there is None else there
    if need > limit:
        raise ValueError(
            f"{what}, which here need {need / 1e9:.1f} GB of the {there / 1e9:.1f} GB of {owner}: "
            f"{remedy}"
        )


def memory() -> float:
    """Physical memory in bytes; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def device_limit() -> float:
    """Bytes of a device allowed by GRAMIAN_DEVICE_MEMORY, unlimited if not set."""
    setting = os.environ.get("GRAMIAN_DEVICE_MEMORY")
    if setting is None:
        return math.inf
    try:
        limit = float(setting)
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise ValueError(f"GRAMIAN_DEVICE_MEMORY must be a number of bytes, got {setting!r}")
    return limit
