"""The folder of a data set by place while it is made, and once it is whole.

A shard is a part: its folder is written by whoever computes it, and then a small file of what the
index says of it, which stands for the shard.  The index itself is written when all are there.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from bayesrisk import _files
from bayesrisk._types import TextArray
from bayesrisk.exceptions import PartFileError
from bayesrisk.experiments.runs.config import RunConfig
from bayesrisk.experiments.runs.folder import ADVICE, PartFolder
from bayesrisk.release import Release
from bayesrisk.tables import Microdata, PublishedTables
from bayesrisk.tables.exchange.partitions import (
    ABOVE,
    index_files,
    index_rows,
    manifest_digest,
    part_name,
)


class PlacePart(NamedTuple):
    """A part as it is computed: its code, what it holds, and what the index needs to know.

    ``width`` is the number of digits of the places that the index counts in.
    """

    code: str
    content: PublishedTables | Release | Microdata
    finest: TextArray
    width: int


class PlaceFolder(PartFolder):
    """The folder of a run that makes a data set by place; further kinds are files of each part."""

    what: ClassVar[str] = "data set by place"
    #: Readers of Parquet folders pass over names that start with an underscore.
    parts: ClassVar[str] = "_parts"
    settings: ClassVar[str] = "_config.json"
    listing: ClassVar[str] = "_run.json"
    aside: ClassVar[str] = "_failed"

    def __init__(self, path: str | Path, holds: str, *others: str) -> None:
        super().__init__(path)
        self.holds, self.kinds = holds, (*others, "index")

    def write_parts(self, config: RunConfig, shard: int, tables: Mapping[str, Any]) -> None:
        """Write the folder of a part, under ``part`` a :class:`PlacePart`, and its small files."""
        part: PlacePart = tables["part"]
        folder = self.path / part_name(part.code)
        part.content.write(folder, replace=True)
        digest = manifest_digest(folder, self.holds)
        rows = index_rows(part.code, np.sort(part.finest), part.width, digest)
        rows = rows.append_column("content", pa.array([_files.digest_folder(folder)] * len(rows)))
        super().write_parts(config, shard, {**tables, "index": rows})

    def _check_whole(self, shard: int) -> None:
        """Refuse a part whose small files or whose folder are not as they were written."""
        super()._check_whole(shard)
        about = self.read_part(shard, "index").slice(0, 1).to_pylist()[0]
        folder = self.path / part_name(about["part"])
        if _files.digest_folder(folder) != about["content"]:
            raise PartFileError(f"{folder}: is not as it was written; {ADVICE}")

    def index(
        self, config: RunConfig, level: str, above: PublishedTables | Release | None
    ) -> dict[str, bytes]:
        """Return the files of the index of a run whose parts are all there."""
        digest = None
        if above is not None:
            folder = self.path / part_name(ABOVE)
            above.write(folder, replace=True)
            digest = manifest_digest(folder, self.holds)
        rows = (self.read_part(shard, "index") for shard in range(config.shards))
        return index_files(self.holds, level, rows, digest)
