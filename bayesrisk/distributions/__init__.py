"""Noise distributions on the integers. May import ``_base`` and ``exceptions``; knows no risk.

The public names are those of ``__init__.pyi``, loaded on first use.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
