"""Published tables: counts by place under their laws, exchanged, combined and selected."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, several
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError, quote
from bayesrisk.tables import exchange
from bayesrisk.tables._grammar import Key, Table
from bayesrisk.tables.cells import positions
from bayesrisk.tables.change import PopulationChange
from bayesrisk.tables.exchange import ABOVE, Content, Partitions
from bayesrisk.tables.likelihoods import UNBOUNDED, Likelihood, TrueCounts
from bayesrisk.tables.linked import HouseholdLink
from bayesrisk.tables.reading.reading import TableReading
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Workload


def checked_matrix(
    values: object, dtype: type[np.generic], shape: tuple[int, int], name: str
) -> sparse.csr_array:
    """Return a matrix of whole numbers or truth values in canonical sparse form."""
    array: Any = values if sparse.issparse(values) else check.as_array(values, name)
    if array.shape != shape:
        raise ShapeError(name, f"must have shape {shape}", shown=array.shape)
    if array.dtype.kind not in ("b" if dtype is np.bool_ else "iu"):
        raise ArgumentTypeError(name, f"must hold {np.dtype(dtype)}", shown=array.dtype)
    # A copy, so that a later change of the caller's array changes nothing here.
    is_sparse = isinstance(array, sparse.csr_array)
    matrix = array.astype(dtype) if is_sparse else sparse.csr_array(array, dtype=dtype, copy=True)
    matrix.sum_duplicates()
    if not matrix.data.all():
        matrix.eliminate_zeros()
    return matrix


def checked_places(geoids: object, schema: Schema, level: str, name: str) -> TextArray:
    """Return places of a level, which must be sorted, each once."""
    width = schema.geography.width(level)
    places = check.text_array(geoids, name)
    if places.ndim != 1 or np.any(places[1:] <= places[:-1]):
        raise ArgumentError(name, "must be one axis of sorted places, each once")
    if np.any(np.strings.str_len(places) != width):
        raise ArgumentError(name, f"must have {width} digits at level {level!r}")
    return places.astype(f"<U{max(width, 1)}")


@displayed
@dataclass(frozen=True, eq=False)
class PublishedTables(Tabular):
    """Counts of every cell of every table of a workload, at every place.

    Attributes
    ----------
    workload : Workload
        The counted tables.
    geoids : mapping of str to ndarray of str
        For each level of the workload its places, sorted, each once.
    counts : mapping of (str, str) to scipy.sparse.csr_array of int64
        By level and table, shape (places, cells).  Noisy counts may be negative.
    suppressed : mapping of (str, str) to scipy.sparse.csr_array of bool
        Withheld cells, with the same keys (or fewer) and shapes; their count is stored as 0.
    laws : mapping of (str, str) to Likelihood
        What a count says about the true one, for tables whose counts need not be true or are
        withheld by a rule. Tables are equal if their counts are, whatever the laws.
    made_up : bool
        Whether the people do not exist, as in :class:`Microdata`.
    """

    workload: Workload
    geoids: Mapping[str, TextArray]
    counts: Mapping[Key, sparse.csr_array]
    suppressed: Mapping[Key, sparse.csr_array] = field(default_factory=dict)
    laws: Mapping[Key, Likelihood] = field(default_factory=dict)
    made_up: bool = False

    def __post_init__(self) -> None:
        levels = check.instance(self.workload, Workload, "workload").levels
        for name in ("geoids", "counts", "suppressed", "laws"):
            check.mapping(getattr(self, name), name)
        if set(self.geoids) != set(levels):
            raise ArgumentError("geoids", f"must be of {', '.join(levels)}", got=list(self.geoids))
        geoids = {
            level: checked_places(
                self.geoids[level], self.workload.schema, level, f"geoids of {level!r}"
            )
            for level in levels
        }
        if set(self.counts) != set(self.workload.tables):
            missing = set(self.workload.tables) ^ set(self.counts)
            raise ArgumentError(
                "counts", "must be of every table", shown=f"other at {quote(min(missing, key=str))}"
            )
        counts, suppressed = {}, {}
        for key, table in self.workload.tables.items():
            shape = (len(geoids[key[0]]), len(table.cells))
            counts[key] = checked_matrix(self.counts[key], np.int64, shape, f"counts of {key}")
            if key in self.suppressed:
                hidden = checked_matrix(
                    self.suppressed[key], np.bool_, shape, f"suppressed of {key}"
                )
                suppressed[key] = hidden
                if abs(counts[key]).multiply(hidden).nnz:
                    raise ArgumentError(f"counts of {key} must be 0 where suppressed")
        for name in ("suppressed", "laws"):
            if not set(getattr(self, name)) <= set(counts):
                other = quote(list(getattr(self, name)))
                raise ArgumentError(name, "must be of known tables", shown=other)
        laws = {
            key: check.instance(law, Likelihood, f"laws[{key!r}]") for key, law in self.laws.items()
        }
        object.__setattr__(self, "geoids", MappingProxyType(geoids))
        object.__setattr__(self, "counts", MappingProxyType(counts))
        object.__setattr__(self, "suppressed", MappingProxyType(suppressed))
        object.__setattr__(self, "laws", MappingProxyType(laws))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublishedTables):
            return NotImplemented
        return (
            self.workload == other.workload
            and all(np.array_equal(v, other.geoids[k]) for k, v in self.geoids.items())
            and all(_equal(v, other.counts[k]) for k, v in self.counts.items())
            and all(_equal(self.hidden(*k), other.hidden(*k)) for k in self.workload.tables)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def signed(self) -> bool:
        """Whether some count is negative, as noisy counts can be."""
        return any(v.nnz and int(v.data.min()) < 0 for v in self.counts.values())

    @property
    def content(self) -> Content:
        """The content of the tables, as the exchange form writes it."""
        hidden = {key: self.hidden(*key) for key in self.workload.tables}
        return Content(
            self.workload, self.geoids, self.counts, hidden, self.signed, self.laws, self.made_up
        )

    def hidden(self, level: str, table: str) -> sparse.csr_array:
        """Return the mask of suppressed cells of a table, (places, cells) of bool."""
        key = self._key(level, table)
        if key in self.suppressed:
            return self.suppressed[key]
        return sparse.csr_array(self.counts[key].shape, dtype=np.bool_)

    def support(
        self, level: str, table: str, rows: IntArray | None = None, *, known_rule: bool = True
    ) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest true count that each published cell allows.

        ``rows`` are positions of places, by default all. ``known_rule`` says whether to use the
        rule by which counts are withheld. Both ends have shape (rows, cells); 2**52 means that
        there is no upper end.
        """
        key = self._key(level, table)
        chosen = np.arange(len(self.geoids[level])) if rows is None else rows
        published = self.counts[key][chosen].toarray()
        law = self.laws.get(key, TrueCounts())
        low, high = law.support(published)
        if key in self.suppressed:
            hidden = self.suppressed[key][chosen].toarray()
            least, most = law.withheld if known_rule else (0, UNBOUNDED)
            low, high = np.where(hidden, least, low), np.where(hidden, most, high)
        return low, high

    def count(self, level: str, table: str, geoid: str) -> NDArray[np.int64]:
        """Return the counts of a table at a place, one for each cell (0 if suppressed)."""
        row = self.row(level, geoid)
        counts: NDArray[np.int64] = self.counts[self._key(level, table)][[row], :].toarray()[0]
        return counts

    def parents(self, level: str) -> IntArray:
        """Return, for each of the finest places, the position of its place at a level."""
        places, finest = self.geoids[level], self.geoids[self.workload.levels[-1]]
        ancestors = self.workload.schema.geography.ancestors(finest, level)
        group = positions(ancestors, places)
        if (group < 0).any():
            first = str(ancestors[int(group.argmin())])
            raise ArgumentError(
                "tables", f"must have every {level}", shown=f"none of {quote(first)}"
            )
        return group

    def row(self, level: str, geoid: str) -> int:
        """Return the position of a place at its level."""
        check.choice(level, "level", tuple(self.geoids))
        places = self.geoids[level]
        if not isinstance(geoid, str):
            raise ArgumentTypeError("geoid", "must be a text", got=geoid)
        row = int(np.searchsorted(places, geoid))
        if row == len(places) or places[row] != geoid:
            raise ArgumentError("geoid", f"must be a place of level {level!r}", got=geoid)
        return row

    def _key(self, level: str, table: str) -> Key:
        check.choice(level, "level", self.workload.levels)
        check.choice(table, "table", tuple(self.workload.at(level)))
        return level, table

    def _answer(self) -> list[str]:
        total = sum(counts.shape[0] * counts.shape[1] for counts in self.counts.values())
        withheld, work = sum(part.nnz for part in self.suppressed.values()), self.workload
        number = f", {withheld:,} of them withheld" * bool(withheld)
        exact = (" ".join(k) for k in self.counts if self.laws.get(k, TrueCounts()).exact)
        lines = [f"{total:,} counts in {len(self.counts):,} tables of {work.schema.name}{number}."]
        levels = {
            k: f"{k} ({len(v):,} places): {several(work.at(k))}." for k, v in self.geoids.items()
        }
        made_up = ["Made up: none of these people exists."] * self.made_up
        return [*made_up, *lines, *levels.values(), f"Exact: {several(exact, 4) or 'none'}."]

    def _shown_frame(self) -> pd.DataFrame:
        key = max(self.counts, key=lambda key: self.counts[key].shape[1] > 1)  # the first of them
        places = self.workload.schema.geography.named(self.geoids[key[0]][:6])
        cells, counts = [*self.workload.tables[key].cells[:6]], self.counts[key][:6, :6].toarray()
        frame = pd.DataFrame(counts, places, cells).mask(self.hidden(*key)[:6, :6].toarray())
        return frame.astype("Int64").reset_index(names=" | ".join(key))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each count that is not a published zero.

        Columns are ``level``, ``geoid`` (code or name of the place), ``table``, ``cell`` and
        ``count`` (``Int64``; missing if suppressed), in the order of levels, tables, places and
        cells.
        """
        content = self.content
        pieces = [exchange.table_rows(content, key).to_pandas() for key in self.workload.tables]
        frame: pd.DataFrame = pd.concat(pieces, ignore_index=True)
        if self.workload.schema.geography.names:
            frame["geoid"] = self.workload.schema.geography.named(frame["geoid"])
        return frame.astype({"count": "Int64"})

    def write(self, folder: str | Path, *, replace: bool = True) -> None:
        """Write the tables as a folder, the exchange form of all commands.

        The folder must be new or empty, or have tables that may be replaced; any other is refused.
        If the writing stops at any moment, it is whole or unchanged.
        """
        exchange.write(self.content, check.path(folder, "folder"), replace=replace)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame | Sequence[pd.DataFrame], **assumptions: object
    ) -> PublishedTables:
        """Return the tables of data frames as an agency publishes them, long or wide.

        The frames have labels, and counts, ranges or marks as numbers or text. ``assumptions`` are
        as for :meth:`read`.

        Examples
        --------
        >>> frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["<5", "6", "7"]})
        >>> tables = PublishedTables.from_frame(frame, counts="exact", totals="complete")
        >>> [tables.support("all", name)[1].tolist() for _, name in tables.workload.tables]
        [[[4]], [[6]], [[7]]]
        """
        return cls(*TableReading.from_frame(frame, **assumptions).confirmed())

    @classmethod
    def read(
        cls, folder: str | Path | Sequence[str | Path], **assumptions: object
    ) -> PublishedTables:
        """Return the tables of a folder, or of text files as an agency publishes them.

        Parameters
        ----------
        folder : path-like, or sequence of path-like
            A folder of tables, read into memory, with parts by place joined; or one or more text
            files, each with a row for every count (long) or a column for every label (wide).
        **assumptions : object
            Reading of text files, if not as guessed: ``counts`` (``"exact"``, ``"nearest-5"`` or
            ``"random-3"``); ``marks`` (``{"*": "1-4"}``, ``"withheld"`` for any count, ``"note"``);
            ``totals`` (``"complete"`` if labels make them up, ``"partial"`` if not); ``columns``
            and ``labels`` by name; ``absent``; ``blank``; ``assume``, a TOML file of these; or a
            ``reading`` with all of them.

        Returns
        -------
        PublishedTables
            Tables with what each count says about the true one. In text files a place is a
            variable; each set of variables, with each law of its counts, is a table.

        Raises
        ------
        ArgumentError
            If a guess on which proofs depend was not confirmed; the message tells how.
        DataError
            If a part is missing or damaged, a place, table or cell is unknown, a row occurs twice,
            or the manifest does not allow a count. Also if a text of a published file is no count,
            no range and no mark. File, row and column are named.
        """
        files = check.paths(folder, "folder")
        text = files[0].is_file() or files[0].suffix in (".csv", ".tsv", ".txt")
        if len(files) != 1 or text or assumptions:
            return cls(*TableReading.read(files, **assumptions).confirmed())
        source = files[0]
        if not Partitions.there(source):
            return cls(*exchange.read(source))
        index = Partitions.read(source, "tables")
        names = [*([ABOVE] if index.above else []), *index.codes]
        return joined([cls.read(index.checked(name)) for name in names])

    @classmethod
    def combine(
        cls,
        releases: Mapping[str, PublishedTables] | Sequence[PublishedTables],
        *,
        change: PopulationChange | None = None,
        link: HouseholdLink | None = None,
    ) -> PublishedTables:
        """Return the tables of several releases of the same people, as those of one release.

        Table ``t`` of release ``r`` is called ``"r: t"`` and keeps its law. A table that repeats
        another one, in counts, places and a law without randomness, is kept once. The places are
        those of all releases, and finest places must include all where people live. Counts that a
        release does not have are withheld. Two tables are refused if they state different counts of
        one cell under the same law without randomness.

        Parameters
        ----------
        releases : mapping of str to PublishedTables, or sequence of them
            Tables of one schema by the name of their release (its number in a sequence).
        change : PopulationChange, optional
            Law of change between two years. The first of two releases is of the first year, the
            second of the later one. All become tables of the trajectories of both.
        link : HouseholdLink, optional
            Link of persons to households, if tables of both are combined. All become tables of its
            linked records.

        Examples
        --------
        >>> from bayesrisk.tables import Records, tabulate
        >>> schema = Schema.from_frame(pd.DataFrame({"sex": ["F", "M"]}))
        >>> records = Records.from_frame(pd.DataFrame({"sex": ["F", "M", "F"]}), schema=schema)
        >>> tables = tabulate(records, Workload.of(schema, ["sex"]))
        >>> joint = PublishedTables.combine({"spring": tables, "autumn": tables})
        >>> list(joint.workload.tables)
        [('all', 'spring: sex')]
        """
        tables = by_release(releases, PublishedTables)
        works = {name: part.workload for name, part in tables.items()}
        if change is not None:
            check.instance(change, PopulationChange, "change")
            if len(tables) != 2:
                raise ArgumentError("releases", "must be two with a change", shown=len(tables))
            years = zip(works.items(), (False, True), strict=True)
            works = {name: change.convert(origin, later=later) for (name, origin), later in years}
        if link is not None:
            works = {name: link.convert(origin) for name, origin in works.items()}
        whole = Workload.join(works)
        parts = {
            (level, f"{release}: {name}"): (part, (level, name))
            for release, part in tables.items()
            for level, name in part.workload.tables
        }
        geoids = {level: _common_places(tables.values(), level) for level in whole.levels}
        stated: dict[Key, _Stated] = {}
        for key, (part, origin) in parts.items():
            statement = _stated(part, origin, geoids[key[0]], key)
            rivals = [other for other in stated.values() if other.key[0] == key[0]]
            if not any(statement.repeats(other, whole.tables) for other in rivals):
                stated[key] = statement
        return cls(
            replace(whole, tables={key: whole.tables[key] for key in stated}),
            geoids,
            {key: statement.counts for key, statement in stated.items()},
            {key: statement.hidden for key, statement in stated.items() if statement.hidden.nnz},
            {key: statement.law for key, statement in stated.items() if not statement.law.plain},
            any(part.made_up for part in tables.values()),
        )


P = TypeVar("P")
#: Tables of one release, or of several of the same people, by name or in order.
SeveralTables: TypeAlias = (
    PublishedTables | Mapping[str, PublishedTables] | Sequence[PublishedTables]
)


def one_release(tables: SeveralTables) -> PublishedTables:
    """Return tables as those of one release; several are combined."""
    if isinstance(tables, PublishedTables):
        return tables
    if isinstance(tables, (Mapping, list, tuple)):
        return PublishedTables.combine(by_release(tables, PublishedTables, "tables"))
    raise ArgumentTypeError(
        "tables", "must be PublishedTables, or a list of them",
        shown=quote(tables) if check.is_path(tables) else type(tables).__name__,
        advice=": give its tables, release.tables" if hasattr(tables, "tables") else
        ": PublishedTables.read(file) reads published ones, tabulate(records, workload) "
        "counts records",
    )  # fmt: skip


def level_and_kind(
    scope: object, levels: tuple[str, ...], kinds: Sequence[str] = (), name: str = "scope"
) -> tuple[str, str]:
    """Return the level that a scope names, and the one of some ``kinds`` in which it is used.

    Without kinds a scope is a level. With kinds it is the finest level, or a larger one with a
    kind, such as ``tract-joint``. If no level is called ``block``, that name means the finest.
    """
    options = {level: (level, "") for level in (levels[-1:] if kinds else levels)}
    options |= {f"{level}-{kind}": (level, kind) for level in levels[:-1] for kind in kinds}
    if kinds and isinstance(scope, str) and scope == "block" and "block" not in levels:
        return levels[-1], ""
    return options[check.choice(scope, name, tuple(options))]


def read_tables(
    tables: SeveralTables,
    scope: str | None,
    *,
    taken_as_true: bool | None,
    kinds: Sequence[str] = (),
    alone: bool = False,
) -> tuple[PublishedTables, tuple[str, ...], bool]:
    """Return the tables of one release, the levels to read, and what this assumes.

    The levels are the finest one and then those from ``scope`` on (:func:`level_and_kind`; None is
    the finest), the largest first. If read ``alone``, only ``level`` is given. The last result is
    that of :func:`assumed_true`, for readers of ranges.
    """
    tables = one_release(tables)
    *larger, finest = levels = tables.workload.levels
    name = "level" if alone else "scope"
    top = finest if scope is None else level_and_kind(scope, levels, kinds, name)[0]
    read = (top,) if alone else (finest, *larger[levels.index(top) :])
    keys = [key for key in tables.workload.tables if key[0] in read]
    return tables, read, assumed_true(tables.laws, keys, taken_as_true=taken_as_true)


def by_release(
    releases: Mapping[str, P] | Sequence[P], kind: type[P], argument: str = "releases"
) -> dict[str, P]:
    """Return releases by name, those of a sequence by number; there must be one at least."""
    if isinstance(releases, Mapping):
        parts = {check.text(name, argument): part for name, part in releases.items()}
    elif isinstance(releases, Sequence) and not isinstance(releases, str | bytes):
        parts = {str(number): part for number, part in enumerate(releases, 1)}
    else:
        raise ArgumentTypeError(
            argument, "must be a mapping or a sequence", shown=type(releases).__name__
        )
    if not parts:
        raise ArgumentError(argument, "must have at least one", shown="none")
    return {n: check.instance(part, kind, f"{argument}[{n!r}]") for n, part in parts.items()}


def _common_places(parts: Iterable[PublishedTables], level: str) -> TextArray:
    """Return the places of a level in which there are places of any of some tables."""
    lists = []
    for part in parts:
        geography = part.workload.schema.geography
        finer = [name for name in part.geoids if geography.rank(name) >= geography.rank(level)]
        lists += [geography.ancestors(part.geoids[name], level) for name in finer]
    places: TextArray = np.unique(np.concatenate(lists))
    return places


@dataclass(frozen=True, eq=False)
class _Stated:
    """A table of a release over the places of several releases; missing counts are withheld."""

    key: Key
    places: TextArray
    counts: sparse.csr_array
    hidden: sparse.csr_array
    law: Likelihood

    def repeats(self, other: _Stated, tables: Mapping[Key, Table]) -> bool:
        """Return whether another table says the same; refuse one that says otherwise."""
        factors, theirs = tables[self.key].factors, tables[other.key].factors
        if self.law.random or self.law != other.law or factors.keys() != theirs.keys():
            return False
        if any(not np.array_equal(factors[name], theirs[name]) for name in factors):
            return False
        difference = sparse.csr_array(self.counts - other.counts)
        withheld = sparse.csr_array(self.hidden + other.hidden).astype(np.int64)
        clash = sparse.coo_array(difference - difference.multiply(withheld))
        clash.eliminate_zeros()
        if clash.nnz:
            row, cell = (int(axis[0]) for axis in clash.coords)
            raise DataError(
                f"releases contradict each other: {quote(tables[self.key].cells[cell])} of "
                f"{self.key[0]} {self.places[row]} is {self.counts[row, cell]} in table "
                f"{quote(self.key[1])} and {other.counts[row, cell]} in table {quote(other.key[1])}"
            )
        return _equal(self.counts, other.counts) and _equal(self.hidden, other.hidden)


def _stated(part: PublishedTables, origin: Key, places: TextArray, key: Key) -> _Stated:
    """Return a table over more places than its own."""
    listed, law = part.geoids[origin[0]], part.laws.get(origin, TrueCounts())
    absent = ~np.isin(places, listed)
    if absent.any() and law.rule is not None:
        raise ArgumentError(
            "releases",
            "must have the same places where a rule withholds counts",
            shown=f"none of {origin[0]} {places[absent][0]} in table {quote(key[1])}",
        )
    rows = np.searchsorted(places, listed), np.arange(len(listed))
    spread = sparse.csr_array((np.ones(len(listed), np.int64), rows), (len(places), len(listed)))
    counts = sparse.csr_array(spread @ part.counts[origin])
    hidden = sparse.csr_array(spread @ part.hidden(*origin).astype(np.int64))
    if absent.any():
        nothing = sparse.kron(absent[:, None].astype(np.int64), np.ones((1, counts.shape[1]), int))
        hidden = sparse.csr_array(hidden + nothing)
    return _Stated(key, places, counts, sparse.csr_array(hidden.astype(np.bool_)), law)


def joined(parts: Sequence[PublishedTables]) -> PublishedTables:
    """Return tables of different places as one, in order of their places.

    A level that only some parts have is made of those.
    """
    first, *rest = parts
    if not rest:
        return first
    workload = first.workload.union(*(part.workload for part in rest))
    geoids, order = {}, {}
    for level in workload.levels:
        places = np.concatenate([p.geoids[level] for p in parts if level in p.geoids])
        order[level] = np.argsort(places, kind="stable")
        geoids[level] = places[order[level]]
    counts, suppressed = {}, {}
    for key in workload.tables:
        having, rows = [p for p in parts if key in p.counts], order[key[0]]
        counts[key] = sparse.vstack([p.counts[key] for p in having], format="csr")[rows]
        if any(key in p.suppressed for p in having):
            hidden = sparse.vstack([p.hidden(*key) for p in having], format="csr")
            suppressed[key] = hidden[rows]
    laws = {key: law for part in parts for key, law in part.laws.items()}
    made_up = any(part.made_up for part in parts)
    return PublishedTables(workload, geoids, counts, suppressed, laws, made_up)


def select_rows(
    tables: PublishedTables, rows: Mapping[str, Any], workload: Workload | None = None
) -> PublishedTables:
    """Return the tables of some levels, or of a workload, of the places at some rows of each."""
    chosen = tables.workload.select(levels=list(rows)) if workload is None else workload
    return PublishedTables(
        chosen,
        {level: tables.geoids[level][index] for level, index in rows.items()},
        {key: tables.counts[key][rows[key[0]]] for key in chosen.tables},
        {k: v[rows[k[0]]] for k, v in tables.suppressed.items() if k in chosen.tables},
        {key: law for key, law in tables.laws.items() if key in chosen.tables},
        tables.made_up,
    )


def marked(tables: PublishedTables) -> PublishedTables:
    """Return the tables with the mark of made-up people; all else is shared."""
    shallow = copy.copy(tables)
    object.__setattr__(shallow, "made_up", True)
    return shallow


def under_laws(tables: PublishedTables, laws: Mapping[Key, Likelihood]) -> PublishedTables:
    """Return the tables with other laws; their counts, which were checked, are shared."""
    if laws == tables.laws:
        return tables
    shallow = copy.copy(tables)
    object.__setattr__(shallow, "laws", MappingProxyType(dict(laws)))
    return shallow


def assumed_true(
    laws: Mapping[Key, Likelihood], keys: Iterable[Key], *, taken_as_true: bool | None
) -> bool:
    """Return whether reading some tables as true counts assumes more than their laws say.

    ``laws`` are those of :class:`PublishedTables`. ``taken_as_true`` allows this assumption, and is
    None for bounds, which never make it. Counts that limit the true ones need no such assumption:
    the reader understands ranges.
    """
    permitted = taken_as_true is not None and check.flag(taken_as_true, "taken_as_true")
    inexact = [key for key in keys if key in laws and not laws[key].exact]
    if permitted or not inexact:
        return bool(inexact)
    refused = next((key for key in inexact if not laws[key].limiting), None)
    if refused is not None:
        better = "microdata_posterior concludes from this law; " if laws[refused].closed else ""
        way = "taken_as_true=True (on the command line --taken-as-true) reads"
        if taken_as_true is None:
            way = "no bounds follow from it; reconstruct and find_claims with taken_as_true=True ("
            way += "--only records --taken-as-true, --only claims --taken-as-true) read"
        law = f" of a release under the law {laws[refused].kind!r}: {better}{way}"
        advice = f"{law} its counts as if they were true"
        raise ArgumentError("tables", "must hold true counts", got=refused, advice=advice)
    return False


def _equal(a: sparse.csr_array, b: sparse.csr_array) -> bool:
    """Return whether two matrices in canonical form store the same."""
    return (
        a.shape == b.shape
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )
