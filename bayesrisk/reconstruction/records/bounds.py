"""Smallest and largest counts that published tables allow, each end proved and reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import Tabular, displayed
from bayesrisk._validation import BoolArray, IntArray, TextArray
from bayesrisk.reconstruction.records.kernels import HIDDEN, LOOSE, TOPLESS, UNBOUNDED
from bayesrisk.reconstruction.records.parts import margin_problem, parts_of
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    CountRanges,
    Problem,
    RowSource,
    entries,
    published_problem,
)
from bayesrisk.reconstruction.records.program import Program, open_program, solution_model
from bayesrisk.reconstruction.records.solve import Solution, solve_blocks
from bayesrisk.reconstruction.records.system import Queries, queries as queries_over
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import IntegerModel
from bayesrisk.reconstruction.solvers.branching import reduced_values
from bayesrisk.reconstruction.solvers.model import (
    Deadline,
    Limits,
    SolverBackend,
    solver_and_limits,
)
from bayesrisk.tables.published import SeveralTables
from bayesrisk.tables.workload import Workload

# -----------------------------------------------------------------------------
# The ends of the rows of one component.


#: Variables up to which a relaxation begins with all of them.
_FEW = 300
#: Nodes of a dive, rounds without a new count after which ends are asked for one by one.
_NODES, _FRUITLESS = 300, 3
#: Nodes of a dive for many ends, which are asked for in halves where it finds nothing.
_QUICK = 20
#: Share of the open ends that a round aims at, after one at all of them.
_SHARE = 0.5
#: Nodes of a question to the general solver where there is a limit: it counts as so many programs.
_ASKED = 50


class _Ends:
    """Largest values of the rows of a model, and of their negatives: what is proved, and reached.

    The first half of all arrays is of the rows, the second of their negatives; ``goal`` is what no
    solution exceeds, ``seen`` the largest value of a solution.
    """

    def __init__(
        self, model: IntegerModel, star: IntArray, solver: SolverBackend, deadline: Deadline
    ) -> None:
        from bayesrisk.reconstruction.solvers.highs import Sifted  # slow to load

        self._model, self._solver, self._deadline = model, solver, deadline
        self._rows = sp.csr_array(sp.vstack([model.rows, -model.rows], format="csr"))
        least, most = model.rows @ model.low, model.rows @ model.high
        low, high = np.maximum(model.row_low, least), np.minimum(model.row_high, most)
        self.goal = np.concatenate([high, -low])
        self.seen = self._rows @ star
        # Rows that their variables' bounds fill, or of one variable, bind nothing.
        kept = (np.diff(model.rows.indptr) > 1) & ((low > least) | (high < most))
        self._lean = IntegerModel(
            model.low, model.high, sp.csr_array(model.rows[kept]), model.row_low[kept],
            model.row_high[kept],
        )  # fmt: skip
        begin = np.flatnonzero(star) if star.size > _FEW else np.arange(star.size)
        self._linear = Sifted(self._lean, begin, deadline=deadline)

    @property
    def open(self) -> IntArray:
        """The ends that are not known."""
        return np.flatnonzero(self.seen < self.goal)

    def settle(self) -> None:
        """Find all ends, as far as the time goes."""
        self._together()
        self._at_once(self._least(self.open))
        for end in self.open.tolist():
            while self.seen[end] < self.goal[end] and not self._deadline.late:
                if not self._asked(end):
                    break

    def _find(
        self, objective: IntArray, least: int | None, nodes: int = _NODES
    ) -> tuple[str, bool]:
        """Look for a solution of a large objective; return the finding, and whether it is new."""
        status, values = self._linear.find(objective, least, nodes=nodes)
        return status, values is not None and self._note(values)

    def _note(self, values: IntArray) -> bool:
        """Note the values of a solution; return whether any is larger than those before."""
        if not self._model.holds(values):
            return False
        sums = self._rows @ values
        larger = bool((sums > self.seen).any())
        self.seen = np.maximum(self.seen, sums)
        return larger

    def _together(self) -> None:
        """Look for solutions that reach many ends at once."""
        rng, fruitless, share = np.random.default_rng(0), 0, 1.0
        while fruitless < _FRUITLESS and self.open.size and not self._deadline.late:
            chosen = self.open[rng.random(self.open.size) <= share]
            new = self._find(self._sum(chosen), None)[1]
            fruitless, share = (0 if new else fruitless + 1), _SHARE

    def _sum(self, ends: IntArray) -> IntArray:
        """Return the sum of the rows of some ends."""
        weight = np.bincount(ends, minlength=self.goal.size)
        found: IntArray = (weight @ self._rows).astype(np.int64)
        return found

    def _bound(self, objective: IntArray) -> int | None:
        """Return an upper bound of an objective, proved in whole numbers, or None."""
        duals = self._linear.maximise(objective).duals
        if duals is None:
            return None
        model = self._lean
        bound = reduced_values(model, objective, model.low, model.high, duals)[0]
        return int(np.floor(bound)) if np.isfinite(bound) else None

    def _least(self, ends: IntArray) -> IntArray:
        """Return the ends that were never seen above the least that they can be."""
        half = self.goal.size // 2
        found: IntArray = ends[self.seen[ends] == -self.goal[(ends + half) % (2 * half)]]
        return found

    def _at_once(self, ends: IntArray) -> None:
        """Prove that some ends stay at the least that they can be, or reach some of them.

        Where each is at least its smallest value, and their sum is at most that of these, each is
        its smallest value.
        """
        while ends.size > 1 and not self._deadline.late:
            objective = self._sum(ends)
            bound, least = self._bound(objective), int(self.seen[ends].sum())
            if bound is None:
                return
            status, new = "none", False
            if bound > least:
                status, new = self._find(objective, least + 1, _QUICK)
            if status == "none":
                self.goal[ends] = self.seen[ends]
                return
            ends = self._least(ends)
            if not new:
                half = ends.size // 2
                self._at_once(ends[:half])
                self._at_once(self._least(ends[half:]))
                return

    def _asked(self, end: int) -> bool:
        """Ask for one end: lower what is proved or find more; return whether either was done."""
        objective = self._rows[[end]].toarray()[0]
        bound = self._bound(objective)
        if bound is not None and bound < self.goal[end]:
            self.goal[end] = max(bound, int(self.seen[end]))
            return True
        status, new = self._find(objective, int(self.goal[end]))
        if new:
            return True
        if status == "none":
            self.goal[end] -= 1
            return True
        if self._deadline.late:
            return False
        # A general solver looks for anything above what was seen: that there is none, it confirms.
        beyond = self._model.beyond(objective, int(self.seen[end]) + 1, int(self.goal[end]))
        nothing, limits = np.zeros(objective.size, np.int64), self._deadline.limits
        if limits.nodes is not None:
            limits = replace(limits, nodes=min(limits.nodes, _ASKED))
            self._deadline.spend(_ASKED)
        answer = self._solver.solve(beyond, nothing, limits=limits)
        if answer.values is not None:
            return self._note(answer.values)
        if answer.status == Status.INFEASIBLE:
            self.goal[end] = self.seen[end]
        return answer.status == Status.INFEASIBLE


def _distinct(model: IntegerModel) -> tuple[IntegerModel, IntArray]:
    """Return a model with each row once, within all of its ends, and where each row is in it."""
    rows = model.rows
    number: dict[tuple[bytes, bytes], int] = {}
    at = np.empty(rows.shape[0], np.int64)
    for row in range(at.size):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = rows.indices[part].tobytes(), rows.data[part].tobytes()
        at[row] = number.setdefault(key, len(number))
    first = np.unique(at, return_index=True)[1]
    low, high = model.row_low[first], model.row_high[first]
    np.maximum.at(low, at, model.row_low)
    np.minimum.at(high, at, model.row_high)
    return IntegerModel(model.low, model.high, sp.csr_array(rows[first]), low, high), at


def _row_ends(
    program: Program, point: IntArray, solver: SolverBackend, limits: Limits
) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
    """Return the ends of all rows of a program, and whether each of them is reached."""
    p = program.arrays
    low, high = p.row_low.copy(), p.row_high.copy()
    sure = np.ones((2, low.size), np.bool_)
    for k in range(program.n_components):
        a, b = p.first_row[k], p.first_row[k + 1]
        model, at = _distinct(solution_model(program, [k]))
        star = point[p.first_var[k] : p.first_var[k + 1]]
        ends = _Ends(model, star, solver, Deadline(limits.seconds, limits.nodes))
        ends.settle()
        most, least = np.split(ends.goal, 2)
        low[a:b], high[a:b] = -least[at], most[at]
        above, below = np.split(ends.goal == ends.seen, 2)
        sure[0, a:b], sure[1, a:b] = below[at], above[at]
    return low, high, sure[0], sure[1]


# -----------------------------------------------------------------------------
# The counts that are asked for, of all places, and their ends.


@dataclass(frozen=True)
class _Question:
    """Queries of one level, the counts that are published of them, and the place of every block.

    ``rows`` are the queries over the cells of the problem; None where these are too coarse for
    them, and their counts are true.
    """

    level: str
    geoids: TextArray
    group: IntArray
    queries: Queries
    ranges: CountRanges
    published: sp.csr_array | None
    rows: sp.csr_array | None


def _published(problem: Problem) -> list[_Question]:
    """Return the published cells of every level, the blocks' first."""
    own = problem.system.queries
    blocks = np.arange(problem.geoids.size)
    asked = [
        _Question(
            problem.level,
            problem.geoids,
            blocks,
            own,
            problem.ranges,
            problem.published,
            own.matrix,
        )
    ]
    for larger in problem.larger:
        coupling = larger.coupling
        rows = coupling.queries.matrix if coupling.detail is None else None
        asked.append(
            _Question(
                larger.level, larger.geoids, larger.group, coupling.queries, larger.ranges,
                larger.published, rows,
            )
        )  # fmt: skip
    return asked


def _others(problem: Problem, known: Sequence[_Question], workload: Workload) -> list[_Question]:
    """Return the queries of another workload, of which nothing is published."""
    asked = []
    for level in workload.levels:
        place = next(one for one in known if one.level == level)
        made = queries_over(problem.space, list(workload.at(level).values()))
        shape = place.geoids.size, len(made.names)
        nothing = CountRanges(
            sp.csr_array(shape, dtype=np.int64), sp.csr_array(shape, dtype=np.int64),
            np.full(shape[1], UNBOUNDED),
        )  # fmt: skip
        asked.append(_Question(level, place.geoids, place.group, made, nothing, None, made.matrix))
    return asked


#: Cells of histograms for each cell of margins above which margins are asked about.
_LARGER = 2


def _problem_of(
    problem: Problem, star: sp.csr_array, asked: Sequence[_Question]
) -> tuple[Problem, BlockBounds, sp.csr_array, list[sp.csr_array]]:
    """Return the problem that is asked about, with bounds and a solution, and the rows asked for.

    Its cells are those of margins where these are fewer, and its first rows those of ``asked``.
    """
    sets = [(one.queries, one.ranges, one.group) for one in asked if one.rows is not None]
    bounds = problem.bounds
    if len(sets) == len(asked):
        parts = parts_of(problem.space, [one.queries for one in asked])
        if bounds.cell.size > _LARGER * parts.size * problem.geoids.size:
            made = margin_problem(problem, parts, star, sets)
            return *made, [parts.rows(at, one.queries.matrix) for at, one in enumerate(asked)]
    sources = [
        RowSource.over(one.rows, one.ranges, one.group, asked=True)
        for one in asked
        if one.rows is not None
    ]
    # Differences of published cells say what these do, in fewer cells.
    if problem.system.reduced:
        sources.append(problem.rows[0])
    for larger, source in zip(problem.larger, problem.rows[1:], strict=True):
        if larger.coupling.detail is not None:
            sources.append(source)
    rows = [one.rows for one in asked if one.rows is not None]
    return replace(problem, rows=tuple(sources), larger=()), bounds, star, rows


def _endless(problem: Problem) -> dict[int, BoolArray]:
    """Return for blocks with cells that may hold any number which cells these are."""
    matrix, found = problem.system.queries.matrix, {}
    for b in np.flatnonzero(np.isin(problem.bounds.status, (LOOSE, TOPLESS))).tolist():
        closed = problem.ranges.whole([b])[1][0] < UNBOUNDED
        limited = closed.astype(np.int64) @ matrix
        top = problem.ceiling(b)[0]
        found[b] = (limited == 0) & (top == UNBOUNDED)
    return found


@dataclass(frozen=True)
class _Answers:
    """Ends of all counts of one level, places by queries, and a status of each."""

    low: IntArray
    high: IntArray
    status: NDArray[np.object_]


def _answers(
    problem: Problem,
    solution: Solution,
    asked: Sequence[_Question],
    solver: SolverBackend,
    limits: Limits,
) -> list[_Answers]:
    """Return the ends of all counts that are asked for; those without a solution are as stated."""
    good = solution.solved
    made, found, star, rows = _problem_of(problem, solution.histogram(problem), asked)
    program, _, low, high = open_program(made, found, good)
    inside = np.flatnonzero(good[found.block])[program.entry]
    program = replace(program, low=low[inside], high=high[inside])
    point = entries(star, program.block, program.cell)
    *ends, below, above = _row_ends(program, point, solver, limits)
    endless, given, answers, number = _endless(problem), iter(rows), [], 0
    for one in asked:
        least, most = one.ranges.whole(slice(None))
        stated, size = (least.copy(), most.copy()), one.geoids.size
        status = np.full(least.shape, Status.PROVED, dtype=object)
        if one.rows is not None:
            matrix = next(given)
            shape, group = (size, matrix.shape[1]), one.group[found.block]
            least, most, held = (
                sp.csr_array(sp.csr_array((side, (group, found.cell)), shape=shape) @ matrix.T)
                .toarray()
                .astype(np.int64)
                for side in (low, high, np.where(low == high, low, 0))
            )
            # Settled cells hold what they hold, and the program says what the others can add.
            here = program.source == number
            place = program.group[here], program.row[here]
            least[place] = held[place] + ends[0][here]
            most[place] = held[place] + ends[1][here]
            status[place] = np.where(below & above, Status.PROVED, Status.UNDECIDED)[here]
            number += 1
            for b, cells in endless.items():
                most[one.group[b], one.rows @ cells.astype(np.int64) > 0] = UNBOUNDED
        for b in np.flatnonzero(~good).tolist():
            # Where no solution is known, what was stated holds, and what its cells allow.
            at, wrong = int(one.group[b]), solution.status[b] == Status.INFEASIBLE
            if wrong or one.rows is None:
                least[at], most[at] = stated[0][at], stated[1][at]
            else:
                least[at] = np.maximum(least[at], stated[0][at])
                most[at] = np.minimum(most[at], stated[1][at])
            status[at] = Status.INFEASIBLE if wrong else Status.UNDECIDED
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
        said = ["All counts are stated exactly."]
    elif exact:
        empty = f"{facts['empty']:,} of these are 0" if facts["empty"] else "none of these is 0"
        said = [
            f"Of {wide:,} counts that are not stated exactly, {exact:,} follow exactly from all "
            f"published counts together; {empty}."
        ]
    else:
        said = [f"None of {wide:,} counts that are not stated exactly follows from all others."]
    if facts["at_least_one"]:
        said.append(f"{facts['at_least_one']:,} counts that could be 0 by themselves are not 0.")
    undecided = facts["counts"] - facts["decided"]
    if undecided:
        said.append(f"{undecided:,} counts are undecided: their ends are proved, not reached.")
    if conflict:
        place, reason = next(iter(conflict.items()))
        said.append(f"{len(conflict):,} places have no solution, {place} first: {reason}.")
    return said


def count_bounds(
    tables: SeveralTables,
    *,
    scope: str | None = None,
    queries: Workload | None = None,
    known_rule: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
    node_limit: int | None = None,
) -> CountBounds:
    """Return the smallest and the largest true count of every published cell, proved and reached.

    A published count that was rounded, given as a range or withheld stands for several true ones;
    all published counts together mostly allow fewer.  Each end is the count of a histogram of whole
    numbers that every published cell allows, and is proved to be the last such count: by bounds of
    linear programs in integer arithmetic, or by integer programs without a solution beyond.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of true counts, or of counts that limit the true ones; noisy counts do not.  Of one
        release, or of several of the same people.
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
    problem = published_problem(tables, scope=scope, known_rule=known_rule, queries=more)
    levels = (*(larger.level for larger in problem.larger), problem.level)
    for level in () if more is None else more.levels:
        check.choice(level, "level of queries", levels)
    solution = solve_blocks(problem, solver=backend, limits=limits, loose=True)[0]
    asked = _published(problem)
    known = len(asked)
    if more is not None:
        asked += _others(problem, asked, more)
    answers = _answers(problem, solution, asked, backend, limits)
    chosen = slice(known, None) if more is not None else slice(known)
    frames = [
        _frame(one, answer) for one, answer in zip(asked[chosen], answers[chosen], strict=True)
    ]
    order = sorted(range(len(frames)), key=lambda at: levels.index(asked[chosen][at].level))
    conflict = {
        str(problem.geoids[b]): solution.conflict.get(b, "")
        for b in np.flatnonzero(~solution.solved).tolist()
    }
    counts = pd.concat([frames[at] for at in order], ignore_index=True)
    return CountBounds(counts, conflict, problem.scope)


def _frame(asked: _Question, answer: _Answers) -> pd.DataFrame:
    """Return one row for each place and query."""
    size, n_queries = answer.low.shape
    table, cell = (np.array(part, dtype=object) for part in zip(*asked.queries.names, strict=True))
    least, most = asked.ranges.whole(slice(None))
    if asked.published is None:
        published = np.full(answer.low.size, HIDDEN)
    else:
        published = asked.published.toarray().ravel()

    def numbers(values: IntArray, missing: int) -> pd.api.extensions.ExtensionArray:
        return pd.arrays.IntegerArray(values.ravel(), values.ravel() == missing)

    return pd.DataFrame(
        {
            "level": asked.level,
            "geoid": np.repeat(asked.geoids, n_queries),
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
