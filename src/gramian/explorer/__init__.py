"""A page to work on: points in a browser, links drawn with the mouse, clusters that follow.

It is served from this machine to this machine only, under an address that nobody can guess.
"""

from gramian.explorer.serve import explore
from gramian.explorer.server import Page
from gramian.explorer.session import Session

__all__ = ["Page", "Session", "explore"]
