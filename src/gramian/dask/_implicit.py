"""ImplicitCompletion of what rows did, stored on a cluster."""

from __future__ import annotations

from gramian import completion as home
from gramian.dask._ratings import Rated
from gramian.dask._recommend import OfRatings


class ImplicitCompletion(OfRatings, home.ImplicitCompletion):
    """`gramian.completion.ImplicitCompletion` of a Dask frame, Dask arrays or files.

    They are read and checked by the workers and completed on the driver: each half-sweep needs the
    Gram matrix of all rows of the other half, and held-out lists need all columns.
    """

    def _at_home(self, rated: Rated) -> bool:
        return True
