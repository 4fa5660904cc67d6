"""Metric learners, as scikit-learn transformers."""

from gramian.metric.auto_metric import AutoMetric
from gramian.metric.class_collapse import ClassCollapse
from gramian.metric.classifier import MetricClassifier
from gramian.metric.dml_eig import DMLEig
from gramian.metric.kta import KTA
from gramian.metric.linear_separation import LinearSeparation
from gramian.metric.lmnn import LMNN
from gramian.metric.lmnn_eig import LMNNEig
from gramian.metric.regressor import MetricRegressor
from gramian.metric.triplet_metric import TripletMetric

__all__ = [
    "KTA",
    "LMNN",
    "AutoMetric",
    "ClassCollapse",
    "DMLEig",
    "LMNNEig",
    "LinearSeparation",
    "MetricClassifier",
    "MetricRegressor",
    "TripletMetric",
]
