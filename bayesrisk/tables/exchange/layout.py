"""What the folder of published tables is made of: its files, their columns, what they state."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk.tables.workload import Workload

MANIFEST = "_manifest.json"
GEOGRAPHIES = "_geographies.parquet"
FORMAT = "bayesrisk tables 1"
ROWS = pa.schema(
    [
        ("level", pa.string()),
        ("geoid", pa.string()),
        ("table", pa.string()),
        ("cell", pa.string()),
        ("count", pa.int64()),
    ]
)
PLACES = pa.schema([("level", pa.string()), ("geoid", pa.string())])

Key = tuple[str, str]


class Content(NamedTuple):
    """What published tables state: counts by key, which are suppressed, and laws of the release."""

    workload: Workload
    geoids: Mapping[str, NDArray[Any]]
    counts: Mapping[Key, Any]
    hidden: Mapping[Key, Any]
    signed: bool
    laws: Mapping[Key, str]


def is_part(name: str) -> bool:
    """Return whether a file of this name holds rows."""
    return name.startswith("part-") and name.endswith(".parquet")
