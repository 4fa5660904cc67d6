"""Interactive pages to draw links, label samples or rate items; the model is refitted each time.

Pages are served on the local machine only, at an address with a secret token.
"""

from gramian.app.explorer.naming import MetricSession
from gramian.app.explorer.rating import RatingSession
from gramian.app.explorer.serve import explore
from gramian.app.explorer.server import Page
from gramian.app.explorer.session import Session

__all__ = ["MetricSession", "Page", "RatingSession", "Session", "explore"]
