"""Noise laws on the integers.  May import ``_validation`` and ``exceptions``; knows no risk.

The public names are those of ``__init__.pyi``, loaded on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
