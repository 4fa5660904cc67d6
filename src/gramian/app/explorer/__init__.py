"""Pages to work on: links drawn, samples named or items rated with the mouse, and what follows.

It is served from this machine to this machine only, under an address that nobody can guess.
"""

from gramian.app.explorer.naming import MetricSession
from gramian.app.explorer.rating import RatingSession
from gramian.app.explorer.serve import explore
from gramian.app.explorer.server import Page
from gramian.app.explorer.session import Session

__all__ = ["MetricSession", "Page", "RatingSession", "Session", "explore"]
