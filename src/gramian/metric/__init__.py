"""Metric learners, as scikit-learn transformers."""

from gramian.metric.kta import KTA
from gramian.metric.linear_separation import LinearSeparation

__all__ = ["KTA", "LinearSeparation"]
