"""The auditor: the adversary's answers averaged, and judged with the truth known.

May import everything to its left (laws, accounting, inference); nothing there may import it.

The public names are those of ``__init__.pyi``, loaded on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
