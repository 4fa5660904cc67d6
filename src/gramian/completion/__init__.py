"""Matrix completion from some of the entries."""

from gramian.completion.implicit import ImplicitCompletion
from gramian.completion.mmmf import MMMF
from gramian.completion.nuclear_completion import NuclearCompletion
from gramian.completion.splits import leave_last_out, temporal_split

__all__ = [
    "MMMF",
    "ImplicitCompletion",
    "NuclearCompletion",
    "leave_last_out",
    "temporal_split",
]
