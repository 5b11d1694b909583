"""Forms of files that agencies publish, by name: what reads each of them, a piece at a time.

A reader is a function of a path and of keyword parameters that returns records, tables of the
``workload`` that is asked for, or data frames, in pieces or as one frame.
"""

from collections.abc import Iterable

from bayesrisk._base.plugins import Registry

READERS: Registry[Iterable[object]] = Registry(
    "reader", builtin={}, protocol=Iterable, needs="pieces of a file"
)
