r"""Data sets that fit the published counts of a place, which show what is not proved.

The unknown x is the number of records of each kind at each finest place.  A table is rows W over x,
and a rule publishes two ends of each row,

    l <= W x <= h.

Something is *not proved* if some x within all ends says otherwise. Such an x also keeps the ends of
every release that can be made from this one, so it serves other settings of rules too. If no x is
known, an integer program finds one or proves that none exists. It receives the published ends, and
starts from one data set that fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel, less
from bayesrisk.constraints.propagation import narrowed
from bayesrisk.risk.planning.exchanges import (
    MOVES,
    CountLayout,
    Reached,
    as_changes,
    find_moves,
    replay,
)
from bayesrisk.tables import Schema, Table

if TYPE_CHECKING:
    from bayesrisk.constraints.highs import HighsWarm

#: Nodes of a search; unknowns of a program that is solved whole; data sets kept of a place.
_NODES, _WHOLE, _MOST_SETS = 400, 20_000, 20_000
_PASSES = 20  # of bounds through the rows
_PARTNERS = 4  # other places that an exchange of records is tried with
#: The most records of a kind, and how many more than there are, where nothing limits them.
_MANY, _MORE = 2**30, 10
#: A question: of a count ("c") by its position or a record ("r") by its number; and a direction.
Key: TypeAlias = tuple[str, int]
Step: TypeAlias = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Variant:
    """A table of a level, as requested or recoded, with its weights (cells, kinds of records)."""

    level: str
    table: Table
    weights: sp.csr_array

    @classmethod
    def make(cls, level: str, table: Table, schema: Schema, kinds: IntArray) -> Variant:
        """Return the variant of a table; each kind of record is a schema cell."""
        return cls(level, table, table.incidence(schema, kinds))


class Open(NamedTuple):
    """Bounds of a number: the proved part (least), and the part that is not refuted (most)."""

    least: int
    most: int


#: More than any number of leaks: the largest is not known.
UNSEEN = 2**31


class LeakQuestion(NamedTuple):
    """Questions about a place, with the number allowed for each (None: not asked).

    ``counts`` are positions of counts that must not be known within ``spread``, nor be proved to be
    at least 1 (``sentences``). Unless it is asked ``in_full``, the answer ends when it exceeds a
    limit.
    """

    counts: IntArray
    spread: int
    recovered: int | None
    sentences: int | None
    proved: int | None
    in_full: bool = False
    quick: bool = False  # only what was proved last

    def exceeded(self, leaks: Sequence[Sequence[int]]) -> bool:
        """Return whether the proved numbers exceed a limit, so that a search may stop."""
        allowed = (self.recovered, self.sentences, self.proved)
        pairs = zip(leaks, allowed, strict=True)
        return not self.in_full and any(a is not None and leak[0] > a for leak, a in pairs)


class Item(NamedTuple):
    """A linear form of the unknowns: weights of kinds, summed over some finest places."""

    blocks: IntArray
    weights: IntArray


class _Program:
    """The integer program of some blocks under published bounds, with other blocks fixed.

    If the ends leave a kind without a largest number, data sets near the base are searched first;
    that there is none is proved for up to 2**30 records of a kind.
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
        low, high = less(model.row_low, rest), less(model.row_high, rest)
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

    def find(self, form: IntArray, least: int | None) -> tuple[str, IntArray | None]:
        """Search for records (blocks, kinds) whose form is >= ``least``, or any records if None."""
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


def _inside(parent: IntArray, blocks: IntArray) -> IntArray:
    """Return the places of a level that consist of some of the given finest places only."""
    inside = np.bincount(parent[blocks], minlength=int(parent.max()) + 1)
    whole: IntArray = np.flatnonzero((inside > 0) & (inside == np.bincount(parent)))
    return whole


def _form(blocks: IntArray, item: Item) -> IntArray:
    """Return an item's weights over the unknowns of some blocks."""
    return np.outer(np.isin(blocks, item.blocks), item.weights).ravel()


class PlaceFits:
    """Data sets that fit a place of the coarsest level, and answers to questions about it.

    Parameters
    ----------
    variants : sequence of Variant
        All tables that may be published.
    parents : mapping of str to ndarray of int64
        For each level, the number, from 0, of the place that contains each finest place.
    base : ndarray of int64
        A data set, finest places by kinds, that fits any published tables.
    """

    def __init__(
        self, variants: Sequence[Variant], parents: Mapping[str, IntArray], base: IntArray
    ) -> None:
        self.variants, self.parents, self.base = list(variants), dict(parents), base
        self.shape = [(int(parents[v.level].max()) + 1, v.weights.shape[0]) for v in self.variants]
        sizes = [a * b for a, b in self.shape]
        self.start = np.cumsum([0, *sizes])
        self.records = np.nonzero(base)  # a record is proved if it is in every data set
        #: The counts of the base.
        self.base_counts = self.counts(base, np.arange(base.shape[0]))
        #: Data sets as changes of the base: rows of place, kind, number.
        self.changes: list[IntArray] = []
        self.answers: dict[tuple[object, ...], str] = {}  # about some blocks alone
        self.leaked: dict[tuple[str, int], None] = {}  # what was proved last, the latest at the end

    @cached_property
    def layout(self) -> CountLayout:
        """The counts in which each kind of record takes part."""
        parent = np.stack([self.parents[v.level] for v in self.variants])
        return CountLayout.make([v.weights for v in self.variants], parent, self.start)

    def reached(self, low: IntArray, high: IntArray) -> Reached:
        """Return the values that counts reach in the known data sets within given bounds."""
        reached = Reached(
            low, high, self.base_counts.copy(), self.base_counts.copy(), self.base.copy()
        )
        self.note(reached, self.changes)
        return reached

    def note(self, reached: Reached, changes: Sequence[IntArray]) -> None:
        """Update the values reached by further data sets, as far as they fit."""
        ptr = np.cumsum([0, *map(len, changes)])
        rows = np.concatenate([np.zeros((0, 3), np.int64), *changes])
        replay(self.layout, self.base, self.base_counts, reached, ptr, rows)

    def counts(self, records: IntArray, blocks: IntArray) -> IntArray:
        """Return the counts of all variants for the records (blocks, kinds), as one vector."""
        total = np.zeros(int(self.start[-1]), np.int64)
        for number, v in enumerate(self.variants):
            part = total[self.rows(number)].reshape(self.shape[number])
            np.add.at(part, self.parents[v.level][blocks], np.asarray(records @ v.weights.T))
        return total

    def keep(self, changes: IntArray) -> None:
        """Store a data set that fits; half are dropped when there are too many."""
        self.changes.append(changes)
        if len(self.changes) > _MOST_SETS:
            del self.changes[: _MOST_SETS // 2]

    @property
    def large(self) -> bool:
        """Whether the program of all unknowns would be large."""
        return self.base.shape[0] > 1 and self.base.size > _WHOLE // 8

    def rows(self, number: int) -> slice:
        """Return the slice of a variant in the vector of counts."""
        return slice(*self.start[number : number + 2])

    @property
    def n_records(self) -> int:
        """Number of pairs of a place and a kind with a record in the base."""
        return int(self.records[0].size)

    def item(self, position: int) -> Item:
        """Return the form of the count at a position in the vector of counts."""
        number = int(np.searchsorted(self.start, position, side="right")) - 1
        place, cell = divmod(position - int(self.start[number]), self.shape[number][1])
        rows = self.variants[number].weights
        weights, part = np.zeros(rows.shape[1], np.int64), slice(*rows.indptr[cell : cell + 2])
        weights[rows.indices[part]] = rows.data[part]
        parent = self.parents[self.variants[number].level]
        return Item(np.flatnonzero(parent == place), weights)

    def record_item(self, index: int) -> Item:
        """Return the form that counts one kind of record at one place."""
        block, kind = (int(axis[index]) for axis in self.records)
        weights = np.zeros(self.base.shape[1], np.int64)
        weights[kind] = 1
        return Item(np.array([block]), weights)

    def leaks(self, low: IntArray, high: IntArray, question: LeakQuestion) -> tuple[Open, ...]:
        """Return bounds on the numbers of counts recovered, sentences proved and records proved.

        ``low`` and ``high`` are the ends of all counts.
        """
        return _Answer(self, low, high).run(question)


def first_records(fits: PlaceFits, low: IntArray, high: IntArray) -> IntArray | None:
    """Return a data set within published bounds, found from scratch, or None.

    The data set with the fewest records is searched for.
    """
    every = np.arange(fits.base.shape[0])
    program = _Answer(fits, low, high).program(every)
    return program.find(np.full(fits.base.size, -1), None)[1]


class _Answer:
    """The answers about one place under one setting of rules."""

    def __init__(self, fits: PlaceFits, low: IntArray, high: IntArray) -> None:
        self.fits, self.low, self.high = fits, low, high
        self._programs: dict[tuple[bool, bytes], _Program] = {}
        self._stuck: set[Step] = set()  # proved ends
        self._unknown: set[Step] = set()
        self._digests: dict[bytes, bytes] = {}

    def run(self, question: LeakQuestion) -> tuple[Open, ...]:
        """Return bounds on the numbers of counts recovered, sentences proved and records proved."""
        fits, self._question = self.fits, question
        width = self.high[question.counts] - self.low[question.counts]
        stated = int((width <= question.spread).sum()) if question.recovered is not None else 0
        if question.exceeded([(stated,), (0,), (0,)]):
            return Open(stated, UNSEEN), Open(0, UNSEEN), Open(0, UNSEEN)
        self._reached = fits.reached(self.low, self.high)
        counts = [("c", p) for p in question.counts.tolist()]
        every = counts + [("r", i) for i in range(fits.n_records * (question.proved is not None))]
        first = [key for key in [*fits.leaked][::-1] if key in set(every)]
        # What was proved last, then all by a look at their own places alone, then in full.
        for keys, moves, thorough in ((first, False, False), (every, True, False),
                                      (every, False, True)):  # fmt: skip
            if moves and question.quick:
                break
            if moves:
                self._make_moves(every)
            leaks = self._counted(keys, thorough)
            if question.exceeded(leaks):
                break
        if question.quick or question.exceeded(leaks):  # the rest was not looked at
            leaks[0][0] = max(leaks[0][0], stated)
            return tuple(Open(leak[0], UNSEEN) for leak in leaks)
        return tuple(Open(*pair) for pair in leaks)

    def _counted(self, keys: Sequence[Key], thorough: bool) -> list[list[int]]:
        """Return the numbers proved and not refuted, until a limit is exceeded."""
        question, self._thorough = self._question, thorough
        leaks = [[0, 0], [0, 0], [0, 0]]
        for key in keys:
            kind, before = key[0], sum(leak[0] for leak in leaks)
            if kind == "c" and question.sentences is not None:
                end = self._end(key)
                leaks[1][0] += end is not None and end > 0
                leaks[1][1] += end is None or end > 0
            if kind == "c" and question.recovered is not None:
                narrow = self._is_narrow(key, question.spread)
                leaks[0][0] += narrow is True
                leaks[0][1] += narrow is not False
            if kind == "r":
                end = self._end(key)
                leaks[2][0] += end or 0
                leaks[2][1] += self._now(key)[0] if end is None else end
            if sum(leak[0] for leak in leaks) > before:
                self.fits.leaked.pop(key, None)
                self.fits.leaked[key] = None
                if question.exceeded(leaks):
                    break
        return leaks

    def _make_moves(self, keys: Sequence[Key]) -> None:
        """Search for moves of records that refute statements not yet refuted."""
        fits, question, reached = self.fits, self._question, self._reached
        for key in keys:
            item = None
            for direction in (-1, 1):
                low, high = self._now(key)
                down = low > 0 and (key[0] == "r" or question.sentences is not None)
                more = question.recovered is not None and high - low <= question.spread
                if not (down and direction < 0) and not (key[0] == "c" and more):
                    break
                item = item or self._item(key)
                weights, steps = np.r_[item.weights, 0], high if down else question.spread + 1
                moves = find_moves(
                    fits.layout, fits.base, fits.base_counts, reached, item.blocks, weights,
                    key[1] if key[0] == "c" else -1, direction, min(steps, MOVES),
                )  # fmt: skip
                for number in range(1, len(moves) + 1):
                    self._keep(as_changes(moves[:number], fits.base.shape[1]))

    def _item(self, key: Key) -> Item:
        return self.fits.item(key[1]) if key[0] == "c" else self.fits.record_item(key[1])

    def _now(self, key: Key) -> tuple[int, int]:
        """Return the least and the most that known data sets reach."""
        reached, (kind, i) = self._reached, key
        if kind == "c":
            return int(reached.least[i]), int(reached.most[i])
        block, record = (axis[i] for axis in self.fits.records)
        return int(reached.fewest[block, record]), int(self.fits.base[block, record])

    def _is_narrow(self, key: Key, spread: int) -> bool | None:
        """Return whether a count is certain within ``spread``, or None if undecided."""
        statuses = []
        for direction in (1, -1):
            status = "found"
            while status == "found":
                low, high = self._now(key)
                if high - low > spread:
                    return False
                status = self._move(key, direction)
            statuses.append(status)
        return None if "unknown" in statuses else True

    def _end(self, key: Key) -> int | None:
        """Return the smallest possible value of an item, or None if undecided."""
        while (least := self._now(key)[0]) > 0:
            status = self._move(key, -1)
            if status != "found":
                return least if status == "none" else None
        return least

    def _move(self, key: Key, direction: int) -> str:
        """Search for data sets where an item is larger (1) or smaller (-1); return the status."""
        step = *key, direction
        if step in self._stuck or step in self._unknown:
            return "none" if step in self._stuck else "unknown"
        low, high = self._now(key)
        least = high + 1 if direction > 0 else 1 - low  # of the form, times the direction
        status = self._search(key, direction, least)
        if status == "none":
            self._stuck.add(step)
        elif status == "unknown" and self._thorough:
            self._unknown.add(step)
        return status

    def _search(self, key: Key, direction: int, least: int) -> str:
        every, item = np.arange(self.fits.base.shape[0]), self._item(key)
        if not self.fits.large:
            return self._reach(every, item, direction, least)
        # Nothing outside of the places of the item: what is impossible then is impossible at all.
        is_whole = item.blocks.size * self.fits.base.shape[1] <= _WHOLE
        if is_whole and self._alone(key, item, direction, least) == "none":
            return "none"
        if not self._thorough:
            return "unknown"
        for blocks in self._neighbourhoods(item):
            if self._reach(blocks, item, direction, least) == "found":
                return "found"
        if every.size * self.fits.base.shape[1] <= _WHOLE:
            return self._reach(every, item, direction, least)
        return "unknown"

    def _alone(self, key: Key, item: Item, direction: int, least: int) -> str:
        """Return whether an item reaches ``least`` in its places alone: found, none, unknown."""
        digest, answers = self._digest(item.blocks), self.fits.answers
        question = (digest, *key, direction, least)
        if question not in answers:
            form = direction * _form(item.blocks, item)
            answers[question] = self.program(item.blocks, alone=True).find(form, least)[0]
        return answers[question]

    def _digest(self, blocks: IntArray) -> bytes:
        key = blocks.tobytes()
        if key not in self._digests:
            digest = hashlib.sha256(key)
            for number, v in enumerate(self.fits.variants):
                places, rows = _inside(self.fits.parents[v.level], blocks), self.fits.rows(number)
                for ends in (self.low, self.high):
                    digest.update(ends[rows].reshape(self.fits.shape[number])[places].tobytes())
            self._digests[key] = digest.digest()
        return self._digests[key]

    def _neighbourhoods(self, item: Item) -> list[IntArray]:
        """Return sets of blocks in which records may be added, removed or exchanged."""
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
            change = records - self.fits.base[blocks]
            rows, kinds = np.nonzero(change)
            self._keep(np.stack([blocks[rows], kinds, change[rows, kinds]], axis=1))
        return status

    def _keep(self, changes: IntArray) -> None:
        """Store a data set that fits, and update the values reached."""
        self.fits.keep(changes)
        self.fits.note(self._reached, [changes])

    def program(self, blocks: IntArray, *, alone: bool = False) -> _Program:
        """Return the program of some blocks; ``alone`` drops rows that involve other blocks."""
        key = alone, blocks.tobytes()
        if key not in self._programs:
            self._programs[key] = _Program(self._model(blocks, alone), self.fits.base[blocks])
        return self._programs[key]

    def _model(self, blocks: IntArray, alone: bool) -> IntegerModel | None:
        fits, kinds = self.fits, self.fits.base.shape[1]
        inner = None if alone else fits.counts(fits.base[blocks], blocks)
        parts, ends = [], []
        for number, v in enumerate(fits.variants):
            parent, rows = fits.parents[v.level], fits.rows(number)
            low = self.low[rows].reshape(fits.shape[number])
            high = self.high[rows].reshape(fits.shape[number])
            if not (low.any() or (high < ENDLESS).any()):
                continue  # it is not published
            places = np.unique(parent[blocks])
            if inner is None:
                places = _inside(parent, blocks)
                rest = np.zeros((places.size, 1), np.int64)
            else:  # counts of the other blocks stay
                whole = fits.base_counts[rows] - inner[rows]
                rest = whole.reshape(fits.shape[number])[places]
            if not places.size:
                continue
            holds = sp.csr_array((parent[blocks] == places[:, None]).astype(np.int64))
            parts.append(sp.csr_array(sp.kron(holds, v.weights, format="csr")))
            ends.append((less(low[places], rest).ravel(), less(high[places], rest).ravel()))
        free = np.full(blocks.size * kinds, ENDLESS)
        nothing = np.zeros(blocks.size * kinds, np.int64)
        matrix = sp.csr_array(np.zeros((0, free.size), np.int64))
        row_low = row_high = np.zeros(0, np.int64)
        if parts:
            row_low, row_high = (np.concatenate(side) for side in zip(*ends, strict=True))
            matrix = sp.csr_array(sp.vstack(parts, format="csr"))
        return narrowed(IntegerModel(nothing, free, matrix, row_low, row_high), _PASSES)
