"""Workloads: published tables as linear counting queries, and their sensitivity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed, several
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ConfigError, quote
from bayesrisk.tables._grammar import Key as Key, Table, described, distinct_tables, parsed
from bayesrisk.tables.cells import code_kinds, joint_kinds
from bayesrisk.tables.schema import Schema, definition, definition_names

# -----------------------------------------------------------------------------
# How far one record can move the counts of a workload, exactly.
#
# A record's counts depend on its code of an attribute only through the class of codes with equal
# weights.  The change is a sum of terms, one for the tables that look at the same attributes: a
# small array over classes (pairs of classes, for a record that changes).  The largest sum is found
# by branch and bound: attributes are settled one after the other, and what every term can still
# add, each by itself, bounds the rest.  Nothing has the size of the schema.


Tables = list[tuple[Table, int]]
ByKey = Mapping[Key, Table]
_MAX_ENTRIES = 2**24  # entries of a term's array: pairs of about 4,000 classes
_SHARED_ENTRIES = 2**22  # entries up to which tables of one scope share a term


def largest_change(schema: Schema, tables: ByKey, kind: str, *, norm: int) -> int:
    """Return the largest change of all counts (its square for norm 2)."""
    geography = schema.geography
    root = {level for level in geography.levels if not geography.width(level)}
    moves = kind == "change-one"
    # A record that moves leaves one place and enters another, but at the root there is but one.
    separate = _merged(tables, lambda level: moves and level not in root)
    common = _merged(tables, lambda level: not moves or level in root)
    if moves and not common:
        return 2 * largest_change(schema, tables, "add-remove", norm=norm)
    mode = "single" if kind == "add-remove" else "pair"
    order = _order(schema.names, [*separate, *common])
    terms = [
        term
        for part, measure in ((separate, "apart"), (common, mode))
        for group in _grouped(part, pairs=measure != "single")
        for term in [_Term(group, order, mode=measure, norm=norm)]
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
            sizes[name] = int(joint_kinds(maps).max())
    return sorted(sizes, key=lambda name: sizes[name])


def _merged(tables: ByKey, keep: Callable[[str], bool]) -> Tables:
    """Return the different tables with the number of levels (of those kept) that have each."""
    subset = {key: table for key, table in tables.items() if keep(key[0])}
    return [(table, len(levels)) for table, levels in distinct_tables(subset)]


def _grouped(tables: Tables, *, pairs: bool) -> list[Tables]:
    """Return the tables that look at the same attributes together, while that stays small."""
    groups: dict[frozenset[str], list[Tables]] = {}
    for pair in tables:
        batches = groups.setdefault(frozenset(pair[0].factors), [])
        if batches and _entries(_refined([*batches[-1], pair]), pairs=pairs) <= _SHARED_ENTRIES:
            batches[-1].append(pair)
        else:
            batches.append([pair])
    return [group for batches in groups.values() for group in batches]


def _refined(group: Tables) -> dict[str, IntArray]:
    """Return, for each attribute, the class of every code; tables treat a class as one."""
    tables = [table for table, _ in group]
    return {n: code_kinds(tables, n, f.shape[1]) for n, f in tables[0].factors.items()}


def _entries(classes: dict[str, IntArray], *, pairs: bool) -> int:
    cells = prod(int(labels.max()) + 1 for labels in classes.values())
    return cells**2 if pairs else cells


class _Term:
    """Changes of the tables of one scope, as an array over classes, and their maxima."""

    def __init__(self, group: Tables, order: list[str], *, mode: str, norm: int) -> None:
        classes = _refined(group)
        entries = _entries(classes, pairs=mode != "single")
        if entries > _MAX_ENTRIES:
            raise ArgumentError(
                "table",
                f"{group[0][0].name!r} must have at most {_MAX_ENTRIES} classes of codes (or "
                "pairs of them) to compare",
                shown=entries,
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
        right = sparse.csc_array(table.factors[name][:, chosen])[:, np.tile(np.arange(size), every)]
        columns = sparse.csc_array(left.multiply(right))
    return columns


def _change(values: sparse.csc_array, mode: str, norm: int) -> IntArray:
    """Return the size of every column, of every two apart, or of their difference."""
    weights = np.asarray((values**norm).sum(axis=0))
    if mode == "single":
        return weights
    sums: IntArray = weights[:, None] + weights[None, :]
    if mode == "apart":
        return sums
    if norm == 2 or not values.nnz or int(values.data.max()) <= 1:
        # |a - b|**2 = |a|**2 + |b|**2 - 2 a.b, which for zeros and ones is the L1 distance too.
        sums -= 2 * sparse.csr_array(values.T @ values).toarray()
        return sums
    total = np.zeros_like(sums)
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
            classes = [terms[i].classes[name] for i in users]
            codes = np.unique(joint_kinds(classes), return_index=True)[1]
            maps = {i: labels[codes] for i, labels in zip(users, classes, strict=True)}
            if pairs:
                x, y = np.divmod(np.arange(len(codes) ** 2), len(codes))
                if depth == 0:  # a change and its reverse are as large
                    x, y = x[x <= y], y[x <= y]
                maps = {i: m[x] * (int(m.max()) + 1) + m[y] for i, m in maps.items()}
            self.maps.append(maps)

    def run(self) -> int:
        if not self.order:
            return 0
        self._descend(0, [()] * len(self.terms))
        return self.best

    def _descend(self, depth: int, settled: list[tuple[int, ...]]) -> None:
        maps = self.maps[depth]
        bound = np.zeros(len(next(iter(maps.values()))), dtype=np.int64)
        for i, (term, key) in enumerate(zip(self.terms, settled, strict=True)):
            bound += (
                term.bounds[len(key) + 1][key][maps[i]] if i in maps else term.bounds[len(key)][key]
            )
        if depth == len(self.order) - 1:
            self.best = max(self.best, int(bound.max()))
            return
        for option in np.argsort(-bound, kind="stable"):
            if bound[option] <= self.best:
                return
            deeper = [
                (*key, int(maps[i][option])) if i in maps else key for i, key in enumerate(settled)
            ]
            self._descend(depth + 1, deeper)


_KINDS = ("add-remove", "change-one", "change-in-place")


@displayed
@dataclass(frozen=True, eq=False)
class Workload:
    """The tables to be counted, each at a level of geography.

    Attributes
    ----------
    schema : Schema
        Schema of the records.
    tables : mapping of (str, str) to Table
        By level and name of the table; coarse levels first, with one order of tables at all levels.
    """

    schema: Schema
    tables: Mapping[Key, Table]

    def __post_init__(self) -> None:
        if not check.mapping(self.tables, "tables"):
            raise ArgumentError("tables", "must have at least one table", shown="none")
        rank = check.instance(self.schema, Schema, "schema").geography.rank
        for key, table in self.tables.items():
            if not isinstance(key, tuple) or len(key) != 2:
                raise ArgumentTypeError("tables", "must be by (level, name)", got=key)
            level, name = key
            rank(level)
            check.instance(table, Table, f"tables[{key!r}]")
            if name != table.name:
                raise ArgumentError(
                    "tables", "must be filed by name", got=table.name, advice=f" as {quote(name)}"
                )
            table.check_schema(self.schema)
        order: dict[str, int] = {}
        for _, name in sorted(self.tables, key=lambda key: rank(key[0])):
            order.setdefault(name, len(order))
        keys = sorted(self.tables, key=lambda key: (rank(key[0]), order[key[1]]))
        object.__setattr__(self, "tables", MappingProxyType({k: self.tables[k] for k in keys}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return self.schema == other.schema and list(self.tables.items()) == list(
            other.tables.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def _answer(self) -> list[str]:
        cells = sum(len(table.cells) for table in self.tables.values())
        return [
            f"{len(self.tables):,} tables of {self.schema.name}, of {cells:,} cells at each place.",
            *(f"{level}: {several(self.at(level))}." for level in self.levels),
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the definition to another process, which makes and checks the object again."""
        return Workload, (self.schema, dict(self.tables))

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels at which there is a table, coarse to fine."""
        return tuple(dict.fromkeys(level for level, _ in self.tables))

    def at(self, level: str) -> dict[str, Table]:
        """Return the tables of a level by name."""
        check.choice(level, "level", self.levels)
        return {name: t for (other, name), t in self.tables.items() if other == level}

    def distinct(self) -> list[tuple[Table, list[str]]]:
        """Return the distinct tables, each with its levels."""
        return distinct_tables(self.tables)

    @property
    def n_cells(self) -> int:
        """Number of cells of all tables."""
        return sum(len(table.cells) for table in self.tables.values())

    def incidence(self, cells: ArrayLike, *, level: str) -> sparse.csr_array:
        """Return the weights of records in all cells of a level, tables one under the other."""
        blocks = [t.incidence(self.schema, cells) for t in self.at(level).values()]
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))

    def union(self, *workloads: "Workload") -> "Workload":
        """Return the workload with the tables of all, which must have one schema.

        A table in several workloads must be the same in all.
        """
        tables = dict(self.tables)
        for other in workloads:
            if other.schema != self.schema:
                raise ArgumentError(
                    f"schemas must be the same, "
                    f"got {quote(self.schema.name)} and {quote(other.schema.name)}"
                )
            for key, table in other.tables.items():
                if tables.setdefault(key, table) != table:
                    raise ArgumentError(
                        "table", f"{key[1]!r} at {key[0]!r} differs in two workloads"
                    )
        return Workload(self.schema, tables)

    @classmethod
    def join(cls, workloads: "Mapping[str, Workload]") -> "Workload":
        """Return named workloads of one schema as one: table ``t`` of ``w`` is called ``w: t``."""
        tables = {
            (level, f"{name}: {title}"): replace(table, name=f"{name}: {title}")
            for name, work in workloads.items()
            for (level, title), table in work.tables.items()
        }
        return cls(next(iter(workloads.values())).schema, tables)

    def select(
        self,
        *,
        levels: Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
        without: Sequence[str] = (),
    ) -> "Workload":
        """Return the workload of some of the tables: of these levels and names, without others.

        By default all levels and names are kept.
        """
        names = tuple(dict.fromkeys(name for _, name in self.tables))
        levels = None if levels is None else check.texts(levels, "levels")
        tables = None if tables is None else check.texts(tables, "tables")
        without = check.texts(without, "without")
        for level in levels or ():
            check.choice(level, "levels", self.levels)
        for name in (*(tables or ()), *without):
            check.choice(name, "tables", names)
        subset = {
            (level, name): table
            for (level, name), table in self.tables.items()
            if (levels is None or level in levels)
            and (tables is None or name in tables)
            and name not in without
        }
        return Workload(self.schema, subset)

    def sensitivity(self, kind: str, *, norm: int) -> Fraction | float:
        """Return the largest change of all counts by one record: exact, or an L2 root.

        Parameters
        ----------
        kind : str
            ``"add-remove"``: a record is added or removed; ``"change-one"``: it becomes any other
            record, also in another place; ``"change-in-place"``: its codes change, but not its
            place.
        norm : int
            1 for the sum of absolute changes, 2 for the square root of the sum of their squares.
        """
        change = self.largest_change(kind, norm=norm)
        return Fraction(change) if norm == 1 else float(change) ** 0.5

    def largest_change(self, kind: str, *, norm: int) -> int:
        """Return the L1 sensitivity (norm 1) or the square of the L2 one (norm 2), exactly."""
        check.choice(kind, "kind", _KINDS)
        if not isinstance(norm, int) or norm not in (1, 2):
            raise ArgumentError("norm", "must be 1 or 2", got=norm)
        return largest_change(self.schema, self.tables, kind, norm=norm)

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as plain values, in the grammar of the definition files."""
        return {"schema": self.schema.to_dict(), "tables": described(self.schema, self.tables)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Workload":
        """Return the workload of :meth:`to_dict`, or of a definition in the same grammar.

        ``values`` has ``schema``, ``tables``, and optionally ``levels``, ``recodes``,
        ``iterations``.
        """
        return cls(*parsed(values))

    @classmethod
    def of(
        cls,
        schema: Schema,
        margins: Sequence[str | Sequence[str]] | None = None,
        *,
        levels: Sequence[str] | None = None,
    ) -> "Workload":
        """Return the workload of margins: each counts records by some of the attributes.

        Each margin has a table named after its attributes (``"region * age"``, ``"total"``). Its
        cells are named by labels, or by codes if there are none (``"North, 34"``), in the order of
        the cross, with the last attribute fastest.

        Parameters
        ----------
        schema : Schema
            Schema of the records.
        margins : sequence of str or of sequences of str, optional
            The attributes that each table crosses; none, ``()``, is the total. By default the
            total, every attribute, and every pair of them.
        levels : sequence of str, optional
            Levels of the geography at which all are published; by default the finest.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"region": ["North", "South"], "sex": ["F", "M"]})
        >>> work = Workload.of(Schema.from_frame(frame), [(), "region", ("region", "sex")])
        >>> [name for _, name in work.tables], work.tables["all", "region * sex"].cells[:2]
        (['total', 'region', 'region * sex'], ('North, F', 'North, M'))
        """
        from bayesrisk.tables import _documents  # pydantic is slow to import

        check.instance(schema, Schema, "schema")
        tables = []
        if margins is None:
            margins = [margin for size in range(3) for margin in combinations(schema.names, size)]
        for i, item in enumerate(check.items(margins, "margins")):
            names = (item,) if isinstance(item, str) else check.texts(item, f"margins[{i}]")
            for name in names:
                check.choice(name, f"margins[{i}]", schema.names)
            tables.append(_documents.completed({"cross": list(names)}))
        places = [schema.geography.finest] if levels is None else check.texts(levels, "levels")
        return cls.from_dict({"schema": schema.to_dict(), "levels": places, "tables": tables})

    @classmethod
    def read(
        cls, path: str | Path, *, schema: Schema | None = None, levels: Sequence[str] | None = None
    ) -> "Workload":
        r"""Return the workload in a TOML file: a schema, and tables in the compact grammar.

        Parameters
        ----------
        path : path-like
            The file, of at most 256 KiB. It has ``schema``, the path of a schema's file beside it
            or the name of a built-in one, and ``[[tables]]``. Each table has ``cross`` (attributes,
            or attributes with groups of codes) and optionally ``name``, ``where``, ``weight``,
            ``cells`` and ``levels``. ``levels`` apply to all tables, by default the finest;
            ``recodes`` are optional.
        schema : Schema, optional
            Schema of the records, in place of the file's.
        levels : sequence of str, optional
            Levels at which every table is published, in place of those in the file.

        Examples
        --------
        >>> import tempfile
        >>> about = 'name = "ward"\nattributes = [{ name = "sex", labels = ["F", "M"] }]'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "ward.toml").write_text(about)
        ...     file = Path(folder) / "tables.toml"
        ...     _ = file.write_text('schema = "ward.toml"\ntables = [{ cross = ["sex"] }]')
        ...     Workload.read(file).tables["all", "sex"].cells
        ('F', 'M')
        """
        from bayesrisk.tables import _documents  # pydantic is slow to import

        file = check.path(path, "path")
        values = _documents.read_workload(file)
        schema = _named_schema(values["schema"], file) if schema is None else schema
        place = check.instance(schema, Schema, "schema").geography
        tables = [_documents.completed(entry) for entry in values["tables"]]
        if levels is not None:
            values["levels"] = list(check.texts(levels, "levels"))
            for entry in tables:
                entry.pop("levels", None)
        usual = values["levels"] or [place.finest]
        document = values | {"schema": schema.to_dict(), "levels": usual, "tables": tables}
        try:
            for level in [*usual, *(name for entry in tables for name in entry.get("levels", ()))]:
                place.rank(level)
            return cls.from_dict(document)
        except ArgumentError as error:
            raise ConfigError(f"{file}: {error}") from error

    @staticmethod
    def available() -> list[str]:
        """Return the names of the built-in workloads, sorted."""
        return sorted(_homes())

    @classmethod
    def named(
        cls, name: str, *, levels: Sequence[str] | None = None, geography: str | None = None
    ) -> "Workload":
        """Return a built-in workload, one of :meth:`available`.

        ``levels`` are those at which every table is published, in place of the default.
        ``geography`` is as for :meth:`Schema.named`.

        Examples
        --------
        >>> blocks = Workload.named("sf1-block")
        >>> len(blocks.tables), blocks.n_cells
        (18, 775)
        >>> Workload.named("pl94", levels=["tract", "block"]).sensitivity("change-one", norm=1)
        Fraction(44, 1)
        """
        home, usual = _homes()[check.choice(name, "name", tuple(sorted(_homes())))]
        places = Schema.named(home, geography=geography).geography
        if levels is None:
            levels = [level for level in usual if level in places.levels]
        names = check.texts(levels, "levels")
        if not names:
            raise ArgumentError("levels", "must be at least one", shown="none")
        for level in names:
            places.rank(level)
        return _built_in(name, names, geography)


@cache
def _built_in(name: str, levels: tuple[str, ...], geography: str | None) -> Workload:
    home, _ = _homes()[name]
    values = definition(home)
    return Workload.from_dict(
        {
            "schema": Schema.named(home, geography=geography).to_dict(),
            "recodes": values.get("recodes", {}),
            "iterations": values.get("iterations", {}),
            "levels": list(levels),
            "tables": values["workloads"][name]["tables"],
        }
    )


@cache
def _homes() -> dict[str, tuple[str, list[str]]]:
    """Return the definition file of every built-in workload, and the usual levels."""
    return {
        name: (home, entry["levels"])
        for home in definition_names()
        for name, entry in definition(home)["workloads"].items()
    }


def _named_schema(name: str | None, file: Path) -> Schema:
    """Return the schema that a file of tables names: a built-in one, or that of another file."""
    names = definition_names()
    if name in names:
        return Schema.named(name)
    if name is None or not name.endswith(".toml"):
        raise ConfigError(
            f"{file}: schema must be a .toml file or one of {', '.join(names)}, got {quote(name)}"
        )
    return Schema.read(file.parent / name)
