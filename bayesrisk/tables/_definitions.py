"""Workloads in the compact grammar: from the definition files and manifests, and back."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables import _grammar as grammar
from bayesrisk.tables._table import Table
from bayesrisk.tables.schema import Schema

Key = tuple[str, str]


def parsed(values: Mapping[str, Any]) -> tuple[Schema, dict[Key, Table]]:
    """Return the schema and the tables by level and name."""
    try:
        return _parsed(values)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"workload, or measurements, must follow the grammar of tables: {error!r}"
        ) from error


def described(about: Schema, tables: Mapping[Key, Table]) -> list[dict[str, Any]]:
    """Return the tables in the grammar, each once with its levels."""
    entries: list[tuple[Table, dict[str, Any]]] = []
    by_name: dict[str, list[int]] = {}
    for (level, name), table in tables.items():
        for i in by_name.get(name, []):
            if entries[i][0] is table or entries[i][0] == table:
                entries[i][1]["levels"].append(level)
                break
        else:
            by_name.setdefault(name, []).append(len(entries))
            parts = table.parts or _parts_of(table, about)
            grammars = [grammar.part_to_dict(part, about) for part in parts]
            entries.append((table, {"name": name, "levels": [level], "parts": grammars}))
    return [entry for _, entry in entries]


def _parsed(values: Mapping[str, Any]) -> tuple[Schema, dict[Key, Table]]:
    about = Schema.from_dict(values["schema"])
    recodes = values.get("recodes", {})
    tables: dict[Key, Table] = {}
    weights = 0
    for entry in values["tables"]:
        for table in _expanded(entry, about, recodes, values.get("iterations", {})):
            weights += sum(factor.size for factor in table.factors.values())
            if weights > grammar.MOST_WEIGHTS:
                raise ArgumentError(
                    f"tables must have at most {grammar.MOST_WEIGHTS} weights of codes in cells, "
                    f"got more at {shown(table.name)}"
                )
            for level in entry.get("levels", values.get("levels", ())):
                if (level, table.name) in tables:
                    raise ArgumentError(f"table {table.name!r} must be defined once at {level!r}")
                tables[level, table.name] = table
    return about, tables


def _expanded(
    entry: Mapping[str, Any],
    about: Schema,
    recodes: Mapping[str, Any],
    iterations: Mapping[str, Any],
) -> Iterable[Table]:
    """Yield the table of an entry, or one for each iteration of it."""
    rest = {k: v for k, v in entry.items() if k not in ("name", "levels", "iterate", "parts")}
    parts = entry.get("parts", [rest])
    if "parts" in entry and rest:
        raise ArgumentError(f"table {entry['name']!r} must have parts or {sorted(rest)[0]!r}")
    if "iterate" not in entry:
        yield _table(entry["name"], parts, about, recodes)
        return
    for key, where in iterations[entry["iterate"]].items():
        own = [
            {**p, "cells": p["cells"].replace("*", key), "where": {**p.get("where", {}), **where}}
            for p in parts
        ]
        yield _table(entry["name"].replace("*", key), own, about, recodes)


def _table(name: str, entries: Iterable[Any], about: Schema, recodes: Mapping[str, Any]) -> Table:
    parts = tuple(grammar.parse_part(entry, about, recodes, name) for entry in entries)
    cells = tuple(cell for part in parts for cell in part.cells)
    return Table(name, cells, grammar.factors_of(parts, about), parts)


def _parts_of(table: Table, about: Schema) -> tuple[grammar.Part, ...]:
    """Return parts of one cell each, for a table that was made from factors."""
    parts = []
    for row, cell in enumerate(table.cells):
        where, weight = [], []
        for name, values in table.factors.items():
            codes = np.flatnonzero(values[row]) + about.attribute(name).first
            if np.all((values[row] == 0) | (values[row] == 1)) and len(codes):
                where.append((name, tuple(codes.tolist())))
            else:
                weight.append((name, tuple(values[row].tolist())))
        parts.append(grammar.Part((cell,), (), tuple(where), tuple(weight)))
    return tuple(parts)
