"""The geographic header of a state's summary files of 2020: which record is which place.

Fields between ``|`` in the order of the Bureau's layout; those after BLOCK are not read.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk._files.text import MAX_COLUMNS
from bayesrisk.exceptions import DataError
from bayesrisk.readers.summary_files._sf1_geography import PARTS, Header, numbered
from bayesrisk.readers.text.columns import Piece, characters, csv_pieces
from bayesrisk.readers.text.places import check_state
from bayesrisk.readers.text.source import Source, first_lines

_NAMES = (
    "FILEID STUSAB SUMLEV GEOVAR GEOCOMP CHARITER CIFSN LOGRECNO GEOID GEOCODE REGION DIVISION "
    "STATE STATENS COUNTY COUNTYCC COUNTYNS COUSUB COUSUBCC COUSUBNS SUBMCD SUBMCDCC SUBMCDNS "
    "ESTATE ESTATECC ESTATENS CONCIT CONCITCC CONCITNS PLACE PLACECC PLACENS TRACT BLKGRP BLOCK"
)
#: The first columns, in their order, of 97.
FIELDS = tuple(_NAMES.split())
COLUMNS = 97
_CHUNK = 2**15
_WIDTHS = {"STATE": 2, "COUNTY": 3, "TRACT": 6, "BLKGRP": 1, "BLOCK": 4}
_WHOLE = "00"  # geographic component and variant: the whole place, not a part of it


def read_header_2020(
    source: Source, levels: tuple[str, ...], state: str | None, summary: Mapping[str, str]
) -> Header:
    """Return the records of a geographic header; each number and each place once."""
    _, line = first_lines(source, None)
    held = line.count(b"|") + 1
    if not len(FIELDS) <= held <= MAX_COLUMNS:
        raise DataError(
            f"{source.name}: must have {len(FIELDS)} to {MAX_COLUMNS} fields between '|', got "
            f"{held}"
        )
    names = [*FIELDS, *(str(i) for i in range(len(FIELDS) + 1, held + 1))]
    wanted = ["SUMLEV", "GEOVAR", "GEOCOMP", "LOGRECNO", *_WIDTHS]
    records, found, codes = [], [], []
    for piece in csv_pieces(
        source, names, wanted=wanted, whole=["LOGRECNO"], chunk=_CHUNK, header=False,
        delimiter="|", quotes=False,
    ):  # fmt: skip
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        level = _level_of(piece, levels, summary)
        code = np.full(len(piece), -1, dtype=np.int64)
        for place, name in enumerate(levels):
            rows = np.flatnonzero(level == place)
            code[rows] = _codes(piece.take(rows), name, state)
        if record.size:
            records.append(record)
            found.append(level)
            codes.append(code)
    return numbered(source.name, levels, summary, records, found, codes, "row")


def _level_of(
    piece: Piece, levels: tuple[str, ...], summary: Mapping[str, str]
) -> NDArray[np.int8]:
    whole = pc.and_(
        pc.equal(piece.table.column("GEOVAR"), _WHOLE),
        pc.equal(piece.table.column("GEOCOMP"), _WHOLE),
    ).to_numpy()
    found = np.full(len(piece), -1, dtype=np.int8)
    for place, level in enumerate(levels):
        here = pc.equal(piece.table.column("SUMLEV"), summary[level]).to_numpy()
        found[here & whole] = place
    return found


def _codes(chosen: Piece, level: str, state: str | None) -> NDArray[np.int64]:
    """Return the codes of places of one level as numbers."""
    code = np.zeros(len(chosen), dtype=np.int64)
    fields: dict[str, NDArray[np.uint8]] = {}
    wanted = (*PARTS[level], "BLKGRP") if level == "block" else PARTS[level]
    for name in wanted:
        field = characters(chosen.digits(name, _WIDTHS[name]), _WIDTHS[name])
        if field is None:
            raise chosen.fail(name, 0, f"{_WIDTHS[name]} digits")
        fields[name] = field
    if "STATE" in fields:
        check_state(chosen, "STATE", fields["STATE"], state)
    for name in PARTS[level]:
        for place in range(fields[name].shape[1]):
            code = code * 10 + (fields[name][:, place] - np.uint8(48))
    if level == "block":
        same = fields["BLKGRP"][:, 0] == fields["BLOCK"][:, 0]
        chosen.check("BLKGRP", same, "the first digit of BLOCK")
    return code
