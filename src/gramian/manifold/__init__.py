"""Unfolding manifolds, as scikit-learn transformers."""

from gramian.manifold.colored_mvu import ColoredMVU
from gramian.manifold.mvu import MVU
from gramian.manifold.reg_mvu import RegMVU

__all__ = ["MVU", "ColoredMVU", "RegMVU"]
