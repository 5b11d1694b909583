"""Which tables are measured at which level, with how much budget and hence how much noise."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._files.parse import shown
from bayesrisk.accounting import census_2020_budget, exact_number, split_rho
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.tables import Table, Workload

Budget = dict[str, dict[str, Fraction]]

#: Level names of the 2020 allocation.
_CENSUS_LEVELS = {"us": "nation"}


def positive(value: Any, name: str) -> Fraction:
    """Return an exact number > 0."""
    number = exact_number(value, name)
    if number <= 0:
        raise ArgumentError(f"{name} must be > 0, got {shown(value)}")
    return number


def shares(value: Any, name: str) -> dict[str, Fraction] | None:
    """Return weights by name, checked."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise ArgumentTypeError(f"{name} must be a mapping of names to weights, got {shown(value)}")
    return {str(key): positive(part, f"{name}[{key!r}]") for key, part in value.items()}


def explicit_budget(value: Any) -> Budget | None:
    """Return a budget by level and table, checked."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise ArgumentTypeError(f"budget must map levels to tables to rho, got {shown(value)}")
    checked = {str(level): shares(parts, f"budget[{level!r}]") for level, parts in value.items()}
    return {level: parts for level, parts in checked.items() if parts is not None}


def census_2020_allocation(levels: list[str]) -> Budget:
    """Return the 2020 allocation of the redistricting persons for the levels named, exactly."""
    table = census_2020_budget("pl94")
    found: Budget = {}
    for level, query, rho in zip(table["level"], table["query"], table["rho"], strict=True):
        name = _CENSUS_LEVELS.get(level.lower(), level.lower())
        if name in levels:
            found.setdefault(name, {})[query] = rho
    missing = [level for level in levels if level not in found]
    if missing:
        raise ArgumentError(
            f"budget must be given: the 2020 allocation has no level {missing[0]!r}"
        )
    return found


def allocate(
    available: dict[str, list[str]],
    default: Budget | None,
    *,
    rho: Fraction | None,
    level_shares: dict[str, Fraction] | None,
    query_shares: dict[str, Fraction] | None,
) -> Budget:
    """Return the budget of every level and table, which sums to ``rho`` exactly if it is given.

    Shares that are not given are those of the default allocation, else equal.
    """
    weights: Budget = {}
    base = default or {k: dict.fromkeys(v, Fraction(1)) for k, v in available.items()}
    for level in _named(level_shares, list(available), "level_shares"):
        tables = _named(query_shares, available[level], "query_shares", strict=False)
        own = {t: query_shares[t] if query_shares else base[level].get(t) for t in tables}
        inside = {t: w for t, w in own.items() if w is not None}
        if not inside:
            raise ArgumentError(f"query_shares must name a table of level {level!r}, got none")
        default_level = sum(base[level].values()) if default else Fraction(1)
        whole = level_shares[level] if level_shares else default_level
        weights[level] = split_rho(whole, inside)
    total = sum(part for parts in weights.values() for part in parts.values())
    if rho is None:
        if default is None or level_shares:
            raise ArgumentError("rho must be given where no published allocation applies, got None")
        return weights
    return {
        level: {table: rho * part / total for table, part in parts.items()}
        for level, parts in weights.items()
    }


def _named(
    given: dict[str, Fraction] | None, known: list[str], name: str, *, strict: bool = True
) -> list[str]:
    """Return the known names that were given weights; all of them if nothing was given."""
    if given is None:
        return known
    unknown = [key for key in given if key not in known]
    if unknown and strict:
        raise ArgumentError(f"{name} must name {', '.join(known)}, got {shown(unknown[0])}")
    return [key for key in known if key in given]


def check_measured(budget: Budget, workload: Workload) -> None:
    """Check that every table with a budget is defined."""
    for level, parts in budget.items():
        for table in parts:
            if (level, table) not in workload.tables:
                raise ArgumentError(
                    f"budget names table {table!r} at level {level!r}, which the measurements lack"
                )


def matrices(workload: Workload) -> dict[tuple[str, str], sparse.csr_array]:
    """Return every table as a matrix over the cells of the histogram, made once for all levels."""
    cells = np.arange(workload.schema.size, dtype=np.int64)
    by_name: dict[str, list[tuple[Table, sparse.csr_array]]] = {}
    found = {}
    for key, table in workload.tables.items():
        known = by_name.setdefault(table.name, [])
        rows = next((rows for other, rows in known if other is table or other == table), None)
        if rows is None:
            rows = sparse.csr_array(table.incidence(workload.schema, cells))
            known.append((table, rows))
        found[key] = rows
    return found


def squared_sensitivity(rows: sparse.csr_array) -> int:
    """Return the squared L2 sensitivity of a table to a record that changes, exactly.

    The record may move to another geography too: then the answer of one loses a column, that of
    the other gains one, and the squares add.  Weights are >= 0, so nothing moves it further.
    """
    squares = sparse.csc_array(rows.astype(np.int64)).power(2).sum(axis=0)
    return 2 * int(np.max(squares, initial=0))


def sigma2(rho: Fraction, rows: sparse.csr_array) -> Fraction:
    """Return the scale of the noise that spends ``rho`` on a table: Delta**2 / (2 rho)."""
    return Fraction(squared_sensitivity(rows)) / (2 * rho)


def weights(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / variance, scaled to at most 1 and not below 1e-8.

    A query a hundred million times more precise than another decides alone either way; the bound
    keeps the solver's numbers in range when a huge budget leaves no noise at all.
    """
    if not variances.any():
        return np.ones(variances.size)
    floor = np.maximum(variances, 1e-8 * variances.max())
    return np.asarray(floor.min() / floor)
