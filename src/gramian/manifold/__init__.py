"""Manifold learning as scikit-learn transformers."""

from gramian.manifold.colored_mvu import ColoredMVU
from gramian.manifold.mvu import MVU
from gramian.manifold.neighbor_layout import NeighborLayout
from gramian.manifold.reg_mvu import RegMVU

__all__ = ["MVU", "ColoredMVU", "NeighborLayout", "RegMVU"]
