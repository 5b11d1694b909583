"""Random small schemas, tables and records for claims, with every data set that fits."""

import itertools

import numpy as np
import pandas as pd
import scipy.sparse as sp
from oracles import claims as oracle

from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload

PLACE = Geography("flat", ("block",), (3,))


def small_schema(*sizes):
    return Schema("small", tuple(Attribute(f"a{i}", n) for i, n in enumerate(sizes)), PLACE)


def random_table(rng, schema, name):
    """A cross of recodes of some attributes; now and then with a total, or with weights."""
    chosen = rng.permutation(len(schema.names))[: rng.integers(1, 3)]
    parts = []
    for a in chosen:
        size = schema.shape[a]
        groups = rng.integers(0, rng.integers(2, size + 1), size)
        parts.append([(groups == g).astype(int) for g in np.unique(groups)])
    cells = list(itertools.product(*parts))
    factors = {schema.names[a]: [c[i] for c in cells] for i, a in enumerate(chosen)}
    kind = rng.random()
    if kind < 0.2:  # a total over all codes
        for values in factors.values():
            values.append(np.ones(len(values[0]), int))
    if kind > 0.9:  # a count of things in records rather than of records
        factors[schema.names[chosen[0]]] = [v * 2 for v in factors[schema.names[chosen[0]]]]
    names = tuple(f"{name}_{i}" for i in range(len(next(iter(factors.values())))))
    return Table(name, names, {n: np.array(v) for n, v in factors.items()})


def publish(schema, tables, cells, counts_of_cells, hidden=None):
    """Tables of one block with some records in each of the cells."""
    weights = oracle.weights_of(schema, tables, cells)
    counts = weights @ counts_of_cells
    hidden = np.zeros(counts.size, bool) if hidden is None else hidden
    parts, masks, at = {}, {}, 0
    for table in tables:
        piece = slice(at, at + len(table.cells))
        parts["block", table.name] = sp.csr_array(np.where(hidden[piece], 0, counts[piece])[None])
        masks["block", table.name] = sp.csr_array(hidden[piece][None])
        at += len(table.cells)
    workload = Workload(schema, {("block", t.name): t for t in tables})
    return PublishedTables(workload, {"block": ["001"]}, parts, masks), counts


def as_bounds(frame, schema, tables):
    """Return claims of a frame as {(group or None, ...): (m, at least)}."""
    groups = oracle.code_groups(schema, tables)
    found = {}
    for row in frame.itertuples(index=False):
        codes = [getattr(row, name) for name in schema.names]
        pattern = tuple(
            None if pd.isna(code) else groups[name][int(code)]
            for name, code in zip(schema.names, codes, strict=True)
        )
        assert pattern not in found
        found[pattern] = row.multiplicity, bool(getattr(row, "at_least", False))
    return found


def case(seed, *, hide=False):
    rng = np.random.default_rng(seed)
    schema = small_schema(*rng.integers(2, 4, rng.integers(2, 4)))
    n = int(rng.integers(1, 5))
    tables = [Table("N", ("N_0",), {})]
    tables += [random_table(rng, schema, f"T{i}") for i in range(rng.integers(1, 4))]
    size = int(np.prod(schema.shape))
    cells = np.arange(size)
    if rng.random() < 0.3:
        cells = np.sort(rng.permutation(size)[: max(3, size // 2)])
    data = np.bincount(rng.integers(0, len(cells), n), minlength=len(cells))
    hidden = None
    if hide:
        hidden = rng.random(sum(len(t.cells) for t in tables)) < 0.25
        hidden[0] = False
    tables_, counts = publish(schema, tables, cells, data, hidden)
    hidden = np.zeros(counts.size, bool) if hidden is None else hidden
    sets = oracle.consistent(schema, tables, cells, counts, hidden, n)
    return schema, tables, cells, tables_, sets, data


def as_patterns(found, schema, tables):
    """Claims of a frame as {(group or None, ...): m}."""
    groups = oracle.code_groups(schema, tables)
    result = {}
    for row in found.itertuples(index=False):
        pattern = []
        for name in schema.names:
            code = getattr(row, name, pd.NA)
            pattern.append(None if pd.isna(code) else groups[name][int(code)])
        assert tuple(pattern) not in result
        result[tuple(pattern)] = row.multiplicity
    return result


def matching(schema, tables, cells, row):
    """Return which cells have the values of a row of claims; codes that tables merge are one."""
    groups = oracle.code_groups(schema, tables)
    match = np.ones(len(cells), bool)
    for name, codes in zip(schema.names, np.unravel_index(cells, schema.shape), strict=True):
        if not pd.isna(code := getattr(row, name)):
            label = np.array(groups[name])
            match &= label[codes] == label[code]
    return match


def odd_case(seed):
    """Counts of things of which records have several: whole numbers say most."""
    rng = np.random.default_rng(seed)
    schema = small_schema(int(rng.integers(4, 7)))
    tables = []
    for i in range(3):
        weights = rng.integers(0, 4, (1, schema.size))
        weights[0, rng.integers(schema.size)] = 2
        tables.append(Table(f"T{i}", (f"T{i}_0",), {"a0": weights}))
    cells = np.arange(schema.size)
    data = np.bincount(rng.integers(0, schema.size, rng.integers(1, 5)), minlength=schema.size)
    weights = oracle.weights_of(schema, tables, cells)
    bound = (weights > 0).any(axis=0)
    cells, data = cells[bound], data[bound]
    published, counts = publish(schema, tables, cells, data)
    most = int(counts.sum())  # every record has at least one thing
    hidden = np.zeros(counts.size, bool)
    sets = oracle.consistent(schema, tables, cells, counts, hidden, min(most, 9))
    return schema, tables, cells, published, sets, most
