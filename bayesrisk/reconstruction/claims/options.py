"""Options of claims, checked once; frames of codes to patterns and back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.claims.search.decide import BlockStudy
from bayesrisk.reconstruction.claims.search.lattice import subsets
from bayesrisk.reconstruction.claims.search.space import HOUSEHOLD, TENURES, Rules, claim_space
from bayesrisk.reconstruction.solvers import make_solver
from bayesrisk.reconstruction.solvers.model import SolverBackend
from bayesrisk.tables.published import PublishedTables, assumed_true

_MOST_COLUMNS = 14
#: Partial assignments have a number each.
_MOST_CLAIMS = 2**62
_OCCUPIED = {"vacancy": [0]}


@dataclass(frozen=True)
class ClaimOptions:
    """How claims are searched for and verified, checked once.

    Attributes
    ----------
    level : str, optional
        Level of the places, by default the finest; tables of other levels are not used.
    columns : sequence of str, optional
        Columns that claims are about; all by default.
    max_columns : int, optional
        Most columns of a claim; no limit by default.
    structural_rules : bool, default True
        For households whether only combinations that can exist count, see
        :func:`household_valid`; False for every combination of the codes, as in the paper.
    tenure : {"merged", "cash", "four-way"}
        How tables that publish renters together are read: ``merged`` makes claims about renters
        with and without payment of rent together; ``cash`` assumes that all pay; ``four-way``
        makes claims about each, which the tables then cannot verify.
    cells : sequence of int, optional
        Cells of the schema that records can lie in, instead of those of the rules.
    among : mapping of str to sequence of int, optional
        Codes of the records that claims are about; by default occupied units of household
        schemas, and all records of others.
    refuted : bool, default False
        Whether refuted candidates are kept in the answer.
    n_solutions : int, default 1
        Data sets that candidates must hold in (K of the paper, which has 100); the verified claims
        do not depend on it.
    solver : str or SolverBackend, default "highs"
        For what linear relaxations do not settle, see :func:`make_solver`.
    time_limit : float, optional
        Seconds for a place, in all stages together; claims left open are ``undecided``, never
        verified.  It is kept to within the stage that runs when the time is over: well under a
        second with HiGHS.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true (``tables.laws``) are read as if they
        were, as somebody naive reads them.  Without it they are refused.
    rng : int, default 0
        Seed of the objectives near whose optima data sets are looked for; no decision depends on
        it.

    Examples
    --------
    >>> ClaimOptions(columns=["sex", "age"], max_columns=2).tenure
    'merged'
    """

    level: str | None = None
    columns: Sequence[str] | None = None
    max_columns: int | None = None
    structural_rules: bool = True
    tenure: str = "merged"
    cells: Sequence[int] | None = None
    among: Mapping[str, Sequence[int]] | None = None
    refuted: bool = False
    n_solutions: int = 1
    solver: str | SolverBackend = "highs"
    time_limit: float | None = None
    taken_as_true: bool = False
    rng: int = 0

    def __post_init__(self) -> None:
        found: dict[str, Any] = {
            "structural_rules": check.flag(self.structural_rules, "structural_rules"),
            "refuted": check.flag(self.refuted, "refuted"),
            "taken_as_true": check.flag(self.taken_as_true, "taken_as_true"),
            "n_solutions": check.integer(self.n_solutions, "n_solutions", lower=1, upper=10_000),
            "rng": check.integer(self.rng, "rng", lower=0),
        }
        check.choice(self.tenure, "tenure", TENURES)
        if self.columns is not None:
            found["columns"] = check.texts(self.columns, "columns")
        if self.max_columns is not None:
            found["max_columns"] = check.integer(self.max_columns, "max_columns", lower=1)
        if self.time_limit is not None:
            limit = check.scalar(self.time_limit, "time_limit", lower=0.0, bounds="(]")
            found["time_limit"] = limit
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @classmethod
    def given(cls, options: Mapping[str, Any]) -> "ClaimOptions":
        """Return options by name; one that does not exist is refused."""
        known = [field.name for field in fields(cls)]
        for option in check.mapping(options, "options"):
            if option not in known:
                raise ArgumentTypeError(
                    f"options must be those of find_claims ({', '.join(known)}), "
                    f"got {shown(option)}"
                )
        return cls(**options)


@dataclass(frozen=True)
class ResolvedOptions:
    """Options that were checked against tables.

    ``level`` is that of the places, ``columns`` are those of claims, ``among`` the codes of the
    records that claims are about, ``study`` how places are studied; ``taken_as_true`` says
    whether some counts are of a release that does not say that they are true.
    """

    level: str
    columns: tuple[str, ...]
    among: Mapping[str, tuple[int, ...]]
    study: BlockStudy
    taken_as_true: bool

    @property
    def grouped(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """For each column whose codes are put together the groups of more than one code."""
        space, found = self.study.space, {}
        for name in self.columns:
            group, first = space.groups[name], space.schema.attribute(name).first
            codes = np.arange(group.size) + first
            sets = [tuple(codes[group == g].tolist()) for g in range(int(group.max()) + 1)]
            if len(sets) < group.size:
                found[name] = tuple(s for s in sets if len(s) > 1)
        return found

    def blocks(self, tables: PublishedTables) -> Iterator[tuple[IntArray, BoolArray]]:
        """Yield the published cells of each place, and which are withheld."""
        names = list(tables.workload.at(self.level))
        counts = sp.csr_array(
            sp.hstack([tables.counts[self.level, n] for n in names], format="csr")
        )
        hidden = None
        if tables.suppressed:
            masks = [tables.hidden(self.level, n) for n in names]
            hidden = sp.csr_array(sp.hstack(masks, format="csr"))
        for row in range(counts.shape[0]):
            published = counts[[row]].toarray()[0].astype(np.int64)
            withheld = np.zeros(published.size, np.bool_)
            if hidden is not None:
                withheld = hidden[[row]].toarray()[0].astype(np.bool_)
            yield published, withheld

    def patterns(
        self, tables: PublishedTables, frame: pd.DataFrame
    ) -> list[tuple[NDArray[np.int16], IntArray]]:
        """Return the claims of a frame for each place: groups of codes, and multiplicities."""
        space = self.study.space
        for name in (self.level, "multiplicity"):
            if name not in frame:
                raise ArgumentError(f"candidates must have the column {name!r}")
        asked = [name for name in space.schema.names if name in frame]
        other = [n for n in asked if n not in self.columns and frame[n].notna().any()]
        if other:
            raise ArgumentError(f"columns must have {other[0]!r}, which candidates use")
        patterns = np.full((len(frame), len(space.schema.names)), -1, np.int16)
        for name in asked:
            about, values = space.schema.attribute(name), frame[name]
            given = values.notna().to_numpy()
            if not given.any():
                continue
            codes = check.count_array(
                values[given].to_numpy(np.int64), name, lower=about.first, upper=about.last
            )
            patterns[given, space.schema.names.index(name)] = space.groups[name][
                codes - about.first
            ]
        if len(frame) and (patterns < 0).all(axis=1).any():
            row = int((patterns < 0).all(axis=1).argmax())
            raise ArgumentError(f"candidates must give a column each, row {row} gives none")
        times = np.zeros(0, np.int64)
        if len(frame):
            times = check.count_array(frame["multiplicity"].to_numpy(), "multiplicity", lower=0)
        places = tables.geoids[self.level]
        at = np.searchsorted(places, frame[self.level].to_numpy(dtype=np.str_))
        known = np.append(places, "")[at] == frame[self.level].to_numpy(dtype=np.str_)
        if not known.all():
            unknown = frame[self.level].iloc[int((~known).argmax())]
            raise ArgumentError(f"{self.level} must be a place of the tables, got {shown(unknown)}")
        return [(patterns[at == place], times[at == place]) for place in range(places.size)]


def resolve_options(tables: PublishedTables, options: ClaimOptions) -> ResolvedOptions:
    """Return options that were checked against tables, with the space that claims are in."""
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    workload = tables.workload
    about = workload.schema
    level = workload.levels[-1] if options.level is None else options.level
    check.choice(level, "level", workload.levels)
    keys = [key for key in workload.tables if key[0] == level]
    assumed = assumed_true(tables.laws, keys, taken_as_true=options.taken_as_true)
    asked = about.names if options.columns is None else options.columns
    for name in asked:
        check.choice(name, "columns", about.names)
    if not asked:
        raise ArgumentError("columns must be a list of at least one name, got none")
    if len(set(asked)) < len(asked):
        raise ArgumentError(f"columns must differ, got {', '.join(asked)}")
    if len(asked) > _MOST_COLUMNS:
        raise ArgumentError(f"columns must be at most {_MOST_COLUMNS}, got {len(asked)}")
    if about.name != HOUSEHOLD and options.tenure != "merged":
        raise ArgumentError(
            f"tenure must be merged for schema {about.name!r}, got {shown(options.tenure)}"
        )
    among = options.among
    if among is None:
        among = _OCCUPIED if about.name == HOUSEHOLD else {}
    kept = {}
    for name, codes in check.mapping(among, "among").items():
        attribute = about.attributes[about.names.index(check.choice(name, "among", about.names))]
        given = check.items(codes, f"among[{name!r}]")
        lowest, highest = attribute.first, attribute.last
        array = check.count_array(given, f"among[{name!r}]", lower=lowest, upper=highest)
        kept[name] = tuple(array.tolist())
    listed = None
    if options.cells is not None:
        listed = np.unique(check.count_array(options.cells, "cells", lower=0, upper=about.size - 1))
    columns = tuple(name for name in about.names if name in asked)
    rules = Rules(options.structural_rules, options.tenure, tuple(kept.items()))
    space = claim_space(about, tuple(workload.tables[key] for key in keys), rules, cells=listed)
    values = [int(space.sizes[about.names.index(name)]) + 1 for name in columns]
    if prod(values) > _MOST_CLAIMS:
        raise ArgumentError(
            f"columns must have at most 2**62 partial assignments, got {prod(values)}"
        )
    most = len(columns) if options.max_columns is None else options.max_columns
    study = BlockStudy(
        space,
        subsets([about.names.index(name) for name in columns], min(most, len(columns))),
        make_solver(options.solver),
        options.time_limit,
        options.n_solutions,
        options.rng,
        verify=True,
        refuted=options.refuted,
    )
    return ResolvedOptions(level, columns, kept, study, assumed)
