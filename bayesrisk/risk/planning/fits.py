r"""Data sets that fit the published counts of a place: two data sets that both fit, and differ.

Unknown is x, how many records there are of each kind at each of the finest places.  A table is rows
W of x, and a rule publishes of each row two ends,

    l <= W x <= h.

Something is *not proved* if some x that keeps all ends says otherwise.  Such an x also keeps the
ends of every release that can be made from this one, so that what was found for one setting of
rules serves others.  Where no x is known, an integer program looks for one, or proves that there is
none; it is given the published ends, and one data set that fits to start from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel
from bayesrisk.constraints.narrow import narrowed
from bayesrisk.tables import Schema, Table

if TYPE_CHECKING:
    from bayesrisk.constraints.highs import HighsWarm

#: Nodes of a search; unknowns of a program that is solved whole; data sets kept of a place.
_NODES, _WHOLE, _MOST_SETS = 400, 20_000, 600
_PASSES = 20  # of bounds through the rows
_PARTNERS = 4  # other places that an exchange of records is tried with
#: The most records of a kind, and how many more than there are, where nothing limits them.
_MANY, _MORE = 2**30, 10
_ROUNDS = 12  # of looks for a data set that moves many questions at once


@dataclass(frozen=True, eq=False)
class Variant:
    """A table of a level, as asked for or recoded, by its weights (cells, kinds of records)."""

    level: str
    table: Table
    weights: sp.csr_array

    @classmethod
    def make(cls, level: str, table: Table, schema: Schema, kinds: IntArray) -> Variant:
        """Return the variant of a table, each kind a cell of the schema."""
        return cls(level, table, table.incidence(schema, kinds))


class Open(NamedTuple):
    """How many there are at least, and at most: what is proved, and what was not refuted."""

    least: int
    most: int


#: More than any number of leaks: the largest is not known.
UNSEEN = 2**31


class LeakQuestion(NamedTuple):
    """Questions about a place: numbers that are allowed, None of what is not asked.

    ``counts`` are positions of those that must not be known within ``spread``, nor be proved to be
    at least 1 (``sentences``); unless it is asked ``in_full``, the answer ends where it exceeds.
    """

    counts: IntArray
    spread: int
    recovered: int | None
    sentences: int | None
    proved: int | None
    in_full: bool = False

    def exceeded(self, leaks: Sequence[Sequence[int]]) -> bool:
        """Return whether more is proved than is allowed, and no more is asked."""
        allowed = (self.recovered, self.sentences, self.proved)
        pairs = zip(leaks, allowed, strict=True)
        return not self.in_full and any(a is not None and leak[0] > a for leak, a in pairs)


class Item(NamedTuple):
    """A form of the unknowns: weights of kinds, added up over some of the finest places."""

    blocks: IntArray
    weights: IntArray


class _Program:
    """The unknowns of some blocks under published ends, the other blocks as in one data set.

    Where the ends leave a kind without a largest number, data sets near the base are looked for
    first; that there is none is proved for up to 2**30 records of a kind.
    """

    def __init__(self, model: IntegerModel | None, base: IntArray) -> None:
        self._shape = base.shape
        self._models: list[IntegerModel] = []
        self.possible = model is not None
        if model is None:
            return
        fixed = model.low == model.high
        wide, self._base = np.flatnonzero(~fixed), np.where(fixed, model.low, 0)
        self._wide = wide
        rest = model.rows @ self._base
        low, high = _less(model.row_low, rest), _less(model.row_high, rest)
        rows = sp.csr_array(model.rows[:, wide])
        endless = model.high[wide] > _MANY
        for cap in [base.sum() + _MORE, _MANY] if endless.any() else [_MANY]:
            ends = model.low[wide], np.minimum(model.high[wide], cap)
            # A row that the ends of its unknowns keep anyway says nothing.
            tight = np.flatnonzero((low > rows @ ends[0]) | (high < rows @ ends[1]))
            inner = sp.csr_array(rows[tight])
            self._models.append(IntegerModel(*ends, inner, low[tight], high[tight]))

    @cached_property
    def _linear(self) -> list[HighsWarm]:
        from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

        nothing = np.zeros(self._wide.size, np.int64)
        return [HighsWarm(model, nothing, primal=True) for model in self._models]

    def form_ends(self, form: IntArray) -> tuple[int, int]:
        """Return the least and the most that the ends of the unknowns leave a form of weights."""
        if not self.possible:
            return 0, 0
        base, inner, last = int(form @ self._base), form[self._wide], self._models[-1]
        return base + int(inner @ last.low), base + int(inner @ last.high)

    def find(self, form: IntArray, least: int | None) -> tuple[str, IntArray | None]:
        """Look for records (blocks, kinds) whose form is at least a number, or any at its most."""
        if not self.possible:
            return "none", None
        inner, status, values = form[self._wide], "found", np.zeros(0, np.int64)
        if least is not None:
            least -= int(form @ self._base)
            last = self._models[-1]
            if int((inner * np.where(inner > 0, last.high, last.low)).sum()) < least:
                return "none", None
        for linear in (self._linear if self._wide.size else [])[: 1 if least is None else None]:
            status, point = linear.find(inner, least, nodes=_NODES)
            if point is not None:
                values = point
                break
        else:
            if self._wide.size:
                return status, None
        whole = self._base.copy()
        whole[self._wide] = values
        return "found", whole.reshape(self._shape)


def _less(ends: IntArray, part: IntArray) -> IntArray:
    return np.where(np.abs(ends) >= ENDLESS, ends, ends - part)


def _form(blocks: IntArray, item: Item) -> IntArray:
    """Return the weights of an item over the unknowns of some blocks."""
    return np.outer(np.isin(blocks, item.blocks), item.weights).ravel()


class PlaceFits:
    """Data sets of a place of the coarsest level, and the questions about it.

    Parameters
    ----------
    variants : sequence of Variant
        All tables that may be published.
    parents : mapping of str to ndarray of int64
        For each level, the number of the place, from 0, that each finest place lies in.
    base : ndarray of int64
        A data set, finest places by kinds, that fits whatever is published.
    """

    def __init__(
        self, variants: Sequence[Variant], parents: Mapping[str, IntArray], base: IntArray
    ) -> None:
        self.variants, self.parents, self.base = list(variants), dict(parents), base
        self.shape = [(int(parents[v.level].max()) + 1, v.weights.shape[0]) for v in self.variants]
        sizes = [a * b for a, b in self.shape]
        self.start = np.cumsum([0, *sizes])
        self._records = np.nonzero(base)  # a record is proved if it is in every data set
        every = np.arange(base.shape[0])
        #: The counts of the base.
        self.base_counts = self.counts(base, every)
        #: Counts, and records of the kinds of the base, of each data set; those that are new apart.
        self._sets = self.base_counts[None, :], base[self._records][None, :]
        self._new: list[tuple[IntArray, IntArray]] = []

    def data_sets(self) -> tuple[IntArray, IntArray]:
        """Return the counts of all data sets that are kept, and their records of the base."""
        if self._new:
            parts = zip(self._sets, zip(*self._new, strict=True), strict=True)
            counts, records = (np.vstack([old, *new]) for old, new in parts)
            if len(counts) > _MOST_SETS:  # the base stays
                chosen = np.r_[0, np.arange(len(counts) - _MOST_SETS // 2, len(counts))]
                counts, records = counts[chosen], records[chosen]
            self._sets, self._new = (counts, records), []
        return self._sets

    def counts(self, records: IntArray, blocks: IntArray) -> IntArray:
        """Return the counts of all variants, as one vector, of records (blocks, kinds)."""
        total = np.zeros(int(self.start[-1]), np.int64)
        for number, v in enumerate(self.variants):
            part = total[self.start[number] : self.start[number + 1]].reshape(self.shape[number])
            np.add.at(part, self.parents[v.level][blocks], np.asarray(records @ v.weights.T))
        return total

    def keep(self, blocks: IntArray, records: IntArray) -> tuple[IntArray, IntArray]:
        """Keep a data set, the base but for the records of some blocks; return it as it is kept."""
        change = self.counts(records - self.base[blocks], blocks)
        whole = self.base.copy()
        whole[blocks] = records
        row = self.base_counts + change, whole[self._records]
        self._new.append(row)
        self.note(blocks, records)
        return row

    @property
    def n_records(self) -> int:
        """Number of kinds of records of the base, at each place."""
        return int(self._records[0].size)

    def note(self, blocks: IntArray, records: IntArray) -> None:
        """Take note of a data set that is kept."""

    def item(self, position: int) -> Item:
        """Return the form of a count, by its position in the vector of counts."""
        number = int(np.searchsorted(self.start, position, side="right")) - 1
        place, cell = divmod(position - int(self.start[number]), self.shape[number][1])
        v = self.variants[number]
        weights = v.weights[[cell], :].toarray()[0]
        return Item(np.flatnonzero(self.parents[v.level] == place), weights)

    def record_item(self, index: int) -> Item:
        """Return the form of a kind of record of the base at a place, by its number."""
        block, kind = (int(axis[index]) for axis in self._records)
        weights = np.zeros(self.base.shape[1], np.int64)
        weights[kind] = 1
        return Item(np.array([block]), weights)

    def leaks(self, low: IntArray, high: IntArray, question: LeakQuestion) -> tuple[Open, ...]:
        """Return the numbers of counts recovered, sentences proved, and records proved.

        ``low`` and ``high`` are the ends of all counts.
        """
        return _Answer(self, low, high).run(question)


def first_records(fits: PlaceFits, low: IntArray, high: IntArray) -> IntArray | None:
    """Return a data set within published ends, looked for from nothing; None if none was found.

    Of all the fewest records are looked for.
    """
    every = np.arange(fits.base.shape[0])
    program = _Answer(fits, low, high).program(every)
    return program.find(np.full(fits.base.size, -1), None)[1]


class _Answer:
    """The questions about one place under one setting."""

    def __init__(self, fits: PlaceFits, low: IntArray, high: IntArray) -> None:
        self.fits, self.low, self.high = fits, low, high
        self._programs: dict[tuple[bool, bytes], _Program] = {}
        self._stuck: set[tuple[str, int, int]] = set()  # proved ends
        self._unknown: set[tuple[str, int, int]] = set()

    def run(self, question: LeakQuestion) -> tuple[Open, ...]:
        """Return the numbers of counts recovered, sentences proved, and records proved."""
        self._question, counts = question, question.counts
        self.counts = counts
        self.records = np.arange(self.fits.n_records * (question.proved is not None))
        leaks = [[0, 0], [0, 0], [0, 0]]  # at least and at most
        quick = [(0, 0)] * 3 if question.in_full else self._propagated()
        exceeded = question.exceeded(quick)
        if not exceeded:
            self._move_many()
        for i, position in enumerate(counts.tolist()):
            if exceeded:
                break
            item = self.fits.item(position)
            if question.sentences is not None:
                end = self._end("c", i, item, -1, stop=0)
                leaks[1][0] += end is not None and end > 0
                leaks[1][1] += end is None or end > 0
            if question.recovered is not None:
                narrow = self._is_narrow(i, item, question.spread)
                leaks[0][0] += narrow is True
                leaks[0][1] += narrow is not False
            exceeded = question.exceeded(leaks)
        for i in self.records.tolist():
            if exceeded:
                break
            end = self._end("r", i, self.fits.record_item(i), -1, stop=0)
            leaks[2][0] += end or 0
            leaks[2][1] += self._now("r", i)[0] if end is None else end
            exceeded = question.exceeded(leaks)
        if exceeded:  # the rest was not looked at
            pairs = zip(leaks, quick, strict=True)
            return tuple(Open(max(leak[0], first[0]), UNSEEN) for leak, first in pairs)
        return tuple(Open(*pair) for pair in leaks)

    def _propagated(self) -> list[tuple[int, int]]:
        """Return the numbers that ends of unknowns prove, until a limit is exceeded."""
        question = self._question
        width = self.high[self.counts] - self.low[self.counts]
        stated = width <= question.spread  # by what is published of them alone
        proved = [int(stated.sum()) * (question.recovered is not None), 0, 0]
        if question.exceeded([(n,) for n in proved]):
            return [(n, 0) for n in proved]
        for i, position in enumerate(self.counts.tolist()):
            item = self.fits.item(position)
            if item.blocks.size > 1:
                continue
            low, high = self.program(item.blocks, alone=True).form_ends(item.weights)
            proved[0] += question.recovered is not None and high - low <= question.spread
            proved[0] -= bool(stated[i]) and question.recovered is not None
            proved[1] += question.sentences is not None and low > 0
            if question.exceeded([(n,) for n in proved]):
                break
        for i in self.records.tolist():
            if question.exceeded([(n,) for n in proved]):
                break
            item = self.fits.record_item(i)
            proved[2] += self.program(item.blocks, alone=True).form_ends(item.weights)[0]
        return [(n, 0) for n in proved]

    def _refresh(self) -> None:
        """Take the ends of all questions from the data sets that fit."""
        counts, records = self.fits.data_sets()
        inside: BoolArray = (counts >= self.low) & (counts <= self.high)
        fit = np.flatnonzero(np.logical_and.reduce(inside, axis=1))
        chosen, rows = counts[np.ix_(fit, self.counts)], records[fit]
        self._count_ends = chosen.min(axis=0, initial=ENDLESS), chosen.max(axis=0, initial=0)
        self._record_ends = rows.min(axis=0), rows.max(axis=0)

    def _now(self, kind: str, i: int) -> tuple[int, int]:
        """Return the ends that data sets reach."""
        low, high = self._count_ends if kind == "c" else self._record_ends
        return int(low[i]), int(high[i])

    def _is_narrow(self, i: int, item: Item, spread: int) -> bool | None:
        """Return whether a count is known spread a number; None where that was not decided."""
        for direction in (1, -1):
            while True:
                low, high = self._now("c", i)
                if high - low > spread:
                    return False
                if self._move("c", i, item, direction) != "found":
                    break
        return None if {("c", i, 1), ("c", i, -1)} & self._unknown else True

    def _end(self, kind: str, i: int, item: Item, direction: int, *, stop: int) -> int | None:
        """Return the smallest number of an item, or ``stop``; None where that was not decided."""
        while (least := self._now(kind, i)[0]) > stop:
            status = self._move(kind, i, item, direction)
            if status != "found":
                return least if status == "none" else None
        return least

    def _move(self, kind: str, i: int, item: Item, direction: int) -> str:
        """Look for a data set with one more of an item, or one less: found, none or unknown."""
        key = kind, i, direction
        if key in self._stuck or key in self._unknown:
            return "none" if key in self._stuck else "unknown"
        low, high = self._now(kind, i)
        least = high + 1 if direction > 0 else 1 - low  # of the form, times the direction
        status = self._search(item, direction, least)
        if status == "none":
            self._stuck.add(key)
        elif status == "unknown":
            self._unknown.add(key)
        return status

    def _search(self, item: Item, direction: int, least: int) -> str:
        every = np.arange(self.fits.base.shape[0])
        if every.size == 1 or every.size * self.fits.base.shape[1] <= _WHOLE // 8:
            return self._reach(every, item, direction, least)
        # Nothing outside of the places of the item: what is impossible then is impossible at all.
        if item.blocks.size * self.fits.base.shape[1] <= _WHOLE:
            outer = self.program(item.blocks, alone=True)
            if outer.find(direction * _form(item.blocks, item), least)[0] == "none":
                return "none"
        for blocks in self._neighbourhoods(item):
            if self._reach(blocks, item, direction, least) == "found":
                return "found"
        if every.size * self.fits.base.shape[1] <= _WHOLE:
            return self._reach(every, item, direction, least)
        return "unknown"

    def _neighbourhoods(self, item: Item) -> list[IntArray]:
        """Return sets of blocks spread which records may come, go or be exchanged."""
        base = self.fits.base
        inside = item.blocks[np.argsort(-(base[item.blocks] @ item.weights), kind="stable")]
        first = inside[:_PARTNERS]
        # Partners: the blocks that have most of the kinds of the first one.
        overlap = (base @ (base[first[0]] > 0)).astype(np.int64)
        overlap[first[0]] = -1
        partners = np.argsort(-overlap, kind="stable")[:_PARTNERS]
        alone = [np.array([one]) for one in first.tolist()]
        pairs = [np.sort(np.array([first[0], one])) for one in partners.tolist()]
        return [*alone, *pairs, np.unique(np.r_[first[0], partners])]

    def _reach(self, blocks: IntArray, item: Item, direction: int, least: int) -> str:
        # What the other blocks have of the item stays.
        other = np.setdiff1d(item.blocks, blocks)
        least -= direction * int((self.fits.base[other] @ item.weights).sum())
        program = self.program(blocks)
        status, records = program.find(direction * _form(blocks, item), least)
        if records is not None:
            self._keep(blocks, records)
        return status

    def _keep(self, blocks: IntArray, records: IntArray) -> None:
        """Keep a data set that fits, and note how far it moves the ends of questions."""
        counts, rest = self.fits.keep(blocks, records)
        pairs = ((self._count_ends, counts[self.counts]), (self._record_ends, rest))
        for (low, high), row in pairs:
            np.minimum(low, row, out=low)
            np.maximum(high, row, out=high)

    def program(self, blocks: IntArray, *, alone: bool = False) -> _Program:
        """Return the program of blocks; ``alone`` drops the rows that others have a part in."""
        key = alone, blocks.tobytes()
        if key not in self._programs:
            self._programs[key] = _Program(self._model(blocks, alone), self.fits.base[blocks])
        return self._programs[key]

    def _model(self, blocks: IntArray, alone: bool) -> IntegerModel | None:
        fits, kinds = self.fits, self.fits.base.shape[1]
        inner = None if alone else fits.counts(fits.base[blocks], blocks)
        parts, ends = [], []
        for number, v in enumerate(fits.variants):
            parent, rows = fits.parents[v.level], slice(*fits.start[number : number + 2])
            low = self.low[rows].reshape(fits.shape[number])
            high = self.high[rows].reshape(fits.shape[number])
            if not (low.any() or (high < ENDLESS).any()):
                continue  # it is not published
            places = np.unique(parent[blocks])
            if inner is None:
                size = np.bincount(parent, minlength=fits.shape[number][0])
                inside = np.bincount(parent[blocks], minlength=fits.shape[number][0])
                places = places[inside[places] == size[places]]
                rest = np.zeros((places.size, 1), np.int64)
            else:  # counts of the other blocks stay
                whole = fits.base_counts[rows] - inner[rows]
                rest = whole.reshape(fits.shape[number])[places]
            if not places.size:
                continue
            holds = sp.csr_array((parent[blocks] == places[:, None]).astype(np.int64))
            parts.append(sp.csr_array(sp.kron(holds, v.weights, format="csr")))
            ends.append((_less(low[places], rest).ravel(), _less(high[places], rest).ravel()))
        free = np.full(blocks.size * kinds, ENDLESS)
        nothing = np.zeros(blocks.size * kinds, np.int64)
        matrix = sp.csr_array(np.zeros((0, free.size), np.int64))
        row_low = row_high = np.zeros(0, np.int64)
        if parts:
            row_low, row_high = (np.concatenate(side) for side in zip(*ends, strict=True))
            matrix = sp.csr_array(sp.vstack(parts, format="csr"))
        return narrowed(IntegerModel(nothing, free, matrix, row_low, row_high), _PASSES)

    def _move_many(self) -> None:
        """Look for data sets that move many questions at once; each may serve many."""
        self._refresh()
        rng = np.random.default_rng(0)
        fits, every = self.fits, np.arange(self.fits.base.shape[0])
        for _ in range(_ROUNDS):
            low, high = self._count_ends
            open_counts = np.zeros(self.counts.size, np.bool_)
            if self._question.recovered is not None:
                open_counts |= high - low <= self._question.spread
            if self._question.sentences is not None:
                open_counts |= low > 0
            open_records = np.flatnonzero(self._record_ends[0][self.records] > 0)
            number = int(open_counts.sum()) + open_records.size
            if number < 2:
                return
            weight = np.zeros(fits.base.shape, np.int64)
            for position in self.counts[open_counts].tolist():
                item = fits.item(position)
                weight[item.blocks] += item.weights * (int(rng.integers(4)) - 2)
            for i in open_records.tolist():
                weight[tuple(axis[i] for axis in fits._records)] -= int(rng.integers(1, 3))
            moved = False
            step = max(1, min(_WHOLE // 8 // fits.base.shape[1], every.size))
            for blocks in np.array_split(every, -(-every.size // step)):
                program = self.program(blocks)
                records = program.find(weight[blocks].ravel(), None)[1]
                if records is not None and (records != fits.base[blocks]).any():
                    self._keep(blocks, records)
                    moved = True
            low, high = self._count_ends
            if not moved:
                return
