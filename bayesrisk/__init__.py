"""Bayesian disclosure risk of published statistics.

What does an adversary with given prior beliefs learn about a person from published statistics? How
much of it is due to that person's own record?

The public names are those of ``__init__.pyi``. They are loaded on first use, so importing the
package is cheap.
"""

from bayesrisk._base.lazy import attach as _attach
from bayesrisk._base.old_names import find_old_names as _find_old_names

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
_find_old_names()
