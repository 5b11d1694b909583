"""Claims and what is proved of each: the answer of the attack, as frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.claims.options import About
from bayesrisk.reconstruction.claims.search.decide import REFUTED, UNDECIDED, VERIFIED
from bayesrisk.reconstruction.claims.search.decide_block import BlockClaims
from bayesrisk.reconstruction.claims.search.lattice import matches
from bayesrisk.reconstruction.status import Status
from bayesrisk.tables.published import PublishedTables
from bayesrisk.tables.schema import Schema

STATUS = {
    VERIFIED: Status.VERIFIED,
    REFUTED: Status.REFUTED,
    UNDECIDED: Status.UNDECIDED,
}


@displayed
@dataclass(frozen=True)
class Claims:
    """Claims about places, and what is proved of each.

    Attributes
    ----------
    claims : pandas.DataFrame
        A row for each claim: the place (named after its level), the code of each column (missing
        for any; the first of codes that no table tells apart), ``multiplicity``, ``status``
        (``verified``, ``refuted``, ``undecided``), ``n_columns``, ``n_needed`` (the fewest of its
        columns that imply the others), ``readable`` (it is a sum of cells of one table),
        ``readable_here`` (the same once cells that zeros rule out are left out).
    blocks : pandas.DataFrame
        A row for each place: ``status`` (``decided``; ``undecided`` where a limit left claims open;
        ``infeasible``; ``unknown`` where a limit left no solution; ``empty``), ``records`` that
        claims can be about, ``live_cells``, ``verified``, ``undecided``, ``conflict`` (the
        published cells that contradict).
    rows : pandas.DataFrame
        Records of one data set that fits the tables, in the same codes.
    level : str
        Level of the places.
    columns : tuple of str
        Columns that claims are about.
    grouped : Mapping of str to tuple
        For each column whose codes are put together the groups of codes.
    among : Mapping of str to tuple
        Codes of the records that claims are about; empty for all.
    schema : Schema
        What the records have.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts of a release were taken as true that need not be: what is ``verified`` holds
        if they were.
    """

    claims: pd.DataFrame
    blocks: pd.DataFrame
    rows: pd.DataFrame
    level: str
    columns: tuple[str, ...]
    grouped: Mapping[str, tuple[tuple[int, ...], ...]]
    among: Mapping[str, tuple[int, ...]]
    schema: Schema
    version: str = __version__
    taken_as_true: bool = False

    def _answer(self) -> list[str]:
        known = self.claims["status"].value_counts()
        verified = self.claims[self.claims["status"] == Status.VERIFIED]
        places = verified[self.level].nunique()
        said = "must be true whatever the records are"
        if self.taken_as_true:
            said = "would be true if the published counts were"
        return [
            f"{len(verified):,} claims {said}, in {places:,} of "
            f"{len(self.blocks):,} places; {int((verified['multiplicity'] == 1).sum()):,} of them "
            "are about exactly one record.",
            f"{int(known.get(Status.UNDECIDED, 0)):,} undecided, "
            f"{int(known.get(Status.REFUTED, 0)):,} refuted. "
            "See to_frame(), and claim_sentences() for words.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    def to_frame(
        self, *, status: str | None = Status.VERIFIED, readable: str | None = None
    ) -> pd.DataFrame:
        """Return claims, a row each.

        Parameters
        ----------
        status : str, optional
            Only claims of this status, by default ``"verified"``; None for all.
        readable : str, optional
            Leave out what a table states itself: ``"table"`` for claims that are sums of cells of
            a table, ``"here"`` for those that are once ruled out cells are dropped; by default
            nothing is left out.

        Returns
        -------
        pandas.DataFrame
            Columns as in ``claims``.
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
        """Return how many records verified claims describe, by number of columns.

        Parameters
        ----------
        rows : pandas.DataFrame, optional
            The records (place and columns); by default those of the data set that was found.
        singletons : bool, default True
            Whether only claims about one record count (Table 2 of the paper; else Table 3).
        count : str, default "n_columns"
            ``"n_columns"`` as the paper counts, ``"n_needed"`` without implied columns.
        readable : str, optional
            What is left out, as for :meth:`to_frame`.

        Returns
        -------
        pandas.DataFrame
            A row for each place and number of columns: ``records``, ``covered``, ``claims``.
        """
        check.choice(count, "count", ("n_columns", "n_needed"))
        check.flag(singletons, "singletons")
        found = self.to_frame(readable=readable)
        if singletons:
            found = found[found["multiplicity"] == 1]
        records = self.rows if rows is None else rows
        missing = [c for c in (self.level, *self.columns) if c not in check.frame(records, "rows")]
        if missing:
            raise ArgumentError(f"rows must have the column {missing[0]!r}")
        most = range(1, len(self.columns) + 1)
        # All places at once: a frame for each takes longer than the counting.
        by_place, grouped = (f.groupby(self.level).indices for f in (found, records))
        claims, people, width = self.coded(found), self.coded(records), found[count].to_numpy()
        nobody = np.zeros(0, np.int64)
        lines = []
        for place in self.blocks[self.level]:
            part, own = grouped.get(place, nobody), by_place.get(place, nobody)
            hit, columns = matches(people[part], claims[own]), width[own]
            for k in most:
                chosen = hit[columns == k]
                covered = int(chosen.any(axis=0).sum()) if len(chosen) else 0
                lines.append((place, k, len(part), covered, len(chosen)))
        names = [self.level, "columns", "records", "covered", "claims"]
        return pd.DataFrame(lines, columns=names)

    def coded(self, frame: pd.DataFrame) -> NDArray[np.int16]:
        """Return codes of the columns, those of one group made equal, -1 where missing."""
        found = np.full((len(frame), len(self.columns)), -1, np.int16)
        for at, name in enumerate(self.columns):
            codes = frame[name].fillna(-1).to_numpy(np.int16)
            for group in self.grouped.get(name, ()):
                codes = np.where(np.isin(codes, group), np.int16(group[0]), codes)
            found[:, at] = codes
        return found


def collected(tables: PublishedTables, about: About, found: Sequence[BlockClaims]) -> Claims:
    """Return the claims of all places as frames."""
    places = tables.geoids[about.level]
    per_claim = np.repeat(places, [len(f.patterns) for f in found])
    per_row = np.repeat(places, [len(f.rows) for f in found])
    patterns = _joined([f.patterns for f in found], len(about.study.space.schema.names))
    frame = pd.DataFrame({about.level: per_claim.astype(object)})
    frame = pd.concat([frame, _decoded(about, patterns)], axis=1)
    decision = _flat([f.decision for f in found])
    frame["multiplicity"] = _flat([f.multiplicity for f in found])
    frame["status"] = np.select(
        [decision == code for code in STATUS], list(STATUS.values()), default=""
    ).astype(object)
    frame["n_columns"] = (patterns >= 0).sum(axis=1)
    frame["n_needed"] = _flat([f.needed for f in found])
    frame["readable"] = _flat([f.readable for f in found]).astype(np.bool_)
    frame["readable_here"] = _flat([f.readable_here for f in found]).astype(np.bool_)
    rows = pd.DataFrame({about.level: per_row.astype(object)})
    codes = _joined([f.rows for f in found], patterns.shape[1])
    rows = pd.concat([rows, _decoded(about, codes)], axis=1)
    blocks = pd.DataFrame(
        {
            about.level: places.astype(object),
            "status": [f.status for f in found],
            "records": [len(f.rows) for f in found],
            "live_cells": [f.live for f in found],
            "verified": [int((f.decision == VERIFIED).sum()) for f in found],
            "undecided": [int((f.decision == UNDECIDED).sum()) for f in found],
            "conflict": [f.conflict for f in found],
        }
    )
    return Claims(
        frame,
        blocks,
        rows,
        about.level,
        about.columns,
        about.grouped,
        about.among,
        tables.workload.schema,
        taken_as_true=about.taken_as_true,
    )


def _joined(parts: Sequence[NDArray[np.int16]], width: int) -> NDArray[np.int16]:
    return np.concatenate([np.zeros((0, width), np.int16), *parts])


def _flat(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)


def _decoded(about: About, patterns: NDArray[np.int16]) -> pd.DataFrame:
    """Return groups of codes as codes, missing for any."""
    space, found = about.study.space, {}
    for name in about.columns:
        group = patterns[:, space.schema.names.index(name)]
        codes = space.first_code[name][np.maximum(group, 0)].astype(np.int16)
        found[name] = pd.arrays.IntegerArray(codes, group < 0)
    return pd.DataFrame(found)
