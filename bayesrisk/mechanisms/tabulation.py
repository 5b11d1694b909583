"""What mechanisms share: the true tables of a workload, and how often a record counts in one."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms.base import BasePrepared, PreparingMechanism, Protected
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import (
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
    as_microdata,
    tabulate,
)

_MAX_CLASSES = 2**22


def true_tables(microdata: Microdata | Records, workload: Workload) -> PublishedTables:
    """Return the tables as they are, of every known block, whether or not it is empty."""
    if not isinstance(workload, Workload):
        raise ArgumentTypeError(f"workload must be a Workload, got {shown(workload)}")
    return tabulate(as_microdata(microdata), workload)


class TableMechanism(PreparingMechanism["PreparedTables"]):
    """A mechanism that looks at the true tables alone: derive from it and write ``_changed``."""

    def _prepare(self, microdata: Microdata, workload: Workload) -> "PreparedTables":
        self._check(workload)
        return PreparedTables(self.spec, self, true_tables(microdata, workload))

    def _check(self, workload: Workload) -> None:
        """Refuse a workload that the parameters do not fit; any will do by default."""

    @abstractmethod
    def _changed(self, tables: PublishedTables, rng: np.random.Generator) -> Protected:
        """Return the protected tables, drawing from ``rng`` alone."""


@dataclass(frozen=True, eq=False)
class PreparedTables(BasePrepared):
    """Releases of one truth by a mechanism that looks at its tables alone.

    It holds the confidential counts: it belongs to the custodian.

    Attributes
    ----------
    spec : MechanismSpec
        Spec of the releases.
    mechanism : TableMechanism
        What protects.
    truth : PublishedTables
        True counts.
    """

    spec: MechanismSpec
    mechanism: TableMechanism
    truth: PublishedTables

    def _draw(self, rng: np.random.Generator) -> Protected:
        return self.mechanism._changed(self.truth, rng)


def replace_counts(
    tables: PublishedTables, counts: Mapping[tuple[str, str], Any]
) -> PublishedTables:
    """Return the tables with other counts."""
    return replace(tables, counts=counts)


def different_cells(schema: Schema, tables: list[Table]) -> NDArray[np.int64]:
    """Return schema cells that stand for all: one of each kind that the tables tell apart."""
    codes = {}
    for attribute in schema.attributes:
        factors = [t.factors[attribute.name] for t in tables if attribute.name in t.factors]
        first = np.zeros(1, dtype=np.int64)
        if factors:
            first = np.unique(np.vstack(factors), axis=1, return_index=True)[1]
        codes[attribute.name] = first + attribute.first
    kinds = int(np.prod([float(len(c)) for c in codes.values()]))
    if kinds > _MAX_CLASSES:
        raise ArgumentError(
            f"tables of the workload must tell at most {_MAX_CLASSES} kinds of records apart, "
            f"got {kinds}"
        )
    grid = np.meshgrid(*codes.values(), indexing="ij")
    return schema.cell_index({n: g.reshape(-1) for n, g in zip(codes, grid, strict=True)})


def most_cells(schema: Schema, table: Table, *, norm: int) -> int:
    """Return the largest sum, over a table's cells, of a record's weights to the power ``norm``.

    It is the number of cells that one record counts in, where weights are 0 and 1.
    """
    weights = table.incidence(schema, different_cells(schema, [table]))
    return int((weights.power(norm)).sum(axis=0).max())
