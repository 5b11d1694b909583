"""Smallest and largest counts that published tables allow, proved and attained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.propagation import ReachedEnds, reached_ends
from bayesrisk.constraints.solvers import Deadline, Limits, SolverBackend, solver_and_limits
from bayesrisk.reconstruction.records.kernels import HIDDEN, UNCOUNTED, UNLIMITED
from bayesrisk.reconstruction.records.margins import margin_parts, margin_problem
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    CountRanges,
    Problem,
    RowSource,
    StatedCounts,
    entries,
    published_problem,
)
from bayesrisk.reconstruction.records.search import Program, open_program
from bayesrisk.reconstruction.records.solve import Solution, solve_blocks
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import SeveralTables
from bayesrisk.tables.workload import Workload

# -----------------------------------------------------------------------------
# The counts that are asked for, of all places, and their ends.


def _unpublished(
    problem: Problem, questions: Sequence[StatedCounts], workload: Workload
) -> list[StatedCounts]:
    """Return the queries of another workload as counts of which nothing is published."""
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
    """Return a smaller equivalent problem with bounds and a solution, and the requested rows.

    Its cells are those of margins if these are fewer, and its first rows those of ``questions``.
    """
    sets = [(one.queries, one.ranges, one.group) for one in questions if one.rows is not None]
    bounds = problem.bounds
    if len(sets) == len(questions):
        parts = margin_parts(problem.space, [one.queries for one in questions])
        if bounds.cell.size > _LARGER * parts.size * problem.geoids.size:
            reduced = margin_problem(problem, parts, star, sets)
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
    """Return masks of the cells that may hold any number of records, by block."""
    matrix, masks = problem.system.queries.matrix, {}
    for b in np.flatnonzero(np.isin(problem.bounds.status, (UNCOUNTED, UNLIMITED))).tolist():
        closed = problem.ranges.whole([b])[1][0] < UNBOUNDED
        limited = closed.astype(np.int64) @ matrix
        top = problem.ceiling(b)[0]
        masks[b] = (limited == 0) & (top == UNBOUNDED)
    return masks


@dataclass(frozen=True)
class _Answers:
    """Bounds and statuses of all counts of one level (places, queries)."""

    low: IntArray
    high: IntArray
    status: NDArray[np.object_]


def _row_ends(
    program: Program, low: IntArray, high: IntArray, point: IntArray, targets: BoolArray,
    solver: SolverBackend, limits: Limits,
) -> ReachedEnds:  # fmt: skip
    """Return the ends of each row: by dives, and by linear programs for ends left open."""
    p, ends = program.parts, reached_ends(program.arrays, low, high, point)
    model = replace(p.model, low=low, high=high, row_low=ends.low, row_high=ends.high)
    left = np.flatnonzero(targets & ((ends.least > ends.low) | (ends.most < ends.high)))
    for k in np.unique(np.searchsorted(p.first_row, left, side="right") - 1):
        from bayesrisk.constraints.ends import row_ends  # slow to load

        rows, star = slice(*p.first_row[k : k + 2]), point[slice(*p.first_var[k : k + 2])]
        sums, part = (ends.least[rows], ends.most[rows]), replace(p, model=model).part([k])
        answer = row_ends(part, star, sums, targets[rows], solver, limits.deadline)
        for side, values in zip(ends, answer, strict=True):
            side[rows] = values
    return ends


def _target_mask(question: StatedCounts, cells: pd.DataFrame | None) -> BoolArray:
    """Return a mask (places, queries) of the requested counts; None requests all."""
    shape = question.geoids.size, len(question.queries.names)
    if cells is None:
        return np.ones(shape, np.bool_)
    mask = np.zeros(shape, np.bool_)
    names = pd.MultiIndex.from_tuples(question.queries.names)
    place = pd.Index(question.geoids).get_indexer(pd.Index(cells["geoid"]))
    query = names.get_indexer(pd.MultiIndex.from_frame(cells[["table", "cell"]]))
    inside = (place >= 0) & (query >= 0)
    mask[place[inside], query[inside]] = True
    return mask


def _answers(
    problem: Problem,
    solution: Solution,
    questions: Sequence[StatedCounts],
    targets: Sequence[BoolArray],
    solver: SolverBackend,
    limits: Limits,
) -> list[_Answers]:
    """Return bounds of the counts asked about; without a solution they are those stated."""
    good = solution.solved
    reduced, bounds, star, rows = _question_problem(problem, solution.histogram(problem), questions)
    program, _, low, high = open_program(reduced, bounds, good)
    inside = np.flatnonzero(good[bounds.block])[program.entry]
    point = entries(star, program.block, program.cell)
    target_rows, masks = (
        np.zeros(program.source.size, np.bool_),
        zip(questions, targets, strict=True),
    )
    for number, mask in enumerate(mask for one, mask in masks if one.rows is not None):
        chosen = program.source == number
        target_rows[chosen] = mask[program.group[chosen], program.row[chosen]]
    ends = _row_ends(program, low[inside], high[inside], point, target_rows, solver, limits)
    proved = (ends.low == ends.least) & (ends.high == ends.most)
    endless, matrices, answers, number = _endless(problem), iter(rows), [], 0
    for one in questions:
        least, most = one.ranges.whole(slice(None))
        stated, size = (least.copy(), most.copy()), one.geoids.size
        status = np.full(least.shape, Status.PROVED, dtype=object)
        if one.rows is not None:
            matrix = next(matrices)
            # Rows of the smallest counts, the largest and the settled ones, place by place.
            sides = np.stack([low, high, np.where(low == high, low, 0)]).ravel()
            places = (one.group[bounds.block] + size * np.arange(3)[:, None]).ravel()
            entry = places, np.tile(bounds.cell, 3)
            every = sp.csr_array((sides, entry), shape=(3 * size, matrix.shape[1]))
            sums = (every @ matrix.T).toarray().astype(np.int64)
            least, most, fixed = sums.reshape(3, size, -1)
            # Settled cells hold what they hold, and the program says what the others can add.
            chosen = program.source == number
            place = program.group[chosen], program.row[chosen]
            least[place] = fixed[place] + ends.low[chosen]
            most[place] = fixed[place] + ends.high[chosen]
            status[place] = np.where(proved, Status.PROVED, Status.UNDECIDED)[chosen]
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


def narrowed(counts: pd.DataFrame) -> BoolArray:
    """Return a mask of the counts for which more is proved than they state."""
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
        One row for each count: ``level``, ``geoid``, ``table``, ``cell``; ``published``, missing if
        withheld or unpublished; ``low_stated`` and ``high_stated``, the ends from the published
        count alone; ``low`` and ``high``, those from all published counts together; ``status``. A
        largest count is missing if there is none. The status is ``proved`` if fitting histograms
        attain both ends and none goes beyond. It is ``undecided`` if a limit was reached: the ends
        are proved, but may not be attained. It is ``infeasible`` if it is proved that no histogram
        fits; the ends are then those stated.
    conflict : mapping of str to str
        For blocks without a solution, the published cells that contradict each other, or the
        reason.
    scope : str
        The level whose tables were used together.
    """

    counts: pd.DataFrame
    conflict: Mapping[str, str]
    scope: str

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of counts: all, those stated as ranges, and those with proofs.

        ``recovered`` are those with one possible count, and ``empty`` those of them that are 0.
        ``at_least_one`` are those that could be 0 by themselves, but are not.
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
    """Return sentences that summarise what the bounds of counts prove."""
    wide, exact = facts["coarsened"], facts["recovered"]
    if not wide:
        lines = ["All counts are stated exactly."]
    elif wide == 1:
        follows = "follows" if exact else "does not follow"
        lines = [f"The one count that is not stated exactly {follows} from all others."]
    elif exact:
        zeros = facts["empty"]
        empty = (
            f"{zeros:,} of these are 0" if zeros > 1 else f"{('none', 'one')[zeros]} of these is 0"
        )
        if exact == 1:
            empty = "it is 0" if zeros else "it is not 0"
        lines = [
            f"Of {wide:,} counts that are not stated exactly, {exact:,} "
            f"follow{'s' * (exact == 1)} exactly from all published counts together; {empty}."
        ]
    else:
        lines = [f"None of {wide:,} counts that are not stated exactly follows from all others."]
    lines += positive_sentences(facts["at_least_one"])
    undecided = facts["counts"] - facts["decided"]
    if undecided:
        counts = "One count is" if undecided == 1 else f"{undecided:,} counts are"
        lines.append(f"{counts} undecided: ends are proved, and perhaps not reached.")
    if conflict:
        place, reason = next(iter(conflict.items()))
        places = "One place has" if len(conflict) == 1 else f"{len(conflict):,} places have"
        lines.append(f"{places} no solution, {place} first: {reason}.")
    return lines


def positive_sentences(count: int) -> list[str]:
    """Return a sentence on counts that are proved positive, or none if there are none."""
    many = f"{count:,} counts that could be 0 by themselves are not 0."
    return ["One count that could be 0 by itself is not 0." if count == 1 else many] * (count > 0)


def count_bounds(
    tables: SeveralTables | Problem,
    *,
    scope: str | None = None,
    queries: Workload | None = None,
    cells: pd.DataFrame | None = None,
    known_rule: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | Deadline | None = None,
    node_limit: int | None = None,
) -> CountBounds:
    """Return the smallest and the largest true count that each published cell allows.

    A published count that was rounded, given as a range or withheld stands for several true ones.
    All published counts together usually allow fewer. Each end is the count of a histogram of whole
    numbers that every published cell allows, and is proved to be the last such count. The proof is
    a bound of a linear program in integer arithmetic, or an integer program without a solution
    beyond the end.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of true counts, or of counts that limit the true ones; noisy counts do not. They are
        of one release, or of several of the same people. Or their problem, as a reconstruction has
        it.
    scope : str, optional
        The level whose tables are used together, with those of finer levels. By default it is the
        finest level, with every place alone.
    queries : Workload, optional
        Other counts of the same schema, at levels of the tables up to ``scope``; by default the
        published counts.
    cells : pandas.DataFrame, optional
        Columns ``geoid``, ``table`` and ``cell``: the counts to bound; by default all. Counts of
        other places are skipped.
    known_rule, solver, time_limit
        As for :func:`reconstruct`.
    node_limit : int, optional
        Linear programs and nodes of branch and bound for each component; by default no limit.
        Unlike a time limit, it gives the same results on a slow machine. Not for solvers of PuLP.

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
    targets = [_target_mask(question, cells) for question in questions]
    answers = _answers(problem, solution, questions, targets, backend, limits)
    chosen = slice(n_published, None) if more is not None else slice(n_published)
    pairs = list(zip(questions[chosen], answers[chosen], targets[chosen], strict=True))
    pairs.sort(key=lambda pair: levels.index(pair[0].level))
    conflict = {
        str(problem.geoids[b]): solution.conflict.get(b, "")
        for b in np.flatnonzero(~solution.solved).tolist()
    }
    return CountBounds(_frame(pairs), conflict, problem.scope)


def _frame(pairs: Sequence[tuple[StatedCounts, _Answers, BoolArray]]) -> pd.DataFrame:
    """Return one frame with a row for each requested count of all levels."""
    parts = [(_columns(question, answer), targets.ravel()) for question, answer, targets in pairs]
    columns: dict[str, Any] = {
        name: np.concatenate([part[name][targets] for part, targets in parts])
        for name in parts[0][0]
    }

    def numbers(values: IntArray, missing: int) -> pd.api.extensions.ExtensionArray:
        return pd.arrays.IntegerArray(values, values == missing)

    columns["published"] = numbers(columns["published"], HIDDEN)
    columns |= {name: numbers(columns[name], UNBOUNDED) for name in ("high_stated", "high")}
    return pd.DataFrame(columns)


def _columns(question: StatedCounts, answer: _Answers) -> dict[str, Any]:
    """Return the columns of one level's counts, with codes for unbounded and hidden ones."""
    size, n_queries = answer.low.shape
    table, cell = (
        np.array(part, dtype=object) for part in zip(*question.queries.names, strict=True)
    )
    least, most = question.ranges.whole(slice(None))
    if question.published is None:
        published = np.full(answer.low.size, HIDDEN)
    else:
        published = question.published.toarray().ravel()
    return {
        "level": np.full(answer.low.size, question.level, dtype=object),
        "geoid": np.repeat(question.geoids, n_queries),
        "table": np.tile(table, size),
        "cell": np.tile(cell, size),
        "published": published,
        "low_stated": least.ravel(),
        "high_stated": most.ravel(),
        "low": answer.low.ravel(),
        "high": answer.high.ravel(),
        "status": answer.status.ravel(),
    }
