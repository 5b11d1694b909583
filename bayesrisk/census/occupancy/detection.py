"""Blocks proved to hold a household above the occupancy limit (Eq. 1), with certificates.

The unknowns are numbers of households by group (not subsidised; subsidised with at most 1, with 2,
with 3 bedrooms or more), size and presence of children. They are whole numbers in a few rows,
without switches with large coefficients. Households of 7 people or more have no largest size, so
rows of people are empty if one is present: a few cases instead of a switch.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.census.occupancy.statistics import OccupancyStatistics, occupancy_statistics
from bayesrisk.constraints.certificates import proves_infeasible
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import Limits, SolverBackend, solver_and_limits
from bayesrisk.interfaces import AttackResult
from bayesrisk.release import Release

#: What is said of a block: ``violation``: proved that some household violates the limit, if the
#: statistics are right; ``possible``: a reconstruction without violation exists; ``infeasible``:
#: there is no reconstruction at all; ``undecided``: a limit was reached.
OCCUPANCY_STATUS = (Status.VIOLATION, Status.POSSIBLE, Status.INFEASIBLE, Status.UNDECIDED)

_SHAPE = (4, 7, 2)
_GROUP, _SIZE, _CHILD = (a.ravel() for a in np.indices(_SHAPE))
_SIZE = _SIZE + 1
_SUBSIDISED = _GROUP > 0
_BREACH = ((_GROUP == 1) & (_SIZE > 2)) | ((_GROUP == 2) & (_SIZE > 4))
_LARGE = _SIZE == 7
#: Tables behind the rows; the last three rows say which kinds of large households are there.
_ROWS = (
    "H3",
    "HUD-households",
    *["H13"] * 6,
    "P1",
    "P16",
    "HUD-people",
    "HUD-children",
    *["HUD-bedrooms"] * 3,
    *[""] * 3,
)
_PEOPLE, _CHILDREN, _HUD_PEOPLE, _OTHER, _PARENT, _ADULT = 8, 9, 10, 15, 16, 17
_TRIES = 3


class _Case(NamedTuple):
    """A case of large kinds of households: those absent, those present, and rows left empty."""

    absent: BoolArray
    present: tuple[int, ...]
    empty: tuple[int, ...]


_OTHER_LARGE = _LARGE & ~_SUBSIDISED
_PARENT_LARGE = _LARGE & _SUBSIDISED & (_CHILD == 1)
_ADULT_LARGE = _LARGE & _SUBSIDISED & (_CHILD == 0)
_NOTHING = np.zeros(_SIZE.size, dtype=bool)
#: Every assignment is in one of them: a large household that may have children, subsidised or
#: not, can hold all children that are missing; one without children holds adults only.
_CASES = (
    _Case(_NOTHING, (_PARENT,), (_PEOPLE, _CHILDREN, _HUD_PEOPLE)),
    _Case(_LARGE & _SUBSIDISED, (_OTHER,), (_PEOPLE, _CHILDREN)),
    _Case(_NOTHING, (_OTHER, _ADULT), (_PEOPLE, _CHILDREN, _HUD_PEOPLE)),
    _Case(_OTHER_LARGE | _PARENT_LARGE, (_ADULT,), (_PEOPLE, _HUD_PEOPLE)),
    _Case(_LARGE, (), ()),
)
_CLOSED = (_Case(_NOTHING, (), ()),)


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyDetection(AttackResult, Tabular):
    """Blocks that must hold a household above the occupancy limit (Eq. 1), with statuses.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    subsidised : ndarray of int64
        Largest possible number of subsidised households in each block.
    status : tuple of str
        One of ``OCCUPANCY_STATUS`` for each block.
    way : tuple of str
        How it was decided: ``relaxation`` (certificate in integer arithmetic) or ``program``
        (integer program, infeasibility confirmed without presolve); ``none`` if undecided.
    conflict : tuple of str
        For ``infeasible`` blocks, the tables that contradict each other; else empty.
    """

    stated_by = "bayesrisk.census.studies.occupancy_beliefs:stated_by_occupancy"

    geoids: TextArray
    subsidised: IntArray
    status: tuple[str, ...]
    way: tuple[str, ...]
    conflict: tuple[str, ...]

    @property
    def violation(self) -> BoolArray:
        """Mask of blocks with a proved violation."""
        return np.array([s == Status.VIOLATION for s in self.status], dtype=bool)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each block."""
        columns: dict[str, Any] = {"block": self.geoids, "subsidised": self.subsidised}
        for name in ("status", "way", "conflict"):
            columns[name] = list(getattr(self, name))
        texts = ("block", "status", "way", "conflict")
        return pd.DataFrame(columns).astype(dict.fromkeys(texts, "str"))


class _BlockAnswer(NamedTuple):
    """Whether an assignment exists (None: unknown), the proof, and contradictory tables."""

    exists: bool | None
    way: str
    tables: frozenset[str] = frozenset()


class _Detector:
    """Answers about all blocks, from shared rows and one relaxation."""

    def __init__(
        self,
        blocks: OccupancyStatistics,
        *,
        adults: int,
        open_end: bool,
        solver: SolverBackend,
        limits: Limits,
    ) -> None:
        from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

        self._rows = _matrix(adults)
        self._dense = self._rows.toarray()
        most = blocks if blocks.most is None else blocks.most
        self._low, self._high = _bounds(blocks, most)
        self._size = int(most.households.max(initial=0))
        self._columns = np.full(_SIZE.size, self._size, dtype=np.int64)
        self._columns[(_CHILD == 1) & (adults >= _SIZE)] = 0
        self._cases = _CASES if open_end else _CLOSED
        self._spare = most.households - blocks.sizes[:, :6].sum(axis=1)
        self._solver, self._limits = solver, limits
        zeros = np.zeros(_SIZE.size, dtype=np.int64)
        first = IntegerModel(zeros, self._columns, self._rows, self._low[0], self._high[0])
        self._warm = HighsWarm(first, zeros)
        self._zeros = zeros
        random = np.random.default_rng(0)  # directions only: the answer does not depend on them
        self._directions = random.integers(-9, 10, (_TRIES, _SIZE.size))

    def decide(self, block: int) -> tuple[str, str, str]:
        compliant = self._any(block, allowed=~_BREACH)
        if compliant.exists:
            return Status.POSSIBLE, compliant.way, ""
        base = self._any(block, allowed=~_NOTHING)
        if base.exists is False:
            return Status.INFEASIBLE, base.way, ", ".join(sorted(base.tables - {""}))
        if compliant.exists is None or base.exists is None:
            return Status.UNDECIDED, "none", ""
        way = "program" if "program" in (compliant.way, base.way) else "relaxation"
        return Status.VIOLATION, way, ""

    def _any(self, block: int, *, allowed: BoolArray) -> _BlockAnswer:
        """Return whether any case has an assignment in the allowed columns, and the proof."""
        exists: bool | None = False
        way, tables = "relaxation", frozenset[str]()
        for case in self._cases:
            if case.present and self._spare[block] < len(case.present):
                continue
            answer = self._case(block, case, allowed)
            if answer.exists:
                return answer
            exists = None if answer.exists is None else exists
            way = "program" if answer.way == "program" else way
            tables |= answer.tables
        return _BlockAnswer(exists, way, tables)

    def _case(self, block: int, case: _Case, allowed: BoolArray) -> _BlockAnswer:
        row_low, row_high = self._low[block].copy(), self._high[block]
        row_low[list(case.empty)] = 0
        row_low[list(case.present)] = 1
        high = np.where(allowed & ~case.absent, self._columns, 0)
        if np.any(row_low > row_high):
            names = {_ROWS[i] for i in np.flatnonzero(row_low > row_high)}
            return _BlockAnswer(False, "relaxation", frozenset(names | {"H3"}))
        self._warm.rebound(row_low, row_high)
        for direction in (self._zeros, *self._directions):
            if direction is not self._zeros:
                self._warm.aim(direction)
            answer = self._warm.relax(self._zeros, high)
            if answer.values is None:
                break
            whole = np.rint(answer.values).astype(np.int64)
            sums = self._dense @ whole
            inside = np.all((sums >= row_low) & (sums <= row_high))
            if inside and np.all((whole >= 0) & (whole <= high)):
                if direction is not self._zeros:
                    self._warm.aim(self._zeros)
                return _BlockAnswer(True, "relaxation")
        if answer.values is not None:
            self._warm.aim(self._zeros)
        model = IntegerModel(self._zeros, high, self._rows, row_low, row_high)
        ray = answer.ray
        if ray is not None and proves_infeasible(model, self._zeros, high, ray):
            used = np.flatnonzero(np.abs(ray) > 1e-7 * np.abs(ray).max())
            return _BlockAnswer(False, "relaxation", frozenset(_ROWS[i] for i in used))
        result = self._solver.solve(model, self._zeros, limits=self._limits)
        if result.values is not None:
            return _BlockAnswer(True, "program")
        if result.status == Status.INFEASIBLE:
            return _BlockAnswer(False, "program", frozenset(_ROWS))
        return _BlockAnswer(None, "none")


def _matrix(adults: int) -> sp.csr_array:
    """Return the rows of the program, in the order of their tables."""
    rows = [np.ones(_SIZE.size), _SUBSIDISED]
    rows += [x == _SIZE for x in range(1, 7)]
    rows += [_SIZE, np.where(_CHILD == 1, np.maximum(_SIZE - adults, 0), 0), _SUBSIDISED * _SIZE]
    rows += [_SUBSIDISED & (_CHILD == 1)]
    rows += [k == _GROUP for k in (1, 2, 3)]
    rows += [_OTHER_LARGE, _PARENT_LARGE, _ADULT_LARGE]
    return sp.csr_array(np.array(rows).astype(np.int64))


def _bounds(blocks: OccupancyStatistics, most: OccupancyStatistics) -> tuple[IntArray, IntArray]:
    """Return the bounds of every block's rows; very large numbers mean no bound.

    Lower bounds use the smallest possible counts, and upper bounds the largest.
    """
    n = most.households
    needed = [blocks.households, blocks.hud_households, *blocks.sizes[:, :6].T, blocks.population]
    needed += [blocks.children, np.minimum(blocks.hud_people, blocks.largest_people)]
    needed += [blocks.hud_children[:, 0], *blocks.hud_bedrooms.T]
    zero = np.zeros_like(n)
    allowed = [n, most.hud_households, *[n] * 6, 7 * n, 7 * n, 7 * n, most.hud_children[:, 1]]
    return (np.column_stack([*needed, zero, zero, zero]), np.column_stack([*allowed, *[n] * 6]))


def detect_occupancy(
    blocks: OccupancyStatistics,
    *,
    adults: int = 1,
    open_end: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
) -> OccupancyDetection:
    r"""Return the blocks that must hold a subsidised household above the occupancy limit.

    The unknowns are the numbers :math:`n_{gxc}` of households by group, size and children. Sums
    over all households, sizes, people and children must be at least as published. So must people
    and bedrooms of the subsidised ones; the number with children is exact. A block is a putative
    violation if no whole numbers satisfy this without a household above the limit:
    :math:`n_{gxc} = 0` for more than 2 people in at most 1 bedroom, and more than 4 in 2. A block
    without any reconstruction is ``infeasible``, never a violation.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 1 and appendix E.

    Parameters
    ----------
    blocks : OccupancyStatistics
        The statistics. With smallest and largest counts, proofs hold for all counts between.
    adults : int, default 1
        Least number of adults in a household; 0 as printed in the reference.
    open_end : bool, default True
        Whether households of 7 people or more can be of any size. If not they count as 7, which is
        sharper if the published numbers of people were made so.
    solver : str or SolverBackend, default "highs"
        Solver for blocks that the relaxation does not decide; see :func:`make_solver`.
    time_limit : float, optional
        Seconds of the solver for one program; by default no limit.

    Examples
    --------
    Three people in a flat with one bedroom, alone in their block:

    >>> import numpy as np
    >>> from bayesrisk.census.occupancy.statistics import OccupancyStatistics
    >>> one, row = np.ones(1, dtype=int), np.eye(14, dtype=int)
    >>> block = OccupancyStatistics(
    ...     np.array(["500010101001000"]), households=one, population=3 * one,
    ...     sizes=row[2:3, :7], race=row[:1], children=one, hud_households=one,
    ...     hud_people=3 * one, hud_race=row[:1, :6], hud_children=np.ones((1, 2), dtype=int),
    ...     hud_bedrooms=row[:1, :3])
    >>> detect_occupancy(block).status
    ('violation',)
    """
    check.instance(blocks, OccupancyStatistics, "blocks")
    least = check.integer(adults, "adults", lower=0, upper=1)
    open_end = check.flag(open_end, "open_end")
    backend, limits = solver_and_limits(solver, time_limit)
    answers = []
    if len(blocks):
        detector = _Detector(blocks, adults=least, open_end=open_end, solver=backend, limits=limits)
        answers = [detector.decide(block) for block in range(len(blocks))]
    status, way, conflict = zip(*answers, strict=True) if answers else ((), (), ())
    subsidised = (blocks if blocks.most is None else blocks.most).hud_households
    return OccupancyDetection(blocks.geoids, subsidised, status, way, conflict)


# -----------------------------------------------------------------------------
# Detection of occupancy violations as an attack on a release: what the registry knows it by.


class OccupancyAttack:
    """Attack that finds blocks whose tables prove a violation of the occupancy limit.

    ``level``, ``hud``, ``taken_as_true`` and ``known_rule`` are as for
    :func:`occupancy_statistics`; the other options are those of :func:`detect_occupancy`.

    Examples
    --------
    >>> OccupancyAttack(hud="percentages").name
    'occupancy'
    """

    name = "occupancy"

    def __init__(
        self,
        *,
        level: str = "block",
        hud: str = "counts",
        taken_as_true: bool = False,
        known_rule: bool = True,
        **options: object,
    ) -> None:
        every = inspect.signature(detect_occupancy).parameters.values()
        names = [one.name for one in every if one.kind is one.KEYWORD_ONLY]
        check.known_options(options, names, "detect_occupancy")
        self.level, self.hud = level, hud
        self.taken_as_true, self.known_rule = taken_as_true, known_rule
        self.options: dict[str, Any] = options

    def run(self, release: Release) -> OccupancyDetection:
        """Return the status of every block from the release's tables alone."""
        check.instance(release, Release, "release")
        blocks = occupancy_statistics(
            release.tables,
            level=self.level,
            hud=self.hud,
            taken_as_true=self.taken_as_true,
            known_rule=self.known_rule,
        )
        return detect_occupancy(blocks, **self.options)
