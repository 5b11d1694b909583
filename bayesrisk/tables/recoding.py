"""Ways from one schema of records to another: persons and households as other tables count them."""

from itertools import combinations

import numpy as np
import pyarrow as pa

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

#: Masks of races in the order of the redistricting file: one race, then two, three, ...
CENRACE = np.array([sum(1 << i for i in c) for k in range(1, 7) for c in combinations(range(6), k)])
#: The position there of each bit mask.
CENRACE_OF_MASK = np.append(-1, np.argsort(CENRACE))
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
    table = records.table.drop_columns(list(source.names))
    table = table.drop_columns([n for n in target.names if n in table.column_names])
    for name in target.names:
        table = table.append_column(name, pa.array(codes[name]))
    return Records(target, table)


def _redistricting(records: Records) -> tuple[Records, dict[str, IntArray]]:
    return records, {
        "hhgq": whole_column(records, "gq", 7),
        "votingage": (records.codes("age") >= _ADULT).astype(np.int64),
        "hispanic": records.codes("hisp"),
        "cenrace": CENRACE_OF_MASK[records.codes("race")],
    }


def _occupancy(records: Records) -> tuple[Records, dict[str, IntArray]]:
    occupied = records.take(records.codes("vacancy") == 0)
    return occupied, {
        "size": occupied.codes("size"),
        "race_ethnicity": occupied.codes("race") - 1 + 7 * (occupied.codes("hispanic") == 2),
        "children": np.minimum(whole_column(occupied, "children", None), 6),
        "bedrooms": whole_column(occupied, "bedrooms", 3),
        "subsidised": whole_column(occupied, "subsidised", 1),
    }


def _units(records: Records) -> tuple[Records, dict[str, IntArray]]:
    return records, {"h1": (records.codes("vacancy") == 0).astype(np.int64)}


def whole_column(records: Records, name: str, high: int | None) -> IntArray:
    """Return a column that is no attribute: whole numbers from 0, to ``high`` if there is one."""
    if name not in records.columns:
        raise DataError(f"records: must have a column {name!r}, got none")
    column = records.table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"records: column {name!r}: must be whole numbers, got {column.type}")
    values: IntArray = column.to_numpy().astype(np.int64)
    bad = (values < 0) | (False if high is None else values > high)
    bounds = "be >= 0" if high is None else f"be in [0, {high}]"
    check.refuse_row(bad, values, "records", name, bounds)
    return values
