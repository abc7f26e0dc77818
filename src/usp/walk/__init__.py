"""The walk: which sitemap to fetch next, and the tree built of them. Nothing here does I/O or reads a clock."""

from usp.walk.walk import Walk
from usp.walk.website import KNOWN_PATHS, HomepageWalk

__all__ = ["KNOWN_PATHS", "HomepageWalk", "Walk"]
