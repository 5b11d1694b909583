"""Columns that an intruder may know, as small numbers, and how many records share them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables import Records

Source = pd.DataFrame | Records
_DENSE = 2**22  # combinations that are counted in a table of all of them
_LARGEST = 2**62


def key_names(keys: Iterable[str], name: str) -> list[str]:
    """Return names of columns, at least one and each once."""
    found = list(check.texts([keys] if isinstance(keys, str) else keys, name))
    if not found:
        raise ArgumentError(f"{name} must name a column, got none")
    if len(set(found)) < len(found):
        raise ArgumentError(f"{name} must name every column once, got {', '.join(found)}")
    return found


def coded(sources: Mapping[str, Source], names: Sequence[str], role: str) -> list[IntArray]:
    """Return for each column the code of every record, of all sources one after the other.

    Equal values have one code; codes count from 0.  Messages call the sources by their names, and
    the columns by their ``role``, the argument that they come from.
    """
    columns = [
        [_column(source, name, who, role) for who, source in sources.items()] for name in names
    ]
    return [
        pd.factorize(pd.concat(parts, ignore_index=True), use_na_sentinel=False)[0].astype(np.int64)
        for parts in columns
    ]


def _column(source: Source, name: str, who: str, role: str) -> pd.Series:
    if isinstance(source, Records):
        place = source.schema.geography
        if name in place.levels and name not in source.columns:
            return pd.Series(place.ancestors(source.geoids, name), dtype=object)
        if name not in source.columns:
            known = ", ".join(dict.fromkeys((*source.columns, *place.levels)))
            raise DataError(
                f"{who}: must have a column {shown(name)} (named by {role}), got {known}"
            )
        held: pd.Series = source.table.column(name).to_pandas()
        return held
    if (times := source.columns.tolist().count(name)) != 1:
        raise DataError(
            f"{who}: must have the column {shown(name)} (named by {role}) once, got {times}"
        )
    column: pd.Series = source[name]
    try:
        column.iloc[:0].map(hash)
        pd.factorize(column)
    except TypeError as error:
        raise DataError(f"{who}: column {name!r}: must hold single values: {error}") from error
    return column


def classes(codes: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the class of every record by several columns, and how many records each class has.

    Linear in the records where there are few combinations, else by sorting.
    """
    flat = np.zeros(len(codes[0]), dtype=np.int64)
    span = 1
    for column in codes:
        size = int(column.max(initial=0)) + 1
        if span * size >= _LARGEST:  # as many numbers as there are classes so far
            flat = np.unique(flat, return_inverse=True)[1].reshape(-1).astype(np.int64)
            span = int(flat.max(initial=0)) + 1
        flat = flat * size + column
        span *= size
    if span > max(_DENSE, 4 * len(flat)):
        flat = np.unique(flat, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return flat, np.bincount(flat, minlength=1)
