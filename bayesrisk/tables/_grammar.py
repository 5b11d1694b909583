"""The compact grammar of tables: groups of codes, crosses of them, and names of cells.

A group of codes is written ``"0-4,7"``, with steps ``"1-63:2"`` and an open end ``"1-"``.
``"each 0-4"`` stands for one group for every code. A table is a list of parts. A part crosses
groups of codes (last fastest) within a condition, and may weight records by numbers. Cells are
listed, patterned, numbered from 0, or named by their labels (``cells = "labels"``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise, product
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError, quote
from bayesrisk.tables.schema import Attribute, Schema

#: Codes and cells of a table, and its weights of one attribute: what fits in memory.
MOST = 2**22
MOST_WEIGHTS = 2**24
#: Names of cells that say what they hold.
LABELS = "labels"
_NAME = 100  # digits in the name of a cell
Groups = tuple[tuple[int, ...], ...]
#: Level and name of a table.
Key = tuple[str, str]

_ITEM = re.compile(r"(-?\d+)(?:-(-?\d+)?(?::(\d+))?)?")
_NAMES = re.compile(r"([^{}]*)\{([0-9,-]+)\}")


@dataclass(frozen=True)
class Part:
    """A block of a table's cells: every combination of groups, within a condition."""

    cells: tuple[str, ...]
    cross: tuple[tuple[str, Groups], ...]
    scope: tuple[tuple[str, tuple[int, ...]], ...]
    weight: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def names(self) -> set[str]:
        """The attributes that it looks at."""
        return {name for entries in (self.cross, self.scope, self.weight) for name, _ in entries}


def parse_codes(text: object, attribute: Attribute) -> tuple[int, ...]:
    """Return the codes of a group, in the order written."""
    members: list[int] = []
    label = f"group of {attribute.name!r}"
    for item in str(text).split(","):
        match = _ITEM.fullmatch(item.strip())
        if not match:
            raise ArgumentError(label, "must be ranges such as '0-4,7'", got=text)
        low = int(match[1])
        high = low if "-" not in item.strip()[1:] else int(match[2] or attribute.last)
        codes = range(low, high + 1, int(match[3] or 1))
        # A range may be longer than len() can say.
        if len(members) + max(0, (codes.stop - codes.start) // codes.step) > MOST:
            raise ArgumentError(label, f"must have at most {MOST} codes", got=text)
        if not codes or codes[0] < attribute.first or codes[-1] > attribute.last:
            raise ArgumentError(
                label, f"must lie in [{attribute.first}, {attribute.last}]", got=text
            )
        members += codes
    if len(set(members)) != len(members):
        raise ArgumentError(label, "must name a code once", got=text)
    return tuple(members)


def group_text(codes: Sequence[int]) -> str:
    """Return the shortest text of a group: the inverse of :func:`parse_codes` for sorted codes."""
    return _runs(sorted(codes), 0)


def _runs(numbers: Iterable[int], width: int) -> str:
    """Return ranges of consecutive numbers as text, each of ``width`` digits at least."""
    runs = []
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [f"{number:0{width}d}" for _, number in run]
        runs.append(members[0] if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ",".join(runs)


def parse_groups(texts: object, attribute: Attribute) -> Groups:
    """Return the groups of a recode."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise ArgumentError(f"recode of {attribute.name!r} must be a list, got {quote(texts)}")
    recode: list[tuple[int, ...]] = []
    total = 0
    for text in texts:
        prefix, _, rest = str(text).partition("each ")
        if rest and not prefix:
            groups: list[tuple[int, ...]] = [(code,) for code in parse_codes(rest, attribute)]
        else:
            groups = [tuple(sorted(parse_codes(text, attribute)))]
        total += sum(map(len, groups))
        if total > MOST:
            raise ArgumentError(f"groups of {attribute.name!r} must have at most {MOST} codes")
        recode += groups
    return tuple(recode)


def cell_names(pattern: Iterable[object] | None, count: int, table: str) -> tuple[str, ...]:
    """Return the names of cells: listed, patterned (``P012{0003-0025}``), or numbers from 0."""
    if pattern is None:
        width = len(str(count - 1))
        return tuple(f"{i:0{width}d}" for i in range(count))
    if isinstance(pattern, str):
        match = _NAMES.fullmatch(pattern)
        if not match:
            raise ArgumentError(f"cells of {table!r} must be like 'P012{{0003-0025}}': {pattern!r}")
        names: list[str] = []
        for item in match[2].split(","):
            low, _, high = item.partition("-")
            numbers = range(int(low), int(high or low) + 1)
            if len(numbers) > count or len(low) > _NAME:
                have = len(names) + len(numbers)
                raise ArgumentError(f"cells of {table!r} must be {count}, got {have} names")
            names += [f"{match[1]}{i:0{len(low)}d}" for i in numbers]
    else:
        names = [str(name) for name in pattern]
    if len(names) != count:
        raise ArgumentError(f"cells of {table!r} must be {count}, got {len(names)} names")
    return tuple(names)


def name_pattern(names: Sequence[str]) -> str | list[str]:
    """Return the pattern of cell names, or the list where there is none."""
    width = len(names[0]) - len(names[0].rstrip("0123456789"))
    stem = names[0][: len(names[0]) - width] if width else ""
    numbers = [n[len(stem) :] for n in names if n.startswith(stem)]
    plain = len(numbers) == len(names) and all(len(n) == width and n.isdigit() for n in numbers)
    if not width or not plain or "{" in stem or "}" in stem or not all(map(str.isascii, numbers)):
        return list(names)
    return f"{stem}{{{_runs(map(int, numbers), width)}}}"


def parse_part(
    entry: Mapping[str, Any], schema: Schema, recodes: Mapping[str, Any], table: str
) -> Part:
    """Return a part of a table from its grammar."""
    unknown = set(entry) - {"cells", "cross", "where", "weight"}
    if unknown:
        raise ArgumentError("table", f"{table!r} must not have {sorted(unknown)[0]!r}")
    cross = tuple(_crossed(item, schema, recodes) for item in entry.get("cross", ()))
    if len({name for name, _ in cross}) != len(cross):
        raise ArgumentError("table", f"{table!r} must cross an attribute once")
    scope = tuple(
        (name, tuple(sorted(parse_codes(text, schema.attribute(name)))))
        for name, text in entry.get("where", {}).items()
    )
    weight = tuple(
        (name, _weights(values, schema.attribute(name)))
        for name, values in entry.get("weight", {}).items()
    )
    count = prod(len(groups) for _, groups in cross)
    if count > MOST:
        raise ArgumentError("table", f"{table!r} must have at most {MOST} cells", shown=count)
    if entry.get("cells") == LABELS:
        return Part(_label_names(cross, schema), cross, scope, weight)
    return Part(cell_names(entry.get("cells"), count, table), cross, scope, weight)


def _label_names(cross: Sequence[tuple[str, Groups]], schema: Schema) -> tuple[str, ...]:
    """Return the names of cells by their content: labels, or codes if there are none."""
    words = []
    for name, groups in cross:
        a = schema.attribute(name)
        alone = a.labels or tuple(map(str, range(a.first, a.last + 1)))
        words.append([alone[g[0] - a.first] if len(g) == 1 else group_text(g) for g in groups])
    names = tuple(", ".join(row) or "total" for row in product(*words))
    if len(set(names)) == len(names):
        return names
    # Two cells with one name, such as "a" with "b, c" and "a, b" with "c": quoted as in a CSV file.
    quoted = [
        [_quoted(word) if "," in word or '"' in word else word for word in column]
        for column in words
    ]
    return tuple(", ".join(row) for row in product(*quoted))


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _every(attribute: Attribute) -> range:
    if attribute.size > MOST:
        raise ArgumentError(
            f"size of {attribute.name!r} must be at most {MOST} in a table, got {attribute.size}"
        )
    return range(attribute.first, attribute.last + 1)


def _crossed(item: object, schema: Schema, recodes: Mapping[str, Any]) -> tuple[str, Groups]:
    if not isinstance(item, str):
        if not isinstance(item, Sequence) or len(item) != 2:
            raise ArgumentError(
                "cross", "must hold attributes, or pairs of one and its groups", got=item
            )
        name, texts = item
        return name, parse_groups(texts, schema.attribute(name))
    name, _, recode = item.partition(":")
    attribute = schema.attribute(name)
    if not recode:
        return name, tuple((code,) for code in _every(attribute))
    choices = {**recodes.get("any", {}), **recodes.get(name, {})}
    if recode not in choices:
        raise ArgumentError(
            f"recode of {name!r} must be one of {sorted(choices)}, got {quote(recode)}"
        )
    return name, parse_groups(choices[recode], attribute)


def _weights(values: object, attribute: Attribute) -> tuple[int, ...]:
    if values == "code":
        return tuple(_every(attribute))
    if not isinstance(values, Sequence) or len(values) != attribute.size:
        raise ArgumentError(
            f"weight of {attribute.name!r} must be 'code' or {attribute.size} numbers, "
            f"got {quote(values)}"
        )
    return tuple(int(v) for v in values)


def part_to_dict(part: Part, schema: Schema) -> dict[str, Any]:
    """Return the grammar of a part, with its groups written out."""
    entry: dict[str, Any] = {"cells": name_pattern(part.cells)}
    if part.cross:
        entry["cross"] = [_cross_to_item(name, groups, schema) for name, groups in part.cross]
    if part.scope:
        entry["where"] = {name: group_text(codes) for name, codes in part.scope}
    if part.weight:
        entry["weight"] = {
            name: "code" if values == _weights("code", schema.attribute(name)) else list(values)
            for name, values in part.weight
        }
    return entry


def _cross_to_item(name: str, groups: Groups, schema: Schema) -> str | list[object]:
    attribute = schema.attribute(name)
    if groups == tuple((c,) for c in range(attribute.first, attribute.last + 1)):
        return name
    texts: list[str] = []
    for alone, run in groupby(groups, lambda group: len(group) == 1):
        members = list(run)
        if not alone or len(members) == 1:
            texts += [group_text(group) for group in members]
            continue
        codes = [group[0] for group in members]
        if len(set(codes)) < len(codes):
            texts += [str(code) for code in codes]
            continue
        rising = all(a < b for a, b in pairwise(codes))
        texts.append("each " + (group_text(codes) if rising else ",".join(map(str, codes))))
    return [name, texts]


def code_weights(parts: Sequence[Part], schema: Schema) -> dict[str, NDArray[np.int64]]:
    """Return the weight of every code in every cell, attribute by attribute."""
    used = {name for part in parts for name in part.names}
    total = sum(len(part.cells) for part in parts)
    factors = {}
    scopes = [dict(part.scope) for part in parts]
    alone = all(len(part.cells) == 1 and not (part.cross or part.weight) for part in parts)
    for attribute in schema.attributes:
        if attribute.name not in used:
            continue
        if total * attribute.size > MOST_WEIGHTS:
            raise ArgumentError(
                f"cells times codes of {attribute.name!r} must be at most {MOST_WEIGHTS}, got "
                f"{total * attribute.size}"
            )
        if alone:  # one cell each, and the same groups in many of them
            groups = [scope.get(attribute.name) for scope in scopes]
            row = {group: i for i, group in enumerate(dict.fromkeys(groups))}
            members = np.ones((len(row), attribute.size), dtype=np.int64)
            for group, i in row.items():
                if group is not None:
                    members[i] = 0
                    members[i, np.asarray(group) - attribute.first] = 1
            factors[attribute.name] = members[[row[group] for group in groups]]
            continue
        matrix = np.ones((total, attribute.size), dtype=np.int64)
        start = 0
        for part in parts:
            _fill(matrix[start : start + len(part.cells)], part, attribute)
            start += len(part.cells)
        factors[attribute.name] = matrix
    return factors


def _fill(rows: NDArray[np.int64], part: Part, attribute: Attribute) -> None:
    """Multiply a part's weights for an attribute into the rows of its cells."""
    inner = len(rows)
    for name, groups in part.cross:
        inner //= len(groups)
        if name != attribute.name:
            continue
        members = np.zeros((len(groups), attribute.size), dtype=np.int64)
        for i, group in enumerate(groups):
            members[i, np.asarray(group) - attribute.first] = 1
        rows *= members[np.arange(len(rows)) // inner % len(groups)]
    for name, codes in part.scope:
        if name == attribute.name:
            inside = np.zeros(attribute.size, dtype=np.int64)
            inside[np.asarray(codes) - attribute.first] = 1
            rows *= inside
    for name, values in part.weight:
        if name == attribute.name:
            rows *= np.asarray(values, dtype=np.int64)


# -----------------------------------------------------------------------------
# A table as linear counting queries: the weight of a record in every cell.


_DENSE = 2**22  # entries of a dense slice of an incidence matrix


@displayed
@dataclass(frozen=True, eq=False)
class Table:
    """A table: named cells, each a weighted count of records.

    The weight of a record in cell q is the product over the attributes ``a`` in ``factors`` of
    ``factors[a][q, code - first]``. Other attributes do not matter.

    Attributes
    ----------
    name : str
        Name of the table.
    cells : tuple of str
        Names of the cells, in order.
    factors : mapping of str to ndarray of int64
        For each relevant attribute an array (cells, codes), >= 0.
    parts : tuple
        Definition of the table, for a compact description; empty if made from factors.
    """

    name: str
    cells: tuple[str, ...]
    factors: Mapping[str, IntArray]
    parts: tuple[Part, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        cells = check.texts(self.cells, "cells")
        if not cells or len(set(cells)) != len(cells):
            raise ArgumentError(f"cells of {self.name!r} must be named, each once")
        factors = {}
        for name, values in check.mapping(self.factors, "factors").items():
            array = check.count_array(
                values, f"factors: factor {name!r} of {self.name!r}", lower=0
            ).copy()
            if array.ndim != 2 or len(array) != len(cells):
                raise ShapeError(
                    f"factors: factor {name!r} of {self.name!r} must be ({len(cells)} cells, "
                    f"codes), got shape {array.shape}"
                )
            array.setflags(write=False)
            factors[name] = array
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "factors", MappingProxyType(factors))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return (
            (self.name, self.cells) == (other.name, other.cells)
            and self.factors.keys() == other.factors.keys()
            and all(np.array_equal(v, other.factors[k]) for k, v in self.factors.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the definition to another process, which makes and checks the object again."""
        return Table, (self.name, self.cells, dict(self.factors), self.parts)

    @cached_property
    def classes(self) -> dict[str, tuple[IntArray, IntArray]]:
        """For each attribute its distinct columns (cells, classes) and the class of each code."""
        classes = {}
        for name, values in self.factors.items():
            columns, inverse = np.unique(values, axis=1, return_inverse=True)
            classes[name] = columns, inverse.reshape(-1).astype(np.int64)
        return classes

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema whose attributes the factors do not fit."""
        check.instance(schema, Schema, "schema")
        for name, values in self.factors.items():
            size = schema.attribute(name).size
            if values.shape[1] != size:
                raise ShapeError(
                    f"factors: factor {name!r} of {self.name!r} must have {size} codes, "
                    f"got {values.shape[1]}"
                )

    def incidence(self, schema: Schema, cells: ArrayLike) -> sparse.csr_array:
        """Return the weights (cells of the table, len(cells)) of records of given schema cells.

        Schema cells are numbered as in :meth:`Schema.cell_index`.
        """
        self.check_schema(schema)
        flat = check.as_array(cells, "cells")
        if flat.size:
            flat = check.count_array(flat, "cells", lower=0, upper=schema.size - 1)
        if flat.ndim != 1:
            raise ShapeError("cells", "must have one axis", shown=f"shape {flat.shape}")
        index = schema.indices(flat.astype(np.int64))
        key = np.zeros(len(flat), dtype=np.int64)
        for name, (columns, inverse) in self.classes.items():
            key = key * columns.shape[1] + inverse[index[name]]
        distinct, inverse = np.unique(key, return_inverse=True)
        return sparse.csr_array(self._class_columns(distinct)[:, inverse.reshape(-1)])

    def _class_columns(self, keys: IntArray) -> sparse.csc_array:
        """Return the columns of combinations of classes, numbered in mixed radix."""
        pieces = []
        step = max(1, _DENSE // len(self.cells))
        for start in range(0, len(keys), step):
            rest = keys[start : start + step]
            weights = np.ones((len(self.cells), len(rest)), dtype=np.int64)
            for columns, _ in reversed(self.classes.values()):
                rest, digit = np.divmod(rest, columns.shape[1])
                weights *= columns[:, digit]
            pieces.append(sparse.csc_array(weights))
        if not pieces:
            return sparse.csc_array((len(self.cells), 0), dtype=np.int64)
        if len(pieces) == 1:
            return pieces[0]
        return sparse.csc_array(sparse.hstack(pieces, format="csc"))


def parsed(values: Mapping[str, Any]) -> tuple[Schema, dict[Key, Table]]:
    """Return the schema and the tables by level and name."""
    try:
        schema = Schema.from_dict(values["schema"])
        recodes = values.get("recodes", {})
        tables: dict[Key, Table] = {}
        weights = 0
        for entry in values["tables"]:
            for table in _expanded(entry, schema, recodes, values.get("iterations", {})):
                weights += sum(factor.size for factor in table.factors.values())
                if weights > MOST_WEIGHTS:
                    raise ArgumentError(
                        "tables",
                        f"must have at most {MOST_WEIGHTS} weights of codes in cells",
                        shown=f"more at {quote(table.name)}",
                    )
                for level in entry.get("levels", values.get("levels", ())):
                    if (level, table.name) in tables:
                        raise ArgumentError(
                            "table", f"{table.name!r} must be defined once at {level!r}"
                        )
                    tables[level, table.name] = table
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"workload, or measurements, must follow the grammar of tables: {error!r}"
        ) from error
    return schema, tables


def distinct_tables(tables: Mapping[Key, Table]) -> list[tuple[Table, list[str]]]:
    """Return the different tables, each with the levels that have it, in order."""
    distinct: list[tuple[Table, list[str]]] = []
    by_name: dict[str, list[tuple[Table, list[str]]]] = {}
    for (level, name), table in tables.items():
        versions = by_name.setdefault(name, [])
        entry = next((e for e in versions if e[0] is table or e[0] == table), None)
        if entry is None:
            entry = table, []
            versions.append(entry)
            distinct.append(entry)
        entry[1].append(level)
    return distinct


def described(schema: Schema, tables: Mapping[Key, Table]) -> list[dict[str, Any]]:
    """Return the tables in the grammar, each once with its levels."""
    entries = []
    for table, levels in distinct_tables(tables):
        parts = table.parts or _cell_parts(table, schema)
        grammars = [part_to_dict(part, schema) for part in parts]
        entries.append({"name": table.name, "levels": levels, "parts": grammars})
    return entries


def _expanded(
    entry: Mapping[str, Any],
    schema: Schema,
    recodes: Mapping[str, Any],
    iterations: Mapping[str, Any],
) -> Iterable[Table]:
    """Yield the table of an entry, or one for each iteration of it."""
    rest = {k: v for k, v in entry.items() if k not in ("name", "levels", "iterate", "parts")}
    parts = entry.get("parts", [rest])
    if "parts" in entry and rest:
        raise ArgumentError("table", f"{entry['name']!r} must have parts or {sorted(rest)[0]!r}")
    if "iterate" not in entry:
        yield _table(entry["name"], parts, schema, recodes)
        return
    for key, scope in iterations[entry["iterate"]].items():
        entries = [
            {**p, "cells": p["cells"].replace("*", key), "where": {**p.get("where", {}), **scope}}
            for p in parts
        ]
        yield _table(entry["name"].replace("*", key), entries, schema, recodes)


def _table(name: str, entries: Iterable[Any], schema: Schema, recodes: Mapping[str, Any]) -> Table:
    parts = tuple(
        entry if isinstance(entry, Part) else parse_part(entry, schema, recodes, name)
        for entry in entries
    )
    cells = tuple(cell for part in parts for cell in part.cells)
    return Table(name, cells, code_weights(parts, schema), parts)


def _cell_parts(table: Table, schema: Schema) -> tuple[Part, ...]:
    """Return parts of one cell each, for a table that was made from factors."""
    parts = []
    for row, cell in enumerate(table.cells):
        scope, weight = [], []
        for name, values in table.factors.items():
            codes = np.flatnonzero(values[row]) + schema.attribute(name).first
            if np.all((values[row] == 0) | (values[row] == 1)) and len(codes):
                scope.append((name, tuple(codes.tolist())))
            else:
                weight.append((name, tuple(values[row].tolist())))
        parts.append(Part((cell,), (), tuple(scope), tuple(weight)))
    return tuple(parts)
