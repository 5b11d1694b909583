"""Claims of one block: candidates from one solution, and a decision on each."""

from dataclasses import dataclass, replace

import numpy as np

from bayesrisk._types import BoolArray, CodeArray, IntArray
from bayesrisk.reconstruction.claims.search.conflict import describe, smallest_conflict
from bayesrisk.reconstruction.claims.search.decide import REFUTED, UNDECIDED, VERIFIED, Decider
from bayesrisk.reconstruction.claims.search.kernels import pattern_counts
from bayesrisk.reconstruction.claims.search.lattice import (
    Subsets,
    Universal,
    matches,
    supports,
    universal,
)
from bayesrisk.reconstruction.claims.search.problem import BlockSystem, Conflict, block_system
from bayesrisk.reconstruction.claims.search.readable import readable_everywhere, readable_here
from bayesrisk.reconstruction.claims.search.space import ClaimSpace
from bayesrisk.reconstruction.solvers.deadline import Deadline
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status


@dataclass(frozen=True)
class Study:
    """How blocks are studied.

    Attributes
    ----------
    space : ClaimSpace
        Possible cells and tables.
    sets : Subsets
        Sets of columns that claims are about.
    solver : SolverBackend
        For what the relaxation does not settle.
    time_limit : float or None
        Seconds for a block.
    n_solutions : int
        Solutions that candidates must hold in.
    seed : int
        Of the objectives near whose optima solutions are looked for.
    verify : bool
        Whether candidates are decided.
    refuted : bool
        Whether refuted candidates are kept.
    """

    space: ClaimSpace
    sets: Subsets
    solver: SolverBackend
    time_limit: float | None
    n_solutions: int
    seed: int
    verify: bool
    refuted: bool


@dataclass(frozen=True)
class BlockClaims:
    """Claims of one block.

    Attributes
    ----------
    status : str
        ``decided``, ``undecided``, ``infeasible``, ``unknown`` or ``empty``.
    conflict : str
        The published cells that contradict.
    patterns : ndarray of int16
        Value of every attribute in each claim, -1 for any.
    multiplicity, decision, needed : ndarray of int64
        How many records match, what was decided, and the number of columns that say it all.
    readable, readable_here : ndarray of bool
        Whether a table states the claim, always or with these zeros.
    rows : ndarray of int16
        The records of one solution that claims can be about, one row each.
    live : int
        Live cells.
    """

    status: str
    conflict: str
    patterns: CodeArray
    multiplicity: IntArray
    decision: IntArray
    needed: IntArray
    readable: BoolArray
    readable_here: BoolArray
    rows: CodeArray
    live: int


def _nothing(study_: Study, status: str, text: str = "", live: int = 0) -> BlockClaims:
    n = study_.space.codes.shape[1]
    none, no = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    codes = np.zeros((0, n), np.int16)
    return BlockClaims(status, text, codes, none, none, none, no, no, codes, live)


def study(
    about: Study,
    counts: IntArray,
    hidden: BoolArray,
    asked: tuple[CodeArray, IntArray] | None = None,
) -> BlockClaims:
    """Return the claims of a block.

    Parameters
    ----------
    about : Study
        How.
    counts, hidden : ndarray
        Its published cells, and which are withheld.
    asked : tuple, optional
        Patterns and multiplicities to decide, instead of candidates of its own.

    Returns
    -------
    BlockClaims
        Candidates with decisions.
    """
    deadline = Deadline(about.time_limit)
    system = block_system(about.space, counts, hidden)
    if isinstance(system, Conflict):
        return _nothing(about, Status.INFEASIBLE, describe(system, about.space, counts))
    if not system.model.low.size:
        return _without_records(about, system, asked)
    if deadline.late:
        return _nothing(about, Status.UNKNOWN, live=system.cells.size)
    decider = Decider(about.space, system, about.solver, deadline, about.sets, _radix(about))
    found = decider.find(about.n_solutions, np.random.default_rng(about.seed))
    if found == Status.INFEASIBLE:
        conflict = smallest_conflict(system, about.solver, deadline)
        text = describe(conflict, about.space, counts)
        return _nothing(about, Status.INFEASIBLE, text, system.cells.size)
    if found == Status.UNKNOWN:
        return _nothing(about, Status.UNKNOWN, live=system.cells.size)
    records = decider.records(decider.solutions[0])
    if asked is None:
        return _decided(about, system, decider, _candidates(about, records), records)
    return _decided(about, system, decider, _asked(about, *asked), records)


@dataclass(frozen=True)
class _Claimed:
    """Claims, and how much they say; multiplicities only where they were asked for."""

    patterns: CodeArray
    key: IntArray
    size: IntArray
    needed: IntArray
    multiplicity: IntArray | None


def _radix(about: Study) -> IntArray:
    """Return what a code of each column, counted from 1, adds to the key of a claim."""
    sizes = about.space.sizes[about.sets.columns]
    return np.cumprod(np.append(1, sizes[:-1] + 1)).astype(np.int64)


def _candidates(about: Study, records: CodeArray) -> _Claimed:
    """Return all partial assignments of some records."""
    space, sets = about.space, about.sets
    rows = np.unique(records, axis=0)
    general = universal(space, rows, sets)
    member = sets.member()
    codes = (rows[:, sets.columns].astype(np.int64) + 1) * _radix(about)
    keys, first = np.unique(codes @ member.T.astype(np.int64), return_index=True)
    row, column = np.divmod(first, sets.bits.size)
    patterns = np.full((first.size, space.codes.shape[1]), -1, np.int16)
    patterns[:, sets.columns] = np.where(member[column], rows[row][:, sets.columns], -1)
    return _Claimed(patterns, keys, general.size[row, column], general.needed[row, column], None)


def _asked(about: Study, patterns: CodeArray, multiplicity: IntArray) -> _Claimed:
    general = _universal_of(about, patterns)
    key = (patterns[:, about.sets.columns].astype(np.int64) + 1) @ _radix(about)
    return _Claimed(patterns, key, general.size[:, 0], general.needed[:, 0], multiplicity)


def _universal_of(about: Study, patterns: CodeArray) -> Universal:
    """Return what each pattern says whatever was published."""
    sets = about.sets
    size, needed = np.empty((len(patterns), 1), np.int64), np.empty((len(patterns), 1), np.int64)
    for start in range(0, len(patterns), 1024):
        some = patterns[start : start + 1024]
        bits = (some[:, sets.columns] >= 0) @ (1 << np.arange(sets.columns.size))
        at = sets.position[bits]
        rows = np.arange(len(some))
        general = universal(about.space, some, sets)
        size[start : start + 1024, 0] = general.size[rows, at]
        needed[start : start + 1024, 0] = general.needed[rows, at]
    return Universal(size, needed)


def _decided(
    about: Study, system: BlockSystem, decider: Decider, claimed: _Claimed, records: CodeArray
) -> BlockClaims:
    """Decide claims and say what tables state themselves."""
    space, patterns = about.space, claimed.patterns
    value = np.zeros(len(patterns), np.int64)
    distinct, weight = np.unique(records, axis=0, return_counts=True)
    pattern_counts(patterns, distinct, weight, value)
    decision = np.full(len(patterns), UNDECIDED, np.int64)
    multiplicity = value
    if claimed.multiplicity is not None:
        multiplicity = claimed.multiplicity
        decision[value != multiplicity] = REFUTED
    _refute(about, system, decider, claimed, decision)
    open_ = np.flatnonzero(decision == UNDECIDED)
    found = supports(space.codes[system.cells], space.eligible[system.cells], patterns[open_])
    first = open_[found.first]
    if about.verify:
        status = np.full(first.size, UNDECIDED, np.int8)
        decider.decide(patterns[first], claimed.key[first], value[first], status)
        decision[open_] = status[found.number]
    told = decision[open_] != REFUTED
    here = np.zeros(len(patterns), np.bool_)
    here[open_[told]] = readable_here(
        space, system, patterns[open_[told]], found.size[found.number[told]]
    )
    readable = np.zeros(len(patterns), np.bool_)
    # A claim that a table states whatever its zeros is also stated with these zeros.
    readable[here] = readable_everywhere(space, patterns[here], claimed.size[here])
    keep = np.ones(decision.size, np.bool_) if about.refuted else decision != REFUTED
    undecided = about.verify and bool((decision == UNDECIDED).any())
    return BlockClaims(
        Status.UNDECIDED if undecided else Status.DECIDED,
        "",
        patterns[keep],
        multiplicity[keep],
        decision[keep],
        claimed.needed[keep],
        readable[keep],
        here[keep],
        records,
        system.cells.size,
    )


def _refute(
    about: Study, system: BlockSystem, decider: Decider, claimed: _Claimed, decision: IntArray
) -> None:
    """Refute claims by data sets, in place: those found, and many more one exchange apart."""
    space = about.space
    unbound = system.unbound[space.eligible[system.unbound]]
    if unbound.size:
        # Cells that no count binds can hold any number of records.
        _, first = np.unique(space.codes[unbound], axis=0, return_index=True)
        loose = np.zeros(len(decision), np.int64)
        pattern_counts(
            claimed.patterns, space.codes[unbound[first]], np.ones(first.size, np.int64), loose
        )
        decision[loose > 0] = REFUTED
    keys, at = np.unique(claimed.key, return_inverse=True)
    claims = decider.exchange(keys)
    if about.verify:
        decider.walk(claims)
    decision[claims.settled[at]] = REFUTED


def _without_records(
    about: Study, system: BlockSystem, asked: tuple[CodeArray, IntArray] | None
) -> BlockClaims:
    """Return decisions on a block without a positive count."""
    empty = _nothing(about, Status.EMPTY, live=system.cells.size)
    if asked is None:
        return empty
    patterns, multiplicity = asked
    general = _universal_of(about, patterns)
    # Cells that no count binds can hold any number of records.
    space = about.space
    loose = (matches(space.codes[system.cells], patterns) & space.eligible[system.cells]).any(
        axis=1
    )
    decision = np.where(~loose & (multiplicity == 0), VERIFIED, REFUTED).astype(np.int64)
    readable = readable_everywhere(space, patterns, general.size[:, 0])
    return replace(
        empty,
        patterns=patterns,
        multiplicity=multiplicity,
        decision=decision,
        needed=general.needed[:, 0],
        readable=readable,
        readable_here=np.asarray(~loose),
    )
