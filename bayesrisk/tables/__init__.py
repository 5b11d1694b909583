"""Schemas, records, workloads and published tables.  Knows no mechanism, no adversary, no risk.

Code of the adversary may import schemas, workloads and published tables, but never records.
"""

from bayesrisk._base.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
