"""Decisions on which claims hold in every solution of a block.

Nothing here rests on floating point. A claim is constant for one of three reasons. It is a
whole-numbered combination of published counts; or bounds proved in whole numbers meet; or a solver
finds no solution with another value, confirmed a second way. It is not constant if two solutions
differ in it, each checked against every count.

If published cells allow several counts, few claims are constant. Then the smallest number of
records that a claim describes in any solution is proved as well.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base.validation import BoolArray, CodeArray, FloatArray, IntArray, TextArray
from bayesrisk.constraints.certificates import proves_infeasible, reduced_values
from bayesrisk.constraints.ends import solve_beyond
from bayesrisk.constraints.implied import RowBasis, row_basis
from bayesrisk.constraints.model import IntegerModel, Status, expand
from bayesrisk.constraints.solvers import Deadline, SolverBackend
from bayesrisk.reconstruction.claims.search.block_system import (
    AllowedCounts,
    BlockSystem,
    Conflict,
    StatedClaims,
    block_system,
    readable_bounds,
    readable_everywhere,
    readable_here,
    smallest_conflict,
)
from bayesrisk.reconstruction.claims.search.lattice import (
    Subsets,
    matches,
    pattern_counts,
    supports,
    universal,
)
from bayesrisk.reconstruction.claims.search.space import ClaimSpace
from bayesrisk.reconstruction.records.kernels import HIDDEN
from bayesrisk.reconstruction.records.problem import CountRanges
from bayesrisk.tables.likelihoods import UNBOUNDED

VERIFIED, REFUTED, UNDECIDED = 1, 0, -1
_WHOLE, _POSITIVE = 1e-6, 1e-7
#: Classes for which the relaxation alone soon shows what can be positive.
_FEW = 100
#: Classes that are looked at first, for each row.
_LIKELY = 3
#: Relaxations of one search, before a general solver is asked.
_NODES = 400
#: Pairs of claim and cell that are looked at together.
_AT_ONCE = 2**22
#: Searches for records unlike those found that may tell nothing new, one after another, and the
#: share of the open claims that a search is for, after one for all of them.
_FRUITLESS, _SHARE = 2, 0.2


class CountEnds(NamedTuple):
    """Numbers of records that claims describe: values of solutions, and proved bounds.

    Solutions have ``least`` and ``most`` records of each claim (``UNBOUNDED``: no largest number);
    none has fewer than ``low`` or more than ``high``.
    """

    least: IntArray
    most: IntArray
    low: IntArray
    high: IntArray


@dataclass
class Decider:
    """Solutions of one block, and decisions on claims about it.

    ``solutions`` are records in each remaining class; each was checked against every count.
    :meth:`find` reduces the block. ``model`` lacks the classes that are empty in all solutions, and
    rows that follow from the others. ``columns`` are all rows for the remaining classes. ``cells``
    are the cells of these, as positions in the space, class by class from ``start``.
    """

    problem: "ClaimProblem"
    system: BlockSystem
    deadline: Deadline
    solutions: list[IntArray] = field(default_factory=list)

    def find(self) -> str:
        """Search for solutions near vertices of random objectives; return a status."""
        from bayesrisk.constraints.highs import Sifted  # loads a compiled solver

        possible = self._possible()
        if possible is None:
            return Status.INFEASIBLE
        if self.deadline.late:
            return Status.UNKNOWN
        self._reduce(possible)
        if not possible.any():  # ranges that only nobody fits, or that not even nobody does
            return Status.FEASIBLE if self.take(self.model.low) else Status.INFEASIBLE
        likely = np.flatnonzero(self._likely[possible])
        self._linear = Sifted(self.model, likely, deadline=self.deadline)
        rng = np.random.default_rng(self.problem.seed)
        for _ in range(self.problem.n_solutions):
            objective = rng.integers(-1000, 1001, self.model.low.size)
            if self._search(objective, None) == "none":
                return Status.INFEASIBLE
        return Status.FEASIBLE if self.solutions else Status.UNKNOWN

    def _possible(self) -> BoolArray | None:
        """Return a mask of classes not proved empty in every solution, or None if infeasible.

        An interior point shows the classes that can be positive. The dual values of the largest sum
        of the others prove that they cannot be.
        """
        from bayesrisk.constraints.highs import Sifted, interior_point

        model = self.system.model
        every, inside = np.ones(model.low.size, np.bool_), None
        if every.size > _FEW:
            inside = interior_point(model, self.deadline)
        self._likely = _largest(inside, model)
        linear = Sifted(model, np.flatnonzero(self._likely), deadline=self.deadline)
        answer = linear.relax(model.low, model.high)
        low, high = model.low, model.high
        if answer.ray is not None and proves_infeasible(model, low, high, answer.ray):
            return None
        covered = inside > _POSITIVE if inside is not None else ~every
        while not covered.all():
            unseen = (~covered).astype(np.int64)
            answer = linear.maximise(unseen)
            if answer.values is None or answer.duals is None:
                return every
            if unseen @ answer.values < 1.0 - _WHOLE:
                bound, _ = reduced_values(model, unseen, low, high, answer.duals)
                return covered if bound < 1 else every
            more = covered | (answer.values > _WHOLE)
            if more.sum() == covered.sum():
                return every
            covered = more
        return every

    def _reduce(self, possible: BoolArray) -> None:
        """Remove classes that are empty, and rows that follow from others."""
        full, chosen = self.system.model, np.flatnonzero(possible)
        self.columns = sp.csc_array(sp.csc_array(full.rows)[:, chosen])
        self.columns.sort_indices()
        size = np.diff(self.system.start)
        self.start = np.concatenate([[0], np.cumsum(size[chosen])]).astype(np.int64)
        self.cells = self.system.members[np.repeat(possible, size)]
        # Only rows with one count follow from each other; those with several all stay, also where
        # the largest one that the model has for an open row is the smallest.
        equal = (full.row_low == full.row_high) & ~self.system.open
        exact = self.columns if equal.all() else sp.csc_array(sp.csr_array(self.columns)[equal])
        self._basis: RowBasis = row_basis(exact, full.row_low[equal])
        rows = np.sort(np.append(np.flatnonzero(~equal), np.flatnonzero(equal)[self._basis.rows]))
        self.loose = self.system.loose[chosen]
        self.model = full.part(rows, chosen)

    def take(self, whole: IntArray) -> bool:
        """Store a solution if every published cell allows its counts; return whether it did."""
        sums, full = self.columns @ whole, self.system.model
        fits = np.all((sums >= full.row_low) & (sums <= full.row_high))
        if fits and whole.min(initial=0) >= 0:
            self.solutions.append(whole)
            return True
        return False

    def _search(self, objective: IntArray, least: int | None) -> str:
        """Search for a solution with objective >= ``least`` (None: any), and store it.

        Returns ``found``, ``none`` (proved) or ``unknown``.
        """
        status, whole = self._linear.find(objective, least, nodes=_NODES)
        if status == "unknown" and not self.deadline.late:
            solver = self.problem.solver
            status, whole = solve_beyond(self.model, objective, least, solver, self.deadline)
        if whole is not None:
            return "found" if self.take(whole) else "unknown"
        return status

    def records(self, solution: IntArray) -> "WeightedRows":
        """Return a solution's records that claims can be about, equal ones in one row."""
        filled, space = np.flatnonzero(solution), self.problem.space
        cells = self.cells[self.start[filled]]
        named = space.eligible[cells]
        return WeightedRows(space.codes[cells[named]], solution[filled[named]])

    def differ(self, patterns: CodeArray, *, look: bool) -> BoolArray:
        """Return a mask of patterns whose number of matching records differs between solutions.

        With ``look``, it searches for more solutions, with few of the first one's records.
        """
        count, refuted = np.zeros(len(patterns), np.int64), np.zeros(len(patterns), np.bool_)
        pattern_counts(patterns, *self.records(self.solutions[0]), count)
        first, used = (self.solutions[0] > 0).astype(np.int64), 1

        def refute() -> bool:
            nonlocal used
            left = before = np.flatnonzero(~refuted)
            for solution in self.solutions[used:]:
                other = np.zeros(left.size, np.int64)
                pattern_counts(patterns[left], *self.records(solution), other)
                refuted[left] = other != count[left]
                left = left[~refuted[left]]
            used = len(self.solutions)
            return left.size < before.size

        def aim(rng: np.random.Generator, _: float) -> IntArray | None:
            # min sum_g w_g y_g over the classes g of the first one, weights w at random
            return None if refuted.all() else -first * rng.integers(1, 1001, first.size)

        refute()
        if look:
            self._look(aim, refute)
        return refuted

    def _look(
        self,
        aim: Callable[[np.random.Generator, float], IntArray | None],
        note: Callable[[], bool],
    ) -> None:
        """Search for solutions until several in a row bring nothing new, or ``aim`` returns None.

        An aim is for a share of the open claims: for all of them at first, then for one at random.
        """
        rng, fruitless, share = np.random.default_rng(self.problem.seed), 0, 1.0
        while fruitless < _FRUITLESS and not self.deadline.late:
            objective = aim(rng, share)
            if objective is None or self._search(objective, None) != "found":
                return
            fruitless, share = (0 if note() else fruitless + 1), _SHARE

    def _matched(self, patterns: CodeArray, classes: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return masks (patterns, classes) of classes with some, and with only, matching cells."""
        index, owner = expand(self.start, classes)
        cells, first = self.cells[index], np.searchsorted(owner, np.arange(classes.size))
        space = self.problem.space
        matched = matches(space.codes[cells], patterns) & space.eligible[cells]
        if matched.shape[1] == classes.size:
            return matched, matched
        any_match: BoolArray = np.logical_or.reduceat(matched, first, axis=1)
        all_match: BoolArray = np.logical_and.reduceat(matched, first, axis=1)
        return any_match, all_match

    def decide(self, patterns: CodeArray, value: IntArray, status: NDArray[np.int8]) -> None:
        """Decide undecided claims: set ``status`` to verified, refuted or undecided.

        ``patterns`` (-1 for any value) match no unbound cell, and ``value`` is the number of
        matching records of the first solution: no other value can be that of every solution.
        """
        left = np.flatnonzero(status == UNDECIDED)
        for part, any_match, all_match in self._parts(patterns, left):
            status[part[self._constant(any_match, all_match) == value[part]]] = VERIFIED
        used, sign = self._refute(patterns, value, status, 0), 1

        def note() -> bool:
            nonlocal used, sign
            before = np.count_nonzero(status == UNDECIDED)
            used, sign = self._refute(patterns, value, status, used), -sign
            return bool(np.count_nonzero(status == UNDECIDED) < before)

        # Solutions with few, or many, records of many open claims refute many of them at once.
        self._look(
            lambda rng, share: self._sum(patterns, status == UNDECIDED, rng, share, -sign), note
        )
        for claim in np.flatnonzero(status == UNDECIDED).tolist():
            if status[claim] == UNDECIDED and not self.deadline.late:
                self._settle(claim, patterns, value, status)
                used = self._refute(patterns, value, status, used)

    def _sum(
        self, patterns: CodeArray, chosen: BoolArray, rng: np.random.Generator, share: float,
        sign: int,
    ) -> IntArray | None:  # fmt: skip
        """Return an objective that counts records matching a random share of patterns, or None."""
        left = np.flatnonzero(chosen)
        total = np.zeros(self.model.low.size, np.int64)
        for _, any_match, all_match in self._parts(patterns, left[rng.random(left.size) <= share]):
            total += (any_match if sign > 0 else all_match).sum(axis=0)
        return sign * total if left.size else None

    def _parts(
        self, patterns: CodeArray, chosen: IntArray
    ) -> Iterator[tuple[IntArray, BoolArray, BoolArray]]:
        """Yield patterns in batches, with masks of classes they match in part and as a whole."""
        classes = np.arange(self.start.size - 1)
        step = max(1, _AT_ONCE // max(self.cells.size, 1))
        for begin in range(0, chosen.size, step):
            if self.deadline.late:
                return
            part = chosen[begin : begin + step]
            yield part, *self._matched(patterns[part], classes)

    def _constant(self, any_match: BoolArray, all_match: BoolArray) -> IntArray:
        """Return each sum's value that exact rows determine, or -1 if they do not."""
        whole = (any_match == all_match).all(axis=1)
        constant = np.full(len(all_match), -1, np.int64)
        total, part = self._basis.totals(all_match[whole])
        constant[whole] = np.where(part > 0, total // np.maximum(part, 1), -1)
        return constant

    def _refute(
        self, patterns: CodeArray, value: IntArray, status: NDArray[np.int8], used: int
    ) -> int:
        """Refute the claims that differ in a new solution; return the number of solutions used."""
        for solution in self.solutions[used:]:
            left = np.flatnonzero(status == UNDECIDED)
            filled = np.flatnonzero(solution)
            any_match, all_match = self._matched(patterns[left], filled)
            more = any_match @ solution[filled] > value[left]
            less = all_match @ solution[filled] < value[left]
            status[left[more | less]] = REFUTED
        return len(self.solutions)

    def _settle(
        self, claim: int, patterns: CodeArray, value: IntArray, status: NDArray[np.int8]
    ) -> None:
        """Decide one claim by searching for solutions with more matches and with fewer."""
        any_match, all_match = self._matched(patterns[[claim]], np.arange(self.start.size - 1))
        sides = ((any_match[0].astype(np.int64), 1), (-all_match[0].astype(np.int64), -1))
        proved = True
        for objective, sign in sides:
            least = sign * int(value[claim]) + 1
            answer = self._search(objective, least)
            if answer == "found":
                status[claim] = REFUTED
                return
            proved &= answer == "none"
        if proved:
            status[claim] = VERIFIED

    def ends(self, patterns: CodeArray, endless: BoolArray, *, prove: bool) -> CountEnds:
        """Return the least and the most matching records of each pattern over all solutions.

        Solutions reach both.  With ``prove`` the smallest one is proved, and the largest one where
        no other was reached; ``endless`` patterns have no largest one.
        """
        n = len(patterns)
        bounds = CountEnds(
            np.full(n, UNBOUNDED), np.where(endless, UNBOUNDED, 0), np.zeros(n, np.int64),
            np.full(n, UNBOUNDED),
        )  # fmt: skip
        used = self._reach(patterns, bounds, 0)
        if not prove:
            return bounds
        size = np.zeros(n, np.int64)
        for part, any_match, all_match in self._parts(patterns, np.arange(n)):
            constant = self._constant(any_match, all_match)
            fixed = constant >= 0
            bounds.low[part[fixed]] = bounds.high[part[fixed]] = constant[fixed]
            bounds.most[part[(any_match & self.loose).any(axis=1)]] = UNBOUNDED
            size[part] = any_match.sum(axis=1)
        bounds.high[endless] = UNBOUNDED
        # What describes few classes first: claims that it implies have no smaller number.
        order = np.argsort(size, kind="stable").tolist()
        # At first bounds of the relaxation alone, which leave open what solutions with few records
        # mostly refute, many at once; then one after another.
        for search in (False, True):
            used = self._few(patterns, bounds, used)
            for claim in order:
                if bounds.least[claim] > bounds.low[claim] and not self.deadline.late:
                    used = self._prove(claim, patterns, bounds, used, sign=-1, search=search)
                    fewer = (patterns == patterns[claim]) | (patterns < 0)
                    implied = fewer.all(axis=1)
                    bounds.low[implied] = np.maximum(bounds.low[implied], bounds.low[claim])
        for claim in np.argsort(-size, kind="stable").tolist():
            reached = bounds.low[claim] == bounds.most[claim] < bounds.high[claim]
            if reached and not self.deadline.late:
                used = self._prove(claim, patterns, bounds, used, sign=1)
                implied = ((patterns == patterns[claim]) | (patterns[claim] < 0)).all(axis=1)
                bounds.high[implied] = np.minimum(bounds.high[implied], bounds.high[claim])
        return bounds

    def _few(self, patterns: CodeArray, solution: CountEnds, used: int) -> int:
        """Search for solutions with few records of open patterns; return the number used."""

        def note() -> bool:
            nonlocal used
            was = solution.least.copy()
            used = self._reach(patterns, solution, used)
            return bool((solution.least < was).any())

        self._look(
            lambda rng, share: self._sum(patterns, solution.least > solution.low, rng, share, -1),
            note,
        )
        return used

    def _reach(self, patterns: CodeArray, bounds: CountEnds, used: int) -> int:
        """Update the numbers reached by new solutions; return the number of solutions used."""
        for solution in self.solutions[used:]:
            filled = np.flatnonzero(solution)
            any_match, all_match = self._matched(patterns, filled)
            np.minimum(bounds.least, all_match @ solution[filled], out=bounds.least)
            np.maximum(bounds.most, any_match @ solution[filled], out=bounds.most)
        return len(self.solutions)

    def _prove(
        self, claim: int, patterns: CodeArray, solution: CountEnds, used: int, *, sign: int,
        search: bool = True,
    ) -> int:  # fmt: skip
        """Prove one pattern's largest number (sign 1) or smallest (-1); return the number used.

        Without ``search`` the number stays at the bound of the relaxation.
        """
        any_match, all_match = self._matched(patterns[[claim]], np.arange(self.start.size - 1))
        objective = sign * (any_match if sign > 0 else all_match)[0].astype(np.int64)
        reached, proved = (
            (solution.most, solution.high) if sign > 0 else (solution.least, solution.low)
        )
        # In whole numbers: c y <= b for all solutions of the relaxation, so c y <= floor(b).
        bound, _ = self._linear.bound(objective)
        if bound is not None and bound < UNBOUNDED:
            proved[claim] = sign * min(sign * int(proved[claim]), bound)
        while search and sign * int(proved[claim] - reached[claim]) > 0 and not self.deadline.late:
            outcome = self._search(objective, sign * int(reached[claim]) + 1)
            if outcome == "none":
                proved[claim] = reached[claim]
            elif outcome == "found":
                used = self._reach(patterns, solution, used)
            else:
                break
        return used


def _largest(inside: FloatArray | None, model: IntegerModel) -> BoolArray:
    """Return a mask of the classes in which an interior point has most records."""
    n_classes = model.low.size
    if inside is None:
        return np.ones(n_classes, np.bool_)
    chosen = np.zeros(n_classes, np.bool_)
    chosen[np.argsort(-inside, kind="stable")[: _LIKELY * model.row_low.size]] = True
    return chosen


# -----------------------------------------------------------------------------
# Claims of one block: candidates from one solution, and a decision on each.


@dataclass(frozen=True)
class ClaimProblem:
    """Checked tables and options of a search for claims, shared by all blocks.

    ``space`` are the possible cells, ``sets`` the sets of ``columns`` of claims, and ``among`` the
    codes of their records. ``published`` are the cells of each of ``places`` (of ``level``),
    ``HIDDEN`` if withheld, and ``ranges`` the counts that they allow. If these may be several,
    ``bounds`` says whether claims are about a least number of records, or about an exact one.
    ``solver`` decides cases that the relaxation does not settle, and ``time_limit`` is in seconds
    for a place. Candidates must hold in ``n_solutions`` solutions, near optima of objectives drawn
    with ``seed``. They are decided if ``verify`` says so, and the refuted ones kept if ``refuted``
    does. ``taken_as_true`` says whether some counts are of a release that does not say that they
    are true.
    """

    level: str
    places: TextArray
    columns: tuple[str, ...]
    among: Mapping[str, tuple[int, ...]]
    space: ClaimSpace
    published: sp.csr_array
    ranges: CountRanges
    sets: Subsets
    solver: SolverBackend
    time_limit: float | None
    n_solutions: int
    seed: int
    refuted: bool
    taken_as_true: bool
    bounds: bool = False
    verify: bool = True

    @cached_property
    def radix(self) -> IntArray:
        """Weights of the columns in the key of a claim, for codes counted from 1."""
        sizes = self.space.sizes[self.sets.columns]
        return np.cumprod(np.append(1, sizes[:-1] + 1)).astype(np.int64)

    def blocks(self) -> Iterator[AllowedCounts]:
        """Yield each place's published cells, with the true counts that they allow."""
        for row in range(len(self.places)):
            published = self.published[[row]].toarray()[0]
            hidden = published == HIDDEN
            low, high = (side[0] for side in self.ranges.whole([row]))
            yield AllowedCounts(np.where(hidden, 0, published), hidden, np.maximum(low, 0), high)

    def study(self, counts: AllowedCounts, targets: "AskedClaims | None" = None) -> "BlockClaims":
        """Return a block's claims with decisions: all candidates, or the given ``targets``."""
        deadline = Deadline(self.time_limit)
        system = block_system(self.space, counts)
        if isinstance(system, Conflict):
            return BlockClaims(Status.INFEASIBLE, self._in_words(system, counts))
        live = system.place.cells.size
        if not system.model.low.size:
            return _without_records(self, system, targets)
        if deadline.late:
            return BlockClaims(Status.UNKNOWN, live=live)
        decider = Decider(self, system, deadline)
        outcome = decider.find()
        if outcome == Status.INFEASIBLE:
            conflict = smallest_conflict(system, self.solver, deadline)
            return BlockClaims(outcome, self._in_words(conflict, counts), live=live)
        if outcome == Status.UNKNOWN:
            return BlockClaims(outcome, live=live)
        records = decider.records(decider.solutions[0])
        claimed = (
            _candidates(self, records)
            if targets is None
            else _target_claims(self, records, targets)
        )
        if self.bounds:
            return _bounded(self, system, counts, decider, claimed, records, targets)
        return _decided(self, system, decider, claimed, records)

    def _in_words(self, conflict: Conflict, counts: AllowedCounts) -> str:
        texts = []
        for q in conflict.query.tolist():
            text = "withheld" if counts.hidden[q] else f"= {counts.published[q]}"
            low, high = int(counts.low[q]), int(counts.high[q])
            if low < high:
                text += f" ({low} or more)" if high == UNBOUNDED else f" ({low} to {high})"
            texts.append(f"{self.space.queries.names[q][1]} {text}")
        return f"{conflict.reason}: {', '.join(texts)}"


class WeightedRows(NamedTuple):
    """Records of one solution: distinct codes, and the number of records with them."""

    codes: CodeArray
    times: IntArray

    def unique(self) -> "WeightedRows":
        """Return the records sorted by code, with equal rows merged."""
        codes, row = np.unique(self.codes, axis=0, return_inverse=True)
        times = np.zeros(len(codes), np.int64)
        np.add.at(times, row.ravel(), self.times)
        return WeightedRows(codes, times)


class AskedClaims(NamedTuple):
    """Claims to be decided: patterns, multiplicities, and whether these are lower bounds."""

    patterns: CodeArray
    multiplicity: IntArray
    at_least: BoolArray


@dataclass(frozen=True)
class BlockClaims:
    """Claims of one block.

    The status is ``decided``, ``undecided``, ``infeasible`` (with the published cells that
    contradict), ``unknown`` or ``empty``.  ``patterns`` have the value of every attribute in each
    claim, -1 for any; ``needed`` is the number of columns that say it all; a claim is
    ``readable`` where a table states it always, ``readable_here`` where one does with these
    zeros, and ``at_least`` where it is about that many records or more.  ``rows`` and
    ``times`` are the records of one solution that claims can be about, ``live`` the number of live
    cells.
    """

    status: str
    conflict: str = ""
    patterns: CodeArray = field(default_factory=lambda: np.zeros((0, 0), np.int16))
    multiplicity: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    decision: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    needed: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    readable: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    readable_here: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))
    rows: CodeArray = field(default_factory=lambda: np.zeros((0, 0), np.int16))
    times: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    live: int = 0
    at_least: BoolArray = field(default_factory=lambda: np.zeros(0, np.bool_))


@dataclass(frozen=True)
class _Claimed:
    """Candidate claims: pattern, size, columns needed, and number of records."""

    patterns: CodeArray
    size: IntArray
    needed: IntArray
    value: IntArray
    multiplicity: IntArray


def _candidates(problem: ClaimProblem, records: WeightedRows) -> _Claimed:
    space, sets = problem.space, problem.sets
    rows, times = records.unique()
    size, needed = universal(space, rows, sets)
    member = sets.member()
    codes = (rows[:, sets.columns].astype(np.int64) + 1) * problem.radix
    keys, first, number = np.unique(
        codes @ member.T.astype(np.int64), return_index=True, return_inverse=True
    )
    row, column = np.divmod(first, sets.bits.size)
    patterns = np.full((first.size, space.codes.shape[1]), -1, np.int16)
    patterns[:, sets.columns] = np.where(member[column], rows[row][:, sets.columns], -1)
    value = np.zeros(keys.size, np.int64)
    np.add.at(value, number.ravel(), np.repeat(times, sets.bits.size))
    return _Claimed(patterns, size[row, column], needed[row, column], value, value)


def _target_claims(problem: ClaimProblem, records: WeightedRows, targets: AskedClaims) -> _Claimed:
    patterns, multiplicity, _ = targets
    value = np.zeros(len(patterns), np.int64)
    pattern_counts(patterns, *records.unique(), value)
    return _Claimed(patterns, *_universal_sizes(problem, patterns), value, multiplicity)


def _universal_sizes(problem: ClaimProblem, patterns: CodeArray) -> tuple[IntArray, IntArray]:
    sets = problem.sets
    parts = [np.zeros((2, 0), np.int64)]
    for start in range(0, len(patterns), 1024):
        batch = patterns[start : start + 1024]
        bits = (batch[:, sets.columns] >= 0) @ (1 << np.arange(sets.columns.size))
        index = np.arange(len(batch)), sets.position[bits]
        parts.append(np.stack([part[index] for part in universal(problem.space, batch, sets)]))
    size, needed = np.concatenate(parts, axis=1)
    return size, needed


def _decided(
    problem: ClaimProblem,
    system: BlockSystem,
    decider: Decider,
    claimed: _Claimed,
    records: WeightedRows,
) -> BlockClaims:
    """Return the claims with decisions, and whether a table states each directly."""
    space, patterns, value = problem.space, claimed.patterns, claimed.value
    decision = np.where(value == claimed.multiplicity, UNDECIDED, REFUTED).astype(np.int64)
    # Data sets refute claims: those found, and some that are as far from the first as can be.
    decision[_without_limit(space, system, patterns)] = REFUTED
    decision[decider.differ(patterns, look=problem.verify)] = REFUTED
    open_ = np.flatnonzero(decision == UNDECIDED)
    number, first, size = supports(
        space.codes[system.place.cells], space.eligible[system.place.cells], patterns[open_]
    )
    first = open_[first]
    if problem.verify:
        status = np.full(first.size, UNDECIDED, np.int8)
        decider.decide(patterns[first], value[first], status)
        decision[open_] = status[number]
    alive = decision[open_] != REFUTED
    local = np.zeros(len(patterns), np.bool_)
    local[open_[alive]] = readable_here(space, system, patterns[open_[alive]], size[number[alive]])
    readable = np.zeros(len(patterns), np.bool_)
    # A claim that a table states whatever its zeros is also stated with these zeros.
    readable[local] = readable_everywhere(space, patterns[local], claimed.size[local])
    keep = np.ones(decision.size, np.bool_) if problem.refuted else decision != REFUTED
    undecided = problem.verify and bool((decision == UNDECIDED).any())
    return BlockClaims(
        Status.UNDECIDED if undecided else Status.DECIDED, "", patterns[keep],
        claimed.multiplicity[keep], decision[keep], claimed.needed[keep], readable[keep],
        local[keep], *records, system.place.cells.size,
    )  # fmt: skip


def _without_limit(space: ClaimSpace, system: BlockSystem, patterns: CodeArray) -> BoolArray:
    """Return a mask of patterns that match cells which no count constrains."""
    unbound = np.unique(space.codes[system.unbound[space.eligible[system.unbound]]], axis=0)
    loose = np.zeros(len(patterns), np.int64)
    if len(unbound):
        pattern_counts(patterns, unbound, np.ones(len(unbound), np.int64), loose)
    return np.asarray(loose > 0)


def _bounded(
    problem: ClaimProblem,
    system: BlockSystem,
    counts: AllowedCounts,
    decider: Decider,
    claimed: _Claimed,
    records: WeightedRows,
    targets: AskedClaims | None,
) -> BlockClaims:
    """Return decisions on claims about exactly, or about at least, some records.

    Each candidate becomes the strongest claim about its columns that is proved.
    """
    space, patterns, times = problem.space, claimed.patterns, claimed.multiplicity
    codes, eligible = space.codes[system.place.cells], space.eligible[system.place.cells]
    number, first, size = supports(codes, eligible, patterns)
    endless = _without_limit(space, system, patterns[first])
    ends = decider.ends(patterns[first], endless, prove=problem.verify)
    least, most, low, high = (end[number] for end in ends)
    if targets is None:
        at_least = (low < high) if problem.verify else (least < most)
        # The largest m for which "at least m" is proved; where none is, what is still possible.
        times = np.where(low > 0, low, np.maximum(least, 1))
        decision = np.where(least == 0, REFUTED, np.where(low > 0, VERIFIED, UNDECIDED))
        # More may be true than what is proved: another number, or that it is the only one.
        left = (least > low) | ((low == most) & (high > most))
    else:
        at_least = targets.at_least
        false = (least < times) | (~at_least & ((most > times) | (low > times)))
        true = (low >= times) & (at_least | (high <= times))
        decision = np.where(false, REFUTED, np.where(true, VERIFIED, UNDECIDED))
        left = decision == UNDECIDED
    keep = np.flatnonzero(
        np.ones(decision.size, np.bool_) if problem.refuted else decision != REFUTED
    )
    claims = StatedClaims(patterns[keep], size[number[keep]], times[keep], at_least[keep])
    every, always = np.arange(len(space.codes)), claims._replace(size=claimed.size[keep])
    stated = space.stated(system.place.cells, system.place.query)
    local = readable_bounds(space, stated, system.place.cells, counts, claims)
    readable = local & readable_bounds(space, space.constant, every, counts, always)
    undecided = problem.verify and bool((left & (decision != REFUTED)).any())
    return BlockClaims(
        Status.UNDECIDED if undecided else Status.DECIDED, "", patterns[keep], times[keep],
        decision[keep].astype(np.int64), claimed.needed[keep], readable, local, *records,
        system.place.cells.size, at_least[keep],
    )  # fmt: skip


def _without_records(
    problem: ClaimProblem, system: BlockSystem, targets: AskedClaims | None
) -> BlockClaims:
    """Return decisions on claims about a block without a positive count."""
    if targets is None:
        return BlockClaims(Status.EMPTY, live=system.place.cells.size)
    (patterns, multiplicity, at_least), space = targets, problem.space
    size, needed = _universal_sizes(problem, patterns)
    # Cells that no count binds can hold any number of records.
    cells = system.place.cells[space.eligible[system.place.cells]]
    loose = matches(space.codes[cells], patterns).any(axis=1)
    true = (at_least | ~loose) & (multiplicity == 0)
    return BlockClaims(
        Status.EMPTY,
        patterns=patterns,
        multiplicity=multiplicity,
        decision=np.where(true, VERIFIED, REFUTED).astype(np.int64),
        needed=needed,
        readable=readable_everywhere(space, patterns, size),
        readable_here=np.asarray(~loose),
        live=system.place.cells.size,
        at_least=at_least,
    )
