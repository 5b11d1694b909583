"""Files that users hold, read in pieces: microdata, published tables, noisy measurements."""

from bayesrisk._lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
