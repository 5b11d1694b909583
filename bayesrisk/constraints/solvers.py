"""Integer programs through any solver; every answer is checked in integers.

A back-end has a method ``solve(model, objective, limits=...)`` and answers with a status:

- ``proved``: the values are feasible and within the requested gap of the optimum;
- ``feasible``: the values are feasible, and only ``bound`` is known beyond that;
- ``infeasible``: there is no solution, confirmed a second way;
- ``unknown``: a limit was reached before any result.

Values are whole numbers that were checked against every row in integer arithmetic.
"""

import time
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.exceptions import ArgumentError, quote

#: What the floating-point bound of a solver may be off by.
BOUND_ERROR = 1e-6


@dataclass(frozen=True)
class Limits:
    """Limits of a solver call: wall-clock seconds, branch-and-bound nodes, absolute gap.

    An answer is proved if its value and its bound are within ``gap``. If values can only be even,
    1.99 proves the optimum. Limits of nodes give the same answer on a slow machine. Several calls
    end together at ``end``, in the units of ``time.perf_counter``.
    """

    seconds: float | None = None
    gap: float = 0.0
    nodes: int | None = None
    end: float = np.inf

    @property
    def next(self) -> "Limits":
        """The limits of a call that begins now, within the common end."""
        if np.isinf(self.end):
            return self
        left = max(self.end - time.perf_counter(), 0.0)
        return replace(self, seconds=min(left, np.inf if self.seconds is None else self.seconds))

    @property
    def deadline(self) -> "Deadline":
        """The deadline of a call that begins now."""
        return Deadline(self.next.seconds, self.nodes)


#: Most nodes that a limit may name: what HiGHS can count.
_MOST_NODES = 2**31 - 1


def checked_nodes(node_limit: int | None, solver: str) -> int | None:
    """Return a checked limit of nodes, or None for no limit; PuLP's solvers accept none."""
    if node_limit is None:
        return None
    if solver.startswith("pulp:"):
        raise ArgumentError("node_limit", f"must be None for solver {solver!r}", shown=node_limit)
    return check.integer(node_limit, "node_limit", lower=1, upper=_MOST_NODES)


@displayed
@dataclass(frozen=True)
class SolverResult:
    """Answer of a solver, checked in integers.

    The status is ``proved``, ``feasible``, ``infeasible`` or ``unknown``. ``values`` are a
    solution, checked against every row, and ``value`` its objective (None without one). ``bound``
    is an upper bound of the objective (infinite if nothing was proved), and ``gap`` the difference.
    """

    status: str
    value: int | None
    bound: float
    gap: float
    values: IntArray | None
    seconds: float


class Raw(NamedTuple):
    """Unchecked answer of a solver; ``status`` as in :class:`SolverResult`."""

    status: str
    bound: float
    values: FloatArray | None


def settle_answer(
    model: IntegerModel, objective: IntArray, raw: Raw, *, gap: float, seconds: float
) -> SolverResult:
    """Return a solver's answer after its values are checked in integer arithmetic.

    It is ``unknown`` if rounded values break a row, and ``feasible`` if the gap is larger than
    requested.
    """
    if raw.status == Status.INFEASIBLE:
        return SolverResult(Status.INFEASIBLE, None, -np.inf, 0.0, None, seconds)
    if raw.values is None:
        return SolverResult(Status.UNKNOWN, None, raw.bound, np.inf, None, seconds)
    values = np.rint(raw.values).astype(np.int64)
    if not model.holds(values):
        return SolverResult(Status.UNKNOWN, None, np.inf, np.inf, None, seconds)
    value = int(objective @ values)
    # Objectives are whole numbers, so a bound is as good as the whole number below it.
    bound = max(float(np.floor(raw.bound + BOUND_ERROR)), float(value))
    proved = raw.status == Status.PROVED and bound - value <= gap
    return SolverResult(
        Status.PROVED if proved else Status.FEASIBLE, value, bound, bound - value, values, seconds
    )


@runtime_checkable
class SolverBackend(Protocol):
    """Maximises a linear objective over an integer program and reports what is proved.

    The model, its limits and the answer are classes of ``bayesrisk.constraints``.
    """

    name: str

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Return the status, values, objective and bound, checked in integer arithmetic."""


class Deadline:
    """Limit of work: after some seconds, after a number of linear programs, or never.

    ``share`` is the largest part of these seconds for one part of the work.
    """

    def __init__(
        self, seconds: float | None = None, nodes: int | None = None, share: float | None = None
    ) -> None:
        self._end = np.inf if seconds is None else time.perf_counter() + seconds
        self._nodes, self._share = nodes, share

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0; infinite without a limit."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def late(self) -> bool:
        """True once the time or the linear programs are used up."""
        return self.left <= 0.0 or (self._nodes is not None and self._nodes <= 0)

    def spend(self, nodes: int = 1) -> None:
        """Subtract linear programs from those left."""
        if self._nodes is not None:
            self._nodes -= nodes

    def sooner(self, seconds: float) -> "Deadline":
        """Return the earlier of this deadline and one some seconds from now."""
        deadline = Deadline(seconds)
        deadline._end, deadline._nodes = min(deadline._end, self._end), self._nodes
        return deadline

    @property
    def part_limits(self) -> Limits:
        """Limits of the solver calls of one part, which share an end."""
        return Limits(self._share, nodes=self._nodes, end=self._end)

    @property
    def limits(self) -> Limits:
        """Remaining limits for the next solver call."""
        left = self.left
        return Limits(seconds=None if np.isinf(left) else left, nodes=self._nodes)


# -----------------------------------------------------------------------------
# Solvers by name: the package's own, and plug-ins in the group ``bayesrisk.solvers``.


_OWN = {  # loaded when asked for: both are slow to import
    "highs": "bayesrisk.constraints.highs:HighsSolver",
    "pulp": "bayesrisk.constraints._pulp:PulpSolver",
}
REGISTRY: Registry[SolverBackend] = Registry(
    "solver",
    builtin=_OWN,
    protocol=SolverBackend,
    needs="name and solve()",
    results={"solve": SolverResult},
)


def make_solver(name: str | SolverBackend = "highs", **options: object) -> SolverBackend:
    """Return the solver of that name.

    Parameters
    ----------
    name : str or SolverBackend, default "highs"
        ``"highs"`` for HiGHS without a modelling layer; ``"pulp:NAME"`` for a solver of PuLP, such
        as ``"pulp:highs"``, ``"pulp:cbc"`` or any name that PuLP lists. A solver object is returned
        unchanged. Other names are those of plug-ins: classes that take options as keywords, and the
        text after a colon, if any.
    **options : object
        Options of the solver, passed on.

    Examples
    --------
    >>> make_solver("highs").name
    'highs'
    """
    if not isinstance(name, str):
        if not isinstance(name, SolverBackend):
            raise ArgumentError(
                f"name of the solver must be text or have a solve method, got {quote(name)}"
            )
        return name
    kind, _, inner = name.partition(":")
    if kind in _OWN and (kind == "pulp") != bool(inner):
        raise ArgumentError("solver", "must be highs or pulp:NAME", got=name)
    return REGISTRY.make(kind, *([inner] if inner else []), **options)


def solver_and_limits(
    solver: str | SolverBackend, time_limit: float | Deadline | None, node_limit: int | None = None
) -> tuple[SolverBackend, Limits]:
    """Return the named solver and the limits of a call to it, both checked."""
    backend = make_solver(solver)
    if isinstance(time_limit, Deadline):
        return backend, replace(
            time_limit.part_limits, nodes=checked_nodes(node_limit, backend.name)
        )
    seconds = check.time_limit(time_limit)
    return backend, Limits(seconds, nodes=checked_nodes(node_limit, backend.name))
