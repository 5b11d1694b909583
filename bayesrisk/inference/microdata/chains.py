"""Markov chains over a place's records (lists of people, or lattice points), and their draws.

Chains that do not agree yet run for as long again, and all earlier draws become warm-up. So half of
a chain's sweeps are always kept, as equally many draws further apart. Longer runs need no more
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.model import equal_rows
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.contraction import starts
from bayesrisk.inference.microdata.lattice_moves import (
    Lattice,
    combine_near,
    combine_small,
    span_sums,
    walk,
    walks,
)
from bayesrisk.inference.microdata.people_model import KINDS, ChainState, PeopleModel, put
from bayesrisk.inference.microdata.people_moves import sweep
from bayesrisk.inference.microdata.system import GroupSystem, TooLargeError
from bayesrisk.inference.sampling.chains import (
    ChainNumbers,
    Step,
    chain_numbers,
    empty_counts,
    run_chains,
)

#: What draws must have for an answer.
LEAST_ESS, MOST_R_HAT = 400.0, 1.01
_LUCK = 4.0  # times as much as doublings as a rule add to what draws are worth
_EQUAL = 1e-9  # relative: what differs by less is equal
_EVERYBODY = np.zeros(0, np.int64)  # no slots in particular
_NO_COUNTS = np.empty((1, 0, 0), np.int64)  # which nobody asks for
_STATES = 2**20  # counts of the states that are held at a time
_COUNTS = 8  # that are looked at in the time of a proposal


@dataclass
class PeopleChain:
    """A Markov chain over lists of people, and the number of proposals in a sweep.

    A sweep has about one proposal for each person, or for every eighth count where that is more, as
    reading a state takes longer with more counts.
    """

    model: PeopleModel
    state: ChainState
    sweep_size: int
    rng: np.random.Generator

    @classmethod
    def begin(
        cls, model: PeopleModel, rng: np.random.Generator, fewest: int, share: float = 0.0
    ) -> Self:
        """Return a chain started from a prior draw, with at least ``fewest`` proposals a sweep.

        Chains of different ``share``, from 0 up to 1, start far apart (``PeopleModel.sizes``).
        """
        state = _first_state(model, rng, share)
        sweep_size = max(fewest, int(model.likely.sum()), state.x.size // _COUNTS)
        return cls(model, state, sweep_size, rng)

    def advance(self, sweeps: int) -> None:
        """Run the chain for ``sweeps`` sweeps."""
        self._sweep(sweeps * self.sweep_size, _EVERYBODY, _NO_COUNTS, np.empty(1))

    def advance_parts(self, parts: IntArray, rounds: int) -> None:
        """Update the people of some parts only, with ``rounds`` proposals for each slot."""
        first = self.model.arrays.first
        slots = np.concatenate([np.arange(first[p], first[p + 1]) for p in parts])
        if slots.size:
            self._sweep(rounds * slots.size, slots, _NO_COUNTS, np.empty(1))

    def snapshot(self) -> tuple[IntArray, float]:
        """Return the counts of all classes and the log likelihood of the state."""
        return self.state.x.ravel(), float(self.state.density[0])

    def record(self, draws: int, sweeps: int) -> tuple[IntArray, FloatArray]:
        """Return the counts of all classes and the log-likelihood, ``sweeps`` sweeps apart."""
        counts, density = np.empty((draws, *self.state.x.shape), np.int64), np.empty(draws)
        self._sweep(sweeps * self.sweep_size, _EVERYBODY, counts, density)
        return counts.reshape(draws, -1), density

    def _sweep(
        self, proposals: int, slots: IntArray, counts: IntArray, density: FloatArray
    ) -> None:
        sweep(self.rng, self.model.arrays, self.state, proposals, slots, counts, density)


def _first_state(model: PeopleModel, rng: np.random.Generator, share: float) -> ChainState:
    """Return a state drawn from the prior, given ``PeopleModel.sizes(share)`` people by part."""
    arrays, sizes = model.arrays, model.sizes(share)
    occupant = np.zeros(int(arrays.first[-1]), np.int64)
    x = np.zeros((len(model.strata), model.classes), np.int64)
    spot = model.spot.copy()
    for part, n in enumerate(sizes):
        if n:
            mass = arrays.mass[arrays.law[part]]
            classes = rng.choice(model.classes, size=int(n), p=mass / mass.sum())
            occupant[arrays.first[part] : arrays.first[part] + n] = classes
            x[part] = np.bincount(classes, minlength=model.classes)
    put(arrays, spot, x)
    density = np.array([float(arrays.table[spot].sum())])
    tally = np.zeros((len(KINDS), 2), np.int64)
    return ChainState(occupant, sizes, x, spot, tally, density, np.zeros(model.classes))


# Chains on the points of a system with hard rows, from starts that lie far apart.


#: Most groups of a system whose lattice is worked out.
MAX_GROUPS = 2000
_LARGEST = 2**31  # entries of a basis beyond this are refused: products must fit 64 bits
_SPARSEST = 4  # combinations are kept while they are at most so many times as long as a basis move


def kernel_basis(matrix: IntArray) -> IntArray:
    """Return a basis of the integer vectors z with ``matrix @ z == 0``, one in each row.

    Columns are reduced by whole-number steps of Euclid, row by row; those that end with zeros are
    a basis of the kernel, and short vectors are then subtracted from longer ones.
    """
    n = matrix.shape[1]
    work = np.concatenate([matrix.T.copy(), np.eye(n, dtype=np.int64)], axis=1)  # row: a column
    rows, rank = matrix.shape[0], 0
    for r in range(rows):
        while True:
            active = rank + np.flatnonzero(work[rank:, r])
            if active.size == 0:
                break
            sizes = np.abs(work[active, r]) * (n + 1) + np.count_nonzero(work[active], axis=1)
            pivot = active[np.argmin(sizes)]
            work[[rank, pivot]] = work[[pivot, rank]]
            remaining = rank + 1 + np.flatnonzero(work[rank + 1 :, r])
            if remaining.size == 0:
                rank += 1
                break
            factor = np.rint(work[remaining, r] / work[rank, r]).astype(np.int64)
            factor[factor == 0] = np.sign(work[remaining, r] * work[rank, r])[factor == 0]
            work[remaining] -= factor[:, None] * work[rank]
            if np.abs(work[remaining]).max(initial=0) > _LARGEST:
                raise ArgumentError("the lattice of the published counts has too large entries")
    return _shortened(work[rank:, rows:])


def _products(vectors: IntArray) -> IntArray:
    """Return the scalar products of sparse vectors."""
    sparse = sp.csr_array(vectors)
    return np.asarray((sparse @ sparse.T).toarray())


def _shortened(basis: IntArray) -> IntArray:
    """Return the basis with multiples of vectors subtracted from longer ones to shorten them."""
    basis = basis[np.argsort((basis**2).sum(axis=1), kind="stable")]
    gram = _products(basis)
    for _ in range(20):
        changed = False
        for i in range(len(basis)):
            size = np.diag(gram)
            factor = np.rint(gram[i] / np.maximum(size, 1)).astype(np.int64)
            factor[i] = 0
            # Only shorter vectors are taken from longer ones, the best of them first.
            gain = 2 * factor * gram[i] - factor**2 * size
            j = int(np.argmax(gain))
            if gain[j] > 0:
                basis[i] -= factor[j] * basis[j]
                gram[i] -= factor[j] * gram[j]
                gram[:, i] -= factor[j] * gram[:, j]
                changed = True
        if not changed:
            break
    return basis[np.argsort((basis**2).sum(axis=1), kind="stable")]


def make_moves(basis: IntArray, more: IntArray, rng: np.random.Generator, count: int) -> IntArray:
    """Return the basis, the given moves, and random combinations of two to four basis moves.

    A basis alone need not connect the points that are not negative.
    """
    groups = [basis, more]
    if len(basis) > 1:
        near = _products((basis != 0).astype(np.int64))
        longest = _SPARSEST * max(1, int(np.abs(basis).sum(axis=1).max(initial=1)))
        rows = np.empty((count, basis.shape[1]), np.int64)
        groups.append(rows[: combine_near(rng, basis, near, longest, np.empty(len(basis)), rows)])
    every = np.concatenate(groups) if len(basis) else more
    if not len(every):
        return np.zeros((0, basis.shape[1]), np.int64)
    first = np.argmax(every != 0, axis=1)
    sign = np.sign(every[np.arange(len(every)), first])
    every *= sign[:, None]
    # Rows as bytes of numbers from 0 on sort as the rows do, and a hundred times sooner.
    raised = every - every.min()
    kind = np.min_scalar_type(int(raised.max())).newbyteorder(">")
    text = np.ascontiguousarray(raised.astype(kind)).view(f"S{kind.itemsize * every.shape[1]}")
    unique: IntArray = every[np.unique(text, return_index=True)[1]]
    return unique[unique.any(axis=1)]


def small_moves(
    basis: IntArray, changes: IntArray, rng: np.random.Generator, count: int
) -> IntArray:
    """Return combinations of two to four basis moves that hardly change the soft sums.

    ``changes`` gives the change of every soft sum by every move. Sums that are known within a range
    leave no room for other moves.
    """
    rows = np.empty((count if len(basis) > 1 else 0, basis.shape[1]), np.int64)
    left, reach = np.empty((2, len(basis)))
    return rows[: combine_small(rng, basis, _products(changes), left, reach, rows)]


@lru_cache(maxsize=1)
def _combined_moves(basis: bytes, soft: bytes, groups: int) -> IntArray:
    """Return combinations of basis moves, which depend on the matrices alone and are cached."""
    rng, one = np.random.default_rng(0), np.frombuffer(basis, np.int64).reshape(-1, groups)
    changes = one @ np.frombuffer(soft, np.int64).reshape(-1, groups).T
    tries = max(_FEWEST, _COMBINATIONS * len(one))
    return make_moves(one, small_moves(one, changes, rng, tries), rng, tries)


def _blocks(system: GroupSystem) -> IntArray:
    """Return one number for groups of equal hard columns: 0 if zero, -1 if no other has it."""
    columns = sp.csr_array(sp.csc_array(system.model.rows[np.flatnonzero(system.hard), :]).T)
    label, _ = equal_rows(columns)
    block = np.where(np.bincount(label)[label] > 1, label + 1, -1)
    block[np.diff(columns.indptr) == 0] = 0
    return block


def lattice(system: GroupSystem, moves: IntArray) -> Lattice:
    """Return a system and its moves as the arrays of the kernel."""
    pairs = zip(system.row_weights, system.hard, strict=True)
    soft = [np.zeros(0) if hard else weights for weights, hard in pairs]
    z = sp.csr_array(moves)
    changed = sp.csr_array(z @ system.model.rows.T)
    changed = sp.csr_array(changed.multiply(~system.hard[None, :]))
    changed.eliminate_zeros()
    groups = sp.csr_array(sp.csr_array(system.model.rows.multiply(~system.hard[:, None])).T)
    groups.eliminate_zeros()
    groups.sort_indices()
    block = _blocks(system)
    share = np.where(block >= 0, system.mass, 0.0)
    single = _SINGLE if share.any() else 0.0
    return Lattice(
        ptr=z.indptr.astype(np.int64),
        group=z.indices.astype(np.int64),
        coef=z.data.astype(np.int64),
        row_ptr=changed.indptr.astype(np.int64),
        row=changed.indices.astype(np.int64),
        row_coef=changed.data.astype(np.int64),
        prior_ptr=starts([p.size for p in system.priors]),
        prior=np.concatenate([*system.priors, np.zeros(1)]),
        soft_ptr=starts([s.size for s in soft]),
        soft=np.concatenate([*soft, np.zeros(1)]),
        group_ptr=groups.indptr.astype(np.int64),
        group_row=groups.indices.astype(np.int64),
        group_coef=groups.data.astype(np.int64),
        block=block,
        reach=np.cumsum(share),
        chances=np.array([single, _LOOSE * np.any(block == 0)]),
    )


_COMBINATIONS = 8  # random combinations of moves for every basis move, and at least so many
_FEWEST = 200
_HALVINGS = 4
_SINGLE, _LOOSE = 0.5, 0.5  # chances of a step of one record, and that it comes or goes
_SOLVER_SECONDS = 30.0
_TOO_LATE = "chains must have some draws within the limit of time"
_MANY = 200  # groups from which on a start is looked for beside a vertex of a linear program
_WHOLE = 1e-6  # what is so near to a whole number is one
_NEAR = 0.1  # share by which a start may fall short of the most extreme one


class TooLateError(ArgumentError):
    """The time limit passed before the chains had any draws."""


def check_kinds(system: GroupSystem) -> None:
    """Raise if the system has too many groups for chains on lattice points."""
    if system.mass.size > MAX_GROUPS:
        raise TooLargeError(
            f"place must have at most {MAX_GROUPS} kinds of records that its counts tell apart "
            f"for chains, got {system.mass.size}, and is too large for an exact law: "
            "leave tables out, or take a prior whose shares make tables independent of each other"
        )


class LatticeChains:
    """Starting points and moves of several chains on one lattice."""

    def __init__(
        self,
        system: GroupSystem,
        chains: int,
        rng: np.random.Generator,
        deadline: Deadline | None = None,
    ) -> None:
        self._system, matrix = system, system.model.rows
        check_kinds(system)
        hard = matrix[np.flatnonzero(system.hard), :].toarray().astype(np.int64)
        self.basis = kernel_basis(hard)
        self.starts = _distant_states(system, chains, rng, deadline or Deadline())
        soft = matrix[np.flatnonzero(~system.hard), :].toarray().astype(np.int64)
        # No move knows the starts: chains that could leap from one to another would agree about
        # these alone, however many points there are between them.
        self.moves = _combined_moves(self.basis.tobytes(), soft.tobytes(), system.mass.size)
        self.lattice = lattice(system, self.moves)
        #: How often a sweep may be halved to begin with: steps of one record mix sooner than moves.
        self.halvings = _HALVINGS if self.lattice.chances[0] else 0

    def begin(
        self, generators: Sequence[np.random.Generator], halvings: int = 0
    ) -> list[LatticeChain]:
        """Return the chains at their starting points, each with its own generator.

        A sweep has one step for each move, halved as often as ``halvings`` says.
        """
        system, sweep = self._system, max(1, len(self.moves) >> halvings)
        soft = np.flatnonzero(~system.hard)
        longest = max((p.size for p in system.priors), default=1)
        return [
            LatticeChain(
                self.lattice,
                x.copy(),
                span_sums(x),
                system.model.rows @ x,
                soft,
                np.zeros(longest + 1),
                sweep,
                rng,
            )
            for x, rng in zip(self.starts, generators, strict=True)
        ]


@dataclass
class LatticeChain:
    """A Markov chain on lattice points."""

    lattice: Lattice
    x: IntArray  # counts of the groups, their sums over spans, and the sums of rows
    spans: IntArray
    sums: IntArray
    soft: IntArray  # the soft rows
    work: FloatArray  # room for the longest line
    sweep_size: int  # steps of a sweep
    rng: np.random.Generator  # of this chain

    def advance(self, sweeps: int) -> None:
        """Run the chain for ``sweeps`` sweeps."""
        steps = sweeps * self.sweep_size
        walk(self.rng, self.lattice, self.x, self.spans, self.sums, self.work, steps)

    def record(self, draws: int, sweeps: int) -> tuple[IntArray, FloatArray]:
        """Return the counts and the log density, ``sweeps`` sweeps apart."""
        counts = np.empty((draws, self.x.size), np.int64)
        sums = np.empty((draws, self.sums.size), np.int64)
        steps = sweeps * self.sweep_size
        state = (self.x, self.spans, self.sums, self.work)
        walks(self.rng, self.lattice, *state, steps, counts, sums)
        fixed, soft = self.lattice, self.soft
        density = fixed.prior[fixed.prior_ptr[:-1] + counts].sum(axis=1)
        density += fixed.soft[fixed.soft_ptr[soft] + sums[:, soft]].sum(axis=1)
        return counts, density


def _distant_states(
    system: GroupSystem, count: int, rng: np.random.Generator, deadline: Deadline
) -> list[IntArray]:
    """Return ``count`` solutions far apart: nearly extreme points in random directions.

    If sums have several runs, the first state has sums in the first runs if possible, and so on.
    After the deadline a TooLateError is raised.
    """
    if not all(map(len, system.runs)):
        raise DataError("release contradicts itself or the prior: a count cannot be as it is")
    states = []
    for i in range(count):
        direction = rng.normal(size=system.mass.size)
        wanted = [i * len(runs) // count for runs in system.runs]
        x = _solution(system, direction, wanted, deadline.sooner(_SOLVER_SECONDS))
        if x is None and any(len(runs) > 1 for runs in system.runs):
            x = _solution(system, direction, [], deadline.sooner(_SOLVER_SECONDS))
        if deadline.late:
            raise TooLateError(_TOO_LATE)
        if x is None:
            raise DataError(
                "release contradicts itself or the prior, or no counts that agree with all of it "
                f"were found in {_SOLVER_SECONDS:g} s"
            )
        states.append(x)
    return states


def _solution(
    system: GroupSystem, direction: FloatArray, wanted: Sequence[int], deadline: Deadline
) -> IntArray | None:
    """Return a solution extreme in a direction, with sums in the wanted runs (or any), or None.

    If a sum has several runs, a binary variable for each says whether the sum is in it.
    """
    matrix, top = system.model.rows, system.model.high
    low, high = np.array([(runs[0, 0], runs[-1, 1]) for runs in system.runs], float).T
    broken = [r for r, runs in enumerate(system.runs) if len(runs) > 1]
    width = np.array([len(system.runs[r]) for r in broken], np.int64)
    ends = np.concatenate([np.zeros((0, 2), np.int64), *(system.runs[r] for r in broken)])
    chosen = sp.csr_array(np.repeat(np.eye(width.size), width, axis=1))
    sums = matrix[broken, :]
    rows = sp.block_array(
        [
            [matrix.astype(float), sp.csr_array((low.size, len(ends)))],
            [sums, -chosen * ends[:, 0]],  # at least the first of the run
            [sums, -chosen * ends[:, 1]],  # at most the last
            [sp.csr_array(sums.shape), chosen],  # one run
        ],
        format="csr",
    )
    least = np.concatenate([low, np.repeat([0.0, -np.inf, 1.0], width.size)])
    most = np.concatenate([high, np.repeat([np.inf, 0.0, 1.0], width.size)])
    lower = np.zeros(len(ends))
    if wanted:
        lower[np.cumsum(width) - width + np.array(wanted, np.int64)[broken]] = 1.0
    cost = np.concatenate([direction, np.zeros(len(ends))])
    upper = np.concatenate([top, np.ones(len(ends))])

    def solved(low: FloatArray, high: FloatArray, *, whole: bool) -> Any:
        return milp(
            cost,
            constraints=LinearConstraint(rows, least, most),
            integrality=np.full(cost.size, int(whole)),
            bounds=Bounds(low, high),
            options={"mip_rel_gap": _NEAR, "time_limit": deadline.left},
        )

    lower = np.concatenate([np.zeros(direction.size), lower])
    answer: Any = None
    if direction.size >= _MANY:
        # What a linear program leaves whole stays as it is: a program of the rest is a small one.
        vertex = solved(lower, upper, whole=False).x
        if vertex is not None:
            near = np.rint(vertex)
            settled = np.abs(vertex - near) <= _WHOLE
            low_left, high_left = np.where(settled, near, [lower, upper])
            answer = solved(low_left, high_left, whole=True)
    if answer is None or answer.x is None:
        answer = solved(lower, upper, whole=True)
    if answer.x is None:
        return None
    x: IntArray = np.rint(answer.x[: direction.size]).astype(np.int64)
    counts = matrix @ x
    inside = [
        np.any((runs[:, 0] <= n) & (n <= runs[:, 1]))
        for n, runs in zip(counts, system.runs, strict=True)
    ]
    if np.any(x < 0) or np.any(x > top) or not all(inside):
        raise DataError("the solver's counts do not agree with the release")
    return x


# Runs of any chains, kept draws, and whether the chains agree.


class Chain(Protocol):
    """A Markov chain."""

    def advance(self, sweeps: int) -> None:
        """Run the chain for ``sweeps`` sweeps."""

    def record(self, draws: int, sweeps: int) -> tuple[IntArray, FloatArray]:
        """Return the counts and the log density, ``sweeps`` sweeps apart."""


#: Is called with the number of the chain and the counts of the states that are kept, a row each.
Observer = Callable[[int, IntArray], None]


def no_observer() -> Observer:
    """Return an observer that does nothing."""
    return lambda chain, x: None


@dataclass(frozen=True)
class Draws:
    """Kept draws of several chains, and convergence diagnostics."""

    counts: IntArray  # (chains, draws, functions): linear functions of the states
    # of the log density and of two random projections of the state, where they move
    watched: list[ChainNumbers]
    thin: int  # sweeps between two draws
    # by how many people a number may differ from that of all draws, if these are equal
    leap: int = 1

    @property
    def agreed(self) -> bool:
        """Whether the chains agree by their diagnostics; False if no number varies."""
        return agreed(self.watched)


def draw(
    chains: Sequence[Chain],
    functions: sp.csr_array,
    draws: int,
    *,
    thin: int,
    doublings: int,
    enough: Callable[[Draws], bool] = lambda _: True,
    observer: Callable[[], Observer] = no_observer,
    batched: bool = False,
    deadline: Deadline | None = None,
    impatient: bool = False,
) -> Draws:
    """Return draws after the chains agree, or after the last doubling if they do not.

    An ``impatient`` run ends when its draws are worth so little that the rest of the run would
    hardly help.

    An observer sees many states at once if ``batched``, else each state in turn. At the deadline
    they are those of the last finished doubling; without one an error is raised.
    """
    directions = np.random.default_rng(0).normal(size=(2, functions.shape[1]))
    for doubling in range(doublings + 1):
        counts = empty_counts(draws, len(chains), functions.shape[0])
        traces = np.zeros((3, len(chains), draws))  # log density and projections
        observe = observer()
        room = _STATES // max(functions.shape[1], 1) if batched or observer is no_observer else 1
        begin = _steps(
            chains, functions, directions, thin << doubling, traces, observe, max(room, 1)
        )
        try:
            run_chains(_until(begin, deadline), counts, 0 if doubling else draws, None)
        except TooLateError:
            if not doubling:
                raise
            break
        sample = Draws(counts, [chain_numbers(v) for v in moving(traces)], thin << doubling)
        if sample.agreed and enough(sample):
            break
        if impatient and _hopeless(sample, doublings - doubling):
            break
    return sample


def _hopeless(sample: Draws, doublings: int) -> bool:
    """Return whether draws would be too few even if each doubling were worth more than twice."""
    worth = min((min(n.bulk, n.tail) for n in sample.watched), default=0.0)
    return worth * _LUCK * 2.0**doublings < LEAST_ESS


def _until(begin: Callable[[int], Step], deadline: Deadline | None) -> Callable[[int], Step]:
    """Return a maker of steps that raise an error once the deadline has passed."""

    def limited(number: int) -> Step:
        step = begin(number)

        def checked(discard: int, out: IntArray) -> None:
            if deadline is not None and deadline.late:
                raise TooLateError(_TOO_LATE)
            step(discard, out)

        return checked

    return limited


def _steps(
    chains: Sequence[Chain],
    functions: sp.csr_array,
    directions: FloatArray,
    thin: int,
    traces: FloatArray,
    observe: Observer,
    room: int,
) -> Callable[[int], Step]:
    """Return a maker of a chain's step, which stores functions of the chain's states."""

    def begin(number: int) -> Step:
        chain, filled = chains[number], 0

        def step(discard: int, out: IntArray) -> None:
            nonlocal filled
            chain.advance(discard * thin)
            for start in range(0, len(out), room):
                x, density = chain.record(min(room, len(out) - start), thin)
                end = filled + len(x)
                out[start : start + len(x)] = (functions @ x.T).T
                traces[0, number, filled:end] = density
                # Row by row: a product of matrices may round otherwise in pieces of other sizes
                traces[1:, number, filled:end] = [(x * d).sum(axis=1) for d in directions]
                observe(number, x)
                filled = end

        return step

    return begin


def agreed(watched: Sequence[ChainNumbers]) -> bool:
    """Return whether all diagnostics pass; False if none is watched."""
    return bool(watched) and all(
        n.r_hat <= MOST_R_HAT and min(n.bulk, n.tail) >= LEAST_ESS for n in watched
    )


def moving(traces: Iterable[FloatArray]) -> list[FloatArray]:
    """Return the traces that vary by more than rounding error, rounded.

    A density added up along a chain has a different rounding error in each chain. Equal states
    would then have different ranks, and chains that agree would seem to disagree. NaN values stay:
    their diagnostics are NaN too, and such chains do not agree.
    """
    varied = []
    for values in traces:
        size = 1.0 + float(np.abs(values).max())
        even = np.rint(values / (_EQUAL * size)) if np.isfinite(size) else values
        if np.ptp(even) != 0.0:  # also of no numbers
            varied.append(even)
    return varied
