"""All rows of the units in a range: what a shard of a long run reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.readers.geocodes import SPINE_WIDTHS
from bayesrisk.readers.nmf._folder import files_of
from bayesrisk.readers.nmf._rows import (
    BATCH_CELLS,
    ROW,
    Rows,
    batches,
    check_columns,
    check_suffix,
    column_of_text,
    opened,
)
from bayesrisk.readers.nmf.noise import Scales, budget_chain

if TYPE_CHECKING:
    from bayesrisk.readers.nmf.reader import NoisyMeasurements

#: How names of queries end, by the kind of the folder.
ENDINGS = {"DPQuery": "_dpq", "Constraint": "_con"}
SIGNS = ("=", "<=", ">=")
_MOST = 2**21  # cells of a row where the axes are not known
_NAMES = 2**17  # rows of short columns in memory


class QueryRows(NamedTuple):
    """Rows of one query in some units, the units sorted.

    ``sigma2`` is empty for constraints, ``sign`` is empty for noisy answers.
    """

    name: str
    shape: tuple[int, ...]
    answers: tuple[str, ...]
    geocodes: NDArray[np.str_]
    values: NDArray[np.int64]
    sigma2: NDArray[np.float64]
    sign: str


def _in_range(codes: pa.Array, low: str, high: str) -> pa.Array:
    """Return which geocodes begin with ``low``, ``high`` or what is between them."""
    first = pc.greater_equal(pc.utf8_slice_codeunits(codes, 0, len(low)), low) if low else None
    last = pc.less_equal(pc.utf8_slice_codeunits(codes, 0, len(high)), high) if high else None
    if first is None or last is None:
        return pc.is_valid(codes)
    return pc.and_(first, last)


def _pieces(
    nmf: NoisyMeasurements, level: str, kind: str, columns: tuple[str, ...], low: str, high: str
) -> Iterator[tuple[str | None, Rows]]:
    """Yield rows of units in a range, with the state of their folder."""
    axes = tuple(nmf.universe.axes)
    rows = (
        max(1, BATCH_CELLS // (2 * (nmf.universe.size or _MOST))) if "value" in columns else _NAMES
    )
    for file, state in files_of(nmf.folder, level, kind):
        shared = min(len(state or ""), len(low))
        if state is not None and not low[:shared] <= state[:shared] <= high[:shared]:
            continue
        with opened(file) as source:
            check_columns(source.schema_arrow, file, axes, columns)
        for start, batch in batches(file, columns, rows, (low, high)):
            codes = column_of_text(batch, "geocode", file, start).cast(pa.string())
            numbers = pa.array(np.arange(start, start + batch.num_rows))
            batch = batch.append_column(ROW, numbers).filter(_in_range(codes, low, high))
            if batch.num_rows:
                yield state, Rows(file, batch)


def states_of(nmf: NoisyMeasurements, level: str) -> list[str]:
    """Return the beginnings of geocodes, one for each state in which a level has units.

    Those that no folder of a state holds are looked for in the files; the nation has one, empty.
    """
    if level == "US":
        return [""]
    found: set[str] = set()
    for kind in ENDINGS:
        for file, state in files_of(nmf.folder, level, kind):
            if state is not None:
                found.add(state)
                continue
            for start, batch in batches(file, ("geocode",), _NAMES):
                codes = column_of_text(batch, "geocode", file, start).cast(pa.string())
                width = nmf.widths.get("State", SPINE_WIDTHS["State"])
                found |= set(pc.unique(pc.utf8_slice_codeunits(codes, 0, width)).to_pylist())
    return sorted(found)


def units_between(
    nmf: NoisyMeasurements,
    level: str,
    low: str = "",
    high: str = "",
    kinds: tuple[str, ...] = ("Constraint", "DPQuery"),
) -> tuple[NDArray[np.str_], bool]:
    """Return the geocodes of the units in a range, sorted, and whether constraints list them.

    Where a level has no constraints, units are those with a noisy answer.
    """
    for kind in kinds:
        found: set[str] = set()
        for state, rows in _pieces(nmf, level, kind, ("geocode",), low, high):
            found |= set(rows.geocodes(level, nmf.widths.get(level), state).tolist())
        if found:
            return np.array(sorted(found), dtype=np.str_), kind == "Constraint"
    return np.empty(0, dtype="U1"), False


def definitions(nmf: NoisyMeasurements, level: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Return what each query of a level asks of each axis, by name without its ending."""
    axes = tuple(nmf.universe.axes)
    found: dict[str, tuple[str, ...]] = {}
    for file, _ in files_of(nmf.folder, level, kind):
        with opened(file) as source:
            check_columns(source.schema_arrow, file, axes, ("query_name", *axes))
        for start, batch in batches(file, ("query_name", *axes), _NAMES):
            names = column_of_text(batch, "query_name", file, start)
            check_suffix(names, ENDINGS[kind], file, start)
            columns = [names, *(column_of_text(batch, axis, file, start) for axis in axes)]
            table = pa.table([c.cast(pa.string()) for c in columns], ["query_name", *axes])
            for row in table.group_by(["query_name", *axes]).aggregate([]).to_pylist():
                name = row.pop("query_name").removesuffix(ENDINGS[kind])
                answers = tuple(row[axis] for axis in axes)
                if found.setdefault(name, answers) != answers:
                    raise DataError(
                        f"{file}: {name} must ask {', '.join(found[name])} as in its other rows, "
                        f"got {', '.join(answers)}"
                    )
    return dict(sorted(found.items()))


def rows_between(
    nmf: NoisyMeasurements,
    level: str,
    kind: str,
    low: str,
    high: str,
    queries: tuple[str, ...] | None = None,
) -> dict[str, QueryRows]:
    """Return the rows of all queries, or of some, in the units of a range, by query.

    Parameters
    ----------
    nmf : NoisyMeasurements
        The folder.
    level, kind : str
        Level, and ``DPQuery`` or ``Constraint``.
    low, high : str
        Beginnings of the first and the last geocode.
    queries : tuple of str, optional
        Names without their ending.

    Returns
    -------
    dict of str to QueryRows
        All rows, in memory at once.

    Raises
    ------
    DataError
        If a row breaks the format, or a unit occurs twice for a query.
    """
    axes = tuple(nmf.universe.axes)
    extra = "sign" if kind == "Constraint" else "variance"
    columns = ("geocode", "query_name", *axes, "query_shape", "value", extra)
    scales: dict[str, Scales] = {}
    parts: dict[str, list[QueryRows]] = {}
    for state, rows in _pieces(nmf, level, kind, columns, low, high):
        for name, some in rows.by_query(ENDINGS[kind]):
            if queries is not None and name not in queries:
                continue
            codes = some.geocodes(level, nmf.widths.get(level), state)
            shape, answers = some.shape(nmf.universe), some.answers(axes)
            last = parts.setdefault(name, [])
            if last and (shape, answers) != last[-1][1:3]:
                raise some.refuse(
                    0,
                    "query_shape",
                    f"must be {list(last[-1].shape)} as in the query's other rows, "
                    f"got {list(shape)}",
                )
            if kind == "Constraint":
                noise, sign = np.empty(0), _one_sign(some)
                _refuse_negative(some, some.values(shape))
            else:
                if name not in scales:
                    chain = None if nmf.budget is None else budget_chain(nmf.budget, level, name)
                    scales[name] = Scales(chain)
                noise, sign = some.sigma2(scales[name]), ""
            last.append(QueryRows(name, shape, answers, codes, some.values(shape), noise, sign))
    return {name: _joined(found, f"{nmf.folder}: {level} {kind}") for name, found in parts.items()}


def _one_sign(rows: Rows) -> str:
    """Return the sign of a constraint's rows, which must be the same in all."""
    signs = rows.text("sign")
    bad = ~np.isin(signs, SIGNS) | (signs != signs[0])
    if bad.any():
        place = int(bad.argmax())
        wanted = ", ".join(SIGNS) if signs[0] not in SIGNS else f"{signs[0]!r} as above"
        raise rows.refuse(place, "sign", f"must be one of {wanted}, got {shown(str(signs[place]))}")
    return str(signs[0])


def _refuse_negative(rows: Rows, values: NDArray[np.int64]) -> None:
    """Refuse a bound on a count that no count meets, or every one."""
    bad = (values < 0).any(axis=1)
    if bad.any():
        place = int(bad.argmax())
        raise rows.refuse(
            place, "value", f"must be >= 0 in a constraint, got {int(values[place].min())}"
        )


def _joined(parts: list[QueryRows], where: str) -> QueryRows:
    """Return the rows of several pieces as one, sorted by unit."""
    signs = {part.sign for part in parts}
    if len(signs) > 1:
        raise DataError(f"{where}: {parts[0].name} must have one sign, got {sorted(signs)}")
    codes = np.concatenate([part.geocodes for part in parts])
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    again = codes[1:] == codes[:-1]
    if again.any():
        code = str(codes[int(again.argmax())])
        raise DataError(f"{where}: {parts[0].name}: unit {code} must occur once, got it again")
    values = np.concatenate([part.values for part in parts])[order]
    noise = np.concatenate([part.sigma2 for part in parts])
    return parts[0]._replace(
        geocodes=codes, values=values, sigma2=noise[order] if noise.size else noise
    )
