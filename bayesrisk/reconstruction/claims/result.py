"""Claims about places, and their proofs, as frames and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import BoolArray, CodeArray
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.interfaces import AttackResult
from bayesrisk.reconstruction.claims.search.decide import (
    REFUTED,
    UNDECIDED,
    VERIFIED,
    AskedClaims,
    BlockClaims,
    ClaimProblem,
)
from bayesrisk.reconstruction.claims.search.lattice import matches
from bayesrisk.reconstruction.records.problem import check_records
from bayesrisk.tables.cells import positions
from bayesrisk.tables.schema import Schema

STATUS = {VERIFIED: Status.VERIFIED, REFUTED: Status.REFUTED, UNDECIDED: Status.UNDECIDED}


@displayed
@dataclass(frozen=True)
class Claims(AttackResult, Tabular):
    """Claims about the records of places, with the status of each: verified, refuted or undecided.

    Attributes
    ----------
    claims : pandas.DataFrame
        A row for each claim. It has the place (named after its level), the code of each column
        (missing for any; the first of codes that no table separates), and ``multiplicity``.
        ``status`` is ``verified``, ``refuted`` or ``undecided``. ``n_columns`` is the number of
        columns, and ``n_needed`` the smallest number that implies the others. ``readable`` says
        whether the claim is a sum of cells of one table; ``readable_here`` says so after cells
        excluded by zeros are dropped. If published cells allow several counts, ``at_least`` marks
        claims about a least number of records, not an exact one.
    blocks : pandas.DataFrame
        A row for each place. ``status`` is ``decided``, ``undecided`` (a limit left claims open),
        ``infeasible``, ``unknown`` (a limit left no solution) or ``empty``. ``records`` is the
        number of records that claims can be about, in the data set of ``rows``. ``live_cells``,
        ``verified`` and ``undecided`` are numbers; ``conflict`` names the published cells that
        contradict each other.
    kinds : pandas.DataFrame
        Records of one data set that fits the tables, in the same codes: a row for each set of equal
        records, with their number ``multiplicity``.
    level : str
        Level of the places.
    columns : tuple of str
        Columns of the claims.
    grouped : Mapping of str to tuple
        For each column with merged codes, the groups of codes.
    among : Mapping of str to tuple
        Codes of the records that claims are about; empty for all records.
    schema : Schema
        Schema of the records.
    taken_as_true : bool
        Whether counts of a release were taken as true without being so. Then ``verified`` claims
        hold only if they were true.
    """

    stated_by = "bayesrisk.risk.statements.results:stated_by_claims"

    claims: pd.DataFrame
    blocks: pd.DataFrame
    kinds: pd.DataFrame
    level: str
    columns: tuple[str, ...]
    grouped: Mapping[str, tuple[tuple[int, ...], ...]]
    among: Mapping[str, tuple[int, ...]]
    schema: Schema
    taken_as_true: bool = False

    def _answer(self) -> list[str]:
        tally = self.claims["status"].value_counts()
        verified = self.claims[self.claims["status"] == Status.VERIFIED]
        places = verified[self.level].nunique()
        clause = "must be true whatever the records are"
        if self.taken_as_true:
            clause = "would be true if the published counts were"
        one = int(one_record(verified).sum())
        return [
            f"{len(verified):,} claims {clause}, in {places:,} of {len(self.blocks):,} places; "
            f"{one:,} of them {'is' if one == 1 else 'are'} about exactly one record.",
            f"{int(tally.get(Status.UNDECIDED, 0)):,} undecided, "
            f"{int(tally.get(Status.REFUTED, 0)):,} refuted. "
            "See to_frame(), and claim_sentences() for words.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The records of the example data set, one row each."""
        times = self.kinds["multiplicity"].to_numpy()
        check_records(times, "a frame")
        rows = self.kinds.drop(columns="multiplicity")
        return rows.loc[rows.index.repeat(times)].reset_index(drop=True)

    def to_frame(
        self, *, status: str | None = Status.VERIFIED, readable: str | None = None
    ) -> pd.DataFrame:
        """Return claims, one row each, with the columns of ``claims``.

        Parameters
        ----------
        status : str, optional
            Status of the claims to keep, by default ``"verified"``; None for all.
        readable : str, optional
            Claims to leave out because a table states them: ``"table"`` for claims that are sums of
            cells of a table, ``"here"`` also after excluded cells are dropped. By default none.
        """
        keep = np.ones(len(self.claims), np.bool_)
        if status is not None:
            check.choice(status, "status", tuple(STATUS.values()))
            keep &= (self.claims["status"] == status).to_numpy()
        if readable is not None:
            check.choice(readable, "readable", ("table", "here"))
            column = {"table": "readable", "here": "readable_here"}[readable]
            keep &= ~self.claims[column].to_numpy()
        return self.claims[keep].reset_index(drop=True)

    def covered(
        self,
        *,
        rows: pd.DataFrame | None = None,
        singletons: bool = True,
        count: str = "n_columns",
        readable: str | None = "here",
    ) -> pd.DataFrame:
        """Return the number of records that verified claims describe, by number of columns.

        A row for each place and number of columns has ``records``, ``covered`` and ``claims``.

        Parameters
        ----------
        rows : pandas.DataFrame, optional
            The records (place and columns); by default those of the data set that was found.
        singletons : bool, default True
            Whether to count only claims about one record (Table 2 of the paper; else Table 3).
        count : str, default "n_columns"
            ``"n_columns"`` as in the paper, ``"n_needed"`` without implied columns.
        readable : str, optional
            Claims to leave out, as for :meth:`to_frame`.
        """
        check.choice(count, "count", ("n_columns", "n_needed"))
        check.flag(singletons, "singletons")
        frame = self.to_frame(readable=readable)
        if singletons:
            frame = frame[one_record(frame)]
        records, times = self.kinds, self.kinds["multiplicity"].to_numpy()
        if rows is not None:
            records, times = check.frame(rows, "rows"), np.ones(len(rows), np.int64)
        missing = [c for c in (self.level, *self.columns) if c not in records]
        if missing:
            raise ArgumentError(f"rows must have the column {missing[0]!r}")
        most = range(1, len(self.columns) + 1)
        # All places at once: a frame for each takes longer than the counting.
        by_place, grouped = (f.groupby(self.level).indices for f in (frame, records))
        claims, people, width = self.coded(frame), self.coded(records), frame[count].to_numpy()
        nobody = np.zeros(0, np.int64)
        lines = []
        for place in self.blocks[self.level]:
            part, members = grouped.get(place, nobody), by_place.get(place, nobody)
            hit, columns = matches(people[part], claims[members]), width[members]
            for k in most:
                chosen = hit[columns == k]
                covered = int(times[part] @ chosen.any(axis=0)) if len(chosen) else 0
                lines.append((place, k, int(times[part].sum()), covered, len(chosen)))
        names = [self.level, "columns", "records", "covered", "claims"]
        return pd.DataFrame(lines, columns=names)

    def coded(self, frame: pd.DataFrame) -> NDArray[np.int16]:
        """Return the columns' codes: one for all that no table separates, -1 for missing."""
        patterns = np.full((len(frame), len(self.columns)), -1, np.int16)
        for column, name in enumerate(self.columns):
            codes = frame[name].fillna(-1).to_numpy(np.int16)
            for group in self.grouped.get(name, ()):
                codes = np.where(np.isin(codes, group), np.int16(group[0]), codes)
            patterns[:, column] = codes
        return patterns


def several(claims: pd.DataFrame) -> BoolArray:
    """Return a mask of claims about a least number of records, not an exact one."""
    if "at_least" not in claims:
        return np.zeros(len(claims), np.bool_)
    return claims["at_least"].to_numpy(np.bool_)


def one_record(claims: pd.DataFrame) -> BoolArray:
    """Return a mask of claims about exactly one record."""
    return np.asarray((claims["multiplicity"] == 1).to_numpy() & ~several(claims))


def collected(problem: ClaimProblem, studies: Sequence[BlockClaims]) -> Claims:
    """Return the claims of all places as one result."""
    level, places = problem.level, problem.places.astype(object)
    patterns, decision = _joined(studies, "patterns"), _joined(studies, "decision")
    frame = _decoded(problem, np.repeat(places, [len(f.patterns) for f in studies]), patterns)
    frame["multiplicity"] = _joined(studies, "multiplicity")
    if problem.bounds:
        frame["at_least"] = _joined(studies, "at_least")
    frame["status"] = np.select(
        [decision == code for code in STATUS], list(STATUS.values()), default=""
    ).astype(object)
    frame["n_columns"] = (patterns >= 0).sum(axis=1)
    frame["n_needed"] = _joined(studies, "needed")
    frame["readable"] = _joined(studies, "readable")
    frame["readable_here"] = _joined(studies, "readable_here")
    blocks = pd.DataFrame(
        {
            level: places,
            "status": [f.status for f in studies],
            "records": [int(f.times.sum()) for f in studies],
            "live_cells": [f.live for f in studies],
            "verified": [int((f.decision == VERIFIED).sum()) for f in studies],
            "undecided": [int((f.decision == UNDECIDED).sum()) for f in studies],
            "conflict": [f.conflict for f in studies],
        }
    )
    per_row = np.repeat(places, [len(f.rows) for f in studies])
    kinds = _decoded(problem, per_row, _joined(studies, "rows"))
    kinds["multiplicity"] = _joined(studies, "times")
    return Claims(
        frame, blocks, kinds, level, problem.columns, _grouped(problem), problem.among,
        problem.space.schema, problem.taken_as_true,
    )  # fmt: skip


def _joined(studies: Sequence[BlockClaims], name: str) -> NDArray[Any]:
    """Return one concatenated array for all places, empty without claims."""
    parts = [getattr(f, name) for f in studies or [BlockClaims(Status.EMPTY)]]
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


def _decoded(
    problem: ClaimProblem, places: NDArray[np.object_], patterns: CodeArray
) -> pd.DataFrame:
    """Return places and codes (the first of each group) as a frame; missing means any code."""
    space = problem.space
    columns: dict[str, object] = {problem.level: places}
    for name in problem.columns:
        axis = space.schema.names.index(name)
        group = patterns[:, axis] if len(places) else np.zeros(0, np.int16)
        codes = space.cells.first[name][np.maximum(group, 0)] + space.schema.attribute(name).first
        columns[name] = pd.arrays.IntegerArray(codes.astype(np.int16), group < 0)
    return pd.DataFrame(columns)


def _grouped(problem: ClaimProblem) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return, for each column with merged codes, its groups of more than one code."""
    groups = {}
    for name in problem.columns:
        group, first = problem.space.cells.bins[name], problem.space.schema.attribute(name).first
        sets = [tuple((np.flatnonzero(group == g) + first).tolist()) for g in np.unique(group)]
        if len(sets) < group.size:
            groups[name] = tuple(s for s in sets if len(s) > 1)
    return groups


def encoded(problem: ClaimProblem, frame: pd.DataFrame) -> list[AskedClaims]:
    """Return each place's claims from a frame, as groups of codes with multiplicities."""
    space, level = problem.space, problem.level
    for name in (level, "multiplicity"):
        if name not in frame:
            raise ArgumentError(f"candidates must have the column {name!r}")
    patterns = np.full((len(frame), len(space.schema.names)), -1, np.int16)
    for column, name in enumerate(space.schema.names):
        stated = frame[name].notna().to_numpy() if name in frame else np.zeros(0, np.bool_)
        if not stated.any():
            continue
        if name not in problem.columns:
            raise ArgumentError("columns", f"must have {name!r}, which candidates use")
        attribute, values = space.schema.attribute(name), frame[name][stated].to_numpy(np.int64)
        codes = check.count_array(values, name, lower=attribute.first, upper=attribute.last)
        patterns[stated, column] = space.cells.bins[name][codes - attribute.first]
    empty = np.flatnonzero((patterns < 0).all(axis=1))
    if empty.size:
        raise ArgumentError(f"candidates must give a column each, row {empty[0]} gives none")
    times = np.zeros(0, np.int64)
    if len(frame):
        times = check.count_array(frame["multiplicity"].to_numpy(), "multiplicity", lower=0)
    geoids = frame[level].to_numpy(dtype=np.str_)
    index = positions(geoids, problem.places)
    unknown = np.flatnonzero(index < 0)
    if unknown.size:
        raise ArgumentError(
            f"{level} must be a place of the tables, got {quote(frame[level].iloc[unknown[0]])}"
        )
    parts = (index == place for place in range(len(problem.places)))
    more = several(frame)
    return [AskedClaims(patterns[rows], times[rows], more[rows]) for rows in parts]


#: Functions that word a claim about records of a schema, by its name, as :func:`_record` does.
WORDS: Registry[str] = Registry("claim-word", builtin={}, protocol=str, needs="a text")
_NUMBER = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def claim_sentences(claims: Claims, frame: pd.DataFrame | None = None) -> list[str]:
    """Return claims in words: one sentence each, or a few for claims about households.

    Parameters
    ----------
    claims : Claims
        The source of the claims.
    frame : pandas.DataFrame, optional
        Some of its claims; by default the verified ones.

    Examples
    --------
    >>> from bayesrisk.reconstruction import find_claims
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> unit = pd.DataFrame({"block": ["500010101001000"], "tenure": 3, "vacancy": 0, "size": 2,
    ...     "type": 7, "detailed_type": 8, "under_18": 1, "over_65": 1, "hispanic": 1, "hhage": 2,
    ...     "race": 2})
    >>> records = Records.from_frame(unit, schema=Schema.named("household-dhc"))
    >>> tables = tabulate(records, Workload.named("household-dhc"))
    >>> print(claim_sentences(find_claims(tables, columns=["size", "over_65", "race"]))[-1])
    One household of 2 people. Nobody in it is 65 or over. The householder is Black.
    """
    check.instance(claims, Claims, "claims")
    rows = claims.to_frame() if frame is None else frame
    rows = check.frame(rows, "frame", ("multiplicity", *claims.columns))
    schema, lines = claims.schema, []
    word = WORDS.factory(schema.name) if schema.name in WORDS.builtin else _record
    for row in rows.to_dict("records"):
        times, more = int(row["multiplicity"]), bool(row.get("at_least", False))
        values = {n: _codes(claims, n, int(row[n])) for n in claims.columns if not pd.isna(row[n])}
        lines.append(word(_number(times, more=more), times, values, schema))
    return lines


def _codes(claims: Claims, name: str, code: int) -> tuple[int, ...]:
    return next((g for g in claims.grouped.get(name, ()) if code in g), (code,))


def _number(times: int, *, more: bool) -> str:
    number = _NUMBER[times] if times < len(_NUMBER) else str(times)
    return f"At least {number.lower()}" if more else number


def _record(number: str, times: int, values: Mapping[str, tuple[int, ...]], schema: Schema) -> str:
    parts = []
    for name, codes in values.items():
        labels, first = schema.attribute(name).labels, schema.attribute(name).first
        words = [labels[c - first] if labels else str(c) for c in codes]
        if len(codes) > 2 and not labels and codes == tuple(range(codes[0], codes[-1] + 1)):
            words = [f"{codes[0]} to {codes[-1]}"]
        parts.append(f"{name} {' or '.join(words)}")
    columns = f" with {', '.join(parts)}" * bool(parts)
    return f"{number} record{'' if times == 1 else 's'}{columns}."
