"""Search for claims that must be true: candidates from the tables, each verified (Liu et al.).

A claim R(a, m) says that exactly m records of a place agree with the partial assignment a. It is
verified if it holds in every data set that fits the published tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.constraints.solvers import SolverBackend, make_solver
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.claims.result import Claims, collected, encoded, several
from bayesrisk.reconstruction.claims.search.decide import ClaimProblem
from bayesrisk.reconstruction.claims.search.lattice import subsets
from bayesrisk.reconstruction.claims.search.space import HOUSEHOLD, TENURES, Rules, claim_space
from bayesrisk.reconstruction.records.problem import Problem, stated_counts
from bayesrisk.release import Release
from bayesrisk.tables.published import SeveralTables, read_tables, under_laws
from bayesrisk.tables.schema import Schema

_MOST_COLUMNS = 14
#: Partial assignments have a number each.
_MOST_CLAIMS = 2**62
_OCCUPIED = {"vacancy": [0]}


@dataclass(frozen=True)
class ClaimOptions:
    """Checked options of the search for claims and their verification.

    Attributes
    ----------
    level : str, optional
        Level of the places, by default the finest; tables of other levels are not used.
    columns : sequence of str, optional
        Columns of the claims; by default all.
    max_columns : int, optional
        Largest number of columns of a claim; by default no limit.
    structural_rules : bool, default True
        For households: whether to consider only combinations that can exist, see
        :func:`household_valid`. If False, every combination of the codes counts, as in the paper.
    tenure : {"merged", "cash", "four-way"}
        Reading of tables that publish renters together. ``merged`` makes claims about renters with
        and without payment of rent together. ``cash`` assumes that all pay. ``four-way`` makes
        claims about each, which the tables then cannot verify.
    cells : sequence of int, optional
        Cells of the schema in which records can lie, in place of those of the rules.
    among : mapping of str to sequence of int, optional
        Codes of the records that claims are about; by default occupied units of household schemas,
        and all records of other schemas.
    refuted : bool, default False
        Whether to keep refuted candidates in the result.
    n_solutions : int, default 1
        Number of data sets in which candidates must hold (K of the paper, which has 100). The
        verified claims do not depend on it.
    solver : str or SolverBackend, default "highs"
        Solver for cases that linear relaxations do not settle, see :func:`make_solver`.
    time_limit : float, optional
        Seconds for a place, for all stages together. Claims left open are ``undecided``, never
        verified. The stage that runs when the time is over is finished: with HiGHS, well under a
        second.
    taken_as_true : bool, default False
        Whether to read counts of a release that need not be true (``tables.laws``) as if they were,
        as a naive reader does. Otherwise a count that was rounded, or stands for a range, is read
        as all counts that it allows, and noisy counts are refused.
    known_rule : bool, default True
        Whether the rule for withholding counts (:class:`SuppressedCounts`) is known and used.
    rng : int, default 0
        Seed of the objectives near whose optima data sets are searched; no decision depends on it.

    Examples
    --------
    >>> ClaimOptions(columns=["sex", "age"], max_columns=2).tenure
    'merged'
    """

    level: str | None = None
    columns: Sequence[str] | None = None
    max_columns: int | None = None
    structural_rules: bool = True
    tenure: str = "merged"
    cells: Sequence[int] | None = None
    among: Mapping[str, Sequence[int]] | None = None
    refuted: bool = False
    n_solutions: int = 1
    solver: str | SolverBackend = "highs"
    time_limit: float | None = None
    taken_as_true: bool = False
    known_rule: bool = True
    rng: int = 0

    def __post_init__(self) -> None:
        flags = ("structural_rules", "refuted", "taken_as_true", "known_rule")
        values: dict[str, Any] = {name: check.flag(getattr(self, name), name) for name in flags}
        values |= {
            "n_solutions": check.integer(self.n_solutions, "n_solutions", lower=1, upper=10_000),
            "rng": check.integer(self.rng, "rng", lower=0),
            "time_limit": check.time_limit(self.time_limit),
        }
        check.choice(self.tenure, "tenure", TENURES)
        if self.columns is not None:
            values["columns"] = check.texts(self.columns, "columns")
        if self.max_columns is not None:
            values["max_columns"] = check.integer(self.max_columns, "max_columns", lower=1)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def schema_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that claims use, in schema order; by default all."""
        names = schema.names if self.columns is None else self.columns
        for name in names:
            check.choice(name, "columns", schema.names)
        check.each_once(names, "columns")
        if not 1 <= len(names) <= _MOST_COLUMNS:
            raise ArgumentError(
                "columns", f"must be from 1 to {_MOST_COLUMNS} names", shown=len(names)
            )
        return tuple(name for name in schema.names if name in names)

    def schema_codes(self, schema: Schema) -> dict[str, tuple[int, ...]]:
        """Return the codes that define the records of the claims."""
        among = self.among
        if among is None:
            among = _OCCUPIED if schema.name == HOUSEHOLD else {}
        chosen = {}
        for name, codes in check.mapping(among, "among").items():
            attribute = schema.attribute(check.choice(name, "among", schema.names))
            values = check.items(codes, f"among[{name!r}]")
            array = check.count_array(
                values, f"among[{name!r}]", lower=attribute.first, upper=attribute.last
            )
            chosen[name] = tuple(array.tolist())
        return chosen

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ClaimOptions:
        """Return the options given by name; raise for unknown names."""
        check.known_options(options, [field.name for field in fields(cls)], "find_claims")
        return cls(**options)


def claim_problem(tables: SeveralTables | Problem, options: ClaimOptions) -> ClaimProblem:
    """Return the checked problem of claims for tables and options."""
    posed, source = (tables, tables.tables) if isinstance(tables, Problem) else (None, tables)
    tables, (level,), assumed = read_tables(
        source, options.level, taken_as_true=options.taken_as_true, alone=True
    )
    workload, schema = tables.workload, tables.workload.schema
    keys = [key for key in workload.tables if key[0] == level]
    # Of tables that are taken as true only those laws count that say no less.
    laws = {
        key: law
        for key, law in tables.laws.items()
        if key in keys and not law.plain and (law.exact or not assumed)
    }
    coarsened = any(options.known_rule or not law.exact for law in laws.values())
    question = level, False, options.known_rule
    if posed and not assumed and (posed.level, *posed.question[1:3]) == question:
        stated = posed.published, posed.ranges
    else:
        stated = stated_counts(
            under_laws(tables, laws), level, coarsened=coarsened, known_rule=options.known_rule
        )
    if schema.name != HOUSEHOLD and options.tenure != "merged":
        raise ArgumentError(
            "tenure", f"must be merged for schema {schema.name!r}", got=options.tenure
        )
    columns, eligible = options.schema_columns(schema), options.schema_codes(schema)
    listed = None
    if options.cells is not None:
        cells = check.count_array(options.cells, "cells", lower=0, upper=schema.size - 1)
        listed = np.unique(cells)
    rules = Rules(options.structural_rules, options.tenure, tuple(eligible.items()))
    space = claim_space(schema, tuple(workload.tables[key] for key in keys), rules, cells=listed)
    values = prod(int(space.sizes[schema.names.index(name)]) + 1 for name in columns)
    if values > _MOST_CLAIMS:
        raise ArgumentError("columns", "must have at most 2**62 partial assignments", shown=values)
    most = len(columns) if options.max_columns is None else options.max_columns
    sets = subsets([schema.names.index(name) for name in columns], min(most, len(columns)))
    return ClaimProblem(
        level, tables.geoids[level], columns, eligible, space, *stated, sets,
        make_solver(options.solver), options.time_limit, options.n_solutions, options.rng,
        options.refuted, assumed, coarsened,
    )  # fmt: skip


def find_claims(tables: SeveralTables | Problem, **options: object) -> Claims:
    """Return every claim about records that must be true, given the published tables.

    Candidates are all partial assignments of the records of one data set that fits the tables: a
    claim that holds in every data set holds in this one. Each is then decided exactly. If counts
    are rounded, published in ranges or withheld by a rule, the claim is the strongest of its
    columns. It gives the exact number of records if that is proved, else a least number.

    Parameters
    ----------
    tables : PublishedTables, or sequence of them, or mapping by name
        Tables of any schema and workload, with true counts or counts that limit the true ones; of
        one release, or of several of the same people. Or their problem, as a reconstruction has it.
    **options : object
        Options of :class:`ClaimOptions`, by name.

    Notes
    -----
    A claim is verified by a whole-numbered combination of published counts (row space), or by
    bounds of the linear relaxation proved in integers. Otherwise it is verified by an integer
    program without a solution, confirmed a second way. It is refuted by a data set that fits every
    count. A count with several possible values makes a two-sided row, which bounds and programs use
    directly; only rows with one count are combined. Memory grows with the published cells that
    count each live cell, and with the claims.

    Source: T. Liu, E. Xiao, P. Thaker, A. Smith, Z. S. Wu, "Generate-then-Verify: Reconstructing
    Data from Limited Published Statistics", section 2 (definitions) and 3. The paper decides by a
    program over one-hot records; here it is over counts of cells, with the same answers.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> found = find_claims(tabulate(records, Workload.named("sf1-block")), max_columns=2)
    >>> len(found.to_frame()), found.blocks["status"].tolist()
    (17, ['decided'])
    """
    problem = claim_problem(tables, ClaimOptions.from_options(options))
    return collected(problem, [problem.study(block) for block in problem.blocks()])


def generate_claims(tables: SeveralTables | Problem, **options: object) -> Claims:
    """Return candidate claims, which hold in every data set found so far.

    Tables and options are as for :func:`find_claims`; :func:`verify_claims` decides on each.
    """
    problem = claim_problem(tables, ClaimOptions.from_options(options))
    problem = replace(problem, verify=False, refuted=False)
    return collected(problem, [problem.study(block) for block in problem.blocks()])


def verify_claims(
    tables: SeveralTables | Problem, candidates: Claims | pd.DataFrame, **options: object
) -> Claims:
    """Return the given claims, each verified, refuted or left undecided by the tables.

    Parameters
    ----------
    tables : PublishedTables
        Tables as for :func:`find_claims`.
    candidates : Claims or pandas.DataFrame
        Place, code of each column (missing for any) and ``multiplicity`` of each claim, which may
        be 0. Optionally ``at_least``, whether the claim is about a least number of records.
    **options : object
        Options of :class:`ClaimOptions`, by name; columns default to those of the candidates.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [7, 31],
    ...                        "race": 1, "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> one = pd.DataFrame({"block": ["500010101001000"] * 2, "age": 7, "multiplicity": [1, 2]})
    >>> verify_claims(tables, one).claims["status"].tolist()
    ['verified', 'refuted']
    >>> candidates = generate_claims(tables, columns=["sex", "age"], n_solutions=3)
    >>> verify_claims(tables, candidates).claims["status"].value_counts().to_dict()
    {'verified': 6}
    """
    frame = candidates.claims if isinstance(candidates, Claims) else candidates
    frame = check.frame(frame, "candidates")
    if isinstance(candidates, Claims):
        options = {"level": candidates.level, "columns": candidates.columns, **options}
    problem = replace(claim_problem(tables, ClaimOptions.from_options(options)), refuted=True)
    problem = replace(problem, bounds=problem.bounds or bool(several(frame).any()))
    pairs = zip(problem.blocks(), encoded(problem, frame), strict=True)
    return collected(problem, [problem.study(block, claims) for block, claims in pairs])


# -----------------------------------------------------------------------------
# Verified claims as an attack on a release: what the registry knows it by.


class ClaimsAttack:
    """Attack that finds the claims which a release's tables prove.

    The options are those of :class:`ClaimOptions`, by name.

    Examples
    --------
    >>> ClaimsAttack(max_columns=3).name
    'claims'
    """

    name = "claims"

    def __init__(self, **options: object) -> None:
        self.options = ClaimOptions.from_options(options)

    def run(self, release: Release) -> Claims:
        """Return the claims that the release's tables prove."""
        check.instance(release, Release, "release")
        return find_claims(release.tables, **vars(self.options))
