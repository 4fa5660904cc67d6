"""Warnings that name the line of the user's code, whatever the depth of the call."""

from __future__ import annotations

import sys
import warnings

INSIDE = ("gramian", "contextlib", "functools")
"""Packages whose frames are skipped: the library and its wrappers."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line outside the library that led to this call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
