"""Options of claims, checked once; frames of codes to patterns and back."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import SolverBackend
from bayesrisk.reconstruction.claims._cells import HOUSEHOLD, TENURES, possible_cells
from bayesrisk.reconstruction.claims.search.decide_block import Study
from bayesrisk.reconstruction.claims.search.lattice import subsets
from bayesrisk.reconstruction.claims.search.space import ClaimSpace, claim_space
from bayesrisk.reconstruction.solvers import make_solver
from bayesrisk.tables.published import PublishedTables
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Table

__all__ = ["About", "about_claims"]


_MOST_COLUMNS = 14
#: Partial assignments have a number each.
_MOST_CLAIMS = 2**62
_OCCUPIED = {"vacancy": [0]}


class _Kept(NamedTuple):
    """A space that was made, and what for."""

    key: tuple[Any, ...]
    tables: tuple[Table, ...]
    space: ClaimSpace


_KEPT: deque[_Kept] = deque(maxlen=4)


@dataclass(frozen=True)
class About:
    """What a call is about.

    Attributes
    ----------
    level : str
        Level of the places.
    columns : tuple of str
        Columns of claims.
    among : Mapping of str to tuple
        Codes of the records that claims are about.
    study : Study
        How places are studied.
    """

    level: str
    columns: tuple[str, ...]
    among: Mapping[str, tuple[int, ...]]
    study: Study

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


def about_claims(
    tables: PublishedTables,
    *,
    level: str | None = None,
    columns: Sequence[str] | None = None,
    max_columns: int | None = None,
    structural_rules: bool = True,
    tenure: str = "merged",
    cells: Sequence[int] | None = None,
    among: Mapping[str, Sequence[int]] | None = None,
    refuted: bool = False,
    n_solutions: int = 1,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
    rng: int = 0,
) -> About:
    """Return checked options of :func:`bayesrisk.reconstruction.claims.verification.claims`."""
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    workload = tables.workload
    about = workload.schema
    chosen_level = workload.levels[-1] if level is None else level
    check.choice(chosen_level, "level", workload.levels)
    chosen = about.names if columns is None else _columns(columns, about)
    if len(chosen) > _MOST_COLUMNS:
        raise ArgumentError(f"columns must be at most {_MOST_COLUMNS}, got {len(chosen)}")
    most = len(chosen)
    if max_columns is not None:
        most = check.integer(max_columns, "max_columns", lower=1)
    if time_limit is not None:
        time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
    for name, flag in (("structural_rules", structural_rules), ("refuted", refuted)):
        check.flag(flag, name)
    check.choice(tenure, "tenure", TENURES)
    if about.name != HOUSEHOLD and tenure != "merged":
        raise ArgumentError(f"tenure must be merged for schema {about.name!r}, got {shown(tenure)}")
    kept = _among(about, among)
    space = _space(
        about,
        tuple(workload.at(chosen_level).values()),
        structural_rules=bool(structural_rules),
        tenure=tenure,
        cells=cells,
        among=kept,
    )
    values = [
        int(size) + 1 for name, size in zip(about.names, space.sizes, strict=True) if name in chosen
    ]
    if prod(values) > _MOST_CLAIMS:
        raise ArgumentError(
            f"columns must have at most 2**62 partial assignments, got {prod(values)}"
        )
    how = Study(
        space,
        subsets([about.names.index(name) for name in chosen], min(most, len(chosen))),
        make_solver(solver),
        time_limit,
        check.integer(n_solutions, "n_solutions", lower=1, upper=10_000),
        check.integer(rng, "rng", lower=0),
        verify=True,
        refuted=bool(refuted),
    )
    return About(chosen_level, chosen, kept, how)


def _among(about: Schema, among: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[int, ...]]:
    """Return the codes of the records that claims are about."""
    given = among
    if given is None:
        given = _OCCUPIED if about.name == HOUSEHOLD else {}
    found = {}
    for name, codes in check.mapping(given, "among").items():
        check.choice(name, "among", about.names)
        attribute = about.attribute(name)
        limits = {"lower": attribute.first, "upper": attribute.last}
        array = check.count_array(
            check.items(codes, f"among[{name!r}]"), f"among[{name!r}]", **limits
        )
        found[name] = tuple(array.tolist())
    return found


def _columns(columns: Sequence[str], about: Schema) -> tuple[str, ...]:
    columns = check.texts(columns, "columns")
    if not columns:
        raise ArgumentError("columns must be a list of at least one name, got none")
    for name in columns:
        check.choice(name, "columns", about.names)
    if len(set(columns)) < len(columns):
        raise ArgumentError(f"columns must differ, got {', '.join(columns)}")
    return tuple(name for name in about.names if name in columns)


def _same_tables(some: tuple[Table, ...], other: tuple[Table, ...]) -> bool:
    return len(some) == len(other) and all(
        a is b or a == b for a, b in zip(some, other, strict=True)
    )


def _space(
    about: Schema,
    tables: tuple[Table, ...],
    *,
    structural_rules: bool,
    tenure: str,
    cells: Sequence[int] | None,
    among: Mapping[str, tuple[int, ...]],
) -> ClaimSpace:
    """Return the space of claims; the last few of the package's own rules are kept."""
    listed = None
    if cells is not None:
        listed = np.unique(check.count_array(cells, "cells", lower=0, upper=about.size - 1))
    key = (about, structural_rules, tenure, tuple(among.items()))
    for found in _KEPT:
        if listed is None and found.key == key and _same_tables(found.tables, tables):
            return found.space
    possible = listed
    if possible is None:
        possible = possible_cells(about, structural_rules=structural_rules, tenure=tenure)
    single = ["tenure"] if tenure == "four-way" else []
    space = claim_space(about, tables, cells=possible, single_codes=single, among=among)
    if listed is None:
        _KEPT.append(_Kept(key, tables, space))
    return space
