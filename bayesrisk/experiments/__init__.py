"""Long studies that are computed in shards, can be resumed, and write reports.

May import everything but ``cli``; writes only inside the given folder.

The public names are those of ``__init__.pyi``, loaded on first use: a worker imports its own study
and no other.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
