"""Ways from one schema of records to another."""

from itertools import combinations

import numpy as np
import pyarrow as pa

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

#: Masks of races in the order of the redistricting file: one race, then two, three, ...
CENRACE = np.array([sum(1 << i for i in c) for k in range(1, 7) for c in combinations(range(6), k)])
_ADULT = 18


def recoded(records: Records, target: Schema) -> Records:
    """Return records in another schema; columns that are not attributes are kept."""
    ways = {
        ("sf1-person", "pl94"): _redistricting,
        ("household-dhc", "household-occupancy"): _occupancy,
        ("household-dhc", "pl94-units"): _units,
    }
    source = records.schema
    if (source.name, target.name) not in ways or source.geography != target.geography:
        raise ArgumentError(
            f"records of {source.name!r} ({source.geography.name}) cannot be counted as "
            f"{target.name!r} ({target.geography.name})"
        )
    records, codes = ways[source.name, target.name](records)
    kept = records.table.drop_columns(list(source.names))
    kept = kept.drop_columns([n for n in target.names if n in kept.column_names])
    for name in target.names:
        kept = kept.append_column(name, pa.array(codes[name]))
    return Records(target, kept)


def _redistricting(records: Records) -> tuple[Records, dict[str, IntArray]]:
    rank = np.empty(64, dtype=np.int64)
    rank[CENRACE] = np.arange(63)
    return records, {
        "hhgq": _column(records, "gq", 0, 7),
        "votingage": (records.codes("age") >= _ADULT).astype(np.int64),
        "hispanic": records.codes("hisp"),
        "cenrace": rank[records.codes("race")],
    }


def _occupancy(records: Records) -> tuple[Records, dict[str, IntArray]]:
    occupied = records.take(records.codes("vacancy") == 0)
    return occupied, {
        "size": occupied.codes("size"),
        "race_ethnicity": occupied.codes("race") - 1 + 7 * (occupied.codes("hispanic") == 2),
        "children": np.minimum(_column(occupied, "children", 0, None), 6),
        "bedrooms": _column(occupied, "bedrooms", 0, 3),
        "subsidised": _column(occupied, "subsidised", 0, 1),
    }


def _units(records: Records) -> tuple[Records, dict[str, IntArray]]:
    return records, {"h1": (records.codes("vacancy") == 0).astype(np.int64)}


def _column(records: Records, name: str, low: int, high: int | None) -> IntArray:
    """Return a further column as whole numbers within bounds."""
    if name not in records.columns:
        raise DataError(f"records: must have a column {name!r} to be recoded, got none")
    column = records.table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"records: column {name!r}: must be whole numbers, got {column.type}")
    values: IntArray = column.to_numpy().astype(np.int64)
    bad = (values < low) | (False if high is None else values > high)
    if bad.any():
        row = int(bad.argmax())
        bounds = f">= {low}" if high is None else f"in [{low}, {high}]"
        raise DataError(
            f"records: row {row + 1}, column {name!r}: must be {bounds}, got {values[row]}"
        )
    return values
