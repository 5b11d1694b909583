"""Columns that an intruder may know, as small numbers, and how many records share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.tables import Records

Source = pd.DataFrame | Records
DENSE = 2**22  # combinations that are counted in a table of all of them
_LARGEST = 2**62


def checked_source(source: Source, label: str) -> Source:
    """Return records or a data frame, after checking what it is."""
    if not isinstance(source, (pd.DataFrame, Records)):
        raise ArgumentTypeError(
            label, "must be Records or a DataFrame", shown=type(source).__name__
        )
    return source


def key_names(keys: Iterable[str]) -> list[str]:
    """Return names of columns, at least one and each once."""
    names = list(check.texts([keys] if isinstance(keys, str) else keys, "keys"))
    if not names:
        raise ArgumentError("keys", "must name a column", shown="none")
    if len(set(names)) < len(names):
        raise ArgumentError("keys", "must name every column once", shown=", ".join(names))
    return names


def coded(sources: Mapping[str, Source], names: Sequence[str], role: str) -> list[IntArray]:
    """Return for each column the code of every record, of all sources one after the other.

    Equal values have one code; codes count from 0.  Messages call the sources by their names, and
    the columns by their ``role``, the argument that they come from.
    """
    columns = [
        [_column(source, name, label, role) for label, source in sources.items()] for name in names
    ]
    return [
        pd.factorize(pd.concat(parts, ignore_index=True), use_na_sentinel=False)[0].astype(np.int64)
        for parts in columns
    ]


def _column(source: Source, name: str, label: str, role: str) -> pd.Series:
    if isinstance(source, Records):
        place = source.schema.geography
        if name in place.levels and name not in source.columns:
            return pd.Series(place.ancestors(source.geoids, name), dtype=object)
        if name not in source.columns:
            columns = ", ".join(dict.fromkeys((*source.columns, *place.levels)))
            raise DataError(
                f"{label}: must have a column {quote(name)} (named by {role}), got {columns}"
            )
        values: pd.Series = source.table.column(name).to_pandas()
        return values
    if (times := source.columns.tolist().count(name)) != 1:
        raise DataError(
            f"{label}: must have the column {quote(name)} (named by {role}) once, got {times}"
        )
    column: pd.Series = source[name]
    try:
        column.iloc[:0].map(hash)
        pd.factorize(column)
    except TypeError as error:
        raise DataError(f"{label}: column {name!r}: must hold single values: {error}") from error
    return column


def renumbered(codes: IntArray) -> IntArray:
    """Return codes from 0 on without gaps."""
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)


def classes(codes: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the class of every record by several columns, and how many records each class has.

    Linear in the records where there are few combinations, else by sorting.
    """
    flat = np.zeros(len(codes[0]), dtype=np.int64)
    span = 1
    for column in codes:
        size = int(column.max(initial=0)) + 1
        if span * size >= _LARGEST:  # as many numbers as there are classes so far
            flat = renumbered(flat)
            span = int(flat.max(initial=0)) + 1
        flat = flat * size + column
        span *= size
    if span > max(DENSE, 4 * len(flat)):
        flat = renumbered(flat)
    return flat, np.bincount(flat, minlength=1)
