"""A file of records, Parquet or CSV: its columns and metadata, read once, and its rows."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from bayesrisk._base.disk import parquet
from bayesrisk._base.disk.delimited import header_fields, open_text, text_frame, text_tables
from bayesrisk.exceptions import ArgumentError, DataError, quote

if TYPE_CHECKING:
    import pandas as pd

#: A number, but none that begins with a zero, which is a code.
_NUMBER = r"[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?"
#: A number whose thousands, or whose decimals, are set off by commas: which, nobody can tell.
_WITH_COMMAS = r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
_DECIMAL_COMMA = r"[+-]?(?:0|[1-9][0-9]{0,17}),[0-9]{1,18}"


class RecordFile:
    """A Parquet or CSV file, by its ending; for other endings nothing is known.

    Nothing is opened before it is needed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ending = path.suffix.lower()

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def _head(self) -> tuple[tuple[str, ...], Mapping[bytes, bytes]]:
        if self.ending == ".parquet":
            with parquet.opened(self.path) as (_, schema):
                return tuple(schema.names), schema.metadata or {}
        if self.ending != ".csv":
            return (), {}
        with open_text(self.path) as lines:
            return tuple(header_fields(lines.readline(), str(self.path))), {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, each there once."""
        return self._head[0]

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """Metadata of a Parquet file; a CSV file has none."""
        return self._head[1]

    def tables(self, rows: int, kinds: parquet.Kinds | None = None) -> Iterator[pa.Table]:
        """Yield the rows: of Parquet at most so many at a time, of CSV blocks of text."""
        if self.ending == ".parquet":
            yield from parquet.read_batches(self.path, rows, kinds)
            return
        with open_text(self.path) as lines:
            lines.readline()
            yield from text_tables(lines, list(self.columns))

    def frame(self, wanted: Callable[[str], bool] = lambda _: True) -> "pd.DataFrame":
        """Return the rows: of Parquet unchanged, of CSV the wanted columns as text."""
        if self.ending == ".parquet":
            frame: pd.DataFrame = parquet.read_table(self.path).to_pandas()
            return frame
        return text_frame(self.path, wanted)


def typed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame of text with numbers where a column holds nothing else."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_string_dtype(column.dtype):
            column = column.mask(column == "")
            values = column.dropna()
            thousands, decimals = map(values.str.fullmatch, (_WITH_COMMAS, _DECIMAL_COMMA))
            with_commas = thousands | decimals
            if with_commas.any() and (with_commas | values.str.fullmatch(_NUMBER)).all():
                rule = f"column {quote(str(name))}: must hold numbers without commas, got"
                if (only := values[decimals & ~thousands]).size:
                    first, advice = only.iloc[0], only.iloc[0].replace(",", ".")
                else:
                    first = values[thousands].iloc[0]
                    advice = f"{first.replace(',', '')}, or decimals with a dot"
                raise DataError(f"{rule} {quote(first)}: write {advice}")
            if len(values) and values.str.fullmatch(_NUMBER).all():
                column = pd.to_numeric(column)
        columns[name] = column
    return pd.DataFrame(columns)


def record_frame(file: RecordFile) -> "pd.DataFrame":
    """Return the rows of a CSV file as text, or those of a Parquet file unchanged."""
    if file.ending not in (".parquet", ".csv"):
        advice = ": save it as CSV UTF-8, with commas"
        raise ArgumentError("records", "must end in .parquet or .csv", got=str(file), advice=advice)
    names = file.columns
    if len(names) == 1 and file.ending == ".csv":
        other = next((sign for sign in (";", "\t", "|") if sign in names[0]), None)
        if other is not None:
            raise DataError(
                f"{file}: columns must be separated by commas, got {quote(other)} in the header "
                f"{quote(names[0])}: save records with commas, and decimals with a dot; of a "
                f"published table write `bayesrisk attack {file} -o OUT`"
            )
    return file.frame()
