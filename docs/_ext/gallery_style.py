"""The look of the gallery's pictures, set before each example."""

from __future__ import annotations

from typing import Any

STYLE = {
    "figure.dpi": 100,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.facecolor": "white",
}


def reset(gallery_conf: Any, fname: str) -> None:
    """Set the style; sphinx-gallery has put everything back before."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
