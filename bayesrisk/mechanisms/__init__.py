"""Protections: from confidential records to a release.  Knows tables; knows no adversary.

The public names are those of ``__init__.pyi``, loaded on first use: a mechanism costs what it
imports only to those who use it.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
