"""Protections, from confidential records to a release; they know no adversary.

The public names are those of ``__init__.pyi``. They are loaded on first use, so only users of a
mechanism wait for its imports.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
