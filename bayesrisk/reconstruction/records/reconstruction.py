"""Records reconstructed from published tables, with proofs for every block."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk._version import __version__
from bayesrisk.constraints.solvers import Deadline, SolverBackend, make_solver, solver_and_limits
from bayesrisk.exceptions import ArgumentError
from bayesrisk.interfaces import AttackResult
from bayesrisk.reconstruction.persons import age_bin
from bayesrisk.reconstruction.records.problem import Problem, check_records, published_problem
from bayesrisk.reconstruction.records.solve import solve_blocks
from bayesrisk.reconstruction.records.system import PERSON
from bayesrisk.release import Release
from bayesrisk.tables.published import SeveralTables


@displayed
@dataclass(frozen=True)
class Reconstruction(AttackResult, Tabular):
    """Histograms that fit published tables, and what is proved about each block.

    Attributes
    ----------
    problem : Problem
        The tables as an integer system. If its ``taken_as_true`` is set, all proofs hold only if
        the published counts are true.
    scope : str
        The level whose tables were solved together.
    status : tuple of str
        For every block ``unique`` (proved: no others fit, up to :attr:`resolution`), ``feasible``
        (others fit, or might), ``infeasible`` (proved: none fit), or ``nearest`` (none fit; these
        deviate least). It is ``unknown``, without records, if a limit was reached, or if a cell is
        in no published count and may hold any number.
    conflict : tuple of str
        For blocks without a solution, the published cells that contradict each other, or the reason
        why it is unknown; else empty.
    block, cell, count : ndarray of int64
        The histograms: position of the block, cell, number of records.
    extra : mapping of str to ndarray of int64
        Columns of the records that come from larger places, such as single years of age.
    deviation : ndarray of int64
        Sum of absolute deviations from the published counts of every block; 0 except for
        ``nearest``.
    solver : str
        Name of the solver for blocks that search did not settle.
    version : str
        Version of bayesrisk.
    """

    stated_by = "bayesrisk.risk.statements.results:stated_by_reconstruction"

    problem: Problem
    scope: str
    status: tuple[str, ...]
    conflict: tuple[str, ...]
    block: IntArray
    cell: IntArray
    count: IntArray
    extra: dict[str, IntArray]
    deviation: IntArray
    solver: str
    version: str = __version__

    def _answer(self) -> list[str]:
        tally = Counter(self.status)
        listing = ", ".join(f"{n:,} {status}" for status, n in tally.most_common())
        return [
            f"{int(self.count.sum()):,} records in {len(self.status):,} places: {listing}.",
            f"Unique means {self._meaning} ({self.scope}); what is merely "
            "feasible is one of several answers.",
            "See to_frame() for the records and blocks() for the places.",
        ]

    @property
    def _meaning(self) -> str:
        if self.problem.taken_as_true:
            return "that no other records would fit if the published counts were true"
        if self.problem.coarsened:
            return "proved: no other records fit the tables, whose counts are read as ranges"
        return "proved: no other records fit the tables"

    def _shown_frame(self) -> pd.DataFrame:
        return self.blocks()

    @property
    def geoids(self) -> TextArray:
        """Codes of the blocks."""
        return self.problem.geoids

    @property
    def population(self) -> IntArray:
        """Number of records of every block."""
        total = np.zeros(self.geoids.size, np.int64)
        np.add.at(total, self.block, self.count)
        return total

    @property
    def resolution(self) -> dict[str, int]:
        """The number of values that a proof distinguishes in each column.

        Age is given as ``agebin``. The tables of blocks separate 38 bins, and exact tables of
        tracts are solved on these. If cells of a tract are withheld, they are solved with the
        tract's own 103 bins, single years up to 99.
        """
        shape = self.problem.space.shape
        first = self.problem.space.columns(np.zeros(1, np.int64))
        return dict(zip(first, shape, strict=True))

    def histogram(self) -> sp.csr_array:
        """Return the histograms, blocks by cells."""
        return self.problem.histograms(self.block, self.cell, self.count)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each record.

        Returns
        -------
        pandas.DataFrame
            The block and the attributes. ``agebin`` is present if the tables separate only bins of
            age, and ``age`` if a larger place publishes single years.
        """
        check_records(self.count, "a frame")
        block, cell = np.repeat(self.block, self.count), np.repeat(self.cell, self.count)
        columns = {**self.problem.space.columns(cell), **self.extra}
        return pd.DataFrame({self.problem.level: self.geoids[block], **columns})

    def blocks(self) -> pd.DataFrame:
        """Return a row for each block: ``population, status, deviation, conflict``."""
        return pd.DataFrame(
            {
                self.problem.level: self.geoids,
                "population": self.population,
                "status": list(self.status),
                "deviation": self.deviation,
                "conflict": list(self.conflict),
            }
        )


def reconstruct(
    tables: SeveralTables | Problem,
    *,
    scope: str,
    solver: str | SolverBackend = "highs",
    time_limit: float | Deadline | None = None,
    nearest: bool = False,
    taken_as_true: bool = False,
    known_rule: bool = True,
) -> Reconstruction:
    """Return records that reproduce published tables, with a proof if they are the only ones.

    It solves ``A x = c`` in non-negative integers for the histogram ``x`` of every block. The steps
    are interval propagation to a fixed point, connected components, complete search, and integer
    programs for the rest. Every histogram is tabulated again and compared with the published counts
    in integer arithmetic before it is returned. Counts that were rounded, or published as ranges,
    are read as all counts that they allow: ``l <= A x <= u``.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of true counts, or of counts that limit the true ones, such as rounded ones.
        Suppressed cells are informative only through a rule. Tables of several releases of the same
        people are combined, see :meth:`PublishedTables.combine`. Or the ``problem`` of another
        reconstruction, which is reused if it has the same options.
    scope : str
        The finest level of the tables (``"block"``) for every block alone, or a larger one
        (``"tract"``) for all blocks of such a place together with its tables.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds of the solver for a component; by default no limit. A ``Deadline`` is for all
        components together.
    nearest : bool, default False
        Whether blocks without a solution get the records with the least total absolute deviation
        from the published counts of the block. Rows of larger places are dropped for them.
    taken_as_true : bool, default False
        Whether to read counts of a release that need not be true (``tables.laws``) as if they were,
        as a naive reader does. Otherwise noisy and swapped ones are refused.
    known_rule : bool, default True
        Whether to use the rule by which counts are withheld.

    Returns
    -------
    Reconstruction
        Records, and a status for every block.

    Notes
    -----
    Source: Abowd et al. (2025), equations 5 (``tract``) and 6 (``block``). Ages of the block tables
    of the 2010 Census come in 38 bins. With tract tables, single years are filled in afterwards.
    Within a tract, sex, bin, race class and Hispanic origin, records in the order of block and race
    get the published ages from the youngest on. Agreement by exact age depends on this order, and
    ``unique`` is about the bins. If cells of the tract tables are withheld, the blocks are solved
    with single years, and ``unique`` is about these; :attr:`Reconstruction.resolution` says which.
    A cell without a published count of its block is bounded by those of larger places. If these
    have none either, its block is ``unknown``, and the others are not.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload
    >>> about = Schema("s", (Attribute("sex", 2), Attribute("old", 2)),
    ...                Geography("g", ("block",), (1,)))
    >>> sex = Table("SEX", ("m", "f"), {"sex": np.eye(2, dtype=int)})
    >>> old = Table("OLD", ("young", "old"), {"old": np.eye(2, dtype=int)})
    >>> work = Workload(about, {("block", "SEX"): sex, ("block", "OLD"): old})
    >>> counts = {("block", "SEX"): sparse.csr_array([[2, 0], [1, 1]]),
    ...           ("block", "OLD"): sparse.csr_array([[1, 1], [1, 1]])}
    >>> found = reconstruct(PublishedTables(work, {"block": ["1", "2"]}, counts), scope="block")
    >>> found.status
    ('unique', 'feasible')
    >>> found.to_frame().head(2)
      block  sex  old
    0     1    0    0
    1     1    0    1
    """
    check.flag(nearest, "nearest")
    backend, limits = solver_and_limits(solver, time_limit)
    problem = published_problem(
        tables, scope=scope, taken_as_true=taken_as_true, known_rule=known_rule
    )
    solution, deviation = solve_blocks(problem, solver=backend, limits=limits, nearest=nearest)
    conflict = tuple(solution.conflict.get(b, "") for b in range(problem.geoids.size))
    return Reconstruction(
        problem, scope, tuple(solution.status), conflict, solution.block, solution.cell,
        solution.count, solution.extra, deviation, backend.name,
    )  # fmt: skip


# -----------------------------------------------------------------------------
# Reconstruction as an attack on a release: what the registry knows it by.


class ReconstructionAttack:
    """Attack that reconstructs records from a release, with the parameters of :func:`reconstruct`.

    Examples
    --------
    >>> ReconstructionAttack(scope="block").name
    'reconstruction'
    """

    name = "reconstruction"

    def __init__(
        self,
        *,
        scope: str,
        solver: str | SolverBackend = "highs",
        time_limit: float | None = None,
        nearest: bool = False,
        taken_as_true: bool = False,
        known_rule: bool = True,
    ) -> None:
        if not isinstance(scope, str) or not scope:
            raise ArgumentError("scope", "must be a level of the tables", got=scope)
        self.scope = scope
        self.time_limit = check.time_limit(time_limit)
        self.nearest = check.flag(nearest, "nearest")
        self.solver = make_solver(solver)
        self.taken_as_true = check.flag(taken_as_true, "taken_as_true")
        self.known_rule = check.flag(known_rule, "known_rule")

    def run(self, release: Release) -> Reconstruction:
        """Return the reconstruction of a release from its tables alone."""
        check.instance(release, Release, "release")
        return reconstruct(release.tables, **vars(self))


def record_form(reconstruction: Reconstruction) -> pd.DataFrame:
    """Return reconstructed persons in the form of record files.

    Parameters
    ----------
    reconstruction : Reconstruction
        A reconstruction of person tables.

    Returns
    -------
    pandas.DataFrame
        ``block, sex, age, agebin, race, hisp``. If the tables separate only groups of codes, such
        as bins of age, the first code of the group is given. ``agebin`` is one of the 38 of the
        block tables. Other schemas have their own columns.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": 0, "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> record_form(reconstruct(tables, scope="block"))[["age", "agebin"]].values.tolist()
    [[7, 7], [30, 24]]
    """
    check.instance(reconstruction, Reconstruction, "reconstruction")
    frame = reconstruction.to_frame()
    space = reconstruction.problem.space
    for name in space.schema.names:
        if space.is_whole(name):
            continue
        youngest = space.first[name][frame.pop(f"{name}bin")] + space.schema.attribute(name).first
        # Records of the least deviation have nothing from larger places: there it is -1.
        ages = frame[name].to_numpy() if name in frame else np.full(len(frame), -1)
        frame[name] = np.where(ages < 0, youngest, ages)
    if not set(PERSON) <= set(space.schema.names):
        return frame
    frame["agebin"] = age_bin(frame["age"]) if len(frame) else frame["age"]
    order = [reconstruction.problem.level, "sex", "age", "agebin", "race", "hisp"]
    return frame[[c for c in order if c in frame] + [c for c in frame if c not in order]]
