"""Recoding: categories are merged and places enlarged; all published counts are true."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.base import BaseMechanism, Protected
from bayesrisk.release import MechanismSpec, SimulationOnly, TrueCounts
from bayesrisk.tables import Attribute, Microdata, Records, Table, Workload, tabulate
from bayesrisk.tables.cells import renumbered

_LONGEST = 60  # characters of a cell's name that lists all cells that it was made of
#: Groups of the codes of an attribute, or the smallest code of every group.
Groups = Sequence[Sequence[int]] | Sequence[int]


class Recode(BaseMechanism):
    """Publish merged categories and larger places; all counts stay true.

    Tables of levels finer than ``level`` are not published. Cells that differ only within a group
    of codes are added up, and their table is then called ``"NAME recoded"``. A table is not
    published if one of its cells cuts a group and the rest of the group is not in the table. Tables
    without a grouped attribute stay unchanged.

    Parameters
    ----------
    level : str, optional
        Finest published level; by default that of the workload.
    groups : mapping of str to sequence, optional
        Groups of an attribute: each a sequence of codes, while other codes stay separate; or, for
        ordered codes, the smallest code of every group.

    Notes
    -----
    The published counts are certain given the records. They protect only if other published tables
    do not give the same in more detail. :func:`microdata_posterior` and :func:`reconstruct` read
    the release unchanged.

    Examples
    --------
    >>> from bayesrisk.tables import Workload
    >>> recode = Recode(groups={"age": [0, 18, 65]})
    >>> tables = Workload.named("sf1-block", levels=["tract"]).select(tables=["P1", "P12"])
    >>> [(name, len(table.cells)) for name, table in recode.published(tables).at("tract").items()]
    [('P1', 1), ('P12 recoded', 6)]
    """

    def __init__(self, *, level: str | None = None, groups: Mapping[str, Groups] | None = None):
        if level is None and groups is None:
            raise ArgumentError("level", "or groups must be given", shown="neither")
        self._level = None if level is None else check.text(level, "level")
        self._groups: dict[str, list[list[int]] | list[int]] = {}
        if groups is not None:
            named = check.mapping(groups, "groups").items()
            self._groups = {check.text(n, "groups"): _stated(g, n) for n, g in named}
            if not self._groups:
                raise ArgumentError("groups", "must name at least one attribute", shown="none")
        parameters: dict[str, Any] = {"level": self._level, "groups": self._groups or None}
        # Of a table that was asked for nothing is known here but that chance has no part in it.
        super().__init__(MechanismSpec("recode", parameters, others=SimulationOnly(drawn=False)))
        self._last: tuple[Workload, Workload] | None = None

    def acts_within(self, workload: Workload) -> str | None:
        """Return the finest published level; all tables are sums over its places."""
        return self.published(workload).levels[-1]

    def published(self, workload: Workload) -> Workload:
        """Return the workload's tables that remain, recoded.

        Raises
        ------
        ArgumentError
            If no table remains, or level and groups do not fit the schema.
        """
        check.instance(workload, Workload, "workload")
        if self._last is None or self._last[0] is not workload:
            self._last = workload, self._recoded(workload)
        return self._last[1]

    def _recoded(self, workload: Workload) -> Workload:
        schema, rank = workload.schema, workload.schema.geography.rank
        finest = workload.levels[-1] if self._level is None else self._level
        code_groups = {n: _code_groups(schema.attribute(n), g, n) for n, g in self._groups.items()}
        recodes: dict[int, Table | None] = {}
        tables: dict[tuple[str, str], Table] = {}
        for (level, _), table in workload.tables.items():
            if rank(level) > rank(finest):
                continue
            if id(table) not in recodes:
                recodes[id(table)] = recoded_table(table, code_groups)
            recode = recodes[id(table)]
            if recode is None:
                continue
            if recode is not table and (level, recode.name) in workload.tables:
                raise ArgumentError(
                    "workload",
                    f"must not have a table {recode.name!r} beside {table.name!r}, whose recoded "
                    "table is called so",
                )
            tables[level, recode.name] = recode
        if not tables:
            raise ArgumentError(
                "level",
                "and groups must leave a table of the workload",
                shown=f"none of {len(workload.tables)} at {', '.join(workload.levels)}",
            )
        return Workload(schema, tables)

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        tables = tabulate(microdata, self.published(workload))
        # Every table of the release is published as it is.
        true = dict.fromkeys(tables.counts, TrueCounts())
        return Protected(tables, replace(self.spec, tables=true, others=TrueCounts()))


def recoded_table(table: Table, code_groups: Mapping[str, IntArray]) -> Table | None:
    """Return a table with cells merged until none splits a group of codes, or None if impossible.

    Parameters
    ----------
    table : Table
        Any table.
    code_groups : mapping of str to ndarray of int64
        For attributes the group of every code, numbered from 0.
    """
    members = [[i] for i in range(len(table.cells))]  # of which cells each is the sum
    factors: dict[str, IntArray] = dict(table.factors)
    for name in [name for name in code_groups if name in factors]:
        merged = _merged_cells(factors, name, code_groups[name])
        if merged is None:
            return None
        members = [[c for i in cells for c in members[i]] for cells, _ in merged]
        matrix = np.array([weights for _, weights in merged])
        first = [cells[0] for cells, _ in merged]
        factors = {n: matrix if n == name else weights[first] for n, weights in factors.items()}
    if all(len(cells) == 1 for cells in members) and len(members) == len(table.cells):
        return table
    names = []
    for cells in members:
        parts = [table.cells[c] for c in sorted(cells)]
        text = " + ".join(parts)
        names.append(text if len(text) <= _LONGEST else f"{parts[0]} + ... + {parts[-1]}")
    return Table(f"{table.name} recoded", tuple(names), factors)


def _merged_cells(
    factors: Mapping[str, IntArray], name: str, group: IntArray
) -> list[tuple[list[int], IntArray]] | None:
    """Return merged cells that split no group (members and weights), or None if impossible.

    Let w be the weights of this attribute in cells with the same weights of all others. Cells
    inside a group g are added, w' = sum of w, and must count every code of g once.
    """
    matrix = factors[name]
    first = np.unique(group, return_index=True)[1]
    cuts = matrix != matrix[:, first[group]]  # (cells, codes): weighs a code unlike its group
    rest = [weights for other, weights in factors.items() if other != name]
    rest_class = np.zeros(len(matrix), np.int64)
    if rest:
        rest_class = np.unique(np.hstack(rest), axis=0, return_inverse=True)[1].reshape(-1)
    whole: dict[tuple[int, bytes], int] = {}
    parts: dict[tuple[int, int], list[int]] = {}
    for cell in range(len(matrix)):
        if not cuts[cell].any():
            whole.setdefault((int(rest_class[cell]), matrix[cell].tobytes()), cell)
            continue
        inside = np.unique(group[matrix[cell] > 0])
        if inside.size != 1:  # it cuts one group and counts codes of another
            return None
        parts.setdefault((int(rest_class[cell]), int(inside[0])), []).append(cell)
    merged_cells = [([cell], matrix[cell]) for cell in whole.values()]
    for (kind, number), cells in parts.items():
        codes, weights = group == number, matrix[cells].max(axis=0)
        if (kind, (codes * weights.max()).tobytes()) in whole:
            continue  # the group is a cell already
        once = np.all(np.count_nonzero(matrix[np.ix_(cells, codes.nonzero()[0])], axis=0) == 1)
        if not once or np.ptp(weights[codes]) > 0:
            return None
        merged_cells.append((cells, weights))
    return sorted(merged_cells, key=lambda item: item[0][0])


# Groups of codes, as they are stated and over the codes of an attribute.


def _stated(groups: object, name: str) -> list[list[int]] | list[int]:
    """Return groups of codes, or each group's smallest code, checked as integers."""
    label = f"groups[{name!r}]"
    entries = check.items(groups, label)
    if not entries:
        raise ArgumentError(label, "must have at least one group", shown="none")
    if all(isinstance(one, (int, np.integer)) for one in entries):
        edges = [int(edge) for edge in entries]
        if any(a >= b for a, b in itertools.pairwise(edges)):
            raise ArgumentError(label, "must be increasing", got=edges)
        return edges
    lists = [[check.integer(c, label) for c in check.items(one, label)] for one in entries]
    codes = [code for one in lists for code in one]
    if not all(lists) or len(set(codes)) < len(codes):
        raise ArgumentError(label, "must hold a code once, and no empty group", got=lists)
    return lists


def _code_groups(attribute: Attribute, groups: list[list[int]] | list[int], name: str) -> IntArray:
    label = f"groups[{name!r}]"
    codes = np.arange(attribute.first, attribute.last + 1, dtype=np.int64)
    listed = [c for one in groups for c in (one if isinstance(one, list) else [one])]
    outside = [c for c in listed if not attribute.first <= c <= attribute.last]
    if outside:
        raise ArgumentError(
            label, f"must lie in [{attribute.first}, {attribute.last}]", shown=outside[0]
        )
    if isinstance(groups[0], int):
        if groups[0] != attribute.first:
            raise ArgumentError(label, f"must begin with {attribute.first}", shown=groups[0])
        return np.searchsorted(listed, codes, side="right").astype(np.int64) - 1
    number = codes - attribute.first + len(groups)  # codes of no group stay apart
    for index, one in enumerate(groups):
        number[np.array(one) - attribute.first] = index
    return renumbered(number)
