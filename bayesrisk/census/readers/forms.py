"""Forms of agency files by name, with the reader of each.

A reader is a function of a path and of keyword parameters. It returns records, tables of the
requested ``workload``, or data frames, in pieces or as one frame.
"""

from collections.abc import Iterable

from bayesrisk._base.plugins import Registry

READERS: Registry[Iterable[object]] = Registry(
    "reader", builtin={}, protocol=Iterable, needs="pieces of a file"
)
