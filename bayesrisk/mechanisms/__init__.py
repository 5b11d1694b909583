"""Protections, from confidential records to a release; they know no adversary.

The public names are those of ``__init__.pyi``, loaded on first use: a mechanism costs what it
imports only to those who use it.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
