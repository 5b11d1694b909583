"""Options of claims, checked once by themselves and once against tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.claims.search.decide import ClaimProblem
from bayesrisk.reconstruction.claims.search.lattice import subsets
from bayesrisk.reconstruction.claims.search.space import HOUSEHOLD, TENURES, Rules, claim_space
from bayesrisk.reconstruction.solvers import make_solver
from bayesrisk.reconstruction.solvers.model import SolverBackend
from bayesrisk.tables.published import PublishedTables, assumed_true
from bayesrisk.tables.schema import Schema

_MOST_COLUMNS = 14
#: Partial assignments have a number each.
_MOST_CLAIMS = 2**62
_OCCUPIED = {"vacancy": [0]}


@dataclass(frozen=True)
class ClaimOptions:
    """How claims are searched for and verified, checked once.

    Attributes
    ----------
    level : str, optional
        Level of the places, by default the finest; tables of other levels are not used.
    columns : sequence of str, optional
        Columns that claims are about; all by default.
    max_columns : int, optional
        Most columns of a claim; no limit by default.
    structural_rules : bool, default True
        For households whether only combinations that can exist count, see
        :func:`household_valid`; False for every combination of the codes, as in the paper.
    tenure : {"merged", "cash", "four-way"}
        How tables that publish renters together are read: ``merged`` makes claims about renters
        with and without payment of rent together; ``cash`` assumes that all pay; ``four-way``
        makes claims about each, which the tables then cannot verify.
    cells : sequence of int, optional
        Cells of the schema that records can lie in, instead of those of the rules.
    among : mapping of str to sequence of int, optional
        Codes of the records that claims are about; by default occupied units of household
        schemas, and all records of others.
    refuted : bool, default False
        Whether refuted candidates are kept in the answer.
    n_solutions : int, default 1
        Data sets that candidates must hold in (K of the paper, which has 100); the verified claims
        do not depend on it.
    solver : str or SolverBackend, default "highs"
        For what linear relaxations do not settle, see :func:`make_solver`.
    time_limit : float, optional
        Seconds for a place, in all stages together; claims left open are ``undecided``, never
        verified.  It is kept to within the stage that runs when the time is over: well under a
        second with HiGHS.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true (``tables.laws``) are read as if they
        were, as somebody naive reads them.  Without it they are refused.
    rng : int, default 0
        Seed of the objectives near whose optima data sets are looked for; no decision depends on
        it.

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
    rng: int = 0

    def __post_init__(self) -> None:
        found: dict[str, Any] = {
            "structural_rules": check.flag(self.structural_rules, "structural_rules"),
            "refuted": check.flag(self.refuted, "refuted"),
            "taken_as_true": check.flag(self.taken_as_true, "taken_as_true"),
            "n_solutions": check.integer(self.n_solutions, "n_solutions", lower=1, upper=10_000),
            "rng": check.integer(self.rng, "rng", lower=0),
        }
        check.choice(self.tenure, "tenure", TENURES)
        if self.columns is not None:
            found["columns"] = check.texts(self.columns, "columns")
        if self.max_columns is not None:
            found["max_columns"] = check.integer(self.max_columns, "max_columns", lower=1)
        if self.time_limit is not None:
            limit = check.scalar(self.time_limit, "time_limit", lower=0.0, bounds="(]")
            found["time_limit"] = limit
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def columns_in(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns of claims in the order of the schema, all by default."""
        asked = schema.names if self.columns is None else self.columns
        for name in asked:
            check.choice(name, "columns", schema.names)
        if len(set(asked)) < len(asked):
            raise ArgumentError(f"columns must differ, got {', '.join(asked)}")
        if not 1 <= len(asked) <= _MOST_COLUMNS:
            raise ArgumentError(
                f"columns must be from 1 to {_MOST_COLUMNS} names, got {len(asked)}"
            )
        return tuple(name for name in schema.names if name in asked)

    def codes_in(self, schema: Schema) -> dict[str, tuple[int, ...]]:
        """Return the codes of the records that claims can be about."""
        among = self.among
        if among is None:
            among = _OCCUPIED if schema.name == HOUSEHOLD else {}
        kept = {}
        for name, codes in check.mapping(among, "among").items():
            about = schema.attribute(check.choice(name, "among", schema.names))
            given = check.items(codes, f"among[{name!r}]")
            array = check.count_array(
                given, f"among[{name!r}]", lower=about.first, upper=about.last
            )
            kept[name] = tuple(array.tolist())
        return kept

    @classmethod
    def given(cls, options: Mapping[str, Any]) -> "ClaimOptions":
        """Return options by name; one that does not exist is refused."""
        known = [field.name for field in fields(cls)]
        for option in check.mapping(options, "options"):
            if option not in known:
                raise ArgumentTypeError(
                    f"options must be those of find_claims ({', '.join(known)}), "
                    f"got {shown(option)}"
                )
        return cls(**options)


def claim_problem(tables: PublishedTables, options: ClaimOptions) -> ClaimProblem:
    """Return the claims that options ask of tables, both checked, with the space they are in."""
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    workload = tables.workload
    schema = workload.schema
    level = workload.levels[-1] if options.level is None else options.level
    check.choice(level, "level", workload.levels)
    keys = [key for key in workload.tables if key[0] == level]
    assumed = assumed_true(tables.laws, keys, taken_as_true=options.taken_as_true)
    if schema.name != HOUSEHOLD and options.tenure != "merged":
        raise ArgumentError(
            f"tenure must be merged for schema {schema.name!r}, got {shown(options.tenure)}"
        )
    columns, kept = options.columns_in(schema), options.codes_in(schema)
    listed = None
    if options.cells is not None:
        given = check.count_array(options.cells, "cells", lower=0, upper=schema.size - 1)
        listed = np.unique(given)
    rules = Rules(options.structural_rules, options.tenure, tuple(kept.items()))
    space = claim_space(schema, tuple(workload.tables[key] for key in keys), rules, cells=listed)
    values = prod(int(space.sizes[schema.names.index(name)]) + 1 for name in columns)
    if values > _MOST_CLAIMS:
        raise ArgumentError(f"columns must have at most 2**62 partial assignments, got {values}")
    most = len(columns) if options.max_columns is None else options.max_columns
    hidden = None
    if tables.suppressed:
        hidden = sp.csr_array(sp.hstack([tables.hidden(*key) for key in keys], format="csr"))
    return ClaimProblem(
        level,
        tables.geoids[level],
        columns,
        kept,
        space,
        sp.csr_array(sp.hstack([tables.counts[key] for key in keys], format="csr")),
        hidden,
        subsets([schema.names.index(name) for name in columns], min(most, len(columns))),
        make_solver(options.solver),
        options.time_limit,
        options.n_solutions,
        options.rng,
        options.refuted,
        assumed,
    )
