"""Cell keys: a count is perturbed in the same way wherever the same people are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import header_fields, open_text, text_tables
from bayesrisk._base.disk.text import named
from bayesrisk._base.validation import IntArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.mechanisms.base import BasePrepared, PreparingMechanism, Protected
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import Microdata, PublishedTables, Workload, tabulate
from bayesrisk.tables.likelihoods import CellKeySpec

_MOST_KEYS = 2**16
_MOST_ENTRIES = 2**22  # of a perturbation table: counts times keys
_COLUMNS = ["pcv", "ckey", "pvalue"]

#: For one true count the share of the keys of every change, or the change of every key.
Row = Mapping[Any, Any] | Sequence[int] | str


class CellKey(PreparingMechanism["PreparedCellKeys"]):
    r"""Perturb every count by a table, entered with the count and its cell's key.

    Every record gets a key :math:`k_i`, drawn uniformly from 0 to K - 1. The key of a cell with
    records S is :math:`\sum_{i \in S} k_i \bmod K`. A table gives the change of the count for each
    count and key. The same people always have the same key. So their published count is equal in
    every table and at every level. A cell without a record has no key and stays 0.

    Parameters
    ----------
    ptable : sequence, DataFrame or path
        For each count 0, 1, 2, ... one of two entries. A mapping goes from changes to shares of the
        keys, which are multiples of 1 / keys and sum to 1. Or the change of every key is given, as
        numbers or in one text. A frame has a row for each count from 1 and key, with columns
        ``pcv`` (count), ``ckey`` (key) and ``pvalue`` (change), as statistical offices exchange
        such tables. A path names a CSV file.
    keys : int, default 256
        Number K of keys, in [2, 65536].
    repeat : int, default 1
        Number of last rows that serve larger counts in turn; by default the last row alone.

    Notes
    -----
    The law of one published count is exact, :class:`~bayesrisk.tables.likelihoods.CellKeySpec`.
    Counts of several cells are not independent given the true ones. A release draws its keys once,
    so its tables agree. With one seed, the order of the records does not matter. A record with
    weight above 1 adds its weight to a count, and its key once.

    Examples
    --------
    >>> table = [{0: 1}, {-1: "1/2", 1: "1/2"}, {-1: "1/4", 0: "1/2", 1: "1/4"}]
    >>> CellKey(ptable=table).spec.others.probability([1, 2, 3], 2).tolist()
    [0.25, 0.5, 0.25]
    """

    grain = 0  # the key of a place is that of its own records

    def __init__(
        self, *, ptable: Sequence[Row] | pd.DataFrame | str | Path, keys: int = 256, repeat: int = 1
    ) -> None:
        self._keys = check.integer(keys, "keys", lower=2, upper=_MOST_KEYS)
        if check.is_path(ptable):
            ptable = _read_table(check.path(ptable, "ptable"))
        if isinstance(ptable, pd.DataFrame) or hasattr(ptable, "__arrow_c_stream__"):
            ptable = _frame_rows(check.frame(ptable, "ptable"), self._keys)
        entries = check.items(ptable, "ptable")
        if len(entries) * self._keys > _MOST_ENTRIES:
            raise ArgumentError(
                f"ptable must have at most {_MOST_ENTRIES // self._keys} counts for {self._keys} "
                f"keys, got {len(entries)}"
            )
        rows = [_row(row, f"ptable[{count}]", self._keys) for count, row in enumerate(entries)]
        stated = [
            {str(change): share for change, share in row.items()}
            if isinstance(row, Mapping)
            else " ".join(map(str, row))
            for row in rows
        ]
        law = (", ".join(f"{change}: {p}" for change, p in _shares(row).items()) for row in rows)
        self._law = CellKeySpec(tuple(law), repeat)
        # change[count, key]: of a row of shares in order, the smallest change at the least keys.
        self._change = np.array([_by_key(row, self._keys) for row in rows], np.int64)
        parameters = {"ptable": stated, "keys": self._keys, "repeat": self._law.repeat}
        super().__init__(MechanismSpec("cell-key", parameters, others=self._law))

    def _prepare(self, microdata: Microdata, workload: Workload) -> PreparedCellKeys:
        records = microdata.for_schema(workload.schema)
        truth = tabulate(microdata, workload)
        codes, place = records.places()
        kinds, kind = np.unique(records.cells(), return_inverse=True)
        # Keys are given in the order of places and kinds: another order of the same records draws
        # the same, for records of a place and a kind count alike.
        order = np.lexsort((kind.reshape(-1), place))
        kind, place = kind.reshape(-1)[order], place[order]
        rows: dict[str, IntArray] = {}
        members: dict[tuple[str, str], sparse.csr_array] = {}
        for level in workload.levels:
            above = workload.schema.geography.ancestors(codes, level)
            rows[level] = np.searchsorted(truth.geoids[level], above)[place]
        for table, levels in workload.distinct():
            weights = sparse.csr_array(table.incidence(workload.schema, kinds).T)
            weights.data = np.ones_like(weights.data)  # keys are added up, whatever records weigh
            members |= {(level, table.name): weights for level in levels}
        return PreparedCellKeys(self.spec, self, truth, kind, rows, members)

    def _perturb_tables(self, prepared: PreparedCellKeys, rng: np.random.Generator) -> Protected:
        """Return the tables perturbed with newly drawn record keys."""
        # Keys from K to 2 K - 1 have the same sums modulo K, and none is 0: sums are then stored
        # where counts are, in the same order.
        key = self._keys + rng.integers(self._keys, size=len(prepared.kind))
        counts: Any = {}
        for level, row in prepared.rows.items():
            shape = len(prepared.truth.geoids[level]), int(prepared.kind.max(initial=-1)) + 1
            by_kind = sparse.csr_array((key, (row, prepared.kind)), shape=shape)
            for name in prepared.truth.workload.at(level):
                sums = by_kind @ prepared.members[level, name]
                sums.sort_indices()
                part = prepared.truth.counts[level, name].copy()
                if part.nnz:
                    part.data += self._change[self._law.rows(part.data), sums.data % self._keys]
                    part.eliminate_zeros()
                counts[level, name] = part
        return Protected(replace(prepared.truth, counts=counts))


@dataclass(frozen=True, eq=False)
class PreparedCellKeys(BasePrepared):
    """Cell-key releases of one truth, each with its own record keys."""

    spec: MechanismSpec  # of the releases
    mechanism: CellKey
    truth: PublishedTables  # the true counts
    kind: IntArray  # which cell of the schema every record is in, of those that occur
    rows: Mapping[str, IntArray]  # by level the position of the place of every record
    #: By level and table 1 where records of a kind count in a cell, (kinds, cells).
    members: Mapping[tuple[str, str], sparse.csr_array]

    def _draw(self, rng: np.random.Generator) -> Protected:
        return self.mechanism._perturb_tables(self, rng)


# Perturbation tables: rows of shares, of changes by key, and frames of files.


def _row(row: object, name: str, keys: int) -> dict[int, Fraction] | list[int]:
    """Return a checked row of the table: shares by change, or the change of every key."""
    if not isinstance(row, Mapping):
        entries = [_number(one) for one in row.split()] if isinstance(row, str) else row
        changes = check.count_array(check.items(entries, name), name)
        if changes.size != keys:
            raise ArgumentError(name, f"must have a change for {keys} keys", shown=changes.size)
        return [int(change) for change in changes]
    shares: dict[int, Fraction] = {}
    for change, share in row.items():
        label = f"{name}[{change!r}]"
        amount = check.integer(_number(change), f"{label}: change", lower=-(2**31), upper=2**31)
        exact = exact_number(share, label)
        if (exact * keys).denominator != 1 or exact < 0:
            raise ArgumentError(label, f"must be a multiple of 1/{keys}", got=share)
        if exact:
            shares[amount] = shares.get(amount, Fraction(0)) + exact
    return dict(sorted(shares.items()))


def _number(text: object) -> object:
    """Return the integer that a JSON key spells; anything else unchanged."""
    try:
        return int(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _shares(row: dict[int, Fraction] | list[int]) -> dict[int, Fraction]:
    """Return the share of keys for every change in a row."""
    if isinstance(row, dict):
        return row
    change, number = np.unique(row, return_counts=True)
    whole = zip(change.tolist(), number.tolist(), strict=True)
    return {amount: Fraction(n, len(row)) for amount, n in whole}


def _by_key(row: dict[int, Fraction] | list[int], keys: int) -> IntArray:
    """Return the change for every key in a row."""
    if isinstance(row, list):
        return np.array(row, np.int64)
    return np.repeat(np.array(list(row), np.int64), [int(p * keys) for p in row.values()])


def _read_table(file: Path) -> pd.DataFrame:
    """Return a CSV file of counts, keys and changes as a frame of integers."""
    with named(str(file), also=(pa.ArrowException,)), open_text(file) as lines:
        names = header_fields(lines.readline(), str(file))
        frame: pd.DataFrame = pa.concat_tables(text_tables(lines, names)).to_pandas()
    for name in [name for name in _COLUMNS if name in frame]:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        wrong = numbers.isna() | (numbers % 1 != 0)
        check.refuse_row(wrong, frame[name], file, name, "be a whole number")
        frame[name] = numbers.astype(np.int64)
    return frame


def _frame_rows(frame: pd.DataFrame, keys: int) -> list[list[int]]:
    """Return, for each count from 0, the change of every key, from a frame of counts and keys."""
    lost = [name for name in _COLUMNS if name not in frame]
    if lost:
        raise ArgumentError(
            "ptable", f"must have columns {', '.join(_COLUMNS)}", shown=f"no {quote(lost[0])}"
        )
    count, key, change = (
        check.count_array(frame[name].to_numpy(), f"ptable: {name}") for name in _COLUMNS
    )
    top = int(count.max(initial=0))
    wrong = (count < 1) | (key < 0) | (key >= keys)
    if wrong.any():
        row = int(wrong.argmax())
        raise ArgumentError(
            f"ptable must have pcv from 1 and ckey from 0 to {keys - 1}, got pcv {count[row]} and "
            f"ckey {key[row]}"
        )
    entries = np.unique(count * keys + key)
    if entries.size != len(frame) or entries.size != top * keys:
        raise ArgumentError(
            f"ptable must have a row for each pcv from 1 to {top} and each of {keys} ckey, once, "
            f"got {len(frame)} rows"
        )
    rows = np.zeros((top + 1, keys), np.int64)
    rows[count, key] = change
    return [row.tolist() for row in rows]
