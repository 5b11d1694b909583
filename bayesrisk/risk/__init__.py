"""The auditor: averages over the adversary's answers, and judgements that need the truth.

May import everything to its left (laws, accounting, inference); nothing there may import it.

The public names are those of ``__init__.pyi``, loaded on first use.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
