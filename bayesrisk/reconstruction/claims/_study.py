"""Claims of one block: candidates from one solution, and a decision on each."""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayesrisk.interfaces import SolverBackend
from bayesrisk.reconstruction.claims._block import BlockSystem, Conflict, block_system
from bayesrisk.reconstruction.claims._conflict import describe, smallest_conflict
from bayesrisk.reconstruction.claims._decide import REFUTED, UNDECIDED, VERIFIED, Decider
from bayesrisk.reconstruction.claims._lattice import (
    Subsets,
    Universal,
    matches,
    supports,
    universal,
)
from bayesrisk.reconstruction.claims._readable import readable_everywhere, readable_here
from bayesrisk.reconstruction.claims._space import ClaimSpace

__all__ = ["BlockClaims", "Study", "study"]

Ints = NDArray[np.int64]
Codes = NDArray[np.int16]
Bools = NDArray[np.bool_]

_VERTICES = 8


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
        Of the objectives of vertices.
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
        ``decided``, ``undecided``, ``contradictory``, ``unknown`` or ``empty``.
    detail : str
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
    detail: str
    patterns: Codes
    multiplicity: Ints
    decision: Ints
    needed: Ints
    readable: Bools
    readable_here: Bools
    rows: Codes
    live: int


def _nothing(study_: Study, status: str, detail: str = "", live: int = 0) -> BlockClaims:
    n = study_.space.codes.shape[1]
    none, no = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    codes = np.zeros((0, n), np.int16)
    return BlockClaims(status, detail, codes, none, none, none, no, no, codes, live)


def study(
    about: Study, counts: Ints, hidden: Bools, asked: tuple[Codes, Ints] | None = None
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
    end = np.inf if about.time_limit is None else time.perf_counter() + about.time_limit
    system = block_system(about.space, counts, hidden)
    if isinstance(system, Conflict):
        return _nothing(about, "contradictory", describe(system, about.space, counts))
    if not system.model.low.size:
        return _without_records(about, system, asked)
    decider = Decider(system, about.solver, end)
    found = decider.find(max(_VERTICES, about.n_solutions), np.random.default_rng(about.seed))
    if found == "infeasible":
        conflict = smallest_conflict(system, about.solver)
        detail = describe(conflict, about.space, counts)
        return _nothing(about, "contradictory", detail, system.cells.size)
    if found == "unknown":
        return _nothing(about, "unknown", live=system.cells.size)
    if asked is not None:
        return _decided(about, system, decider, *_asked(about, system, asked))
    return _decided(about, system, decider, *_candidates(about, system, decider))


def _records(space: ClaimSpace, system: BlockSystem, solution: Ints) -> Codes:
    """Return the records of a solution that claims can be about, one row each."""
    cells = system.cells[np.repeat(system.first, solution)]
    rows: Codes = space.codes[cells[space.eligible[cells]]]
    return rows


@dataclass(frozen=True)
class _Claimed:
    """Candidates, and the supports behind them."""

    patterns: Codes
    number: Ints
    member: Bools
    size: Ints
    needed: Ints
    multiplicity: Ints | None


def _candidates(about: Study, system: BlockSystem, decider: Decider) -> tuple[_Claimed, Codes]:
    space, sets = about.space, about.sets
    records = _records(space, system, decider.solutions[0])
    rows = np.unique(records, axis=0)
    eligible = space.eligible[system.cells]
    found = supports(space.codes[system.cells], eligible, rows, sets)
    general = universal(space, rows, sets)
    member = sets.member()
    radix = np.cumprod(np.append(1, space.sizes[sets.columns][:-1] + 1))
    keys = ((rows[:, sets.columns].astype(np.int64) + 1) * radix) @ member.T.astype(np.int64)
    _, first = np.unique(keys, return_index=True)
    row, column = np.divmod(first, sets.bits.size)
    patterns = np.full((first.size, space.codes.shape[1]), -1, np.int16)
    patterns[:, sets.columns] = np.where(member[column], rows[row][:, sets.columns], -1)
    claimed = _Claimed(
        patterns,
        found.number[row, column],
        found.member,
        general.size[row, column],
        general.needed[row, column],
        None,
    )
    return claimed, records


def _asked(about: Study, system: BlockSystem, asked: tuple[Codes, Ints]) -> tuple[_Claimed, Codes]:
    space = about.space
    patterns, multiplicity = asked
    member = matches(space.codes[system.cells], patterns) & space.eligible[system.cells]
    packed, number = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)
    unique = np.unpackbits(packed, axis=1, count=system.cells.size).astype(np.bool_)
    general = _universal_of(about, patterns)
    claimed = _Claimed(
        patterns, number.ravel(), unique, general.size[:, 0], general.needed[:, 0], multiplicity
    )
    return claimed, np.zeros((0, patterns.shape[1]), np.int16)


def _universal_of(about: Study, patterns: Codes) -> Universal:
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


def _sums(system: BlockSystem, member: Bools) -> tuple[Bools, Bools]:
    """Return the classes of which some, and every, cell is in each support."""
    bound = np.flatnonzero(~system.unbound)
    order = bound[np.argsort(system.label[bound], kind="stable")]
    start = np.searchsorted(system.label[order], np.arange(system.first.size))
    ordered = member[:, order]
    return (
        np.logical_or.reduceat(ordered, start, axis=1),
        np.logical_and.reduceat(ordered, start, axis=1),
    )


def _decided(
    about: Study, system: BlockSystem, decider: Decider, claimed: _Claimed, records: Codes
) -> BlockClaims:
    """Decide candidates and say what tables state themselves."""
    some, every = _sums(system, claimed.member)
    value = every.astype(np.int64) @ decider.solutions[0]
    status = np.full(len(some), UNDECIDED, np.int8)
    loose = claimed.member[:, system.unbound].any(axis=1)
    if about.verify:
        decider.empty_classes()
        status[~loose], value[~loose] = decider.decide(some[~loose], every[~loose])
        status[loose] = REFUTED
    else:
        status[loose] = REFUTED
        for other in decider.solutions[1 : about.n_solutions]:
            status[(some @ other > value) | (every @ other < value)] = REFUTED
    here = np.zeros(len(status), np.bool_)
    told = status != REFUTED
    here[told] = readable_here(about.space, system, every[told], claimed.member[told].sum(axis=1))
    decision = status[claimed.number].astype(np.int64)
    multiplicity = value[claimed.number]
    if claimed.multiplicity is not None:
        decision = _compared(decider, some, every, claimed, decision, multiplicity)
        multiplicity = claimed.multiplicity
    keep = np.ones(decision.size, np.bool_) if about.refuted else decision != REFUTED
    patterns, size = claimed.patterns[keep], claimed.size[keep]
    readable_now = here[claimed.number[keep]]
    readable = np.zeros(patterns.shape[0], np.bool_)
    # A claim that a table states whatever its zeros is also stated with these zeros.
    readable[readable_now] = readable_everywhere(
        about.space, patterns[readable_now], size[readable_now]
    )
    open_ = about.verify and bool((decision == UNDECIDED).any())
    if claimed.multiplicity is not None:
        records = _records(about.space, system, decider.solutions[0])
    return BlockClaims(
        "undecided" if open_ else "decided",
        "",
        patterns,
        multiplicity[keep],
        decision[keep],
        claimed.needed[keep],
        readable,
        readable_now,
        records,
        system.cells.size,
    )


def _compared(
    decider: Decider, some: Bools, every: Bools, claimed: _Claimed, decision: Ints, value: Ints
) -> Ints:
    """Return decisions on the multiplicities that were asked for."""
    wanted = np.zeros(0, np.int64) if claimed.multiplicity is None else claimed.multiplicity
    found = np.where((decision == VERIFIED) & (value != wanted), REFUTED, decision)
    for solution in decider.solutions:
        most, least = (some @ solution)[claimed.number], (every @ solution)[claimed.number]
        found = np.where((wanted > most) | (wanted < least), REFUTED, found)
    return found


def _without_records(
    about: Study, system: BlockSystem, asked: tuple[Codes, Ints] | None
) -> BlockClaims:
    """Return decisions on a block without a positive count."""
    empty = _nothing(about, "empty", live=system.cells.size)
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
