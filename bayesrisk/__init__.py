"""Bayesian disclosure risk of published statistics.

Given what was published, and what an adversary already believed: what does the adversary now
believe about a person, and how much of that is due to that person's own record?

The public names are those of ``__init__.pyi``.  They are loaded when they are first used, so that
importing the package is cheap.
"""

from bayesrisk._base.lazy import attach as _attach
from bayesrisk._base.old_names import find_old_names as _find_old_names

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
_find_old_names()
