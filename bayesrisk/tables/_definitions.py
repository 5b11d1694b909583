"""Workloads in the compact grammar: from the definition files and manifests, and back."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.tables._grammar import (
    MOST_WEIGHTS,
    Key,
    Part,
    Table,
    code_weights,
    parse_part,
    part_to_dict,
)
from bayesrisk.tables.schema import Schema


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
