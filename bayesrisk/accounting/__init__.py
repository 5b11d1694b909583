"""Privacy-loss accounting. May import ``distributions``; knows no adversary and no risk."""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
