"""How far one record can move the counts of a workload, exactly.

A record's counts depend on its code of an attribute only through the class of codes with equal
weights.  The change is a sum of terms, one for the tables that look at the same attributes: a
small array over classes (pairs of classes, for a record that changes).  The largest sum is found
by branch and bound: attributes are settled one after the other, and what every term can still
add, each by itself, bounds the rest.  Nothing has the size of the schema.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
from scipy import sparse

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables._table import Table
from bayesrisk.tables.schema import Schema

Tables = list[tuple[Table, int]]
ByKey = Mapping[tuple[str, str], Table]
_MAX_ENTRIES = 2**24  # entries of a term's array: pairs of about 4,000 classes
_SHARED_ENTRIES = 2**22  # entries up to which tables of one scope share a term


def largest_change(schema: Schema, tables: ByKey, kind: str, *, norm: int) -> int:
    """Return the largest change of all counts (its square for norm 2)."""
    geography = schema.geography
    root = {
        level for level, width in zip(geography.levels, geography.widths, strict=True) if not width
    }
    moves = kind == "change-one"
    # A record that moves leaves one place and enters another, but at the root there is but one.
    apart = _merged(tables, lambda level: moves and level not in root)
    together = _merged(tables, lambda level: not moves or level in root)
    if moves and not together:
        return 2 * largest_change(schema, tables, "add-remove", norm=norm)
    mode = "single" if kind == "add-remove" else "pair"
    order = _order(schema.names, [*apart, *together])
    terms = [
        term
        for part, how in ((apart, "apart"), (together, mode))
        for group in _grouped(part, pairs=how != "single")
        for term in [_Term(group, order, mode=how, norm=norm)]
    ]
    fixed = sum(int(term.bounds[0]) for term in terms if not term.scope)
    free = [term for term in terms if term.scope]
    return fixed + _Search(free, order, pairs=kind != "add-remove").run()


def _order(names: Sequence[str], tables: Tables) -> list[str]:
    """Return the attributes that matter, fewest classes first: settling those costs least."""
    sizes = {}
    for name in names:
        maps = [table.classes[name][1] for table, _ in tables if name in table.factors]
        if maps:
            sizes[name] = int(_numbered(maps).max())
    return sorted(sizes, key=lambda name: sizes[name])


def _merged(tables: ByKey, keep: Callable[[str], bool]) -> Tables:
    """Return the different tables with the number of levels (of those kept) that have each."""
    found: dict[str, Tables] = {}
    for (level, name), table in tables.items():
        if not keep(level):
            continue
        same = found.setdefault(name, [])
        for i, (other, times) in enumerate(same):
            if other is table or other == table:
                same[i] = other, times + 1
                break
        else:
            same.append((table, 1))
    return [pair for same in found.values() for pair in same]


def _grouped(tables: Tables, *, pairs: bool) -> list[Tables]:
    """Return the tables that look at the same attributes together, while that stays small."""
    groups: dict[frozenset[str], list[Tables]] = {}
    for pair in tables:
        same = groups.setdefault(frozenset(pair[0].factors), [])
        if same and _entries(_refined([*same[-1], pair]), pairs=pairs) <= _SHARED_ENTRIES:
            same[-1].append(pair)
        else:
            same.append([pair])
    return [group for same in groups.values() for group in same]


def _refined(group: Tables) -> dict[str, IntArray]:
    """Return, for each attribute, the class of every code that the tables do not tell apart."""
    return {
        name: _numbered([table.classes[name][1] for table, _ in group])
        for name in group[0][0].factors
    }


def _numbered(maps: Sequence[IntArray]) -> IntArray:
    """Return the classes that several classifications make together, numbered from 0."""
    inverse: IntArray = np.unique(np.stack(maps), axis=1, return_inverse=True)[1]
    return inverse.reshape(-1)


def _entries(classes: dict[str, IntArray], *, pairs: bool) -> int:
    cells = prod(int(of.max()) + 1 for of in classes.values())
    return cells**2 if pairs else cells


class _Term:
    """What tables of one scope add, as an array over classes, and its maxima."""

    def __init__(self, group: Tables, order: list[str], *, mode: str, norm: int) -> None:
        classes = _refined(group)
        entries = _entries(classes, pairs=mode != "single")
        if entries > _MAX_ENTRIES:
            raise ArgumentError(
                f"table {group[0][0].name!r} must have at most {_MAX_ENTRIES} classes of codes "
                f"(or pairs of them) to compare, got {entries}"
            )
        self.scope = [name for name in order if name in classes]
        #: Class of every code of an attribute, and one code of each class.
        self.classes = {name: classes[name] for name in self.scope}
        codes = [np.unique(classes[name], return_index=True)[1] for name in self.scope]
        sizes = [len(c) for c in codes]
        change = sum(
            t * _change(_columns(table, self.scope, codes), mode, norm) for table, t in group
        )
        if mode == "single":
            change = np.reshape(change, sizes)
        else:
            axes = [axis for i in range(len(sizes)) for axis in (i, i + len(sizes))]
            change = np.reshape(change, [*sizes, *sizes]).transpose(axes)
            change = change.reshape([size**2 for size in sizes])
        bounds = [change]
        while bounds[-1].ndim:
            bounds.append(bounds[-1].max(axis=-1))
        #: Best value given the first 0, 1, 2, ... attributes of the scope.
        self.bounds = bounds[::-1]


def _columns(table: "Table", scope: list[str], codes: list[IntArray]) -> sparse.csc_array:
    """Return the weights (cells, joint classes), the last attribute fastest."""
    columns = sparse.csc_array(np.ones((len(table.cells), 1), dtype=np.int64))
    for name, chosen in zip(scope, codes, strict=True):
        every, size = columns.shape[1], len(chosen)
        left = columns[:, np.repeat(np.arange(every), size)]
        own = sparse.csc_array(table.factors[name][:, chosen])[:, np.tile(np.arange(size), every)]
        columns = sparse.csc_array(left.multiply(own))
    return columns


def _change(values: sparse.csc_array, mode: str, norm: int) -> IntArray:
    """Return the size of every column, of every two apart, or of their difference."""
    weights = np.asarray((values**norm).sum(axis=0))
    if mode == "single":
        return weights
    apart: IntArray = weights[:, None] + weights[None, :]
    if mode == "apart":
        return apart
    if norm == 2 or not values.nnz or int(values.data.max()) <= 1:
        # |a - b|**2 = |a|**2 + |b|**2 - 2 a.b, which for zeros and ones is the L1 distance too.
        apart -= 2 * sparse.csr_array(values.T @ values).toarray()
        return apart
    total = np.zeros_like(apart)
    for row in values.toarray():
        total += np.abs(row[:, None] - row[None, :])
    return total


class _Search:
    """Branch and bound over the classes of attributes, one attribute after the other."""

    def __init__(self, terms: list[_Term], order: list[str], *, pairs: bool) -> None:
        self.terms, self.order = terms, order
        self.best = -1
        #: For each attribute: for each term that looks at it, its class at every option.
        self.maps: list[dict[int, IntArray]] = []
        for depth, name in enumerate(order):
            users = [i for i, term in enumerate(terms) if name in term.scope]
            own = [terms[i].classes[name] for i in users]
            codes = np.unique(_numbered(own), return_index=True)[1]
            maps = {i: of[codes] for i, of in zip(users, own, strict=True)}
            if pairs:
                x, y = np.divmod(np.arange(len(codes) ** 2), len(codes))
                if depth == 0:  # a change and its reverse are as large
                    x, y = x[x <= y], y[x <= y]
                maps = {i: m[x] * (int(m.max()) + 1) + m[y] for i, m in maps.items()}
            self.maps.append(maps)

    def run(self) -> int:
        """Return the largest sum."""
        if not self.order:
            return 0
        self._descend(0, [()] * len(self.terms))
        return self.best

    def _descend(self, depth: int, settled: list[tuple[int, ...]]) -> None:
        maps = self.maps[depth]
        bound = np.zeros(len(next(iter(maps.values()))), dtype=np.int64)
        for i, (term, at) in enumerate(zip(self.terms, settled, strict=True)):
            bound += (
                term.bounds[len(at) + 1][at][maps[i]] if i in maps else term.bounds[len(at)][at]
            )
        if depth == len(self.order) - 1:
            self.best = max(self.best, int(bound.max()))
            return
        for option in np.argsort(-bound, kind="stable"):
            if bound[option] <= self.best:
                return
            deeper = [
                (*at, int(maps[i][option])) if i in maps else at for i, at in enumerate(settled)
            ]
            self._descend(depth + 1, deeper)
