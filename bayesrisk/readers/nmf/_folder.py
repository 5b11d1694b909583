"""Folders of a noisy measurement file, and units that occur twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import named, shown
from bayesrisk.exceptions import DataError
from bayesrisk.readers.geocodes import SPINE_WIDTHS, first_fault
from bayesrisk.readers.nmf._rows import Rows, batches, opened

#: Levels of the redistricting data and of the later demographic ones, coarse to fine.
_LEVELS = (
    "US",
    "State",
    "County",
    "Prim",
    "Tract_Subset_Group",
    "Tract_Subset",
    "Tract",
    "Block_Group",
    "Block",
)
_SUFFIX = 16  # characters of a block's geocode that are published geography


def levels_of(folder: Path) -> tuple[str, ...]:
    """Return the levels that a product's folder has, coarse to fine."""
    with named(str(folder)):
        if not folder.is_dir():
            raise DataError(f"{folder}: must be a folder of noisy measurements, but is none")
    present = {p.name.removesuffix(".parquet") for p in folder.glob("*.parquet") if p.is_dir()}
    levels = tuple(level for level in _LEVELS if level in present)
    if unknown := sorted(present - set(levels)):
        raise DataError(
            f"{folder}: folders must be named after the levels {', '.join(_LEVELS)}, "
            f"got {shown(unknown[0])}"
        )
    if not levels:
        inner = sorted(p.parent.name for p in folder.glob("*/*.parquet") if p.is_dir())
        hint = f"; the folder {inner[0]!r} in it does" if inner else ""
        raise DataError(f"{folder}: must hold folders such as Block.parquet, got none{hint}")
    return levels


def files_of(folder: Path, level: str, kind: str) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of a level with the state of their folder, the states one after the other."""
    root = folder / f"{level}.parquet" / kind
    for file in sorted(root.rglob("*.parquet")):
        inner = file.relative_to(root).parts
        if inner[-1].startswith(("_", ".")):
            continue
        state = None
        for part in inner[:-1]:
            key, _, value = part.partition("=")
            if key not in ("State", "County"):
                raise DataError(
                    f"{file}: folders below {kind} must be State=... or County=..., "
                    f"got {shown(part)}"
                )
            if key == "State":
                state = value
        if state is not None and (len(state) != SPINE_WIDTHS["State"] or not state.isdigit()):
            raise DataError(
                f"{file}: State= must have 3 digits, a tribal flag and the FIPS code, "
                f"got {shown(state)}"
            )
        yield file, state


def widths_of(folder: Path, levels: tuple[str, ...]) -> dict[str, int]:
    """Return the characters of a geocode by level, from the first row of each.

    A run of the agency's system finds them from the largest number of children, so that they
    differ from product to product; along the spine they grow, as each unit's code starts with
    that of the unit around it.
    """
    widths: dict[str, int] = {}
    for level in levels:
        if level == "US":
            widths[level] = 0
            continue
        first = _first_geocode(folder, level)
        if first is None:
            continue
        file, code = first
        above = next(reversed(widths), None)
        least = widths[above] + 1 if above else 1
        if len(code) < least:
            raise DataError(
                f"{file}: column 'geocode': a {level} must have more characters than a {above}, "
                f"{least - 1}, got {shown(code)}"
            )
        widths[level] = len(code)
    return widths


def _first_geocode(folder: Path, level: str) -> tuple[Path, str] | None:
    """Return a level's first geocode that is text, and its file; None where it has no row."""
    for kind in ("Constraint", "DPQuery"):
        for file, _ in files_of(folder, level, kind):
            with opened(file) as source:
                if "geocode" not in source.schema_arrow.names:
                    continue  # refused by name where the file is read
            for _, batch in batches(file, ("geocode",), 1):
                code = batch.column("geocode")[0].as_py()
                if code is not None:
                    return file, str(code)
                break
    return None


def _keys(codes: NDArray[np.str_], level: str) -> list[Any]:
    """Return a number for each unit; that of a block is its published part."""
    if level == "US":
        return list(codes.tolist())
    kept = (code[-_SUFFIX:] for code in codes.tolist()) if level == "Block" else codes.tolist()
    return [int("1" + code) for code in kept]


def refuse_repeated(rows: Rows, codes: NDArray[np.str_], level: str, seen: set[Any]) -> None:
    """Refuse a unit that has been read before, and remember these."""
    keys = _keys(codes, level)
    fresh = set(keys)
    if len(fresh) == len(keys) and seen.isdisjoint(fresh):
        seen |= fresh
        return
    for place, key in enumerate(keys):
        if key in seen:
            raise rows.refuse(
                place,
                "geocode",
                f"must occur once for the query, got {shown(str(codes[place]))} again",
            )
        seen.add(key)


def check_units(
    codes: NDArray[np.str_], level: str, width: int | None, state: str | None, file: Path
) -> None:
    """Refuse units that are not of the level and of the state of their folder."""
    fault = first_fault(codes, level, width)
    if fault:
        place, rule = fault
        raise DataError(
            f"{file}: column 'geocode': a {level} must have {rule}, got {shown(str(codes[place]))}"
        )
    if state is not None and (codes.astype(f"U{len(state)}") != state).any():
        raise DataError(f"{file}: column 'geocode': must start with {state!r}, the folder's state")
