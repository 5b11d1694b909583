"""Smallest and largest counts that published tables allow, each end proved and reached."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import Deadline, Limits, SolverBackend, solver_and_limits
from bayesrisk.reconstruction.records.kernels import HIDDEN, UNCOUNTED, UNLIMITED
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    CountRanges,
    Problem,
    RowSource,
    StatedCounts,
    entries,
    published_problem,
)
from bayesrisk.reconstruction.records.program import Program, open_program
from bayesrisk.reconstruction.records.solve import Solution, solve_blocks
from bayesrisk.tables.cells import CellSpace, Queries
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import SeveralTables
from bayesrisk.tables.workload import Workload

# -----------------------------------------------------------------------------
# Histograms taken apart: margins that fit each other, each for some of the tables.
#
# Where the tables fall into two sets, each set sees a margin of the histogram, and both see the
# coarsest margin that is a sum of either.  If every two cells of the margins that lie in one common
# cell share a cell of the histogram, then any two margins with equal sums in all common cells are
# those of a histogram of whole numbers: the records of a common cell are paired in any order.  So
# the unknown counts are those of the margins, which are far fewer than the cells of the histogram,
# and the rows are the published counts and the equal sums.


#: For every attribute the group that each of its bins is in.
_Margin: TypeAlias = Mapping[str, IntArray]


@dataclass(frozen=True)
class _Link:
    """Two margins, by number, and for each cell of the histogram the common cell that it is in."""

    margins: tuple[int, int]
    common: IntArray


@dataclass(frozen=True)
class _Parts:
    """Margins of a histogram, their cells one after the other, and what they have in common.

    ``cell`` (cells of the histogram, margins) is the cell of each margin that a cell is in;
    ``first`` is the first cell of the histogram in each of them; ``home`` is for each set of
    queries the margin of every query.
    """

    cell: IntArray
    first: IntArray
    home: tuple[IntArray, ...]
    links: tuple[_Link, ...]

    @property
    def size(self) -> int:
        """Number of cells of all margins."""
        return int(self.first.size)

    @property
    def width(self) -> int:
        """Number of cells of all margins and of what they have in common."""
        return self.size + sum(int(link.common.max()) + 1 for link in self.links)

    def rows(self, number: int, matrix: sp.csr_array) -> sp.csr_array:
        """Return a set of queries, given over the histogram, over the cells of their margins."""
        terms = sp.coo_array(matrix[:, self.first])
        margin = np.searchsorted(self.cell.max(axis=0), terms.coords[1])
        chosen = margin == self.home[number][terms.coords[0]]
        place = tuple(part[chosen] for part in terms.coords)
        return sp.csr_array((terms.data[chosen], place), shape=(matrix.shape[0], self.width))

    def sums(self, block: IntArray, cell: IntArray, count: IntArray, size: int) -> IntArray:
        """Return the sums of counts over the cells of all margins, (blocks, cells of margins)."""
        totals = np.zeros((size, self.size), np.int64)
        for column in self.cell.T:
            totals += sp.coo_array((count, (block, column[cell])), shape=totals.shape).toarray()
        return totals


def _margin(space: CellSpace, factors: Iterable[Mapping[str, IntArray]]) -> dict[str, IntArray]:
    """Return the groups of bins between which none of some queries distinguishes."""
    factor_list = list(factors)
    margin = {}
    for name, size in zip(space.schema.names, space.shape, strict=True):
        stacked = np.concatenate([np.zeros((1, size), np.int64), *(f[name] for f in factor_list)])
        columns = np.unique(stacked, axis=0)
        margin[name] = np.unique(columns, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    return margin


def _margin_size(margin: _Margin) -> int:
    return int(np.prod([group.max() + 1 for group in margin.values()]))


def _as_factors(margin: _Margin) -> dict[str, IntArray]:
    """Return a margin as the factors of one query that distinguishes what the margin does."""
    return {name: group[None, :] for name, group in margin.items()}


def _refines(fine: _Margin, coarse: _Margin) -> bool:
    """Return whether each group of one margin lies in one group of the other."""
    return all(
        np.unique(np.stack([fine[name], coarse[name]]), axis=1).shape[1] == fine[name].max() + 1
        for name in fine
    )


def _common(a: IntArray, b: IntArray) -> IntArray | None:
    """Return the finest groups that are unions of groups of both, or None where two do not meet."""
    pairs = np.unique(np.stack([a, b]), axis=1)
    sizes = int(a.max()) + 1, int(b.max()) + 1
    graph = sp.coo_array((np.ones(pairs.shape[1], np.int8), tuple(pairs)), shape=sizes)
    square = sp.block_array([[None, graph], [graph.T, None]], format="csr")
    label = connected_components(square, directed=False)[1]
    count = [np.bincount(side) for side in (label[: sizes[0]], label[sizes[0] :])]
    # In every common group all groups of one side meet all of the other.
    if int(count[0] @ count[1]) != pairs.shape[1]:
        return None
    groups: IntArray = label[a].astype(np.int64)
    return groups


@dataclass(frozen=True)
class _Item:
    """Queries of one table (set and positions), or a margin that is shared with margin ``link``."""

    factors: Mapping[str, IntArray]
    number: int = -1
    positions: IntArray | None = None
    link: int = -1


#: The last parts: many blocks with one workload need them.
_KEPT: deque[tuple[Sequence[Queries], _Parts]] = deque(maxlen=8)


def _margin_parts(space: CellSpace, sets: Sequence[Queries]) -> _Parts:
    """Return margins that are those of a histogram where their sums agree, few cells in all."""
    for cached, parts in _KEPT:
        if len(cached) == len(sets) and all(a is b for a, b in zip(cached, sets, strict=True)):
            return parts
    parts = _split_margins(space, sets)
    _KEPT.append((tuple(sets), parts))
    return parts


def _split_margins(space: CellSpace, sets: Sequence[Queries]) -> _Parts:
    """Return the margins of tables that are split off one after the other.

    Tables whose attributes are among those of one table are split off together, the best first, as
    long as that makes fewer cells.
    """
    rest: list[_Item] = []
    for number, queries in enumerate(sets):
        ends = np.searchsorted(queries.table, np.arange(len(queries.tables) + 1))
        for a, b in itertools.pairwise(ends):
            factors = {name: factor[a:b] for name, factor in queries.factors.items()}
            rest.append(_Item(factors, number, np.arange(a, b)))
    home = tuple(np.zeros(len(queries.names), np.int64) for queries in sets)
    margins: list[_Margin] = []
    links: list[_Link] = []
    while rest:
        members, margin, common = _split(space, rest)
        for item in members:
            if item.positions is not None:
                home[item.number][item.positions] = len(margins)
            else:
                shared = {name: factor[0] for name, factor in item.factors.items()}
                links.append(_Link((item.link, len(margins)), _margin_cells(space, shared)))
        rest = [item for item in rest if all(item is not other for other in members)]
        if rest:
            rest.append(_Item(_as_factors(common), link=len(margins)))
        margins.append(margin)
    cells = [_margin_cells(space, margin) for margin in margins]
    offset = np.cumsum([0, *(_margin_size(margin) for margin in margins)])
    first = np.concatenate([np.unique(part, return_index=True)[1] for part in cells])
    cell = np.stack([part + start for part, start in zip(cells, offset[:-1], strict=True)], axis=1)
    return _Parts(cell, first.astype(np.int64), home, tuple(links))


def _split(space: CellSpace, rest: list[_Item]) -> tuple[list[_Item], _Margin, _Margin]:
    """Return items to split off, their margin, and what it has in common with that of the rest."""
    whole = _margin(space, (item.factors for item in rest))
    best, least = (rest, whole, whole), _margin_size(whole)
    tables = [item for item in rest if item.positions is not None]
    used = {
        id(t): frozenset(n for n, f in t.factors.items() if np.any(f != f[:, :1])) for t in tables
    }
    for names in dict.fromkeys(used.values()):
        members = [t for t in tables if used[id(t)] <= names]
        if len(members) == len(tables):
            continue
        margin = _margin(space, (item.factors for item in members))
        for item in rest:
            shared = {name: factor[0] for name, factor in item.factors.items()}
            if item.positions is None and _refines(margin, shared):
                members.append(item)
        remainder = [item for item in rest if all(item is not t for t in members)]
        rest_margin = _margin(space, (item.factors for item in remainder))
        size = _margin_size(margin) + _margin_size(rest_margin)
        if size >= least:
            continue
        common = {name: _common(margin[name], rest_margin[name]) for name in margin}
        agreed = {name: group for name, group in common.items() if group is not None}
        if len(agreed) == len(common):
            best, least = (members, margin, agreed), size
    return best


def _margin_cells(space: CellSpace, margin: _Margin) -> IntArray:
    shape = tuple(int(margin[name].max()) + 1 for name in space.schema.names)
    index = np.broadcast_arrays(*np.ix_(*(margin[name] for name in space.schema.names)))
    return np.ravel_multi_index(tuple(index), shape).ravel().astype(np.int64)


def _margin_problem(
    problem: Problem,
    parts: _Parts,
    star: sp.csr_array,
    targets: Sequence[tuple[Queries, CountRanges, IntArray]],
) -> tuple[Problem, BlockBounds, sp.csr_array]:
    """Return a problem whose cells are those of margins and slacks of what they have in common.

    ``targets`` are queries with their ranges, and the group of every block; ``star`` are histograms
    that fit, and are returned on the cells of the problem.  Two margins v and w with
    a common cell of at most N records have the rows ``sum v + s = N`` and ``sum w + s = N``.
    """
    size, bounds = problem.geoids.size, problem.bounds
    low = parts.sums(bounds.block, bounds.cell, bounds.low, size)
    high = parts.sums(bounds.block, bounds.cell, bounds.high, size)
    width, sources = parts.width, []
    for number, (queries, ranges, group) in enumerate(targets):
        rows = parts.rows(number, queries.matrix)
        sources.append(RowSource.from_matrix(rows, ranges, group, required=True))
    star_entries = star.tocoo()
    position = star_entries.coords[0].astype(np.int64), star_entries.coords[1].astype(np.int64)
    values = [parts.sums(*position, star_entries.data, size)]
    slack, row = parts.size, 0
    places: list[IntArray] = []
    slacks, totals = [low[:, :0]], [low[:, :0]]
    for link in parts.links:
        n_common = int(link.common.max()) + 1
        cells = [np.unique(parts.cell[:, margin]) for margin in link.margins]
        common = link.common[parts.first[cells[0]]]
        ones, place = np.ones(common.size, np.int64), (common, np.arange(common.size))
        total = (sp.csr_array((ones, place), shape=(n_common, common.size)) @ high[:, cells[0]].T).T
        for side in cells:
            places.append(np.stack([row + link.common[parts.first[side]], side]))
            places.append(np.stack([row + np.arange(n_common), slack + np.arange(n_common)]))
            totals.append(total)
            row += n_common
        slacks.append(total)
        inside = np.zeros_like(total)
        np.add.at(inside, (position[0], link.common[position[1]]), star_entries.data)
        values.append(total - inside)
        slack += n_common
    if parts.links:
        entry = np.concatenate(places, axis=1)
        rows = sp.csr_array((np.ones(entry.shape[1], np.int64), tuple(entry)), shape=(row, width))
        counts = CountRanges.from_counts(sp.csr_array(np.concatenate(totals, axis=1)))
        sources.append(RowSource.from_matrix(rows, counts, np.arange(size)))
    most = np.concatenate([high, *slacks], axis=1)
    least = np.concatenate([low, np.zeros((size, width - parts.size), np.int64)], axis=1)
    block, cell = np.nonzero(most)
    margin_bounds = replace(
        bounds, block=block, cell=cell, low=least[block, cell], high=most[block, cell]
    )
    margin_star = sp.csr_array(np.concatenate(values, axis=1))
    return replace(problem, rows=tuple(sources), larger=()), margin_bounds, margin_star


# -----------------------------------------------------------------------------
# The counts that are asked for, of all places, and their ends.


def _unpublished(
    problem: Problem, questions: Sequence[StatedCounts], workload: Workload
) -> list[StatedCounts]:
    """Return the queries of another workload, of which nothing is published."""
    unpublished = []
    for level in workload.levels:
        place = next(one for one in questions if one.level == level)
        queries = problem.space.queries(workload.at(level).values())
        shape = place.geoids.size, len(queries.names)
        nothing = CountRanges(
            sp.csr_array(shape, dtype=np.int64), sp.csr_array(shape, dtype=np.int64),
            np.full(shape[1], UNBOUNDED),
        )  # fmt: skip
        unpublished.append(
            StatedCounts(level, place.geoids, place.group, queries, None, nothing, queries.matrix)
        )
    return unpublished


#: Cells of histograms for each cell of margins above which margins are asked about.
_LARGER = 2


def _question_problem(
    problem: Problem, star: sp.csr_array, questions: Sequence[StatedCounts]
) -> tuple[Problem, BlockBounds, sp.csr_array, list[sp.csr_array]]:
    """Return the problem that is asked about, with bounds and a solution, and the rows asked for.

    Its cells are those of margins where these are fewer, and its first rows those of ``questions``.
    """
    sets = [(one.queries, one.ranges, one.group) for one in questions if one.rows is not None]
    bounds = problem.bounds
    if len(sets) == len(questions):
        parts = _margin_parts(problem.space, [one.queries for one in questions])
        if bounds.cell.size > _LARGER * parts.size * problem.geoids.size:
            reduced = _margin_problem(problem, parts, star, sets)
            return *reduced, [
                parts.rows(number, one.queries.matrix) for number, one in enumerate(questions)
            ]
    sources = [
        RowSource.from_matrix(one.rows, one.ranges, one.group, required=True)
        for one in questions
        if one.rows is not None
    ]
    # Differences of published cells say what these do, in fewer cells.
    if problem.system.reduced:
        sources.append(problem.rows[0])
    for larger, source in zip(problem.larger, problem.rows[1:], strict=True):
        if larger.coupling.detail is not None:
            sources.append(source)
    rows = [one.rows for one in questions if one.rows is not None]
    return replace(problem, rows=tuple(sources), larger=()), bounds, star, rows


def _endless(problem: Problem) -> dict[int, BoolArray]:
    """Return for blocks with cells that may hold any number which cells these are."""
    matrix, masks = problem.system.queries.matrix, {}
    for b in np.flatnonzero(np.isin(problem.bounds.status, (UNCOUNTED, UNLIMITED))).tolist():
        closed = problem.ranges.whole([b])[1][0] < UNBOUNDED
        limited = closed.astype(np.int64) @ matrix
        top = problem.ceiling(b)[0]
        masks[b] = (limited == 0) & (top == UNBOUNDED)
    return masks


@dataclass(frozen=True)
class _Answers:
    """Ends of all counts of one level, places by queries, and a status of each."""

    low: IntArray
    high: IntArray
    status: NDArray[np.object_]


def _row_ends(
    program: Program, point: IntArray, solver: SolverBackend, limits: Limits
) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
    """Return the ends of all rows of a program, and whether each of them is reached."""
    from bayesrisk.constraints.ends import row_ends  # slow to load

    p, model = program.parts, program.model
    low, high = model.row_low.copy(), model.row_high.copy()
    sure = np.ones((2, low.size), np.bool_)
    for k in range(program.parts.size):
        a, b = p.first_row[k], p.first_row[k + 1]
        star = point[p.first_var[k] : p.first_var[k + 1]]
        deadline = Deadline(limits.seconds, limits.nodes)
        low[a:b], high[a:b], sure[0, a:b], sure[1, a:b] = row_ends(
            program.parts.part([k]), star, solver, deadline
        )
    return low, high, sure[0], sure[1]


def _answers(
    problem: Problem,
    solution: Solution,
    questions: Sequence[StatedCounts],
    solver: SolverBackend,
    limits: Limits,
) -> list[_Answers]:
    """Return the ends of all counts that are asked for; those without a solution are as stated."""
    good = solution.solved
    reduced, bounds, star, rows = _question_problem(problem, solution.histogram(problem), questions)
    program, _, low, high = open_program(reduced, bounds, good)
    inside = np.flatnonzero(good[bounds.block])[program.entry]
    model = replace(program.model, low=low[inside], high=high[inside])
    program = replace(program, parts=replace(program.parts, model=model))
    point = entries(star, program.block, program.cell)
    *ends, below, above = _row_ends(program, point, solver, limits)
    endless, matrices, answers, number = _endless(problem), iter(rows), [], 0
    for one in questions:
        least, most = one.ranges.whole(slice(None))
        stated, size = (least.copy(), most.copy()), one.geoids.size
        status = np.full(least.shape, Status.PROVED, dtype=object)
        if one.rows is not None:
            matrix = next(matrices)
            shape, group = (size, matrix.shape[1]), one.group[bounds.block]
            least, most, fixed = (
                sp.csr_array(sp.csr_array((side, (group, bounds.cell)), shape=shape) @ matrix.T)
                .toarray()
                .astype(np.int64)
                for side in (low, high, np.where(low == high, low, 0))
            )
            # Settled cells hold what they hold, and the program says what the others can add.
            chosen = program.source == number
            place = program.group[chosen], program.row[chosen]
            least[place] = fixed[place] + ends[0][chosen]
            most[place] = fixed[place] + ends[1][chosen]
            status[place] = np.where(below & above, Status.PROVED, Status.UNDECIDED)[chosen]
            number += 1
            for b, cells in endless.items():
                most[one.group[b], one.rows @ cells.astype(np.int64) > 0] = UNBOUNDED
        for b in np.flatnonzero(~good).tolist():
            # Where no solution is known, what was stated holds, and what its cells allow.
            unit, wrong = int(one.group[b]), solution.status[b] == Status.INFEASIBLE
            if wrong or one.rows is None:
                least[unit], most[unit] = stated[0][unit], stated[1][unit]
            else:
                least[unit] = np.maximum(least[unit], stated[0][unit])
                most[unit] = np.minimum(most[unit], stated[1][unit])
            status[unit] = Status.INFEASIBLE if wrong else Status.UNDECIDED
        answers.append(_Answers(least, most, status))
    return answers


# -----------------------------------------------------------------------------
# The public function.


def narrowed(counts: pd.DataFrame) -> BoolArray:
    """Return of which counts of :class:`CountBounds` more is proved than they state."""
    names = ["low_stated", "high_stated", "low", "high"]
    ends = counts[names].astype("Int64").fillna(UNBOUNDED).to_numpy(np.int64)
    return np.asarray((ends[:, 2] > ends[:, 0]) | (ends[:, 3] < ends[:, 1]))


@displayed
@dataclass(frozen=True)
class CountBounds(Tabular):
    """Smallest and largest counts that published tables allow, and whether each is proved.

    Attributes
    ----------
    counts : pandas.DataFrame
        One row for each count: ``level``, ``geoid``, ``table``, ``cell``; ``published``, missing
        where it is withheld or not published; ``low_stated`` and ``high_stated``, what the
        published count says by itself; ``low`` and ``high``, what all published counts together
        allow; ``status``.  A largest count is missing where there is none.  The status is
        ``proved`` (both ends are those of histograms that fit, and no others go beyond),
        ``undecided`` (a limit was reached: the ends are proved, but may not be reached) or
        ``infeasible`` (proved: no histogram fits; the ends are those stated).
    conflict : mapping of str to str
        For blocks without a solution the published cells that contradict each other, or the reason.
    scope : str
        The level whose tables were taken together.
    """

    counts: pd.DataFrame
    conflict: Mapping[str, str]
    scope: str

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of counts: all, those that stand for several, and what is proved of these.

        ``recovered`` are those with one possible count, ``empty`` those of them that are 0, and
        ``at_least_one`` those that could be 0 by themselves and are not.
        """
        frame = self.counts
        ends = frame[["low_stated", "high_stated", "low", "high"]].astype("Int64").fillna(UNBOUNDED)
        least, most, low, high = (ends[name].to_numpy(np.int64) for name in ends)
        wide, sure = least < most, (frame["status"] == Status.PROVED).to_numpy()
        fits = (frame["status"] != Status.INFEASIBLE).to_numpy()
        exact = wide & fits & (low == high)
        return {
            "counts": len(frame),
            "coarsened": int(wide.sum()),
            "recovered": int(exact.sum()),
            "empty": int((exact & (high == 0)).sum()),
            "at_least_one": int((wide & fits & (least == 0) & (low > 0)).sum()),
            "decided": int((sure | ~fits).sum()),
        }

    def _answer(self) -> list[str]:
        return bounds_sentences(self.facts, self.conflict)

    def _shown_frame(self) -> pd.DataFrame:
        return self.counts

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each count."""
        return self.counts.copy()


def bounds_sentences(facts: Mapping[str, int], conflict: Mapping[str, str]) -> list[str]:
    """Return in sentences what bounds of counts say."""
    wide, exact = facts["coarsened"], facts["recovered"]
    if not wide:
        lines = ["All counts are stated exactly."]
    elif exact:
        empty = f"{facts['empty']:,} of these are 0" if facts["empty"] else "none of these is 0"
        lines = [
            f"Of {wide:,} counts that are not stated exactly, {exact:,} follow exactly from all "
            f"published counts together; {empty}."
        ]
    else:
        lines = [f"None of {wide:,} counts that are not stated exactly follows from all others."]
    if facts["at_least_one"]:
        lines.append(f"{facts['at_least_one']:,} counts that could be 0 by themselves are not 0.")
    undecided = facts["counts"] - facts["decided"]
    if undecided:
        lines.append(f"{undecided:,} counts are undecided: their ends are proved, not reached.")
    if conflict:
        place, reason = next(iter(conflict.items()))
        lines.append(f"{len(conflict):,} places have no solution, {place} first: {reason}.")
    return lines


def count_bounds(
    tables: SeveralTables | Problem,
    *,
    scope: str | None = None,
    queries: Workload | None = None,
    known_rule: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> CountBounds:
    """Return the smallest and the largest true count that each published cell allows.

    A published count that was rounded, given as a range or withheld stands for several true ones;
    all published counts together mostly allow fewer.  Each end is the count of a histogram of whole
    numbers that every published cell allows, and is proved to be the last such count: by bounds of
    linear programs in integer arithmetic, or by integer programs without a solution beyond.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of true counts, or of counts that limit the true ones; noisy counts do not.  Of one
        release, or of several of the same people; or their problem, as a reconstruction has it.
    scope : str, optional
        The level whose tables are taken together, with those of finer levels: by default the finest
        level, every place by itself.
    queries : Workload, optional
        Other counts of the same schema, at levels of the tables up to ``scope``; by default the
        published ones.
    known_rule, solver, time_limit
        As for :func:`reconstruct`.
    node_limit : int, optional
        Linear programs and nodes of branch and bound for each component; none by default.  What it
        leaves open is the same on a slow machine.  Not for solvers of PuLP.

    Returns
    -------
    CountBounds
        Ends and status of every count.

    Examples
    --------
    Two counts rounded to multiples of 3 and their exact sum:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from bayesrisk.release import RoundingSpec
    >>> from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload
    >>> about = Schema("s", (Attribute("sex", 2),), Geography("g", ("block",), (1,)))
    >>> sex = Table("SEX", ("m", "f"), {"sex": np.eye(2, dtype=int)})
    >>> every = Table("ALL", ("all",), {})
    >>> work = Workload(about, {("block", "ALL"): every, ("block", "SEX"): sex})
    >>> counts = {("block", "ALL"): sparse.csr_array([[2]]),
    ...           ("block", "SEX"): sparse.csr_array([[3, 0]])}
    >>> laws = {("block", "SEX"): RoundingSpec(3, "nearest")}
    >>> found = count_bounds(PublishedTables(work, {"block": ["1"]}, counts, laws=laws))
    >>> found.counts[["cell", "low_stated", "high_stated", "low", "high"]]
      cell  low_stated  high_stated  low  high
    0  all           2            2    2     2
    1    m           2            4    2     2
    2    f           0            1    0     0
    """
    backend, limits = solver_and_limits(solver, time_limit, node_limit)
    more = None if queries is None else check.instance(queries, Workload, "queries")
    problem = published_problem(
        tables, scope=scope, taken_as_true=None, known_rule=known_rule, queries=more
    )
    levels = (*(larger.level for larger in problem.larger), problem.level)
    for level in () if more is None else more.levels:
        check.choice(level, "level of queries", levels)
    solution = solve_blocks(problem, solver=backend, limits=limits, loose=True)[0]
    questions = list(problem.stated)
    n_published = len(questions)
    if more is not None:
        questions += _unpublished(problem, questions, more)
    answers = _answers(problem, solution, questions, backend, limits)
    chosen = slice(n_published, None) if more is not None else slice(n_published)
    frames = [
        _frame(one, answer) for one, answer in zip(questions[chosen], answers[chosen], strict=True)
    ]
    order = sorted(
        range(len(frames)), key=lambda number: levels.index(questions[chosen][number].level)
    )
    conflict = {
        str(problem.geoids[b]): solution.conflict.get(b, "")
        for b in np.flatnonzero(~solution.solved).tolist()
    }
    counts = pd.concat([frames[number] for number in order], ignore_index=True)
    return CountBounds(counts, conflict, problem.scope)


def _frame(question: StatedCounts, answer: _Answers) -> pd.DataFrame:
    size, n_queries = answer.low.shape
    table, cell = (
        np.array(part, dtype=object) for part in zip(*question.queries.names, strict=True)
    )
    least, most = question.ranges.whole(slice(None))
    if question.published is None:
        published = np.full(answer.low.size, HIDDEN)
    else:
        published = question.published.toarray().ravel()

    def numbers(values: IntArray, missing: int) -> pd.api.extensions.ExtensionArray:
        return pd.arrays.IntegerArray(values.ravel(), values.ravel() == missing)

    return pd.DataFrame(
        {
            "level": question.level,
            "geoid": np.repeat(question.geoids, n_queries),
            "table": np.tile(table, size),
            "cell": np.tile(cell, size),
            "published": numbers(published, HIDDEN),
            "low_stated": least.ravel(),
            "high_stated": numbers(most, UNBOUNDED),
            "low": answer.low.ravel(),
            "high": numbers(answer.high, UNBOUNDED),
            "status": answer.status.ravel(),
        }
    )
