"""The wing for census bureaus: their files, made-up nations, occupancy, studies of releases.

The rest of the package imports nothing from here; this wing uses it like any other package. The
public names are those of ``__init__.pyi``.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
