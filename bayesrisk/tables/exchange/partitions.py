"""A data set by place: a folder for each place, and an index that is small however many there are.

``part-CODE`` is an ordinary folder of tables or of microdata about one place, with a manifest of
its own.  ``_partitions.json`` names them all, with the digest of each one's manifest, which holds
those of its files: so a reader of one place can tell that it is whole, and reads nothing else.
``_places.parquet`` says how many places of the finest level lie in each part, and in each place of
the level above it.  ``part-above`` holds the tables of levels that are coarser than the parts.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk._files.parquet import read_table
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.tables.exchange.layout import MANIFEST

PARTITIONS = "_partitions.json"
INDEX = "_places.parquet"
ABOVE = "above"
_FORMAT = "bayesrisk partitions 1"
_KEYS = {"format", "kind", "level", "parts", "above", "places"}
_COLUMNS = pa.schema([("part", pa.string()), ("place", pa.string()), ("finest", pa.int64())])
#: The manifest of a part, by what it holds.
_MANIFESTS = {"tables": MANIFEST, "microdata": "_microdata.json"}


def part_name(code: str) -> str:
    """Return the name of the folder of a part."""
    return f"part-{code}"


@dataclass(frozen=True, eq=False)
class Partitions:
    """What the index of a data set by place says.

    Attributes
    ----------
    folder : Path
        The data set.
    kind : str
        ``tables`` or ``microdata``.
    level : str
        Level of the parts.
    digests : mapping of str to str
        By code of a part, sorted, the SHA-256 of its manifest.
    above : str or None
        That of the tables of coarser levels.
    part : ndarray of int64
        For each place of the index the position of its part.
    place : ndarray of str
        Its code: of the level above the finest, or of the part itself.
    finest : ndarray of int64
        Places of the finest level in it.
    digest : str
        SHA-256 of ``_partitions.json``, which all other digests follow from.
    """

    folder: Path
    kind: str
    level: str
    digests: Mapping[str, str]
    above: str | None
    part: IntArray
    place: NDArray[np.str_]
    finest: IntArray
    digest: str

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the parts, sorted."""
        return tuple(self.digests)

    @property
    def sizes(self) -> IntArray:
        """Places of the finest level in each part."""
        sizes = np.zeros(len(self.digests), dtype=np.int64)
        np.add.at(sizes, self.part, self.finest)
        return sizes

    def checked(self, code: str) -> Path:
        """Return the folder of a part whose manifest is the one that the index lists.

        Raises
        ------
        DataError
            If it is another one, or there is none.
        """
        known = self.above if code == ABOVE else self.digests.get(code)
        if known is None:
            raise DataError(f"{self.folder}: must have a part {shown(code)}")
        folder = self.folder / part_name(code)
        _files.check_digest(folder / _MANIFESTS[self.kind], known, PARTITIONS)
        return folder

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder is a data set by place."""
        return (folder / PARTITIONS).exists()

    @classmethod
    def read(cls, folder: Path, kind: str) -> "Partitions":
        """Return the index of a folder, everything but the parts checked.

        Raises
        ------
        DataError
            If it is damaged, or the data set is of another kind.
        """
        file = folder / PARTITIONS
        document = _files.read_document(file)
        if set(document) != _KEYS or document["format"] != _FORMAT:
            raise DataError(f"{file}: must have format {_FORMAT!r} and {', '.join(sorted(_KEYS))}")
        parts = document["parts"]
        plain = isinstance(parts, dict) and all(
            isinstance(text, str) for text in (document["places"], *parts, *parts.values())
        )
        if not plain or list(parts) != sorted(parts) or not all(map(_is_code, parts)):
            raise DataError(f"{file}: parts must be digests by codes of places, sorted")
        if document["kind"] != kind:
            raise DataError(f"{folder}: must hold {kind}, got {shown(document['kind'])}")
        part, place, finest = _read_index(folder / INDEX, document["places"], list(parts))
        return cls(
            folder,
            kind,
            str(document["level"]),
            parts,
            document["above"],
            part,
            place,
            finest,
            _files.digest(file),
        )


def _is_code(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _read_index(
    file: Path, digest: str, codes: list[str]
) -> tuple[IntArray, NDArray[np.str_], IntArray]:
    """Return part, place and size of every place of the index."""
    _files.check_digest(file, digest, PARTITIONS)
    table = read_table(file)
    if table.schema != _COLUMNS:
        raise DataError(f"{file}: columns must be {', '.join(_COLUMNS.names)}")
    names = np.asarray(table.column("part").to_pylist(), dtype=np.str_)
    part = np.searchsorted(np.asarray(codes, dtype=np.str_), names).astype(np.int64)
    if len(part) and (np.diff(part) < 0).any():
        raise DataError(f"{file}: parts must be sorted")
    place = np.asarray(table.column("place").to_pylist(), dtype=np.str_)
    return part, place, table.column("finest").to_numpy().astype(np.int64)


def index_rows(code: str, places: NDArray[np.str_], width: int, manifest: str) -> pa.Table:
    """Return what the index says of a part whose finest places are given, and its digest.

    Parameters
    ----------
    code : str
        The part.
    places : ndarray of str
        Its places of the finest level, sorted.
    width : int
        Digits of the places of the index.
    manifest : str
        SHA-256 of the manifest of the part.
    """
    above, counts = np.unique(places.astype(f"<U{width}"), return_counts=True)
    if not len(above):
        above, counts = np.array([code]), np.zeros(1, dtype=np.int64)
    rows = pa.table(
        [pa.array([code] * len(above)), pa.array(above.tolist()), pa.array(counts)],
        schema=_COLUMNS,
    )
    return rows.append_column("manifest", pa.array([manifest] * len(above), pa.string()))


def index_files(
    kind: str, level: str, rows: Iterable[pa.Table], above: str | None
) -> dict[str, bytes]:
    """Return the files of the index, from the rows of :func:`index_rows` of every part in order."""
    table = pa.concat_tables(rows)
    codes, manifests = table.column("part").to_pylist(), table.column("manifest").to_pylist()
    sink = pa.BufferOutputStream()
    places = table.select(_COLUMNS.names).replace_schema_metadata(None)
    pq.write_table(places, sink, compression="zstd", write_page_checksum=True)
    index: bytes = sink.getvalue().to_pybytes()
    document: dict[str, Any] = {
        "format": _FORMAT,
        "kind": kind,
        "level": level,
        "parts": dict(zip(codes, manifests, strict=True)),
        "above": above,
        "places": hashlib.sha256(index).hexdigest(),
    }
    return {INDEX: index, PARTITIONS: _files.sealed(document)}


def manifest_digest(folder: Path, kind: str) -> str:
    """Return the digest of the manifest of a part."""
    return _files.digest(folder / _MANIFESTS[kind])
