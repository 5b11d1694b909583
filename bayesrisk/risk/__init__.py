"""The auditor: averages over the adversary's answers, and judgements that need the truth.

This package may import laws, accounting and inference; they may not import it.

The public names are those of ``__init__.pyi``, loaded on first use.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
